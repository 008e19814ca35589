"""The repository of a World tells what stands in it now, however often it is asked."""

from __future__ import annotations

from stoker.cli.world_repository import WorldRepository

MAIN = "refs/heads/main"


def test_an_answer_lasts_until_the_branch_moves(tmp_path):
    found = WorldRepository.made(tmp_path)
    assert ("", 0) == (found.show(f"{MAIN}:a"), found.count(MAIN))

    found.commit("One", {"a": "1", "b": "x"})
    assert ["1", "1", "x"] == [found.show(f"{MAIN}:{path}") for path in ("a", "a", "b")]
    assert 1 == found.count(MAIN)

    found.commit("Two", {"a": "2", "b": None})
    assert ["2", ""] == [found.show(f"{MAIN}:{path}") for path in ("a", "b")]
    assert 2 == found.count(MAIN)


def test_a_branch_that_is_deleted_is_told_no_more(tmp_path):
    found = WorldRepository.made(tmp_path)
    found.commit("One", {"a": "1"})
    assert "1" == found.show(f"{MAIN}:a")

    (found.bare / MAIN).unlink()

    assert ("", 0) == (found.show(f"{MAIN}:a"), found.count(MAIN))
