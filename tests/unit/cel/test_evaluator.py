from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.cel import Cel
from stoker.cel import evaluator as module
from stoker.cel.evaluator import MAX_CHARACTERS
from stoker.cel.library import MAX_TEXT
from stoker.model.expression import Truth

READY = {"type": "Ready", "status": "True"}
OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "generation": 3},
    "spec": {"replicas": 2, "text": "a" * 1000},
    "status": {"conditions": [READY], "counts": [2, 1], "share": 0.5, "none": None},
}


def ask(expression: str, manifest: dict[str, Any] | None = None):
    return Cel().about(OBJECT if manifest is None else manifest).ask(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "object.kind == 'Widget' && self.kind == kind && apiVersion == 'example.com/v1'",
        "has(status.conditions) && !has(status.missing) && !has(data.x)",
        "status.?missing.orValue(7) == 7",
        "status.?conditions[?5].?type.orValue('none') == 'none'",
        "status.conditions.all(i, c, i >= 0 && c.type == 'Ready')",
        "cel.bind(n, spec.replicas, n == 2 && n < 2.5)",
        "sets.contains(['Ready', 'Available'], status.conditions.map(c, c.type))",
        "status.counts.sum() == 3 && status.counts.max() == 2 && status.counts.min() == 1",
        "!status.counts.isSorted() && ['a', 'b'].isSorted() && [].sum() == 0",
        "'a,b'.split(',').join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
        "' Ab '.trim().lowerAscii() == 'ab' && 'aß'.upperAscii() == 'Aß'",
        "'abc'.substring(1) == 'bc' && 'abc'.substring(0, 1) == 'a' && 'abc'.charAt(2) == 'c'",
        "'abcb'.indexOf('b') == 1 && 'abcb'.lastIndexOf('b') == 3",
        "'aXa'.replace('X', 'yy') == 'ayya' && 'w-1'.matches('^w-[0-9]+$')",
        "status.none == null",
        "duration('90s') > duration('1m')",
        "math.greatest(1, 2) == 2",
        "spec.replicas + 1 == 3 && int(spec.replicas) + int(metadata.generation) == 5",
        "status.share + 0.5 == 1.0 && duration('1s') + duration('1s') == duration('2s')",
        "sets.intersects([1, 2], status.counts) && sets.equivalent([1, 2, 2], status.counts)",
        "!sets.contains([true], [1])",
        "status.counts.indexOf(1) == 1 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(true) == -1",
        "['a', 'b'].indexOf('b') == 1 && [0.5].indexOf(0.5) == 0 && [true].indexOf(false) == -1",
    ],
)
def test_what_kubernetes_expressions_use_is_there(expression):
    assert Cel().faults(expression) == ()
    assert ask(expression).truth is Truth.TRUE


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("status.missing == 1", "missing", id="a field that is not there"),
        pytest.param("spec.replicas / 0 == 1", "divide by zero", id="division by zero"),
        pytest.param("status.conditions[3].type == ''", "index", id="an index out of range"),
        pytest.param("spec.replicas.lowerAscii() == ''", "overload", id="a number as text"),
        pytest.param("spec.replicas", "true or false is wanted", id="no yes or no"),
        pytest.param("spec.replicas ==", "Syntax error", id="no expression"),
        pytest.param("'abc'.substring(9) == ''", "substring(9, 3)", id="beyond the text"),
        pytest.param("[].max() == 1", "empty list", id="the greatest of nothing"),
        pytest.param("['a', 1].isSorted()", "numbers", id="mixed values"),
        pytest.param("sets.contains([[1]], [[1]])", "texts", id="a set of lists"),
        pytest.param("status.counts.join() == ''", "strings", id="numbers joined"),
    ],
)
def test_what_fails_is_an_error_and_never_false(expression, message):
    """An expression that cannot be evaluated says nothing about the object (P: unknown)."""
    answer = ask(expression)

    assert answer.truth is Truth.ERROR
    assert message.lower() in answer.message.lower()


def test_a_number_that_cel_cannot_hold_is_an_error():
    answer = ask("status.n > 0", {"status": {"n": 2**64}})

    assert answer.truth is Truth.ERROR


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("status.x ==", (1, 12)),
        ("status.x == 1 &&\n  nothing.here", (2, 10)),
        ("status.x == 1 ||\n\n   y", (3, 4)),
        ("has(status)", (1, 5)),
        ("1 + 'a' == 2", (1, 3)),
    ],
)
def test_a_fault_has_line_and_column(expression, place):
    (fault,) = Cel().faults(expression)

    assert (fault.line, fault.column) == place
    assert "\n" not in fault.message
    assert "INVALID_ARGUMENT" not in fault.message


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("'abc'.find('b') == 'b'", "find"),
        ("'a1b2'.findAll('[0-9]').size() == 2", "findAll"),
        ("format.dns1123Label().validate('x').hasValue()", "format"),
        ("[2, 1].sort() == [1, 2]", "sort"),
    ],
)
def test_what_kubernetes_has_and_this_has_not_is_told_as_left_out(expression, name):
    fault = Cel().faults(expression)[0]

    assert fault.message.startswith(f"undeclared reference to '{name}'")
    assert fault.message.endswith("Kubernetes has it, here it is left out")


def test_an_unknown_function_is_named_where_it_stands():
    (fault,) = Cel().faults("status.x == 1 &&\n  nosuch(status.y) == 2")

    assert "'nosuch'" in fault.message
    assert (fault.line, fault.column) == (2, 9)


def test_every_fault_is_told():
    assert len(Cel().faults("a == 1 && b == 2")) == 2


@pytest.mark.parametrize(
    ("expression", "text", "wanted"),
    [
        ("status.x", False, ()),
        ("status.x", True, ()),
        ("'a'", True, ()),
        ("'a'", False, ("comes to STRING; true or false is wanted",)),
        ("true", True, ("comes to BOOL; text is wanted",)),
    ],
)
def test_an_expression_of_the_wrong_type_is_a_fault(expression, text, wanted):
    assert tuple(f.message for f in Cel().faults(expression, text=text)) == wanted


def test_text_that_cannot_be_made_is_empty():
    questions = Cel().about(OBJECT)

    assert questions.text("[metadata.name, '!'].join()") == "w!"
    assert questions.text("status.missing") == ""
    assert questions.text("spec.replicas") == ""


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("true" + " " * MAX_CHARACTERS, id="long"),
        pytest.param("metadata.name + 'x' != ''", id="texts added"),
        pytest.param("[1] + status.counts != []", id="lists added"),
        pytest.param("spec.text + spec.text != ''", id="fields added"),
        pytest.param("(" * 40 + "true" + ")" * 40, id="deep"),
        pytest.param("lists.range(100000000).size() > 0", id="a list out of nothing"),
        pytest.param("'%s'.format([spec.text]) != ''", id="format"),
    ],
)
def test_what_may_grow_without_bound_is_refused_before_it_runs(expression):
    """b.A row 10."""
    assert Cel().faults(expression)
    assert ask(expression).truth is Truth.ERROR


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("spec.text" + ".replace('a', 'aaaaaaaaaa')" * 7 + " != ''", id="replace"),
        pytest.param("spec.text.split('').join(spec.text) != ''", id="join"),
        pytest.param(
            "[0,1,2,3,4,5,6,7,8,9].all(a, "
            + "".join(f"[0,1,2,3,4,5,6,7,8,9].all({c}, " for c in "bcdefg")
            + "a >= 0"
            + ")" * 7,
            id="a loop of 10^7 steps",
        ),
    ],
)
def test_what_grows_all_the_same_ends_in_an_error(expression):
    """b.A row 10: A file in Git must not be able to take the controller's memory or time."""
    assert Cel().faults(expression) == ()
    assert ask(expression).truth is Truth.ERROR


def test_each_sum_that_may_join_is_told_by_its_place():
    """And no other +: of numbers, within text and comments, or that macros make."""
    expression = "1 + 2 > 0 && '+' != 'é' + spec.text // +\n && [1].map(x, x + 1) == [2] + self.l"

    faults = Cel().faults(expression)

    assert [(f.line, f.column) for f in faults] == [(1, 25), (2, 30)]
    assert all("join" in f.message for f in faults)


def test_a_text_of_a_function_may_be_as_long_as_the_bound():
    manifest = {"spec": {"text": "a" * MAX_TEXT}}

    assert ask("spec.text.replace('a', 'b').size() > 0", manifest).truth is Truth.TRUE
    assert ask("spec.text.replace('a', 'bb').size() > 0", manifest).truth is Truth.ERROR


def test_an_expression_about_all_objects_has_their_list_and_nothing_else():
    cel = Cel()
    several = cel.about_all([OBJECT, {**OBJECT, "kind": "Gadget"}])
    expression = "objects.map(o, o.kind).join(' ') == 'Widget Gadget'"

    assert cel.faults(expression, about_all=True) == ()
    assert several.ask(expression).truth is Truth.TRUE
    assert cel.about_all([]).ask("objects.size() == 0").truth is Truth.TRUE
    assert cel.faults("has(status.x)", about_all=True)
    assert cel.faults("objects.size() == 0"), "a health file is about one object"


def test_threads_get_their_own_answers():
    """b.A row 16: watch threads and the reconciler ask at the same time."""
    wrong: list[int] = []

    def many(number: int) -> None:
        manifest = {"spec": {"n": number}}
        for _ in range(200):
            if ask(f"spec.n == {number}", manifest).truth is not Truth.TRUE:
                wrong.append(number)

    threads = [threading.Thread(target=many, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


@pytest.fixture
def without_package(monkeypatch):
    monkeypatch.setattr(module, "_runtime", lambda names: None)
    monkeypatch.setattr(module, "_is_installed", lambda: False)


@pytest.mark.usefixtures("without_package")
def test_without_the_package_every_answer_is_an_error_that_names_it():
    cel = Cel()

    assert cel.missing == "cel-expr-python"
    assert cel.faults("nonsense ==") == ()
    assert "cel-expr-python is not installed" in cel.about(OBJECT).ask("true").message
    assert cel.about(OBJECT).text("'a'") == ""


def test_the_package_is_loaded_with_the_first_expression_only():
    """50 MB of it: commands that judge no custom kind never touch them."""
    code = (
        "import sys; from stoker.cel import Cel; c = Cel(); before = c.missing; "
        "assert 'cel_expr_python' not in sys.modules, 'too early'; "
        "c.about({}).ask('true'); assert 'cel_expr_python' in sys.modules or before"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(status=anything, spec=anything)
def test_no_object_breaks_the_evaluator(status, spec):
    questions = Cel().about({"status": status, "spec": spec})

    for expression in ("status.?a.orValue([]).exists(x, x == 1)", "spec == status", "has(spec.a)"):
        assert questions.ask(expression).truth in Truth


@given(
    st.text()
    | st.lists(
        st.sampled_from(
            [
                "status",
                ".",
                "a",
                "[",
                "]",
                "(",
                ")",
                "+",
                "'x'",
                "1",
                "==",
                ".map(",
                "x",
                ",",
                "\n",
                "é",
            ]
        ),
        max_size=20,
    ).map("".join)
)
def test_no_text_breaks_the_compiler(expression):
    for fault in Cel().faults(expression):
        assert fault.message
        assert fault.line >= 1
        assert fault.column >= 1
