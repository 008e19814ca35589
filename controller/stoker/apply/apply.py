"""The apply stage: carries out a ChangeSet and says what came of each object.

A ChangeSet comes in, a PassOutcome goes out. Order: inventory union, namespaces and CRDs of
all units, marks on pods that leave, then unit by unit config and workloads, retirements, prune,
and last the inventory as it is now (design section 6). Called by reconcile on the reconciler thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stoker.apply.observed import observed
from stoker.apply.pool import IN_FLIGHT
from stoker.apply.send import Sender
from stoker.apply.steps import Steps
from stoker.apply.store import InventoryStore
from stoker.apply.tally import Folding, Tally
from stoker.errors import Finding, StokerError
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired, FleetMode
from stoker.model.outcome import PassOutcome
from stoker.model.ports import Clock, Cluster

__all__ = ["apply"]


def apply(
    changes: ChangeSet,
    desired: Desired,
    cluster: Cluster,
    store: InventoryStore,
    observer: Folding,
    clock: Clock,
    fleet_id: str,
    *,
    checkpoint: Callable[[], None] = lambda: None,
    in_flight: int = IN_FLIGHT,
) -> PassOutcome:
    """Write what differs, delete what left Git, and keep the inventory true throughout.

    `store` must have been read in this pass. `checkpoint` is asked between requests and
    ends the pass by raising; what was sent is then folded, and the inventory still lists
    every name that may exist. In mode Observe nothing is written, the inventory included.
    Raises what writing the union raises: then nothing else was sent. A failure to write the
    last inventory is in the outcome: the union still stands, and the next pass writes again.
    """
    if desired.fleet.mode is FleetMode.OBSERVE:
        return observed(changes)
    tally = Tally(observer, clock)
    steps = Steps(
        changes=changes,
        sender=Sender(cluster, fleet_id),
        tally=tally,
        checkpoint=checkpoint,
        in_flight=in_flight,
    )
    steps.settle_the_unsent()
    # 1. Every name that is about to be made is listed before it is; only where one is new
    #    to the cluster, which knows nothing of a rebuilt inventory.
    union = store.current.union(steps.additions())
    if store.current.rebuilt or union.adds_names(store.current):
        checkpoint()
        store.write(union)
    # 2. Names that neither inventory nor cache knows are shown to be free.
    steps.look_for_taken_names(store.current)
    # 3. Namespaces and CRDs of all units, then unit by unit, then what leaves.
    steps.send_foundations()
    steps.mark_coldest()
    steps.send_units()
    steps.send_late_kinds()
    steps.retire(clock.now_ms())
    steps.prune()
    # 4. UIDs of answers in, what is gone out.
    failure: Finding | None = None
    try:
        now = union.union(steps.found_uids(), adopted=steps.adopted())
        store.write(now.without(steps.left()))
    except StokerError as error:
        failure = Finding(desired.fleet.location, error.code, error.message, hint=error.hint)
    return replace(tally.outcome(changes), failure=failure)
