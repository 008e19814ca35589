"""Synced without a request, changes, and what a dry run must settle."""

import copy
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings

from fakes_live import FakeLive, applied_by, updated_by
from stoker.diff import Audit, DiffMemo, diff
from stoker.diff.audit import DAY_MS
from stoker.errors import Unreachable
from stoker.kube.errors import api_error
from stoker.model.change import Action, Impact
from stoker.model.fleet import PlacementMode
from stoker.model.ports import ServerInfo
from stoker.model.refs import ref_from_manifest
from stoker.objects.inventory import Inventory
from stoker.objects.ssa import FieldConflicts
from unit.diff.diff_builders import (
    FLEET_ID,
    QWEN,
    US,
    A,
    config,
    deployment,
    desired,
    external,
    gizmo,
    marked,
    namespace,
    placement,
    rendered,
    secret,
    service,
    unit_of,
)
from unit.objects.manifest_strategies import deployments

EMPTY = Inventory(FLEET_ID, "prod")


@dataclass
class DryRuns:
    """Answers dry runs as scripted; everything else fails the test."""

    answer: object = None
    asked: list[Any] = field(default_factory=list)
    bodies: dict[Any, Any] = field(default_factory=dict)

    def server(self):
        return ServerInfo("v1.37.2", "c1")

    def apply(self, manifest, *, manager, force=False, dry_run=False, subresource=""):
        assert dry_run
        assert manager == US
        self.asked.append((copy.deepcopy(manifest), force))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def get(self, ref, *, subresource=""):
        return self.bodies[ref]


class Answering(DryRuns):
    """Answers dry runs as the API server would, of one live object."""

    def __init__(self, live: dict[str, Any]) -> None:
        super().__init__()
        self.live = live

    def apply(self, manifest, *, manager, force=False, dry_run=False, subresource=""):
        super().apply(manifest, manager=manager, force=force, dry_run=dry_run)
        return applied_by(manager, manifest, self.live, force=force)


def judged(unit, body, live=None, *, cluster=None, fakes=None, spec=None, memo=None, **options):
    """The change of one object of one unit."""
    view = fakes or FakeLive()
    if live is not None:
        view.put(live)
    changes = diff(
        desired(unit_of(unit, spec)),
        (rendered(unit, body),),
        view,
        EMPTY,
        cast("Any", cluster or DryRuns()),
        FLEET_ID,
        memo or DiffMemo(),
        **options,
    )
    (only,) = changes.units
    (change,) = only.changes
    return change


def fields(change):
    return [(f.path, f.before, f.after) for f in change.fields]


def test_an_object_that_does_not_exist_is_shown_as_create():
    """cases.md row 51."""
    change = judged(A, config())

    assert change.action is Action.CREATE
    assert change.payload == marked(A, config())
    assert change.live_uid == ""


def test_an_unchanged_object_is_synced_without_a_request():
    cluster = DryRuns()
    change = judged(A, config(), applied_by(US, marked(A, config())), cluster=cluster)

    assert change.action is Action.UNCHANGED
    assert change.payload is None
    assert cluster.asked == []


def audited(answer):
    """The change of a Synced object that is asked about, and what was counted."""
    told: list[str] = []
    audit = Audit(told.append)
    audit.begin(0, "v1.37.2")
    audit.begin(DAY_MS, "v1.37.2")
    live = applied_by(US, marked(A, config()))
    cluster = DryRuns(answer(live) if callable(answer) else answer)
    change = judged(A, config(), live, cluster=cluster, audit=audit)
    assert 1 <= len(cluster.asked) <= 2, "once more where it may be a webhook's dice"
    return change, told


def test_an_audit_that_agrees_changes_nothing():
    change, told = audited(lambda live: live)

    assert (Action.UNCHANGED, ["agreed"]) == (change.action, told)


def test_what_an_audit_finds_is_sent_and_counted():
    """The facts were wrong: the object is written, and somebody can see that it was."""
    change, told = audited(lambda live: {**live, "data": {"k": "of a webhook"}})

    assert (Action.CHANGE, ["disagreed"]) == (change.action, told)
    assert marked(A, config()) == change.payload


def test_an_audit_that_gets_no_answer_leaves_the_verdict():
    change, told = audited(Unreachable("no answer"))

    assert (Action.UNCHANGED, ["refused"]) == (change.action, told)


@settings(deadline=None)
@given(deployments(), deployments())
def test_nothing_printed_means_synced_and_the_reverse(before, wanted):
    """One function feeds command line, comment and status."""
    live = applied_by(US, marked(A, before))
    change = judged(A, wanted, live, cluster=Answering(live))
    printed = bool(change.fields)

    assert printed == (change.action is Action.CHANGE)
    assert (change.action is Action.CHANGE) == (change.payload is not None)


@settings(deadline=None)
@given(deployments(), deployments(), deployments())
def test_after_what_diff_sends_nothing_is_left_to_send(before, theirs, wanted):
    """A fixed point: one apply of the payload, then in sync, whoever else owns fields."""
    live = applied_by("istio", theirs, applied_by(US, marked(A, before)), force=True)
    change = judged(A, wanted, live, cluster=Answering(live))
    if change.action is not Action.CHANGE:
        return
    try:
        after = applied_by(US, change.payload, live)
    except FieldConflicts as error:
        raise AssertionError(f"not foreseen: {error.message}") from error
    again = judged(A, wanted, after, cluster=Answering(after))

    assert again.action is Action.UNCHANGED
    assert change.left_to_others == again.left_to_others


def test_a_changed_field_is_shown_and_sent_whole():
    live = applied_by(US, marked(A, deployment()))
    change = judged(A, deployment(image="x:2"), live)

    assert change.action is Action.CHANGE
    assert fields(change) == [("spec.template.spec.containers[name=engine].image", "x:1", "x:2")]
    assert change.impact is Impact.RESTART
    assert change.payload == marked(A, deployment(image="x:2"))
    assert change.live_uid == live["metadata"]["uid"]


def test_a_removed_field_is_shown():
    """cases.md row 49."""
    env = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    live = applied_by(US, marked(A, deployment(container=env)))
    less = {"env": [{"name": "A", "value": "1"}]}
    change = judged(A, deployment(container=less), live)

    assert change.action is Action.CHANGE
    (only,) = fields(change)
    assert only == (
        "spec.template.spec.containers[name=engine].env[name=B]",
        {"name": "B", "value": "2"},
        None,
    )


def test_other_spellings_of_quantities_are_in_sync():
    """cases.md row 47."""
    sent = deployment(container={"resources": {"requests": {"cpu": "1000m", "memory": "1000M"}}})
    live = applied_by(US, marked(A, sent))
    stored = live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    stored.update({"cpu": "1", "memory": "1G"})

    assert judged(A, sent, live).action is Action.UNCHANGED


def test_fields_that_others_add_are_no_drift():
    """cases.md row 55: a labeler touching our object causes no write."""
    live = applied_by(US, marked(A, config()))
    live = updated_by("labeler", live, {"metadata": {"labels": {"theirs": "1"}}})

    assert judged(A, config(), live).action is Action.UNCHANGED


def test_a_persons_edit_is_drift_that_git_takes_back():
    live = applied_by(US, marked(A, config()))
    live = updated_by("kubectl-edit", live, {"data": {"a": "9"}})
    change = judged(A, config(), live)

    assert change.action is Action.CHANGE
    assert fields(change) == [("data.a", "9", "1")]
    assert "takes data.a back from kubectl-edit" in change.note
    assert change.left_to_others == ()


def test_a_field_of_another_controller_is_left_to_it():
    live = applied_by(US, marked(A, config(data={"a": "1", "b": "2"})))
    live = updated_by("istio", live, {"data": {"a": "9"}})
    change = judged(A, config(data={"a": "1", "b": "2"}), live)

    assert change.action is Action.UNCHANGED
    assert change.left_to_others == (("data.a", "istio owns it"),)


def test_ownership_alone_is_printed_too():
    """Nothing printed means Synced: a write that only takes a field must show."""
    live = applied_by(US, marked(A, config()))
    live = updated_by("ed", live, {"data": {"a": "2"}})
    live = updated_by("ed", live, {"data": {"a": "1"}})
    change = judged(A, config(), live)

    assert change.action is Action.CHANGE
    assert fields(change) == [("metadata.managedFields: data.a", None, US)]
    assert change.impact is Impact.NONE


def test_giving_up_a_shared_field_is_printed_too():
    live = applied_by(US, marked(A, config(data={"a": "1", "b": "2"})))
    live = applied_by("b", config(data={"b": "2"}), live)
    change = judged(A, config(data={"a": "1"}), live)

    assert fields(change) == [("metadata.managedFields: data.b", US, None)]


# ------------------------------------------------------------------------ secrets


def test_secret_values_never_show():
    """reliability-security.md 0.5: masked on both sides, told that they differ."""
    live = applied_by(US, marked(A, secret(data={"x": "Y2FuYXJ5"})))
    change = judged(A, secret(stringData={"x": "other-canary"}), live)

    assert fields(change) == [("data.x", "***", "*** (changed)")]
    assert change.payload["data"] != {"x": "Y2FuYXJ5"}
    assert "stringData" not in change.payload


def test_string_data_is_compared_with_what_the_server_made_of_it():
    live = applied_by(US, marked(A, secret(data={"x": "aGk="})))

    assert judged(A, secret(stringData={"x": "hi"}), live).action is Action.UNCHANGED


# ------------------------------------------------------------------------- counts


def scaled(live, count, manager="kube-controller-manager"):
    return updated_by(manager, live, {"spec": {"replicas": count}}, subresource="scale")


def by_hpa(body):
    return FakeLive(scalers={ref_from_manifest(body): "HorizontalPodAutoscaler/h"})


def test_a_count_with_an_autoscaler_is_left_to_it():
    """cases.md row 59: replicas 1 in Git, HPA min 2: no flip, one line."""
    live = scaled(applied_by(US, marked(A, deployment(replicas=1))), 2)
    change = judged(A, deployment(replicas=1), live, fakes=by_hpa(deployment()))

    assert change.action is Action.UNCHANGED
    assert change.left_to_others == (
        ("spec.replicas", "live 2, Git 1: HorizontalPodAutoscaler/h owns it"),
    )


def test_as_sole_owner_of_a_scaled_count_the_live_value_is_sent():
    """cases.md row 61: leaving it out would remove it, 4 replicas became 1."""
    live = applied_by(US, marked(A, deployment(replicas=4)))
    change = judged(A, deployment(replicas=1, image="x:2"), live, fakes=by_hpa(deployment()))

    assert change.payload["spec"]["replicas"] == 4
    assert [f.path for f in change.fields] == ["spec.template.spec.containers[name=engine].image"]


def test_a_count_that_git_drops_while_we_own_it_keeps_its_live_value():
    live = applied_by(US, marked(A, deployment(replicas=4)))
    change = judged(A, deployment(replicas=None), live, fakes=by_hpa(deployment()))

    assert change.action is Action.UNCHANGED
    assert change.left_to_others[0][1].startswith("live 4, Git nothing")


def test_a_count_that_nobody_owns_is_not_sent():
    """ssa-facts 41: after a scale to 0 nobody owns it; sending would bring back a count."""
    live = applied_by(US, marked(A, deployment(replicas=2)))
    bare = deployment(replicas=2)
    del bare["spec"]["replicas"]
    live = applied_by(US, marked(A, bare), live)
    live["spec"]["replicas"] = 0
    change = judged(A, deployment(replicas=2, image="x:2"), live, fakes=by_hpa(deployment()))

    assert "replicas" not in change.payload["spec"]
    assert change.left_to_others[0][1].startswith("live 0, Git 2")


def test_a_bare_scale_is_drift():
    live = scaled(applied_by(US, marked(A, deployment())), 5, manager="kubectl")
    change = judged(A, deployment(), live)

    assert fields(change) == [("spec.replicas", 5, 2)]
    assert change.impact is Impact.SCALE


def test_when_the_autoscaler_is_gone_gits_rule_returns():
    """ssa-facts 48: its entry stays for ever, and must not keep the count."""
    live = scaled(applied_by(US, marked(A, deployment())), 5)
    change = judged(A, deployment(), live)

    assert fields(change) == [("spec.replicas", 5, 2)]
    assert change.left_to_others == ()


def test_unreadable_autoscalers_hold_the_count():
    """Unknown is not nobody."""
    live = scaled(applied_by(US, marked(A, deployment())), 5)
    change = judged(A, deployment(), live, fakes=FakeLive(scalers=None))

    assert change.action is Action.UNCHANGED
    assert "could not be read" in change.left_to_others[0][1]


def test_a_count_that_git_never_names_is_nobodys_business():
    live = applied_by(US, marked(A, deployment(replicas=None)))
    live["spec"]["replicas"] = 1
    change = judged(A, deployment(replicas=None), live, fakes=by_hpa(deployment()))

    assert change.left_to_others == ()


def test_placements_of_mode_nodes_are_never_left_to_an_autoscaler():
    """Design section 5: outside owners act on the ModelService."""
    live = scaled(applied_by(US, marked(QWEN, placement(replicas=1))), 5)
    fakes = by_hpa(placement())
    change = judged(
        QWEN, placement(replicas=1), live, fakes=fakes, spec=external(PlacementMode.NODES)
    )

    assert fields(change) == [("spec.replicas", 5, 1)]


def test_external_scaling_keeps_the_live_count():
    live = scaled(applied_by(US, marked(QWEN, placement(replicas=1))), 5, manager="my-scaler")
    change = judged(QWEN, placement(replicas=1), live, spec=external())

    assert change.action is Action.UNCHANGED
    assert change.left_to_others == (
        ("spec.replicas", "live 5, Git 1: scaling.mode External owns it"),
    )


def test_a_scheduled_service_with_a_count_in_git_is_gits():
    """Mode Scheduler, replicas in Git, no autoscaler: a bare scale is drift."""
    live = scaled(applied_by(US, marked(QWEN, placement(replicas=1))), 5, manager="kubectl")
    spec = service(placement_mode=PlacementMode.SCHEDULER)

    assert fields(judged(QWEN, placement(replicas=1), live, spec=spec)) == [("spec.replicas", 5, 1)]


# ------------------------------------------------------------------------ dry run


def unsettled():
    """A toleration whose operator the server filled in, inside an atomic list."""
    body = deployment()
    body["spec"]["template"]["spec"]["tolerations"] = [{"key": "gpu"}]
    live = applied_by(US, marked(A, body))
    live["spec"]["template"]["spec"]["tolerations"][0]["operator"] = "Equal"
    return body, live


def test_possible_defaults_are_settled_by_one_dry_run():
    body, live = unsettled()
    cluster, memo = DryRuns(answer=live), DiffMemo()

    assert judged(A, body, live, cluster=cluster, memo=memo).action is Action.UNCHANGED
    assert len(cluster.asked) == 1
    assert cluster.asked[0][0]["metadata"]["uid"] == live["metadata"]["uid"]
    later = copy.deepcopy(live)
    later["metadata"]["resourceVersion"] = "99"
    assert judged(A, body, later, cluster=cluster, memo=memo).action is Action.UNCHANGED
    assert len(cluster.asked) == 1


def test_a_dry_run_that_changes_something_is_a_change():
    body, live = unsettled()
    answer = copy.deepcopy(live)
    answer["spec"]["template"]["spec"]["tolerations"][0]["operator"] = "Exists"
    change = judged(A, body, live, cluster=DryRuns(answer=answer))

    assert change.action is Action.CHANGE
    assert change.fields


@pytest.mark.parametrize(
    ("error", "action", "code"),
    [
        (
            api_error(422, {"message": "field is immutable"}, what="apply"),
            Action.ERROR,
            "invalid-object",
        ),
        (api_error(403, {"message": "denied by webhook"}, what="apply"), Action.ERROR, "forbidden"),
        (
            api_error(404, {"message": "namespaces not found"}, what="apply"),
            Action.WAIT,
            "not-found",
        ),
        (api_error(404, "404 page not found", what="apply"), Action.WAIT, "kind-not-found"),
        (api_error(500, {"message": "boom"}, what="apply"), Action.WAIT, "server-failure"),
        (
            api_error(500, {"message": "failed to create typed patch object (x)"}, what="apply"),
            Action.ERROR,
            "invalid-object",
        ),
        (Unreachable("no answer"), Action.WAIT, "unreachable"),
    ],
    ids=["immutable", "webhook", "namespace", "kind", "500", "schema", "unreachable"],
)
def test_a_refused_dry_run_is_never_synced(error, action, code):
    """cases.md row 45, a.3 A3."""
    body, live = unsettled()
    change = judged(A, body, live, cluster=DryRuns(answer=error))

    assert change.action is action
    assert change.code == code
    assert change.payload is None
    assert error.message in change.note


def test_a_terminating_namespace_is_waited_for():
    causes = [{"reason": "NamespaceTerminating", "message": "x", "field": "metadata.namespace"}]
    error = api_error(403, {"message": "no", "details": {"causes": causes}}, what="apply")
    body, live = unsettled()

    assert judged(A, body, live, cluster=DryRuns(answer=error)).code == "namespace-terminating"


def test_an_immutable_field_is_an_error_with_the_servers_reason():
    """cases.md row 45: known before anything is sent, and not sent."""
    error = api_error(422, {"message": "spec.selector: field is immutable"}, what="apply")
    live = applied_by(US, marked(A, deployment()))
    other = deployment()
    other["spec"]["selector"] = {"matchLabels": {"app": "d", "more": "1"}}
    other["spec"]["template"]["metadata"]["labels"]["more"] = "1"
    cluster, memo = DryRuns(answer=error), DiffMemo()
    change = judged(A, other, live, cluster=cluster, memo=memo)

    assert change.action is Action.ERROR
    assert change.impact is Impact.RECREATE
    assert "field is immutable" in change.note
    judged(A, other, live, cluster=cluster, memo=memo)
    assert len(cluster.asked) == 1


def test_custom_resources_that_own_more_than_we_can_know_are_dry_run():
    """A CRD's list types are in its schema; our guess of the field set may be wrong."""
    live = applied_by(US, marked(A, gizmo(byname=[{"name": "a"}])))
    entry = live["metadata"]["managedFields"][0]["fieldsV1"]
    entry["f:spec"]["f:byname"] = {'k:{"name":"a"}': {".": {}, "f:name": {}}}
    cluster = DryRuns(answer=live)
    change = judged(A, gizmo(byname=[{"name": "a"}]), live, cluster=cluster)

    assert change.action is Action.UNCHANGED
    assert len(cluster.asked) == 1


def test_an_entry_in_another_version_is_dry_run():
    live = applied_by(US, marked(A, config()))
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    cluster = DryRuns(answer=live)

    assert judged(A, config(), live, cluster=cluster).action is Action.UNCHANGED
    assert len(cluster.asked) == 1


def test_a_conflict_in_a_dry_run_means_a_change():
    causes = [{"reason": "FieldManagerConflict", "message": "x", "field": ".spec"}]
    error = api_error(409, {"message": "conflict", "details": {"causes": causes}}, what="apply")
    body, live = unsettled()

    assert judged(A, body, live, cluster=DryRuns(answer=error)).action is Action.CHANGE


def test_an_object_that_vanished_in_a_dry_run_is_waited_for():
    error = api_error(409, {"message": "uid mismatch"}, what="apply")
    body, live = unsettled()

    assert judged(A, body, live, cluster=DryRuns(answer=error)).action is Action.WAIT


def test_verify_dry_runs_creates():
    """a.3 A4: admission judges objects that do not exist yet."""
    error = api_error(422, {"message": "replicas: must be positive"}, what="apply")
    assert (
        judged(A, deployment(), cluster=DryRuns(answer=error), verify=True).action is Action.ERROR
    )
    cluster = DryRuns(answer={})
    assert judged(A, deployment(), cluster=cluster, verify=True).action is Action.CREATE
    assert len(cluster.asked) == 1


def test_what_cannot_be_verified_yet_says_so():
    error = api_error(404, {"message": "namespaces not found"}, what="apply")
    change = judged(A, deployment(), cluster=DryRuns(answer=error), verify=True)

    assert change.action is Action.CREATE
    assert "not verified" in change.note


def test_what_this_pass_itself_brings_is_not_asked_about():
    """A missing namespace makes the API server wait 50 ms an object before it says so."""
    cluster = DryRuns(answer={})
    changes = diff(
        desired(unit_of(A)),
        (rendered(A, namespace(), deployment()),),
        FakeLive(phases={"llm": ""}),
        EMPTY,
        cast("Any", cluster),
        FLEET_ID,
        DiffMemo(),
        verify=True,
    )

    made = changes.units[0].changes
    assert [Action.CREATE, Action.CREATE] == [change.action for change in made]
    assert ["", True] == [made[0].note, "not verified" in made[1].note]
    assert ["Namespace"] == [asked["kind"] for asked, _ in cluster.asked]


def test_verify_believes_the_server_that_nothing_changes():
    """cases.md row 47: compare by dry-run result."""
    live = applied_by(US, marked(A, deployment()))
    change = judged(A, deployment(image="x:2"), live, cluster=DryRuns(answer=live), verify=True)

    assert change.action is Action.UNCHANGED
    assert change.fields == ()


def test_verify_forces_only_what_a_person_took():
    live = updated_by("kubectl-edit", applied_by(US, marked(A, config())), {"data": {"a": "9"}})
    answer = applied_by(US, marked(A, config()), live, force=True)
    cluster = DryRuns(answer=answer)
    change = judged(A, config(), live, cluster=cluster, verify=True)

    assert change.action is Action.CHANGE
    assert [force for _, force in cluster.asked] == [True]


def test_verify_shows_a_refused_change():
    live = applied_by(US, marked(A, config()))
    error = api_error(403, {"message": "denied"}, what="apply")
    change = judged(A, config(data={"a": "2"}), live, cluster=DryRuns(answer=error), verify=True)

    assert change.action is Action.ERROR
    assert change.fields


# ---------------------------------------------------------------------- the caches


def test_bodies_without_entries_are_read_whole():
    """Caches keep only metadata of objects whose mark somebody removed."""
    whole = applied_by(US, marked(A, config()))
    partial = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": copy.deepcopy(whole["metadata"]),
    }
    del partial["metadata"]["managedFields"]
    cluster = DryRuns(bodies={ref_from_manifest(whole): whole})

    assert judged(A, config(), partial, cluster=cluster).action is Action.UNCHANGED


def test_what_cannot_be_read_whole_is_waited_for():
    class Gone(DryRuns):
        def get(self, ref, *, subresource=""):
            raise Unreachable("no answer")

    partial = marked(A, config())
    partial["metadata"].update(uid="u", resourceVersion="1")

    assert judged(A, config(), partial, cluster=Gone()).action is Action.WAIT


def test_verdicts_are_remembered_while_nothing_moves():
    live, memo = applied_by(US, marked(A, config())), DiffMemo()
    changed = applied_by(US, marked(A, config(data={"a": "2"})))
    cluster = DryRuns(answer=changed)
    judged(A, config(data={"a": "2"}), live, memo=memo)
    first = judged(A, config(data={"a": "2"}), live, memo=memo, cluster=cluster)
    again = judged(A, config(data={"a": "2"}), live, memo=memo, cluster=cluster)

    assert first == again
    assert first.fields is again.fields
    assert 2 == len(cluster.asked), "once, and once more because something changes"
    assert judged(A, config(data={"a": "3"}), live, memo=memo).fields != first.fields
    memo.forget()
    assert judged(A, config(data={"a": "2"}), live, memo=memo).fields is not first.fields


def test_a_partial_pass_keeps_what_is_known_of_other_units():
    memo = DiffMemo()
    judged(A, config("one"), applied_by(US, marked(A, config("one"))), memo=memo)
    diff(desired(A, QWEN), (), FakeLive(), EMPTY, cast("Any", DryRuns()), FLEET_ID, memo)

    assert [ref.name for ref in memo.verdicts] == ["one"]


def test_the_memo_keeps_only_what_is_rendered_and_is_bounded():
    memo = DiffMemo()
    judged(A, config("one"), applied_by(US, marked(A, config("one"))), memo=memo)
    judged(A, config("two"), applied_by(US, marked(A, config("two"))), memo=memo)

    assert [ref.name for ref in memo.verdicts] == ["two"]
    for number in range(20_001):
        memo.settle(number, unchanged=True)
    assert len(memo.settled) == 20_000
    assert 0 not in memo.settled
