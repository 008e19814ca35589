"""Sends one change: an unforced server-side apply, and what follows when it is refused.

A Change comes in, `Sent` goes out; runs on a thread of the pool and touches nothing else.
A forced request follows only a conflict, only for fields that Git may take back, and with
the UID and resourceVersion just read (design section 6). Called by apply and retire.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stoker.apply.answers import Sent, changed_meanwhile, is_uid_mismatch, sent_error
from stoker.apply.prune import delete
from stoker.apply.takeover import succeeded
from stoker.errors import StokerError
from stoker.kube.errors import Conflict, NotFound
from stoker.model.change import Action, Change
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.conflicts import Settlement, adoption_required, settle
from stoker.objects.names import OWNER, manager_of, unit_of_mark
from stoker.objects.owned import schema_of

__all__ = ["Sender"]

ROUNDS = 2
"""How often a conflict is settled before it is left to the next pass."""
QUOTA_ATTEMPTS = 4
"""Quota usage is updated optimistically: parallel creates meet each other (cases.md row 67)."""


@dataclass(frozen=True, slots=True, eq=False)
class Sender:
    """Writes objects of one fleet."""

    cluster: Cluster
    fleet_id: str

    @property
    def manager(self) -> str:
        """Our field manager."""
        return manager_of(self.fleet_id)

    def send(self, change: Change) -> Sent:
        """Carry out a CREATE, CHANGE or RECREATE; never raises an error of the tree."""
        assert change.payload is not None
        if change.action is Action.RECREATE:
            return self._recreate(change)
        return succeeded(self.cluster, change, self._write(change), self.manager)

    def _write(self, change: Change) -> Sent:
        """One unforced apply, and what follows when it is refused."""
        assert change.payload is not None
        payload = _with(change.payload, uid=change.live_uid)
        try:
            return _done(change, self._apply(payload), ())
        except Conflict as error:
            if not error.is_field_conflict:
                return self._other_conflict(change, error)
            return self._settled(change)
        except StokerError as error:
            return self._failed(change, error)

    def _recreate(self, change: Change) -> Sent:
        """Delete the object of that UID; make it again if it is gone at once.

        While pods or finalizers hold it, a later pass finds the name free and creates it.
        """
        deleted = delete(self.cluster, change.ref, change.live_uid, "Foreground")
        if deleted.outcome.result is Result.KEPT:
            return changed_meanwhile(change.ref, "it was deleted and made again meanwhile")
        if not deleted.gone:
            return deleted
        return self.send(
            replace(change, action=Action.CREATE, live_uid="", live_resource_version="")
        )

    def _apply(self, payload: dict[str, Any], *, force: bool = False) -> dict[str, Any]:
        """One apply; repeated at once only where quota usage was updated in parallel."""
        left = QUOTA_ATTEMPTS
        while True:
            left -= 1
            try:
                return self.cluster.apply(payload, manager=self.manager, force=force)
            except Conflict as error:
                if not left or not _is_quota_conflict(error):
                    raise

    def _settled(self, change: Change) -> Sent:
        """Read the object, divide its conflicted fields, and send what is Git's."""
        last: StokerError | None = None
        for _ in range(ROUNDS):
            try:
                live = self.cluster.get(change.ref)
                problem = self._not_the_same(change, live)
                if problem is not None:
                    return problem
                settlement = self._settlement(change, live)
                metadata = live["metadata"]
                if settlement.taken:
                    payload = _with(
                        settlement.payload,
                        uid=metadata["uid"],
                        resource_version=metadata["resourceVersion"],
                    )
                    answer = self._apply(payload, force=True)
                else:
                    payload = _with(settlement.payload, uid=metadata["uid"])
                    answer = self._apply(payload)
                return _done(change, answer, settlement.left)
            except Conflict as error:
                if is_uid_mismatch(error):
                    return changed_meanwhile(change.ref, error.message)
                last = error
            except NotFound:
                return changed_meanwhile(change.ref, "it was deleted meanwhile")
            except StokerError as error:
                return self._failed(change, error)
        assert last is not None
        return sent_error(change.ref, last)

    def _settlement(self, change: Change, live: dict[str, Any]) -> Settlement:
        assert change.payload is not None
        left_alone = {path for path, _ in change.left_to_others}
        schema = schema_of(change.payload)
        return settle(change.payload, live, self.manager, schema, left_alone=left_alone)

    def _not_the_same(self, change: Change, live: dict[str, Any]) -> Sent | None:
        """Whether the object is another than the one that was compared."""
        if change.live_uid:
            if live["metadata"]["uid"] == change.live_uid:
                return None
            return changed_meanwhile(change.ref, "it was deleted and made again meanwhile")
        if self.bears_our_mark(change.ref, live):
            return None
        return sent_error(change.ref, adoption_required(change.ref, live))

    def bears_our_mark(self, ref: ObjectRef, live: dict[str, Any]) -> bool:
        """Whether an object's owner mark names this fleet and the object itself."""
        annotations = live.get("metadata", {}).get("annotations") or {}
        return unit_of_mark(str(annotations.get(OWNER, "")), self.fleet_id, ref) is not None

    def _other_conflict(self, change: Change, error: Conflict) -> Sent:
        if is_uid_mismatch(error):
            return changed_meanwhile(change.ref, "it was deleted meanwhile")
        return sent_error(change.ref, error)

    def _failed(self, change: Change, error: StokerError) -> Sent:
        if is_uid_mismatch(error):
            return changed_meanwhile(change.ref, "it was deleted and made again meanwhile")
        return sent_error(change.ref, error)


def _done(change: Change, answer: dict[str, Any], left: tuple[tuple[str, str], ...]) -> Sent:
    metadata = answer.get("metadata") or {}
    result = Result.CREATED if change.action is Action.CREATE else Result.CHANGED
    if change.live_resource_version and (
        metadata.get("resourceVersion") == change.live_resource_version
    ):
        result = Result.UNCHANGED
    message = "; ".join(f"left {path} to {owner}" for path, owner in left)
    outcome = ObjectOutcome(change.ref, result, "left-to-others" if left else "", message)
    return Sent(outcome, body=answer, uid=str(metadata.get("uid", "")))


def _is_quota_conflict(error: Conflict) -> bool:
    return not error.is_field_conflict and "resourcequotas" in error.status.message


def _with(payload: dict[str, Any], *, uid: str, resource_version: str = "") -> dict[str, Any]:
    metadata = dict(payload.get("metadata") or {})
    if uid:
        metadata["uid"] = uid
    if resource_version:
        metadata["resourceVersion"] = resource_version
    return {**payload, "metadata": metadata}
