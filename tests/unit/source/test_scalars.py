from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.source.scalars import AMBIGUOUS, plain_value


@pytest.mark.parametrize(
    "text",
    ["y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off",
     "OFF", "010", "-010", "00", "0o17", "0x1F", "0b11", "1_000", "1e3", "1E3", "1.5e3", "-1e-3",
     "12e4567", "12:30", "12:30:45", "22:22", "-1:30", "190:20:30.15", "3.10", "1.0e0", "+5", "-0",
     ".5", "5.", ".inf", "-.inf", "+.INF", ".nan", ".NaN", "2026-01-01", "2026-1-1",
     "2026-01-01T10:00:00Z", "2001-12-14 21:59:43.10 -5", "1234567890123456789", "9" * 5000],
)  # fmt: skip
def test_disputed_scalars_are_refused(text):
    """Known victims: image tags from commit ids, versions, times, country codes."""
    assert plain_value(text) is AMBIGUOUS


@pytest.mark.parametrize(
    ("text", "value"),
    [("", None), ("~", None), ("null", None), ("true", True), ("True", True), ("false", False),
     ("0", 0), ("-1", -1), ("8000", 8000), ("880444307210", 880444307210), ("0.9", 0.9),
     ("-0.25", -0.25), ("=", "="), (".", "."), ("-", "-"), ("--flag", "--flag"), ("1.2.3", "1.2.3"),
     ("v1", "v1"), ("10m", "10m"), ("16Gi", "16Gi"), ("10%", "10%"), ("8000:8000", "8000:8000"),
     ("1h30m", "1h30m"), ("7ae5576", "7ae5576"), ("00:1b:44:11:3a:b7", "00:1b:44:11:3a:b7"),
     ("nope", "nope"), ("trueish", "trueish"), ("2026-01", "2026-01"), ("1,000", "1,000"),
     ("0xyz", "0xyz"), ("12e", "12e"), ("+x", "+x"), ("...x", "...x")],
)  # fmt: skip
def test_undisputed_scalars_have_one_value(text, value):
    found = plain_value(text)

    assert value == found
    assert type(value) is type(found)


@given(
    st.from_regex(r"[-+.0-9_:eExXoObBTZ ]{1,12}", fullmatch=True)
    | st.sampled_from(["yes", "No", "NULL"])
)
def test_whatever_is_accepted_means_the_same_to_a_yaml_1_1_reader(text):
    """PyYAML implements 1.1; where it sees a number, time or boolean, so do we or we refuse."""
    if text != text.strip() or not text:
        return
    found = plain_value(text)
    if found is AMBIGUOUS:
        return
    theirs = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], [])
    tags = [tag for tag, pattern in theirs if pattern.match(text)]
    kinds = {"tag:yaml.org,2002:int": int, "tag:yaml.org,2002:float": float}
    expected = next((kinds[tag] for tag in tags if tag in kinds), None)
    if expected is not None:
        assert isinstance(found, expected)
    elif tags and tags[0] == "tag:yaml.org,2002:timestamp":
        pytest.fail(f"{text} is a time to others")
