"""doctor fails only when something needed is missing, and says what does not work."""

import re

import pytest

from stoker.cli.doctor import Check, Verdict, verdict_text
from stoker.cli.style import Style


def program(folder, name, output):
    """A stand-in on PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)


def test_a_machine_with_git_and_without_a_cluster_is_fine(shell):
    answer = shell("doctor")

    assert answer.code == 0
    assert re.search(r"^ok +git +git version", answer.out, re.MULTILINE)
    assert re.search(r"^ok +render jail ", answer.out, re.MULTILINE) or "without" in answer.out
    assert re.search(r"^without +cluster +none to ask: .*KUBECONFIG", answer.out, re.MULTILINE)


def test_without_git_nothing_can_be_read(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    answer = shell("doctor")

    assert answer.code == 2
    assert re.search(r"^missing +git +not installed: ", answer.out, re.MULTILINE)
    assert re.search(r"^without +ssh-keygen +not installed: ", answer.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("said", "code"), [("git version 2.32.0", 0), ("git version 2.31.9", 2), ("hello", 2)]
)
def test_an_old_git_is_missing_too(shell, tmp_path, monkeypatch, said, code):
    """Before 2.32 a person's own git settings could not be kept out."""
    program(tmp_path / "bin", "git", said)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")

    assert shell("doctor").code == code


def test_the_package_of_health_files_is_looked_for(shell, monkeypatch):
    assert re.search(r"^ok +health files +cel-expr-python [0-9]", shell("doctor").out, re.MULTILINE)

    monkeypatch.setattr("stoker.cel.evaluator._is_installed", lambda: False)
    answer = shell("doctor")

    assert answer.code == 0
    told = r"^without +health files +cel-expr-python is not installed: "
    assert re.search(told, answer.out, re.MULTILINE)


def test_lines_are_aligned():
    checks = [Check("git", Verdict.OK, "2.39"), Check("render jail", Verdict.WITHOUT, "no")]

    assert verdict_text(checks, Style(no_color=True)) == (
        "ok       git          2.39\nwithout  render jail  no\n"
    )
