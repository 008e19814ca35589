from stoker.model.refs import ObjectRef
from stoker.observe.external import scale_target, scalers_by_target
from unit.observe.observe_builders import manifest


def hpa(name="h", target="web", kind="Deployment", api="apps/v1"):
    reference = {"apiVersion": api, "kind": kind, "name": target}
    return manifest(
        "autoscaling/v2", "HorizontalPodAutoscaler", name, "llm", spec={"scaleTargetRef": reference}
    )


def scaled_object(name="s", **reference):
    spec = {"scaleTargetRef": {"name": "web", **reference}}
    return manifest("keda.sh/v1alpha1", "ScaledObject", name, "llm", spec=spec)


def owners(*raws):
    return scalers_by_target(filter(None, map(scale_target, raws)))


WEB = ObjectRef("apps", "Deployment", "llm", "web")


def test_an_autoscaler_owns_the_count_of_its_target():
    """cases.md row 59: a Deployment with replicas in Git and an HPA must not flip."""
    assert owners(hpa()) == {WEB: "HorizontalPodAutoscaler/h"}


def test_a_scaled_object_targets_a_deployment_unless_it_says_otherwise():
    other = scaled_object("t", kind="StatefulSet", apiVersion="apps/v1")

    assert owners(scaled_object(), other) == {
        WEB: "ScaledObject/s",
        ObjectRef("apps", "StatefulSet", "llm", "web"): "ScaledObject/t",
    }


def test_a_scaled_object_is_named_rather_than_the_autoscaler_it_made():
    assert owners(hpa("keda-hpa-s"), scaled_object())[WEB] == "ScaledObject/s"


def test_two_autoscalers_are_settled_by_name():
    assert owners(hpa("b"), hpa("a"))[WEB] == "HorizontalPodAutoscaler/a"


def test_an_autoscaler_without_target_owns_nothing():
    assert scale_target(manifest("autoscaling/v2", "HorizontalPodAutoscaler", "h", "llm")) is None
    assert scale_target(manifest("keda.sh/v1alpha1", "ScaledObject", "s", "llm")) is None
