"""The package's own source, read and parsed once for all tests that look into it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import stoker

PACKAGE = Path(stoker.__file__).parent


@cache
def nodes() -> tuple[tuple[Path, tuple[ast.AST, ...]], ...]:
    """Every file, sorted, with all nodes of its syntax tree."""
    return tuple(
        (file, tuple(ast.walk(ast.parse(file.read_text("utf-8")))))
        for file in sorted(PACKAGE.rglob("*.py"))
    )
