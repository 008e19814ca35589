"""Sizes: the short cut for small units never lets a large object through."""

from hypothesis import given
from hypothesis import strategies as st

from stoker.check import sizes
from stoker.check.sizes import MAX_OBJECT_BYTES, are_small, check_sizes
from stoker.model.codec import canonical_json
from stoker.model.manifest import Manifest
from stoker.model.refs import ObjectRef

REF = ObjectRef("", "ConfigMap", "llm", "a")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def a_manifest(**body):
    return Manifest(REF, body, "")


@given(VALUES)
def test_the_quick_measure_is_never_below_a_third_of_the_length(value):
    """So three times of it is a bound, whatever floats look like and whatever escapes there are."""
    exact = len(canonical_json(value).encode())

    assert 3 * len(sizes._encode(value)) >= exact


def test_a_unit_above_a_third_of_an_object_is_measured_exactly():
    third = "x" * (MAX_OBJECT_BYTES // 3)

    assert are_small((a_manifest(data="x"),))
    assert not are_small((a_manifest(data=third),))
    assert not are_small((a_manifest(data=third[:-9]), a_manifest(data="xxxxxxxxx")))
    assert check_sizes((a_manifest(data=third),)) == []


def test_what_the_quick_measure_cannot_read_is_measured_exactly():
    """JSON has no such texts, but a size check is the wrong place to fall over one."""
    assert not are_small((a_manifest(data="\ud800"),))
