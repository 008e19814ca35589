"""The Git host stand-in, asked by the real git program."""

from __future__ import annotations

import os
import subprocess

import pytest

from stoker.sim.git_http import GitFault, GitServer

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@example.invalid")


def git(*arguments, cwd=None, timeout=20):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def work(tmp_path):
    """A work tree with one commit of 2 MB, which git pushes in chunks."""
    folder = tmp_path / "work"
    git("init", "--quiet", "--initial-branch=main", str(folder))
    (folder / "blob").write_bytes(os.urandom(2_000_000))
    git("add", "blob", cwd=folder)
    git(*IDENTITY, "commit", "--quiet", "--message=Add blob", cwd=folder)
    return folder


def test_what_is_pushed_can_be_cloned(git_server, work, tmp_path):
    git_server.create_repo("fleet")
    pushed = git("push", git_server.url("fleet"), "HEAD:main", cwd=work)
    cloned = git("clone", git_server.url("fleet"), str(tmp_path / "clone"))

    assert (0, 0) == (pushed.returncode, cloned.returncode)
    assert (tmp_path / "clone" / "blob").read_bytes() == (work / "blob").read_bytes()


def test_strangers_see_nothing_and_readers_write_nothing(tmp_path, work):
    users = {"bob": "p:w/1 ü", "eve": "x"}
    with GitServer(tmp_path / "host", users, read_only=frozenset({"eve"})) as server:
        server.create_repo("fleet")
        codes = {
            "bob pushes": git("push", server.url("fleet", user="bob"), "HEAD:main", cwd=work),
            "eve reads": git("ls-remote", server.url("fleet", user="eve")),
            "eve pushes": git("push", server.url("fleet", user="eve"), "HEAD:x", cwd=work),
            "nobody reads": git("ls-remote", server.url("fleet")),
        }
        server.users["bob"] = "rotated"
        old = server.url("fleet", user="bob").replace("rotated", "p%3Aw")
        codes["bob with an old token"] = git("ls-remote", old)

    assert {
        "bob pushes": 0,
        "eve reads": 0,
        "eve pushes": 128,
        "nobody reads": 128,
        "bob with an old token": 128,
    } == {name: answer.returncode for name, answer in codes.items()}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(GitFault(status=503), "503", id="503"),
        pytest.param(GitFault(status=404), "not found", id="404"),
        pytest.param(GitFault(dead=True), "Empty reply", id="dead"),
        pytest.param(GitFault(path="git-upload-pack", truncate=500), "early EOF", id="cut short"),
    ],
)
def test_a_fault_fails_and_healing_ends_it(git_server, work, tmp_path, fault, said):
    git_server.create_repo("fleet")
    git("push", git_server.url("fleet"), "HEAD:main", cwd=work)
    git_server.break_with(fault)
    broken = git("clone", git_server.url("fleet"), str(tmp_path / "broken"))
    git_server.heal()
    healed = git("clone", git_server.url("fleet"), str(tmp_path / "healed"))

    assert (128, 0) == (broken.returncode, healed.returncode)
    assert said in broken.stderr


def test_a_fault_may_happen_a_number_of_times(git_server):
    git_server.create_repo("fleet")
    git_server.break_with(GitFault(status=500, times=2))
    codes = [git("ls-remote", git_server.url("fleet")).returncode for _ in range(3)]

    assert [128, 128, 0] == codes
    assert [500, 500, 200] == [r.status for r in git_server.requests if r.method == "GET"]


def test_a_hanging_host_answers_nothing_until_it_is_healed(git_server):
    git_server.create_repo("fleet")
    git_server.break_with(GitFault(hang=True))
    with pytest.raises(subprocess.TimeoutExpired):
        git("ls-remote", git_server.url("fleet"), timeout=0.5)
    git_server.heal()

    assert git("ls-remote", git_server.url("fleet")).returncode == 0


def test_requests_are_told_with_their_user(tmp_path):
    with GitServer(tmp_path / "host", {"bob": "x"}) as server:
        server.create_repo("fleet")
        git("ls-remote", server.url("fleet", user="bob"))

        assert ("", 401) == (server.requests[0].user, server.requests[0].status)
        assert ("bob", 200) == (server.requests[1].user, server.requests[1].status)
