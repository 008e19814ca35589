"""The published JSON schema of `stoker simulate -o json`; see output_schemas.py."""

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
from stoker.sim.routing import RouterName

__all__ = ["simulation_schema"]


def simulation_schema() -> Schema:
    """The document of one trace with any number of policies."""
    fields = {
        "trace": text_field("Name of the file."),
        "engine": text_field("Name of the engine's profile."),
        "requests": count_field("Requests that were played."),
        "coldStartMs": count_field("From purchase to Ready."),
        "router": words_field("Which replica a request goes to.", [str(r) for r in RouterName]),
        "slo": object_field(
            "What is promised.",
            {
                "ttftMs": count_or_null("Time to the first token; null promises nothing."),
                "itlMs": count_or_null("Mean time between the later ones; null: nothing."),
            },
        ),
        "gpusPerReplica": count_field("GPUs of one replica."),
        "seed": {"type": "integer", "description": "What random choices were drawn from."},
        "runs": list_field("One entry a policy, in the order asked for.", _run()),
    }
    return document("Simulation", "What `stoker simulate -o json` prints.", fields)


def _run() -> Schema:
    point = object_field(
        "One look of the policy.",
        {
            "atMs": count_field("From the begin of the trace."),
            "wanted": count_field("Replicas wanted."),
            "ready": count_field("Replicas that serve."),
            "held": count_field("Replicas that are paid for."),
            "arrivalsPerSecond": _number("Requests since the look before."),
            "waiting": count_field("Requests in queues, of engines and gateway."),
        },
    )
    return object_field(
        "One policy.",
        {
            "policy": text_field("Its name with its knob."),
            "attainment": _number("Share of requests that kept the promise, 0 to 1."),
            "kept": count_field("Requests answered whole within the promise."),
            "refused": count_field("Requests larger than an engine."),
            "broken": count_field("Requests lost with their replica."),
            "unanswered": count_field("Requests not answered 15 min after the last one."),
            "waitedOver5s": count_field("Requests whose first token took longer, or never came."),
            "ttftP50Ms": count_or_null("Time to the first token; null without answers."),
            "ttftP95Ms": count_or_null("The same, P95."),
            "ttftP99Ms": count_or_null("The same, P99."),
            "itlP95Ms": count_or_null("P95 of the requests' mean time between tokens."),
            "replicaSeconds": _number("Seconds that replicas were paid for."),
            "gpuHours": _number("The same in hours of GPUs."),
            "cost": {
                "type": ["number", "null"],
                "description": "GPU hours at --price; null where no price is known.",
            },
            "bought": count_field("Replicas asked for after the begin."),
            "coldStarts": count_field("Of those, replicas that became Ready."),
            "lost": count_field("Replicas whose instance was taken away."),
            "ups": count_field("Times the count rose."),
            "downs": count_field("Times it fell."),
            "peak": count_field("Most replicas paid for at once."),
            "preemptions": count_field("Sequences that engines put back for want of KV blocks."),
            "points": list_field("Looks, oldest first.", point),
        },
    )


def _number(about: str) -> Schema:
    return {"type": "number", "minimum": 0, "description": about}
