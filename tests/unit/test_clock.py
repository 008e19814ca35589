"""The one clock: seconds go on while the machine sleeps, where the system can tell (note 14)."""

from __future__ import annotations

import time

import pytest

from stoker.clock import SystemClock


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux counts sleep")
def test_a_machine_that_slept_finds_its_deadlines_passed(monkeypatch):
    """A holder of the lease that was suspended for an hour must not wake up and write."""
    shown = {time.CLOCK_BOOTTIME: 3_700.0, time.CLOCK_MONOTONIC: 100.0}
    monkeypatch.setattr(time, "clock_gettime", shown.__getitem__)

    assert 3_700.0 == SystemClock().monotonic()
