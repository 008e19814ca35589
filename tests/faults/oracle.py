"""What must hold after a run, whatever went wrong in it: invariants of research part c.

In: the audit log, what the proxies let through, and the bare repository. Out: sentences, one a
violation. It never looks into a controller.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from faults.proxy import Forwarded
from stoker.model.times import to_milliseconds

__all__ = ["Evidence", "Wanted", "ended_by_itself", "not_left_alone", "violations"]

WRITES = frozenset({"create", "update", "patch", "delete"})
PLACES = {
    "": frozenset({"namespaces", "selfsubjectreviews"}),
    "stoker-system": frozenset({"configmaps", "leases", "fleets", "events"}),
}
"""Where a fleet of bundles may write what, beside its own namespace."""
OWN = frozenset(
    {
        *("configmaps", "services", "events", "modelservices"),
        *("deployments", "horizontalpodautoscalers", "secrets"),
    }
)
WRITES_A_MINUTE = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """A commit of the fleet, what its ConfigMap `side` says, and the count of `counted`."""

    at_ms: int
    commit: str
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything there is to judge by. `wanted` is what Git said, oldest first."""

    audit_log: Path
    since_ms: int
    users: tuple[str, ...]
    lease_reach_ms: int
    """From a renewal to the last arrival of a write that it still covers."""
    namespace: str
    forwarded: Sequence[Forwarded]
    wanted: Sequence[Wanted]
    removed_ms: dict[str, int]
    """When each ConfigMap left Git."""
    edits: Counter[str]
    """How often somebody changed an object, in Git or by hand."""
    bare: Path
    branch: str
    foreign: dict[str, str]
    """Files that people committed to the status branch."""
    secrets: tuple[str, ...]
    logs: tuple[Path, ...]
    stalls: tuple[tuple[int, int], ...] = ()
    """When the API server stood still: what lay in its sockets arrives late, in its own words."""
    scaled_ms: int = 1 << 60
    """Since when an autoscaler owns the count of `scaled`."""
    audit_from: int = 0
    """The byte of the audit log at which the run begins."""


@dataclass(frozen=True, slots=True)
class _Write:
    at_ms: int
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    subresource: str


def violations(seen: Evidence) -> list[str]:
    """All that is wrong, in the order of the invariants."""
    writes = list(_writes(seen))
    return [
        *_one_writer(seen, writes),
        *_deletes_with_proof(seen),
        *_only_where_allowed(seen, writes),
        *_few_writes(seen, writes),
        *_counts_as_wanted(seen, writes),
        *_no_secrets(seen),
        *_status_tells_the_truth(seen),
        *_linear(seen),
    ]


def not_left_alone(forwarded: Iterable[Forwarded], since_ms: int) -> list[str]:
    """I5: what was written although all was as it should be."""
    return [
        f"I5: {request.method} {request.path} at rest"
        for request in forwarded
        if request.at_ms > since_ms
        and request.method != "GET"
        and "dryRun" not in request.path
        and "/leases" not in request.path
        and "/selfsubjectreviews" not in request.path  # a process that just started
    ]


def ended_by_itself(user: str, returncode: int, *, killed: bool, had_started: bool) -> list[str]:
    """I9: a process that once worked ends only when the test ends it."""
    return [] if killed or not had_started else [f"I9: {user} ended with {returncode}"]


def _writes(seen: Evidence) -> Iterator[_Write]:
    """Writes of our users as the API server noted them, by arrival."""
    found = []
    with seen.audit_log.open("rb") as log:
        log.seek(seen.audit_from)
        lines = log.read().splitlines()
    for line in lines:
        event = json.loads(line)
        user = (event.get("impersonatedUser") or event["user"])["username"]
        at_ms = to_milliseconds(event["requestReceivedTimestamp"])
        if event["verb"] not in WRITES or user not in seen.users or at_ms < seen.since_ms:
            continue
        if "dryRun" in event["requestURI"]:
            continue
        place = event.get("objectRef") or {}
        found.append(
            _Write(
                at_ms,
                user,
                event["verb"],
                str(place.get("resource", "")),
                str(place.get("namespace", "")),
                str(place.get("name", "")),
                int((event.get("responseStatus") or {}).get("code", 0)),
                str(place.get("subresource", "")),
            )
        )
    return iter(sorted(found, key=lambda write: write.at_ms))


def _one_writer(seen: Evidence, writes: list[_Write]) -> Iterator[str]:
    """I1: no write by who does not lead, by what the API server knew then."""
    holder, renewed = "", 0
    for write in writes:
        if write.resource == "leases":
            if write.code < 300:
                holder, renewed = write.user, write.at_ms
            continue
        if write.resource in {"selfsubjectreviews", "namespaces"}:
            continue
        if write.user != holder:
            yield f"I1: {_told(write)} while {holder or 'nobody'} held the lease"
        elif write.at_ms > renewed + seen.lease_reach_ms and not _stalled(seen, write.at_ms):
            late = (write.at_ms - renewed) / 1000
            yield f"I1: {_told(write)} {late:.1f} s after the last renewal"


def _stalled(seen: Evidence, at_ms: int) -> bool:
    return any(start <= at_ms <= end for start, end in seen.stalls)


def _deletes_with_proof(seen: Evidence) -> Iterator[str]:
    """I2: no delete without a UID, and none of what Git has."""
    for request in seen.forwarded:
        if request.method != "DELETE":
            continue
        options = json.loads(request.body or b"{}")
        path = urlsplit(request.path).path
        name = path.rpartition("/")[2]
        if "uid" not in (options.get("preconditions") or {}):
            yield f"I2: DELETE {path} without a UID"
        removed = seen.removed_ms.get(name) if "/configmaps/" in path else None
        shard = "/namespaces/stoker-system/configmaps/stoker-" in path
        if not shard and (removed is None or request.at_ms < removed):
            yield f"I2: DELETE {path}, which stood in Git"


def _only_where_allowed(seen: Evidence, writes: list[_Write]) -> Iterator[str]:
    """I3: no write outside of the fleet's namespaces and kinds."""
    allowed = {**PLACES, seen.namespace: OWN}
    for write in writes:
        place = "" if write.resource == "namespaces" else write.namespace
        if write.resource not in allowed.get(place, ()):
            yield f"I3: {_told(write)}"


def _few_writes(seen: Evidence, writes: list[_Write]) -> Iterator[str]:
    """I4: ten a minute and object, and one for each time that somebody changed it."""
    by_object: dict[tuple[str, str], list[int]] = {}
    for write in writes:
        if write.namespace == seen.namespace and write.resource != "events":
            by_object.setdefault((write.resource, write.name), []).append(write.at_ms)
    for (resource, name), instants in sorted(by_object.items()):
        most = max(sum(start <= other < start + 60_000 for other in instants) for start in instants)
        bound = WRITES_A_MINUTE + 2 * seen.edits[name]
        if most > bound:
            yield f"I4: {most} writes of {resource} {name} within a minute, {bound} are plenty"


def _counts_as_wanted(seen: Evidence, writes: list[_Write]) -> Iterator[str]:
    """I6: a count is one that Git has asked for, never an older one again, never another's."""
    for write in writes:
        if write.subresource == "scale":
            yield f"I6: {_told(write)}/scale"
    reached: dict[str, int] = {}
    for request in sorted(seen.forwarded, key=lambda request: request.at_ms):
        name = urlsplit(request.path).path.partition("/deployments/")[2]
        if request.method == "GET" or "dryRun" in request.path or request.status >= 300:
            continue
        if name == "scaled" and request.at_ms >= seen.scaled_ms:
            if "replicas" in _spec(request):
                yield f"I6: {request.by} writes the count of scaled, which an autoscaler owns"
        elif name == "counted":
            count = _spec(request).get("replicas")
            known = [w for w in seen.wanted if w.at_ms <= request.at_ms]
            steps = [n for n, w in enumerate(known) if w.count == count]
            if not steps:
                yield f"I6: {request.by} writes {count} replicas, which Git never asked for"
            elif steps[-1] < reached.get(request.by, 0):
                yield f"I6: {request.by} goes back to {count} replicas of an older commit"
            else:
                back = reached.get(request.by, 0)
                reached[request.by] = next(step for step in steps if step >= back)


def _no_secrets(seen: Evidence) -> Iterator[str]:
    """I7: no secret in logs, in Git's status, or in what is written to the cluster about it."""
    texts = {str(log): log.read_text(encoding="utf-8", errors="replace") for log in seen.logs}
    texts["the status branch"] = _git(seen, "log", "-p", seen.branch)
    for request in seen.forwarded:
        path = urlsplit(request.path).path
        if "/secrets/" not in path:
            texts[path] = texts.get(path, "") + request.path + request.body.decode(errors="replace")
    for place, text in texts.items():
        for secret in seen.secrets:
            if secret in text:
                yield f"I7: a secret stands in {place}"


def _status_tells_the_truth(seen: Evidence) -> Iterator[str]:
    """I8: status never claims a revision whose values had not been written by then."""
    written: dict[str, int] = {}
    for request in sorted(seen.forwarded, key=lambda request: request.at_ms):
        if request.method == "PATCH" and request.status < 300:
            value = _value_of(request)
            if value:
                written.setdefault(value, request.at_ms)
    values = {wanted.commit: wanted.value for wanted in seen.wanted}
    rows = _git(seen, "log", "--reverse", "--format=%H %ct %an", seen.branch).splitlines()
    for row in rows:
        commit, seconds, author = row.split(" ", 2)
        if author != "Stoker":
            continue
        status = yaml.safe_load(_git(seen, "show", f"{commit}:status.yaml")) or {}
        applied = str(status.get("lastAppliedRevision", "")).rpartition("sha1:")[2]
        if not applied:
            continue
        if applied not in values:
            yield f"I8: status {commit[:7]} claims {applied[:7]}, which is no commit of the fleet"
        elif written.get(values[applied], 1 << 60) > (int(seconds) + 1) * 1000:
            yield f"I8: status {commit[:7]} claims {applied[:7]} before it was written"


def _value_of(request: Forwarded) -> str:
    data = _body(request).get("data")
    value = data.get("key") if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def _spec(request: Forwarded) -> dict[str, Any]:
    spec = _body(request).get("spec")
    return spec if isinstance(spec, dict) else {}


def _body(request: Forwarded) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _linear(seen: Evidence) -> Iterator[str]:
    """I12: one line of commits, and nobody's file touched."""
    rows = _git(seen, "rev-list", "--parents", seen.branch).splitlines()
    parents = sorted(len(row.split()) - 1 for row in rows)
    if parents != [0] + [1] * (len(parents) - 1):
        yield f"I12: the status branch is not linear: {Counter(parents)}"
    for path, text in sorted(seen.foreign.items()):
        if _git(seen, "show", f"{seen.branch}:{path}") != text:
            yield f"I12: {path} is not what somebody committed"


def _told(write: _Write) -> str:
    return f"{write.user} did {write.verb} {write.resource} {write.namespace}/{write.name}"


def _git(seen: Evidence, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(seen.bare), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
