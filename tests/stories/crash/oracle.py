"""What must be true of a fleet at rest, however often its controller died on the way.

In: a World, a phase, and `Before`, taken when the phase began. Out: failed assertions that
say what differs. Looks at the API server and at Git only, never into the controller.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import yaml

from stoker.apply.store import INVENTORY_LABEL
from stoker.cli.world import World
from stoker.model.change import Action
from stoker.model.refs import ObjectRef, UnitRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.inventory_shards import entries_from_shards
from stories.crash.phases import Phase
from stories.looks import CLEAN, data, pod_uids, revisions, serving

KINDS = (
    ("", "Namespace"),
    ("", "ConfigMap"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("", "Secret"),
    ("apps", "Deployment"),
    ("policy", "PodDisruptionBudget"),
)
"""Every kind that these fleets render, and those that the foreign objects have."""
BRANCH = "refs/heads/stoker-status/local"
RECORDS = "refs/stoker/local"
NOTES = "NOTES.md"
TYPED = ObjectRef("", "ConfigMap", "llm", "typed-mark", "v1")
"""Somebody's object under the mark that an object of ours of this name would bear."""


@dataclass(frozen=True, slots=True)
class Before:
    """What stood when a phase began."""

    uids: dict[ObjectRef, str]
    pods: set[str]
    foreign: dict[ObjectRef, str]
    tips: dict[str, str]


# ------------------------------------------------------------------------ looks
def fleet_id(world: World) -> str:
    """The id that this cluster and the name `local` give."""
    return names.fleet_id_of(world.cluster_uid, "local")


def everything(world: World) -> dict[ObjectRef, dict[str, Any]]:
    """All live objects of the kinds that matter, in all namespaces."""
    return {
        ref_from_manifest({**body, "apiVersion": _api_version(group), "kind": kind}): body
        for group, kind in KINDS
        for body in world.cluster.list(group, kind).items
    }


def _api_version(group: str) -> str:
    return f"{group}/v1" if group else "v1"


def is_ours(ref: ObjectRef, body: dict[str, Any], fleet: str) -> UnitRef | None:
    """The unit of an object that names itself in its mark and that our manager has applied."""
    annotations = body["metadata"].get("annotations") or {}
    unit = names.unit_of_mark(annotations.get(names.OWNER, ""), fleet, ref)
    applied = any(
        entry["manager"] == names.manager_of(fleet) and entry["operation"] == "Apply"
        for entry in body["metadata"].get("managedFields") or ()
    )
    return unit if applied else None


def standing(world: World) -> dict[tuple[UnitRef, ObjectRef], str]:
    """UID of everything that this fleet has made and that still stands."""
    fleet = fleet_id(world)
    found = {}
    for ref, body in everything(world).items():
        unit = is_ours(ref, body, fleet)
        if unit is not None:
            found[unit, ref] = body["metadata"]["uid"]
    return found


def inventory(world: World) -> dict[tuple[UnitRef, ObjectRef], str]:
    """The stored inventory, read from its ConfigMaps."""
    maps = {
        body["metadata"]["name"]: body
        for body in world.objects("", "ConfigMap", "stoker-system")
        if INVENTORY_LABEL in (body["metadata"].get("labels") or {})
    }
    parent = maps[f"stoker-{fleet_id(world)}"]
    shards = parent["data"]["shards"].split()
    assert {parent["metadata"]["name"], *shards} == set(maps), "shards that nobody names"
    texts = [maps[name]["data"]["entries"] for name in shards]
    return {(unit, ref): uid for unit, ref, uid in entries_from_shards(texts)}


def asked_for(world: World, service: str) -> int:
    """Replicas that Deployments of a service ask for, those that leave included."""
    fleet = fleet_id(world)
    return sum(
        int(body["spec"]["replicas"])
        for body in world.objects("apps", "Deployment", "llm")
        if is_ours(_deployment(body), body, fleet) == UnitRef("ModelService", "llm", service)
    )


def _deployment(body: dict[str, Any]) -> ObjectRef:
    return ObjectRef("apps", "Deployment", "llm", body["metadata"]["name"], "v1")


def foreign(world: World) -> dict[ObjectRef, str]:
    """Everything in the fleet's namespaces that it did not make, byte for byte."""
    fleet = fleet_id(world)
    return {
        ref: json.dumps(body, sort_keys=True)
        for ref, body in everything(world).items()
        if ref.namespace == "llm" and is_ours(ref, body, fleet) is None
    }


def before(world: World) -> Before:
    """Take stock at the beginning of a phase."""
    return Before(
        uids={ref: uid for (_, ref), uid in standing(world).items()},
        pods=pod_uids(world),
        foreign=foreign(world),
        tips={ref: tip(world, ref) for ref in (BRANCH, RECORDS)},
    )


# --------------------------------------------------------------------------- git
def git(world: World, *arguments: str, stdin: str = "") -> str:
    """Ask the bare repository itself."""
    command = ["git", "-C", str(world.bare), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def tip(world: World, ref: str) -> str:
    """The commit of a ref; empty when there is none."""
    return git(world, "rev-parse", "--verify", "--quiet", ref)


def write_a_note(world: World, text: str) -> None:
    """A person commits a file of their own to the status branch."""
    stream = (
        f"commit {BRANCH}\ncommitter P <p@example.invalid> 1795910400 +0000\n"
        f"data 4\nnote\nfrom {BRANCH}^0\nM 100644 inline {NOTES}\ndata {len(text)}\n{text}\n"
    )
    git(world, "fast-import", "--quiet", "--force", stdin=stream)
    assert text == git(world, "show", f"{BRANCH}:{NOTES}")


def status_files(world: World) -> dict[str, dict[str, Any]]:
    """The documents of the status branch by path."""
    paths = git(world, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    return {
        path: yaml.load(git(world, "show", f"{BRANCH}:{path}"), yaml.CSafeLoader)
        for path in paths
        if path != NOTES
    }


def check_linear(world: World, ref: str, old_tip: str) -> None:
    """One root, no merge, and the old tip still an ancestor: nothing was ever forced."""
    rows = [row.split() for row in git(world, "rev-list", "--parents", ref).splitlines()]
    assert 1 == sum(len(row) == 1 for row in rows), f"{ref} has several roots"
    assert all(len(row) <= 2 for row in rows), f"{ref} has a merge"
    assert not old_tip or old_tip in {row[0] for row in rows}, f"{ref} was forced"


# ------------------------------------------------------------------------- rules
def check_on_the_way(world: World, phase: Phase) -> None:
    """Floors and ceilings that hold at every instant of a phase."""
    labels = [pod["metadata"]["labels"] for pod in world.ready_pods() if _serves(pod)]
    for service, floor in zip(("tiny", "pack"), phase.floors, strict=True):
        ready = sum(found.get(names.SERVICE_LABEL) == service for found in labels)
        assert floor <= ready, f"{ready} replicas of {service} serve, the floor is {floor}"
    assert asked_for(world, "tiny") <= phase.most


def _serves(pod: dict[str, Any]) -> bool:
    metadata = pod["metadata"]
    takes_traffic = metadata["labels"].get(names.TRAFFIC_LABEL) == "true"
    return takes_traffic and not metadata.get("deletionTimestamp")


def check_at_rest(world: World, phase: Phase, was: Before, commit: str) -> None:
    """Everything that the phase promises, once nothing moves any more."""
    check_objects(world, phase, was)
    check_nothing_to_do(world)
    check_status(world, commit, units_standing(world))
    check_refs(world, was)


def units_standing(world: World) -> set[str]:
    """Every unit that has made something."""
    return {str(unit) for unit, _ in standing(world)}


def check_objects(world: World, phase: Phase, was: Before) -> None:
    """What stands is what Git says, is in the inventory, and was not made anew."""
    now = standing(world)
    assert now == inventory(world), "the inventory is not what stands"
    by_ref = {ref: uid for (_, ref), uid in now.items()}
    assert len(by_ref) == len(now)
    remade = [ref for ref, uid in by_ref.items() if was.uids.get(ref, uid) != uid]
    assert [] == remade, "deleted and made again"
    theirs = foreign(world)
    touched = [ref for ref in was.foreign if theirs.get(ref) != was.foreign[ref]]
    assert [] == [(was.foreign[r], theirs.get(r)) for r in touched]
    assert set(was.foreign) == set(theirs), "objects that are nobody's"
    assert phase.tiny == asked_for(world, "tiny") == len(serving(world, "tiny"))
    assert phase.pack == asked_for(world, "pack") == len(serving(world, "pack"))
    if phase.tiny:
        assert {phase.revision} == revisions(world, "tiny") == revisions(world, "pack")
    if phase.keeps_pods:
        assert was.pods == pod_uids(world), "pods were restarted"
    maps = sorted(ref for ref in by_ref if ref.kind == "ConfigMap")
    assert phase.data == {ref.name: data(world, ref.name, ref.namespace)["key"] for ref in maps}


def check_refs(world: World, was: Before) -> None:
    """Nobody's commit on the branch and on the data ref was lost."""
    for ref in (BRANCH, RECORDS):
        check_linear(world, ref, was.tips[ref])


def check_status(world: World, commit: str, units: set[str]) -> None:
    """Everybody can read on the branch that all is well, and at which revision."""
    files = status_files(world)
    fleet = files.pop("status.yaml")
    assert [] == fleet["attention"]
    assert f"main@sha1:{commit}" == fleet["lastAppliedRevision"] == fleet["lastAttemptedRevision"]
    assert units == {unit["unit"] for unit in files.values()}
    for document in (fleet, *files.values()):
        assert CLEAN == {c["type"]: c["status"] for c in document["conditions"]}
        assert [] == document["errors"]
        notes = [note["object"] for note in document.get("notes", ())]
        assert notes == ([str(TYPED)] if document.get("unit") == "Bundle/llm/side" else [])


def check_nothing_to_do(world: World) -> None:
    """The newest pass finds every object as rendered, and nothing to retire or delete."""
    assert world.work is not None
    done = world.work.last
    assert done is not None
    assert done.failure is None
    assert done.changes is not None
    assert not done.changes.forgotten
    assert not done.changes.proven
    for unit in done.changes.units:
        assert () == unit.retirements
        for change in unit.changes:
            if change.ref == TYPED:
                assert (Action.KEEP, "orphan") == (change.action, change.code)
                continue
            assert Action.UNCHANGED is change.action, f"{change.ref}: {change.action}"
