"""The judge of fault runs sees each violation, and none where there is none."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults.oracle import Evidence, violations
from faults.plan import plan_of
from faults.proxy import Forwarded

START_MS = 1_795_910_400_000
MAPS = "/api/v1/namespaces/llm/configmaps"
COMMIT = "a" * 40


def entry(user: str, verb: str, what: str, second: float, code: int = 200) -> dict[str, Any]:
    """A line of the audit log; `what` is resource/namespace/name."""
    resource, namespace, name = what.split("/")
    return {
        "verb": verb,
        "requestURI": f"/{what}",
        "user": {"username": "admin"},
        "impersonatedUser": {"username": user},
        "objectRef": {"resource": resource, "namespace": namespace, "name": name},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-11-29T00:00:{second:09.6f}Z",
    }


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
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        text = status or f"lastAppliedRevision: main@sha1:{COMMIT}\n"
        stream = (
            "commit refs/heads/status\n"
            f"committer S <s@example.invalid> {START_MS // 1000 + 10} +0000\n"
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
            values={COMMIT: "v"},
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
        ((RENEWED, written("one", 2, "secrets/llm/x")), "I3"),
        ((RENEWED, written("one", 2, "configmaps/kube-system/x")), "I3"),
        ((RENEWED, *(written("one", 2 + n / 100) for n in range(40))), "I4"),
    ],
    ids=["stale", "no lease", "late", "lost race", "kind", "namespace", "storm"],
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
        {"values": {"b" * 40: "v"}},
        {"forwarded": ()},
    ],
    ids=["claimed too early", "no such commit", "never written"],
)
def test_a_status_that_lies_is_found(evidence, more):
    assert "I8" == violations(evidence(**more))[0].partition(":")[0]


def test_secrets_and_lost_notes_are_found(evidence, tmp_path):
    (tmp_path / "controller.log").write_text("token s3cret-token\n", encoding="utf-8")
    found = violations(evidence(foreign={"NOTES.md": "mine"}))

    assert ["I12", "I7"] == sorted(text.partition(":")[0] for text in found)


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_plan_is_the_same_each_time_and_mixes_three_kinds(seed):
    plan = plan_of(seed, 20.0)

    assert plan == plan_of(seed, 20.0)
    assert len({(w.fault.kind, w.fault.status) for w in plan.windows}) >= 3
    assert {"commit", "remove"} <= {h.what for h in plan.happenings}
    assert all(0 <= w.start < w.end <= 20.0 for w in plan.windows)
