"""JSON text to data, for the large texts of a pass: lists, renders, inventories.

In: text or bytes of one JSON value. Out: plain data. Called wherever kube, render, objects
and report read much of it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["parsed_json"]

_decode = msgspec.json.Decoder().decode


def parsed_json(text: bytes | str) -> Any:
    """As json.loads, in a third of the time: the same data, the same errors.

    What the faster parser refuses (NaN, lone surrogates, a byte order mark, bad text) is
    left to json.loads. Raises ValueError, or RecursionError for what is nested too deeply.
    """
    try:
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return json.loads(text)
