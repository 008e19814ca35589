"""Conditions, derived here and nowhere else, anew in every pass (cases.md row 93).

Four types of every unit, Flux's meanings: Ready (as Git wants it, and serving), Reconciling (work is
under way), Stalled (a person must act), Healthy (live objects alone). A cause's reason is
its published kebab-case code in CamelCase; all other reasons are the members of `Reason`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stoker.errors import Finding
from stoker.model.outcome import Condition, Health, Sync
from stoker.model.scale_verdict import ScaleVerdict
from stoker.model.times import rfc3339
from stoker.report.scaling_state import scaling_conditions

__all__ = [
    "Judgement",
    "Reason",
    "camel",
    "conditions_of",
    "is_retryable",
    "sentence",
    "with_times",
]


class Reason(StrEnum):
    """Reasons that are not the code of a cause."""

    SUCCEEDED = "Succeeded"
    HEALTHY = "Healthy"
    IDLE = "Idle"
    NOT_STALLED = "NotStalled"
    OBSERVING = "Observing"
    """Mode Observe: differences are reported, nothing is written."""
    OUT_OF_SYNC = "OutOfSync"
    PROGRESSING = "Progressing"
    RETRYING = "ProgressingWithRetry"
    WAITING = "Waiting"
    """Something else must happen first; the message says what."""
    UNITS_NOT_READY = "UnitsNotReady"
    PRUNE_HELD = "PruneHeld"
    SUSPENDED = "Suspended"
    CHANGE_WINDOW_CLOSED = "ChangeWindowClosed"
    """A newer revision waits for its change window; the one before is kept up."""
    TIMED_OUT = "TimedOut"
    """Not Healthy within spec.timeout."""
    PRUNING = "Pruning"
    KEPT = "Kept"
    """Left Git; its objects stay because policy or lack of proof says so (row 79)."""
    SCALED_TO_ZERO = "ScaledToZero"
    STUCK = "Stuck"
    NOT_CREATED = "NotCreated"
    COUNT_UNKNOWN = "CountUnknown"
    STARTING = "Starting"
    UNKNOWN = "Unknown"
    PUSHED = "Pushed"
    NOT_YET = "NotYet"


MAX_MESSAGE = 512
"""Conditions are for reading; long messages stand in errors."""

RETRYABLE_CODES = frozenset(
    {
        "waiting",
        "retryable",
        "unreachable",
        "conflict",
        "not-found",
        "kind-not-found",
        "resource-version-gone",
        "too-many-requests",
        "server-failure",
        "mirror-busy",
        "mirror-corrupt",
        "push-race-lost",
        "file-changed",
        "deletion-pending",
        "custom-resources-left",
        "namespace-terminating",
    }
)
"""Codes of the errors below Waiting and Retryable of the error tree; all that end in
`-unreachable` or begin with `waiting-` belong to them too."""


def is_retryable(code: str) -> bool:
    """Whether time alone may cure it, so that nobody has to act."""
    return code in RETRYABLE_CODES or code.endswith("-unreachable") or code.startswith("waiting-")


def camel(code: str) -> str:
    """A kebab-case code as a condition's reason; a word that is one already stays."""
    return "".join(part[:1].upper() + part[1:] for part in code.split("-") if part)


def sentence(finding: Finding) -> str:
    """`file:line:column: field: what (hint)`: a condition's message; its reason is the code."""
    parts = [str(finding.location)] if finding.location.path else []
    if finding.field:
        parts.append(finding.field)
    hint = f" ({finding.hint})" if finding.hint else ""
    return ": ".join([*parts, finding.message + hint])


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is true of a unit or of the fleet now; conditions are only its spelling.

    `stalled` and `retrying` are reasons (empty = not so) with their messages;
    `why_not_ready` wins over everything else as the reason of Ready. `writes` is False
    in mode Observe.
    """

    sync: Sync
    health: Health
    health_reason: str
    health_message: str = ""
    stalled: str = ""
    stalled_message: str = ""
    retrying: str = ""
    retrying_message: str = ""
    why_not_ready: str = ""
    why_not_ready_message: str = ""
    out_of_sync_message: str = ""
    suspended: str = ""
    """By whom, empty for not; then there is a fifth condition, Suspended."""
    suspended_since: str = ""
    excused: bool = False
    """Everything that is out of sync is so because it is suspended."""
    writes: bool = True
    scale: ScaleVerdict | None = None
    """Of a service whose count follows load; then four further conditions tell of it."""


def conditions_of(
    judgement: Judgement, previous: tuple[Condition, ...], now_ms: int
) -> tuple[Condition, ...]:
    """Spell a judgement as conditions: Ready, Reconciling, Stalled, Healthy, in this order.

    Those of a count that follows load come after them, and Suspended last, while it is.
    """
    drafts = (
        _ready(judgement),
        _reconciling(judgement),
        _stalled(judgement),
        _healthy(judgement),
        *(scaling_conditions(judgement.scale) if judgement.scale is not None else ()),
        *_suspended(judgement),
    )
    return with_times(drafts, previous, now_ms)


def with_times(
    drafts: tuple[Condition, ...], previous: tuple[Condition, ...], now_ms: int
) -> tuple[Condition, ...]:
    """Fill in when each status last changed: now, unless it is what it was, or is said."""
    before = {condition.type: condition for condition in previous}
    now = rfc3339(now_ms)
    found = []
    for draft in drafts:
        old = before.get(draft.type)
        kept = old is not None and old.status == draft.status and old.since
        since = draft.since or (old.since if old is not None and kept else now)
        message = draft.message[:MAX_MESSAGE]
        found.append(Condition(draft.type, draft.status, draft.reason, message, since))
    return tuple(found)


_OK = {Health.HEALTHY, Health.SUSPENDED}


def _ready(j: Judgement) -> Condition:
    if j.stalled:
        return _condition("Ready", "False", j.stalled, j.stalled_message)
    if j.why_not_ready:
        return _condition("Ready", "False", j.why_not_ready, j.why_not_ready_message)
    if j.health in {Health.DEGRADED, Health.MISSING, Health.PROGRESSING}:
        return _condition("Ready", "False", j.health_reason, j.health_message)
    if j.sync is Sync.OUT_OF_SYNC and not j.excused:
        return _condition("Ready", "False", Reason.OUT_OF_SYNC, j.out_of_sync_message)
    if j.sync is Sync.UNKNOWN or j.health is Health.UNKNOWN:
        reason = j.health_reason if j.health is Health.UNKNOWN else Reason.UNKNOWN
        return _condition("Ready", "Unknown", reason, j.health_message or j.out_of_sync_message)
    return _condition("Ready", "True", Reason.SUCCEEDED, "")


def _reconciling(j: Judgement) -> Condition:
    if j.retrying:
        return _condition("Reconciling", "True", j.retrying, j.retrying_message)
    if j.suspended:
        return _condition("Reconciling", "False", Reason.SUSPENDED, j.suspended)
    if not j.writes:
        return _condition("Reconciling", "False", Reason.OBSERVING, "")
    if j.stalled:
        return _condition("Reconciling", "False", Reason.IDLE, "")
    if j.sync is Sync.OUT_OF_SYNC and not j.excused:
        return _condition("Reconciling", "True", Reason.PROGRESSING, j.out_of_sync_message)
    if j.health is Health.PROGRESSING:
        return _condition("Reconciling", "True", Reason.PROGRESSING, j.health_message)
    return _condition("Reconciling", "False", Reason.IDLE, "")


def _stalled(j: Judgement) -> Condition:
    if j.stalled:
        return _condition("Stalled", "True", j.stalled, j.stalled_message)
    return _condition("Stalled", "False", Reason.NOT_STALLED, "")


def _healthy(j: Judgement) -> Condition:
    if j.health in _OK:
        return _condition("Healthy", "True", j.health_reason, j.health_message)
    status = "Unknown" if j.health is Health.UNKNOWN else "False"
    return _condition("Healthy", status, j.health_reason, j.health_message)


def _suspended(j: Judgement) -> tuple[Condition, ...]:
    if not j.suspended:
        return ()
    return (Condition("Suspended", "True", Reason.SUSPENDED, j.suspended, j.suspended_since),)


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(kind, status, str(reason), message, "")
