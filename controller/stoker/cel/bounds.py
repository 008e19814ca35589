"""What an expression may be, before anything compiles it.

The runtime bounds iterations and nesting by itself, and nothing bounds how large a value
grows. Each + at most doubles what an expression holds, so few of them are allowed; the
functions that multiply text are ours and bounded (library). Called by evaluator.
"""

from __future__ import annotations

import re

from stoker.model.expression import Fault

__all__ = ["MAX_CHARACTERS", "MAX_SUMS", "out_of_bounds"]

MAX_CHARACTERS = 4096
"""Of one expression; those we ship have 400."""

MAX_SUMS = 8
"""Signs of + in one expression: 256 times the largest text of an object at most."""

_TEXT = re.compile(
    r"""[rR]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|//[^\n]*""", re.DOTALL
)


def out_of_bounds(expression: str) -> Fault | None:
    """Why the expression is not even compiled; None when it may be."""
    if len(expression) > MAX_CHARACTERS:
        return Fault(f"has {len(expression)} characters; {MAX_CHARACTERS} are allowed")
    code = _TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), expression)
    sums = [found.start() for found in re.finditer(r"\+", code)]
    if len(sums) > MAX_SUMS:
        at = sums[MAX_SUMS]
        line = code.count("\n", 0, at) + 1
        column = at - (code.rfind("\n", 0, at) + 1) + 1
        return Fault(f"has more than {MAX_SUMS} signs of +; use join()", line, column)
    return None
