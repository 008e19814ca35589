"""Group E of research/ssa-facts.md: the scale subresource and who owns a count."""

from __future__ import annotations

import pytest

from contract.api import BAD_UID, deployment, template

CHANGED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
BY_VPA = 'conflict with "vpa" with subresource "scale" using apps/v1'


@pytest.fixture
def scaled(server):
    """A Deployment `d` applied by stoker with 2 replicas."""
    server.apply("Deployment", "d", deployment(replicas=2))
    return server


def count_owners(answer):
    """Entries that hold spec.replicas, as `manager:operation/subresource`."""
    holders = []
    for entry in answer.body["metadata"].get("managedFields") or ():
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {}):
            below = f"/{entry['subresource']}" if entry.get("subresource") else ""
            holders.append(f"{entry['manager']}:{entry['operation']}{below}")
    return holders


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_38_a_scale_takes_the_count_from_every_owner(server, kind):
    extra = {"serviceName": "s"} if kind == "StatefulSet" else {}
    for manager in ("stoker", "b"):
        server.apply(kind, "d", deployment(replicas=2, **extra), by=manager)
    answer = server.scale(kind, "d", 5)

    assert (answer.status, answer["kind"], answer["apiVersion"]) == (200, "Scale", "autoscaling/v1")
    live = server.get(kind, "d")
    assert (answer.uid, answer.rv) == (live.uid, live.rv)
    assert answer["status.selector"] == "app=a"
    assert count_owners(live) == ["vpa:Update/scale"]
    entry = live.body["metadata"]["managedFields"][2]
    assert (entry["manager"], entry.get("time")) == ("vpa", None)
    assert live["metadata.generation"] == 2


def test_38_a_put_scales_as_well(scaled):
    scale = scaled.get("Deployment", "d", "scale")
    body = {**scale.body, "spec": {"replicas": 5}}

    assert scaled.put("Deployment", "d", body, by="vpa", sub="scale")["spec.replicas"] == 5
    assert count_owners(scaled.get("Deployment", "d")) == ["vpa:Update/scale"]


@pytest.mark.parametrize(
    ("agent", "manager"),
    [("python-urllib3/2.8", "python-urllib3"), ("Foo Bar/1/2", "Foo Bar"), ("plain", "plain")],
)
def test_38_without_a_field_manager_the_user_agent_owns(scaled, agent, manager):
    path = scaled.path("Deployment", "d", "scale")
    content = "application/merge-patch+json"
    scaled.send("PATCH", path, {"spec": {"replicas": 5}}, content_type=content, agent=agent)

    assert count_owners(scaled.get("Deployment", "d")) == [f"{manager}:Update/scale"]


def test_39_after_a_scale(scaled):
    scaled.scale("Deployment", "d", 5)

    refused = scaled.apply("Deployment", "d", deployment(replicas=2))
    assert refused.message == f"Apply failed with 1 conflict: {BY_VPA}: .spec.replicas"
    both = scaled.apply("Deployment", "d", deployment(replicas=5))
    assert count_owners(both) == ["stoker:Apply", "vpa:Update/scale"]
    dropped = scaled.apply("Deployment", "d", deployment())
    assert dropped["spec.replicas"] == 5
    forced = scaled.apply("Deployment", "d", deployment(replicas=2), force=True)
    assert (forced["spec.replicas"], count_owners(forced)) == (2, ["stoker:Apply"])


def test_40_a_scale_to_the_same_count_changes_nothing(scaled):
    before = scaled.get("Deployment", "d")
    answer = scaled.scale("Deployment", "d", 2)

    assert answer.rv == before.rv
    assert count_owners(scaled.get("Deployment", "d")) == ["stoker:Apply"]


def test_41_after_a_scale_to_zero_nobody_owns_the_count(scaled):
    """Why a count's owner is never read from managedFields alone."""
    scaled.scale("Deployment", "d", 0)
    assert count_owners(scaled.get("Deployment", "d")) == []
    scaled.scale("Deployment", "d", 3)
    assert count_owners(scaled.get("Deployment", "d")) == []

    applied = scaled.apply("Deployment", "d", deployment(replicas=2))
    assert (applied.status, applied["spec.replicas"]) == (200, 2)


def test_41_a_count_applied_as_zero_is_owned(server):
    server.apply("Deployment", "d", deployment(replicas=0))
    server.scale("Deployment", "d", 4, by="hpa")

    assert count_owners(server.get("Deployment", "d")) == ["hpa:Update/scale"]
    assert server.apply("Deployment", "d", deployment(replicas=0)).status == 409


def test_42_a_count_nobody_applied_stays_without_owner(server):
    server.apply("Deployment", "d", deployment())
    server.scale("Deployment", "d", 3)
    assert count_owners(server.get("Deployment", "d")) == []

    assert server.apply("Deployment", "d", deployment(replicas=2)).status == 200


def test_43_null_scales_to_zero(scaled):
    answer = scaled.scale("Deployment", "d", None)

    assert (answer.status, answer["spec.replicas"]) == (200, None)
    assert scaled.get("Deployment", "d")["spec.replicas"] == 0


def test_44_a_patch_of_the_main_path_to_zero_is_owned(scaled):
    scaled.patch("Deployment", "d", {"spec": {"replicas": 0}}, by="kubectl-patch")

    refused = scaled.apply("Deployment", "d", deployment(replicas=2))
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-patch" using apps/v1: .spec.replicas'
    )


def test_45_apply_on_scale_conflicts_with_its_own_main_entry(scaled):
    def applied(count, name="d", **options):
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": scaled.ns},
            "spec": {"replicas": count},
        }
        path = scaled.path("Deployment", name, "scale")
        content = "application/apply-patch+yaml"
        return scaled.send(
            "PATCH", path, body, content_type=content, fieldManager="stoker", **options
        )

    refused = applied(4)
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "stoker": .spec.replicas'
    )
    assert applied(4, force="true").status == 200
    assert count_owners(scaled.get("Deployment", "d")) == ["stoker:Apply/scale"]
    assert applied(0, force="true").status == 200
    live = scaled.get("Deployment", "d")
    assert (live["spec.replicas"], count_owners(live)) == (0, ["stoker:Apply/scale"])
    assert applied(4, name="nope", force="true").status == 404


def test_46_one_name_on_both_paths_is_two_owners(scaled):
    scaled.scale("Deployment", "d", 5, by="stoker")

    refused = scaled.apply("Deployment", "d", deployment(replicas=2))
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "stoker" with subresource "scale" using'
        " apps/v1: .spec.replicas"
    )
    both = scaled.apply("Deployment", "d", deployment(replicas=5))
    assert count_owners(both) == ["stoker:Apply", "stoker:Update/scale"]


def test_47_preconditions_of_a_scale(scaled):
    live = scaled.get("Deployment", "d")

    for meta in ({"uid": BAD_UID}, {"uid": BAD_UID, "resourceVersion": live.rv}):
        wrong = scaled.scale("Deployment", "d", 5, **meta)
        assert (wrong.status, wrong.message) == (
            409,
            (
                'Operation cannot be fulfilled on deployments/scale.apps "d": Precondition failed: UID'
                f" in precondition: {BAD_UID}, UID in object meta: {live.uid}"
            ),
        )
    stale = scaled.scale("Deployment", "d", 5, resourceVersion="1")
    assert (stale.status, CHANGED in stale.message) == (409, True)
    good = scaled.scale("Deployment", "d", 5, uid=live.uid, resourceVersion=live.rv)
    assert good.status == 200


def test_47_what_a_scale_refuses(scaled):
    below = scaled.scale("Deployment", "d", -1)
    assert (below.status, below.message) == (
        422,
        (
            'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than'
            " or equal to 0"
        ),
    )
    absent = scaled.scale("Deployment", "nope", 1)
    assert (absent.status, absent.message) == (404, 'deployments.apps "nope" not found')
    named = scaled.scale("Deployment", "d", 1, name="other")
    assert named.status == 400


def test_47_a_dry_run_of_a_scale_stores_nothing(scaled):
    before = scaled.get("Deployment", "d")
    body = {"spec": {"replicas": 9}}
    shown = scaled.patch("Deployment", "d", body, sub="scale", dryRun="All")

    assert (shown.status, shown["spec.replicas"]) == (200, 9)
    assert scaled.get("Deployment", "d").body == before.body


def test_kinds_without_a_scale_subresource_answer_404(server):
    body = {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template()}}
    server.apply("DaemonSet", "d", body)
    absent = server.get("DaemonSet", "d", "scale")

    assert (absent.status, absent.message) == (
        404,
        "the server could not find the requested resource",
    )
