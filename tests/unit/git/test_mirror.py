from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
from contextlib import suppress

import pytest

from stoker.errors import Retryable, Stalled, Unreachable
from stoker.git import GitRepo, RunLimits
from stoker.git.command import Git


def test_a_dropped_repository_leaves_no_child_behind(origin, clock, tmp_path):
    commit = origin.commit({"a": "1"})
    repo = GitRepo(origin.url, "main", tmp_path / "state", clock=clock, allow_file=True)
    repo.fetch()
    repo.message(commit)
    (child,) = repo._mirror.objects._reader._running
    assert child.poll() is None
    del repo
    gc.collect()

    assert child.returncode is not None


def test_a_killed_reader_is_started_again(origin, open_repo):
    commit = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    repo.message(commit)
    (child,) = repo._mirror.objects._reader._running
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()

    assert repo.message(commit) == "Change\n"


def test_planted_locks_do_not_stop_the_next_fetch(origin, open_repo, tmp_path):
    """cases.md row 1: whoever holds our lock knows that nobody else is writing.

    reliability-security c.3 row 59.
    """
    origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    mirror = tmp_path / "state" / "mirror.git"
    tracked = next(path for path in (mirror / "refs" / "stoker" / "tracked").iterdir())
    for lock in ("index.lock", "packed-refs.lock", "shallow.lock", "config.lock", "HEAD.lock"):
        (mirror / lock).touch()
    tracked.with_name(f"{tracked.name}.lock").touch()
    (mirror / "objects" / "info").mkdir(exist_ok=True)
    for half in ("info/commit-graph.lock", "pack/tmp_pack_x", "pack/pack-x.keep", "tmp_obj_x"):
        (mirror / "objects" / half).touch()
    second = origin.commit({"a": "2"})

    assert repo.fetch().commit == second
    assert not [*mirror.rglob("*.lock"), *mirror.rglob("tmp_*"), *mirror.rglob("*.keep")]


def test_a_killed_fetch_leaves_a_usable_mirror(origin, open_repo, tmp_path, monkeypatch):
    """cases.md row 1: kill -9 of git and its helpers, at several points of a fetch."""
    repo = open_repo()
    origin.commit({"a": "0"})
    repo.fetch()
    start = Git.start
    stopped: list[int] = []

    def start_and_kill(self, *arguments, **options):
        process = start(self, *arguments, **options)
        if arguments[0] == "fetch":
            spin = 3000 * len(stopped)
            while spin and process.poll() is None:
                spin -= 1
            os.killpg(process.pid, signal.SIGKILL)
            stopped.append(process.pid)
        return process

    for n in range(8):
        origin.commit({f"f{n}": os.urandom(200_000)})
        with monkeypatch.context() as patch:
            patch.setattr(Git, "start", start_and_kill)
            with suppress(Retryable):
                repo.fetch()

    last = origin.commit({"a": "last"})
    assert stopped
    assert repo.fetch().commit == last
    assert len(repo.read(repo.tree(last))) == 9
    check = subprocess.run(
        ["git", "fsck", "--strict"], cwd=tmp_path / "state" / "mirror.git", check=False
    )
    assert check.returncode == 0


@pytest.mark.parametrize("damage", ["config", "objects", "pack", "empty"])
def test_a_corrupt_mirror_is_rebuilt(origin, open_repo, tmp_path, damage):
    """reliability-security c.3 row 58."""
    origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    repo.close()
    mirror = tmp_path / "state" / "mirror.git"
    if damage == "config":
        (mirror / "config").write_text("[core\n")
    elif damage == "objects":
        shutil.rmtree(mirror / "objects")
    elif damage == "empty":
        shutil.rmtree(mirror)
    else:
        for pack in mirror.glob("objects/pack/*"):
            pack.chmod(0o600)
            pack.write_bytes(pack.read_bytes()[:40])
    second = origin.commit({"a": "2"})
    again = open_repo()

    assert again.fetch().commit == second
    assert again.read(again.tree(second)) == (b"2",)


def test_an_unreadable_object_is_met_once_then_healed(origin, open_repo, tmp_path):
    """b.A row 33."""
    commit = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    for pack in (tmp_path / "state" / "mirror.git" / "objects" / "pack").iterdir():
        pack.unlink()

    with pytest.raises(Retryable) as caught:
        repo.tree(commit)

    assert caught.value.code == "mirror-corrupt"
    assert repo.fetch().commit == commit
    assert repo.read(repo.tree(commit)) == (b"1",)


def test_a_failed_rebuild_keeps_the_old_mirror(origin, open_repo, tmp_path):
    commit = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    repo._mirror.corrupt = True
    origin.bare.rename(tmp_path / "away.git")

    with pytest.raises(Stalled):
        repo.fetch()

    assert [blob.path for blob in repo.tree(commit)] == ["a"]


def test_a_git_child_past_its_limit_is_killed_with_its_group(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    git = Git(home, limits=RunLimits(local_seconds=0.3))
    git._environment["GIT_PAGER"] = "cat"

    with pytest.raises(Unreachable, match=r"stopped after 0\.3 s") as caught:
        git.run("-c", "alias.hang=!sleep 600", "hang")

    assert caught.value.code == "repository-unreachable"


def test_a_hanging_writer_of_another_process_is_reported(origin, open_repo, tmp_path):
    """An orphaned git child of a killed Stoker holds the lock that it inherited."""
    origin.commit({"a": "1"})
    repo = open_repo(limits=RunLimits(lock_seconds=0.2))
    with repo._mirror.writing(), pytest.raises(Retryable) as caught:
        repo.fetch()

    assert caught.value.code == "mirror-busy"
    assert repo.fetch()


def test_the_child_sees_neither_our_environment_nor_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("SECRET", "hunter2")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Mallory\n")
    git = Git(home)

    shown = git.run("-c", "alias.env=!env", "env").out.decode()

    assert "SECRET" not in shown
    assert "/nowhere" not in shown
    assert git.run("config", "user.name").out == b""
    assert git.run("config", "core.hooksPath").out == b"/dev/null\n"
    assert "GIT_ALLOW_PROTOCOL=none" in shown


def test_broken_objects_of_a_server_are_refused(origin, open_repo):
    """b.G rows 116, 117 and 119; reliability-security c.3 row 58.

    Checked on receipt: a tree that holds `.git` would write hooks on checkout elsewhere.
    """
    commit = origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()
    blob = origin.git("rev-parse", "HEAD:a")
    made = subprocess.run(
        ["git", "mktree"],
        cwd=origin.bare,
        input=f"100644 blob {blob}\t.git\n",
        capture_output=True,
        text=True,
        check=True,
    )
    evil = origin.git("commit-tree", made.stdout.strip(), "-p", commit, "-m", "x", cwd=origin.bare)
    origin.git("update-ref", "refs/heads/main", evil, cwd=origin.bare)

    with pytest.raises(Stalled) as caught:
        repo.fetch()

    assert caught.value.code == "repository-unsafe"
    assert repo.resolve("main").commit == commit


def test_packs_are_joined_at_most_once_a_day(origin, open_repo, clock, monkeypatch):
    origin.commit({"a": "1"})
    monkeypatch.setattr("stoker.git.mirror.PACKS_KEPT", 1)
    repo = open_repo()
    repo.fetch()
    repo.commit_files("refs/heads/status", {"s.yaml": b"1"}, "Status")
    commands = _watch_commands(monkeypatch)
    origin.commit({"a": "2"})
    repo.fetch()
    assert "gc" not in commands
    clock.ms += 25 * 3600 * 1000
    last = origin.commit({"a": "3"})
    repo.fetch()

    assert "gc" in commands
    assert repo.read(repo.tree(last)) == (b"3",)


def _watch_commands(monkeypatch) -> list[str]:
    commands: list[str] = []
    start = Git.start

    def watching(self, *arguments, **options):
        commands.append(arguments[0])
        return start(self, *arguments, **options)

    monkeypatch.setattr(Git, "start", watching)
    return commands
