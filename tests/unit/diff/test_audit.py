"""Which objects the audit asks about, and when."""

from hypothesis import given
from hypothesis import strategies as st

from stoker.diff import Audit
from stoker.diff.audit import AFTER_UPGRADE, AT_ONCE, DAY_MS
from stoker.model.refs import ObjectRef

HOUR = 3_600_000
REFS = tuple(ObjectRef("", "ConfigMap", "llm", f"object-{number}", "v1") for number in range(500))


def taken(audit: Audit, now_ms: int, version: str = "v1.37.2") -> list[ObjectRef]:
    audit.begin(now_ms, version)
    return [ref for ref in REFS if audit.takes(ref)]


def test_a_fresh_process_asks_nothing_in_its_first_pass():
    assert [] == taken(Audit(), 1_700_000_000_000)


@given(
    st.integers(0, 2 * DAY_MS),
    st.lists(st.integers(1, 2 * HOUR), min_size=12, max_size=60),
)
def test_each_object_once_a_day_whenever_the_passes_are(start, steps):
    """However the day is cut into passes, nothing is left out and nothing asked twice."""
    audit, now, asked = Audit(), start, []
    taken(audit, now)
    for step in [*steps, *[HOUR] * 24]:
        now = min(now + step, start + DAY_MS)
        asked += taken(audit, now)

    assert now == start + DAY_MS
    assert sorted(asked) == sorted(REFS)


def test_ten_minutes_ask_their_share():
    audit, now = Audit(), 0
    taken(audit, now)
    counts = [len(taken(audit, now + n * HOUR)) for n in range(1, 25)]

    assert sum(counts) == len(REFS)
    assert max(counts) < 3 * len(REFS) / 24


def test_a_new_server_version_is_asked_about_everything_within_the_hour_and_then_no_faster():
    audit = Audit()
    taken(audit, 0)
    asked = [ref for n in range(1, 13) for ref in taken(audit, n * HOUR // 12, "v1.38.0")]

    assert sorted(asked) == sorted(REFS)
    assert len(taken(audit, 2 * HOUR, "v1.38.0")) < 3 * len(REFS) / AFTER_UPGRADE


def test_a_clock_that_goes_back_asks_nothing_and_goes_on():
    audit = Audit()
    taken(audit, 5 * HOUR)

    assert [] == taken(audit, HOUR)
    assert taken(audit, 6 * HOUR)


def test_a_pass_after_a_long_sleep_asks_a_bounded_number():
    audit = Audit()
    taken(audit, 0)

    assert AT_ONCE == len(taken(audit, 3 * DAY_MS))
