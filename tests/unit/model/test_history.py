"""History: what passes remember of a unit."""

from __future__ import annotations

import pytest

from builders import a_ref
from stoker.model.blame import BadNode, BadRev, Failures
from stoker.model.history import History, PoolHint, PoolWait, UnitHistory
from stoker.model.scale_history import LearnedRate, ScaleHistory
from stoker.model.update_history import UpdateHistory

ALPHA, BETA = a_ref("alpha"), a_ref("beta")


def test_records_read_back_as_the_same_history():
    history = History(((ALPHA, UnitHistory(wanted=3)), (BETA, UnitHistory(2, 1_000))))

    assert history == History.from_records(history.records())


def test_a_unit_without_an_entry_has_an_empty_history():
    history = History(((ALPHA, UnitHistory(wanted=3)),))

    assert UnitHistory(wanted=3) == history.of(ALPHA)
    assert UnitHistory() == history.of(BETA)


def test_records_are_sorted_whatever_the_order_of_entries():
    entries = ((BETA, UnitHistory(1)), (ALPHA, UnitHistory(2)))

    assert (ALPHA, BETA) == tuple(ref for ref, _ in History(entries).records())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"wanted":"3"}', '{"wanted":true}', '{"since":1}'],
    ids=["empty", "cut", "list", "number", "text", "boolean", "unknown field"],
)
def test_an_unreadable_entry_counts_as_lost(text):
    """Lost history: every window starts now, nothing shrinks; never a crash."""
    assert History() == History.from_records([(ALPHA, text)])


OLD_RECORDS = {
    "counts": ('{"held_since_ms":5,"wanted":3}', UnitHistory(3, 5)),
    "updates": (
        (
            '{"update":{"blocked_commit":"c2","blocked_rev":"r2","blocked_why":"CrashLoopBackOff",'
            '"good_commit":"c1","good_rev":"r1","tried_rev":"r2","tried_since_ms":7},"wanted":3}'
        ),
        UnitHistory(3, update=UpdateHistory("r1", "c1", "r2", "c2", "CrashLoopBackOff", "r2", 7)),
    ),
    "calm": ('{"calm_until_ms":-1,"wanted":3}', UnitHistory(3, calm_until_ms=-1)),
    "pool waits": (
        '{"pool_waits":[{"failed_ms":1,"failures":2,"pod":"p","pool":"l4","until_ms":9}]}',
        UnitHistory(pool_waits=(PoolWait("l4", 2, 1, 9, "p"),)),
    ),
    "failures": (
        (
            '{"failures":{"bad_rev":{"nodes":["n1","n2"],"reason":"OOMKilled","rev":"r2",'
            '"since_ms":4},"in_a_row":2,"last_ms":4,"nodes":[{"at_ms":4,"made_ms":3,'
            '"reason":"OOMKilled","rev":"r2","strikes":1,"uid":"u1","until_ms":9}],"rev":"r2"}}'
        ),
        UnitHistory(
            failures=Failures(
                (BadNode("u1", 3, 4, 1, 9, "OOMKilled", "r2"),),
                BadRev("r2", 4, "OOMKilled", ("n1", "n2")),
                "r2",
                2,
                4,
            )
        ),
    ),
    "cooling": (
        '{"cooling":[{"pool":"spot","until_ms":9}]}',
        UnitHistory(cooling=(PoolHint("spot", 9),)),
    ),
    "scale": (
        (
            '{"scale":{"desired":3,"gaps_ms":[60000],"idle_since_ms":5,"rates":[{"accelerator":"L4",'
            '"at_ms":7,"decode_tokens_per_second":200.5,"prefill_tokens_per_second":1000.0,'
            '"rev":"r1","saturated":true}],"recommended":[[3,5],[4,2]],"served":true},"wanted":5}'
        ),
        UnitHistory(
            5,
            scale=ScaleHistory(
                ((3, 5), (4, 2)),
                3,
                idle_since_ms=5,
                served=True,
                rates=(LearnedRate("r1", "L4", 1000.0, 200.5, True, 7),),
                gaps_ms=(60_000,),
            ),
        ),
    ),
}
"""A record of each form that a version has written, letter by letter, and what it says."""


@pytest.mark.parametrize("form", OLD_RECORDS)
def test_a_record_of_an_earlier_version_is_still_read(form):
    """An upgrade that lost them would forget which nodes and revs are to blame."""
    text, known = OLD_RECORDS[form]

    assert known == History.from_records([(ALPHA, text)]).of(ALPHA)
    assert ((ALPHA, text),) == History(((ALPHA, known),)).records(), "and written the same way"


@pytest.mark.parametrize(
    "scale",
    [
        "7",
        "[]",
        '{"served":1}',
        '{"low_since_ms":"now"}',
        '{"low_since_ms":-1}',
        '{"recommended":[[1]]}',
        '{"recommended":[[1,2.5]]}',
        '{"recommended":[1]}',
        '{"gaps_ms":[true]}',
        '{"rates":[[]]}',
        '{"rates":{}}',
        '{"rates":[{"rev":"r1"}]}',
        (
            '{"rates":[{"accelerator":"","at_ms":1,"decode_tokens_per_second":NaN,'
            '"prefill_tokens_per_second":1.0,"rev":"r1","saturated":true}]}'
        ),
        (
            '{"rates":[{"accelerator":"","at_ms":1,"decode_tokens_per_second":1,'
            '"prefill_tokens_per_second":1.0,"rev":7,"saturated":true}]}'
        ),
        '{"other":1}',
    ],
)
def test_an_unreadable_memory_of_scaling_loses_the_entry(scale):
    """Then every window starts now, and nothing shrinks."""
    assert History() == History.from_records([(ALPHA, f'{{"scale":{scale},"wanted":3}}')])


def test_previews_know_the_counts_that_follow_load():
    """Else they would hold what stands, copies of a move included; other counts they find out."""
    follows = UnitHistory(3, scale=ScaleHistory(served=True))
    history = History(((ALPHA, UnitHistory(2, held_since_ms=7)), (BETA, follows)))

    assert ((BETA, follows),) == history.of_updates().entries
