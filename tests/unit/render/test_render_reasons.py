"""The published reasons of render are those its code can give, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import stoker.render
from stoker.render import REASONS
from stoker.render.service import PLACEHOLDERS

NOT_CODES = {"no-new-privileges", "resource-limits", "stoker-marks", *PLACEHOLDERS.values()}
"""Other quoted texts with a hyphen in them."""


def test_every_published_reason_is_used_and_every_used_one_published():
    """`stoker explain CODE` must know what a person was shown."""
    folder = Path(stoker.render.__file__).parent
    code = "".join(p.read_text() for p in folder.glob("*.py") if p.name != "reasons.py")
    quoted = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code))

    assert set() == set(REASONS) - quoted
    assert set() == quoted - set(REASONS) - NOT_CODES


def test_every_reason_is_one_line():
    assert all(line.endswith(".") and "\n" not in line for line in REASONS.values())
