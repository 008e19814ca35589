"""The published reasons of diff are those its code can give, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import stoker.diff
from stoker.diff import REASONS
from stoker.objects.conflicts import AdoptionRequired

NAMES = {"kube-system", "stoker-send", "stoker-system"}
"""Words of that shape that are no codes."""
SINGLE = {"draining", "orphan"}


def test_every_published_reason_is_used_and_every_used_one_published():
    """`stoker explain CODE` must know what a person was shown."""
    folder = Path(stoker.diff.__file__).parent
    code = "".join(p.read_text() for p in folder.glob("*.py") if p.name != "reasons.py")
    quoted = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code)) - NAMES
    quoted |= {word for word in SINGLE if f'"{word}"' in code} | {AdoptionRequired.code}

    assert set() == set(REASONS) - quoted
    assert set() == quoted - set(REASONS)


def test_every_reason_is_one_line():
    assert all(line.endswith(".") and "\n" not in line for line in REASONS.values())
