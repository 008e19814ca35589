"""`stoker history` from the versions of status files."""

from __future__ import annotations

import yaml

from stoker.cli.history_rows import fleet_rows, unit_rows
from stoker.git.versions import FileVersion

DAY = 1_764_000_000_000


def version(number: int, data: dict | str | None) -> FileVersion:
    """The file as of a minute; text stands for itself."""
    content = None if data is None else (data if isinstance(data, str) else yaml.safe_dump(data))
    made = content.encode() if content is not None else None
    return FileVersion(f"{number:040x}", DAY + number * 60_000, made)


def entry(revision: str, started: str, **more) -> dict:
    return {"revision": revision, "result": "Applied", "started": started, "coldStarts": 0, **more}


def unit(model: str, ready: str, reason: str, applied: str = "4f1c2d9", **more) -> dict:
    return {
        "lastAppliedRevision": f"main@sha1:{applied}{'0' * 33}",
        "model": {"revision": model * 40, "rev": model * 8},
        "replicas": {"desired": 2, "ready": 2},
        "conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": "m"}],
        **more,
    }


def test_a_fleets_revisions_are_told_once_newest_first_as_they_were_told_last():
    first = entry("4f1c2d9", "2026-11-28T14:06:30Z", ready="2026-11-28T14:20:10Z")
    began = entry("9be0a17", "2026-11-28T15:00:00Z", result="Applying")
    done = entry("9be0a17", "2026-11-28T15:00:00Z", ready="2026-11-28T15:01:00Z", coldStarts=4)
    newest_first = [
        version(3, {"history": [done, first]}),
        version(2, {"history": [began, first]}),
        version(1, {"history": [first]}),
    ]

    assert [
        ("9be0a17", "Applied", "2026-11-28T15:00:00Z", "2026-11-28T15:01:00Z", "1m", "4"),
        ("4f1c2d9", "Applied", "2026-11-28T14:06:30Z", "2026-11-28T14:20:10Z", "13m40s", "0"),
    ] == fleet_rows(newest_first)


def test_revisions_that_left_the_newest_file_are_still_known():
    """status.yaml keeps five; the branch keeps them all."""
    old = entry("aaaaaaa", "2026-11-01T00:00:00Z")
    new = entry("bbbbbbb", "2026-11-02T00:00:00Z")

    rows = fleet_rows([version(2, {"history": [new]}), version(1, {"history": [old]})])
    assert ["bbbbbbb", "aaaaaaa"] == [row[0] for row in rows]
    assert "-" == rows[0][3]


def test_a_revision_that_came_back_is_told_twice():
    again = entry("aaaaaaa", "2026-11-03T00:00:00Z")
    first = entry("aaaaaaa", "2026-11-01T00:00:00Z")

    assert 2 == len(fleet_rows([version(1, {"history": [again, first]})]))


def test_a_service_is_told_once_for_each_state_with_since_when():
    held = unit("a", "False", "UpdateFailed", holds=[{"reason": "UpdateFailed", "message": "why"}])
    newest_first = [
        version(4, held),
        version(3, held),
        version(2, unit("a", "True", "Ready")),
        version(1, unit("a", "True", "Ready")),
    ]

    rows = unit_rows(newest_first)
    assert [("UpdateFailed", "why"), ("Ready", "")] == [row[5:] for row in rows]
    assert "2025-11-24T16:03:00Z" == rows[0][0]
    assert ("4f1c2d9", "aaaaaaa", "aaaaaaaa", "2/2") == rows[0][1:5]


def test_what_somebody_else_wrote_there_is_left_out():
    rows = unit_rows([version(2, "- not\n- ours\n"), version(1, unit("a", "True", "Ready"))])
    strange = {"history": [{"revision": 5}, "text", entry("aaaaaaa", "soon", ready="later")]}

    assert 1 == len(rows)
    assert [("aaaaaaa", "Applied", "soon", "later", "-", "0")] == fleet_rows([version(1, strange)])
    assert [] == fleet_rows([version(1, {"history": "none"})])


def test_a_service_that_left_is_told_as_gone():
    rows = unit_rows([version(2, None), version(1, unit("a", "True", "Ready"))])

    assert ["Gone", "Ready"] == [row[5] for row in rows]
