"""The fast JSON reader is json.loads in everything but time."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.parsing import parsed_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def read(parse, text):
    """What a parser says of a text, types and signs of zero included."""
    try:
        return repr(parse(text))
    except ValueError:
        return "ValueError"


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_json_value_reads_as_json_loads_reads_it(value, ascii_only, indent):
    """Bytes and text alike, numbers of any size included."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    raw = text.encode(errors="surrogatepass")

    assert repr(json.loads(text)) == repr(parsed_json(text))
    assert repr(json.loads(raw)) == repr(parsed_json(raw))


@given(st.binary(max_size=12) | st.text(alphabet='{}[],:"\\u019eE+-.tn ', max_size=12))
def test_every_other_text_is_refused_where_json_loads_refuses_it(text):
    assert read(json.loads, text) == read(parsed_json, text)


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"1e400",
        b"123456789012345678901234567890",
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":2}',
        b'"\xff"',
        b"-0",
        b"-0.0",
        b"",
    ],
)
def test_texts_on_which_parsers_differ_read_as_json_loads_reads_them(text):
    assert read(json.loads, text) == read(parsed_json, text)


def test_infinity_is_what_json_loads_makes_of_it():
    assert math.isinf(parsed_json("1e400"))


def test_nesting_beyond_the_stack_is_an_error_that_callers_know():
    with pytest.raises(RecursionError):
        parsed_json(b"[" * 200_000)
