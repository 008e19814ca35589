"""Virtual time."""

from __future__ import annotations

from stoker.sim.clock import DEFAULT_START_MS, VirtualClock


def test_waiting_moves_the_clock_and_nothing_else_does():
    clock = VirtualClock(1_000)

    assert (1_000, 0.0) == (clock.now_ms(), clock.monotonic())
    clock.wait(2.5)

    assert (3_500, 2.5) == (clock.now_ms(), clock.monotonic())


def test_time_never_goes_back():
    clock = VirtualClock()
    clock.wait(-5)
    clock.advance(-1)

    assert clock.advance_to(0) == DEFAULT_START_MS
    assert DEFAULT_START_MS + 7 == clock.advance_to(DEFAULT_START_MS + 7)
