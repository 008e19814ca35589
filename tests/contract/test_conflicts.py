"""Groups C and D of research/ssa-facts.md: conflicts, force, uid and resourceVersion."""

from __future__ import annotations

import pytest

from contract.api import BAD_UID, data, deployment, template

CHANGED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def test_23_a_conflict_names_owner_and_field(server):
    server.apply("ConfigMap", "c", data(a="1"))
    refused = server.apply("ConfigMap", "c", data(a="2"), by="b")

    assert (refused.status, refused.reason) == (409, "Conflict")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "stoker": .data.a'
    assert set(refused.body["details"]) == {"causes"}
    assert refused.causes == [("FieldManagerConflict", 'conflict with "stoker"', ".data.a")]


def test_24_many_conflicts_are_grouped_by_owner(server):
    server.apply("ConfigMap", "c", data(a="1", b="1"))
    server.apply("ConfigMap", "c", data(d="1"), by="x")
    server.patch("ConfigMap", "c", data(c="1"))
    refused = server.apply("ConfigMap", "c", data(a="2", b="2", c="2", d="2"), by="y")

    assert refused.message == (
        'Apply failed with 4 conflicts: conflicts with "ed" using v1:\n- .data.c\n'
        'conflicts with "stoker":\n- .data.a\n- .data.b\nconflicts with "x":\n- .data.d'
    )
    assert len(refused.causes) == 4


def test_25_a_shared_field_conflicts_once_an_owner(server):
    for manager in ("stoker", "y"):
        server.apply("ConfigMap", "c", data(a="1"), by=manager)

    third = server.apply("ConfigMap", "c", data(a="2"), by="w")
    assert [message for _, message, _ in third.causes] == [
        'conflict with "stoker"',
        'conflict with "y"',
    ]
    own = server.apply("ConfigMap", "c", data(a="2"))
    assert own.causes == [("FieldManagerConflict", 'conflict with "y"', ".data.a")]


def test_26_paths_as_the_server_spells_them(server):
    """Dots in keys are not escaped: the paths of causes are ambiguous."""
    container = {
        "name": "c",
        "image": "x:1",
        "env": [{"name": "A.B", "value": "1"}],
        "ports": [{"containerPort": 80, "name": "p"}],
    }
    notes = {"metadata": {"annotations": {"a.b/c.d": "1"}}}
    server.apply("Deployment", "d", {**notes, **deployment(template=template(container))})
    other = {
        "name": "c",
        "image": "x:1",
        "env": [{"name": "A.B", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "q"}],
    }
    notes = {"metadata": {"annotations": {"a.b/c.d": "2"}}}
    refused = server.apply(
        "Deployment", "d", {**notes, **deployment(template=template(other))}, by="b"
    )

    assert [field for _, _, field in refused.causes] == [
        ".metadata.annotations.a.b/c.d",
        '.spec.template.spec.containers[name="c"].env[name="A.B"].value',
        '.spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].name',
    ]


def test_27_two_empty_maps_conflict(server):
    """The stored value is null, so an equal empty map isn't equal."""
    server.apply("ConfigMap", "c", {"data": {}})
    refused = server.apply("ConfigMap", "c", {"data": {}}, by="b")

    assert (refused.status, refused.causes[0][2]) == (409, ".data")
    again = server.apply("ConfigMap", "c", {"data": {}})
    assert (again.status, again.owners) == (200, "stoker:A{data}")


def test_28_force_takes_the_fields(server):
    server.apply("ConfigMap", "c", data(a="1", b="1", z="1"))
    server.patch("ConfigMap", "c", data(c="1"))

    forced = server.apply("ConfigMap", "c", data(a="9", c="9"), by="y", force=True)
    assert forced.owners == "stoker:A{data.b data.z} y:A{data.a data.c}"
    refused = server.apply("ConfigMap", "c", data(a="1", b="1", z="1"))
    assert refused.causes == [("FieldManagerConflict", 'conflict with "y"', ".data.a")]


def test_29_force_false_is_no_force(server):
    server.apply("ConfigMap", "c", data(a="1"))

    assert server.apply("ConfigMap", "c", data(a="2"), by="b", force=False).status == 409


def test_29_force_is_only_for_applies(server):
    server.apply("ConfigMap", "c", data(a="1"))
    refused = server.patch("ConfigMap", "c", data(a="2"), force="true")

    assert refused.status == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in refused.message


def test_29_a_forced_dry_run_shows_the_new_owners(server):
    made = server.apply("ConfigMap", "c", data(a="1"))
    shown = server.apply("ConfigMap", "c", data(a="2"), by="b", force=True, dry=True)

    assert shown.owners == "b:A{data.a}"
    assert server.get("ConfigMap", "c").body == made.body


def test_30_force_with_preconditions(server):
    server.apply("ConfigMap", "c", data(a="1"))
    live = server.patch("ConfigMap", "c", data(a="2"))
    good = {"uid": live.uid, "resourceVersion": live.rv}

    def forced(**meta):
        body = {"metadata": meta, **data(a="1")}
        return server.apply("ConfigMap", "c", body, force=True, dry=True)

    assert forced(**good).status == 200
    assert forced(**{**good, "resourceVersion": "1"}).status == 409
    assert forced(**{**good, "uid": BAD_UID}).status == 422


def test_31_first_types_then_conflicts_then_preconditions(server):
    server.apply("Deployment", "d", deployment(replicas=2))
    taken = {"spec": {"replicas": 3}}

    conflict = server.apply(
        "Deployment", "d", {"metadata": {"resourceVersion": "1"}, **taken}, by="b"
    )
    assert conflict.causes
    wrong = server.apply("Deployment", "d", {"metadata": {"uid": BAD_UID}, **taken}, by="b")
    assert wrong.causes[0][0] == "FieldManagerConflict"
    unknown = {"metadata": {"resourceVersion": "1"}, "spec": {"nope": 1}}
    assert server.apply("Deployment", "d", unknown, by="b").status == 500


@pytest.mark.parametrize("force", [None, True], ids=["plain", "forced"])
@pytest.mark.parametrize("dry", [False, True], ids=["real", "dry"])
def test_32_apply_with_a_wrong_uid(server, force, dry):
    server.apply("ConfigMap", "c", data(a="1"))
    body = {"metadata": {"uid": BAD_UID}, **data(a="1")}
    refused = server.apply("ConfigMap", "c", body, force=force, dry=dry)

    assert (refused.status, refused.reason) == (422, "Invalid")
    assert refused.message == (
        f'ConfigMap "c" is invalid: metadata.uid: Invalid value: "{BAD_UID}": field is immutable'
    )


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Gizmo"])
@pytest.mark.parametrize("dry", [False, True], ids=["real", "dry"])
def test_32_a_uid_never_creates(server, kind, dry):
    fields = {"ConfigMap": {}, "Deployment": deployment(), "Gizmo": {"spec": {}}}[kind]
    refused = server.apply(kind, "u9", {"metadata": {"uid": BAD_UID}, **fields}, dry=dry)

    assert (refused.status, refused.reason) == (409, "Conflict")
    assert not refused.causes
    assert refused.message.endswith(
        f'"u9": uid mismatch: the provided object specified uid {BAD_UID}, and no existing object'
        " was found"
    )


def test_32_a_custom_resource_says_it_twice(server):
    server.apply("Gizmo", "g", {"spec": {"replicas": 1}})
    body = {"metadata": {"uid": BAD_UID}, "spec": {"replicas": 1}}
    refused = server.apply("Gizmo", "g", body)

    assert refused.status == 422
    assert [field for _, _, field in refused.causes] == ["metadata.uid", "metadata.uid"]


def test_33_apply_with_a_resource_version(server):
    first = server.apply("ConfigMap", "c", data(a="1"))

    def applied(version, **values):
        body = {"metadata": {"resourceVersion": version}, **data(**(values or {"a": "1"}))}
        return server.apply("ConfigMap", "c", body)

    assert applied(first.rv).status == 200
    stale = applied("1")
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert stale.message == f'Operation cannot be fulfilled on configmaps "c": {CHANGED}'
    assert not stale.causes
    assert applied("0").status == 200
    assert applied("abc").status == 500


def test_33_a_resource_version_does_not_keep_from_creating(server):
    """Only a uid does."""
    made = server.apply("ConfigMap", "c", {"metadata": {"resourceVersion": "1"}, **data(a="1")})

    assert made.status == 201


def test_34_merge_patches_with_preconditions(server):
    live = server.apply("ConfigMap", "c", data(a="1"))

    wrong = server.patch("ConfigMap", "c", {"metadata": {"uid": BAD_UID}, **data(a="2")})
    assert wrong.status == 422
    stale = server.patch("ConfigMap", "c", {"metadata": {"resourceVersion": "1"}})
    assert (stale.status, CHANGED in stale.message) == (409, True)
    assert server.patch("ConfigMap", "nope", data(a="2")).status == 404
    assert server.get("ConfigMap", "c").body == live.body


def test_35_puts_with_preconditions(server):
    live = server.apply("ConfigMap", "c", data(a="1"))
    plain = server.whole("ConfigMap", data(a="1"), "c")

    def put(**meta):
        body = {**plain, "metadata": {**plain["metadata"], **meta}}
        return server.put("ConfigMap", "c", body)

    assert put(resourceVersion="1").status == 409
    assert put().rv == live.rv
    wrong = put(uid=BAD_UID)
    assert wrong.status == 409
    assert "StorageError: invalid object, Code: 4" in wrong.message
    assert (
        f"Precondition failed: UID in precondition: {BAD_UID}, UID in object meta: {live.uid}"
        in (wrong.message)
    )
    absent = server.whole("ConfigMap", {}, "nope")
    assert server.put("ConfigMap", "nope", absent).status == 404


def test_35_a_put_creates_a_lease(server):
    body = server.whole("Lease", {"spec": {"holderIdentity": "a"}}, "l")

    assert server.put("Lease", "l", body).status == 201


def test_35_a_put_of_a_custom_resource_needs_a_version(server):
    server.apply("Gizmo", "g", {"spec": {"replicas": 1}})
    refused = server.put("Gizmo", "g", server.whole("Gizmo", {"spec": {"replicas": 2}}, "g"))

    assert refused.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in (
        refused.message
    )


def test_36_deletes_with_preconditions(server):
    live = server.apply("ConfigMap", "c", data(a="1"))

    wrong = server.delete("ConfigMap", "c", {"preconditions": {"uid": BAD_UID}})
    assert wrong.message == (
        f'Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition ({BAD_UID})'
        f" does not match the UID in record ({live.uid}). The object might have been deleted and"
        " then recreated"
    )
    stale = server.delete("ConfigMap", "c", {"preconditions": {"resourceVersion": "1"}})
    assert stale.message == (
        'Operation cannot be fulfilled on ConfigMap "c": the ResourceVersion in the precondition'
        f" (1) does not match the ResourceVersion in record ({live.rv}). The object might have"
        " been modified"
    )
    right = {"preconditions": {"uid": live.uid, "resourceVersion": live.rv}}
    assert server.delete("ConfigMap", "c", {**right, "dryRun": ["All"]}).status == 200
    assert server.get("ConfigMap", "c").status == 200
    assert server.delete("ConfigMap", "c", right).status == 200
    assert server.delete("ConfigMap", "c", right).status == 404


def test_36_beside_a_body_the_query_is_ignored(server):
    """A dry run asked for in the query then deletes for real."""
    live = server.apply("ConfigMap", "c", data(a="1"))
    assert server.delete("ConfigMap", "c", dryRun="All").status == 200
    assert server.get("ConfigMap", "c").status == 200

    body = {"preconditions": {"uid": live.uid}}
    assert server.delete("ConfigMap", "c", body, dryRun="All").status == 200
    assert server.get("ConfigMap", "c").status == 404


def test_36_a_custom_resource_is_named_by_its_kind_and_group(server):
    server.apply("Gizmo", "g", {"spec": {}})
    refused = server.delete("Gizmo", "g", {"preconditions": {"uid": BAD_UID}})

    assert refused.message.startswith(
        'Operation cannot be fulfilled on Gizmo.stoker.dev "g": the UID in the precondition'
    )


def test_37_a_dying_object_still_takes_applies(server):
    held = {"metadata": {"finalizers": ["a.io/x"]}}
    server.apply("ConfigMap", "c", {**held, **data(a="1")})
    server.delete("ConfigMap", "c")

    applied = server.apply("ConfigMap", "c", {**held, **data(a="2")})
    assert (applied.status, applied.data) == (200, {"a": "2"})
    more = {"metadata": {"finalizers": ["a.io/x", "b.io/new"]}, **data(a="2")}
    refused = server.apply("ConfigMap", "c", more)
    assert refused.status == 422
    assert (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being"
        ' deleted, found new finalizers []string{"b.io/new"}'
    ) in refused.message
    assert server.apply("ConfigMap", "c", data(a="2")).status == 200
    assert server.get("ConfigMap", "c").status == 404


def test_37_a_foreground_deletion_lingers_and_takes_applies(server):
    server.apply("Deployment", "d", deployment(replicas=1))
    dying = server.delete("Deployment", "d", {"propagationPolicy": "Foreground"})
    assert dying["metadata.finalizers"] == ["foregroundDeletion"]
    assert dying["metadata.generation"] == 2

    assert server.apply("Deployment", "d", deployment(replicas=2)).status == 200
