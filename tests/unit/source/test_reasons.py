from __future__ import annotations

import ast
import re
from pathlib import Path

import stoker.git
import stoker.source
from stoker.git.trouble import Trouble
from stoker.source import REASONS

KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+|bug")


def used() -> set[str]:
    """Every text of the two folders that is a reason code by its look and place."""
    found = {trouble.value for trouble in Trouble}
    for package in (stoker.git, stoker.source):
        for path in Path(str(package.__file__)).parent.glob("*.py"):
            if path.name == "reasons.py":
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and node.value in REASONS:
                    found.add(str(node.value))
                if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
                    found |= {str(node.value.value)} if node.arg == "code" else set()
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {
                    "Finding",
                    "Problem",
                    "PydanticCustomError",
                }:
                    found |= {
                        arg.value
                        for arg in node.args[:2]
                        if isinstance(arg, ast.Constant)
                        and isinstance(arg.value, str)
                        and KEBAB.fullmatch(arg.value)
                    }
    return found


def test_the_published_list_is_closed():
    assert used() == set(REASONS)


def test_each_code_has_one_line_for_people():
    for code, text in REASONS.items():
        assert KEBAB.fullmatch(code), code
        assert re.fullmatch(r"[A-Za-z].{10,110}\.", text), code
    assert list(REASONS) == sorted(REASONS)
