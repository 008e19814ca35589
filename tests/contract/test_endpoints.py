"""Everything beside apply, scale and reads: POST, DELETE, binding, eviction, patches."""

from __future__ import annotations

import pytest

from contract.api import data, deployment, template


def test_a_posted_name_may_be_taken(server):
    server.apply("ConfigMap", "c", data(a="1"))
    refused = server.post("ConfigMap", {"metadata": {"name": "c"}})

    assert (refused.status, refused.reason) == (409, "AlreadyExists")
    assert refused.message == 'configmaps "c" already exists'


def test_a_posted_object_needs_a_name(server):
    refused = server.post("ConfigMap", data(a="1"))

    assert refused.message == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


def test_a_posted_value_of_the_wrong_type_is_400(server):
    refused = server.post("ConfigMap", {"metadata": {"name": "c"}, "data": {"a": 1}})

    assert (refused.status, refused.message) == (
        400,
        (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number'
            " into Go struct field ConfigMap.data of type string"
        ),
    )


@pytest.mark.parametrize(
    ("method", "named"), [("PUT", False), ("POST", True)], ids=["PUT all", "POST one"]
)
def test_methods_that_make_no_sense_are_405(server, method, named):
    path = server.path("ConfigMap", "c" if named else "")
    refused = server.send(method, path, server.whole("ConfigMap", {}, "c"))

    assert (refused.status, refused.reason) == (405, "MethodNotAllowed")


def test_a_deleted_object_answers_with_its_uid(server):
    made = server.apply("ConfigMap", "c", data(a="1"))
    gone = server.delete("ConfigMap", "c")

    assert gone["status"] == "Success"
    assert gone["details"] == {"name": "c", "kind": "configmaps", "uid": made.uid}


def test_a_bad_propagation_policy_is_422(server):
    server.apply("ConfigMap", "c", data(a="1"))
    refused = server.delete("ConfigMap", "c", {"propagationPolicy": "X"})

    assert refused.status == 422
    assert 'propagationPolicy: Unsupported value: "X"' in refused.message


def pod(server, name="p", **spec):
    body = {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": template(**spec)["spec"]}
    return server.post("Pod", body)


def test_a_pod_is_bound_once(server):
    pod(server)
    target = {"target": {"kind": "Node", "name": "n1"}}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, **target}
    path = server.path("Pod", "p", "binding")

    assert server.send("POST", path, body).status == 201
    live = server.get("Pod", "p")
    assert live["spec.nodeName"] == "n1"
    assert live["status.conditions.0.type"] == "PodScheduled"
    again = server.send("POST", path, body)
    assert (again.status, again.message) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )


def test_a_pod_on_a_node_dies_with_grace_and_an_unbound_one_at_once(server):
    pod(server, "unbound")
    pod(server, "bound", nodeName="n1", terminationGracePeriodSeconds=7)
    assert server.delete("Pod", "unbound")["kind"] == "Pod"
    assert server.get("Pod", "unbound").status == 404

    dying = server.delete("Pod", "bound")
    assert dying["metadata.deletionGracePeriodSeconds"] == 7
    assert dying["metadata.generation"] == 2
    assert server.get("Pod", "bound").status == 200
    assert server.delete("Pod", "bound", {"gracePeriodSeconds": 0}).status == 200
    assert server.get("Pod", "bound").status == 404


def test_a_budget_that_allows_nothing_holds_an_eviction(server):
    server.apply(
        "PodDisruptionBudget",
        "b",
        {"spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "a"}}}},
    )
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    server.patch("PodDisruptionBudget", "b", {"status": status}, sub="status")
    pod(server, nodeName="n1")
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    server.patch("Pod", "p", {"status": running}, sub="status")
    metadata = {"name": "p", "namespace": server.ns}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = server.path("Pod", "p", "eviction")

    refused = server.send("POST", path, body)
    assert refused.status == 429
    assert refused.message == ("Cannot evict pod as it would violate the pod's disruption budget.")
    assert refused.causes == [
        (
            "DisruptionBudget",
            "The disruption budget b needs 1 healthy pods and has 1 currently",
            "",
        )
    ]
    allowed = {**status, "disruptionsAllowed": 1}
    server.patch("PodDisruptionBudget", "b", {"status": allowed}, sub="status")
    assert server.send("POST", path, body).status == 201
    budget = server.get("PodDisruptionBudget", "b")
    assert budget["status.disruptionsAllowed"] == 0
    assert "p" in budget["status.disruptedPods"]
    assert server.get("Pod", "p")["metadata.deletionTimestamp"] is not None


def test_two_budgets_on_a_pod_refuse_every_eviction(server):
    for name in "bc":
        budget = {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}}
        server.apply("PodDisruptionBudget", name, budget)
    pod(server, nodeName="n1")
    server.patch("Pod", "p", {"status": {"phase": "Running"}}, sub="status")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}

    refused = server.send("POST", server.path("Pod", "p", "eviction"), body)
    assert refused.status == 500
    assert refused.message.startswith("This pod has more than one PodDisruptionBudget")


def test_a_namespace_is_finalized_when_its_finalizers_go(server):
    name = f"{server.ns}-gone"
    server.apply("Namespace", name, {})
    server.delete("Namespace", name)
    live = server.get("Namespace", name)
    body = {**live.body, "spec": {"finalizers": []}}

    assert server.put("Namespace", name, body, sub="finalize").status == 200
    assert server.get("Namespace", name).status == 404


def test_a_deployment_counts_annotations_as_a_new_generation(server):
    server.apply("Deployment", "d", deployment())
    labelled = server.patch("Deployment", "d", {"metadata": {"labels": {"x": "1"}}})
    noted = server.patch("Deployment", "d", {"metadata": {"annotations": {"x": "1"}}})

    assert labelled["metadata.generation"] == 1
    assert noted["metadata.generation"] == 2


def test_an_update_cannot_change_what_the_server_sets(server):
    made = server.apply("ConfigMap", "c", data(a="1"))
    meta = {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7, "selfLink": "x"}
    patched = server.patch("ConfigMap", "c", {"metadata": meta, **data(a="2")})

    assert patched["metadata.creationTimestamp"] == made["metadata.creationTimestamp"]


@pytest.mark.parametrize(
    ("patch", "how", "status", "message"),
    [
        ([{"op": "test", "path": "/data/a", "value": "9"}], "json", 422, "the server rejected"),
        ([{"op": "remove", "path": "/data/z"}], "json", 422, "the server rejected"),
        (b"{", "merge", 400, "invalid JSON patch"),
        (b"{", "json", 400, "invalid JSON patch"),
        (b"{", "strategic", 400, "invalid JSON patch"),
        ({"metadata": {"name": "other"}}, "merge", 400, "does not match the name on the URL"),
        ({"data": {"a": 1}}, "merge", 422, "cannot unmarshal number into Go struct field"),
    ],
    ids=["test", "remove", "merge", "json", "strategic", "name", "type"],
)
def test_patches_that_are_refused(server, patch, how, status, message):
    server.apply("ConfigMap", "c", data(a="1"))
    refused = server.patch("ConfigMap", "c", patch, how=how)

    assert refused.status == status
    assert message in refused.message


def test_strategic_patches_know_directives(server):
    containers = [{"name": n, "image": "x:1"} for n in ("c", "d")]
    server.apply("Deployment", "d", deployment(template=template(*containers)))
    gone = {"name": "c", "$patch": "delete"}
    patch = {"spec": {"template": {"spec": {"containers": [gone]}}}}
    patched = server.patch("Deployment", "d", patch, how="strategic")

    assert [c["name"] for c in patched["spec.template.spec.containers"]] == ["d"]


def test_custom_resources_take_no_strategic_patch(server):
    server.apply("Gizmo", "g", {"spec": {}})

    assert server.patch("Gizmo", "g", {"spec": {}}, how="strategic").status == 415
