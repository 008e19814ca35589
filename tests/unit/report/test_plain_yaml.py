import re
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker.report.plain_yaml import Dumper, dump
from unit.report.plain_documents import STATUS, TEXT, data, numberish


def test_the_layout_is_the_one_of_the_published_example():
    assert dump(STATUS).decode() == TEXT


def test_what_is_dumped_reads_back():
    assert yaml.safe_load(dump(STATUS)) == STATUS


# YAML 1.2 core schema, as its specification states the resolution of plain scalars.
CORE_1_2 = re.compile(
    r"null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|"
)


MISREAD = """no Off y 010 1e3 12e4567 12:30 1_000 2026-11-29 0x1f 0o17 ~ null NaN .inf - { [x *a &a
!t % @a ` " ' ? = << é 😀 1. ."""


@pytest.mark.parametrize(
    "value", [*MISREAD.split(), "", "- a", "a: b", "a #b", "a\nb", "\ttab", " lead", "trail "]
)
def test_no_reader_takes_a_string_for_something_else(value):
    """PyYAML resolves by YAML 1.1; plain ones must also be strings by 1.2's core schema."""
    text = dump({"block": value, "flow": [value], value: {"inner": value}}).decode()

    assert yaml.safe_load(text) == {"block": value, "flow": [value], value: {"inner": value}}
    plain = text.splitlines()[0].removeprefix("block: ")
    assert plain.startswith('"') or not CORE_1_2.fullmatch(plain)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")) | numberish, data))
def test_any_data_reads_back_as_it_was(document):
    assert yaml.safe_load(dump(document)) == document


@given(numberish)
def test_plain_scalars_are_strings_in_yaml_1_2_too(value):
    plain = dump({"k": value}).decode().removeprefix("k: ").removesuffix("\n")

    assert plain.startswith('"') or not CORE_1_2.fullmatch(plain)


def test_half_a_character_becomes_the_replacement_character():
    """A lone surrogate cannot be written as UTF-8 and must not stop the status."""
    assert yaml.safe_load(dump({"a": "x\ud800y"})) == {"a": "x\ufffdy"}


def test_unchanged_data_gives_the_same_bytes_object():
    dumper = Dumper()
    first = dumper.dump("a.yaml", {"x": [1, {"y": "z"}]})

    assert dumper.dump("a.yaml", {"x": [1, {"y": "z"}]}) is first
    assert dumper.dump("a.yaml", {"x": 2}) == b"x: 2\n"


def test_a_forgotten_document_is_dumped_anew():
    dumper = Dumper()
    first = dumper.dump("a.yaml", {"x": ["y"]})
    dumper.forget("a.yaml")

    assert dumper.dump("a.yaml", {"x": ["y"]}) is not first


def test_a_thousand_unit_files_dump_in_half_a_second():
    """Measured 0.1 s on one core; the bound is the promise of the module."""
    documents = [{**STATUS, "metadata": {"name": f"unit-{n}"}, "n": n} for n in range(1000)]
    started = time.process_time()
    for document in documents:
        dump(document)

    assert time.process_time() - started < 0.5
