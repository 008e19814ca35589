"""Over git's real smart HTTP on loopback, with a server that misbehaves."""

from __future__ import annotations

import pytest

from stoker.errors import Stalled, StokerError, Unreachable
from stoker.git import Credentials, RunLimits
from stoker.git.command import Git
from stoker.sim.git_http import GitFault, GitServer

STATUS = "refs/heads/stoker-status/prod"
SOON = RunLimits(network_seconds=0.5)
"""For a server that hangs and nothing else: what answers gets as long as it needs."""
USERS = {"bob": "s3cret", "eve": "only-looks"}


@pytest.fixture
def server(tmp_path, origin):
    with GitServer(tmp_path, USERS, read_only=frozenset({"eve"})) as server:
        origin.git("config", "http.receivepack", "true", cwd=origin.bare)
        yield server


@pytest.fixture
def open_http(server, open_repo):
    def make(who="bob:s3cret", **options):
        credentials = Credentials.from_line(who) if who else None
        return open_repo(url=server.url("origin"), credentials=credentials, **options)

    return make


def test_fetch_and_push_with_a_password(origin, open_http):
    commit = origin.commit({"a": "1"})
    repo = open_http()

    assert repo.fetch().commit == commit
    assert repo.commit_files(STATUS, {"s": b"1"}, "Status").pushed
    assert repo.read_branch(STATUS) == {"s": b"1"}


def test_a_password_in_the_address_works_and_is_shown_nowhere(origin, server, open_repo):
    commit = origin.commit({"a": "1"})
    repo = open_repo(url=server.url("origin", user="bob"))

    assert repo.fetch().commit == commit
    assert "s3cret" not in repo.url


def test_no_secret_stands_in_an_argument_list(origin, open_http, monkeypatch):
    """b.A row 19: every user of the machine can read argument lists."""
    origin.commit({"a": "1"})
    seen: list[str] = []
    start = Git.start

    def watching(self, *arguments, **options):
        seen.extend(arguments)
        return start(self, *arguments, **options)

    monkeypatch.setattr(Git, "start", watching)
    open_http().fetch()

    assert seen
    assert "s3cret" not in " ".join(seen)


def test_rotated_credentials_are_picked_up(origin, server, open_repo):
    """b.A row 17."""
    origin.commit({"a": "1"})
    given = [Credentials.from_line("bob:old")]
    repo = open_repo(url=server.url("origin"), credentials=lambda: given[-1])
    with pytest.raises(Stalled):
        repo.fetch()
    given.append(Credentials.from_line("bob:s3cret"))

    assert repo.fetch()


@pytest.mark.parametrize("who", ["", "bob:wrong", "mallory:s3cret"])
def test_strangers_are_denied_without_a_prompt(origin, open_http, who):
    origin.commit({"a": "1"})

    with pytest.raises(Stalled) as caught:
        open_http(who).fetch()

    assert caught.value.code == "repository-denied"
    assert "s3cret" not in str(caught.value)


def test_a_read_only_token_cannot_push(origin, open_http):
    origin.commit({"a": "1"})
    repo = open_http("eve:only-looks")
    repo.fetch()

    with pytest.raises(Stalled) as caught:
        repo.commit_files(STATUS, {"s": b"1"}, "Status")

    assert caught.value.code == "repository-denied"


def test_a_protected_branch_is_told(origin, open_http):
    origin.hook("update", f'test "$1" != {STATUS} || {{ echo "protected branch" >&2; exit 1; }}')
    repo = open_http()

    result = repo.commit_files(STATUS, {"s": b"1"}, "Status")

    assert not result.pushed
    assert "hook declined" in result.rejected
    assert "protected branch" in result.rejected


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        pytest.param(GitFault(status=500), "repository-unreachable", id="500"),
        pytest.param(GitFault(status=503), "repository-unreachable", id="503"),
        pytest.param(GitFault(status=401), "repository-denied", id="401"),
        pytest.param(GitFault(status=403), "repository-denied", id="403"),
        pytest.param(GitFault(status=404), "repository-not-found", id="404"),
        pytest.param(GitFault(status=301), "repository-redirected", id="301"),
        pytest.param(GitFault(dead=True), "repository-unreachable", id="reset"),
        pytest.param(GitFault(hang=True), "repository-unreachable", id="hang"),
        pytest.param(
            GitFault(path="git-upload-pack", truncate=300), "repository-unreachable", id="cut short"
        ),
    ],
)
def test_a_bad_answer_has_its_own_code_and_last_good_stays(origin, server, open_http, fault, code):
    """Rows c.3 56 to 58 of the research."""
    first = origin.commit({"a": "1"})
    open_http().fetch()
    repo = open_http(limits=SOON) if fault.hang else open_http()
    second = origin.commit({"a": "2", "b": "x" * 5000})
    server.break_with(fault)

    with pytest.raises(StokerError) as caught:
        repo.fetch()

    assert code == caught.value.code
    assert repo.resolve("main").commit == first
    assert repo.read(repo.tree(first)) == (b"1",)

    server.heal()
    assert open_http().fetch().commit == second


def test_a_repository_the_server_has_not_is_not_found(server, open_repo):
    with pytest.raises(Stalled) as caught:
        open_repo(
            url=server.url("nothing"), credentials=Credentials.from_line("bob:s3cret")
        ).fetch()

    assert caught.value.code == "repository-not-found"


def test_a_server_that_is_gone_is_unreachable(origin, open_repo):
    with pytest.raises(Unreachable):
        open_repo(url="http://127.0.0.1:9/f.git").fetch()


def test_a_server_that_sends_a_byte_at_a_time_is_given_up(origin, server, open_http):
    """reliability-security c.3 row 57: by git's own low-speed limit; 30 s where it isn't set."""
    origin.commit({"a": "1"})
    repo = open_http(limits=RunLimits(low_speed_seconds=1))
    server.break_with(GitFault(path="git-upload-pack", slow=True))
    with pytest.raises(Unreachable):
        repo.fetch()
    server.heal()

    assert RunLimits().low_speed_seconds <= 60
    assert repo.fetch().commit


def test_the_mirror_is_read_while_the_server_hangs(origin, server, open_http):
    """A pass reads files on its own thread; only the poller waits for the network."""
    commit = origin.commit({"a": "1"})
    open_http().fetch()
    repo = open_http(limits=SOON)
    server.break_with(GitFault(hang=True))
    with pytest.raises(Unreachable):
        repo.fetch()

    assert repo.read(repo.tree(commit)) == (b"1",)


def test_a_push_that_hangs_is_unknown_and_lands_once(origin, server, open_http):
    patient = open_http()
    first = patient.commit_files(STATUS, {"s": b"1"}, "Status")
    server.break_with(GitFault(path="git-receive-pack", hang=True))
    with pytest.raises(Unreachable):
        open_http(limits=SOON).commit_files(STATUS, {"s": b"2"}, "Status")
    server.heal()

    second = patient.commit_files(STATUS, {"s": b"2"}, "Status")

    assert origin.log(STATUS) == [second.commit, first.commit]
