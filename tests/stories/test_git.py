"""What happens in the repository: refs that move, locks left behind, who else writes status."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stories.files import a_config_map, a_service, the_fleet, the_village
from stories.looks import conditions, data, fleet_status, is_clean, tell

BRANCH = "refs/heads/stoker-status/local"
NEW = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}


def git(at: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=You", "-c", "user.email=you@example.invalid")
    done = subprocess.run(
        ["git", "-C", str(at), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_locks_that_a_killed_git_left_behind_hinder_nobody(world):
    """cases.md row 1: without a person, and without a new pod."""
    mirrors = [head.parent for head in world.bare.parent.glob("state-*/**/HEAD")]
    assert mirrors
    for mirror in mirrors:
        for name in ("config.lock", "packed-refs.lock", "shallow.lock", "HEAD.lock", "index.lock"):
            (mirror / name).touch()

    world.commit("News", NEW)
    world.advance(5)

    assert {"key": "new"} == data(world, "side")
    assert is_clean(world)


def test_an_annotated_tag_that_is_moved_is_followed(new_world):
    """cases.md row 3: the tag object's id is not the commit's."""
    world = new_world(ref="v1")
    commit = world.commit("First", the_village())
    git(world.work_tree, "tag", "-a", "v1", "-m", "one")
    git(world.work_tree, "push", "-q", "origin", "v1")
    world.settle()

    assert f"v1@sha1:{commit}" == fleet_status(world)["lastAppliedRevision"]
    assert is_clean(world)

    moved = world.commit("News", NEW)
    tell(world)
    assert {"key": "value"} == data(world, "side"), "the tag stands where it stood"

    git(world.work_tree, "tag", "-f", "-a", "v1", "-m", "two")
    git(world.work_tree, "push", "-q", "-f", "origin", "v1")
    tell(world)

    assert {"key": "new"} == data(world, "side")
    assert f"v1@sha1:{moved}" == fleet_status(world)["lastAppliedRevision"]
    assert is_clean(world)


def test_a_branch_by_its_full_name_is_the_same_branch(new_world):
    """cases.md row 5."""
    world = new_world(ref="refs/heads/main")
    commit = world.commit("First", the_village())
    world.settle()

    assert fleet_status(world)["lastAppliedRevision"].endswith(commit)
    assert is_clean(world)


def test_a_branch_that_is_forced_back_is_followed_back(world):
    """A revert by force is a change like any other; history of the fleet is Git's.

    reliability-security c.3 row 60.
    """
    first = git(world.work_tree, "rev-parse", "HEAD")
    world.commit("News", NEW)
    tell(world)
    assert {"key": "new"} == data(world, "side")

    git(world.work_tree, "push", "-q", "-f", "origin", f"{first}:refs/heads/main")
    tell(world)

    assert {"key": "value"} == data(world, "side")
    assert is_clean(world)


def test_status_goes_on_where_others_write_too(new_world):
    """cases.md row 11: never a root commit, never forced, foreign files stay."""
    world = new_world()
    world.commit("First", the_village())
    notes = world.bare.parent / "notes"
    git(world.bare.parent, "clone", "-q", str(world.bare), str(notes))
    git(notes, "checkout", "-q", "--orphan", "stoker-status/local")
    git(notes, "rm", "-q", "-r", "-f", ".")
    (notes / "README.md").write_text("By people\n", encoding="utf-8")
    git(notes, "add", "README.md")
    git(notes, "commit", "-q", "-m", "By people")
    git(notes, "push", "-q", "origin", "HEAD:refs/heads/stoker-status/local")
    root = git(notes, "rev-parse", "HEAD")

    world.settle()
    assert is_clean(world)
    git(notes, "fetch", "-q", "origin")
    git(notes, "reset", "-q", "--hard", "origin/stoker-status/local")
    (notes / "README.md").write_text("By people, again\n", encoding="utf-8")
    git(notes, "commit", "-q", "-a", "-m", "Again")
    git(notes, "push", "-q", "origin", "HEAD:refs/heads/stoker-status/local")
    world.commit("News", NEW)
    world.advance(4)

    assert is_clean(world)
    assert "By people, again\n" == world.status_file("README.md")
    assert [root] == git(world.bare, "rev-list", "--max-parents=0", BRANCH).split()
    assert "" == git(world.bare, "rev-list", "--merges", BRANCH)


def test_a_status_branch_that_was_deleted_comes_back(world):
    git(world.bare, "update-ref", "-d", BRANCH)

    world.commit("News", NEW)
    world.advance(4)

    assert is_clean(world)


def test_a_status_branch_that_refuses_us_delays_nothing(world):
    """The fleet converges all the same, and says in the cluster what Git can't say."""
    hook = world.bare / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do case $ref in refs/heads/stoker-*) "
        "echo protected >&2; exit 1;; esac; done\n",
        encoding="utf-8",
    )
    hook.chmod(0o755)

    world.commit("News", {**NEW, "models/other.yaml": a_service("other", replicas=0)})
    world.advance(4)

    told = {c.type: (c.status, str(c.reason)) for c in world.work.last.report.conditions}
    assert {"key": "new"} == data(world, "side")
    assert "False" == told["StatusWritten"][0]
    fleet = world.objects("stoker.dev", "Fleet", "stoker-system")[0]
    written = {c["type"]: c["status"] for c in fleet["status"]["conditions"]}
    assert "False" == written["StatusWritten"]

    hook.unlink()
    world.advance(40)

    assert ("True", "Pushed") == {
        c.type: (c.status, str(c.reason)) for c in world.work.last.report.conditions
    }["StatusWritten"]
    assert is_clean(world)


def test_a_history_of_what_was_applied_is_kept_for_five_revisions(world):
    """Newest first; what failed stays told as failed."""
    world.commit("Broken", {"models/tiny.yaml": a_service(replicas=-1)})
    tell(world)
    world.commit("Mended", the_village())
    tell(world)
    world.commit("News", NEW)
    tell(world)

    results = [entry["result"] for entry in fleet_status(world)["history"]]
    assert ["Applied", "Applied"] == results[:2]
    assert "Applied" != results[2]
    assert "True" == conditions(fleet_status(world))["Ready"][0]


def test_a_restarted_controller_says_nothing_new(world):
    """cases.md row 99: what it said before stands on the branch, times and all."""
    before, commits = world.status_file(), world.status_commits()

    world.start_controller()
    world.advance(5)

    assert commits == world.status_commits()
    assert before == world.status_file()


def test_files_of_no_unit_change_nothing(settled, faults):
    """A commit that touches only documents moves the revision and writes no object."""
    world = settled(the_fleet(side={"side.yaml": a_config_map("side")}))
    faults.asked.clear()

    commit = world.commit("Words", {"README.md": "About us\n"})
    tell(world)

    assert [] == [path for path in faults.writes if "/apis/stoker.dev/" not in path]
    assert f"main@sha1:{commit}" == fleet_status(world)["lastAppliedRevision"]
    assert is_clean(world)
