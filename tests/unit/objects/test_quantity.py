from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.objects.quantity import bytes_of, cpu_millis, parse_quantity, quantities_equal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1", "-1"),
        ("1.", "1"),
        (".5", "0.5"),
        ("500m", "0.5"),
        ("1u", "0.000001"),
        ("7n", "0.000000007"),
        ("3k", "3000"),
        ("1M", "1000000"),
        ("1G", "1000000000"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("2Ti", "2199023255552"),
        ("1E", "1000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        ("12e+2", "1200"),
        (4, "4"),
        (0.5, "0.5"),
        (1e16, "10000000000000000"),
    ],
)
def test_quantities_have_exactly_the_value_that_the_server_reads(text, value):
    assert Decimal(value) == parse_quantity(text)


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1\n", "1i", "1ki", "1mi", "one", "--1", "1e", "1e1.5", "1.1.1", ".", "1KiB",
     "0x10", "1_000", "\u0661", "1e1000", "9" * 65, float("nan"), float("inf"), True, None],
)  # fmt: skip
def test_anything_else_is_refused_with_a_value_error(text):
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("9e999", 2**63 - 1), ("-20E", -(2**63 - 1)), ("8Ei", 2**63 - 1)],
)
def test_values_beyond_int64_are_capped_as_the_server_does(text, value):
    assert value == parse_quantity(text)


@pytest.mark.parametrize(("text", "value"), [("1e-999", "1e-9"), ("-0.1n", "-1e-9")])
def test_parts_below_a_billionth_are_rounded_away_from_zero(text, value):
    """Somebody who asked for some gets some."""
    assert Decimal(value) == parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [("1", 1000), ("250m", 250), ("0.1", 100), ("1u", 1), (2, 2000), ("-1u", -1)],
)
def test_cpu_comes_in_whole_millis_rounded_up(text, millis):
    assert millis == cpu_millis(text)


@pytest.mark.parametrize(
    ("text", "count"), [("1Gi", 2**30), ("1500m", 2), ("128974848", 128974848)]
)
def test_bytes_come_whole_and_rounded_up(text, count):
    assert count == bytes_of(text)


@pytest.mark.parametrize(
    ("a", "b"), [("1000m", "1"), ("1000M", "1G"), ("1Gi", "1024Mi"), ("0.5", "500m"), (2, "2")]
)
def test_other_spellings_of_a_value_are_equal(a, b):
    """cases.md row 47: 1000m against 1 and 1000M against 1G must never be a difference."""
    assert quantities_equal(a, b)


def test_different_values_are_different():
    assert not quantities_equal("1G", "1Gi")


@given(st.integers(-(2**62), 2**62))
def test_whole_numbers_survive_unchanged(number):
    assert number == bytes_of(str(number)) == bytes_of(number)


@given(st.text(max_size=80))
def test_any_text_gives_a_value_or_a_value_error(text):
    try:
        value = parse_quantity(text)
    except ValueError:
        return

    assert abs(value) <= 2**63 - 1
