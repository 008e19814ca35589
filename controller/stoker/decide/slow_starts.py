"""Starts that take longer than their deadline, or a waiting client, allows: for warnings of check.

In: a case, what was learned, the classes of nodes there are. Out: the slowest kind of start
that is slower than the service's own coldStart.deadline, or than what wakes it holds requests.
Called by decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from stoker.decide.case import Case
from stoker.decide.estimates import Estimates, node_class
from stoker.decide.ready_in import Facts
from stoker.model.plan import SlowStart
from stoker.model.scaling import ZeroPolicy
from stoker.model.snapshot import Node

__all__ = ["PATHS", "SlowStarts"]

PATHS = tuple(
    Facts(image=image, weights=weights) for image, weights in product((False, True), repeat=2)
)


class SlowStarts:
    """Made once a pass; free where no start was ever slower than what is asked about."""

    def __init__(self, estimates: Estimates, nodes: Iterable[Node]) -> None:
        self._estimates = estimates
        self._nodes = nodes
        self._classes: dict[str, Mapping[str, str]] | None = None

    def of(self, case: Case) -> SlowStart | None:
        """The slowest kind over the deadline; ties go to the class of nodes named first."""
        return self._over(case, case.spec.cold_start_deadline_ms)

    def over_hold(self, case: Case) -> SlowStart | None:
        """The same of the shortest time that a request is held at zero; None where nothing says
        how long that is, or the service never goes to zero.
        """
        scaling = case.spec.scaling
        if scaling is None or scaling.scale_to_zero.policy is ZeroPolicy.NEVER:
            return None
        holds = [source.hold_ms for source in scaling.scale_to_zero.wake if source.hold_ms]
        return self._over(case, min(holds)) if holds else None

    def _over(self, case: Case, allowed_ms: int) -> SlowStart | None:
        if self._estimates.longest_ms <= allowed_ms:
            return None
        slow = []
        for where, labels in sorted(self._by_class().items()):
            for facts in PATHS:
                found = self._estimates.of(case, facts, labels)
                if not found.prior and found.p90_ms > allowed_ms:
                    slow.append((-found.p90_ms, where, found.facts, found.samples))
        if not slow:
            return None
        minus_ms, where, told, samples = min(slow)
        return SlowStart(where, told, -minus_ms, samples)

    def _by_class(self) -> dict[str, Mapping[str, str]]:
        """Labels of one node of each class."""
        if self._classes is None:
            self._classes = {}
            for node in self._nodes:
                labels = dict(node.labels)
                self._classes.setdefault(node_class(labels), labels)
        return self._classes
