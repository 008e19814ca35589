"""Completion scripts are printed, never installed, and complete commands."""

import pytest


@pytest.mark.parametrize(
    ("shell_name", "sign"),
    [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --command stoker")],
)
def test_the_script_of_a_shell_is_printed(shell, shell_name, sign):
    answer = shell("completion", shell_name)

    assert answer.code == 0
    assert sign in answer.out
    assert "_STOKER_COMPLETE" in answer.out
    assert answer.err == ""


def test_an_unknown_shell_names_the_known_ones(shell):
    answer = shell("completion", "pwsh")

    assert answer.code == 2
    assert "bash, zsh or fish" in answer.err
