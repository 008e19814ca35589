from __future__ import annotations

import pytest

from stoker.errors import Stalled
from stoker.git import GitRepo
from stoker.git.command import Git
from stoker.model.left_out import LeftOut, WhyLeftOut
from stoker.model.refs import SourceRevision


def test_fetch_gives_the_tip_and_its_files(origin, open_repo):
    commit = origin.commit({"b/two.yaml": "2\n", "a.yaml": "1\n"}, "First\n\nBody")
    repo = open_repo()

    revision = repo.fetch()
    blobs = repo.tree(revision.commit)

    assert SourceRevision("main", commit) == revision
    assert ["a.yaml", "b/two.yaml"] == [blob.path for blob in blobs]
    assert (b"1\n", b"2\n") == repo.read(blobs)
    assert repo.message(commit) == "First\n\nBody\n"


def test_links_and_submodules_are_left_out(origin, open_repo):
    """b.A rows 4 and 5, b.F row 48; reliability-security c.3 row 64."""
    origin.commit({"a.yaml": "1"})
    (origin.work / "link.yaml").symlink_to("/etc/passwd")
    head = origin.git("rev-parse", "HEAD")
    (origin.work / "module").mkdir()
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{head},module")
    origin.commit({})
    repo = open_repo()

    commit = repo.fetch().commit
    paths = [blob.path for blob in repo.tree(commit)]

    assert paths == ["a.yaml"]
    assert repo.left_out(commit) == (
        LeftOut("link.yaml", WhyLeftOut.LINK),
        LeftOut("module", WhyLeftOut.LINK),
    )


def test_a_path_over_the_limit_is_named_and_one_at_it_is_a_file(origin, open_repo):
    """Dropped in silence, the unit in it would look removed, and be pruned."""
    origin.commit({"a.yaml": "1"})
    oid = origin.git("rev-parse", "HEAD:a.yaml")
    at, over = ("models/" + "x" * (size - 7) for size in (4096, 4097))
    for path in (at, over):
        origin.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}")
    origin.git("commit", "-q", "-m", "Long")
    origin.git("push", "-q", str(origin.bare), "HEAD:refs/heads/main")
    repo = open_repo()

    commit = repo.fetch().commit

    assert ["a.yaml", at] == [blob.path for blob in repo.tree(commit)]
    assert repo.left_out(commit) == (LeftOut(over, WhyLeftOut.LONG_PATH),)


@pytest.mark.parametrize("spelling", ["main", "refs/heads/main"])
def test_full_and_short_names_are_the_same_ref(origin, open_repo, spelling):
    """cases.md row 5."""
    commit = origin.commit({"a": "1"})
    repo = open_repo(spelling)

    assert str(repo.fetch()) == f"main@sha1:{commit}"
    assert repo.resolve("refs/heads/main") == repo.resolve("main") == repo.fetch()


def test_an_annotated_tag_is_its_commit_and_a_moved_tag_is_followed_and_told(origin, open_repo):
    """cases.md row 3: neither the tag object's id nor a stale commit may come out.

    reliability-security c.3 row 62.
    """
    first = origin.commit({"a": "1"})
    origin.git("tag", "-a", "v1", "-m", "one")
    origin.git("push", "-q", str(origin.bare), "v1")
    repo = open_repo("v1")

    assert repo.fetch() == SourceRevision("v1", first)
    origin.git("tag", "-f", "-a", "v1", "-m", "same commit, new tag object")
    origin.git("push", "-q", "--force", str(origin.bare), "v1")
    assert repo.fetch() == SourceRevision("v1", first)
    assert str(repo.last_move) == "None"

    origin.git("checkout", "-q", "--orphan", "other")
    second = origin.commit({"a": "2"}, branch="other")
    origin.git("tag", "-f", "-a", "v1", "-m", "two")
    origin.git("push", "-q", "--force", str(origin.bare), "v1")

    assert repo.fetch() == SourceRevision("v1", second)
    assert str(repo.last_move) == "Rewound"


def test_an_empty_repository_says_so(open_repo):
    """cases.md row 9 (reliability-security c.3 row 66)."""
    with pytest.raises(Stalled, match="is empty") as caught:
        open_repo().fetch()

    assert caught.value.code == "repository-empty"


def test_a_deleted_branch_is_an_error_and_old_commits_stay_readable(origin, open_repo):
    commit = origin.commit({"a": "1"})
    origin.commit({"b": "1"}, branch="other")
    repo = open_repo()
    repo.fetch()
    origin.git("update-ref", "-d", "refs/heads/main", cwd=origin.bare)

    with pytest.raises(Stalled) as caught:
        repo.fetch()

    assert caught.value.code == "ref-not-found"
    assert [blob.path for blob in repo.tree(commit)] == ["a"]
    assert repo.resolve("main").commit == commit


def test_a_branch_and_a_tag_of_one_name_must_agree(origin, open_repo):
    """Who may push tags must not decide what a branch of that name means.

    reliability-security c.3 row 62.
    """
    origin.commit({"a": "1"})
    origin.git("tag", "main")
    origin.git("push", "-q", str(origin.bare), "refs/tags/main")
    repo = open_repo()
    repo.fetch()
    second = origin.commit({"a": "2"})

    with pytest.raises(Stalled) as caught:
        repo.fetch()

    assert caught.value.code == "ref-ambiguous"
    assert open_repo("refs/heads/main", folder="x").fetch() == SourceRevision("main", second)


def test_a_missing_repository_is_no_empty_one(open_repo, tmp_path):
    with pytest.raises(Stalled) as caught:
        open_repo(url=f"file://{tmp_path}/nowhere.git").fetch()

    assert caught.value.code == "repository-not-found"


def test_file_addresses_need_consent(origin, clock, tmp_path):
    """b.G rows 100 and 101."""
    with pytest.raises(Stalled) as caught:
        GitRepo(origin.url, "main", tmp_path / "x", clock=clock)

    assert caught.value.code == "repository-url-refused"


def test_nothing_moved_costs_one_ls_remote(origin, open_repo, monkeypatch):
    origin.commit({"a": "1"})
    repo = open_repo()
    first = repo.fetch()
    commands = _watch_commands(monkeypatch)

    assert repo.fetch() == first
    assert commands == ["ls-remote"]


def test_a_restart_does_not_fetch_again(origin, open_repo, monkeypatch):
    origin.commit({"a": "1"})
    first = open_repo().fetch()
    commands = _watch_commands(monkeypatch)
    again = open_repo()

    assert again.fetch() == first
    assert "fetch" not in commands


def test_a_rewound_branch_is_followed_and_told(origin, open_repo):
    first = origin.commit({"a": "1"})
    second = origin.commit({"a": "2"})
    repo = open_repo()
    assert repo.fetch().commit == second
    origin.git("reset", "-q", "--hard", first)
    origin.git("push", "-q", "--force", str(origin.bare), "HEAD:refs/heads/main")

    assert repo.fetch().commit == first
    assert str(repo.last_move) == "Rewound"

    origin.commit({"a": "3"})
    repo.fetch()
    assert str(repo.last_move) == "Forward"


def test_a_commit_can_be_tracked(origin, open_repo):
    first = origin.commit({"a": "1"})
    origin.commit({"a": "2"})

    assert open_repo(first).fetch().commit == first


def test_other_branches_tags_and_abbreviations_resolve(origin, open_repo):
    first = origin.commit({"a": "1"})
    origin.git("tag", "-a", "v1", "-m", "one")
    origin.git("push", "-q", str(origin.bare), "v1")
    second = origin.commit({"a": "2"}, branch="next")
    repo = open_repo()
    repo.fetch()

    assert repo.resolve("v1") == SourceRevision("v1", first)
    assert repo.resolve("next") == SourceRevision("next", second)
    assert repo.resolve(first[:8]).commit == first
    with pytest.raises(Stalled) as caught:
        repo.resolve("nope")
    assert caught.value.code == "ref-not-found"


def test_the_head_of_the_remote_resolves(origin, open_repo):
    commit = origin.commit({"a": "1"})

    assert open_repo().resolve("HEAD").commit == commit


def test_a_file_over_the_limit_is_named_and_the_rest_stays_readable(origin, open_repo):
    """b.A row 7; reliability-security c.3 row 63."""
    origin.commit({"big.yaml": b"x" * (5 * 2**20 + 1), "small.yaml": "1"})
    repo = open_repo()
    blobs = repo.tree(repo.fetch().commit)

    with pytest.raises(Stalled, match=r"big\.yaml has 5242881 bytes") as caught:
        repo.read(blobs)

    assert caught.value.code == "file-too-large"
    assert repo.read(blobs[1:]) == (b"1",)


def test_many_files_are_read_without_deadlock(origin, open_repo):
    files = {f"f/{n:04}": f"{n}" * 400 for n in range(1500)}
    origin.commit(files)
    repo = open_repo()
    blobs = repo.tree(repo.fetch().commit)

    assert [content.encode() for content in files.values()] == list(repo.read(blobs))


def _watch_commands(monkeypatch) -> list[str]:
    commands: list[str] = []
    start = Git.start

    def watching(self, *arguments, **options):
        commands.append(arguments[0])
        return start(self, *arguments, **options)

    monkeypatch.setattr(Git, "start", watching)
    return commands
