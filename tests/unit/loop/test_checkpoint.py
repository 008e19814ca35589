"""A pass ends early for three reasons only: stop, a notice, a lost lease."""

from collections.abc import Callable

import pytest

from stoker.loop.loop import Loop, PassAborted, PassRequest, PassVerdict
from stoker.loop.step import Event, EventKind, PassKind, Timing
from stoker.metrics import Metrics
from stoker.model.refs import SourceRevision
from stoker.sim.clock import VirtualClock

FIRST = SourceRevision("main", "a" * 40)


class Passes:
    """A pass that does something half way, then meets its checkpoint."""

    def __init__(self) -> None:
        self.kinds: list[PassKind] = []
        self.ended: list[PassKind] = []
        self.half_way: dict[int, Callable[[Loop], None]] = {}
        self.loop: Loop | None = None

    def __call__(self, request: PassRequest) -> PassVerdict:
        assert self.loop is not None
        self.kinds.append(request.kind)
        act = self.half_way.get(len(self.kinds))
        if act is not None:
            act(self.loop)
        self.loop.checkpoint()
        self.ended.append(request.kind)
        if len(self.kinds) >= 4:
            self.loop.stop()
        return PassVerdict(failed=False, wake_in=0.0)


def run(passes: Passes) -> Passes:
    clock = VirtualClock()
    loop = Loop(passes, clock, Metrics(), timing=Timing(coalesce=0.0))
    passes.loop = loop
    loop.put(Event(EventKind.REVISION, clock.monotonic(), revision=FIRST))
    loop.run()
    return passes


def test_a_stop_ends_the_pass_at_its_next_checkpoint():
    """A clean stop must not wait for a pass over a thousand units."""
    passes = Passes()
    passes.half_way[1] = lambda loop: loop.stop()
    run(passes)

    assert [PassKind.FULL] == passes.kinds
    assert [] == passes.ended


def test_a_notice_aborts_the_pass_and_runs_its_own_at_once():
    """Two minutes are all a spot node gives."""
    passes = Passes()
    passes.half_way[1] = lambda loop: loop.put(Event(EventKind.NOTICE, 0.0, detail="gpu-1"))
    run(passes)

    assert [PassKind.FULL, PassKind.NOTICE, PassKind.FULL] == passes.kinds[:3]
    assert [PassKind.NOTICE, PassKind.FULL] == passes.ended[:2]


def test_an_ordinary_event_lets_the_pass_end():
    """Only a notice and stop abort; everything else waits its turn."""
    passes = Passes()
    passes.half_way[1] = lambda loop: loop.put(Event(EventKind.OBJECT, 0.0))
    run(passes)

    assert passes.ended[0] is PassKind.FULL


def test_an_abort_is_no_exception_that_a_stage_could_swallow():
    """The boundaries catch Exception; an abort must pass through them."""
    assert not issubclass(PassAborted, Exception)
    with pytest.raises(BaseException, match="why"):
        raise PassAborted("why")
