"""The benchmarks measure what they say: the input is fixed, and requests are counted once."""

from __future__ import annotations

import json
import os
import subprocess

import bench_frontier
import bench_warmth
import measure
import page
import w1

from stoker.rehearse.judge import Judgement, Verdict

AGENT = "stoker/"


def an_event(
    number: int, verb: str, uri: str, *, stage="ResponseComplete", agent="stoker/0.1", **of
):
    return {
        "auditID": f"id-{number}",
        "stage": stage,
        "verb": verb,
        "requestURI": uri,
        "userAgent": agent,
        "objectRef": of,
    }


def counted(tmp_path, *events) -> measure.Requests:
    log = tmp_path / "audit.log"
    log.write_text("an older line\n", encoding="utf-8")
    mark = measure.AuditMark.now(log)
    with log.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)
    return measure.count_requests(mark, AGENT)


def test_the_units_are_the_bytes_that_flux_was_measured_with(tmp_path):
    """Figures of two controllers compare only where both got the very same files."""
    w1.write(tmp_path, units=3, cluster_uid="any")
    w1.commit(tmp_path, "three units")

    tree = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD:apps"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert w1.SUBTREE_OF_3_UNITS == tree


def test_a_second_commit_changes_only_the_unit_that_was_touched(tmp_path):
    w1.write(tmp_path, units=3, cluster_uid="any")
    w1.commit(tmp_path, "three units")
    for path, text in w1.unit_files(2, cpu="3m").items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    w1.commit(tmp_path, "one unit")

    changed = subprocess.run(
        ["git", "-C", str(tmp_path), "diff", "--name-only", "HEAD^", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert ["apps/u00002/deployment.yaml"] == changed


def test_requests_are_counted_by_what_they_do(tmp_path):
    """An apply is no other patch, a dry run is no write that happened."""
    deployments = "/apis/apps/v1/namespaces/w1/deployments"
    found = counted(
        tmp_path,
        an_event(0, "get", "/apis/apps/v1"),
        an_event(1, "list", deployments, resource="deployments"),
        an_event(2, "patch", f"{deployments}/a?fieldManager=stoker-1&force=false"),
        an_event(3, "patch", f"{deployments}/a?fieldManager=stoker-1&force=true&dryRun=All"),
        an_event(4, "patch", f"{deployments}/a?fieldManager=stoker-1"),
    )

    assert {"discover": 1, "list": 1, "apply": 1, "apply-dryrun": 1, "patch": 1} == found.verbs
    assert (5, 3) == (found.total, found.writes)


def test_who_we_are_is_asked_for_and_not_written(tmp_path):
    """A SelfSubjectReview is posted, and stored nowhere."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    found = counted(tmp_path, an_event(0, "create", path, resource="selfsubjectreviews"))

    assert {"discover": 1} == found.verbs
    assert 0 == found.writes


def test_requests_of_the_lease_stand_apart(tmp_path):
    lease = "/apis/coordination.k8s.io/v1/namespaces/stoker-system/leases/stoker-1"
    found = counted(
        tmp_path,
        an_event(1, "get", lease, resource="leases"),
        an_event(2, "update", lease, resource="leases"),
    )

    assert (0, 0) == (found.total, found.writes)
    assert {"get": 1, "update": 1} == found.lease


def test_a_watch_is_one_request_and_other_clients_are_none(tmp_path):
    """A watch is written to the audit log when it starts and again when it ends."""
    watch = "/api/v1/pods?watch=true"
    found = counted(
        tmp_path,
        an_event(1, "watch", watch, stage="ResponseStarted"),
        an_event(1, "watch", watch),
        an_event(2, "watch", watch, agent="kube-controller-manager/v1.37.2"),
    )

    assert {"watch": 1} == found.verbs


def test_a_log_that_the_server_put_aside_is_read_to_its_end(tmp_path):
    """5,000 units fill a file of 100 MB; what came before and after that is counted."""
    pods = {"resource": "pods"}
    old, one, two = (
        json.dumps(an_event(number, "get", f"/api/v1/pods/p{number}", **pods)) + "\n"
        for number in range(3)
    )
    path = tmp_path / "audit.log"
    path.write_text(old, encoding="utf-8")
    mark = measure.AuditMark.now(path)
    path.write_text(old + one, encoding="utf-8")
    aside = path.rename(tmp_path / "audit-2026-11-30T08-22-00.000.log")
    path.write_text(two, encoding="utf-8")
    os.utime(aside, (1, 1))

    assert {"get": 2} == measure.count_requests(mark, AGENT).verbs


def test_the_page_shows_the_results_that_are_kept():
    """Figures in the docs are those of the last whole run, or nobody can check them."""
    results = json.loads((page.PAGE.parents[1] / "benchmarks" / "results.json").read_text("utf-8"))
    text = page.PAGE.read_text("utf-8")

    assert page.page_with(text, results) == text


def test_a_measure_without_a_bar_holds_and_one_above_it_does_not():
    rows = [measure.row("m", 2, "s", bar) for bar in (None, 2, 1)]

    assert [True, True, False] == [row["holds"] for row in rows]


def _row(measure, value, section="apply"):
    return {"section": section, "measure": measure, "value": value}


def test_a_part_that_is_run_alone_replaces_its_own_rows_and_says_where_it_ran():
    whole = {
        "sections": {"apply": {"command": "all"}, "core": {"command": "core"}},
        "rows": [_row("a", 1), _row("soak", 2), _row("c", 3, "core")],
    }

    found = page.kept(whole, "apply", "soak", [_row("soak", 9)], {"command": "again"})

    assert [_row("a", 1), _row("soak", 9), _row("c", 3, "core")] == found["rows"]
    assert {"soak": {"command": "again", "measures": ["soak"]}} == found["sections"]["apply"][
        "parts"
    ]
    assert {"command": "core"} == found["sections"]["core"]


def test_a_whole_run_leaves_nothing_of_earlier_parts():
    before = {
        "sections": {"apply": {"parts": {"soak": {"measures": ["soak"]}}}},
        "rows": [_row("soak", 9), _row("c", 3, "core")],
    }

    found = page.kept(before, "apply", "", [_row("a", 1)], {"command": "all"})

    assert {"apply": {"command": "all"}} == found["sections"]
    assert [_row("a", 1), _row("c", 3, "core")] == found["rows"]


def _bar(measure, found, bar, *, least=False):
    holds = found is not None and (found >= bar if least else found <= bar)
    return Verdict("a", measure, found, bar, holds, least)


def test_the_worst_seed_of_a_rehearsal_is_what_is_told():
    """A bar from below is told as what was lacking; unknown holds no bar."""
    first = Judgement((), (_bar("refused", 0, 0), _bar("lowestReady", 1, 1, least=True)), 0, True)
    second = Judgement((), (_bar("refused", 3, 0), _bar("lowestReady", 0, 1, least=True)), 0, True)
    unknown = Judgement((), (_bar("gap", None, 0),), 0, True)

    rows = bench_warmth.rows_of("one", [first, second])
    assert [("one: a refused", 3, False), ("one: a lowestReady, lacking", 1, False)] == [
        (row["measure"], row["value"], row["holds"]) for row in rows
    ]
    assert not bench_warmth.rows_of("one", [unknown])[0]["holds"]
    assert not bench_warmth.rows_of("one", [Judgement((), (), 0, False)])[0]["holds"]


def test_a_frontier_is_read_between_its_runs():
    """What another run beats is no part of it; beyond its ends nothing is promised for less."""
    spots = [
        bench_frontier.Spot("kpa", knob, kept, hours)
        for knob, (kept, hours) in enumerate([(0.5, 2.0), (0.9, 4.0), (0.8, 5.0), (1.0, 8.0)])
    ]
    line = bench_frontier.frontier([*spots, bench_frontier.Spot("x", 0, 1.0, 0.1)], "kpa")

    assert [2.0, 4.0, 8.0] == [spot.gpu_hours for spot in line]
    assert [0.0, 0.5, 0.7, 0.95, 1.0] == [
        round(bench_frontier.kept_at(line, hours), 6) for hours in (1.9, 2.0, 3.0, 6.0, 9.0)
    ]
    assert [2.0, 3.0, 6.0] == [
        round(bench_frontier.hours_at(line, kept) or 0.0, 6) for kept in (0.3, 0.7, 0.95)
    ]
    assert bench_frontier.hours_at(line[:2], 0.95) is None
