"""CEL's URLs as Kubernetes has them: `url(spec.endpoint).getHost()`.

What a request may name: an absolute URL, or an absolute path. Names and rules are those of
k8s.io/apiserver's cel/library (urls). Called once by library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from stoker.cel.declare import declared, global_, member, reads, text_of, typed

__all__ = ["url_functions"]

KIND = "url"
MAX_URL = 4096
_WRONG = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\](?::[0-9]*)?|[^\s\[\]<>\"`{}|\\^/]*")
_IN_A_PATH = "/%:@!$&'()*+,;=~-._[]"

_Value = Mapping[str, Any]


def url_functions(cel: Any) -> list[Any]:
    """url, isURL and the members of a URL, for the runtime's module `cel`."""
    kind = cel.Type
    text = kind.STRING
    address = kind.Map(text, text)
    parts: dict[str, tuple[Any, Callable[[SplitResult], Any]]] = {
        "getScheme": (text, lambda url: url.scheme),
        "getHost": (text, lambda url: url.netloc.rpartition("@")[2]),
        "getHostname": (text, _hostname),
        "getPort": (text, lambda url: "" if url.port is None else str(url.port)),
        "getEscapedPath": (text, lambda url: quote(url.path, safe=_IN_A_PATH)),
        "getQuery": (kind.Map(text, kind.List(text)), _query),
    }
    table = {
        name: [member(result, [address], lambda value, read=read: read(_of(value)))]
        for name, (result, read) in parts.items()
    }
    return declared(
        cel,
        {
            "url": [global_(address, [text], _url)],
            "isURL": [global_(kind.BOOL, [text], reads(_parsed))],
            **table,
        },
    )


def _url(text: str) -> dict[str, str]:
    _parsed(text)
    return typed(KIND, text)


def _of(value: _Value) -> SplitResult:
    return _parsed(text_of(KIND, value))


def _parsed(text: str) -> SplitResult:
    """The parts; raises ValueError on what no request may name."""
    if len(text) > MAX_URL:
        raise ValueError(f"a URL of more than {MAX_URL} characters")
    if _WRONG.search(text) or not (text.startswith("/") or _SCHEME.match(text)):
        raise ValueError(f"{text[:100]!r} is no URL")
    found = urlsplit(text, allow_fragments=False)
    if not _HOST.fullmatch(found.netloc.rpartition("@")[2]):
        raise ValueError(f"{text[:100]!r} is no URL")
    _ = found.port  # raises on one that is no number
    return found


def _hostname(url: SplitResult) -> str:
    """As it is written: `urlsplit` would lower its letters."""
    host = url.netloc.rpartition("@")[2]
    if host.startswith("["):
        return host[1 : host.index("]")]
    return host.partition(":")[0]


def _query(url: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)
