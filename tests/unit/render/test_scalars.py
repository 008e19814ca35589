"""Scalars mean what they mean to kubectl (sigs.k8s.io/yaml, goyaml.v2)."""

from __future__ import annotations

import pytest

from stoker.render.scalars import key_text, plain_value, tagged_value

AS_KUBECTL = [
    # Words of YAML 1.1, reliability-security.md b.Y row 89.
    ("yes", True),
    ("On", True),
    ("y", True),
    ("TRUE", True),
    ("no", False),
    ("off", False),
    ("N", False),
    ("yEs", "yEs"),
    ("~", None),
    ("", None),
    ("Null", None),
    # Numbers.
    ("010", 8),
    ("08", 8),
    ("0o17", 15),
    ("0x1F", 31),
    ("0b101", 5),
    ("1_000", 1000),
    ("+3", 3),
    ("-1", -1),
    ("1e3", 1000),
    ("12e4567", "12e4567"),
    ("3.10", 3.1),
    ("1.0", 1),
    (".5", 0.5),
    ("1.", 1),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616),
    ("1e21", 1e21),
    # Text that other readers take for something else.
    ("=", "="),
    ("12:30", "12:30"),
    ("12:30:45", "12:30:45"),
    ("2024-01-02", "2024-01-02"),
    ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
    ("1.2.3", "1.2.3"),
    ("-", "-"),
    ("0x", "0x"),
    ("1e", "1e"),
    ("<<", "<<"),
    ("nope", "nope"),
]


@pytest.mark.parametrize(("text", "value"), AS_KUBECTL, ids=[repr(t) for t, _ in AS_KUBECTL])
def test_a_plain_scalar_means_what_kubectl_takes_it_for(text, value):
    """cases.md row 21 (`=`) and b.Y row 89: the same table, or our diff lies."""
    assert (type(value), value) == (type(plain_value(text)), plain_value(text))


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "+.Inf"])
def test_what_json_cannot_hold_is_refused(text):
    with pytest.raises(ValueError, match=r"inf|nan|INF|Inf"):
        plain_value(text)


def test_a_very_long_number_stays_text():
    """Turning a million digits into a number takes quadratic time."""
    assert isinstance(plain_value("1" * 100_000), str)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("tag:yaml.org,2002:str", "010", "010"),
        ("!", "yes", "yes"),
        ("tag:yaml.org,2002:int", "010", 8),
        ("tag:yaml.org,2002:float", "3", 3),
        ("tag:yaml.org,2002:bool", "no", False),
        ("tag:yaml.org,2002:null", "", None),
    ],
)
def test_a_core_tag_decides_the_type(tag, text, value):
    assert value == tagged_value(tag, text)


@pytest.mark.parametrize("tag", ["binary", "timestamp", "set", "python/object:os.system", "omap"])
def test_other_tags_have_no_place(tag):
    with pytest.raises(LookupError):
        tagged_value(f"tag:yaml.org,2002:{tag}", "x")


def test_a_core_tag_on_another_type_is_refused():
    with pytest.raises(ValueError, match="int"):
        tagged_value("tag:yaml.org,2002:int", "seven")


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (8, "8"), (1.5, "1.5"), ("x", "x")]
)
def test_keys_become_text_as_in_json(value, text):
    assert text == key_text(value)
