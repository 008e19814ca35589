"""A disk that takes no more writes: the last good state stays, and it heals without a person."""

from __future__ import annotations

import errno
import os

import pytest

from fakes_disk import FullDisk
from stoker.errors import Retryable, Stalled
from stoker.git.trouble import error_of, folder_error


@pytest.fixture
def disk(tmp_path, monkeypatch):
    made = FullDisk.in_folder(tmp_path)
    monkeypatch.setenv("PATH", f"{made.programs}{os.pathsep}{os.environ['PATH']}")
    return made


def files_of(folder):
    return sorted(
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".lock", ".idx", ".pack", ".rev"}
    )


def test_a_fetch_onto_a_full_disk_keeps_what_was_there(disk, origin, open_repo, tmp_path):
    """reliability-security c.1 row 10: clean failure, nothing left over, tried again."""
    first = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    before = files_of(tmp_path / "state")
    second = origin.commit({"a": "2"})
    disk.fill()
    for _ in range(3):
        with pytest.raises(Retryable) as caught:
            repo.fetch()
        assert "disk-full" == caught.value.code

    assert "Change\n" == repo.message(first)
    disk.free()
    assert second == repo.fetch().commit
    assert before == files_of(tmp_path / "state")


def test_a_first_fetch_onto_a_full_disk_is_tried_again(disk, origin, open_repo):
    """reliability-security c.1 row 10: a process that starts while it is full waits for room."""
    commit = origin.commit({"a": "1"})
    disk.fill()
    repo = open_repo()
    with pytest.raises(Retryable) as caught:
        repo.fetch()
    disk.free()

    assert "disk-full" == caught.value.code
    assert commit == repo.fetch().commit


def test_a_rebuild_on_a_full_disk_keeps_the_old_mirror(disk, origin, open_repo):
    """reliability-security c.1 row 10, c.3 row 58: swapped in only when it is whole."""
    first = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    second = origin.commit({"a": "2"})
    repo._mirror.corrupt = True
    disk.fill()
    with pytest.raises(Retryable) as caught:
        repo.fetch()

    assert "disk-full" == caught.value.code
    assert "Change\n" == repo.message(first)
    disk.free()
    assert second == repo.fetch().commit


def test_a_status_that_fits_nowhere_is_committed_once_there_is_room(disk, origin, open_repo):
    """reliability-security c.1 row 10: no half commit is pushed."""
    origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    disk.fill()
    with pytest.raises(Retryable) as caught:
        repo.commit_files("refs/heads/status", {"status.yaml": b"x: 1\n"}, "Say how it is")
    disk.free()
    repo.commit_files("refs/heads/status", {"status.yaml": b"x: 1\n"}, "Say how it is")

    assert "disk-full" == caught.value.code
    assert 1 == len(origin.log("status"))


def test_a_state_folder_that_cannot_be_written_is_told(origin, open_repo, tmp_path):
    """reliability-security c.1 row 11: a reason of its own, and no crash of a thread."""
    origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    lock = tmp_path / "state" / "mirror.lock"
    lock.unlink()
    lock.mkdir()
    second = origin.commit({"a": "2"})
    with pytest.raises(Retryable) as caught:
        repo.fetch()
    lock.rmdir()

    assert "state-folder-unusable" == caught.value.code
    assert str(tmp_path / "state") in caught.value.message
    assert second == repo.fetch().commit


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EFBIG, "disk-full"),
        (errno.EROFS, "state-folder-unusable"),
        (errno.EACCES, "state-folder-unusable"),
        (errno.EMFILE, "state-folder-unusable"),
    ],
    ids=errno.errorcode.get,
)
def test_what_the_system_says_of_our_folder(number, code, tmp_path):
    """reliability-security c.1 rows 10 to 12: full, read-only and without inodes or descriptors."""
    error = folder_error(OSError(number, os.strerror(number)), tmp_path)

    assert code == error.code
    assert error.hint


@pytest.mark.parametrize(
    ("errors", "code", "kind"),
    [
        ("fatal: write error: File too large", "disk-full", Retryable),
        ("error: unable to create temporary file: Read-only file system", "state-folder-unusable", Retryable),
        ("fatal: Unable to create '/s/mirror.git/x.lock': Permission denied", "state-folder-unusable", Retryable),
        ("error: insufficient permission for adding an object", "state-folder-unusable", Retryable),
        ("fatal: cannot open '/s/mirror.git/packed-refs': Too many open files", "state-folder-unusable", Retryable),
        ("remote: fatal: write error: No space left on device", "repository-unreachable", Retryable),
        ("remote: error: insufficient permission for adding an object", "repository-unreachable", Retryable),
        ("git@h: Permission denied (publickey).", "repository-denied", Stalled),
        ("ERROR: Permission to a/b.git denied to c.", "repository-denied", Stalled),
    ],
)  # fmt: skip
def test_our_disk_is_told_from_the_servers(errors, code, kind):
    """reliability-security c.1 rows 10 and 11: nobody looks for space on the wrong machine."""
    error = error_of("fetching", errors, shown="https://h/f")

    assert code == error.code
    assert isinstance(error, kind)
