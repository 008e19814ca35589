"""Random histories of writes: both servers answer alike and keep alike objects, step by step.

What the rows of ssa-facts.md don't name shows up here. 2026-11-29: 1,800 histories over 11
kinds agreed; a sample of them runs each time.
"""

from __future__ import annotations

from random import Random

import pytest

from contract.histories import MAKERS, MANAGERS, SCALED, WAYS, WEIGHTS, comparable, written

HISTORIES = 12


@pytest.mark.live
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_random_histories_agree(pair, kind):
    random = Random(kind)  # noqa: S311 - the same histories every time
    real, memory = pair
    for _ in range(HISTORIES):
        steps = []
        for _ in range(random.randint(3, 8)):
            way = random.choices(WAYS, WEIGHTS)[0]
            if (way == "strategic" and kind == "Gizmo") or (
                way in {"scale", "status"} and kind not in SCALED
            ):
                continue
            by, fields = random.choice(MANAGERS), MAKERS[kind](random)
            count = random.choice([0, 1, 2, 5])
            steps.append((way, by, count if way in {"scale", "status"} else fields))
            answers = [
                comparable(written(api, kind, way, by, fields, count)) for api in (real, memory)
            ]
            assert answers[0] == answers[1], steps
            kept = [comparable(api.get(kind, "o")) for api in (real, memory)]
            assert kept[0] == kept[1], steps
        for api in (real, memory):
            api.patch(kind, "o", {"metadata": {"finalizers": None}})
            api.delete(kind, "o", {"gracePeriodSeconds": 0})
