from __future__ import annotations

import threading

import pytest

from stoker.errors import Bug, Retryable, Stalled
from stoker.git.commit import blob_oid
from stoker.model.ports import PushResult

STATUS = "refs/heads/stoker-status/prod"


def test_the_first_commit_of_a_new_branch_is_a_root_and_later_ones_follow(origin, open_repo):
    """cases.md row 11."""
    origin.commit({"a": "1"})
    repo = open_repo()

    first = repo.commit_files(STATUS, {"status.yaml": b"1\n"}, "Status\n\n[skip ci]")
    second = repo.commit_files(STATUS, {"status.yaml": b"2\n"}, "Status")

    assert first.pushed
    assert [second.commit, first.commit] == origin.log(STATUS)
    assert origin.log(STATUS, "%an <%ae> %cn <%ce> %ct")[0] == (
        "Stoker <stoker@stoker.invalid> Stoker <stoker@stoker.invalid> 1790000000"
    )
    assert origin.git("log", "-1", "--format=%B", first.commit, cwd=origin.bare) == (
        "Status\n\n[skip ci]"
    )


def test_a_branch_that_others_began_gets_its_tip_as_parent(origin, open_repo):
    """cases.md row 11: an existing branch, unknown to the mirror, keeps its history."""
    origin.commit({"a": "1"})
    others = origin.commit({"README": "kept"}, branch="stoker-status/prod")

    done = open_repo().commit_files(STATUS, {"status.yaml": b"1"}, "Status")

    assert origin.log(STATUS)[:2] == [done.commit, others]
    assert origin.git("show", f"{done.commit}:README", cwd=origin.bare) == "kept"


def test_a_deleted_branch_is_continued_never_begun_anew(origin, open_repo):
    """cases.md row 11."""
    repo = open_repo()
    first = repo.commit_files(STATUS, {"s": b"1"}, "Status")
    origin.git("update-ref", "-d", STATUS, cwd=origin.bare)

    second = repo.commit_files(STATUS, {"s": b"2"}, "Status")

    assert origin.log(STATUS) == [second.commit, first.commit]

    origin.git("update-ref", "-d", STATUS, cwd=origin.bare)
    again = repo.commit_files(STATUS, {"s": b"2"}, "Status")
    assert again == PushResult(second.commit, pushed=True)


def test_an_unchanged_state_makes_no_commit_in_20_polls(origin, open_repo):
    """cases.md row 13."""
    repo = open_repo()
    first = repo.commit_files(STATUS, {"units/a.yaml": b"1"}, "Status")

    later = [
        repo.commit_files(STATUS, {"units/a.yaml": b"1", "gone": None}, "Status") for _ in range(20)
    ]

    assert later == [PushResult(first.commit, pushed=False)] * 20
    assert origin.log(STATUS) == [first.commit]


def test_nothing_to_delete_on_no_branch_is_no_commit(origin, open_repo):
    """cases.md row 13."""
    assert open_repo().commit_files(STATUS, {"gone": None}, "x") == PushResult("", pushed=False)


def test_files_are_added_changed_and_deleted_and_foreign_ones_stay(origin, open_repo):
    origin.commit({"foreign/x": "1", "units/old.yaml": "1"}, branch="stoker-status/prod")
    repo = open_repo()

    repo.commit_files(
        STATUS, {"units/old.yaml": None, "units/new.yaml": b"\x00\xff\n", "status.yaml": b""}, "x"
    )

    assert repo.read_branch(STATUS) == {
        "foreign/x": b"1",
        "status.yaml": b"",
        "units/new.yaml": b"\x00\xff\n",
    }
    assert repo.read_branch(STATUS, "units/") == {"units/new.yaml": b"\x00\xff\n"}
    assert repo.read_branch("refs/heads/absent") == {}


def test_a_ref_outside_heads_works(origin, open_repo):
    repo = open_repo()

    assert repo.commit_files("refs/stoker/prod", {"records/1": b"x"}, "Record").pushed
    assert repo.read_branch("refs/stoker/prod") == {"records/1": b"x"}


def test_a_lost_race_is_retried_on_top_of_the_winner(origin, open_repo, clock):
    repo = open_repo()
    repo.commit_files(STATUS, {"a": b"1"}, "Status")
    rival = open_repo(folder="rival")
    original = repo._commit_on
    raced: list[str] = []

    def commit_then_lose(*arguments):
        made = original(*arguments)
        if not raced:
            raced.append(rival.commit_files(STATUS, {"b": b"rival"}, "Rival").commit)
        return made

    repo._commit_on = commit_then_lose
    done = repo.commit_files(STATUS, {"a": b"2"}, "Status")

    assert done.pushed
    assert origin.log(STATUS)[:2] == [done.commit, raced[0]]
    assert repo.read_branch(STATUS) == {"a": b"2", "b": b"rival"}
    assert len(clock.waits) == 1


def test_a_race_lost_every_time_gives_up_for_now(origin, open_repo):
    repo = open_repo()
    rival = open_repo(folder="rival")
    original = repo._commit_on
    count = iter(range(100))

    def commit_then_lose(*arguments):
        made = original(*arguments)
        rival.commit_files(STATUS, {"b": b"%d" % next(count)}, "Rival")
        return made

    repo._commit_on = commit_then_lose
    with pytest.raises(Retryable) as caught:
        repo.commit_files(STATUS, {"a": b"2"}, "Status", attempts=3)

    assert caught.value.code == "push-race-lost"
    assert len(origin.log(STATUS)) == 3


def test_many_writers_lose_nothing(origin, open_repo):
    """reliability-security c.3 row 68: rebase and retry, no loss, never forced."""
    writers = [open_repo(folder=f"w{n}") for n in range(6)]
    failures: list[BaseException] = []

    def write(number, repo):
        try:
            for turn in range(3):
                repo.commit_files(STATUS, {f"{number}/{turn}": b"x"}, "Status", attempts=60)
        except Exception as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=pair) for pair in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(origin.log(STATUS)) == 18
    assert len(open_repo(folder="reader").read_branch(STATUS)) == 18
    parents = origin.log(STATUS, "%P")
    assert [len(line.split()) for line in parents] == [1] * 17


def test_a_hook_that_rejects_is_told_in_its_words(origin, open_repo):
    origin.commit({"a": "1"})
    origin.hook("pre-receive", "echo 'only signed commits \033[31mhere' >&2; exit 1")
    repo = open_repo()

    result = repo.commit_files(STATUS, {"a": b"1"}, "Status")

    assert not result.pushed
    assert "pre-receive hook declined" in result.rejected
    assert "only signed commits" in result.rejected
    assert result.rejected.isprintable()
    assert repo.fetch()


def test_a_push_whose_answer_was_lost_is_not_repeated(origin, open_repo, tmp_path):
    """The commit landed although we saw a failure: the next turn finds nothing to do."""
    repo = open_repo()
    first = repo.commit_files(STATUS, {"a": b"1"}, "Status")
    again = open_repo(folder="fresh").commit_files(STATUS, {"a": b"1"}, "Status")

    assert again == PushResult(first.commit, pushed=False)
    assert origin.log(STATUS) == [first.commit]


def test_an_unreachable_repository_raises(origin, open_repo, tmp_path):
    repo = open_repo()
    repo.commit_files(STATUS, {"a": b"1"}, "Status")
    origin.bare.rename(tmp_path / "away.git")

    with pytest.raises(Stalled):
        repo.commit_files(STATUS, {"a": b"2"}, "Status")


@pytest.mark.parametrize("path", ["", "/a", "a/../b", "a//b", ".git/hooks/x", "a\nb", 'a"b', "./a"])
def test_odd_paths_are_a_bug(open_repo, path):
    with pytest.raises(Bug):
        open_repo().commit_files(STATUS, {path: b"x"}, "x")


def test_blob_ids_are_those_of_git(origin):
    content = b"some\r\ncontent \xff"
    (origin.work / "f").write_bytes(content)

    assert blob_oid(content) == origin.git("hash-object", "--no-filters", "f")


def test_what_is_asked_before_a_push_can_forbid_it(origin, open_repo):
    """Research a.6 L3, I1: a status that was made in time is not pushed too late (note 14)."""
    origin.commit({"a": "1"})
    asked: list[int] = []

    def ask() -> None:
        asked.append(len(asked))
        if len(asked) > 1:
            raise Retryable("not any more", code="lease-lost")

    repo = open_repo(before_push=ask)
    first = repo.commit_files(STATUS, {"s": b"1"}, "Status")
    with pytest.raises(Retryable, match="not any more"):
        repo.commit_files(STATUS, {"s": b"2"}, "Status")

    assert [first.commit] == origin.log(STATUS)
    assert {"s": b"1"} == repo.read_branch(STATUS)
