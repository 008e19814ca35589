from __future__ import annotations

import os
import shutil

import pytest

from stoker.errors import Refused, Retryable, Stalled
from stoker.git import FolderRepo
from stoker.model.left_out import LeftOut, WhyLeftOut


def paths(repo):
    return [blob.path for blob in repo.tree("")]


def test_a_work_tree_gives_what_git_would_add(origin):
    origin.commit({"a.yaml": "1", ".gitignore": "*.secret\nbuild/\n", "gone.yaml": "1"})
    (origin.work / "gone.yaml").unlink()
    (origin.work / "new.yaml").write_text("new")
    (origin.work / "x.secret").write_text("no")
    (origin.work / "build").mkdir()
    (origin.work / "build" / "y.yaml").write_text("no")
    (origin.work / "link.yaml").symlink_to("a.yaml")
    (origin.work / "a.yaml").write_text("changed")
    repo = FolderRepo(origin.work)

    assert paths(repo) == [".gitignore", "a.yaml", "new.yaml"]
    assert repo.left_out("") == (LeftOut("link.yaml", WhyLeftOut.LINK),)
    assert repo.read(repo.tree("")[1:]) == (b"changed", b"new")


def test_a_folder_inside_a_work_tree_is_its_own_root(origin):
    origin.commit({"eu/fleet.yaml": "1", "eu/m/a.yaml": "2", "us/fleet.yaml": "3"})

    assert paths(FolderRepo(origin.work / "eu")) == ["fleet.yaml", "m/a.yaml"]


def test_an_ignored_folder_is_read_all_the_same(origin):
    """A person who names it means it."""
    origin.commit({".gitignore": "scratch/\n"})
    (origin.work / "scratch").mkdir()
    (origin.work / "scratch" / "fleet.yaml").write_text("1")

    assert paths(FolderRepo(origin.work / "scratch")) == ["fleet.yaml"]


def test_a_plain_folder_gives_all_but_dot_folders(tmp_path):
    for name in ("b/c.yaml", "a.yaml", ".hidden/x.yaml", ".dot.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")

    (tmp_path / "linked").symlink_to("b")
    (tmp_path / "link.yaml").symlink_to("a.yaml")

    assert paths(FolderRepo(tmp_path)) == [".dot.yaml", "a.yaml", "b/c.yaml"]
    assert FolderRepo(tmp_path).left_out("") == (
        LeftOut("link.yaml", WhyLeftOut.LINK),
        LeftOut("linked", WhyLeftOut.LINK),
    )


def test_what_is_no_file_is_named_with_why(origin):
    """Left out in silence, the unit that a file held would look removed."""
    origin.commit({"a.yaml": "1", "pipe.yaml": "2", "loop/b.yaml": "3", "gone/c.yaml": "4"})
    shutil.rmtree(origin.work / "loop")
    (origin.work / "loop").symlink_to("loop")
    (origin.work / "pipe.yaml").unlink()
    os.mkfifo(origin.work / "pipe.yaml")
    shutil.rmtree(origin.work / "gone")
    origin.git("init", "-q", "nested")
    origin.git("commit", "-q", "--allow-empty", "-m", "x", cwd=origin.work / "nested")
    long = "m/" * 2100 + "d.yaml"
    oid = origin.git("rev-parse", "HEAD:a.yaml")
    origin.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{long}")
    repo = FolderRepo(origin.work)

    assert ["a.yaml"] == paths(repo)
    assert {
        "loop": WhyLeftOut.LINK,
        "loop/b.yaml": WhyLeftOut.UNREADABLE,
        "nested": WhyLeftOut.LINK,
        "pipe.yaml": WhyLeftOut.UNREADABLE,
        long: WhyLeftOut.LONG_PATH,
    } == {each.path: each.why for each in repo.left_out("")}


def test_a_pipe_in_a_plain_folder_is_named_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")

    repo = FolderRepo(tmp_path)

    assert [] == paths(repo)
    assert repo.left_out("") == (LeftOut("pipe.yaml", WhyLeftOut.UNREADABLE),)


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path):
    """Here because its path is too long; without the right to read it is the same."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    with pytest.raises(Stalled, match="cannot be listed") as caught:
        FolderRepo(tmp_path).fetch()

    assert caught.value.code == "folder-unreadable"
    assert len(caught.value.message) < 300


def test_what_was_fetched_is_one_listing(tmp_path):
    """Files and what is left out are of one moment, and the folder is listed once."""
    (tmp_path / "a.yaml").write_text("1")
    repo = FolderRepo(tmp_path)
    commit = repo.fetch().commit
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "a.yaml").symlink_to("b.yaml")

    assert ["a.yaml"] == [blob.path for blob in repo.tree(commit)]
    assert repo.left_out(commit) == ()
    assert repo.left_out("") == (LeftOut("a.yaml", WhyLeftOut.LINK),)
    assert repo.fetch().commit != commit


def test_the_same_files_give_the_same_revision(tmp_path):
    (tmp_path / "a").write_text("1")
    repo = FolderRepo(tmp_path)
    first = repo.fetch()

    assert repo.fetch() == FolderRepo(tmp_path).resolve("main") == first
    (tmp_path / "a").write_text("22")
    assert repo.fetch() != first


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path):
    """b.A row 33, b.F row 50."""
    (tmp_path / "a").write_text("1")
    repo = FolderRepo(tmp_path)
    blobs = repo.tree("")
    (tmp_path / "a").write_text("2")

    with pytest.raises(Retryable) as caught:
        repo.read(blobs)

    assert caught.value.code == "file-changed"


def test_a_huge_file_is_listed_but_not_read(tmp_path):
    (tmp_path / "weights").write_bytes(b"x" * (5 * 2**20 + 1))
    repo = FolderRepo(tmp_path)

    with pytest.raises(Stalled, match="weights has 5242881 bytes") as caught:
        repo.read(repo.tree(""))

    assert caught.value.code == "file-too-large"


def test_no_folder_is_no_empty_fleet(tmp_path):
    with pytest.raises(Stalled):
        FolderRepo(tmp_path / "nope").fetch()


def test_a_folder_is_never_committed_to(tmp_path):
    repo = FolderRepo(tmp_path)

    with pytest.raises(Refused):
        repo.commit_files("refs/heads/x", {}, "x")
    assert repo.read_branch("refs/heads/x") == {}
    assert repo.message("x") == ""
