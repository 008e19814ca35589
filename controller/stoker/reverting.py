"""Services whose newest rev failed, worked on as they were when all of them was last Ready.

The glue between what decide remembered (the blocked rev, the last good commit) and Git. Called
by reconcile in place of the shape stage: which rev a file comes to is known only after it.
Counts, scaling and budgets stay those of the newest commit; only the pod template goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from stoker.holding import Holding, past_of
from stoker.log import get_log
from stoker.model.codec import digest
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.flow import Held, HeldBy
from stoker.model.history import History
from stoker.model.ports import Repo
from stoker.model.refs import SourceRevision, UnitRef
from stoker.model.update_history import UpdateHistory
from stoker.render import Renderer, Shapes, shape

__all__ = ["OF_TEMPLATE", "shaped"]

_log = get_log("reverting")

OF_TEMPLATE = (
    "model_uri",
    "model_revision",
    "served_names",
    "engine_image",
    "gpu_count",
    "model_size_bytes",
    "token_secret",
    "engine_type",
    "engine_version",
    "engine_args",
    "cuda_graphs",
    "tensor_parallel",
    "pipeline_parallel",
    "nodes",
    "group_key",
    "gpu_resource",
    "gpu_min_memory_bytes",
    "gpu_products",
    "cpu_request",
    "memory_request",
    "shm_bytes",
    "cache",
    "cold_start_deadline_ms",
    "drain",
    "service_port",
    "template",
    "pod_template",
)
"""Fields of a ModelService that templates make pods of, and what a pod needs of its node."""


def shaped(
    holding: Holding,
    history: History,
    desired: Desired,
    path: str,
    repo: Repo,
    renderer: Renderer,
    fleet_id: str,
    *,
    checkpoint: Callable[[], None] | None = None,
) -> tuple[Desired, Shapes]:
    """Desired with the template of such services put back and `held` saying so, and its shapes.

    Without a blocked rev this is one call of `shape`. Where the older commit cannot be had,
    or the fleet's own templates changed since, the newest stays: decide buys nothing of it.
    """
    blocked = _blocked(history, desired)

    def shaped_with(refs: Collection[UnitRef]) -> tuple[Desired, Shapes, dict[UnitRef, str]]:
        chosen = {ref: known for ref, known in blocked.items() if ref in refs}
        back = _put_back(holding, desired, chosen, repo, path)
        shapes = shape(back, repo, renderer, fleet_id, checkpoint=checkpoint)
        return back, shapes, {each.ref: each.rev for each in shapes.shapes}

    # 1. Those that the pass before found to be blocked, as long as their files are the same.
    sure = {ref for ref in blocked if holding.blocked.get(ref) == _told(desired, blocked, ref)}
    back, shapes, revs = shaped_with(sure)
    # 2. Those whose files changed, or that were not looked at yet, and come to the blocked rev.
    new = {r for r, u in blocked.items() if r not in sure and revs.get(r) == u.blocked_rev}
    for ref in new:
        holding.blocked[ref] = _told(desired, blocked, ref)
    if new:
        back, shapes, revs = shaped_with(sure | new)
    # 3. Those whose older template is gone, or comes to the blocked rev too, stay as they are.
    behind = {each.unit for each in back.held if each.by is HeldBy.FAILED}
    lost = {ref for ref in behind if revs.get(ref, "") in {"", blocked[ref].blocked_rev}}
    if lost:
        _log.warning("revert.impossible", units=", ".join(str(ref) for ref in sorted(lost)))
        back, shapes, _ = shaped_with(behind - lost)
    return back, shapes


def _blocked(history: History, desired: Desired) -> dict[UnitRef, UpdateHistory]:
    """Services with a blocked rev that nobody else holds, in the order of their refs."""
    held = {each.unit for each in desired.held}
    known = {ref: past.update for ref, past in history.entries if past.update.blocked_rev}
    return {
        unit.ref: known[unit.ref]
        for unit in desired.units
        if unit.ref in known and unit.ref not in held and isinstance(unit.spec, ModelService)
    }


def _told(
    desired: Desired, blocked: Mapping[UnitRef, UpdateHistory], ref: UnitRef
) -> tuple[str, str]:
    """What stands for "these files come to that blocked rev"."""
    unit = desired.unit(ref)
    return unit.digest if unit is not None else "", blocked[ref].blocked_rev


def _put_back(
    holding: Holding,
    desired: Desired,
    blocked: Mapping[UnitRef, UpdateHistory],
    repo: Repo,
    path: str,
) -> Desired:
    if not blocked:
        return desired
    units: list[Unit] = []
    held = list(desired.held)
    for unit in desired.units:
        known = blocked.get(unit.ref)
        older = _older(holding, desired, unit, known, repo, path) if known is not None else None
        units.append(older or unit)
        if older is not None and known is not None:
            message = f"rev {known.blocked_rev} of commit {known.blocked_commit[:7]} failed"
            held.append(Held(unit.ref, HeldBy.FAILED, message, whole=False))
    held.sort(key=lambda each: each.unit)
    return replace(desired, units=tuple(units), held=tuple(held))


def _older(
    holding: Holding, desired: Desired, unit: Unit, known: UpdateHistory, repo: Repo, path: str
) -> Unit | None:
    """The unit with the pod template that it had; None where that is not to be had."""
    if not known.good_commit or not isinstance(unit.spec, ModelService):
        return None
    at = SourceRevision(desired.revision.ref, known.good_commit)
    past = past_of(holding, repo, path, at)
    old = past.unit(unit.ref) if past is not None else None
    if past is None or old is None or not isinstance(old.spec, ModelService):
        return None
    if past.templates != desired.templates:
        return None
    spec = replace(unit.spec, **{name: getattr(old.spec, name) for name in OF_TEMPLATE})
    return replace(unit, spec=spec, digest=digest([old.digest, unit.digest]))
