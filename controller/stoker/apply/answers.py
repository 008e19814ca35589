"""What came of one request: an outcome, what to fold into the caches, when to try again.

Errors of the API server come in, `Sent` goes out; the only place where apply turns an
error into an outcome. Used by send, retire and prune, on the threads of the pool.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Retryable, StokerError, Unreachable, Waiting
from stoker.kube.errors import ApiStatus, Conflict, Forbidden, Invalid, ServerFailure
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.refs import ObjectRef
from stoker.objects.masks import masked_refusal

__all__ = ["RETRY_MS", "Sent", "changed_meanwhile", "is_uid_mismatch", "sent_error"]

RETRY_MS = 5_000
"""When a retryable failure without the server's own delay is tried again."""
REREAD_MS = 1_000
"""When an object that turned out to be another one is looked at again: it is read at once,
but two who fight over it must not spin.
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """One outcome. `body` is the answer, to be folded into the caches.

    `uncertain` says that the object must be read again before it is decided on; `gone` that
    it is certainly absent now; `after_ms` when to try again, None for no wish.
    """

    outcome: ObjectOutcome
    body: dict[str, Any] | None = field(default=None, hash=False)
    uid: str = ""
    uncertain: bool = False
    gone: bool = False
    after_ms: int | None = None

    @property
    def unanswered(self) -> bool:
        """Whether no answer came at all."""
        return self.outcome.result is Result.UNKNOWN


def sent_error(ref: ObjectRef, error: StokerError) -> Sent:
    """An error as an outcome: unknown, waiting for something, or failed."""
    text = _text(ref, error)
    if isinstance(error, Unreachable):
        outcome = ObjectOutcome(ref, Result.UNKNOWN, error.code, text)
        return Sent(outcome, uncertain=True, after_ms=error.after_ms or RETRY_MS)
    if isinstance(error, Forbidden) and error.is_terminating_namespace:
        return Sent(ObjectOutcome(ref, Result.WAITING, "namespace-terminating", text))
    if isinstance(error, Waiting):
        return Sent(ObjectOutcome(ref, Result.WAITING, error.code, text))
    outcome = ObjectOutcome(ref, Result.FAILED, error.code, text)
    if isinstance(error, Retryable):
        uncertain = isinstance(error, ServerFailure | Conflict)
        return Sent(outcome, uncertain=uncertain, after_ms=error.after_ms or RETRY_MS)
    return Sent(outcome)


def changed_meanwhile(ref: ObjectRef, why: str) -> Sent:
    """The object is not the one that was looked at: it is read again first (row 47 of c.2)."""
    outcome = ObjectOutcome(ref, Result.WAITING, "waiting-for-live-state", why)
    return Sent(outcome, uncertain=True, after_ms=REREAD_MS)


def is_uid_mismatch(error: StokerError) -> bool:
    """Whether the server refused because the object of that UID is not there.

    A namesake answers 422 on metadata.uid, an absent object a Conflict without causes
    (ssa-facts 32), a delete or a scale a Conflict about the precondition (36, 47).
    """
    status: ApiStatus | None = getattr(error, "status", None)
    if status is None:
        return False
    if isinstance(error, Invalid):
        fields = {cause.field for cause in status.causes}
        return fields == {"metadata.uid"} or "metadata.uid: Invalid value" in status.message
    if isinstance(error, Conflict) and not error.is_field_conflict:
        return "uid" in status.message.lower()
    return False


def _text(ref: ObjectRef, error: StokerError) -> str:
    status: ApiStatus | None = getattr(error, "status", None)
    if status is None:
        return error.message
    causes = [(cause.field, cause.message) for cause in status.causes]
    return masked_refusal(ref.kind, status.reason, error.message, causes)
