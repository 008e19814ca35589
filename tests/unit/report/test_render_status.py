from dataclasses import replace
from typing import Any

import pytest
import yaml

from stoker.model.change import Action, Change
from stoker.model.plan import CountReason, Hold
from stoker.model.refs import UnitRef
from stoker.model.snapshot import ReplicaPhase, ServiceState
from stoker.report.inputs import StatusWritten
from stoker.report.plain_yaml import dump
from stoker.report.render_status import StatusView, render_status, shorten, view_documents
from stoker.report.report import report
from stoker.report.status_rows import ago, clean
from unit.report.report_builders import (
    GATEWAY,
    NOW,
    QWEN,
    Live,
    bundle,
    change_set,
    changes_of,
    decision,
    desired,
    failed,
    finding,
    inputs,
    live_object,
    node,
    object_ref,
    outcome,
    placed,
    plan,
    ready_on,
    service,
    snapshot,
)

EMBED = UnitRef("ModelService", "llm", "embed-e5")
HELD = Hold(
    "held-no-capacity",
    "5 nodes could run it, none has a free GPU.",
    "the first GPU that frees up; whenFull is Hold",
    "about 6m",
)


def view(result: Any, *, after_ms: int = 0, **changes: Any) -> StatusView:
    documents = view_documents(result.documents)
    return StatusView(**{"documents": documents, "now_ms": NOW + after_ms, **changes})


def two_services(**changes: Any):
    owner = CountReason("HorizontalPodAutoscaler/embed-e5")
    short = decision(ready=3, holds=(HELD,), rejected=(("full", 4), ("pool", 1)))
    settings: dict[str, Any] = {
        "desired": desired(service(), service(EMBED)),
        "snapshot": snapshot(
            ready_on(EMBED, 4), ready_on(QWEN, 3), nodes=(node("l4-od-1"), node("l4-od-2"))
        ),
        "plan": plan(short, decision(EMBED, count=owner)),
        "changes": change_set(changes_of(QWEN), changes_of(EMBED)),
        "live": Live(live_object("qwen-7b"), live_object("embed-e5")),
        **changes,
    }
    return report(inputs(**settings))


def test_the_text_has_the_published_layout():
    """ux.md, stoker status: order, words and density."""
    written = StatusWritten("stoker-status/prod-eu", "9c01d2e" + "0" * 33, NOW)

    text = render_status(
        view(
            two_services(),
            after_ms=360_000,
            seen_ms=NOW + 356_000,
            written=written,
            next_poll_seconds=12.4,
        )
    )

    assert (
        text
        == """\
fleet prod-eu   Synced main@9be0a17   Degraded 1 of 2   controller seen 4s ago   source: cluster

NEEDS ATTENTION
! llm/qwen-7b  3/4 Ready for 6m   HeldNoCapacity
    5 nodes could run it, none has a free GPU.
    At the floor (3).
    Nodes looked at: 4 full, 1 pool.
    Next: the first GPU that frees up; whenFull is Hold
    stoker explain qwen-7b                                                why, node by node
    stoker override qwen-7b --when-full Unpinned --for 4h --reason TEXT   ask for a node: about 6m
    stoker override qwen-7b --replicas 3 --for 4h --reason TEXT           accept 3, silence this

SERVICE       SYNC    HEALTH    READY  WARMING  WANT  MODEL    NODES       SINCE
llm/embed-e5  Synced  Healthy   4/4    0        4 H   bb46c15  l4-od-1..4  6m
llm/qwen-7b   Synced  Degraded  3/4    0        4     bb46c15  l4-od-1..3  6m
H: count owned by HorizontalPodAutoscaler

GPUs   l4-od 2/2    drift repaired today 0
Git    status 9c01d2e on stoker-status/prod-eu, 03:05:02Z     next poll in 12s
"""
    )


def test_documents_read_from_the_branch_give_the_same_text():
    result = two_services()
    files = {d.path: yaml.safe_load(dump(d.data)) for d in result.documents}

    assert render_status(view(result)) == render_status(view(result, documents=files))


def test_a_silent_controller_makes_the_state_unknown():
    """Older than two heartbeats: nobody knows whether any of it still holds."""
    text = render_status(view(report(inputs()), after_ms=2 * 3_600_000 + 1_000))

    assert "controller seen 2h ago (state unknown)" in text
    assert "(state unknown)" not in render_status(view(report(inputs()), after_ms=3_600_000))


def test_a_branch_without_status_says_that_nobody_was_there():
    text = render_status(StatusView({}, NOW, "git"))

    assert "fleet ?   Unknown   Unknown   controller never seen   source: git\n" == text


def test_a_broken_file_is_shown_with_its_place():
    error = finding("template-undefined", QWEN, message="'placement.nod' is undefined")

    text = render_status(view(report(inputs(findings=(error,)))))

    assert "! llm/qwen-7b  4/4 Ready for 0s   TemplateUndefined" in text
    assert (
        "    models/qwen-7b.yaml:9:5: 'placement.nod' is undefined [template-undefined]\n" in text
    )
    assert "Next:" not in text


def test_trouble_of_the_fleet_itself_comes_first():
    wrong = finding("schema", message="spec.pools: unknown field")

    text = render_status(view(report(inputs(desired=None, failure=wrong))))

    assert "! fleet   Schema\n" in text
    assert "    models/qwen-7b.yaml:9:5: spec.pools: unknown field [schema]\n" in text


def test_held_deletions_are_shown():
    delete = changes_of(GATEWAY, Change(object_ref(), Action.DELETE))
    changes = change_set(changes_of(QWEN), delete, prune_hold="Stoker-Allow-Delete: all")

    assert "! fleet   PruneHeld   Stoker-Allow-Delete: all" in render_status(
        view(report(inputs(changes=changes)))
    )


def test_a_stuck_replica_is_shown_with_its_node():
    stuck = ServiceState(QWEN, (placed(QWEN, "l4-od-4", ReplicaPhase.STUCK, "CUDA OOM"),))
    now = inputs(plan=plan(decision(ready=2)), snapshot=snapshot(stuck))

    text = render_status(view(report(now)))

    assert "    Node l4-od-4: CUDA OOM at 03:05:02Z.\n    Below the floor (3).\n" in text


def bundles(*refs: UnitRef, **changes: Any):
    settings: dict[str, Any] = {
        "desired": desired(*(bundle(ref) for ref in refs)),
        "plan": plan(),
        "changes": change_set(*(changes_of(ref) for ref in refs)),
        "live": Live(*(live_object(ref.name) for ref in refs)),
        **changes,
    }
    return report(inputs(**settings))


def test_bundles_that_are_well_are_counted():
    result = bundles(GATEWAY, replace(GATEWAY, name="other"))

    assert "2 bundles Synced and Healthy (--all)" in render_status(view(result))
    shown = render_status(view(result, show_all=True))
    assert "BUNDLE       SYNC    HEALTH   OBJECTS  SINCE\n" in shown
    assert "llm/gateway  Synced  Healthy  1/1      0s\n" in shown


def test_a_bundle_that_failed_is_shown():
    other = replace(GATEWAY, name="other")
    create = changes_of(GATEWAY, Change(object_ref(), Action.CREATE))
    result = bundles(
        GATEWAY,
        other,
        changes=change_set(create, changes_of(other)),
        live=Live(live_object("other")),
        outcome=outcome(GATEWAY, failed(object_ref(), message="spec.x is immutable")),
    )

    text = render_status(view(result))

    assert "! llm/gateway  Missing for 0s   InvalidObject" in text
    assert "llm/gateway  OutOfSync  Missing  0/1      0s\n1 more Synced and Healthy (--all)" in text


def test_services_at_zero_and_many_healthy_ones_are_counted():
    refs = [replace(QWEN, name=f"s{n:02}") for n in range(25)]
    counts = {ref: 0 if ref.name > "s22" else 4 for ref in refs}
    result = report(
        inputs(
            desired=desired(*(service(ref) for ref in refs)),
            snapshot=snapshot(*(ready_on(ref, 4) for ref in refs)),
            plan=plan(*(decision(r, want=counts[r], ready=counts[r]) for r in refs)),
            changes=change_set(*(changes_of(ref) for ref in refs)),
            live=Live(*(live_object(ref.name) for ref in refs)),
        )
    )

    text = render_status(view(result))

    assert "3 more Healthy, 2 at zero (--all)" in text
    assert "llm/s19" in text
    assert "llm/s20" not in text
    assert "llm/s24" in render_status(view(result, show_all=True))


@pytest.mark.parametrize(
    ("owner", "legend"),
    [
        ("ScaledObject/x", "K: count owned by ScaledObject (KEDA)"),
        ("someone", "E: count owned by another controller"),
    ],
)
def test_whoever_owns_a_count_is_named(owner, legend):
    result = report(inputs(plan=plan(decision(count=CountReason(owner)))))

    assert legend in render_status(view(result))


def test_an_override_that_is_not_obeyed_is_listed_with_the_reason():
    why = "3 until 2026-11-29T05:00:00Z: refused, HorizontalPodAutoscaler/x owns the count"
    count = CountReason("HorizontalPodAutoscaler/x", "live value kept", why)

    assert f"OVERRIDE   llm/qwen-7b   {why}" in render_status(
        view(report(inputs(plan=plan(decision(count=count)))))
    )


def test_an_override_of_when_full_is_listed():
    told = "Unpinned until 2026-11-29T05:00:00Z, Git says Hold: launch day"
    result = report(inputs(plan=plan(decision(when_full=told))))

    assert f"OVERRIDE   llm/qwen-7b   whenFull {told}" in render_status(view(result))
    assert 1 == result.documents[0].data["summary"]["overrides"]


@pytest.mark.parametrize(
    "changes",
    [
        {"ready": 2},
        {"ready": 3, "warming": 1},
        {"ready": 3, "count": CountReason("HorizontalPodAutoscaler/x")},
        {"ready": 3, "holds": (Hold("GivesWay", "1 replica of 4 leaving"),)},
        {"ready": 0, "floor": 0},
    ],
    ids=["below-floor", "on-its-way", "not-ours", "not-full", "none"],
)
def test_fewer_replicas_are_proposed_only_where_they_are_enough_and_ours_to_say(changes):
    held = decision(**{"holds": (HELD,), **changes})
    alive = snapshot(ready_on(QWEN, changes["ready"]))

    text = render_status(view(report(inputs(plan=plan(held), snapshot=alive))))

    assert "NEEDS ATTENTION" in text or "warming" in changes
    assert "--replicas" not in text


def test_unknown_counts_are_question_marks():
    blind = snapshot(unknown=(("nodes", "forbidden"), ("pods", "forbidden")))

    text = render_status(view(report(inputs(plan=plan(), snapshot=blind))))

    assert "0/?" in text
    assert "GPUs   l4-od ?/?" in text


def test_lost_and_uncountable_nodes_are_told():
    nodes = (
        node("a"),
        node("b", ready=False),
        node("c", ready=False),
        node("d", gpu_unknown="DRA"),
    )

    text = render_status(view(report(inputs(snapshot=snapshot(ready_on(QWEN, 4), nodes=nodes)))))

    assert "l4-od 1/1 (2 nodes lost, 1 unknown)" in text


def test_a_status_that_cannot_be_pushed_is_told():
    refused = StatusWritten("stoker-status/prod-eu", "", None, "push-rejected", "protected branch")

    assert "Git    status not written to stoker-status/prod-eu: protected branch\n" in (
        render_status(view(report(inputs()), written=refused))
    )


def test_text_from_a_branch_cannot_command_the_terminal():
    result = two_services()
    documents = view_documents(result.documents)
    path = "units/modelservice.llm.qwen-7b.yaml"
    evil = {**documents[path], "holds": [{"reason": "x", "message": "\x1b]0;owned\x07"}]}

    text = render_status(view(result, documents={**documents, path: evil}))

    assert "owned" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_colour_is_given_to_health_words_only():
    text = render_status(view(two_services()), paint=lambda value, colour: f"<{colour}>{value}</>")

    assert "<red>Degraded 1 of 2</>" in text
    assert "<green>Healthy </>" in text


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["l4-1", "l4-2", "l4-3"], ["l4-1..3"]),
        (["l4-1", "l4-2"], ["l4-1", "l4-2"]),
        (["l4-9", "l4-10", "l4-11", "od-1"], ["l4-9..11", "od-1"]),
        (["l4-1", "l4-1"], ["l4-1"]),
        (["a-01", "a-02", "a-03"], ["a-01", "a-02", "a-03"]),
        (["b", "a"], ["a", "b"]),
        (list("abcdefg"), ["a", "b", "c", "d", "+3"]),
        ([], []),
    ],
)
def test_runs_of_nodes_are_written_short(names, expected):
    assert expected == shorten(names)


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (-5, "0s"),
        (4_999, "4s"),
        (119_000, "119s"),
        (360_000, "6m"),
        (7_200_000, "2h"),
        (3 * 86_400_000, "3d"),
    ],
)
def test_ages_have_one_unit(milliseconds, expected):
    assert expected == ago(milliseconds)


def test_long_texts_are_cut():
    assert 300 == len(clean("x" * 5_000))
