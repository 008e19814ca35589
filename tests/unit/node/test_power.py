"""Tokens per joule where a GPU does not count its energy: power, looked at often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.node.gpu import Gpus, joules_between
from stoker.node.power import LONGEST_GAP_SECONDS, PowerMeter
from stoker.sim.engine import Engine
from unit.node.fake_nvml import FakeNvml, Gpu
from unit.node.reporter_builders import World
from unit.node.test_reporter import generate, reporter

OLD = {"millijoules": "NVML_ERROR_NOT_SUPPORTED"}
"""A GPU before Volta."""


def used(gpus, nvml, watts, seconds=4):
    """Joules between two readings, with a look every second at these watts."""
    first = gpus.read(0.0)
    for second in range(1, seconds):
        nvml.gpus[0].milliwatts = watts * 1000
        gpus.look(float(second))
    return joules_between(first, gpus.read(float(seconds)))


def test_power_over_time_is_energy():
    nvml = FakeNvml(Gpu(milliwatts=100_000, fails=dict(OLD)))

    assert 400.0 == used(Gpus(lambda: nvml), nvml, 100)


def test_power_between_two_looks_is_their_mean():
    meter = PowerMeter()
    meter.look({"a": 100_000.0}, 0.0)
    meter.look({"a": 300_000.0}, 2.0)

    counter = meter.counter("a")
    assert counter is not None
    assert 400_000 == counter[1]


def test_a_gpu_that_counts_its_energy_is_believed():
    nvml = FakeNvml(Gpu(millijoules=5_000))
    gpus = Gpus(lambda: nvml)
    first = gpus.read(0.0)
    nvml.gpus[0].millijoules = 9_000

    assert 4.0 == joules_between(first, gpus.read(4.0))
    assert not gpus.needs_looks


def test_counters_and_power_are_added_up_over_the_gpus_of_a_node():
    nvml = FakeNvml(Gpu("GPU-0", fails=dict(OLD)), Gpu("GPU-1", millijoules=0))
    gpus = Gpus(lambda: nvml)
    first = gpus.read(0.0)
    nvml.gpus[1].millijoules = 3_000

    assert 103.0 == joules_between(first, gpus.read(1.0))


def test_a_window_with_a_gap_in_the_looking_is_unknown():
    nvml = FakeNvml(Gpu(fails=dict(OLD)))
    gpus = Gpus(lambda: nvml)
    first = gpus.read(0.0)

    assert joules_between(first, gpus.read(LONGEST_GAP_SECONDS + 0.1)) is None


@pytest.mark.parametrize("answer", [float("nan"), -1, None, True])
def test_power_that_cannot_be_is_unknown(answer):
    nvml = FakeNvml(Gpu(milliwatts=answer, fails=dict(OLD)))
    gpus = Gpus(lambda: nvml)
    gpus.read(0.0)

    assert gpus.read(1.0).energy_millijoules is None


def test_a_board_without_a_sensor_stays_unknown():
    nvml = FakeNvml(Gpu(fails={**OLD, "milliwatts": "NVML_ERROR_NOT_SUPPORTED"}))
    gpus = Gpus(lambda: nvml)
    gpus.read(0.0)

    assert gpus.read(1.0).energy_millijoules is None


def test_a_gpu_that_is_lost_between_two_readings_begins_anew():
    nvml = FakeNvml(Gpu(fails=dict(OLD)))
    gpus = Gpus(lambda: nvml)
    first = gpus.read(0.0)
    nvml.gpus[0].lost = True
    gpus.look(1.0)
    nvml.gpus[0].lost = False

    assert joules_between(first, gpus.read(2.0)) is None


def test_tokens_per_joule_of_an_old_gpu_reach_the_node_state():
    world = World()
    nvml = FakeNvml(Gpu(milliwatts=2_000, fails=dict(OLD)))
    with Engine() as engine:
        working = reporter(world, nvml, engines=(engine.address,), interval_seconds=4.0)
        working.round()
        generate(engine, 8)
        world.clock.advance(4_000)
        working.round()

    assert 1.0 == world.status()["tokensPerJoule"]


looks = st.lists(st.tuples(st.floats(0, 8), st.floats(0, 10**6)), min_size=1, max_size=12)


@given(looks)
def test_a_counter_never_goes_back_while_it_keeps_its_name(found):
    meter = PowerMeter()
    now, before = 0.0, None
    for passed, power in found:
        now += passed
        meter.look({"a": power}, now)
        counter = meter.counter("a")
        assert counter is not None
        if before is not None and counter[0] == before[0]:
            assert counter[1] >= before[1]
            assert passed <= LONGEST_GAP_SECONDS
        before = counter
