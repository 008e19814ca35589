"""Group I of research/ssa-facts.md: limits and immutable fields; and row 84's refusals."""

from __future__ import annotations

import pytest

from contract.api import data, deployment, template

LONG = "a" * 254


def gizmo_or(kind):
    return {"Gizmo": {"spec": {}}, "Deployment": deployment()}.get(kind, {})


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Gizmo"])
def test_76_a_name_has_at_most_253_characters(server, kind):
    refused = server.apply(kind, LONG, gizmo_or(kind))
    assert refused.status == 422
    assert (
        f'metadata.name: Invalid value: "{LONG}": must be no more than 253 characters'
        in refused.message
    )

    assert server.apply(kind, LONG[1:], gizmo_or(kind)).status == 201


@pytest.mark.parametrize("kind", ["ConfigMap", "Gizmo"])
def test_76_names_are_lower_case(server, kind):
    refused = server.apply(kind, "Bad_Name", gizmo_or(kind))

    assert refused.status == 422
    assert (
        'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of'
        in refused.message
    )


@pytest.mark.parametrize("kind", ["ConfigMap", "Gizmo"])
@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (
            {"labels": {"x": "a" * 64}},
            f'metadata.labels: Invalid value: "{"a" * 64}": must be no more than 63 bytes',
        ),
        (
            {"labels": {"-x": "a"}},
            'metadata.labels: Invalid value: "-x": name part must consist of alphanumeric',
        ),
        (
            {"labels": {"x/y/z": "a"}},
            'metadata.labels: Invalid value: "x/y/z": a valid label key must consist of',
        ),
        (
            {"labels": {"x": "_a"}},
            'metadata.labels: Invalid value: "_a": a valid label must be an empty string or',
        ),
        (
            {"annotations": {"x": "a" * 262_145}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]},
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
        ),
    ],
    ids=["label value", "label key", "slashes", "label text", "annotations", "owner"],
)
def test_76_metadata_that_is_refused(server, kind, metadata, message):
    refused = server.apply(kind, "x", {"metadata": metadata, **gizmo_or(kind)})

    assert refused.status == 422
    assert message in refused.message


def test_76_a_finalizer_is_qualified_except_on_custom_resources(server):
    held = {"metadata": {"finalizers": ["x"]}}
    refused = server.apply("ConfigMap", "x", held)
    assert refused.status == 422
    assert refused.message == (
        'ConfigMap "x" is invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a'
        " standard finalizer name nor is it fully qualified"
    )

    assert server.apply("Gizmo", "x", {**held, "spec": {}}).status == 201


@pytest.mark.parametrize(
    ("kind", "name", "fields", "message"),
    [
        (
            "Service",
            "s" * 64,
            {"spec": {"ports": [{"port": 80}]}},
            f'metadata.name: Invalid value: "{"s" * 64}": must be no more than 63 characters',
        ),
        (
            "ConfigMap",
            "c",
            data(a="x" * 1_048_577),
            "[]: Too long: may not be more than 1048576 bytes",
        ),
        (
            "ConfigMap",
            "c",
            {"data": {"a/b": "x"}},
            'data[a/b]: Invalid value: "a/b": a valid config key must consist of',
        ),
        (
            "Deployment",
            "d",
            deployment(replicas=-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "PodDisruptionBudget",
            "b",
            {"spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}},
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (
            "PodDisruptionBudget",
            "b",
            {"spec": {"maxUnavailable": "101%", "selector": {}}},
            'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            "HorizontalPodAutoscaler",
            "h",
            {
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                    "minReplicas": 5,
                    "maxReplicas": 3,
                }
            },
            "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
        ),
        ("Service", "s", {"spec": {}}, "spec.ports: Required value"),
        (
            "Deployment",
            "d",
            deployment(template=template(nodeSelector=None)) | {"spec": {"template": template()}},
            "spec.selector: Required value",
        ),
        (
            "Deployment",
            "d",
            deployment(selector={"matchLabels": {"app": "z"}}),
            "`selector` does not match template `labels`",
        ),
        (
            "Deployment",
            "d",
            deployment(template={"metadata": {"labels": {"app": "a"}}}),
            "spec.template.spec.containers: Required value",
        ),
        (
            "Deployment",
            "d",
            deployment(
                template=template(
                    {"name": "c", "image": "x", "resources": {"requests": {"nvidia.com/gpu": 1}}}
                )
            ),
            (
                "spec.template.spec.containers[0].resources.limits: Required value: Limit must be set"
                " for non overcommitable resources"
            ),
        ),
        (
            "Deployment",
            "d",
            deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            (
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when"
                " `maxSurge` is 0"
            ),
        ),
    ],
    ids=[
        "Service name",
        "ConfigMap size",
        "ConfigMap key",
        "replicas",
        "two bounds",
        "percentage",
        "autoscaler",
        "no ports",
        "no selector",
        "selector",
        "no containers",
        "GPU request",
        "no progress",
    ],
)
def test_76_what_kinds_refuse(server, kind, name, fields, message):
    refused = server.apply(kind, name, fields)

    assert refused.status == 422
    assert message in refused.message


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        ),
        (
            {"key": "metadata.uid", "operator": "In", "values": ["a"]},
            "not a valid field selector key",
        ),
    ],
    ids=["two values", "another key"],
)
def test_76_a_node_is_named_alone_and_by_name(server, field, message):
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    refused = server.apply("Deployment", "d", deployment(template=template(affinity=affinity)))

    assert refused.status == 422
    assert message in refused.message


def test_76_a_namespace_has_no_dots(server):
    refused = server.apply("Namespace", "a.b", {})

    assert refused.status == 422
    assert 'metadata.name: Invalid value: "a.b": must not contain dots' in refused.message


@pytest.mark.parametrize("force", [None, True], ids=["plain", "forced"])
def test_77_a_deployments_selector_is_immutable(server, force):
    server.apply("Deployment", "d", deployment())
    other = {"matchLabels": {"app": "other"}}
    labelled = {**template(), "metadata": {"labels": {"app": "other"}}}

    refused = server.apply(
        "Deployment", "d", deployment(selector=other, template=labelled), force=force
    )
    assert (refused.status, refused.message) == (
        422,
        (
            'Deployment.apps "d" is invalid: spec.selector: Invalid value:'
            ' {"matchLabels":{"app":"other"}}: field is immutable'
        ),
    )
    both = server.apply("Deployment", "d", deployment(selector=other), force=force)
    assert "`selector` does not match template `labels`" in both.message
    assert "field is immutable" in both.message


def test_77_dropping_all_but_replicas_is_refused(server):
    server.apply("Deployment", "d", deployment())
    refused = server.apply("Deployment", "d", {"spec": {"replicas": 2}})

    assert refused.status == 422
    assert "spec.selector: Required value" in refused.message


@pytest.mark.parametrize(
    ("kind", "before", "after", "message"),
    [
        (
            "StatefulSet",
            deployment(serviceName="s"),
            deployment(serviceName="t"),
            'spec.serviceName: Invalid value: "t": field is immutable',
        ),
        (
            "Job",
            {"spec": {"template": template(restartPolicy="Never")}},
            {"spec": {"template": template({"name": "c", "image": "x:2"}, restartPolicy="Never")}},
            "field is immutable",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 80}]}},
            {"spec": {"ports": [{"port": 80}], "clusterIP": "10.0.99.99"}},
            "spec.clusterIPs[0]: Invalid value:",
        ),
        (
            "PersistentVolumeClaim",
            {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            },
            {
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            },
            "spec: Forbidden: spec is immutable after creation except",
        ),
        (
            "ConfigMap",
            {"immutable": True, **data(a="1")},
            {"immutable": True, **data(a="2")},
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "Secret",
            {"type": "a/b", "stringData": {"a": "1"}},
            {"type": "c/d", "stringData": {"a": "1"}},
            'type: Invalid value: "c/d": field is immutable',
        ),
    ],
    ids=["StatefulSet", "Job", "Service", "PVC", "ConfigMap", "Secret"],
)
@pytest.mark.parametrize("force", [None, True], ids=["plain", "forced"])
def test_77_immutable_fields(server, kind, before, after, message, force):
    assert server.apply(kind, "x", before).status == 201
    refused = server.apply(kind, "x", after, force=force)

    assert refused.status == 422
    assert message in refused.message


def test_77_a_budgets_selector_may_change(server):
    def budget(value):
        return {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": value}}}}

    server.apply("PodDisruptionBudget", "b", budget("1"))
    changed = server.apply("PodDisruptionBudget", "b", budget("2"))

    assert (changed.status, changed["metadata.generation"]) == (200, 2)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    ],
)
def test_84_addresses_that_endpoint_slices_refuse(server, address, message):
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": []}
    refused = server.apply("EndpointSlice", "e", slice_)
    assert (refused.status, refused.message) == (
        422,
        (
            'EndpointSlice.discovery.k8s.io "e" is invalid: endpoints[0].addresses[0]: Invalid value:'
            f' "{address}": {message}'
        ),
    )

    good = {**slice_, "endpoints": [{"addresses": ["192.0.2.7"]}]}
    assert server.apply("EndpointSlice", "e", good).status == 201
