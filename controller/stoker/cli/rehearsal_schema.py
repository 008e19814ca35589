"""The published JSON schema of `stoker rehearse -o json`; see output_schemas.py."""

from __future__ import annotations

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
from stoker.rehearse.record import Ending, PodState

__all__ = ["rehearsal_schema"]

_OUTCOMES = {
    "ok": count_field("Answered whole, or still being answered at the end."),
    "refused": count_field("Without a byte of an answer."),
    "truncated": count_field("Broke off, and need not have."),
    "unavoidable": count_field("Broke off, outlasted the node, and had nowhere else to go."),
    "late": count_field("First token later than load.late, whatever came of it then."),
}


def rehearsal_schema() -> Schema:
    """The document of one scenario with any number of seeds."""
    fields = {
        "scenario": text_field("Name of the scenario."),
        "holds": _yes("Whether every bar of every seed holds."),
        "runs": list_field("One entry a seed.", _run()),
    }
    return document("Rehearsal", "What `stoker rehearse -o json` prints.", fields)


def _run() -> Schema:
    bar = object_field(
        "One bar.",
        {
            "of": text_field("Service, or fleet."),
            "measure": text_field("What is measured, as the scenario file spells it."),
            "found": count_or_null("What was found; null when unknown. gap is milliseconds."),
            "bar": count_field("What the scenario says."),
            "least": _yes("Whether it is at least that, else at most."),
            "holds": _yes("Whether it holds."),
        },
    )
    event = object_field(
        "Something that the scenario did.",
        {"atMs": _instant("When."), "text": text_field("What.")},
    )
    state = object_field(
        "A state of a pod.",
        {
            "atMs": _instant("When it began."),
            "state": words_field("Which.", [str(state) for state in PodState]),
        },
    )
    pod = object_field(
        "One pod of a service.",
        {
            "name": text_field("Its name."),
            "service": text_field("Its service."),
            "node": text_field("Its node; empty while it had none."),
            "states": list_field("Its states, oldest first.", state),
        },
    )
    return object_field(
        "One run.",
        {
            "seed": count_field("What the requests were drawn from."),
            "on": text_field("What it was played on."),
            "timesAsFast": text_field("By how much every time was divided."),
            "ending": words_field("How it ended.", [str(ending) for ending in Ending]),
            "why": text_field("Why it never began; empty when it did."),
            "holds": _yes("Whether every bar holds."),
            "doubleBookedGPUs": count_field("Most GPUs of a node asked for beyond its own."),
            "services": list_field("One entry a service, by name.", _service()),
            "bars": list_field("Every bar.", bar),
            "events": list_field("What happened, in order.", event),
            "pods": list_field("Every pod, by its first state.", pod),
        },
    )


def _service() -> Schema:
    client = object_field("Requests of one client.", {"name": text_field("Its name."), **_OUTCOMES})
    reason = object_field(
        "Requests that failed alike.",
        {"why": text_field("What came of them, and why."), "count": count_field("How many.")},
    )
    return object_field(
        "One service.",
        {
            "name": text_field("Its name."),
            "requests": object_field("Requests of the open loop.", _OUTCOMES),
            "sticky": object_field("Requests of clients that keep a connection.", _OUTCOMES),
            "clients": list_field("One entry a client.", client),
            "ttftMs": count_or_null("Median time to the first token; null without answers."),
            "gapMs": count_or_null("Longest time between first tokens beyond their spacing."),
            "lowestReady": count_field("Fewest Ready replicas with traffic."),
            "floor": count_field("Its floor, minReady."),
            "wanted": count_field("Replicas that Git asks for at the end."),
            "readyAtEnd": count_field("Ready replicas with traffic at the end."),
            "starts": count_field("Pods that a node took after the load began."),
            "startsWasted": count_field("Of those, pods that never became Ready."),
            "reasons": list_field("Why requests failed, most first.", reason),
        },
    )


def _yes(about: str) -> Schema:
    return {"type": "boolean", "description": about}


def _instant(about: str) -> Schema:
    return {"type": "integer", "description": f"{about} Milliseconds from the warm-up's end."}
