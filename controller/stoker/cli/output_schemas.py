"""The published JSON Schemas of machine outputs: `-o json` of coldstart, diff, plan and inventory.

Written by hand beside print_coldstart, diff_forms, print_plan and holdings; a test holds what they
print against these. Within v1alpha1 fields are added, never renamed or removed, so objects
take further properties.
"""

from __future__ import annotations

from typing import Any

from stoker.cli.holdings import Standing
from stoker.model.change import Action, Impact
from stoker.model.plan import RetireStage, WarmthClass
from stoker.objects.names import API_VERSION
from stoker.objects.start_phases import Phase

__all__ = ["output_schemas"]

DIALECT = "http://json-schema.org/draft-07/schema#"

Schema = dict[str, Any]


def output_schemas() -> dict[str, Schema]:
    """Kind to schema; several fleets are printed as a list of such documents."""
    return {
        "ColdStart": _cold_start(),
        "Diff": _diff(),
        "Inventory": _inventory(),
        "Plan": _plan(),
    }


def _cold_start() -> Schema:
    span = _object(
        "Phases that follow each other; of several only the sum is known.",
        {
            "phases": _list("Phases, in order.", _words("A phase.", [str(p) for p in Phase])),
            "beginMs": _count_or_null("Milliseconds since the epoch; null when unknown."),
            "endMs": _count_or_null("Milliseconds since the epoch; null when unknown."),
            "tookMs": _count_or_null("Milliseconds; null when unknown."),
        },
    )
    lever = _object(
        "One thing that would shorten this start.",
        {
            "name": _text("Its name, for --with."),
            "what": _text("What to do."),
            "costs": _text("What is given up; empty for nothing."),
            "savesMs": _count_or_null("Milliseconds it saves alone; null when not known exactly."),
            "leastMs": _count("Milliseconds it saves at least."),
            "mostMs": _count("Milliseconds it saves at most."),
            "source": _text("Where its figures are from."),
        },
    )
    pull = _object(
        "What the kubelet says of the image.",
        {
            "sizeBytes": _count_or_null("Bytes; null when unknown."),
            "waitedMs": _count_or_null("Milliseconds behind other pulls of the node."),
            "present": {"type": "boolean", "description": "Whether the node had it."},
        },
    )
    left = _object(
        "What the levers of `with` leave; without any, all those that cost nothing.",
        {
            "leastMs": _count("At least these milliseconds."),
            "mostMs": _count("At most these milliseconds."),
            "largest": {
                "enum": [*(str(p) for p in Phase), None],
                "description": "The longest phase that is left; null when unknown.",
            },
        },
    )
    head = {
        "apiVersion": {"const": API_VERSION, "description": f"Always {API_VERSION}."},
        "kind": {"const": "ColdStart", "description": "Always ColdStart."},
    }
    fields = {
        "namespace": _text("Namespace of the pod; empty when unknown."),
        "name": _text("Name of the pod; empty when unknown."),
        "node": _text("Its node; empty when unknown."),
        "image": _text("The engine's image; empty when unknown."),
        "engine": _text("The engine by its log or image; empty when unknown."),
        "engineVersion": _text("Its version; empty when unknown."),
        "ready": {"type": "boolean", "description": "Whether the pod was seen Ready."},
        "restarts": _count("Restarts of the engine's container."),
        "unknown": _text("Why the engine's own phases are not told apart; empty when they are."),
        "beginMs": _count_or_null("First known instant, milliseconds since the epoch."),
        "endMs": _count_or_null("Last known instant, milliseconds since the epoch."),
        "tookMs": _count_or_null("Between the two."),
        "pull": pull,
        "spans": _list("All phases, in order, without gap or overlap.", span),
        "levers": _list("Those that save something, most first.", lever),
        "with": _list("Levers that were asked for.", _text("Its name.")),
        "left": left,
    }
    about = "What `stoker coldstart -o json` prints."
    return {"$schema": DIALECT, "title": "ColdStart", **_object(about, {**head, **fields})}


def _inventory() -> Schema:
    held = _object(
        "One object.",
        {
            "standing": _words("How it stands to the fleet.", [str(word) for word in Standing]),
            "unit": _text("Kind/namespace/name of the unit that made or wants it."),
            "apiVersion": _text("Group and version."),
            "kind": _text("Kind."),
            "namespace": _text("Namespace; empty for cluster-scoped objects."),
            "name": _text("Name."),
            "uid": _text("UID by which it was last seen; empty where none is known."),
            "code": _text("Reason code, see `stoker explain CODE`."),
            "note": _text("Why it stays or goes."),
        },
        optional=("code", "note"),
    )
    counts = {str(word): _count(f"Objects that are {word}.") for word in Standing}
    return _document(
        "Inventory",
        "What `stoker inventory -o json` prints.",
        {
            "fleetId": _text("Id fixed at the install: in owner marks and the field manager."),
            "objects": _list("By unit, then by object.", held),
            "summary": _object("How many there are of each standing.", counts),
        },
    )


def _document(kind: str, about: str, fields: dict[str, Schema]) -> Schema:
    head = {
        "apiVersion": {"const": API_VERSION, "description": f"Always {API_VERSION}."},
        "kind": {"const": kind, "description": f"Always {kind}."},
        "fleet": _text("Name of the fleet."),
        "revision": _text("What was looked at: ref@sha1:commit, or files@sha1:hash."),
    }
    return {"$schema": DIALECT, "title": kind, **_object(about, {**head, **fields})}


def _object(about: str, fields: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "description": about,
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


def _text(about: str) -> Schema:
    return {"type": "string", "description": about}


def _words(about: str, words: list[str]) -> Schema:
    return {"type": "string", "enum": words, "description": about}


def _count(about: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": about}


def _count_or_null(about: str) -> Schema:
    return {"type": ["integer", "null"], "minimum": 0, "description": about}


def _list(about: str, items: Schema) -> Schema:
    return {"type": "array", "description": about, "items": items}


def _retiring() -> Schema:
    return _list(
        "Deployments on their way out.",
        _object(
            "One Deployment.",
            {
                "name": _text("Its name."),
                "stage": _words(
                    "The next thing done to it.", [str(stage) for stage in RetireStage]
                ),
                "reason": _text("Why it leaves."),
            },
        ),
    )


def _diff() -> Schema:
    actions = [str(action) for action in Action if action is not Action.UNCHANGED]
    change = _object(
        "One object that differs, or fields of which belong to others.",
        {
            "action": _words(
                "What happens to it; a replace takes over from another Deployment.",
                [*actions, "replace", str(Action.UNCHANGED)],
            ),
            "apiVersion": _text("Group and version."),
            "kind": _text("Kind."),
            "namespace": _text("Namespace; empty for cluster-scoped objects."),
            "name": _text("Name."),
            "impact": _words("What it does to pods.", [str(impact) for impact in Impact]),
            "code": _text("Reason code, see `stoker explain CODE`."),
            "note": _text("What is in the way, or why it is kept."),
            "replaces": _text("Deployment that it takes over from."),
            "fields": _list(
                "Fields that differ; secrets are masked.",
                _object(
                    "One field.",
                    {
                        "path": _text("Dotted, with list keys: spec.containers[name=engine].args."),
                        "before": {"description": "Live value; null when absent."},
                        "after": {"description": "Value of Git; null when absent."},
                    },
                ),
            ),
            "leftToOthers": _list(
                "Fields that another manager owns: no drift.",
                _object("One field.", {"path": _text("Dotted."), "owner": _text("Who owns it.")}),
            ),
            "heldBack": _list(
                "Fields of the pod template that wait for the next restart.", _text("Dotted path.")
            ),
        },
        optional=("code", "note", "replaces"),
    )
    finding = _object(
        "One thing wrong in the files.",
        {
            "code": _text("Reason code."),
            "message": _text("What is wrong."),
            "path": _text("File; empty when it belongs to none."),
            "line": _count("Line from 1; 0 is unknown."),
            "column": _count("Column from 1; 0 is unknown."),
        },
    )
    unit = _object(
        "One unit with differences.",
        {
            "unit": _text("Kind/namespace/name."),
            "objects": _list("In the order of apply.", change),
            "retiring": _retiring(),
            "findings": _list("What stops the unit.", finding),
        },
    )
    return _document(
        "Diff",
        "What `stoker diff -o json` prints for one fleet.",
        {
            "units": _list("Units that differ, by name.", unit),
            "pruneHold": _text("Why nothing is deleted; empty when deletes may happen."),
            "summary": _summary(),
        },
    )


def _summary() -> Schema:
    counts = {
        "create": "Objects to create.",
        "change": "Objects to change in place.",
        "recreate": "Objects to delete and create again, by consent.",
        "replace": "Placements that take over from another one; neither creates nor deletes.",
        "delete": "Objects to delete.",
        "unchanged": "Objects that are as Git wants them.",
        "kept": "Objects that left Git and stay.",
        "wait": "Objects that cannot be sent yet.",
        "error": "Objects that must not be sent.",
        "gpusBefore": "GPUs of all services now.",
        "gpusAfter": "GPUs of all services afterwards.",
        "gpusPeak": "GPUs while new and leaving replicas both stand.",
        "coldStarts": "Replicas that start on a node without their weights.",
        "coldStartMs": "Likely milliseconds of all cold starts, one after another.",
        "podsRestarted": "Pods that run now and are made anew, in place or elsewhere.",
    }
    return _object("The last line.", {name: _count(text) for name, text in counts.items()})


def _plan() -> Schema:
    step = _object(
        "One start.",
        {
            "deployment": _text("Name of the Deployment."),
            "node": _text("Node; empty in mode Scheduler."),
            "pool": _text("Pool of the node."),
            "replaces": _text("Node that it takes over from; empty for an addition."),
            "warmth": {
                "enum": [*(str(warmth) for warmth in WarmthClass), None],
                "description": "What the node holds already; null when unknown.",
            },
            "readyP50Ms": _count_or_null("Likely milliseconds to Ready; null when unknown."),
            "readyP90Ms": _count_or_null("The same, when the start is slow."),
            "estimate": {
                "type": ["string", "null"],
                "description": "What the two are from: prior, or `12 starts` of this fleet.",
            },
        },
    )
    hold = _object(
        "Something wanted that does not happen now.",
        {
            "code": _text("Reason code."),
            "message": _text("What and why."),
            "remedy": _text("What would change it."),
        },
    )
    service = _object(
        "One ModelService.",
        {
            "unit": _text("Kind/namespace/name."),
            "replicas": _count_or_null("Wanted count; null when unknown."),
            "floor": _count("Least Ready replicas that a voluntary change leaves."),
            "lowestReady": _count("Fewest Ready replicas on the way."),
            "doneP50Ms": _count_or_null("Likely milliseconds until done; null when held."),
            "doneP90Ms": _count_or_null("The same, when every start is slow."),
            "steps": _list("Starts, in order.", step),
            "retiring": _retiring(),
            "holds": _list("What is held, and why.", hold),
        },
    )
    bundle = _object(
        "One Bundle.",
        {
            "unit": _text("Kind/namespace/name."),
            "objects": _object(
                "How many of its objects meet which fate.",
                {str(action): _count(f"Objects with action {action}.") for action in Action},
            ),
        },
    )
    return _document(
        "Plan",
        "What `stoker plan -o json` prints for one fleet.",
        {
            "digest": _text("Identifies the decisions: 64 hex digits."),
            "services": _list("Every service, by name.", service),
            "bundles": _list("Every Bundle, by name.", bundle),
        },
    )
