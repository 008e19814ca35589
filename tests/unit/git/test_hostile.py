"""Repositories, servers and folders made by an attacker: what git did with them, we do not."""

from __future__ import annotations

import ast
import os
import subprocess
import threading
from pathlib import Path

import pytest

import stoker.git
from stoker.errors import Stalled, StokerError
from stoker.git import Credentials, GitRepo, RunLimits
from stoker.git.command import Git
from stoker.git.pipes import ERRORS_KEPT_BYTES

FOLDER = Path(stoker.git.__file__).parent
VERBS = frozenset(
    {
        *("cat-file", "ls-tree", "rev-parse", "merge-base", "ls-files", "check-ignore"),
        *("ls-remote", "fetch", "push"),
        *("init", "update-ref", "fast-import", "gc", "count-objects"),
        *("config", "read-tree", "hash-object", "update-index", "write-tree", "commit-tree"),
        "rev-list",
    }
)
"""Reading objects, talking to the remote, writing objects and refs of our own mirror; and for a
person's `rollback` a commit beside those of a clone, by an index of its own.
"""


_PASSED_ON = {"*arguments"}
"""What `branching._run` is given."""


def verbs_used() -> set[str]:
    """The first word of every call of Git.run and Git.start in the package, and of `_run`, by
    which `branching` calls the former.
    """
    found: set[str] = set()
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "_run":
                found.add(str(ast.literal_eval(node.args[2])))
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = ast.unparse(node.func.value)
            if node.func.attr not in {"run", "start"} or "git" not in owner.lower():
                continue
            first = node.args[0]
            if isinstance(first, ast.Starred) and isinstance(first.value, ast.Tuple):
                first = first.value.elts[0]
            if ast.unparse(first) in _PASSED_ON:
                continue
            found.add(str(first.value) if isinstance(first, ast.Constant) else ast.unparse(first))
    return found


def test_only_plumbing_without_a_work_tree_is_ever_called():
    """b.G rows 95, 102, 104, 105, 112, 113, 115: no checkout, clone, archive, apply, submodule, log.

    Every command and its options are written in our code; of a repository come only ids.
    """
    used = verbs_used()

    assert {"fetch", "ls-tree", "cat-file"} <= used
    assert used <= VERBS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("core.hooksPath", "/dev/null", id="b.G row 98"),
        pytest.param("fetch.recurseSubmodules", "false", id="b.G rows 93, 94 and 106"),
        pytest.param("submodule.recurse", "false", id="b.G rows 93, 94 and 106"),
        pytest.param("credential.helper", "", id="b.G row 96"),
        pytest.param("core.askPass", "", id="b.G row 97"),
        pytest.param("core.fsmonitor", "false", id="b.G rows 99 and 101"),
        pytest.param("transfer.bundleURI", "false", id="b.G row 107"),
        pytest.param("http.followRedirects", "false", id="b.G row 121"),
        pytest.param("transfer.fsckObjects", "true", id="b.G rows 118 and 119, b.F row 50"),
        pytest.param("fetch.fsckObjects", "true", id="b.G rows 118 and 119, b.F row 50"),
    ],
)
def test_what_is_configured_outranks_the_repository(origin, tmp_path, key, value):
    """A clone of somebody else may say otherwise, and is not obeyed."""
    home = tmp_path / "home"
    home.mkdir()
    origin.git("config", key, "/tmp/x" if value else "evil")

    answer = Git(home).run("config", "--get", key, git_dir=origin.work / ".git")

    assert answer.out.decode().strip() == value


def test_the_mirror_belongs_to_us_alone(origin, open_repo, tmp_path):
    """b.G row 99 (CVE-2022-24765): a folder that others write to makes their configuration ours."""
    origin.commit({"a": "1"})
    (tmp_path / "state").mkdir(mode=0o777)
    open_repo().fetch()

    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state" / "home").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("url", ["file://{bare}", "{bare}", "ext::sh -c {trap}"])
def test_no_other_transport_reaches_a_program_or_a_path(origin, tmp_path, url):
    """b.G rows 100, 101, 108 and 109: refused by us, and by git if we were wrong."""
    commit = origin.commit({"a": "1"})
    trap = tmp_path / "trap"
    spelled = url.format(bare=origin.bare, trap=f"touch {trap}")
    home = tmp_path / "home"
    home.mkdir()

    answer = Git(home, protocols=("https",)).run("ls-remote", "--", spelled)

    assert not answer.ok
    assert "not allowed" in answer.errors
    assert commit not in answer.out.decode()
    assert not trap.exists()


def paths_or_refusal(repo):
    """The files that are found, or why the repository is not taken (newer gits check more)."""
    try:
        return [blob.path for blob in repo.tree(repo.fetch().commit)]
    except Stalled as error:
        return [error.code]


HOSTILE_MODULES = {
    "a name that climbs": '[submodule "../../modules/x"]\n\tpath = x\n\turl = https://h/x\n',
    "an address that is an option": '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n',
    "a path that is an option": '[submodule "x"]\n\tpath = -x\n\turl = https://h/x\n',
    "a command": '[submodule "x"]\n\tpath = x\n\turl = https://h/x\n\tupdate = !touch trap\n',
    "a path that ends in a return": '[submodule "x"]\n\tpath = "x\\r"\n\turl = https://h/x\n',
}


@pytest.mark.parametrize("text", HOSTILE_MODULES.values(), ids=HOSTILE_MODULES.keys())
def test_submodules_are_never_looked_at(origin, open_repo, tmp_path, text):
    """b.G rows 93 (CVE-2018-17456), 94, 95, 98 (CVE-2024-32002), 106 (CVE-2025-48384)."""
    origin.commit({"a.yaml": "1"})
    head = origin.git("rev-parse", "HEAD")
    (origin.work / ".gitmodules").write_text(text)
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{head},x")
    origin.git("add", ".gitmodules")
    origin.git("commit", "-q", "-m", "Evil")
    origin.git("push", "-q", "--force", str(origin.bare), "HEAD:refs/heads/main")
    repo = open_repo()

    assert paths_or_refusal(repo) in (["repository-unsafe"], [".gitmodules", "a.yaml"])
    assert not list((tmp_path / "state").rglob("modules"))
    assert not list(tmp_path.rglob("trap"))


def test_a_gigantic_attributes_file_is_not_processed(origin, open_repo):
    """b.G row 103 (CVE-2022-23521): refused on receipt, or a file like any other."""
    origin.commit({".gitattributes": "a " + "x" * 300_000 + "=1\n" * 3, "a.yaml": "1"})
    repo = open_repo()

    assert paths_or_refusal(repo) in (["repository-unsafe"], [".gitattributes", "a.yaml"])


@pytest.mark.parametrize("path", [None, "."], ids=["as it is", "with the folder itself"])
def test_a_program_called_git_in_the_working_folder_is_not_run(tmp_path, monkeypatch, path):
    """b.G row 110 (CVE-2023-40590)."""
    trap, here, home = tmp_path / "trap", tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    fake = here / "git"
    fake.write_text(f"#!/bin/sh\ntouch {trap}\n")
    fake.chmod(0o755)
    monkeypatch.chdir(here)
    if path is not None:
        monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")

    answer = Git(home).run("rev-parse", "--git-dir")

    assert not answer.ok
    assert not trap.exists()


@pytest.mark.parametrize(
    "revision",
    ["--output=trap", "--upload-pack=touch trap", "-O/etc/passwd", "../../../../etc/passwd", "a b"],
)
def test_what_looks_like_an_option_or_a_path_is_no_revision(origin, open_repo, tmp_path, revision):
    """b.G rows 111 (CVE-2023-41040), 112 and 114: of revisions only ids reach git's arguments."""
    origin.commit({"a": "1"})
    repo = open_repo()
    repo.fetch()

    for look in (repo.resolve, repo.tree, repo.message):
        with pytest.raises(StokerError) as caught:
            look(revision)
        assert caught.value.code in {"ref-invalid", "ref-not-found"}

    assert not list(tmp_path.rglob("trap"))


def test_refs_of_the_server_name_nothing_in_the_mirror(origin, open_repo, tmp_path):
    """b.G row 120 (CVE-2026-71557): one ref is fetched, under a name of ours."""
    origin.commit({"a": "1"})
    origin.git("tag", "evil")
    origin.git("push", "-q", str(origin.bare), "evil", "HEAD:refs/stoker/tracked/evil")
    open_repo().fetch()

    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"],
        cwd=tmp_path / "state" / "mirror.git",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert len(listed) == 1
    assert listed[0].startswith("refs/stoker/tracked/")
    assert "evil" not in listed[0]


def test_a_pack_over_the_limit_is_not_taken(origin, open_repo):
    """b.G row 118 (CVE-2025-21614): what a server sends has a bound, and last good stays."""
    first = origin.commit({"a": "1"})
    repo = open_repo(limits=RunLimits(file_bytes=200_000))
    repo.fetch()
    origin.commit({"b": os.urandom(2_000_000)})

    with pytest.raises(StokerError):
        repo.fetch()

    assert repo.resolve("main").commit == first
    assert repo.read(repo.tree(first)) == (b"1",)


def shell(tmp_path, script, **limits):
    home = tmp_path / "home"
    home.mkdir()
    git = Git(home, limits=RunLimits(**limits))
    return git.run("-c", f"alias.say=!{script}", "say")


def test_an_answer_without_end_is_cut_off(tmp_path):
    """b.G row 118: a server that lists refs for ever must not fill the controller's memory."""
    with pytest.raises(Stalled) as caught:
        shell(tmp_path, "yes", answer_bytes=1_000_000)

    assert caught.value.code == "repository-too-large"


def test_of_complaints_without_end_the_last_are_kept(tmp_path):
    """b.G row 118: whatever a server prints as `remote:` lines."""
    answer = shell(tmp_path, "yes remote | head -c 5000000 >&2; echo fatal: last >&2; exit 1")

    assert answer.errors.endswith("fatal: last\n")
    assert len(answer.errors) <= ERRORS_KEPT_BYTES


def test_much_goes_in_while_much_comes_out(tmp_path):
    """Both pipes are full at times; neither side waits for the other for ever."""
    home = tmp_path / "home"
    home.mkdir()
    given = os.urandom(3_000_000)

    answer = Git(home).run("-c", "alias.echo=!cat", "echo", stdin=given)

    assert answer.out == given


def test_a_child_that_does_not_listen_is_no_trouble(tmp_path):
    home = tmp_path / "home"
    home.mkdir()

    assert Git(home).run("-c", "alias.deaf=!true", "deaf", stdin=b"x" * 1_000_000).ok


def test_credentials_are_read_anew_by_each_of_many_threads(origin, clock, tmp_path):
    """b.A rows 16 and 17 (CVE-2025-55191): no cache of them to race for."""
    origin.commit({"a": "1"})
    asked: list[int] = []

    def credentials():
        asked.append(1)
        return Credentials(username="bob", password="s3cret")

    with GitRepo(
        *(origin.url, "main", tmp_path / "state"),
        clock=clock,
        allow_file=True,
        credentials=credentials,
    ) as repo:
        repo.fetch()
        before, done = len(asked), []

        def use():
            done.append(repo.read_branch("refs/heads/main"))

        threads = [threading.Thread(target=use) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert done == [{"a": b"1"}] * 6
    assert len(asked) >= before + 6
