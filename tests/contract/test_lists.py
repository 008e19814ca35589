"""Group H of research/ssa-facts.md: lists, maps, null, empty, defaults, bad input."""

from __future__ import annotations

import pytest

from contract.api import data, deployment, template

C = 'spec.template.spec.containers[name="c"]'


def pods(*containers, **spec):
    return deployment(template=template(*containers, **spec))


def container(name="c", image="x:1", **more):
    return {"name": name, "image": image, **more}


def names(answer):
    return [one["name"] for one in answer["spec.template.spec.containers"]]


def test_64_containers_merge_by_name(server):
    server.apply("Deployment", "d", pods(container()))
    side = {"spec": {"template": {"spec": {"containers": [container("side")]}}}}
    injected = server.apply("Deployment", "d", side, by="inj")
    assert names(injected) == ["c", "side"]

    assert names(server.apply("Deployment", "d", pods(container()))) == ["c", "side"]
    two = server.apply("Deployment", "d", pods(container("z"), container()))
    assert names(two) == ["z", "c", "side"]
    refused = server.apply("Deployment", "d", pods(container(), container("side", "y:1")))
    assert refused.causes[0][2] == '.spec.template.spec.containers[name="side"].image'


def test_64_a_strategic_patch_puts_new_items_first(server):
    server.apply("Deployment", "d", pods(container()))
    patch = {"spec": {"template": {"spec": {"containers": [container("w")]}}}}
    patched = server.patch("Deployment", "d", patch, how="strategic")
    assert names(patched) == ["w", "c"]

    assert names(server.apply("Deployment", "d", pods(container()))) == ["w", "c"]


def test_64_a_container_needs_a_name(server):
    refused = server.apply("Deployment", "d", pods(container(), {"image": "x:1"}))

    assert refused.status == 422
    assert "spec.template.spec.containers[1].name: Required value" in refused.message


def test_65_a_dropped_item_takes_a_foreign_update_along(server):
    """Why an item is only dropped when no other manager holds a field in it."""
    server.apply("Deployment", "d", pods(container(), container("b")))
    image = {"spec": {"template": {"spec": {"containers": [container("b", "y:1")]}}}}
    server.patch("Deployment", "d", image, by="kubectl-set", how="strategic")

    dropped = server.apply("Deployment", "d", pods(container()))
    assert names(dropped) == ["c"]
    assert "kubectl-set" not in dropped.owners


def test_65_an_item_that_another_apply_holds_in_part_stays_in_part(server):
    server.apply("Deployment", "d", pods(container(), container("b")))
    part = {"spec": {"template": {"spec": {"containers": [{"name": "b", "tty": True}]}}}}
    server.apply("Deployment", "d", part, by="b")

    refused = server.apply("Deployment", "d", pods(container()))
    assert refused.status == 422
    assert "containers[1].image: Required value" in refused.message


def test_65_an_item_that_another_apply_holds_in_full_stays(server):
    variable = [{"name": "A", "value": "1"}]
    server.apply("Deployment", "d", pods(container(env=variable)))
    same = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": variable}]}}}}
    server.apply("Deployment", "d", same, by="b")

    dropped = server.apply("Deployment", "d", pods(container()))
    assert dropped["spec.template.spec.containers.0.env"] == variable


def test_66_ports_are_keyed_by_number_and_protocol(server):
    made = server.apply("Deployment", "d", pods(container(ports=[{"containerPort": 80}])))
    key = f'{C}.ports[containerPort=80,protocol="TCP"]'
    assert f"{key}. {key}.containerPort" in made.owners
    assert f"{key}.protocol" not in made.owners

    udp = {"name": "c", "ports": [{"containerPort": 80, "protocol": "UDP"}]}
    both = {"spec": {"template": {"spec": {"containers": [udp]}}}}
    ports = server.apply("Deployment", "d", both, by="inj")["spec.template.spec.containers.0.ports"]
    assert [port["protocol"] for port in ports] == ["TCP", "UDP"]
    moved = server.apply("Deployment", "d", pods(container(ports=[{"containerPort": 81}])))
    ports = moved["spec.template.spec.containers.0.ports"]
    assert sorted(port["containerPort"] for port in ports) == [80, 81]


def test_66_an_empty_env_value_is_owned_but_not_stored(server):
    made = server.apply("Deployment", "d", pods(container(env=[{"name": "A", "value": ""}])))

    assert made["spec.template.spec.containers.0.env"] == [{"name": "A"}]
    assert f'{C}.env[name="A"].value' in made.owners


def test_66_value_and_value_from_exclude_each_other(server):
    server.apply("Deployment", "d", pods(container()))
    held = {"name": "c", "env": [{"name": "A", "value": "1"}]}
    patch = {"spec": {"template": {"spec": {"containers": [held]}}}}
    server.patch("Deployment", "d", patch, how="strategic")
    source = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}

    refused = server.apply("Deployment", "d", pods(container(env=[source])))
    assert refused.status == 422
    assert "may not be specified when `value` is not empty" in refused.message


def service(**spec):
    return {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}], **spec}}


def test_67_service_ports_are_keyed_by_port_and_protocol(server):
    two = [{"port": 80}, {"port": 80, "protocol": "UDP"}]
    refused = server.apply("Service", "s", service(ports=two))
    assert refused.status == 422
    assert "spec.ports[0].name: Required value" in refused.message

    named = [{"name": "t", "port": 80}, {"name": "u", "port": 80, "protocol": "UDP"}]
    assert server.apply("Service", "s", service(ports=named)).status == 201


def test_67_what_another_writes_into_our_port_stays(server):
    server.apply("Service", "s", service())
    port = [{"port": 80, "name": "web", "targetPort": 8000}]
    server.patch("Service", "s", {"spec": {"ports": port}}, how="strategic")

    applied = server.apply("Service", "s", service())
    assert applied["spec.ports.0.name"] == "web"
    assert applied["spec.ports.0.targetPort"] == 8000


def test_67_a_services_selector_is_atomic(server):
    server.apply("Service", "s", service())
    more = {"spec": {"selector": {"c": "d"}}}

    refused = server.apply("Service", "s", more, by="b")
    assert [field for _, _, field in refused.causes] == [".spec.selector"]


@pytest.mark.parametrize(
    ("ours", "theirs", "path"),
    [
        (pods(container(args=["a"])), pods(container(args=["b"])), f".{C}.args"),
        (
            pods(container(), nodeSelector={"a": "1"}),
            pods(container(), nodeSelector={"b": "1"}),
            ".spec.template.spec.nodeSelector",
        ),
        (
            pods(container(), tolerations=[{"key": "a", "operator": "Exists"}]),
            pods(container(), tolerations=[{"key": "b", "operator": "Exists"}]),
            ".spec.template.spec.tolerations",
        ),
    ],
    ids=["args", "nodeSelector", "tolerations"],
)
def test_68_atomic_fields(server, ours, theirs, path):
    server.apply("Deployment", "d", ours)
    refused = server.apply("Deployment", "d", theirs, by="b")
    assert [field for _, _, field in refused.causes] == [path]

    shared = server.apply("Deployment", "d", ours, by="b")
    assert shared.status == 200
    left = server.apply("Deployment", "d", pods(container()))
    assert path[1:] in left.owners


def test_68_granular_maps(server):
    limits = {"resources": {"limits": {"cpu": "1"}}}
    server.apply("Deployment", "d", pods(container(**limits)))
    more = {"name": "c", "resources": {"limits": {"memory": "1Gi"}}}
    both = {"spec": {"template": {"spec": {"containers": [more]}}}}
    merged = server.apply("Deployment", "d", both, by="b")

    assert merged["spec.template.spec.containers.0.resources.limits"] == {
        "cpu": "1",
        "memory": "1Gi",
    }
    assert "spec.selector" in merged.owners


def test_68_node_affinity_terms_are_one_field(server):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    soft = {"weight": 100, "preference": term}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}}
    made = server.apply("Deployment", "d", pods(container(), affinity=affinity))

    path = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    assert f"spec.template.spec.{path} " in made.owners


def test_69_finalizers_and_owners_are_unions(server):
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
    ours = {"metadata": {"finalizers": ["a.io/x", "a.io/y"], "ownerReferences": [owner]}}
    theirs = {"metadata": {"finalizers": ["a.io/y", "a.io/z"]}}
    server.apply("ConfigMap", "c", ours)
    merged = server.apply("ConfigMap", "c", theirs, by="b")
    assert merged["metadata.finalizers"] == ["a.io/x", "a.io/y", "a.io/z"]
    assert 'metadata.ownerReferences[uid="u-1"]}' in merged.owners
    assert 'metadata.finalizers[="a.io/y"]' in merged.owners

    left = server.apply("ConfigMap", "c", {})
    assert left["metadata.finalizers"] == ["a.io/y", "a.io/z"]


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
def test_70_an_unknown_field_is_a_500_whatever_the_validation(server, validation):
    refused = server.apply("Deployment", "d", pods(container(imge="y")), fieldValidation=validation)

    assert (refused.status, refused.body.get("reason")) == (500, None)
    assert refused.message == (
        f"failed to create typed patch object ({server.ns}/d; apps/v1, Kind=Deployment):"
        f" .{C}.imge: field not declared in schema"
    )


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (
            "Deployment",
            pods(container(ports=[{"containerPort": 80}, {"containerPort": 80}])),
            f'.{C}.ports: duplicate entries for key [containerPort=80,protocol="TCP"]',
        ),
        (
            "Deployment",
            pods(container(env=[{"name": "A"}, {"name": "A"}])),
            f'.{C}.env: duplicate entries for key [name="A"]',
        ),
        (
            "ConfigMap",
            {"metadata": {"finalizers": ["a.io/y", "a.io/y"]}},
            '.metadata.finalizers: duplicate entries for key [="a.io/y"]',
        ),
        (
            "Deployment",
            {"spec": {"replicas": "3"}},
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            "ConfigMap",
            {"data": {"a": 1}},
            ".data.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        ("Deployment", {"spec": "x"}, ".spec: expected map, got &{x}"),
        ("Deployment", pods(container(tty="x")), f".{C}.tty: expected boolean, got &{{x}}"),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"containers": "x"}}}},
            ".spec.template.spec.containers: expected list, got &{x}",
        ),
    ],
    ids=["ports", "env", "finalizers", "number", "text", "map", "boolean", "list"],
)
def test_70_what_does_not_fit_the_types_is_a_500(server, kind, fields, message):
    refused = server.apply(kind, "x", fields)

    assert refused.status == 500
    assert refused.message.startswith("failed to create typed patch object (")
    assert refused.message.endswith(message)


@pytest.mark.parametrize(
    "fields",
    [
        pods(container(resources={"limits": {"cpu": "lots"}})),
        {**pods(container()), "spec": {**pods(container())["spec"], "replicas": 2.5}},
    ],
    ids=["quantity", "2.5 replicas"],
)
def test_70_a_bad_value_of_a_good_type_is_a_500_too(server, fields):
    refused = server.apply("Deployment", "d", fields)

    assert refused.status == 500
    assert refused.message.startswith(
        f"failed to convert new object ({server.ns}/d; apps/v1, Kind=Deployment) to proper version:"
    )


def test_71_unknown_fields_of_a_post(server):
    body = {"metadata": {"name": "d"}, **pods(container(imge="y"))}
    strict = server.post("Deployment", body, fieldValidation="Strict")
    assert (strict.status, strict.message) == (
        400,
        (
            'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error:'
            ' unknown field "spec.template.spec.containers[0].imge"'
        ),
    )

    made = server.post("Deployment", body)
    assert made.status == 201
    assert "imge" not in made["spec.template.spec.containers.0"]


def test_71_a_repeated_key(server):
    body = (
        f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c","namespace":"{server.ns}"}},'
        '"data":{"a":"1","a":"2"}}'
    ).encode()
    path = server.path("ConfigMap", "c")

    def applied(**query):
        content = "application/apply-patch+yaml"
        return server.send(
            "PATCH", path, body, content_type=content, fieldManager="stoker", **query
        )

    assert applied().data == {"a": "2"}
    strict = applied(fieldValidation="Strict")
    assert strict.status == 400
    assert strict.message.startswith("error strict decoding patch: ")


def test_72_null_over_nothing_and_over_our_own(server):
    made = server.apply("Deployment", "d", deployment(replicas=None))
    assert made["spec.replicas"] == 1
    assert "spec.replicas" in made.owners

    server.apply("Deployment", "e", deployment(replicas=3))
    assert server.apply("Deployment", "e", deployment(replicas=None))["spec.replicas"] == 1


def test_72_null_over_anothers_value_is_a_conflict(server):
    server.apply("Deployment", "d", deployment(replicas=3), by="b")

    refused = server.apply("Deployment", "d", deployment(replicas=None))
    assert [field for _, _, field in refused.causes] == [".spec.replicas"]


def test_72_null_maps_and_texts(server):
    nothing = server.apply("ConfigMap", "c", {"data": None})
    assert (nothing.data, nothing.owners) == (None, "stoker:A{data}")

    empty = {"metadata": {"labels": {"x": None}}, "data": {"a": None}}
    texts = server.apply("ConfigMap", "d", empty)
    assert (texts.data, texts["metadata.labels"]) == ({"a": ""}, {"x": ""})
    assert texts.owners == "stoker:A{data.a metadata.labels.x}"


@pytest.mark.parametrize(
    ("kind", "fields", "owned"),
    [
        ("ConfigMap", {"metadata": {"labels": {}}}, "metadata.labels"),
        ("ConfigMap", {"data": {}}, "data"),
        ("Deployment", pods(container(args=[])), f"{C}.args"),
        ("Deployment", pods(container(), nodeSelector={}), "spec.template.spec.nodeSelector"),
        ("Deployment", pods(container(resources={})), f"{C}.resources"),
        (
            "Deployment",
            pods(container(), volumes=[{"name": "v", "emptyDir": {}}]),
            'spec.template.spec.volumes[name="v"].emptyDir',
        ),
    ],
    ids=["labels", "data", "args", "nodeSelector", "resources", "emptyDir"],
)
def test_73_empty_maps_and_atomic_lists_are_owned_as_themselves(server, kind, fields, owned):
    made = server.apply(kind, "x", fields)
    again = server.apply(kind, "x", fields)

    paths = made.owners.removeprefix("stoker:A{").removesuffix("}").split(" ")
    assert owned in paths
    assert again.rv == made.rv


@pytest.mark.parametrize(
    "fields",
    [
        pods(container(env=[])),
        pods(container(ports=[])),
        pods(container(), volumes=[]),
    ],
    ids=["env", "ports", "volumes"],
)
def test_73_empty_keyed_lists_are_not_owned(server, fields):
    made = server.apply("Deployment", "x", fields)
    plain = server.apply("Deployment", "y", pods(container()))

    assert made.owners == plain.owners


def test_73_own_keys_go_when_an_empty_map_follows(server):
    server.apply("ConfigMap", "c", data(a="1"))
    server.patch("ConfigMap", "c", data(b="1"))

    emptied = server.apply("ConfigMap", "c", {"data": {}})
    assert (emptied.data, emptied.owners) == ({"b": "1"}, "stoker:A{data} ed:U{data.b}")


def test_74_defaults_belong_to_nobody(server):
    made = server.apply("Deployment", "d", deployment())
    assert made["spec.progressDeadlineSeconds"] == 600
    assert made["spec.strategy.rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert "progressDeadline" not in made.owners

    stated = server.apply("Deployment", "e", deployment(progressDeadlineSeconds=600))
    assert "spec.progressDeadlineSeconds" in stated.owners


def test_74_a_default_may_stand_in_the_way(server):
    server.apply("Deployment", "d", deployment())
    refused = server.apply("Deployment", "d", deployment(strategy={"type": "Recreate"}))
    assert refused.status == 422
    assert (
        "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is"
        " 'Recreate'"
    ) in refused.message

    ours = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    server.apply("Deployment", "e", deployment(strategy=ours))
    assert server.apply("Deployment", "e", deployment(strategy={"type": "Recreate"})).status == 200


def test_75_quantities_are_stored_canonically(server):
    limits = {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 1}
    fields = pods(container(resources={"limits": limits}))
    made = server.apply("Deployment", "d", fields)
    stored = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert made["spec.template.spec.containers.0.resources.limits"] == stored
    assert server.apply("Deployment", "d", fields).rv == made.rv

    same = pods(container(resources={"limits": stored}))
    assert server.apply("Deployment", "d", same, by="b").status == 200


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("0.1", "100m"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("0", "0"),
        (2, "2"),
    ],
)
def test_75_more_quantities(server, sent, stored):
    made = server.apply("Deployment", "d", pods(container(resources={"limits": {"cpu": sent}})))

    assert made["spec.template.spec.containers.0.resources.limits.cpu"] == stored


def test_75_string_data_of_a_secret(server):
    made = server.apply("Secret", "s", {"stringData": {"a": "b"}})

    assert (made.data, made["stringData"]) == ({"a": "Yg=="}, None)
    assert made.owners == "stoker:A{stringData.a}"


def test_zero_values_that_go_leaves_out_are_owned_but_not_stored(server):
    made = server.apply("Deployment", "d", pods(container(tty=False), hostNetwork=False))

    assert "hostNetwork" not in made["spec.template.spec"]
    assert "tty" not in made["spec.template.spec.containers.0"]
    assert "spec.template.spec.hostNetwork" in made.owners
