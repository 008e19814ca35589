"""What failed starts mean for one service in one pass: made by quarantine, carried by Case.

place leaves the barred nodes out, work starts no more than it allows, holds tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.blame import BadRev

__all__ = ["NO_BARS", "Bar", "Bars"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A node that is left out: why in a few words, and until when (None: until a start there
    has an end).
    """

    node: str
    why: str
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Bars:
    """What failed starts mean for one service now. `bars` are sorted by node.

    `wait_until_ms` is when the next start may be made, 0 for now. `suspect`: the rev may be to
    blame, so one start at a time has to show it. `proven_at_ms` is when a blamed rev will have
    shown that it runs, None while none of it is Ready.
    """

    bars: tuple[Bar, ...] = ()
    bad_rev: BadRev | None = None
    in_a_row: int = 0
    reason: str = ""
    suspect: bool = False
    suspect_made_ms: int = 0
    wait_until_ms: int = 0
    proven_at_ms: int | None = None
    on_trial: tuple[str, ...] = ()
    """Nodes whose quarantine is over: one start at a time shows whether they are well again."""

    def why(self, node: str) -> str:
        """Why that node is left out; empty when it is not."""
        return next((bar.why for bar in self.bars if bar.node == node), "")

    def opens_ms(self) -> int | None:
        """When the first node may be tried again; None when no instant is known."""
        return min((bar.until_ms for bar in self.bars if bar.until_ms is not None), default=None)


NO_BARS = Bars()
"""Where nothing failed."""
