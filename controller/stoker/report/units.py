"""The file of one unit on the status branch, and reading it back.

In: a UnitReport. Out: its Document, small and for people. `unit_from_document` is the
inverse, tolerant of files that people edited; called by previous and render_status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from stoker.model.outcome import Condition, Document, Health, Sync
from stoker.model.refs import UnitRef
from stoker.objects.health_fields import integer, items, mapping, text
from stoker.objects.names import API_VERSION
from stoker.report.unit_report import (
    Attempt,
    Cause,
    ErrorLine,
    HoldLine,
    NodeLine,
    ObjectLine,
    PlacementLine,
    PrefetchLine,
    ReplicaCounts,
    RetirementLine,
    ServiceReport,
    UnitReport,
)

__all__ = [
    "conditions_from_data",
    "conditions_to_data",
    "errors_to_data",
    "unit_document",
    "unit_from_document",
    "unit_ref_from_text",
]

KIND = "UnitStatus"
_SYNCS, _HEALTHS = frozenset(Sync), frozenset(Health)


def unit_document(unit: UnitReport) -> Document:
    """Lay out one unit; empty parts that say nothing are left out."""
    data: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": unit.ref.name, "namespace": unit.ref.namespace},
        "unit": str(unit.ref),
        "source": {"path": unit.path, "line": unit.line, "digest": unit.digest},
        "lastAppliedRevision": unit.applied_revision,
        "sync": {"status": unit.sync.value},
        "health": {"status": unit.health.value},
        "conditions": conditions_to_data(unit.conditions),
        "objects": {"total": unit.objects, "synced": unit.synced},
    }
    if unit.service is not None:
        data.update(_service_to_data(unit.service))
    if unit.notes:
        data["notes"] = [
            _without_empty(
                {"object": n.object, "state": n.state}, reason=n.reason, message=n.message
            )
            for n in unit.notes
        ]
    if unit.depends_on:
        data["dependsOn"] = list(unit.depends_on)
    if unit.attempt is not None:
        data["attempt"] = {"digest": unit.attempt.digest, "since": unit.attempt.since}
    data["errors"] = errors_to_data(unit.errors)
    data["truncated"] = unit.truncated
    return Document(f"units/{unit.ref.file_name}", data)


def conditions_to_data(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Conditions as Kubernetes writes them."""
    return [
        {
            "type": c.type,
            "status": c.status,
            "reason": c.reason,
            "message": c.message,
            "lastTransitionTime": c.since,
        }
        for c in conditions
    ]


def conditions_from_data(data: Iterable[dict[str, Any]]) -> tuple[Condition, ...]:
    """Read conditions; one without type or status is left out."""
    return tuple(
        Condition(
            text(c, "type"),
            text(c, "status"),
            text(c, "reason"),
            text(c, "message"),
            text(c, "lastTransitionTime"),
        )
        for c in data
        if text(c, "type") and text(c, "status")
    )


def errors_to_data(errors: Iterable[ErrorLine]) -> list[dict[str, Any]]:
    """Errors with their place, as `{code, message, path, line, column}`."""
    return [
        {"code": e.code, "message": e.message, "path": e.path, "line": e.line, "column": e.column}
        for e in errors
    ]


def unit_ref_from_text(value: str) -> UnitRef | None:
    """Read `Kind/namespace/name`, None for anything else."""
    parts = value.split("/")
    return UnitRef(*parts) if len(parts) == 3 and parts[0] and parts[2] else None


def unit_from_document(data: Mapping[str, Any]) -> UnitReport | None:
    """Read a unit's file; None when it does not say which unit, or how it is."""
    data = dict(data)
    ref = unit_ref_from_text(text(data, "unit"))
    sync = text(mapping(data, "sync"), "status")
    health = text(mapping(data, "health"), "status")
    if ref is None or sync not in _SYNCS or health not in _HEALTHS:
        return None
    source, objects = mapping(data, "source"), mapping(data, "objects")
    return UnitReport(
        ref=ref,
        sync=Sync(sync),
        health=Health(health),
        conditions=conditions_from_data(items(data, "conditions")),
        digest=text(source, "digest"),
        path=text(source, "path"),
        line=integer(source, "line", 0),
        applied_revision=text(data, "lastAppliedRevision"),
        objects=integer(objects, "total", 0),
        synced=integer(objects, "synced", 0),
        service=_service_from_data(data) if "replicas" in data else None,
        notes=_lines(ObjectLine, items(data, "notes")),
        errors=_lines(ErrorLine, items(data, "errors")),
        truncated=data.get("truncated") is True,
        depends_on=_texts(data.get("dependsOn")),
        attempt=next(iter(_lines(Attempt, (mapping(data, "attempt"),))), None),
    )


def _service_to_data(service: ServiceReport) -> dict[str, Any]:
    counts = service.counts
    data: dict[str, Any] = {
        "replicas": {
            "desired": counts.desired,
            "ready": counts.ready,
            "warming": counts.warming,
            "floor": counts.floor,
            "stuck": counts.stuck,
            **({"podsEach": counts.pods_each} if counts.pods_each > 1 else {}),
        },
        "count": _without_empty(
            {"source": service.count_source},
            detail=service.count_detail,
            refused=service.count_refused,
            line=service.count_line or None,
        ),
        "model": {
            "uri": service.model_uri,
            "revision": service.model_revision,
            "rev": service.rev,
        },
        "placements": [
            _without_empty(
                {
                    "name": p.name,
                    "node": p.node,
                    "pool": p.pool,
                    "rev": p.rev,
                    "replicas": p.replicas,
                    "ready": p.ready,
                    "warming": p.warming,
                },
                ready_in=p.ready_in,
            )
            for p in service.placements
        ],
    }
    if service.when_full:
        data["whenFull"] = service.when_full
    if service.retirements:
        data["retirements"] = [
            {"name": r.name, "stage": r.stage, "reason": r.reason, "keep": r.keep}
            for r in service.retirements
        ]
    if service.prefetches:
        data["prefetches"] = [{"node": p.node, "state": p.state} for p in service.prefetches]
    if service.holds:
        data["holds"] = [
            _without_empty(
                {"reason": h.reason, "message": h.message}, remedy=h.remedy, new_node=h.new_node
            )
            for h in service.holds
        ]
    if service.cause is not None:
        cause = service.cause
        data["cause"] = _without_empty({"node": cause.node, "kind": cause.kind}, at=cause.at)
    if service.nodes:
        data["nodes"] = [
            _without_empty(
                {"node": n.node, "pool": n.pool, "verdict": n.verdict},
                rule=n.rule,
                warmth=n.warmth,
                ready_in=n.ready_in,
                estimate=n.estimate,
            )
            for n in service.nodes
        ]
    if service.rejected:
        data["rejected"] = dict(service.rejected)
    return data


def _service_from_data(data: dict[str, Any]) -> ServiceReport:
    replicas, count, model = (mapping(data, key) for key in ("replicas", "count", "model"))
    desired = replicas.get("desired")
    cause = _lines(Cause, (mapping(data, "cause"),))
    rejected = mapping(data, "rejected")
    return ServiceReport(
        counts=ReplicaCounts(
            desired=desired if isinstance(desired, int) else None,
            ready=integer(replicas, "ready", 0),
            warming=integer(replicas, "warming", 0),
            floor=integer(replicas, "floor", 0),
            stuck=integer(replicas, "stuck", 0),
            pods_each=max(1, integer(replicas, "podsEach", 1)),
        ),
        count_source=text(count, "source", "Git"),
        count_detail=text(count, "detail"),
        count_refused=text(count, "refused"),
        count_line=integer(count, "line", 0),
        model_uri=text(model, "uri"),
        model_revision=text(model, "revision"),
        rev=text(model, "rev"),
        placements=_lines(PlacementLine, items(data, "placements")),
        retirements=_lines(RetirementLine, items(data, "retirements")),
        prefetches=_lines(PrefetchLine, items(data, "prefetches")),
        holds=_lines(HoldLine, items(data, "holds")),
        nodes=_lines(NodeLine, items(data, "nodes")),
        rejected=tuple((str(k), v) for k, v in rejected.items() if isinstance(v, int)),
        cause=cause[0] if cause else None,
        when_full=text(data, "whenFull"),
    )


def _without_empty(data: dict[str, Any], **optional: str | int | None) -> dict[str, Any]:
    """`data` and those of the optional entries that say something, in camel case."""
    for name, value in optional.items():
        if value is not None and value != "":  # noqa: PLC1901 - zero says something
            data[_camel(name)] = value
    return data


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


Line = TypeVar(
    "Line",
    PlacementLine,
    PrefetchLine,
    RetirementLine,
    HoldLine,
    NodeLine,
    ObjectLine,
    ErrorLine,
    Cause,
    Attempt,
)


def _lines(cls: type[Line], data: Iterable[dict[str, Any]]) -> tuple[Line, ...]:
    """Entries of one sort; one with a missing field is left out, a wrong one counts as missing."""
    fields = {_camel(name): field for name, field in cls.__dataclass_fields__.items()}
    found = []
    for entry in data:
        known: dict[str, Any] = {
            fields[key].name: value
            for key, value in entry.items()
            if key in fields and isinstance(value, str if fields[key].type == "str" else int)
        }
        try:
            found.append(cls(**known))
        except TypeError:
            continue
    return tuple(found)
