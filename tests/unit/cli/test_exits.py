"""One table of exit codes for all commands, and errors in the same words everywhere."""

import signal
import subprocess
import sys

import pytest

from shape.docs_console import environment
from stoker.cli.app import run
from stoker.cli.exits import Exit, exit_code_of, print_findings
from stoker.errors import (
    BadInput,
    Bug,
    Finding,
    Refused,
    Severity,
    SourceLocation,
    Stalled,
    Unreachable,
    Waiting,
)
from stoker.git import GitRepo
from stoker.sim.clock import VirtualClock

NOT_READY = (
    b"apiVersion: stoker.dev/v1alpha1\nkind: FleetStatus\nmetadata: {name: local}\n"
    b'conditions: [{type: Ready, status: "False", reason: UnitsNotReady, message: ""}]\n'
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput((Finding(SourceLocation("a.yaml", 1, 1), "unknown-field", "x"),)), 2),
        (Stalled("x", code="wrong-cluster"), 2),
        (Stalled("x", code="kubeconfig-exec-refused"), 2),
        (Stalled("x", code="ref-not-found"), 2),
        (Stalled("x", code="fleet-file-missing"), 2),
        (Stalled("x", code="adoption-required"), 3),
        (Refused("x", code="forbidden"), 3),
        (Unreachable("x"), 3),
        (Waiting("x"), 3),
        (Bug("x"), 3),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_errors_become_codes(error, code):
    assert exit_code_of(error) == code


def test_doing_its_job_is_0(shell):
    answer = shell("version")

    assert answer.code == 0
    assert answer.out.startswith("stoker ")


def test_a_goal_not_reached_is_1(shell):
    """`status --check` in a pipeline, from the status branch alone."""
    folder = shell.fleet()
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    repo = GitRepo(
        str(folder), "main", shell.folder / "mirror", clock=VirtualClock(), allow_file=True
    )
    with repo:
        repo.commit_files("refs/heads/stoker-status/local", {"status.yaml": NOT_READY}, "status")
    plain = shell("status", "--git", "-f", folder)
    checked = shell("status", "--git", "--check", "-f", folder)

    assert (0, 1) == (plain.code, checked.code)
    assert plain.out == checked.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["diff", "--nope"],
        ["diff", "-o", "nope"],
        ["plan", "-o", "nope"],
        ["status", "-o", "nope"],
        ["run"],
        ["run", "--repo", "https://forge.invalid/a.git", "--log-level", "loud"],
        ["run", "--repo", "https://forge.invalid/a.git", "--poll-interval", "soon"],
        ["run", "--repo", "nonsense"],
        ["completion", "pwsh"],
        ["schema"],
        ["schema", "Nope"],
        ["install"],
        ["diff", "-f", "nowhere"],
        ["diff", "--kubeconfig", "/nowhere"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_2_and_says_what_would_be_right(shell, arguments):
    answer = shell(*arguments)

    assert answer.code == 2
    assert answer.out == ""
    assert answer.err
    assert "Traceback" not in answer.err


def test_a_folder_as_repository_must_be_allowed(shell):
    answer = shell("run", "--repo", shell.fleet(), "--once")

    assert answer.code == 2
    assert "--allow-file" in answer.err


def test_what_cannot_be_decided_is_3(shell):
    """No cluster and no status branch: there is nothing to show."""
    folder = shell.fleet()
    answer = shell("status", "--git", "-f", folder)

    assert answer.code == 3
    assert answer.err.startswith("error: no status to show: no branch stoker-status/local here")


def test_a_file_that_cannot_be_written_is_3_and_no_crash(shell):
    (shell.folder / "file").write_text("")
    answer = shell("init", shell.folder / "file" / "below", "--cluster-uid", "x")

    assert answer.code == 3
    assert "[file-error]" in answer.err
    assert "crashed" not in answer.err


def test_a_bug_is_70_with_the_traceback_only_on_request(shell, capsys):
    """No command has a known bug, so one is made: an argument that is no text."""
    quiet = run([None])  # type: ignore[list-item]
    told = capsys.readouterr().err
    loud = run([None, "--debug"])  # type: ignore[list-item]

    assert (Exit.CRASH, Exit.CRASH) == (quiet, loud)
    assert told.startswith("stoker crashed: ")
    assert "Traceback" not in told
    assert "Traceback" in capsys.readouterr().err


def test_interrupted_is_130(tmp_path):
    """The controller waits for a repository that does not answer; Ctrl-C ends it."""
    command = [sys.executable, "-m", "stoker", "run", "--repo", "https://127.0.0.1:9/a.git"]
    process = subprocess.Popen(
        [*command, "--fleet", "fleet.yaml", "--listen", ""],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # a test run in the background hands SIGINT down as ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    with process:
        assert process.stderr is not None
        assert "source.failed" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()

    assert process.returncode == 130, rest
    assert rest.endswith("interrupted\n")


def test_findings_are_printed_at_once_errors_first(capsys):
    """What has a place is found in it; what has none says what to do below."""
    print_findings(
        (
            Finding(SourceLocation("b.yaml", 2, 1), "x", "odd", severity=Severity.WARNING),
            Finding(SourceLocation("c.yaml", 3, 5), "y", "wrong", "spec.a", "do that"),
            Finding(SourceLocation(), "usage", "no", hint="yes"),
        )
    )

    assert capsys.readouterr().err == (
        "error: no [usage]\n  yes\n"
        "c.yaml:3:5: spec.a: wrong [y] (do that)\n"
        "warning: b.yaml:2:1: odd [x]\n"
    )


def test_foreign_text_cannot_move_the_cursor(capsys):
    """Names in files are anybody's: escape sequences stay out of the terminal."""
    print_findings((Finding(SourceLocation("a\x1b[2J.yaml", 1, 1), "x", "t\x07"),))

    assert "\x1b" not in capsys.readouterr().err
