"""The published JSON Schemas of machine outputs: `-o json` of coldstart, diff, plan and inventory.

Written by hand beside print_coldstart, diff_forms, print_plan and holdings; a test holds what they
print against these. Within v1alpha1 fields are added, never renamed or removed, so objects
take further properties.
"""

from __future__ import annotations

from stoker.cli.holdings import Standing
from stoker.cli.schema_fields import (
    Schema,
    count_field,
    count_or_null,
    document,
    list_field,
    object_field,
    text_field,
    words_field,
)
from stoker.model.change import Action, Impact
from stoker.model.plan import RetireStage, WarmthClass
from stoker.objects.start_phases import Phase

__all__ = ["output_schemas"]


def output_schemas() -> dict[str, Schema]:
    """Kind to schema; several fleets are printed as a list of such documents."""
    return {
        "ColdStart": _cold_start(),
        "Diff": _diff(),
        "Inventory": _inventory(),
        "Plan": _plan(),
    }


def _cold_start() -> Schema:
    span = object_field(
        "Phases that follow each other; of several only the sum is known.",
        {
            "phases": list_field(
                "Phases, in order.", words_field("A phase.", [str(p) for p in Phase])
            ),
            "beginMs": count_or_null("Milliseconds since the epoch; null when unknown."),
            "endMs": count_or_null("Milliseconds since the epoch; null when unknown."),
            "tookMs": count_or_null("Milliseconds; null when unknown."),
        },
    )
    lever = object_field(
        "One thing that would shorten this start.",
        {
            "name": text_field("Its name, for --with."),
            "what": text_field("What to do."),
            "costs": text_field("What is given up; empty for nothing."),
            "savesMs": count_or_null("Milliseconds it saves alone; null when not known exactly."),
            "leastMs": count_field("Milliseconds it saves at least."),
            "mostMs": count_field("Milliseconds it saves at most."),
            "source": text_field("Where its figures are from."),
        },
    )
    pull = object_field(
        "What the kubelet says of the image.",
        {
            "sizeBytes": count_or_null("Bytes; null when unknown."),
            "waitedMs": count_or_null("Milliseconds behind other pulls of the node."),
            "present": {"type": "boolean", "description": "Whether the node had it."},
        },
    )
    left = object_field(
        "What the levers of `with` leave; without any, all those that cost nothing.",
        {
            "leastMs": count_field("At least these milliseconds."),
            "mostMs": count_field("At most these milliseconds."),
            "largest": {
                "enum": [*(str(p) for p in Phase), None],
                "description": "The longest phase that is left; null when unknown.",
            },
        },
    )
    fields = {
        "namespace": text_field("Namespace of the pod; empty when unknown."),
        "name": text_field("Name of the pod; empty when unknown."),
        "node": text_field("Its node; empty when unknown."),
        "image": text_field("The engine's image; empty when unknown."),
        "engine": text_field("The engine by its log or image; empty when unknown."),
        "engineVersion": text_field("Its version; empty when unknown."),
        "ready": {"type": "boolean", "description": "Whether the pod was seen Ready."},
        "restarts": count_field("Restarts of the engine's container."),
        "unknown": text_field(
            "Why the engine's own phases are not told apart; empty when they are."
        ),
        "beginMs": count_or_null("First known instant, milliseconds since the epoch."),
        "endMs": count_or_null("Last known instant, milliseconds since the epoch."),
        "tookMs": count_or_null("Between the two."),
        "pull": pull,
        "spans": list_field("All phases, in order, without gap or overlap.", span),
        "levers": list_field("Those that save something, most first.", lever),
        "with": list_field("Levers that were asked for.", text_field("Its name.")),
        "left": left,
    }
    about = "What `stoker coldstart -o json` prints."
    return document("ColdStart", about, fields)


def _inventory() -> Schema:
    held = object_field(
        "One object.",
        {
            "standing": words_field(
                "How it stands to the fleet.", [str(word) for word in Standing]
            ),
            "unit": text_field("Kind/namespace/name of the unit that made or wants it."),
            "apiVersion": text_field("Group and version."),
            "kind": text_field("Kind."),
            "namespace": text_field("Namespace; empty for cluster-scoped objects."),
            "name": text_field("Name."),
            "uid": text_field("UID by which it was last seen; empty where none is known."),
            "code": text_field("Reason code, see `stoker explain CODE`."),
            "note": text_field("Why it stays or goes."),
        },
        optional=("code", "note"),
    )
    counts = {str(word): count_field(f"Objects that are {word}.") for word in Standing}
    return _document(
        "Inventory",
        "What `stoker inventory -o json` prints.",
        {
            "fleetId": text_field("Id fixed at the install: in owner marks and the field manager."),
            "objects": list_field("By unit, then by object.", held),
            "summary": object_field("How many there are of each standing.", counts),
        },
    )


def _document(kind: str, about: str, fields: dict[str, Schema]) -> Schema:
    head = {
        "fleet": text_field("Name of the fleet."),
        "revision": text_field("What was looked at: ref@sha1:commit, or files@sha1:hash."),
    }
    return document(kind, about, {**head, **fields})


def _retiring() -> Schema:
    return list_field(
        "Deployments on their way out.",
        object_field(
            "One Deployment.",
            {
                "name": text_field("Its name."),
                "stage": words_field(
                    "The next thing done to it.", [str(stage) for stage in RetireStage]
                ),
                "reason": text_field("Why it leaves."),
            },
        ),
    )


def _diff() -> Schema:
    actions = [str(action) for action in Action if action is not Action.UNCHANGED]
    change = object_field(
        "One object that differs, or fields of which belong to others.",
        {
            "action": words_field(
                "What happens to it; a replace takes over from another Deployment.",
                [*actions, "replace", str(Action.UNCHANGED)],
            ),
            "apiVersion": text_field("Group and version."),
            "kind": text_field("Kind."),
            "namespace": text_field("Namespace; empty for cluster-scoped objects."),
            "name": text_field("Name."),
            "impact": words_field("What it does to pods.", [str(impact) for impact in Impact]),
            "code": text_field("Reason code, see `stoker explain CODE`."),
            "note": text_field("What is in the way, or why it is kept."),
            "replaces": text_field("Deployment that it takes over from."),
            "fields": list_field(
                "Fields that differ; secrets are masked.",
                object_field(
                    "One field.",
                    {
                        "path": text_field(
                            "Dotted, with list keys: spec.containers[name=engine].args."
                        ),
                        "before": {"description": "Live value; null when absent."},
                        "after": {"description": "Value of Git; null when absent."},
                    },
                ),
            ),
            "leftToOthers": list_field(
                "Fields that another manager owns: no drift.",
                object_field(
                    "One field.",
                    {"path": text_field("Dotted."), "owner": text_field("Who owns it.")},
                ),
            ),
            "heldBack": list_field(
                "Fields of the pod template that wait for the next restart.",
                text_field("Dotted path."),
            ),
        },
        optional=("code", "note", "replaces"),
    )
    finding = object_field(
        "One thing wrong in the files.",
        {
            "code": text_field("Reason code."),
            "message": text_field("What is wrong."),
            "path": text_field("File; empty when it belongs to none."),
            "line": count_field("Line from 1; 0 is unknown."),
            "column": count_field("Column from 1; 0 is unknown."),
        },
    )
    unit = object_field(
        "One unit with differences.",
        {
            "unit": text_field("Kind/namespace/name."),
            "objects": list_field("In the order of apply.", change),
            "retiring": _retiring(),
            "findings": list_field("What stops the unit.", finding),
        },
    )
    return _document(
        "Diff",
        "What `stoker diff -o json` prints for one fleet.",
        {
            "units": list_field("Units that differ, by name.", unit),
            "pruneHold": text_field("Why nothing is deleted; empty when deletes may happen."),
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
    return object_field(
        "The last line.", {name: count_field(text) for name, text in counts.items()}
    )


def _plan() -> Schema:
    step = object_field(
        "One start.",
        {
            "deployment": text_field("Name of the Deployment."),
            "node": text_field("Node; empty in mode Scheduler."),
            "pool": text_field("Pool of the node."),
            "replaces": text_field("Node that it takes over from; empty for an addition."),
            "rule": text_field("By which the place was chosen; empty in mode Scheduler."),
            "warmth": {
                "enum": [*(str(warmth) for warmth in WarmthClass), None],
                "description": "What the node holds already; null when unknown.",
            },
            "readyP50Ms": count_or_null("Likely milliseconds to Ready; null when unknown."),
            "readyP90Ms": count_or_null("The same, when the start is slow."),
            "estimate": {
                "type": ["string", "null"],
                "description": "What the two are from: prior, or `12 starts` of this fleet.",
            },
        },
    )
    hold = object_field(
        "Something wanted that does not happen now.",
        {
            "code": text_field("Reason code."),
            "message": text_field("What and why."),
            "remedy": text_field("What would change it."),
        },
    )
    service = object_field(
        "One ModelService.",
        {
            "unit": text_field("Kind/namespace/name."),
            "replicas": count_or_null("Wanted count; null when unknown."),
            "floor": count_field("Least Ready replicas that a voluntary change leaves."),
            "lowestReady": count_field("Fewest Ready replicas on the way."),
            "doneP50Ms": count_or_null("Likely milliseconds until done; null when held."),
            "doneP90Ms": count_or_null("The same, when every start is slow."),
            "steps": list_field("Starts, in order.", step),
            "retiring": _retiring(),
            "holds": list_field("What is held, and why.", hold),
        },
    )
    bundle = object_field(
        "One Bundle.",
        {
            "unit": text_field("Kind/namespace/name."),
            "objects": object_field(
                "How many of its objects meet which fate.",
                {str(action): count_field(f"Objects with action {action}.") for action in Action},
            ),
        },
    )
    return _document(
        "Plan",
        "What `stoker plan -o json` prints for one fleet.",
        {
            "digest": text_field("Identifies the decisions: 64 hex digits."),
            "services": list_field("Every service, by name.", service),
            "bundles": list_field("Every Bundle, by name.", bundle),
        },
    )
