"""Asks the API server what an apply would do, where facts alone cannot tell.

A payload and its live object come in; whether anything would change goes out, or why the
server refuses. A refused dry run is an error with the server's reason, never Synced
(cases.md row 45). Called by verdict; by diff for every write when asked to verify.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.diff.memo import DiffMemo
from stoker.errors import Retryable, StokerError, Waiting
from stoker.kube.errors import ApiStatus, Conflict, Forbidden
from stoker.model.change import Action, Change
from stoker.model.codec import digest
from stoker.model.live import LiveObject
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.compare import Difference, compare
from stoker.objects.masks import masked_refusal
from stoker.objects.owned import our_fields, owned, schema_of
from stoker.objects.ssa_merge import same_value

__all__ = ["UNVERIFIED", "DryRun", "Settled", "refusal_of", "verified"]

MAX_ASKED = 200
"""Characters kept of a name to ask by, so that the longer one is still valid."""

UNVERIFIED = "not verified by a dry run"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a dry run said. `refusal` is a WAIT or ERROR; else `differences` say what changes."""

    unchanged: bool = False
    refusal: Change | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DryRun:
    """Sends dry runs of one fleet and remembers their answers."""

    cluster: Cluster
    manager: str
    memo: DiffMemo = field(default_factory=DiffMemo)
    sends: bool = True
    """Whether what differs is written after this: in mode Observe nothing ever was."""

    def settle(
        self,
        payload: dict[str, Any],
        live: LiveObject,
        *,
        force: bool = False,
        again: bool = False,
    ) -> Settled:
        """Whether applying the payload to the live object would change anything of ours.

        What a webhook writes elsewhere in the object, or writes differently each time, is
        not ours: where a second answer differs from the first, nobody can reach a state.
        `again` asks even where the answer is remembered.
        """
        try:
            key = self._key(payload, live)
            if self.memo.settled.get(key) and not again:
                return Settled(unchanged=True)
            answer = self._ask(payload, live, force=force)
            found = self._changed(answer, live.body)
            if found and our_fields(answer, self.manager) == our_fields(live.body, self.manager):
                found = self._lasting(found, answer, self._ask(payload, live, force=force))
        except Conflict as error:
            if error.is_field_conflict:
                return Settled()
            return Settled(refusal=refusal_of(live.ref, error))
        except StokerError as error:
            return Settled(refusal=refusal_of(live.ref, error))
        if not found and our_fields(answer, self.manager) == our_fields(live.body, self.manager):
            self.memo.settle(key, unchanged=True)
            return Settled(unchanged=True)
        return Settled(differences=found)

    def is_as_made(self, payload: dict[str, Any], live: LiveObject) -> bool:
        """Whether creating the object now would give what stands.

        For objects that refuse to be changed: additions of webhooks to their lists are then
        told from what left Git. Asked under another name; a refusal says no.
        """
        metadata = payload.get("metadata") or {}
        named = {**metadata, "name": f"{live.ref.name[:MAX_ASKED]}-asked"}
        try:
            answers = [
                self.cluster.apply(
                    {**payload, "metadata": named}, manager=self.manager, dry_run=True
                )
                for _ in range(2)
            ]
        except StokerError:
            return False
        ours = our_fields(live.body, self.manager)
        if any(our_fields(answer, self.manager) != ours for answer in answers):
            return False
        if self._lasting(self._changed(answers[0], live.body), *answers):
            return False
        self.memo.settle(self._key(payload, live), unchanged=True)
        return True

    def _lasting(
        self, found: tuple[Difference, ...], answer: dict[str, Any], again: dict[str, Any]
    ) -> tuple[Difference, ...]:
        """All differences; none of them where two answers differ in the same places."""
        if {d.elements for d in found} <= {d.elements for d in self._changed(answer, again)}:
            return ()
        return found

    def _ask(self, payload: dict[str, Any], live: LiveObject, *, force: bool) -> dict[str, Any]:
        sent = _with_uid(payload, live.uid)
        return self.cluster.apply(sent, manager=self.manager, dry_run=True, force=force)

    def _changed(self, answer: dict[str, Any], other: dict[str, Any]) -> tuple[Difference, ...]:
        """Fields of ours that another state of the object has differently."""
        part = owned(answer, self.manager)
        if same_value(part, owned(other, self.manager)):
            return ()
        return compare(part, other, schema_of(answer)).differences

    def create(self, payload: dict[str, Any], ref: ObjectRef) -> Change | None:
        """Why creating the object would be refused; None when it would work."""
        try:
            self.cluster.apply(payload, manager=self.manager, dry_run=True)
        except StokerError as error:
            return refusal_of(ref, error)
        return None

    def _key(self, payload: dict[str, Any], live: LiveObject) -> Hashable:
        ours = our_fields(live.body, self.manager).tree
        standing = digest([owned(live.body, self.manager), ours])
        return digest(payload), standing, live.uid, self.cluster.server().version


def refusal_of(ref: ObjectRef, error: StokerError) -> Change:
    """An error answer as a Change: WAIT for what may pass, ERROR for what a person must mend."""
    status: ApiStatus | None = getattr(error, "status", None)
    causes = [(cause.field, cause.message) for cause in status.causes] if status else []
    reason = status.reason if status is not None else error.code
    note = masked_refusal(ref.kind, reason, error.message, causes)
    if isinstance(error, Forbidden) and error.is_terminating_namespace:
        return Change(ref, Action.WAIT, code="namespace-terminating", note=note)
    if isinstance(error, Waiting | Retryable):
        return Change(ref, Action.WAIT, code=error.code, note=note)
    return Change(ref, Action.ERROR, code=error.code, note=note)


def _with_uid(payload: dict[str, Any], uid: str) -> dict[str, Any]:
    metadata = payload.get("metadata") or {}
    return {**payload, "metadata": {**metadata, "uid": uid}} if uid else payload


def verified(change: Change, live: LiveObject | None, dry_run: DryRun, *, force: bool) -> Change:
    """The same create or change after the API server was asked about it, or why it refuses.

    What stands in a namespace or kind that this fleet only brings cannot be asked about.
    """
    assert change.payload is not None
    if live is None:
        refusal = dry_run.create(change.payload, change.ref)
        if refusal is None:
            return change
        if refusal.code in {"not-found", "kind-not-found"}:
            return replace(change, note=UNVERIFIED)
        return _refused(change, refusal)
    settled = dry_run.settle(change.payload, live, force=force)
    if settled.refusal is not None:
        return _refused(change, settled.refusal)
    if settled.unchanged:
        return replace(change, action=Action.UNCHANGED, payload=None, fields=(), note="")
    return change


def _refused(change: Change, refusal: Change) -> Change:
    return replace(
        change, action=refusal.action, code=refusal.code, note=refusal.note, payload=None
    )
