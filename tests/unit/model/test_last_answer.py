"""An answer is given again to the very same question only."""

from __future__ import annotations

from stoker.model.last_answer import LastAnswer


def test_the_very_objects_and_equal_values_are_the_same_question():
    one, other = ["a"], ["a"]
    last: LastAnswer[str] = LastAnswer()
    last.keep("answer", one, equal=("x", 1))

    assert "answer" == last.to(one, equal=("x", 1))
    assert last.to(other, equal=("x", 1)) is None, "equal, but another object"
    assert last.to(one, equal=("x", 2)) is None
    assert last.to(one) is None
    assert last.to(one, one, equal=("x", 1)) is None


def test_nothing_is_known_at_first_and_after_an_answer_that_may_not_stand():
    last: LastAnswer[str] = LastAnswer()
    asked = object()

    assert last.to() is None
    last.keep("answer", asked)
    last.keep(None, asked)
    assert last.to(asked) is None
