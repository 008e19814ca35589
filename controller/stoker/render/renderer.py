"""What the two render stages share between passes: the children and the memo.

Made once by reconcile or a command, used on its one thread, closed at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from stoker.clock import SystemClock
from stoker.model.last_answer import LastAnswer
from stoker.model.manifest import ManifestSet
from stoker.model.ports import Clock
from stoker.model.refs import UnitRef
from stoker.render.ahead import Ahead
from stoker.render.neutral import NeutralObject, NeutralUnit
from stoker.render.pool import Job, JobResult, Limits, Pool
from stoker.render.shapes import Shapes

__all__ = ["RenderMemo", "Renderer"]

_MAY_PASS = frozenset({"render-crashed", "render-timeout"})
"""Findings that a busy machine can cause; everything else is settled by the input alone."""
RETRY_SECONDS = 600.0
"""How long such a finding stands before its unit is rendered again."""


@dataclass(slots=True)
class RenderMemo:
    """Results of earlier passes, by unit, each valid for one key.

    `neutral` is settled by the unit's files and templates, `around` (objects beside the
    workload) by the decided counts too, `sets` by the whole decision. `texts` holds the
    fleet's own templates by object id.
    """

    neutral: dict[UnitRef, tuple[NeutralUnit, float | None]] = field(default_factory=dict)
    around: dict[UnitRef, tuple[object, tuple[NeutralObject, ...]]] = field(default_factory=dict)
    sets: dict[UnitRef, tuple[object, ManifestSet]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    last_shapes: LastAnswer[Shapes] = field(default_factory=LastAnswer)
    """What the same state came to, when nothing was wrong with it."""
    last_sets: LastAnswer[tuple[ManifestSet, ...]] = field(default_factory=LastAnswer)
    """What the same state and decisions came to, when every set was complete."""

    def keep_only(self, refs: Iterable[UnitRef]) -> None:
        """Forget units that left the fleet."""
        wanted = frozenset(refs)
        for table in (self.neutral, self.around, self.sets):
            for ref in [ref for ref in table if ref not in wanted]:
                del table[ref]


def _cores() -> int:
    """Cores this process may use; all of them where the system cannot tell."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class Renderer:
    """Render children and memo; a context manager that ends the children.

    `workers` 0 means one per core. With `require_jail`, a render raises Stalled
    `jail-unavailable` where the kernel lacks a part of the jail.
    """

    def __init__(
        self,
        workers: int = 0,
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        require_jail: bool = False,
    ) -> None:
        self._clock = clock or SystemClock()
        size = workers or _cores()
        self._pool = Pool(size, self._clock, limits, require_jail=require_jail)
        self.memo = RenderMemo()
        self._ahead = Ahead()
        self._jobs_begun = 0
        self.jobs = 0
        """Jobs given to the children so far, those of what was begun once that is finished;
        logs, metrics and tests read it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def warm_up(self) -> None:
        """Start a child before the first job; it takes a quarter of a second."""
        self._pool.warm_up()

    def begin(self, act: Callable[[Callable[[], None]], object]) -> None:
        """Let `act` use the renderer on a thread of its own until somebody else needs it.

        It gets a checkpoint that ends it when nobody waits for the rest.
        """
        self.finish()
        self._ahead.start(act)

    def finish(self) -> None:
        """Wait for what was begun; before anything else is asked of the renderer."""
        self._ahead.finish()
        self.jobs, self._jobs_begun = self.jobs + self._jobs_begun, 0

    def close(self) -> None:
        """End the children, and first what was begun; the memo stays."""
        self._ahead.finish(stop=True)
        self._pool.close()

    @property
    def jail(self) -> dict[str, str]:
        """Parts of the jail as the newest child reports them; empty before the first job."""
        return dict(self._pool.jail)

    def run(
        self, jobs: Sequence[Job], checkpoint: Callable[[], None] | None = None
    ) -> tuple[JobResult, ...]:
        """Run jobs on the children, results in the same order."""
        if self._ahead.is_here:
            self._jobs_begun += len(jobs)
        else:
            self.jobs += len(jobs)
        return self._pool.run(jobs, checkpoint) if jobs else ()

    def recall(self, ref: UnitRef, key: str) -> NeutralUnit | None:
        """The neutral unit of an earlier pass, if it still holds."""
        neutral, until = self.memo.neutral.get(ref, (None, None))
        if neutral is None or neutral.key != key:
            return None
        if until is not None and self._clock.monotonic() >= until:
            return None
        return neutral

    def remember(self, neutral: NeutralUnit) -> None:
        """Keep a neutral unit for later passes."""
        passing = any(finding.code in _MAY_PASS for finding in neutral.findings)
        until = self._clock.monotonic() + RETRY_SECONDS if passing else None
        self.memo.neutral[neutral.ref] = (neutral, until)
