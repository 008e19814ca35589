"""No text of anybody becomes a program: no shell, no eval, no pickle, in none of our files."""

from __future__ import annotations

import ast
from functools import cache

from shape.sources import PACKAGE, nodes

FORBIDDEN = frozenset(
    {
        *("eval", "exec", "compile", "__import__"),
        *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
        *("pickle.load", "pickle.loads", "marshal.loads", "yaml.unsafe_load", "yaml.full_load"),
    }
)


@cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """Every call in the package, as (file, what is called, the call)."""
    return list(_calls())


def _calls():
    for file, found in nodes():
        for node in found:
            if isinstance(node, ast.Call):
                yield f"{file.relative_to(PACKAGE.parent)}", ast.unparse(node.func), node


def test_nothing_is_given_to_a_shell_or_evaluated():
    """b.F row 39 (CVE-2021-41254): programs get argument lists."""
    assert [] == [f"{file}: {called}" for file, called, _ in calls() if called in FORBIDDEN]
    assert [] == [
        file
        for file, called, call in calls()
        if called.startswith("subprocess.") and any(word.arg == "shell" for word in call.keywords)
    ]


def test_every_request_of_ours_leaves_redirects_alone():
    """b.C row 125: the default of the HTTP client is to follow none, and nobody turns it on."""
    assert [] == [
        file
        for file, _, call in calls()
        if any(
            word.arg in {"follow_redirects", "redirect"} and ast.unparse(word.value) != "False"
            for word in call.keywords
        )
    ]
