"""Jobs that fetch ahead, as decisions see them: ours alone, and never one that is leaving."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.model.fleet import ModelService
from stoker.model.prefetch import LivePrefetch, PrefetchState
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.observe.keys import WatchKey
from stoker.observe.prefetches import PrefetchFacts, prefetch_facts, prefetches_from
from stoker.observe.projection import entry_from
from unit.observe.observe_builders import FLEET, LLAMA, NOW

JOBS = WatchKey("batch", "Job", "v1", "llm")


def a_job(*conditions, model="hf://a/b@1234", owner=LLAMA, **metadata):
    ref = ObjectRef("batch", "Job", "llm", "llama-prefetch-1")
    annotations = {names.NODE: "n1", names.NODE_UID: "u1", names.PREFETCH_MODEL: model}
    annotations[names.OWNER] = names.owner_mark(FLEET, owner, ref)
    body: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "uid": "job-uid",
            "creationTimestamp": rfc3339(NOW - 9_000),
            "labels": {names.PREFETCH_LABEL: "llama"},
            "annotations": annotations,
            **metadata,
        },
        "spec": {"template": {"spec": {"containers": [{"name": "fetch", "image": "reg/e:1"}]}}},
        "status": {"conditions": list(conditions)},
    }
    return body


def seen(raw):
    facts = entry_from(raw, JOBS, FLEET).facts
    return facts.prefetch if isinstance(facts, PrefetchFacts) else None


def ended(kind, status="True"):
    return {"type": kind, "status": status, "lastTransitionTime": rfc3339(NOW - 2_000)}


@pytest.mark.parametrize(
    ("conditions", "state", "age_ms"),
    [
        ([], PrefetchState.RUNNING, 9_000),
        ([ended("Complete", "False")], PrefetchState.RUNNING, 9_000),
        ([ended("Suspended")], PrefetchState.RUNNING, 9_000),
        ([ended("Complete")], PrefetchState.DONE, 2_000),
        ([ended("SuccessCriteriaMet")], PrefetchState.DONE, 2_000),
        ([ended("Failed")], PrefetchState.FAILED, 2_000),
    ],
)
def test_a_job_is_done_only_when_it_says_so(conditions, state, age_ms):
    expected = LivePrefetch(
        LLAMA, "llama-prefetch-1", "job-uid", "n1", "u1", "reg/e:1",
        model_uri="hf://a/b", model_revision="1234", state=state, since_ms=NOW - age_ms,
    )  # fmt: skip

    assert expected == seen(a_job(*conditions))


def test_a_job_of_the_image_alone_fetches_no_weights():
    found = seen(a_job(model=""))

    assert found is not None
    assert found.weights is None


def test_jobs_of_others_and_those_that_leave_are_not_seen():
    assert seen(a_job(labels={})) is None, "a Bundle's own Job"
    assert seen(a_job(deletionTimestamp=rfc3339(NOW))) is None
    assert seen(a_job(annotations={names.NODE: "n1"})) is None, "no mark of ours"
    assert prefetch_facts(a_job(), type(LLAMA)("Bundle", "llm", "llama")) is None


def test_two_caches_of_one_kind_show_a_job_once():
    facts = entry_from(a_job(), JOBS, FLEET).facts

    assert 1 == len(prefetches_from([facts, facts, None]))


def test_a_namespace_is_watched_for_jobs_only_where_something_is_fetched_ahead():
    from dataclasses import replace

    from builders import a_desired, a_unit
    from stoker.model.cache import Cache
    from stoker.observe.prefetches import job_keys

    quiet, warm = a_unit("a", namespace="one"), a_unit("b", namespace="two")
    assert isinstance(warm.spec, ModelService)
    warm = replace(warm, spec=replace(warm.spec, cache=Cache(prefetch_nodes=1)))

    assert (WatchKey("batch", "Job", "v1", "two"),) == job_keys(a_desired(quiet, warm))
