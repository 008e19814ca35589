"""The conflict table on the real API server: what is taken back, left, adopted and reported.

Other tools are played by the requests that they send, under the names that they use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from live.folder_fleet import FolderFleet, Writer, pod
from live.running import Audit, is_write, until
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.model.change import Action, Change
from stoker.model.refs import ObjectRef
from stoker.render import Renderer
from stoker.sim.controlplane import ControlPlane

pytestmark = pytest.mark.live

_NUMBERS = itertools.count(1)
KEDA = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def web(*, replicas: int = 2, image: str = "x:1", **metadata: Any) -> dict[str, Any]:
    """What Git says."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"team": "git"}, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"nodeSelector": {"nowhere": "true"}, "containers": [container]},
            },
        },
    }


def autoscaler(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa", "namespace": namespace},
        "spec": {
            "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }


def scaled_object(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "keda", "namespace": namespace},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": []},
    }


@dataclass(frozen=True)
class Scene:
    """A fleet whose Deployment `web` stands, and somebody else."""

    fleet: FolderFleet
    other: Writer
    uid: str

    def git(self, *bodies: dict[str, Any], **spec: Any) -> None:
        self.fleet.write(self.uid, *bodies, **spec)

    def web(self) -> Change:
        """What a pass would do with the Deployment."""
        (change,) = (c for c in self.fleet.changes() if c.ref.kind == "Deployment")
        return change


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with Renderer(1) as shared:
        yield shared


@pytest.fixture(scope="module")
def keda(live_cluster: Client) -> Client:
    """The kind that KEDA brings."""
    live_cluster.apply(KEDA, manager="helm", force=True)

    def served() -> bool:
        live_cluster.forget_discovery()
        try:
            live_cluster.list("keda.sh", "ScaledObject", "", version="v1alpha1")
        except StokerError:
            return False
        return True

    until(served)
    return live_cluster


@pytest.fixture
def scene(
    tmp_path: Any, control_plane: ControlPlane, live_cluster: Client, renderer: Renderer
) -> Scene:
    namespace = f"owners-{next(_NUMBERS)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    live_cluster.create(body, manager="kubectl-create")
    name = f"owners-{next(_NUMBERS)}"
    fleet = FolderFleet(
        tmp_path / "a", control_plane.kubeconfig_path, namespace, name=name, renderer=renderer
    )
    found = Scene(fleet, Writer(live_cluster, namespace), live_cluster.server().cluster_uid)
    found.git(web())
    done = fleet.run()
    assert done.failure is None
    assert done.outcome is not None
    assert done.outcome.units[0].applied, done.outcome
    return found


def image_of(live: dict[str, Any]) -> str:
    found: str = live["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


# ------------------------------------------------------------- people's tools lose to Git
BY_HAND: dict[str, Callable[[Writer], None]] = {
    "kubectl apply": lambda other: other.client_side_apply(
        pod({"containers": [{"name": "main", "image": "hand:1"}]})
    ),
    "kubectl apply --server-side": lambda other: other.apply(
        pod({"containers": [{"name": "main", "image": "hand:1"}]}), "kubectl"
    ),
    "kubectl edit": lambda other: other.image("hand:1", "kubectl-edit"),
    "kubectl set image": lambda other: other.image("hand:1", "kubectl-set"),
    "helm upgrade": lambda other: other.image("hand:1", "helm"),
    "helm 4, server side": lambda other: other.apply(
        pod({"containers": [{"name": "main", "image": "hand:1"}]}), "helm"
    ),
    "k9s": lambda other: other.image("hand:1", "k9s"),
}


@pytest.mark.parametrize("write", BY_HAND.values(), ids=BY_HAND)
def test_what_a_person_wrote_is_drift_and_taken_back(
    scene: Scene, write: Callable[[Writer], None]
) -> None:
    """design.md 6: Git takes the field back, by force and only that field, and says from whom.

    reliability-security c.2 row 49.
    """
    write(scene.other)
    shown = scene.web()
    scene.fleet.run()

    assert shown.action is Action.CHANGE
    assert [f.path for f in shown.fields] == ["spec.template.spec.containers[name=main].image"]
    assert "takes spec.template.spec.containers[name=main].image back from" in shown.note
    assert image_of(scene.other.live()) == "x:1"
    assert scene.fleet.differing() == {}


@pytest.mark.parametrize("count", [5, 0])
def test_a_bare_scale_is_drift(scene: Scene, count: int) -> None:
    """After a scale to 0 nobody owns the count; Git's rule holds all the same.

    reliability-security c.2 row 50.
    """
    scene.other.scale(count, "kubectl")
    scene.fleet.run()

    assert scene.other.live()["spec"]["replicas"] == 2
    assert scene.fleet.differing() == {}


# ----------------------------------------------------------------- other controllers keep
THEIRS: dict[str, tuple[Callable[[Writer], None], str]] = {
    "kustomize-controller": (
        lambda other: other.apply(
            pod({"containers": [{"name": "main", "image": "theirs:1"}]}), "kustomize-controller"
        ),
        "spec.template.spec.containers[name=main].image",
    ),
    "argocd-controller": (
        lambda other: other.apply({"metadata": {"labels": {"team": "argo"}}}, "argocd-controller"),
        "metadata.labels.team",
    ),
    "vpa that writes requests": (
        lambda other: other.patch(
            pod({"containers": [{"name": "main", "resources": {"requests": {"cpu": "20m"}}}]}),
            "vpa-updater",
        ),
        "spec.template.spec.containers[name=main].resources.requests.cpu",
    ),
    "an operator": (
        lambda other: other.patch({"metadata": {"labels": {"team": "operator"}}}, "some-operator"),
        "metadata.labels.team",
    ),
}


@pytest.mark.parametrize(("write", "path"), THEIRS.values(), ids=THEIRS)
def test_what_another_controller_took_is_left_and_told(
    scene: Scene, write: Callable[[Writer], None], path: str
) -> None:
    """Two controllers on one field would write for ever: the other one keeps it.

    reliability-security c.2 row 51.
    """
    write(scene.other)
    before = scene.other.live()
    scene.fleet.run()
    after = scene.other.live()
    shown = scene.web()

    assert before["spec"] == after["spec"]
    assert before["metadata"]["labels"] == after["metadata"]["labels"]
    assert shown.action is Action.UNCHANGED
    assert [left for left, _ in shown.left_to_others] == [path]


ADDED: dict[str, Callable[[Writer], None]] = {
    "injected sidecar": lambda other: other.patch(
        pod({"containers": [{"name": "istio-proxy", "image": "proxy:1"}]}), "istio-injector"
    ),
    "kubectl rollout restart": lambda other: other.patch(
        {
            "spec": {
                "template": {
                    "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}
                }
            }
        },
        "kubectl-rollout",
    ),
    "labels of another tool": lambda other: other.patch(
        {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}},
        "kustomize-controller",
    ),
}


@pytest.mark.parametrize("write", ADDED.values(), ids=ADDED)
def test_what_others_add_is_no_difference(scene: Scene, write: Callable[[Writer], None]) -> None:
    write(scene.other)
    before = scene.other.live()
    scene.fleet.run()

    assert scene.fleet.differing() == {}
    assert before["spec"] == scene.other.live()["spec"]


def test_a_labeller_that_never_rests_costs_no_write(
    scene: Scene, control_plane: ControlPlane
) -> None:
    """An annotation a second is no news of ours."""
    audit = Audit(control_plane.audit_log)
    for number in range(10):
        scene.other.patch({"metadata": {"annotations": {"seen": str(number)}}}, "labeller")
        if number % 3 == 0:
            scene.fleet.run()
    asked = [request for request in audit.news() if scene.fleet.namespace in request[1]]
    audit.close()

    assert scene.other.live()["metadata"]["annotations"]["seen"] == "9"
    assert [request for request in asked if is_write(request) and "/web" in request[1]] == []
    assert scene.fleet.differing() == {}


# ----------------------------------------------------------------------------- counts
@pytest.mark.parametrize("count", [5, 0], ids=["scaled up", "at zero"])
def test_a_count_belongs_to_the_autoscaler_while_it_exists(scene: Scene, count: int) -> None:
    """Zero included, whoever the entries name; when it goes, Git's rule returns.

    reliability-security c.2 row 50.
    """
    scene.other.create(autoscaler(scene.fleet.namespace), "kubectl-create")
    scene.other.scale(count, "kube-controller-manager")
    scene.fleet.run()
    shown = scene.web()

    assert scene.other.live()["spec"]["replicas"] == count
    assert shown.action is Action.UNCHANGED
    assert shown.left_to_others == (
        ("spec.replicas", f"live {count}, Git 2: HorizontalPodAutoscaler/hpa owns it"),
    )

    hpa = ObjectRef("autoscaling", "HorizontalPodAutoscaler", scene.fleet.namespace, "hpa", "v2")
    scene.other.cluster.delete(hpa)
    scene.fleet.run()
    assert scene.other.live()["spec"]["replicas"] == 2
    assert scene.fleet.differing() == {}


def test_a_count_is_left_to_an_autoscaler_that_has_not_acted_yet(scene: Scene) -> None:
    """Git's new count would be undone by its first act, or undo it."""
    scene.other.create(autoscaler(scene.fleet.namespace), "kubectl-create")
    scene.git(web(replicas=4, image="x:2"))
    scene.fleet.run()
    live = scene.other.live()

    assert (image_of(live), live["spec"]["replicas"]) == ("x:2", 2)
    assert scene.fleet.differing() == {}


@pytest.mark.usefixtures("keda")
def test_a_count_belongs_to_keda_at_zero_and_above(scene: Scene) -> None:
    """KEDA scales between 0 and 1 itself, and by an HPA of its own above."""
    scene.other.create(scaled_object(scene.fleet.namespace), "kubectl-create")
    for count in (0, 1, 6):
        scene.other.scale(count, "keda" if count < 2 else "kube-controller-manager")
        scene.fleet.run()
        assert scene.other.live()["spec"]["replicas"] == count
    (left,) = scene.web().left_to_others
    assert left == ("spec.replicas", "live 6, Git 2: ScaledObject/keda owns it")


# --------------------------------------------------------------------- several of us
def test_a_second_stoker_never_takes_over(
    scene: Scene, tmp_path: Any, control_plane: ControlPlane, renderer: Renderer
) -> None:
    """The owner mark names fleet and object: a clean refusal, never forced."""
    second = FolderFleet(
        tmp_path / "b",
        control_plane.kubeconfig_path,
        scene.fleet.namespace,
        name="second",
        renderer=renderer,
    )
    second.write(scene.uid, web(image="second:1"))
    second.run()
    ref = f"Deployment {scene.fleet.namespace}/web"

    assert second.differing()[ref][:2] == ("error", "adoption-required")
    assert image_of(scene.other.live()) == "x:1"
    assert scene.fleet.differing() == {}


def test_a_renamed_fleet_changes_and_deletes_nothing(
    scene: Scene, tmp_path: Any, control_plane: ControlPlane, renderer: Renderer
) -> None:
    """The id is fixed at the install; a new name alone is a mistake until somebody says so."""
    fleet_id = scene.other.live()["metadata"]["annotations"]["stoker.dev/owner"].split("/")[0]
    before = scene.other.live()
    renamed = FolderFleet(
        tmp_path / "c",
        control_plane.kubeconfig_path,
        scene.fleet.namespace,
        name="renamed",
        fleet_id=fleet_id,
        renderer=renderer,
    )
    renamed.write(scene.uid, web(image="x:2"))
    done = renamed.run()

    assert done.failure is not None
    assert "renamed" in done.failure.message
    assert before["spec"] == scene.other.live()["spec"]


# ------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("env", "code"),
    [
        ([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], "invalid-object"),
        ([{"name": "A", "valu": "1"}], "invalid-object"),
    ],
    ids=["a variable twice", "an unknown field"],
)
def test_what_the_server_refuses_is_an_error_and_never_synced(
    scene: Scene, env: list[dict[str, str]], code: str
) -> None:
    """cases.md row 45; both come back as HTTP 500, which is no reason to try again."""
    body = web()
    body["spec"]["template"]["spec"]["containers"][0]["env"] = env
    scene.git(body)
    shown = scene.web()
    done = scene.fleet.run()

    assert (shown.action, shown.code) == (Action.ERROR, code)
    assert done.outcome is not None
    assert not done.outcome.units[0].applied


def test_an_ignore_rule_is_the_same_for_diff_and_apply(scene: Scene) -> None:
    """argo-cd 4912: differences ignored in the view were written all the same."""
    rule = {"target": {"kind": "Deployment"}, "paths": ["/spec/replicas", "/metadata/labels/team"]}
    scene.git(web(), ignore=[rule])
    scene.other.scale(7, "kubectl")
    scene.other.patch({"metadata": {"labels": {"team": "theirs"}}}, "kubectl-edit")
    assert scene.fleet.differing() == {}
    scene.fleet.run()
    scene.git(web(replicas=3, image="x:2"), ignore=[rule])
    scene.fleet.run()
    live = scene.other.live()

    assert (image_of(live), live["spec"]["replicas"]) == ("x:2", 7)
    assert live["metadata"]["labels"]["team"] == "theirs"
    assert scene.fleet.differing() == {}
