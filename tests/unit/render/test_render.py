"""Stage render: decisions baked in, one set per unit, the same object while nothing changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.model.codec import digest
from stoker.model.fleet import Bundle, PlacementMode
from stoker.model.plan import (
    Attempt,
    CountReason,
    Plan,
    Readiness,
    Retirement,
    RetireStage,
    WarmthClass,
)
from stoker.model.refs import ObjectRef
from stoker.objects import kinds, names
from stoker.render import Limits, Renderer, render, shape
from unit.render.builders import (
    FLEET_ID,
    POOL,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

WEB = unit(service(), "web")

MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: gw, namespace: edge}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gw}
---
apiVersion: v1
kind: Namespace
metadata: {name: edge, namespace: ""}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gw}
---
apiVersion: example.com/v1
kind: Gate
metadata: {name: g}
---
apiVersion: example.com/v1
kind: Wall
metadata: {name: w}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Gate}}
"""


@pytest.fixture(scope="module")
def children():
    with Renderer(1, limits=Limits(cpu_seconds=5)) as renderer:
        yield renderer


@pytest.fixture
def renderer(children):
    children.memo.keep_only(())
    return children


class Scene:
    """One fleet rendered twice over: shapes first, then sets for a plan."""

    def __init__(self, renderer, *units, repo=None, **fleet):
        self.renderer = renderer
        self.repo = repo or FakeRepo()
        self.desired = desired(*units, **fleet)
        self.shapes = shape(self.desired, self.repo, renderer, FLEET_ID)
        assert not self.shapes.findings

    def place(self, unit, node="l4-od-1", **changes):
        return placement(self.shapes, unit.ref, node, **changes)

    def render(self, *decisions):
        return render(
            self.desired, self.shapes, plan(*decisions), self.repo, self.renderer, FLEET_ID
        )


def bundle(repo, text, name="gw"):
    return unit(
        Bundle(manifests=(repo.add(f"b/{name}.yaml", text),)), name, path=f"b/{name}/bundle.yaml"
    )


def kind(item, name):
    return [manifest for manifest in item.manifests if manifest.ref.kind == name]


def test_a_service_becomes_one_deployment_per_placement(renderer):
    scene = Scene(renderer, WEB)
    one, two = scene.place(WEB), scene.place(WEB, "l4-od-2", count=2)

    (found,) = scene.render(decision(WEB.ref, one, two))

    assert found.complete
    deployments = kind(found, "Deployment")
    assert {one.name: 1, two.name: 2} == {
        m.ref.name: m.body["spec"]["replicas"] for m in deployments
    }
    assert all(manifest.frozen_template for manifest in deployments)
    assert ["ServiceAccount", "PodDisruptionBudget", "Service", "Deployment", "Deployment"] == [
        manifest.ref.kind for manifest in found.manifests
    ]


def test_every_object_carries_its_own_owner_mark_and_digest(renderer):
    scene = Scene(renderer, WEB)
    (found,) = scene.render(decision(WEB.ref, scene.place(WEB)))

    for manifest in found.manifests:
        mark = manifest.body["metadata"]["annotations"][names.OWNER]
        assert names.owner_mark(FLEET_ID, WEB.ref, manifest.ref) == mark
        assert WEB.ref == names.unit_of_mark(mark, FLEET_ID, manifest.ref)
        assert digest(manifest.body) == manifest.digest
        assert WEB.location == manifest.source
        assert "llm" == manifest.body["metadata"]["namespace"]
        assert "prod-eu" == manifest.body["metadata"]["labels"][names.FLEET_LABEL]


@pytest.mark.parametrize(
    ("replicas", "floor", "away"), [(3, 2, 1), (4, 2, 2), (1, 1, 0), (0, 0, 0), (1, 2, 0)]
)
def test_the_budget_allows_what_is_above_the_floor(renderer, replicas, floor, away):
    """ux.md: floor 2, replicas 3 -> 4 makes maxUnavailable 1 -> 2."""
    scene = Scene(renderer, WEB)
    (found,) = scene.render(decision(WEB.ref, scene.place(WEB), replicas=replicas, floor=floor))
    (budget,) = kind(found, "PodDisruptionBudget")

    assert away == budget.body["spec"]["maxUnavailable"]
    assert "AlwaysAllow" == budget.body["spec"]["unhealthyPodEvictionPolicy"]
    assert {"matchLabels": {names.SERVICE_LABEL: "web"}} == budget.body["spec"]["selector"]


def test_the_service_selects_pods_with_traffic_only(renderer):
    scene = Scene(renderer, WEB)
    (found,) = scene.render(decision(WEB.ref, scene.place(WEB)))
    (service_object,) = kind(found, "Service")
    (deployment,) = kind(found, "Deployment")

    selector = service_object.body["spec"]["selector"]
    assert {names.SERVICE_LABEL: "web", names.TRAFFIC_LABEL: "true"} == selector
    labels = deployment.body["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items()
    assert names.TRAFFIC_LABEL not in deployment.body["spec"]["selector"]["matchLabels"]


def test_an_unknown_count_leaves_what_depends_on_it_alone(renderer):
    """Unknown is not zero: the budget of a service whose count is unknown stays."""
    scene = Scene(renderer, WEB)
    (found,) = scene.render(decision(WEB.ref, scene.place(WEB), known=False))

    assert not kind(found, "PodDisruptionBudget")
    assert (ObjectRef("policy", "PodDisruptionBudget", "llm", "web"),) == found.kept
    assert kind(found, "Deployment")


def test_what_leaves_and_what_is_older_is_kept(renderer):
    scene = Scene(renderer, WEB)
    leaving = Retirement("web-old", "uid", RetireStage.DRAIN, "moved")
    older = scene.place(WEB, "l4-od-3", name="web-older", rev="00000000")
    (found,) = scene.render(
        decision(WEB.ref, scene.place(WEB), older, retirements=(leaving,), untouched=("web-alone",))
    )

    assert ["web-alone", "web-old", "web-older"] == [ref.name for ref in found.kept]
    assert {("apps", "Deployment", "llm")} == {(r.group, r.kind, r.namespace) for r in found.kept}
    assert (leaving,) == found.retirements
    assert "web-older" not in {manifest.ref.name for manifest in found.manifests}


def test_mode_scheduler_is_one_deployment_of_the_services_name(renderer):
    web = unit(service(placement_mode=PlacementMode.SCHEDULER), "web")
    scene = Scene(renderer, web)
    one = scene.place(web, "", count=3)
    (found,) = scene.render(decision(web.ref, one, mode=PlacementMode.SCHEDULER))
    (deployment,) = kind(found, "Deployment")

    assert ("web", 3) == (deployment.ref.name, deployment.body["spec"]["replicas"])


def test_an_undecided_service_is_incomplete_and_says_so(renderer):
    (found,) = Scene(renderer, WEB).render()

    assert not found.complete
    assert not found.manifests
    assert ["not-decided"] == [finding.code for finding in found.findings]


def test_a_pool_that_the_fleet_lacks_is_an_error_not_any_node(renderer):
    scene = Scene(renderer, WEB, pools=(replace(POOL, name="other"),))
    (found,) = scene.render(decision(WEB.ref, scene.place(WEB)))

    assert ["pool-not-found"] == [finding.code for finding in found.findings]
    assert not found.complete


def test_a_placeholder_that_a_template_changed_is_an_error(renderer):
    repo = FakeRepo()
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
        "spec: {template: {spec: {containers: [{name: engine, args: ['{{ placement.node | upper }}']}]}}}\n"
    )
    web = unit(service(template="mine"), "web")
    scene = Scene(renderer, web, repo=repo, templates=(repo.add("templates/mine.yaml.j2", text),))
    (found,) = scene.render(decision(web.ref, scene.place(web)))

    assert ["template-error"] == [finding.code for finding in found.findings]


def test_bundle_objects_get_namespace_and_owner_mark_and_nothing_else(renderer):
    repo = FakeRepo()
    gateway = bundle(repo, MANIFESTS)
    (found,) = Scene(renderer, gateway, repo=repo).render()

    namespaces = {manifest.ref.kind: manifest.ref.namespace for manifest in found.manifests}
    assert {
        "Deployment": "edge",
        "ConfigMap": "llm",
        "Namespace": "",
        "ClusterRole": "",
        "CustomResourceDefinition": "",
        "Gate": "",
        "Wall": "llm",
    } == namespaces
    for manifest in found.manifests:
        metadata = manifest.body["metadata"]
        assert {names.OWNER} == set(metadata["annotations"])
        assert "labels" not in metadata
        assert manifest.ref.namespace == metadata.get("namespace", "")
        assert not manifest.frozen_template


def test_bundle_objects_name_the_line_of_their_document(renderer):
    repo = FakeRepo()
    (found,) = Scene(renderer, bundle(repo, MANIFESTS), repo=repo).render()

    lines = {manifest.ref.kind: str(manifest.source) for manifest in found.manifests}
    assert ("b/gw.yaml:1:1", "b/gw.yaml:5:1") == (lines["Deployment"], lines["ConfigMap"])


def test_manifests_come_in_apply_order(renderer):
    repo = FakeRepo()
    (found,) = Scene(renderer, bundle(repo, MANIFESTS), repo=repo).render()
    refs = [manifest.ref for manifest in found.manifests]

    assert sorted(refs, key=kinds.apply_order) == refs
    assert ["Namespace", "CustomResourceDefinition"] == [ref.kind for ref in refs[:2]]


def test_the_same_set_is_given_again_while_nothing_changes(renderer):
    """The memo of diff looks at identity; a new readiness or reason is no change."""
    repo = FakeRepo()
    scene = Scene(renderer, WEB, bundle(repo, MANIFESTS), repo=repo)
    one = scene.place(WEB)
    warm = replace(one, readiness=Readiness(WarmthClass.WARM, 1, 2), exists=True)

    first = scene.render(decision(WEB.ref, one))
    second = scene.render(replace(decision(WEB.ref, warm), attempts=(Attempt("n", "p", "kept"),)))
    third = scene.render(decision(WEB.ref, one, replicas=5))

    assert all(a is b for a, b in zip(first, second, strict=True))
    assert first[0] is third[0]
    assert first[1] is not third[1]


def templates_of(sets):
    return [
        json.dumps(manifest.body["spec"]["template"])
        for item in sets
        for manifest in item.manifests
        if manifest.ref.kind == "Deployment"
    ]


readiness = st.builds(
    Readiness,
    st.sampled_from(WarmthClass),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.booleans(),
    st.text(max_size=8),
)


@given(
    learned=readiness,
    now_ms=st.integers(0, 2**41),
    ready=st.integers(0, 9),
    warming=st.integers(0, 9),
    count=st.integers(0, 9),
    exists=st.booleans(),
    history=st.text(max_size=20),
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_nothing_learned_at_run_time_reaches_a_pod_template(
    renderer, learned, now_ms, ready, warming, count, exists, history
):
    """design.md section 4: a restart because of what was measured is a restart too many."""
    scene = Scene(renderer, WEB)
    one = scene.place(WEB)
    expected = templates_of(scene.render(decision(WEB.ref, one)))
    other = replace(
        decision(WEB.ref, replace(one, readiness=learned, exists=exists, count=count)),
        ready=ready,
        warming=warming,
        count=CountReason("HorizontalPodAutoscaler/web", history),
        attempts=(Attempt("n", "p", "rejected", "full", learned),),
        updating=exists,
    )
    planned = Plan(now_ms, (other,), now_ms + 1, ((WEB.ref, history),))
    sets = render(scene.desired, scene.shapes, planned, scene.repo, renderer, FLEET_ID)

    assert expected == templates_of(sets)


SEEDED = """
import json, sys
from stoker.render import Renderer, render, shape
from unit.render.builders import *
from unit.render.test_render import MANIFESTS, bundle
repo = FakeRepo()
web, gateway = unit(service(), "web"), bundle(repo, MANIFESTS)
text = "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: j}\\ndata: {a: {{ values | dictsort | to_json | quote }}}\\n"
jinja = unit(Bundle(jinja=(repo.add("j.yaml.j2", text),), values={"b": 1, "a": [2]}), "j")
with Renderer(2) as renderer:
    fleet = desired(web, gateway, jinja)
    shapes = shape(fleet, repo, renderer, FLEET_ID)
    answer = plan(decision(web.ref, placement(shapes, web.ref), replicas=2))
    sets = render(fleet, shapes, answer, repo, renderer, FLEET_ID)
sys.stdout.write(json.dumps([[m.digest for m in item.manifests] for item in sets]))
"""


def test_bytes_do_not_depend_on_the_hash_seed_or_the_environment(tmp_path):
    """Promise R4: one commit, one digest."""
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests), str(tests.parent / "controller")])
    answers = set()
    for seed, zone in (("1", "UTC"), ("4242", "Asia/Tokyo")):
        run = subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            cwd=tmp_path,
            capture_output=True,
            check=True,
            timeout=60,
        )
        answers.add(run.stdout)

    assert 1 == len(answers)
    assert [7, 1, 4] == [len(digests) for digests in json.loads(answers.pop())]
