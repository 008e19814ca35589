"""What a pod asks of a node, and what makes its template a new revision."""

from __future__ import annotations

import copy
import random

import pytest

from stoker.errors import BadInput, SourceLocation
from stoker.model.fleet import Requirement
from stoker.model.shape import Resources, Toleration
from stoker.render.pod_shape import rev_of, shape_of

AT = SourceLocation("models/a.yaml", 1, 1)


def container(name="engine", *, requests=None, limits=None, **fields):
    return {
        "name": name,
        "resources": {"requests": requests or {}, "limits": limits or {}},
        **fields,
    }


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def requests_of(template):
    return shape_of(template, AT).requests


def test_requests_of_all_containers_are_summed_and_the_pod_counts():
    template = pod(
        container(requests={"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "4"}),
        container("side", requests={"cpu": "0.5", "memory": "512Mi"}),
    )

    assert Resources(2000, 2**30 + 2**29, pods=1, extended=(("nvidia.com/gpu", 4),)) == requests_of(
        template
    )


def test_a_limit_without_a_request_is_the_request():
    """The API server defaults it so."""
    template = pod(container(limits={"cpu": "2", "nvidia.com/gpu": 1}))

    assert Resources(2000, 0, pods=1, extended=(("nvidia.com/gpu", 1),)) == requests_of(template)


def test_the_larger_of_init_and_main_containers_counts():
    template = pod(
        container(requests={"cpu": "1", "memory": "4Gi"}),
        initContainers=[container("fetch", requests={"cpu": "3", "memory": "1Gi"})],
    )

    assert Resources(3000, 4 * 2**30, pods=1) == requests_of(template)


def test_a_sidecar_adds_to_main_and_to_later_init_containers():
    """KEP-753: an init container with restartPolicy Always keeps running."""
    template = pod(
        container(requests={"cpu": "1"}),
        initContainers=[
            container("before", requests={"cpu": "2"}),
            container("side", requests={"cpu": "1"}, restartPolicy="Always"),
            container("after", requests={"cpu": "3"}),
        ],
    )

    assert 4000 == requests_of(template).cpu_millis


def test_runtime_overhead_is_added():
    template = pod(container(requests={"cpu": "1"}), overhead={"cpu": "250m", "memory": "64Mi"})

    assert Resources(1250, 64 * 2**20, pods=1) == requests_of(template)


def test_tolerations_selectors_priority_and_image_are_read():
    template = pod(
        container(image="i@sha256:1"),
        tolerations=[
            {"key": "b", "operator": "Exists"},
            {"key": "a", "value": "v", "effect": "NoSchedule"},
        ],
        nodeSelector={"zone": "b", "arch": "amd64"},
        priorityClassName="high",
    )
    shape = shape_of(template, AT)

    assert (
        Toleration("a", "Equal", "v", "NoSchedule"),
        Toleration("b", "Exists"),
    ) == shape.tolerations
    assert (("arch", "amd64"), ("zone", "b")) == shape.node_selector
    assert ("high", "i@sha256:1") == (shape.priority_class, shape.image)


def affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_required_affinity_terms_are_read():
    expressions = [
        {"key": "z", "operator": "In", "values": ["b", "a"]},
        {"key": "g", "operator": "Exists"},
    ]
    template = pod(container(), affinity=affinity({"matchExpressions": expressions}))

    expected = ((Requirement("g", "Exists"), Requirement("z", "In", ("a", "b"))),)
    assert expected == shape_of(template, AT).node_affinity


@pytest.mark.parametrize(
    "term",
    [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["1"]}]},
    ],
)
def test_an_affinity_that_placement_does_not_obey_is_refused(term):
    """design.md section 3: never ignored."""
    with pytest.raises(BadInput) as caught:
        shape_of(pod(container(), affinity=affinity(term)), AT)

    assert "not-implemented-yet" == caught.value.findings[0].code


@pytest.mark.parametrize(
    "template",
    [
        pod(container(requests={"cpu": "a lot"})),
        pod(container(), tolerations=["all"]),
        pod(container(), nodeSelector=["a"]),
    ],
)
def test_a_malformed_template_is_a_finding(template):
    with pytest.raises(BadInput) as caught:
        shape_of(template, AT)

    assert "invalid-manifest" == caught.value.findings[0].code


FULL = pod(
    container(
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        volumeMounts=[{"mountPath": "/a", "name": "a"}, {"mountPath": "/b", "name": "b"}],
        ports=[{"containerPort": 1}, {"containerPort": 2}],
        args=["--a", "--b"],
        requests={"cpu": "1"},
    ),
    container("side"),
    volumes=[{"name": "a"}, {"name": "b"}],
    tolerations=[{"key": "a"}, {"key": "b"}],
    initContainers=[container("one"), container("two")],
)


def shuffled(value, draw):
    if isinstance(value, dict):
        pairs = [(key, shuffled(item, draw)) for key, item in value.items()]
        draw.shuffle(pairs)
        return dict(pairs)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        items = [shuffled(item, draw) for item in value]
        if not any(item.get("name") in {"one", "two"} for item in items):
            draw.shuffle(items)
        return items
    return value


def test_order_labels_and_annotations_make_no_new_revision():
    draw = random.Random(7)

    for _ in range(20):
        other = shuffled(copy.deepcopy(FULL), draw)
        other["metadata"] = {"labels": {"x": str(draw.random())}, "annotations": {"y": "z"}}
        assert rev_of(FULL) == rev_of(other)


def test_the_spelling_of_a_quantity_makes_no_new_revision():
    """cases.md row 47, for revs: `1000m` is `1`."""
    other = copy.deepcopy(FULL)
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000m"

    assert rev_of(FULL) == rev_of(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["containers"][0]["args"].reverse(),
        lambda spec: spec["initContainers"].reverse(),
        lambda spec: spec["containers"][0]["env"][0].update(value="3"),
        lambda spec: spec["containers"][0]["resources"]["requests"].update(cpu="2"),
        lambda spec: spec.update(terminationGracePeriodSeconds=5),
    ],
    ids=["args", "init order", "env", "cpu", "grace"],
)
def test_what_a_pod_would_notice_makes_a_new_revision(change):
    other = copy.deepcopy(FULL)
    change(other["spec"])

    assert rev_of(FULL) != rev_of(other)


def test_the_order_of_variables_counts_where_one_uses_another():
    first = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]

    assert rev_of(pod(container(env=first))) != rev_of(pod(container(env=first[::-1])))
