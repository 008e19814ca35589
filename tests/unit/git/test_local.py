from __future__ import annotations

import pytest

from stoker.errors import Refused, Stalled
from stoker.git import find_git_dir, open_local, toplevel


def test_any_revision_of_a_clone_is_read_without_network(origin):
    first = origin.commit({"a.yaml": "1"})
    second = origin.commit({"a.yaml": "2"})
    (origin.work / "a.yaml").write_text("uncommitted")

    with open_local(origin.work / "deeper", "HEAD~1") as repo:
        revision = repo.fetch()

        assert revision.commit == first
        assert repo.read(repo.tree(first)) == (b"1",)
        assert repo.resolve("main").commit == second
        assert str(repo.resolve("refs/heads/main")) == f"main@sha1:{second}"
        assert repo.message(second) == "Change\n"
        assert repo.read_branch("refs/heads/main", "a") == {"a.yaml": b"2"}
        assert repo.read_branch("refs/heads/none") == {}


@pytest.mark.parametrize("revision", ["nope", "-x", "--all", "", "a\nb"])
def test_a_revision_the_clone_has_not_is_refused(origin, revision):
    """b.G row 114."""
    origin.commit({"a": "1"})

    with open_local(origin.work, revision) as repo, pytest.raises(Stalled):
        repo.fetch()


def test_linked_work_trees_and_bare_repositories_are_found(origin, tmp_path):
    commit = origin.commit({"a": "1"})
    origin.git("worktree", "add", "-q", str(tmp_path / "linked"))

    for path in (tmp_path / "linked", origin.bare):
        with open_local(path, "HEAD") as repo:
            assert repo.fetch().commit == commit


def test_outside_a_clone_there_is_nothing(tmp_path):
    with pytest.raises(Stalled) as caught:
        open_local(tmp_path)

    assert caught.value.code == "repository-not-found"
    assert find_git_dir(tmp_path) is None
    assert toplevel(tmp_path) is None


def test_the_top_of_a_work_tree_is_found(origin):
    assert toplevel(origin.work / "a" / "b") == origin.work


def test_programs_that_a_clone_configures_are_not_run(origin, tmp_path):
    """b.G rows 99 and 101.

    A clone made by somebody else may name a file system monitor, hooks or filters.
    """
    trap = tmp_path / "trap"
    commit = origin.commit({"a.txt": "1", ".gitattributes": "*.txt filter=evil\n"})
    origin.git("config", "core.fsmonitor", f"touch {trap}")
    origin.git("config", "filter.evil.smudge", f"touch {trap}")
    origin.git("config", "alias.cat-file", f"!touch {trap}")

    with open_local(origin.work, "HEAD") as repo:
        repo.read(repo.tree(commit))

    assert not trap.exists()


def test_a_clone_is_never_written_to(origin):
    origin.commit({"a": "1"})

    with open_local(origin.work) as repo, pytest.raises(Refused):
        repo.commit_files("refs/heads/x", {"a": b""}, "x")


def test_a_tree_that_shares_files_with_earlier_ones_is_read_right(origin):
    """Lines of earlier listings are used again, also where two branches are read in turn."""
    commits = [
        origin.commit({"a.yaml": "1", "b.yaml": "1", "c/ä.yaml": "1"}),
        origin.commit({"a.yaml": "2"}),
    ]
    (origin.work / "b.yaml").unlink()
    commits += [origin.commit({"d.yaml": "1"}), origin.commit({"a.yaml": "1", "b.yaml": "2"})]

    with open_local(origin.work, "HEAD") as repo:
        for commit in (commits[0], commits[3], commits[1], commits[2]):
            listed = origin.git("ls-tree", "-r", "-z", commit).split("\0")
            expected = sorted(line.split()[2] for line in listed if line)

            assert expected == sorted(blob.oid for blob in repo.tree(commit))

        one, other = repo.tree(commits[0]), repo.tree(commits[1])
        shared = {blob.path for blob in other if any(blob is each for each in one)}
        assert shared == {"b.yaml", "c/ä.yaml"}
