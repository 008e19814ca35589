"""What `stoker status` leaves out and what it does not make up."""

from __future__ import annotations

import subprocess

import yaml

from stoker.cli.status_view import is_ready, only_namespace
from stoker.git import GitRepo
from stoker.report import StatusView
from stoker.sim.clock import VirtualClock

ERROR = {"code": "unknown-field", "message": "m", "path": "w.yaml", "line": 1, "column": 1}
FLEET_ERROR = {"code": "no-units", "message": "m", "path": "f.yaml", "line": 1, "column": 1}


def unit(kind, namespace, name, errors=()):
    return {
        "unit": f"{kind}/{namespace}/{name}",
        "sync": {"status": "Synced"},
        "health": {"status": "Healthy"},
        "conditions": [],
        "objects": {"total": 1, "synced": 1},
        "errors": list(errors),
    }


DOCUMENTS = {
    "status.yaml": {
        "metadata": {"name": "prod"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "attention": [{"unit": "Bundle/llm/a"}, {"unit": "Bundle/web/w"}],
        "errors": [ERROR, FLEET_ERROR],
    },
    "units/bundle.llm.a.yaml": unit("Bundle", "llm", "a"),
    "units/bundle.web.w.yaml": unit("Bundle", "web", "w", [ERROR]),
}


def test_a_namespace_shows_its_units_and_the_trouble_of_the_fleet():
    """Errors of units that are not shown would look like the fleet's own."""
    shown = only_namespace(StatusView(DOCUMENTS, 0), "llm").documents

    assert sorted(shown) == ["status.yaml", "units/bundle.llm.a.yaml"]
    assert [e["unit"] for e in shown["status.yaml"]["attention"]] == ["Bundle/llm/a"]
    assert shown["status.yaml"]["errors"] == [FLEET_ERROR]


def test_without_a_namespace_everything_is_shown():
    view = StatusView(DOCUMENTS, 0)

    assert only_namespace(view, "") is view


def test_ready_is_what_the_condition_says():
    """No condition is no yes."""
    assert is_ready(StatusView(DOCUMENTS, 0))
    assert not is_ready(StatusView({"status.yaml": {"conditions": []}}, 0))
    assert not is_ready(StatusView({}, 0))


def on_a_branch(shell, files: dict[str, bytes | None]):
    """A clone with these files on its status branch."""
    folder = shell.fleet()
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    with GitRepo(
        str(folder), "main", shell.folder / "mirror", clock=VirtualClock(), allow_file=True
    ) as repo:
        repo.commit_files("refs/heads/stoker-status/local", files, "status")
    return folder


def test_files_of_the_branch_that_cannot_be_read_are_named_and_not_taken_for_empty(shell):
    """Anybody with rights on the branch can have written them."""
    deep = b"a: " + b"[" * 200_000
    files: dict[str, bytes | None] = {
        path: yaml.safe_dump(data).encode() for path, data in DOCUMENTS.items()
    }
    files |= {
        "units/bundle.web.w.yaml": deep,
        "units/bundle.web.x.yaml": b"x" * (5 * 2**20 + 1),
        "notes.txt": b"x" * (5 * 2**20 + 1),
    }
    folder = on_a_branch(shell, files)

    answer = shell("status", "-f", folder, "--git", "--all")
    as_json = shell("status", "-f", folder, "--git", "-o", "json")

    assert (0, 0) == (answer.code, as_json.code)
    assert "llm/a" in answer.out
    for name in ("w", "x"):
        assert f"UNREADABLE units/bundle.web.{name}.yaml   what it says is unknown" in answer.out
        assert f"units/bundle.web.{name}.yaml cannot be read" in as_json.err
    assert "notes.txt" not in answer.out


def test_a_status_that_cannot_be_read_is_unknown_and_not_ready(shell):
    folder = on_a_branch(shell, {"status.yaml": b"a: " + b"[" * 200_000})

    answer = shell("status", "-f", folder, "--git")

    assert "Unknown" in answer.out
    assert "UNREADABLE status.yaml" in answer.out
    assert 1 == shell("status", "-f", folder, "--git", "--check").code


def test_the_branch_of_a_clone_is_read_without_a_cluster(shell):
    """At three in the morning the cluster may be what does not answer."""
    files: dict[str, bytes | None] = {
        path: yaml.safe_dump(data).encode() for path, data in DOCUMENTS.items()
    }
    folder = on_a_branch(shell, files)
    answer = shell("status", "-f", folder, "-n", "llm", "--all")

    assert answer.code == 0
    assert answer.out.startswith("fleet prod ")
    assert "source: git stoker-status/local@" in answer.out
    assert "(no kubeconfig at" in answer.out
    assert "llm/a" in answer.out
    assert "web/w" not in answer.out
