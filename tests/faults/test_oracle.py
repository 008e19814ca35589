"""The judge of fault runs sees each violation, and none where there is none."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults.lanes import slice_of
from faults.oracle import Evidence, Wanted, ended_by_itself, not_left_alone, violations
from faults.plan import API, GIT, PROCESS, ApiFault, Kind, Only, plan_of
from faults.proxy import Forwarded

START_MS = 1_795_910_400_000
MAPS = "/api/v1/namespaces/llm/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/llm/deployments"
COMMIT = "a" * 40


def entry(user: str, verb: str, what: str, second: float, code: int = 200) -> dict[str, Any]:
    """A line of the audit log; `what` is resource/namespace/name."""
    resource, namespace, name, *sub = what.split("/")
    return {
        "verb": verb,
        "requestURI": f"/{what}",
        "user": {"username": "admin"},
        "impersonatedUser": {"username": user},
        "objectRef": {
            "resource": resource,
            "namespace": namespace,
            "name": name,
            "subresource": "".join(sub),
        },
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-11-29T00:00:{second:09.6f}Z",
    }


COUNTED = "deployments/llm/counted"
LEASE = "leases/stoker-system/stoker-f"
RENEWED = entry("one", "update", LEASE, 1)
TAKEN = entry("two", "update", LEASE, 20)


def written(user: str, second: float, what: str = "configmaps/llm/side") -> dict[str, Any]:
    return entry(user, "patch", what, second)


@pytest.fixture
def evidence(tmp_path: Path) -> Callable[..., Evidence]:
    """Evidence of a run in which nothing went wrong, but for what a test adds."""
    bare = tmp_path / "fleet.git"
    log = tmp_path / "controller.log"
    log.write_text("all is well\n", encoding="utf-8")

    def make(*audit: dict[str, Any], status: str = "", **more: Any) -> Evidence:
        shutil.rmtree(bare, ignore_errors=True)
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        text = status or f"lastAppliedRevision: main@sha1:{COMMIT}\n"
        stream = (
            "commit refs/heads/status\n"
            f"committer Stoker <s@example.invalid> {START_MS // 1000 + 10} +0000\n"
            f"data 1\nx\nM 100644 inline status.yaml\ndata {len(text)}\n{text}\n"
        )
        subprocess.run(
            ["git", "-C", str(bare), "fast-import", "--quiet"], input=stream.encode(), check=True
        )
        audit_log = tmp_path / "audit.log"
        audit_log.write_text("".join(json.dumps(line) + "\n" for line in audit), encoding="utf-8")
        plain = Evidence(
            audit_log=audit_log,
            since_ms=START_MS,
            users=("one", "two"),
            lease_reach_ms=4_200,
            namespace="llm",
            forwarded=(a_request("PATCH", "side", {"data": {"key": "v"}}, 5),),
            wanted=(Wanted(START_MS, COMMIT, "v", 3),),
            removed_ms={"extra": START_MS},
            edits=Counter(),
            bare=bare,
            branch="refs/heads/status",
            foreign={},
            secrets=("s3cret-token",),
            logs=(log,),
        )
        return replace(plain, **more)

    return make


def a_request(method: str, name: str, body: dict[str, Any], second: float) -> Forwarded:
    at_ms = START_MS + int(second * 1000)
    return Forwarded(at_ms, method, f"{MAPS}/{name}", json.dumps(body).encode(), 200)


def test_a_run_in_which_all_went_well_is_not_blamed(evidence):
    seen = evidence(RENEWED, written("one", 2), TAKEN, written("two", 21))

    assert [] == violations(seen)


@pytest.mark.parametrize(
    ("audit", "code"),
    [
        ((RENEWED, TAKEN, written("one", 21)), "I1"),
        ((written("one", 2),), "I1"),
        ((RENEWED, written("one", 6)), "I1"),
        ((RENEWED, entry("two", "update", LEASE, 2, 409), written("two", 3)), "I1"),
        ((RENEWED, written("one", 2, "roles/llm/x")), "I3"),
        ((RENEWED, written("one", 2, "configmaps/kube-system/x")), "I3"),
        ((RENEWED, *(written("one", 2 + n / 100) for n in range(40))), "I4"),
        ((RENEWED, *(written("one", 2 + n / 100, COUNTED) for n in range(40))), "I4"),
        ((RENEWED, written("one", 2, f"{COUNTED}/scale")), "I6"),
    ],
    ids=[
        *("stale", "no lease", "late", "lost race", "kind", "namespace"),
        *("storm", "storm of deployments", "scale"),
    ],
)
def test_what_the_audit_log_gives_away(evidence, audit, code):
    assert [code] == sorted({found.partition(":")[0] for found in violations(evidence(*audit))})


def test_an_api_server_that_stood_still_stamps_late(evidence):
    """Only who held the lease counts then: a write in its socket had started in time."""
    stalls = ((START_MS + 2_000, START_MS + 8_000),)

    assert [] == violations(evidence(RENEWED, written("one", 7), stalls=stalls))
    assert violations(evidence(RENEWED, written("two", 7), stalls=stalls))


@pytest.mark.parametrize(
    ("name", "body", "second", "found"),
    [
        ("extra", {"preconditions": {"uid": "u"}}, 1, 0),
        ("extra", {}, 1, 1),
        ("side", {"preconditions": {"uid": "u"}}, 1, 1),
        ("extra", {"preconditions": {"uid": "u"}}, -1, 1),
    ],
    ids=["proved", "no UID", "in Git", "too early"],
)
def test_deletes_need_proof(evidence, name, body, second, found):
    requests = (
        a_request("PATCH", "side", {"data": {"key": "v"}}, 5),
        a_request("DELETE", name, body, second),
    )

    assert found == len(violations(evidence(forwarded=requests)))


@pytest.mark.parametrize(
    "more",
    [
        {"forwarded": (a_request("PATCH", "side", {"data": {"key": "v"}}, 30),)},
        {"wanted": (Wanted(START_MS, "b" * 40, "v", 3),)},
        {"forwarded": ()},
    ],
    ids=["claimed too early", "no such commit", "never written"],
)
def test_a_status_that_lies_is_found(evidence, more):
    assert "I8" == violations(evidence(**more))[0].partition(":")[0]


def test_a_commit_of_a_person_is_no_claim_of_ours(evidence, tmp_path):
    """What people write into the status file is theirs (c.3 row 71)."""
    seen = evidence()
    bare = tmp_path / "fleet.git"
    stream = (
        "commit refs/heads/status\ncommitter P <p@example.invalid> 1 +0000\ndata 1\nx\n"
        "from refs/heads/status^0\nM 100644 inline status.yaml\ndata 3\n<<<\n\n"
    )
    subprocess.run(
        ["git", "-C", str(bare), "fast-import", "--quiet"], input=stream.encode(), check=True
    )

    assert [] == violations(seen)


ASKED = (
    Wanted(START_MS, COMMIT, "v", 3),
    Wanted(START_MS + 4_000, "b" * 40, "w", 5),
    Wanted(START_MS + 8_000, "c" * 40, "x", 3),
    Wanted(START_MS + 12_000, "d" * 40, "y", 2),
)


def a_count(count: int, second: float, by: str = "one", **more: Any) -> Forwarded:
    """A write of the Deployment whose count Git says."""
    made = a_request("PATCH", "counted", {"spec": {"replicas": count}}, second)
    return replace(made, path=f"{DEPLOYMENTS}/counted?fieldManager=stoker", by=by, **more)


@pytest.mark.parametrize(
    "counts",
    [
        (a_count(3, 1), a_count(5, 5), a_count(3, 9), a_count(2, 13)),
        (a_count(3, 5),),
        (a_count(5, 5), a_count(3, 6, by="two")),
        (a_count(5, 5), a_count(9, 6, status=403)),
    ],
    ids=["each in turn", "late", "of a new leader that is late", "refused"],
)
def test_counts_that_git_asked_for_are_no_violation(evidence, counts):
    """I6: whoever has not seen the newest commit goes on with the one before."""
    value = a_request("PATCH", "side", {"data": {"key": "v"}}, 5)

    assert [] == violations(evidence(wanted=ASKED, forwarded=(value, *counts)))


@pytest.mark.parametrize(
    "counts",
    [
        (a_count(0, 1),),
        (a_count(7, 1),),
        (a_count(5, 1),),
        (a_count(3, 1), a_count(5, 5), a_count(3, 6)),
        (replace(a_count(3, 1), body=b'{"spec": {}}'),),
        (replace(a_count(3, 1), method="PUT", body=b'{"spec": {"replicas": 1}}'),),
    ],
    ids=["nothing", "too many", "before it was asked", "back", "given up", "below the floor"],
)
def test_counts_that_nobody_asked_for_are_found(evidence, counts):
    """I6: never below what Git says, and never lowered by what is not known."""
    value = a_request("PATCH", "side", {"data": {"key": "v"}}, 5)
    found = violations(evidence(wanted=ASKED, forwarded=(value, *counts)))

    assert ["I6"] == [text.partition(":")[0] for text in found]


@pytest.mark.parametrize(("second", "found"), [(1, 0), (3, 1)], ids=["at first", "owned"])
def test_the_count_of_an_autoscaler_is_left_to_it(evidence, second, found):
    """I6: from the moment on that it owns the count."""
    value = a_request("PATCH", "side", {"data": {"key": "v"}}, 5)
    made = replace(a_count(2, second), path=f"{DEPLOYMENTS}/scaled")
    seen = evidence(forwarded=(value, made), scaled_ms=START_MS + 2_000)

    assert found == len(violations(seen))


def test_secrets_and_lost_notes_are_found(evidence, tmp_path):
    (tmp_path / "controller.log").write_text("token s3cret-token\n", encoding="utf-8")
    found = violations(evidence(foreign={"NOTES.md": "mine"}))

    assert ["I12", "I7"] == sorted(text.partition(":")[0] for text in found)


def test_a_secret_may_stand_in_secrets_only(evidence):
    """I7: neither in events nor in conditions of the fleet."""
    value = a_request("PATCH", "side", {"data": {"key": "v"}}, 5)
    own = replace(
        a_request("PATCH", "key", {"data": {"key": "s3cret-token"}}, 6),
        path="/api/v1/namespaces/llm/secrets/key",
    )
    event = replace(own, path="/apis/events.k8s.io/v1/namespaces/llm/events", method="POST")

    assert [] == violations(evidence(forwarded=(value, own)))
    assert ["I7"] == [v.partition(":")[0] for v in violations(evidence(forwarded=(value, event)))]


def test_a_secret_in_the_status_branch_is_found(evidence):
    """I7: in any commit of it, also where it has left again."""
    text = f"lastAppliedRevision: main@sha1:{COMMIT}\nnote: s3cret-token\n"

    assert ["I7"] == [v.partition(":")[0] for v in violations(evidence(status=text))]


def test_a_status_branch_with_two_roots_is_found(evidence, tmp_path):
    """I12: nobody's commits are replaced by a history of ours."""
    seen = evidence()
    bare = tmp_path / "fleet.git"
    stream = (
        "commit refs/heads/other\ncommitter Stoker <s@example.invalid> 1 +0000\ndata 1\nx\n\n"
        "commit refs/heads/status\ncommitter P <p@example.invalid> 1 +0000\ndata 1\nx\n"
        "from refs/heads/status^0\nmerge refs/heads/other\n\n"
    )
    subprocess.run(
        ["git", "-C", str(bare), "fast-import", "--quiet"], input=stream.encode(), check=True
    )

    assert ["I12"] == [text.partition(":")[0] for text in violations(seen)]


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("PATCH", f"{MAPS}/side", 1),
        ("PATCH", f"{MAPS}/side?dryRun=All", 0),
        ("GET", f"{MAPS}/side", 0),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/stoker-system/leases/stoker-f", 0),
    ],
    ids=["a write", "a dry run", "a read", "the lease"],
)
def test_a_fixed_point_is_left_alone(method, path, found):
    """I5: no write once everything is as it should be."""
    early = Forwarded(START_MS, "PATCH", f"{MAPS}/side", b"", 200)
    late = Forwarded(START_MS + 2, method, path, b"", 200)

    assert found == len(not_left_alone([early, late], START_MS + 1))


@pytest.mark.parametrize(
    ("killed", "had_started", "found"),
    [(False, True, 1), (True, True, 0), (False, False, 0)],
    ids=["by itself", "killed", "at its start"],
)
def test_a_process_that_ends_by_itself_is_found(killed, had_started, found):
    """I9: faults of others never end a process that works."""
    assert found == len(ended_by_itself("one", 1, killed=killed, had_started=had_started))


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_plan_is_the_same_each_time_and_mixes_three_kinds(seed):
    plan = plan_of(seed, 20.0)

    assert plan == plan_of(seed, 20.0)
    assert len({str(w.fault) for w in plan.windows}) >= 3
    assert {"commit", "remove"} <= {h.what for h in plan.happenings}
    assert all(0 <= w.start < w.end <= 20.0 for w in plan.windows)


def test_every_fault_is_drawn_by_some_seed():
    """None is there for show: two hundred seeds meet them all."""
    plans = [plan_of(seed, 15.0) for seed in range(1, 201)]
    happened = {h.what for plan in plans for h in plan.happenings}
    met = {(w.fault.kind, w.fault.only) for plan in plans for w in plan.windows}

    assert set(GIT) | set(PROCESS) <= happened
    assert {make(random.Random(1)).kind for make in API} == set(Kind)
    assert len(met) == len({(f.kind, f.only) for f in drawn()})


def drawn() -> list[ApiFault]:
    return [make(random.Random(seed)) for make in API for seed in range(30)]


@pytest.mark.parametrize(
    ("only", "method", "path", "fits"),
    [
        (Only.LISTS, "GET", "/api/v1/pods?limit=500", True),
        (Only.LISTS, "GET", "/api/v1/pods?watch=true", True),
        (Only.LISTS, "GET", f"{MAPS}/side", False),
        (Only.WRITES, "PATCH", f"{MAPS}/side", True),
        (Only.WRITES, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", False),
        (Only.DELETES, "DELETE", f"{MAPS}/side", True),
        (Only.DELETES, "PATCH", f"{MAPS}/side", False),
        (Only.DISCOVERY, "GET", "/apis", True),
        (Only.DISCOVERY, "GET", "/apis/apps/v1", True),
        (Only.DISCOVERY, "GET", "/api/v1", True),
        (Only.DISCOVERY, "GET", "/version", False),
        (Only.DISCOVERY, "GET", "/api/v1/nodes?limit=500", False),
    ],
)
def test_a_fault_meets_the_requests_that_it_is_for(only, method, path, fits):
    assert fits == only.fits(method, path)


def test_lanes_share_the_seeds_and_one_seed_can_be_had_alone():
    """Each seed is run once, whatever the number of lanes."""
    shared = slice_of({"FAULT_SEEDS": "7", "FAULT_LANES": "3", "FAULT_FIRST": "11"})
    alone = slice_of({"FAULT_SEED": "42", "FAULT_LANES": "3", "FAULT_MINUTES": "10"})

    assert sorted(range(11, 18)) == sorted(s for lane in range(3) for s in shared.seeds(lane))
    assert [42] == [s for lane in range(alone.lanes) for s in alone.seeds(lane)]
