"""What a commit's `Stoker-Allow-Delete:` trailers allow, and the trailers to ask for.

The arguments come in with Desired; answers for units and single objects go out, and lines
ready to paste. A unit's name or `all` lifts caps and guards; kinds that are never deleted
without consent need the object's own name. Used by prune.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.model.fleet import Desired
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["TRAILER", "Consent", "consent_of"]

TRAILER = "Stoker-Allow-Delete"


@dataclass(frozen=True, slots=True)
class Consent:
    """The arguments of all trailers of the commit."""

    arguments: frozenset[str] = frozenset()

    @property
    def everything(self) -> bool:
        """Whether `all` was given."""
        return "all" in self.arguments

    def names_unit(self, unit: UnitRef) -> bool:
        """Whether the trailers name the unit (`Bundle/llm/x` or `llm/x`), or all."""
        return self.everything or not self.arguments.isdisjoint({str(unit), unit.short})

    def names_object(self, ref: ObjectRef) -> bool:
        """Whether the trailers name the object itself; `all` does not."""
        return _name_of(ref) in self.arguments

    def unit_trailer(self, units: Iterable[UnitRef | str]) -> str:
        """The line that would allow these units to go."""
        return f"{TRAILER}: {', '.join(str(unit) for unit in units)}"

    def object_trailer(self, ref: ObjectRef) -> str:
        """The line that would allow this object to go."""
        return f"{TRAILER}: {_name_of(ref)}"


def consent_of(desired: Desired) -> Consent:
    """Read the trailers of the commit; several arguments may stand in one, by commas."""
    found = {part.strip() for text in desired.allow_delete for part in text.split(",")}
    return Consent(frozenset(part for part in found if part))


def _name_of(ref: ObjectRef) -> str:
    place = f"{ref.namespace}/" if ref.namespace else ""
    return f"{ref.kind}/{place}{ref.name}"
