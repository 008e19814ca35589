"""Remembers verdicts by object and resourceVersion, so that an idle pass judges nothing anew.

Used by report; a cache only: the verdict is always the one that health_of would give.
"""

from __future__ import annotations

from stoker.model.live import LiveObject
from stoker.objects.health import health_of
from stoker.objects.health_fields import HealthVerdict
from stoker.objects.health_rules import HealthRules

__all__ = ["HealthMemo"]


class HealthMemo:
    """Holds one verdict an object, and forgets what two rounds in a row did not ask for."""

    def __init__(self) -> None:
        self._old: dict[str, tuple[str, HealthVerdict]] = {}
        self._new: dict[str, tuple[str, HealthVerdict]] = {}
        self._rules: HealthRules | None = None

    def health_of(self, live: LiveObject, rules: HealthRules | None = None) -> HealthVerdict:
        """The verdict on a live object; objects without UID are judged every time.

        Other health files than before are other rules: everything is judged anew.
        """
        if rules is not self._rules:
            if rules is None or self._rules is None or rules.checks != self._rules.checks:
                self._old, self._new = {}, {}
            self._rules = rules
        known = self._new.get(live.uid) or self._old.get(live.uid)
        if known is None or known[0] != live.resource_version or not live.uid:
            known = (live.resource_version, health_of(live.body, rules))
        self._new[live.uid] = known
        return known[1]

    def end_round(self) -> None:
        """Called once a pass over everything: what it did not ask for is dropped at the next."""
        self._old, self._new = self._new, {}
