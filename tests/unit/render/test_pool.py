"""Children that crash, hang, grow or flood cost one finding on one unit."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.render.jail import ON
from stoker.render.pool import Job, Limits, Pool
from stoker.render.sources import Source, source_set
from stoker.render.worker import answer, source_sets

LIMITS = Limits(wall_seconds=3.0, cpu_seconds=1, output_bytes=1 << 20)


@pytest.fixture(scope="module")
def pool():
    pool = Pool(2, SystemClock(), LIMITS)
    yield pool
    pool.close()


def job(text, data=None, *, name="t.yaml.j2", kind="jinja"):
    sources = source_set({name: Source(name + text, name, text)})
    return Job(name, sources, data=data or {}, **{kind: (name,)})


HOSTILE = {
    "memory": ("{{ 'a' * 10 ** 9 }}", "render-too-large"),
    "padding": ("{{ 'a' | center(10 ** 9) }}", "render-too-large"),
    "format padding": ("{{ '%1000000000d' | format(1) }}", "render-too-large"),
    "loops": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "render-timeout",
    ),
    "one long operation in C": ("{{ 9 ** (9 ** 9) }}", "render-timeout"),
    "output": ("{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", "render-too-large"),
    "macro recursion": ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "template-error"),
    "include cycle": ('{% include "t.yaml.j2" %}', "template-error"),
    "deep expression": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "template-error"),
    "deep YAML": ("[" * 30_000, "invalid-yaml"),
    "billion laughs": (
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "\n".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)),
        "invalid-yaml",
    ),
    "escape": ("{{ ''.__class__.__mro__ }}", "template-error"),
}


def test_one_hostile_unit_never_stops_another(pool):
    """b.J rows 79 to 82 and promise R2, all at once among a hundred harmless units.

    reliability-security c.1 row 9.
    """
    jobs = [job(f"a: {number}\n", name=f"u{number}.yaml.j2") for number in range(100)]
    places = {}
    for number, (name, (text, _)) in enumerate(HOSTILE.items()):
        places[name] = 7 * number
        jobs[7 * number] = job(text)

    results = pool.run(jobs)

    assert {name: code for name, (_, code) in HOSTILE.items()} == {
        name: results[place].findings[0].code for name, place in places.items()
    }
    for number, result in enumerate(results):
        if number not in places.values():
            assert ((f"u{number}.yaml.j2", 0, {"a": number}),) == result.documents
    assert ((("t.yaml.j2", 0, {"a": 1}),)) == pool.run([job("a: 1")])[0].documents


def test_a_fresh_child_gives_the_same_bytes_as_its_parent(pool):
    """cases.md row 23: state that only the parent had was missing in the worker."""
    text = "{% for k, v in values | dictsort %}{{ k }}: {{ v }}\n{% endfor %}u: {{ unit.name }}\n"
    data = {"values": {"b": [1, "é"], "a": {"x": None}}, "unit": {"name": "web"}}
    here = job(text, data)
    request = {
        "texts": {source.oid: source.text for source in here.sources.named.values()},
        "sets": {here.sources.key: {n: (s.oid, s.path) for n, s in here.sources.named.items()}},
    }

    (result,) = pool.run([here])
    expected = answer(here.item(), source_sets(request)[here.sources.key], 1 << 20)

    assert json.dumps(expected["documents"]) == json.dumps(result.documents)


def test_a_large_plain_file_is_one_finding(pool):
    (result,) = pool.run([job("a: " + "x" * (3 << 20), kind="yaml")])

    assert ["render-too-large"] == [finding.code for finding in result.findings]


def test_results_keep_the_order_of_the_jobs(pool):
    jobs = [job(f"a: {number}", name=f"f{number}.yaml", kind="yaml") for number in range(300)]

    assert list(range(300)) == [result.documents[0][2]["a"] for result in pool.run(jobs)]


def test_an_interrupt_leaves_no_answer_behind_for_the_next_run(pool):
    class Notice(Exception):
        pass

    calls = []

    def checkpoint():
        calls.append(1)
        if len(calls) > 1:
            raise Notice

    jobs = [job(f"a: {number}", name=f"f{number}.yaml", kind="yaml") for number in range(300)]
    with pytest.raises(Notice):
        pool.run(jobs, checkpoint)

    assert 7 == pool.run([job("a: 7")])[0].documents[0][2]["a"]


def test_children_are_replaced_after_so_many_jobs():
    pool = Pool(1, SystemClock(), Limits(jobs_per_child=1))
    try:
        for number in range(3):
            assert number == pool.run([job(f"a: {number}")])[0].documents[0][2]["a"]
    finally:
        pool.close()


def test_a_hanging_child_is_killed_at_the_wall_limit():
    pool = Pool(1, SystemClock(), Limits(wall_seconds=1.0, cpu_seconds=100))
    try:
        bomb = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
        results = pool.run([job("a: 1"), job(bomb), job("a: 2")])
    finally:
        pool.close()

    assert [[], ["render-timeout"], []] == [[f.code for f in r.findings] for r in results]


def test_every_part_of_the_jail_holds_where_the_kernel_has_it(pool):
    pool.run([job("a: 1")])

    assert {"landlock", "no-new-privileges", "resource-limits", "seccomp"} == set(pool.jail)
    assert pool.jail["resource-limits"] == ON


def test_a_required_jail_that_is_incomplete_stops_rendering():
    pool = Pool(1, SystemClock(), require_jail=True)
    try:
        pool.run([job("a: 1")])
        (child,) = pool._children
        with pytest.raises(Stalled, match="landlock") as caught:
            pool._greet(child, {"landlock": "ENOSYS", "seccomp": ON})
    finally:
        pool.close()

    assert "jail-unavailable" == caught.value.code
    assert child.process.poll() is not None


def test_children_that_cannot_start_stop_rendering_with_a_reason():
    """No job can be blamed for a machine on which nothing starts."""
    pool = Pool(1, SystemClock(), Limits(start_seconds=0.0))
    try:
        with pytest.raises(Stalled, match="do not start") as caught:
            pool.run([job("a: 1")])
    finally:
        pool.close()

    assert "render-unavailable" == caught.value.code
    assert not pool._children


def test_a_child_that_was_started_ahead_takes_the_first_job():
    """Its start overlaps with reading the cluster; nobody waits for it before there is work."""
    pool = Pool(2, SystemClock(), LIMITS)
    try:
        pool.warm_up()
        pool.warm_up()
        ahead = [child.process.pid for child in pool._children]
        (result,) = pool.run([job("a: 1\n")])

        assert 1 == len(ahead)
        assert ahead == [child.process.pid for child in pool._children]
        assert {"a": 1} == result.documents[0][2]
    finally:
        pool.close()


def test_a_pool_that_is_forgotten_leaves_no_child():
    """Nor does one in a circle, which only the collector finds."""
    for circular in (False, True):
        forgotten = Pool(1, SystemClock(), LIMITS)
        forgotten.warm_up()
        pid = forgotten._children[0].process.pid
        if circular:
            forgotten.itself = forgotten  # type: ignore[attr-defined]
        assert Path(f"/proc/{pid}").exists()

        del forgotten
        gc.collect()

        assert not Path(f"/proc/{pid}").exists()
