"""Finds what stands where a rendered object is to be, and whether it may be touched.

A rendered manifest and the ground come in; a `Pair` goes out: create, compare with a live
object of ours, or a reason why nothing can be sent. Also pairs new placements with the
Deployments they replace. First step of diff for every object.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.diff.ground import Ground
from stoker.model.change import Action
from stoker.model.live import LiveObject
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Plan
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import LWS_KIND
from stoker.objects.conflicts import AdoptionRequired
from stoker.objects.consent import consents_in_git
from stoker.objects.names import fleet_of_mark

__all__ = ["Pair", "pair", "replaced_by"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A rendered object and what stands in its place.

    `action` is CREATE, CHANGE (compare with `live`, which is ours), WAIT or ERROR; the
    last two say why in `code` and `note`. An ERROR with `live` is somebody else's object.
    `early` is a CREATE whose namespace or kind this same pass has to bring first; `adopts` is
    a CHANGE of an object that is not ours yet, by Git's consent. UNCHANGED is left alone; with
    `live` it is ours all the same.
    """

    action: Action
    live: LiveObject | None = None
    code: str = ""
    note: str = ""
    early: bool = False
    adopts: bool = False


def pair(manifest: Manifest, unit: UnitRef, ground: Ground) -> Pair:
    """Look at the place of one rendered object; unknown is neither absent nor foreign."""
    ref = manifest.ref
    first = ground.claims[ref][0]
    if first != unit:
        return Pair(Action.ERROR, None, "duplicate-object", f"{first} renders {ref} too")
    consents = consents_in_git(manifest.body)
    if consents.left_alone:
        return Pair(Action.UNCHANGED, None, "reconcile-disabled", "left as it is live")
    blocked = _namespace(ref, ground) or _kind(ref, ground)
    if blocked is not None:
        return blocked
    if not ground.live.known(ref):
        return Pair(Action.WAIT, None, "live-state-unknown", ground.live.why_unknown(ref))
    live = ground.live.get(ref)
    if live is None:
        return Pair(Action.CREATE, note=_absent_note(ref, unit, ground))
    holder = ground.marked_unit(live)
    adopts = holder is None and not ground.is_listed(live)
    if consents.create_only and not live.is_leaving:
        return _made_once(live, foreign=adopts or holder not in {None, unit})
    if adopts and (not consents.adopt or fleet_of_mark(live.owner, ref)):
        return Pair(Action.ERROR, live, AdoptionRequired.code)
    if live.is_leaving:
        return Pair(Action.WAIT, live, "deletion-pending", _deleting(live))
    other = holder is not None and holder != unit
    claimed = ground.still_claims(holder, ref) if other and holder is not None else ""
    if claimed:
        return Pair(Action.WAIT, live, "claimed-by-other-unit", f"{holder} made it, and {claimed}")
    return Pair(Action.CHANGE, live, adopts=adopts)


def _made_once(live: LiveObject, *, foreign: bool) -> Pair:
    """A create-only object that stands, whoever made it."""
    if foreign:
        note = "only created where absent; what stands was not made here and is never changed"
        return Pair(Action.UNCHANGED, None, "create-only", note)
    return Pair(Action.UNCHANGED, live, "create-only", "only created where absent, never changed")


def _namespace(ref: ObjectRef, ground: Ground) -> Pair | None:
    if not ref.namespace:
        return None
    phase = ground.live.namespace_phase(ref.namespace)
    if phase == "Terminating":
        note = f"namespace {ref.namespace} is being deleted"
        return Pair(Action.WAIT, None, "namespace-terminating", note)
    if not phase:
        if ref.namespace in ground.coming_namespaces:
            return Pair(Action.CREATE, early=True)
        note = f"namespace {ref.namespace} does not exist"
        return Pair(Action.WAIT, None, "namespace-not-found", note)
    return None


def _kind(ref: ObjectRef, ground: Ground) -> Pair | None:
    served = ground.live.has_kind(ref)
    if served:
        return None
    if served is None:
        note = f"whether the cluster serves {ref.kind} could not be read"
        return Pair(Action.WAIT, None, "live-state-unknown", note)
    if (ref.group, ref.kind) in ground.coming_kinds:
        return Pair(Action.CREATE, early=True)
    note = f"the cluster does not serve {ref.api_version} {ref.kind}{_INSTALL.get(ref.kind, '')}"
    return Pair(Action.WAIT, None, "kind-not-found", note)


_INSTALL = {
    LWS_KIND: "; install the LeaderWorkerSet controller (lws.sigs.k8s.io), or set parallelism.nodes: 1"
}
"""Whose kinds a ModelService itself asks for, by kind: what to do."""


def _absent_note(ref: ObjectRef, unit: UnitRef, ground: Ground) -> str:
    """An object that we made and that somebody deleted says so."""
    return "somebody deleted it" if ground.inventory.objects(unit).get(ref) else ""


def _deleting(live: LiveObject) -> str:
    finalizers = live.body.get("metadata", {}).get("finalizers") or ()
    held = f", held by finalizers {', '.join(finalizers)}" if finalizers else ""
    return f"the live object is being deleted{held}; it is made anew when it is gone"


def replaced_by(plan: Plan | None, found: ManifestSet) -> dict[ObjectRef, ObjectRef]:
    """For each new placement of a service the Deployment that it takes over from."""
    decision = plan.decision(found.unit) if plan is not None else None
    if decision is None:
        return {}
    return {
        decision.workload_ref(placement.name): decision.workload_ref(placement.replaces)
        for placement in decision.placements
        if placement.replaces
    }
