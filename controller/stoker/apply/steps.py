"""The steps of apply between the two writes of the inventory, in the order they are called.

A ChangeSet and a Sender come in; each step sends its part through the pool and leaves the
answers in the tally. Used by apply only, which says in which order and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from stoker.apply.answers import Sent, changed_meanwhile, sent_error
from stoker.apply.coldest import marks
from stoker.apply.free_names import Looked, look, places_of
from stoker.apply.observed import unsent
from stoker.apply.pool import run_chains
from stoker.apply.prune import delete_chain
from stoker.apply.retire import retirement_jobs
from stoker.apply.send import Sender
from stoker.apply.tally import Tally
from stoker.errors import StokerError, Unreachable
from stoker.model.change import Action, Change, ChangeSet
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import is_workload
from stoker.objects.conflicts import adoption_required
from stoker.objects.consent import consents_in_git
from stoker.objects.inventory import INTENT, Inventory
from stoker.objects.kinds import CRD_GROUP, Stage, stage_of

__all__ = ["Steps"]

_WRITES = frozenset({Action.CREATE, Action.CHANGE, Action.RECREATE})

_IN_A_ROW = 3
_ALWAYS_THERE = ObjectRef("", "Namespace", "", "kube-system")

_Answer = tuple[UnitRef, Sent]
_Job = Callable[[], _Answer]


@dataclass(slots=True, eq=False)
class Steps:
    """One pass under way; each step is called once."""

    changes: ChangeSet
    sender: Sender
    tally: Tally
    checkpoint: Callable[[], None]
    in_flight: int
    not_free: set[ObjectRef] = field(default_factory=set)
    known_late: dict[ObjectRef, str] = field(default_factory=dict)
    """UIDs of objects of ours that the caches did not show yet."""

    # --------------------------------------------------------------- inventory

    def additions(self) -> Iterator[tuple[UnitRef, ObjectRef, str]]:
        """What the union adds: proven objects with their UID, creates as intents."""
        yield from self.changes.proven
        for unit, change in self._writes():
            uid = INTENT if change.takes_over else change.live_uid
            yield unit, change.ref, uid or INTENT

    def found_uids(self) -> Iterator[tuple[UnitRef, ObjectRef, str]]:
        """UIDs that the answers brought."""
        for (unit, ref), uid in sorted(self.tally.uids.items()):
            yield unit, ref, uid

    def adopted(self) -> Iterator[ObjectRef]:
        """Objects that somebody else made and that stand as ours now."""
        for unit in self.changes.units:
            for change in unit.changes:
                stands = change.action is Action.UNCHANGED or (
                    (unit.unit, change.ref) in self.tally.uids
                )
                if change.adopted and stands:
                    yield change.ref

    def left(self) -> list[tuple[UnitRef, ObjectRef]]:
        """Entries that no longer stand for anything."""
        return [*self.changes.forgotten, *sorted(self.tally.gone)]

    # ----------------------------------------------------------------- sending

    def settle_the_unsent(self) -> None:
        """Note the outcome of everything for which no request is made."""
        for unit in self.changes.units:
            for change in unit.changes:
                if change.action in _WRITES or change.action is Action.DELETE:
                    continue
                if change.manifest is not None:
                    self.tally.note(unit.unit, unsent(change))
                else:
                    self.tally.pruned[change.ref] = unsent(change)

    def look_for_taken_names(self, known: Inventory) -> None:
        """See that names are free before they are created; `known` is from before the union.

        A name that only an intent lists is looked at too, for an intent proves nothing.
        """
        created = [(unit, c.ref) for unit, c in self._writes() if c.action is Action.CREATE]
        if not created:
            return
        proven = {ref for unit in known.units for ref, uid in known.objects(unit).items() if uid}
        owners = {ref: unit for unit, ref in created if ref not in proven}
        chains = [
            [[partial(look, self.sender.cluster, place, refs)]] for place, refs in places_of(owners)
        ]
        consented = {
            change.ref
            for _, change in self._writes()
            if change.manifest is not None and consents_in_git(change.manifest.body).adopt
        }
        answers: list[Looked] = []
        run_chains(chains, answers.append, self.checkpoint, in_flight=self.in_flight)
        for answer in answers:
            self._take_look(answer, owners, consented)

    def _take_look(
        self, answer: Looked, owners: Mapping[ObjectRef, UnitRef], consented: set[ObjectRef]
    ) -> None:
        """Whatever is not ours is not written; what may be adopted is compared first."""
        if answer.error is not None:
            for ref in answer.refs:
                self.not_free.add(ref)
                self.tally.take(owners[ref], sent_error(ref, answer.error))
        for ref, body in sorted(answer.taken.items()):
            if self.sender.bears_our_mark(ref, body):
                self.known_late[ref] = str(body["metadata"]["uid"])
            else:
                self.not_free.add(ref)
                sent = sent_error(ref, adoption_required(ref, body))
                if ref in consented:
                    sent = changed_meanwhile(ref, "it exists; it is compared before it is adopted")
                self.tally.take(owners[ref], sent)

    def send_foundations(self) -> None:
        """Namespaces, then CRDs, of all units."""
        namespaces: list[_Job] = []
        crds: list[_Job] = []
        for unit, change in self._writes():
            if stage_of(change.ref) is Stage.FOUNDATION:
                into = crds if change.ref.group == CRD_GROUP else namespaces
                into.append(self._sending(unit, change))
        self._run([[namespaces, crds]])
        if crds:
            self.sender.cluster.forget_discovery()

    def mark_coldest(self) -> None:
        """Say which pods leave with a count that is about to be lowered."""
        chains: list[list[list[_Job]]] = []
        for unit in self.changes.units:
            if any(self._is_write(c) and is_workload(c.ref) for c in unit.changes):
                jobs = marks(unit.unit, unit.coldest, self.sender)
                chains.append([[self._guarded(unit.unit, job, ref) for ref, job in jobs]])
        self._run(chains)

    def send_units(self) -> None:
        """Config, then workloads, then admission guards; units in order."""
        chains: list[list[list[_Job]]] = []
        for unit in self.changes.units:
            stages: dict[Stage, list[_Job]] = {stage: [] for stage in sorted(Stage)}
            for change in unit.changes:
                stage = stage_of(change.ref)
                if self._is_write(change) and stage is not Stage.FOUNDATION:
                    stages[stage].append(self._sending(unit.unit, change))
            chains.append(list(stages.values()))
        self._run(chains)

    def send_late_kinds(self) -> None:
        """Once more what found no kind, where this pass itself has sent CRDs."""
        if not any(change.ref.group == CRD_GROUP for _, change in self._writes()):
            return
        late = [
            self._sending(unit, change)
            for unit, change in self._writes()
            if self.tally.code(unit, change.ref) == "kind-not-found"
        ]
        if late:
            self.sender.cluster.forget_discovery()
            self._run([[late]])

    def retire(self, now_ms: int) -> None:
        """The next step of every Deployment that leaves."""
        chains: list[list[list[_Job]]] = []
        for unit in self.changes.units:
            for retirement in unit.retirements:
                jobs = retirement_jobs(unit.unit, retirement, self.sender, now_ms)
                chains.append([[self._guarded(unit.unit, job, ref) for ref, job in jobs]])
        self._run(chains)

    def prune(self) -> None:
        """Delete what left Git: of units that are gone, and of units that have applied."""
        owners: dict[ObjectRef, UnitRef] = {}
        allowed: list[Change] = []
        for unit in self.changes.units:
            for change in unit.changes:
                if change.action is not Action.DELETE:
                    continue
                if self.changes.prune_hold or not self.tally.has_applied(unit):
                    why = self.changes.prune_hold or f"{unit.unit} has not applied"
                    kept = ObjectOutcome(change.ref, Result.KEPT, "prune-held", why)
                    self.tally.pruned[change.ref] = kept
                else:
                    owners[change.ref] = unit.unit
                    allowed.append(change)
        stages = [
            [self._guarded(owners[ref], job, ref) for ref, job in stage]
            for stage in delete_chain(self.sender.cluster, allowed)
        ]
        self._run([stages], pruning=True)

    # ---------------------------------------------------------------- requests

    def _writes(self) -> Iterator[tuple[UnitRef, Change]]:
        for unit in self.changes.units:
            for change in unit.changes:
                if self._is_write(change):
                    yield unit.unit, change

    def _is_write(self, change: Change) -> bool:
        return change.action in _WRITES and change.ref not in self.not_free

    def _sending(self, unit: UnitRef, change: Change) -> _Job:
        uid = self.known_late.get(change.ref, "")
        if uid:
            change = replace(change, action=Action.CHANGE, live_uid=uid)
        return self._guarded(unit, partial(self.sender.send, change), change.ref)

    def _guarded(self, unit: UnitRef, job: Callable[[], Sent], ref: ObjectRef) -> _Job:
        """The job with its unit; not run once the API server has stopped answering."""

        def run() -> _Answer:
            if self._is_silent():
                text = "not sent: the API server does not answer"
                return unit, Sent(ObjectOutcome(ref, Result.SKIPPED, "unreachable", text))
            return unit, job()

        return run

    def _is_silent(self) -> bool:
        """Whether the API server has stopped answering.

        A hanging webhook looks the same for the objects it judges, so after some time-outs
        in a row the server is asked for something that no webhook sees.
        """
        if not self.tally.stopped and self.tally.unanswered_in_a_row >= _IN_A_ROW:
            try:
                self.sender.cluster.get(_ALWAYS_THERE)
            except Unreachable:
                self.tally.stopped = True
            except StokerError:
                pass  # it answered
            self.tally.unanswered_in_a_row = 0
        return self.tally.stopped

    def _run(self, chains: Sequence[Sequence[Sequence[_Job]]], *, pruning: bool = False) -> None:
        take = self.tally.take_pruned if pruning else self.tally.take
        run_chains(
            chains,
            lambda answer: take(*answer),
            self.checkpoint,
            in_flight=self.in_flight,
        )
