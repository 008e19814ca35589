"""Differences between two pieces of plain JSON data, and putting them back together.

In: data as model.codec gives it. `difference` and `patched` are inverse for any JSON data;
a list that grew or shrank in one place costs only that place. Called by records.
"""

from __future__ import annotations

from typing import Any

__all__ = ["difference", "patched"]

# A difference is a list: ["="] equal, ["!", value] replaced, ["{", changed, gone] mapping,
# ["[", start, removed, inserted] list spliced, ["@", {index: difference}] entries changed.


def difference(before: Any, after: Any) -> list[Any]:
    """What turns `before` into `after`."""
    if _same(before, after):
        return ["="]
    if isinstance(before, dict) and isinstance(after, dict):
        return _of_mappings(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _of_lists(before, after)
    return ["!", after]


def patched(before: Any, change: list[Any]) -> Any:
    """`after`, from `before` and their difference; raises ValueError if they do not fit."""
    match change:
        case ["="]:
            return before
        case ["!", value]:
            return value
        case ["{", dict(changed), list(gone)] if isinstance(before, dict):
            kept = {key: value for key, value in before.items() if key not in gone}
            for key, inner in changed.items():
                kept[key] = patched(before.get(key), inner)
            return kept
        case ["[", int(start), int(removed), list(inserted)] if isinstance(before, list):
            return before[:start] + inserted + before[start + removed :]
        case ["@", dict(changed)] if isinstance(before, list):
            entries = list(before)
            for index, inner in changed.items():
                entries[int(index)] = patched(before[int(index)], inner)
            return entries
    message = f"a difference of kind {change[:1]} does not fit {type(before).__name__}"
    raise ValueError(message)


def _same(before: Any, after: Any) -> bool:
    """Equal in type too: 1, 1.0 and true are different JSON."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same(before[k], after[k]) for k in before)
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return bool(before == after)


def _of_mappings(before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    changed: dict[str, Any] = {}
    for key, value in after.items():
        if key not in before:
            changed[key] = ["!", value]
        elif (inner := difference(before[key], value)) != ["="]:
            changed[key] = inner
    return ["{", changed, [key for key in before if key not in after]]


def _of_lists(before: list[Any], after: list[Any]) -> list[Any]:
    if len(before) == len(after):
        changes = {
            str(i): difference(b, a) for i, (b, a) in enumerate(zip(before, after, strict=True))
        }
        return ["@", {i: change for i, change in changes.items() if change != ["="]}]
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(before[-1 - end], after[-1 - end]):
        end += 1
    return ["[", start, len(before) - end - start, after[start : len(after) - end]]
