"""Hides secrets in everything that people see; never used on what is sent to the cluster.

Single values come in with their object's kind and their place, masked copies go out. Used
by compare for every printed difference, so by diff, status, comments and records alike. A
mask never says how long a value was, and carries no hash of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = [
    "HIDDEN",
    "HIDDEN_CHANGED",
    "hides_by_neighbour",
    "masked",
    "masked_text",
    "names_secret",
]

HIDDEN = "***"
HIDDEN_CHANGED = "*** (changed)"
"""The new side of a changed secret: two equal masks would read as no change."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_SECRET_NAME = re.compile(
    r"passw|passphrase|(?:^|_)pass(?:es)?$|secret|token(?!s|iz|_?(?:limit|count|per))"
    r"|(?:api|access|private|signing|encryption|license)_?key|credential"
    r"|(?:^|_)auth$|authorization|bearer|cookie|(?:^|_)dsn$|connection_?string|webhook_?url",
    re.IGNORECASE,
)
"""Names whose values are secrets. Counts of model tokens (`max_tokens`) are not."""

_ONLY_POINTS = re.compile(r"(?:names?|refs?|path|file|dir)$", re.IGNORECASE)
"""Names of where a secret is, not of what it is (`secretName`, `HF_TOKEN_PATH`)."""

_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\bENC\[AES256_GCM,"
    r"|\bhf_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bglpat-[\w-]{16,}"
    r"|\bsk-[\w-]{16,}|\bAKIA[A-Z0-9]{16}\b|\bxox[abprs]-[\w-]{10,}"
    r"|(?<=[\w-]{8})\.eyJ[\w-]{8,}\.|(?<=[a-z0-9+.-])://[^/\s:@]*:[^/\s@]+@"
    r"|[?&](?i:sig|signature|(?:[a-z]+[_-]?)?token|api_?key|x-(?:amz|goog)-signature)=[^\s&]{8}"
)
"""Values that are secrets wherever they stand: keys, tokens of known makers, URLs with one.

No part of it looks at a letter more than a few times: texts are up to a MiB long, and people
who can push choose them (b.A row 10)."""

_FLAG = re.compile(r"(?P<flag>(?<![\w-])--?(?P<name>[A-Za-z][\w.-]*))(?P<gap>=|\s+)(?P<value>\S+)")
_BARE_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)")


def names_secret(name: str) -> bool:
    """Whether a variable, flag or key of that name holds a secret (`HF_TOKEN`, `--api-key`)."""
    plain = name.replace("-", "_").replace(".", "_")
    return _SECRET_NAME.search(plain) is not None and _ONLY_POINTS.search(plain) is None


def masked(kind: str, path: Sequence[str], value: Any) -> Any:
    """Copy what stands at `path` of an object of that kind, without its secrets.

    `path` holds map keys from the top and, for list items, `[position]` or `[key=value]`.
    `kind` is read from the object, never from a caller's label (cases.md row 149). Env
    entries with a secret's name keep the name and lose the value; arguments keep the flag.
    None (absent) stays None.
    """
    if value is None:
        return None
    if _place_hides(kind, path) or (isinstance(value, str) and _key_hides(path)):
        return HIDDEN
    if isinstance(value, dict):
        return _masked_map(kind, path, value)
    if isinstance(value, list):
        return _masked_list(kind, path, value)
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Free text without secrets: values of secret flags, and whole texts with a known token."""
    if _SECRET_VALUE.search(text):
        return HIDDEN
    return _FLAG.sub(_masked_flag, text)


def hides_by_neighbour(items: Sequence[Any]) -> bool:
    """Whether an item is a secret only because of the one before it (`--api-key`, `abc`)."""
    return any(_is_secret_flag(item) for item in items)


def _is_secret_flag(item: Any) -> bool:
    flag = _BARE_FLAG.fullmatch(item) if isinstance(item, str) else None
    return flag is not None and names_secret(flag["name"])


def _place_hides(kind: str, path: Sequence[str]) -> bool:
    if kind == "Secret":
        if path[:1] in (["data"], ["stringData"], ("data",), ("stringData",)):
            return True
        if tuple(path[:2]) == ("metadata", "annotations") and len(path) > 2:
            return not path[2].startswith("stoker.dev/")
    return _LAST_APPLIED in path or "sops" in path[:1]


def _key_hides(path: Sequence[str]) -> bool:
    """By the last key, or by the name of the env entry that a value belongs to."""
    if not path or path[-1].startswith("["):
        return False
    if path[-1] == "value" and len(path) > 1 and path[-2].startswith("[name="):
        return names_secret(path[-2][len("[name=") : -1])
    return names_secret(path[-1])


def _masked_map(kind: str, path: Sequence[str], value: dict[str, Any]) -> dict[str, Any]:
    secret_entry = isinstance(value.get("value"), str) and names_secret(str(value.get("name", "")))
    return {
        key: HIDDEN if secret_entry and key == "value" else masked(kind, [*path, key], item)
        for key, item in value.items()
    }


def _masked_list(kind: str, path: Sequence[str], value: list[Any]) -> list[Any]:
    result: list[Any] = []
    follows_secret_flag = False
    for number, item in enumerate(value):
        if follows_secret_flag and isinstance(item, str):
            result.append(HIDDEN)
        else:
            result.append(masked(kind, [*path, f"[{number}]"], item))
        follows_secret_flag = _is_secret_flag(item)
    return result


def _masked_flag(match: re.Match[str]) -> str:
    if not names_secret(match["name"]):
        return match[0]
    return f"{match['flag']}{match['gap']}{HIDDEN}"


MAX_REFUSAL = 300
"""Longer messages hold a whole pod spec before they come to the point."""
_HEAD, _TAIL = 60, 160


def masked_refusal(kind: str, reason: str, message: str, causes: Sequence[tuple[str, str]]) -> str:
    """What the API server said about a refused object, fit for print.

    `causes` are (field, message). Messages quote the values they refuse, so of a Secret only
    the reason and the fields are told (reliability-security.md b, row 20), and a long quote
    is cut in its middle: the point comes last.
    """
    if kind == "Secret":
        named = ", ".join(sorted({field for field, _ in causes if field}))
        return f"{reason or 'refused'}: {named}" if named else (reason or "refused")
    if len(message) <= MAX_REFUSAL:
        return masked_text(message)
    if not causes:
        return _cut(masked_text(message))
    return "; ".join(f"{field}: {_cut(masked_text(text))}" for field, text in causes)


def _cut(text: str) -> str:
    if len(text) <= MAX_REFUSAL:
        return text
    return f"{text[:_HEAD]} … {text[-_TAIL:]}"
