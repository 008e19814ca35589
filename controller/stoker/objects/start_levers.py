"""What would shorten a start: levers, the phases each one touches, and what it leaves.

In: milliseconds by phase. Out: the same with levers pulled. A lever touches the phases it
names and no other; of levers that replace whole phases by something shorter, none is
counted twice. Pure; called by the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from stoker.objects.start_phases import Phase, Span

__all__ = ["LEVERS", "Lever", "Saving", "left_of", "savings_of", "with_levers"]

_RESTORED = (Phase.PROCESS, Phase.DEVICE, Phase.COMPILE, Phase.GRAPHS, Phase.ENGINE_INIT)
_ASLEEP = (
    Phase.QUEUE,
    Phase.NODE,
    Phase.SCHEDULE,
    Phase.SETUP,
    Phase.INIT_CONTAINERS,
    Phase.IMAGE_PULL,
    Phase.CONTAINER_START,
    Phase.CONFIG,
    Phase.DOWNLOAD,
    Phase.WEIGHTS,
    *_RESTORED,
)


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing to do. `keeps` is the part of each phase that is left, as a fraction.

    `replaces` are phases that fall away together, for `by_ms` in their place. `costs` says
    what is given up; such a lever is counted only where it is asked for. `source` is where
    the figures are from.
    """

    name: str
    what: str
    source: str
    keeps: tuple[tuple[Phase, int, int], ...] = ()
    replaces: tuple[Phase, ...] = ()
    by_ms: int = 0
    costs: str = ""

    @property
    def touches(self) -> frozenset[Phase]:
        """The phases it changes."""
        return frozenset(phase for phase, _, _ in self.keeps) | frozenset(self.replaces)


LEVERS = (
    Lever(
        "warm-node",
        "keep a spare node, or an instance warm pool",
        "seed 003: the only way to beat a node's launch is not to need one",
        keeps=((Phase.NODE, 0, 1),),
    ),
    Lever(
        "pre-pull",
        "pull the image to the nodes before it is needed",
        "seed 003: off the critical path on every node that exists before load arrives",
        keeps=((Phase.IMAGE_PULL, 0, 1),),
    ),
    Lever(
        "slim-image",
        "a runtime-only image, from a registry nearby",
        "seed 002: about 40 s to single digits; 40 to 6 s is ours (semantics section 6)",
        keeps=((Phase.IMAGE_PULL, 6, 40),),
    ),
    Lever(
        "local-weights",
        "keep the weights on the node's disk (cache.type HostPath)",
        "seed 002: disk instead of network speed; 30 to 20 s is ours, so that all levers of "
        "the guide leave its 21 s",
        keeps=((Phase.DOWNLOAD, 0, 1), (Phase.WEIGHTS, 2, 3)),
    ),
    Lever(
        "streamer",
        "stream weights into the GPU (--load-format runai_streamer)",
        "ours, as above; alone it was measured at 0.30 (gp3) and 0.17 (io2) of the time",
        keeps=((Phase.WEIGHTS, 1, 2),),
    ),
    Lever(
        "compile-cache",
        "keep ~/.cache/vllm on a volume",
        "seed 003 names it; a fifth is ours",
        keeps=((Phase.COMPILE, 1, 5),),
    ),
    Lever(
        "graph-reuse",
        "share captured CUDA graphs between replicas",
        "seed 002 names it; a quarter is ours",
        keeps=((Phase.GRAPHS, 1, 4),),
    ),
    Lever(
        "snapshot",
        "restore an initialised process (CRIU, CUDA checkpoint)",
        "seed 002 names what it collapses; 3 s is ours (semantics section 6)",
        replaces=_RESTORED,
        by_ms=3_000,
    ),
    Lever(
        "skip-graphs",
        "do without compilation and CUDA graphs (engine.cudaGraphs: Skip)",
        "vllm-coldstart-operator: engine init 30.4 s with graphs, 8.3 s without",
        keeps=((Phase.COMPILE, 0, 1), (Phase.GRAPHS, 0, 1)),
        costs="slower decoding",
    ),
    Lever(
        "sleep",
        "wake a sleeping instance instead of starting one",
        "llm-d fast model actuation: about 3 s for 64 GiB",
        replaces=_ASLEEP,
        by_ms=3_000,
        costs="memory of the node",
    ),
)
"""In the order in which people meet the phases. Those of the guide are slim-image,
local-weights, streamer, graph-reuse and snapshot."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What one lever saves. `saves_ms` is None where spans hold phases it does not touch;
    it is then more than `least_ms` and at most `most_ms`.
    """

    lever: Lever
    saves_ms: int | None
    least_ms: int
    most_ms: int


def with_levers(terms: Mapping[Phase, int], levers: Iterable[Lever]) -> dict[Phase, int]:
    """Milliseconds by phase with these levers pulled.

    Whole phases are replaced last, by the lever that replaces most; what is put in their
    place stands at the first of them. A replacement that would take longer is not made.
    """
    left = dict(terms)
    pulled = sorted(levers, key=lambda lever: (-len(lever.replaces), lever.name))
    for lever in pulled:
        for phase, part, whole in lever.keeps:
            if phase in left:
                left[phase] = left[phase] * part // whole
    gone: set[Phase] = set()
    for lever in pulled:
        inside = [phase for phase in Phase if phase in lever.replaces and phase in left]
        inside = [phase for phase in inside if phase not in gone]
        if sum(left[phase] for phase in inside) > lever.by_ms:
            left.update(dict.fromkeys(inside, 0) | {inside[0]: lever.by_ms})
            gone.update(inside)
    return left


def savings_of(spans: Iterable[Span]) -> tuple[Saving, ...]:
    """What each lever alone would save of this start, most first; levers that save nothing
    are left out.
    """
    known = [span for span in spans if span.took_ms is not None]
    found = [_saving(lever, known) for lever in LEVERS]
    helping = [saving for saving in found if saving.most_ms > 0]
    return tuple(sorted(helping, key=lambda each: (-each.most_ms, each.lever.name)))


def left_of(spans: Iterable[Span], levers: Iterable[Lever]) -> tuple[int, int, Phase | None]:
    """Least and most milliseconds that these levers leave of the known spans, and the phase
    that is then the largest (None where the two differ).

    Equal where every span that a lever touches holds one phase alone.
    """
    pulled = tuple(levers)
    touched = frozenset().union(*(lever.touches for lever in pulled))
    known = [span for span in spans if span.took_ms is not None]
    sole: dict[Phase, int] = {}
    unclear: list[Span] = []
    for span in known:
        if len(span.phases) == 1 or not touched & set(span.phases):
            sole[span.phases[0]] = sole.get(span.phases[0], 0) + (span.took_ms or 0)
        else:
            unclear.append(span)
    left = with_levers(sole, pulled)
    if not unclear:
        largest = max(left, key=lambda phase: left[phase], default=None)
        return sum(left.values()), sum(left.values()), largest
    least = sum(left.values()) + sum(span.took_ms or 0 for span in unclear)
    most = least
    for choice in product(*(span.phases for span in unclear)):
        terms = dict(sole)
        for phase, span in zip(choice, unclear, strict=True):
            terms[phase] = terms.get(phase, 0) + (span.took_ms or 0)
        least = min(least, sum(with_levers(terms, pulled).values()))
    return least, most, None


def _saving(lever: Lever, spans: list[Span]) -> Saving:
    """Bounds over every way in which the time of a span may divide among its phases."""
    sure = [span for span in spans if set(span.phases) <= lever.touches]
    sole = {span.phases[0]: span.took_ms or 0 for span in spans if len(span.phases) == 1}
    maybe = [span for span in spans if len(span.phases) > 1 and lever.touches & set(span.phases)]
    if not maybe:
        saved = sum(sole.values()) - sum(with_levers(sole, (lever,)).values())
        return Saving(lever, saved, saved, saved)
    least = _saved_at(lever, sole, [span for span in maybe if span in sure], worst=True)
    most = _saved_at(lever, sole, maybe, worst=False)
    return Saving(lever, least if least == most else None, least, most)


def _saved_at(lever: Lever, sole: Mapping[Phase, int], spans: list[Span], *, worst: bool) -> int:
    """Saving when each span's time lies in the one touched phase that gives least or most."""
    terms = dict(sole)
    for span in spans:
        kept = {phase: part / whole for phase, part, whole in lever.keeps}
        touched = [phase for phase in span.phases if phase in lever.touches]
        choose = max if worst else min
        phase = choose(touched, key=lambda each: (kept.get(each, 0.0), each))
        terms[phase] = terms.get(phase, 0) + (span.took_ms or 0)
    return sum(terms.values()) - sum(with_levers(terms, (lever,)).values())
