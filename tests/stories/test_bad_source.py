"""What a repository gets that cannot be read, or a Fleet file that cannot be used."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field

import pytest
import yaml

from stoker.cli.world import CLUSTER_UID
from stoker.errors import Unreachable
from stories.files import FLEET, a_config_map, a_fleet, the_village
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    errors,
    fleet_status,
    is_clean,
    message,
    tell,
)


@dataclass
class Outage:
    """A repository whose server can go away: put around the real one by `World(wrap_repo=…)`."""

    away: bool = False
    polls: int = field(default=0)

    def __call__(self, repo):
        self.repo = repo
        return self

    def __getattr__(self, name):
        return getattr(self.repo, name)

    def fetch(self):
        self.polls += 1
        if self.away:
            raise Unreachable("git.example: connection timed out", code="repository-unreachable")
        return self.repo.fetch()


def told(world) -> dict[str, tuple[str, str]]:
    """The fleet's conditions of the last pass, whatever could be published of them."""
    report = world.work.last.report
    return {c.type: (c.status, str(c.reason)) for c in report.conditions}


def move_away(world) -> None:
    world.bare.rename(world.bare.with_suffix(".away"))


def bring_back(world) -> None:
    if world.bare.exists():
        shutil.rmtree(world.bare)
    world.bare.with_suffix(".away").rename(world.bare)


def test_an_unreachable_repository_leaves_the_last_good_state_at_work(new_world):
    """Time alone may cure it, so nobody is called; drift is repaired meanwhile."""
    outage = Outage()
    world = new_world(wrap_repo=outage)
    world.commit("First", the_village())
    world.settle()
    before = as_it_stands(world)
    outage.away = True

    side = yaml.safe_load(a_config_map("side", {"key": "by hand"}, namespace="llm"))
    world.cluster.apply(side, manager="kubectl", force=True)
    tell(world)

    assert "repository-unreachable" == world.work.last.failure.code
    assert ("True", "ProgressingWithRetry") == told(world)["Reconciling"]
    assert ("False", "NotStalled") == told(world)["Stalled"]
    assert ("True", "Succeeded") == told(world)["Ready"], "what is known of Git still holds"
    assert [("repository-unreachable", "", 0)] == errors(fleet_status(world))
    assert {"key": "value"} == data(world, "side")
    assert before == as_it_stands(world)

    outage.away = False
    tell(world)

    assert is_clean(world)


def test_a_repository_that_is_gone_is_told_and_nothing_is_touched(world):
    """reliability-security c.3 row 56."""
    before = as_it_stands(world)

    move_away(world)
    world.advance(3)

    assert "repository-not-found" == world.work.last.failure.code
    assert ("True", "RepositoryNotFound") == told(world)["Stalled"]
    assert ("False", "RepositoryNotFound") == told(world)["StatusWritten"]
    assert before == as_it_stands(world)

    bring_back(world)
    world.advance(8)

    assert is_clean(world)
    assert ("True", "Pushed") == told(world)["StatusWritten"]


def test_an_emptied_repository_deletes_nothing(world):
    """cases.md row 9: no commit is not the same as no units (reliability-security c.3 row 66)."""
    before = as_it_stands(world)
    move_away(world)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(world.bare)], check=True)

    world.advance(1)

    assert "repository-empty" == world.work.last.failure.code
    assert ("True", "RepositoryEmpty") == told(world)["Stalled"]
    assert before == as_it_stands(world)

    bring_back(world)
    tell(world)

    assert is_clean(world)


def test_an_empty_repository_waits_for_its_first_commit(new_world):
    """cases.md row 9: a controller may well be installed before there is anything to run."""
    world = new_world()

    assert world.one_pass() is None
    assert "repository-empty" == world.source_failure.code

    world.commit("First", the_village())
    world.settle()

    assert is_clean(world)


def test_a_deleted_branch_deletes_nothing(world):
    """reliability-security c.3 row 61."""
    before = as_it_stands(world)
    head = subprocess.run(
        ["git", "-C", str(world.bare), "rev-parse", "refs/heads/main"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    reference = ["git", "-C", str(world.bare), "update-ref"]

    subprocess.run([*reference, "-d", "refs/heads/main"], check=True)
    tell(world)

    status = fleet_status(world)
    assert ("True", "RefNotFound") == conditions(status)["Stalled"]
    assert ("False", "RefNotFound") == conditions(status)["Ready"]
    assert [("ref-not-found", "", 0)] == errors(status)
    assert before == as_it_stands(world)

    subprocess.run([*reference, "refs/heads/main", head], check=True)
    tell(world)

    assert is_clean(world)


OTHER_UID = "11111111-0000-4000-8000-000000000009"
BAD_FLEETS = {
    "deleted": (None, "fleet-file-missing", 0),
    "not YAML": (a_fleet() + "oops: [\n", "invalid-yaml", len(a_fleet().splitlines()) + 2),
    "unknown key": (
        a_fleet(pruning={"mode": "Auto"}),
        "unknown-field",
        a_fleet(pruning={}).splitlines().index("  pruning: {}") + 1,
    ),
    "no units": (a_fleet(include=["/notes/*.yaml"]), "no-units", 1),
    "pattern without a file": (
        a_fleet(include=["/modles/*.yaml", "/bundles/*/bundle.yaml"]),
        "include-no-match",
        a_fleet().splitlines().index("  - /models/*.yaml") + 1,
    ),
    "wrong cluster": (a_fleet(cluster={"uid": OTHER_UID}), "wrong-cluster", 1),
}


@pytest.mark.parametrize(("text", "code", "line"), BAD_FLEETS.values(), ids=BAD_FLEETS.keys())
def test_a_fleet_file_that_cannot_be_used_changes_and_deletes_nothing(world, text, code, line):
    """A missing Fleet file, a changed name, a unit set that shrank to nothing: an error each.

    reliability-security c.1 row 16.
    """
    before = as_it_stands(world)

    world.commit("A mistake", {FLEET: text, "notes/later.yaml": "# nothing yet\n"})
    tell(world)

    status = fleet_status(world)
    reason = "".join(part.capitalize() for part in code.split("-"))
    assert ("True", reason) == conditions(status)["Stalled"]
    assert ("False", reason) == conditions(status)["Ready"]
    assert [(code, FLEET, line)] == errors(status)
    assert FLEET in message(status, "Stalled")
    assert before == as_it_stands(world)

    world.commit("Fixed", the_village())
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)


def test_a_fleet_that_is_called_otherwise_deletes_nothing(world):
    """Under another name every object would be an orphan, and every unit new."""
    before = as_it_stands(world)

    world.commit("A new name", {FLEET: a_fleet("remote")})
    tell(world)

    status = fleet_status(world, "remote")
    assert ("True", "FleetNameChanged") == conditions(status)["Stalled"]
    assert [("fleet-name-changed", FLEET, 1)] == errors(status)
    assert "was called local" in message(status, "Stalled")
    assert before == as_it_stands(world)

    world.commit("The old name", the_village())
    tell(world)

    assert is_clean(world)
    assert before == as_it_stands(world)


def test_nothing_at_all_is_written_to_a_wrong_cluster(new_world, faults):
    """Checked before anything else: not even our own namespace or a mirror belongs there."""
    world = new_world(wrap=faults)
    world.commit("First", {**the_village(), FLEET: a_fleet(cluster={"uid": OTHER_UID})})

    world.advance(2)

    assert [] == faults.writes
    assert ("True", "WrongCluster") == conditions(fleet_status(world))["Stalled"]

    world.commit("Right", {FLEET: a_fleet(cluster={"uid": CLUSTER_UID})})
    world.settle()

    assert is_clean(world)
