"""What was read last, and what of it may still be used."""

from __future__ import annotations

import pytest

from builders import NOW_MS
from stoker.model.readings import (
    EngineReading,
    LoadReading,
    Sample,
    ServiceReadings,
    Unmeasurable,
)
from stoker.signals.store import ReadingStore
from unit.signals.signal_builders import VALID_MS, a_pod, an_ask

SAMPLE = Sample(4.0, NOW_MS, VALID_MS)
ASK = an_ask(None, a_pod())
READINGS = ServiceReadings(
    ref=ASK.ref,
    metrics=(("queue", SAMPLE),),
    engines=(EngineReading("qwen-0", "uid-qwen-0", NOW_MS),),
    load=LoadReading(SAMPLE, estimated=True),
    wake=(("w", SAMPLE),),
    deletion_costs=(("qwen-0", 1.0),),
)


@pytest.fixture
def store():
    made = ReadingStore()
    made.put([(READINGS, VALID_MS)], NOW_MS)
    return made


@pytest.mark.parametrize("age_ms", [0, VALID_MS])
def test_fresh_readings_are_given_as_they_are(store, age_ms):
    assert store.latest(ASK, NOW_MS + age_ms) == READINGS


@pytest.mark.parametrize("age_ms", [VALID_MS + 1, -1])
def test_old_readings_are_unmeasurable_and_their_engines_unknown(store, age_ms):
    """A poller that died must not freeze a count for ever on what it saw last."""
    found = store.latest(ASK, NOW_MS + age_ms)

    assert found is not None
    for reading in (found.metrics[0][1], found.wake[0][1], found.load.arrivals):
        assert isinstance(reading, Unmeasurable)
        assert reading.code == "stale"
    assert ((), ()) == (found.engines, found.deletion_costs)


def test_a_pod_under_a_known_name_with_another_uid_is_another_pod(store):
    found = store.latest(an_ask(None, a_pod(uid="new")), NOW_MS)

    assert found is not None
    assert found.engines == ()


def test_what_was_unmeasurable_keeps_its_reason(store):
    why = Unmeasurable("unreachable", "down", NOW_MS)
    store.put([(ServiceReadings(ASK.ref, metrics=(("queue", why),)), VALID_MS)], NOW_MS)
    found = store.latest(ASK, NOW_MS + 10 * VALID_MS)

    assert found is not None
    assert (("queue", why),) == found.metrics


def test_a_service_that_was_not_read_is_absent(store):
    assert store.latest(an_ask(name="other"), NOW_MS) is None


def test_services_that_are_asked_for_no_more_are_forgotten(store):
    store.keep(frozenset())

    assert store.latest(ASK, NOW_MS) is None
