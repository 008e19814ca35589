"""Group G of research/ssa-facts.md: objects that other tools made."""

from __future__ import annotations

import json

from contract.api import data, deployment, template

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE = "kubectl-client-side-apply"


def client_side(server, image="x:1"):
    """What `kubectl apply -f` sends for a Deployment with one env variable."""
    container = {"name": "c", "image": image, "env": [{"name": "A", "value": "1"}]}
    fields = deployment(template=template(container))
    plain = server.whole("Deployment", fields, "d")
    notes = {LAST_APPLIED: json.dumps(plain)}
    body = {**fields, "metadata": {"name": "d", "annotations": notes}}
    return server.post("Deployment", body, by=CLIENT_SIDE)


def ours(image="x:1"):
    return deployment(template=template({"name": "c", "image": image}))


def test_59_an_object_of_client_side_apply(server):
    made = client_side(server)
    assert f"{CLIENT_SIDE}:U{{" in made.owners
    assert "spec.progressDeadlineSeconds" in made.owners

    shared = server.apply("Deployment", "d", ours())
    assert shared.status == 200
    assert shared["spec.template.spec.containers.0.env"] == [{"name": "A", "value": "1"}]
    refused = server.apply("Deployment", "d", ours("x:2"))
    assert refused.causes == [
        (
            "FieldManagerConflict",
            f'conflict with "{CLIENT_SIDE}" using apps/v1',
            '.spec.template.spec.containers[name="c"].image',
        )
    ]
    forced = server.apply("Deployment", "d", ours("x:2"), force=True)
    assert forced["spec.template.spec.containers.0.image"] == "x:2"
    assert forced["spec.template.spec.containers.0.env"] is not None


def test_61_the_name_kubectl_takes_over_without_a_conflict(server):
    client_side(server)
    taken = server.apply("Deployment", "d", ours("x:2"), by="kubectl")

    assert taken.status == 200
    assert taken["spec.template.spec.containers.0.image"] == "x:2"
    written = json.loads(taken.body["metadata"]["annotations"][LAST_APPLIED])
    assert written["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"


def test_61_the_client_side_name_by_apply_stands_beside_its_update_entry(server):
    client_side(server)
    applied = server.apply("Deployment", "d", ours(), by=CLIENT_SIDE)

    assert applied.status == 200
    assert applied.owners.startswith(f"{CLIENT_SIDE}:A{{")
    assert f"{CLIENT_SIDE}:U{{" in applied.owners


def test_62_entries_are_migrated_by_json_patch(server):
    made = server.post(
        "ConfigMap", {"metadata": {"name": "c"}, **data(a="1", b="1")}, by=CLIENT_SIDE
    )
    entry = made.body["metadata"]["managedFields"][0]
    entry = {**entry, "manager": "stoker", "operation": "Apply"}

    def migrated(version):
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/metadata/managedFields", "value": [entry]},
        ]
        return server.patch("ConfigMap", "c", patch, how="json")

    stale = migrated("1")
    assert (stale.status, stale.message) == (
        422,
        "the server rejected our request due to an error in our request",
    )
    assert migrated(made.rv).owners == "stoker:A{data. data.a data.b}"
    assert server.apply("ConfigMap", "c", data(b="1")).data == {"b": "1"}


def test_63_a_restart_by_kubectl_survives_our_next_apply(server):
    server.apply("Deployment", "d", deployment(template=template()))
    note = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    server.patch(
        "Deployment", "d", {"spec": {"template": note}}, by="kubectl-rollout", how="strategic"
    )

    applied = server.apply("Deployment", "d", deployment(template=template()))
    assert applied["spec.template.metadata.annotations"] == {
        "kubectl.kubernetes.io/restartedAt": "now"
    }
