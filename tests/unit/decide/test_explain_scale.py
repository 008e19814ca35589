"""What `stoker explain` says of a count that follows load."""

from __future__ import annotations

from stoker.decide.explain_scale import scale_lines
from stoker.model.scale_verdict import Said, ScaleVerdict
from stoker.model.scaling import Algorithm, Scaling

SPEC = Scaling(1, 8, interval_ms=5_000)


def test_every_rule_has_its_row_and_what_keeps_the_count_its_line():
    verdict = ScaleVerdict(
        Algorithm.CAPACITY,
        4,
        6,
        "load",
        "8/s",
        unmeasurable=(("metric kv", "no answer"),),
        limited="maxStep 2",
        held="2 requests wait",
        said=(Said("load", 6, "8/s over 2/s"), Said("metric kv", None, "no answer")),
        changes=("a queue of 3",),
    )

    assert [
        "       Capacity, 1 to 8, looks every 5s, on the way to 6",
        "       limited: maxStep 2",
        "       held: 2 requests wait",
        "       not measured: metric kv: no answer",
        "  RULE       COUNT  WHY",
        "  load       6      8/s over 2/s",
        "  metric kv  -      no answer",
        "       would change it: a queue of 3",
    ] == list(scale_lines(SPEC, verdict))


def test_a_plain_count_has_one_line():
    verdict = ScaleVerdict(Algorithm.RATIO, 1, 1, "first", "nothing stands yet")

    assert ["       Ratio, 1 to 8, looks every 5s"] == list(scale_lines(SPEC, verdict))
