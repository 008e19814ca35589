"""Stage shape: neutral manifests, shapes, and what it costs when nothing changed."""

from __future__ import annotations

import pytest

from stoker.clock import SystemClock
from stoker.model.fleet import Bundle
from stoker.render import Limits, Renderer, shape
from stoker.render.renderer import RETRY_SECONDS
from unit.render.builders import FLEET_ID, FakeRepo, desired, service, unit

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata: {{a: b}}\n"


@pytest.fixture(scope="module")
def children():
    with Renderer(1, limits=Limits(cpu_seconds=1)) as renderer:
        yield renderer


@pytest.fixture
def renderer(children):
    children.memo.keep_only(())
    return children


def bundle(repo, *texts, name="gw", jinja=False, values=None):
    suffix = "yaml.j2" if jinja else "yaml"
    blobs = tuple(repo.add(f"bundles/{name}/{i}.{suffix}", text) for i, text in enumerate(texts))
    spec = Bundle(jinja=blobs, values=values or {}) if jinja else Bundle(manifests=blobs)
    return unit(spec, name, path=f"bundles/{name}/bundle.yaml")


def codes(shapes):
    return [(finding.unit, finding.code, str(finding.location)) for finding in shapes.findings]


def test_a_service_gets_a_shape_and_a_rev(renderer):
    web = unit(service(gpu_count=2, cpu_request="4", memory_request="8Gi"))

    shapes = shape(desired(web), FakeRepo(), renderer, FLEET_ID)

    (found,) = shapes.shapes
    assert not shapes.findings
    assert web.ref == found.ref
    assert (4000, 8 * 2**30, 2) == (
        found.shape.requests.cpu_millis,
        found.shape.requests.memory_bytes,
        found.shape.requests.device("nvidia.com/gpu"),
    )
    assert 8 == len(found.rev)


def test_a_commit_that_changes_nothing_costs_nothing(renderer):
    """design.md section 2: cached, so free in the steady state."""
    repo = FakeRepo()
    units = (unit(service()), bundle(repo, CONFIG.format("a")))
    first = shape(desired(*units), repo, renderer, FLEET_ID)
    reads = repo.reads
    renderer.close()

    second = shape(desired(*units, commit="0" * 40), repo, renderer, FLEET_ID)

    assert reads == repo.reads
    assert not renderer._pool._children
    assert all(first.neutral[ref] is second.neutral[ref] for ref in first.neutral)


def test_one_unit_that_changes_is_the_only_one_read(renderer):
    repo = FakeRepo()
    a, b = bundle(repo, CONFIG.format("a"), name="a"), bundle(repo, CONFIG.format("b"), name="b")
    first = shape(desired(a, b), repo, renderer, FLEET_ID)
    changed = bundle(repo, CONFIG.format("c"), name="b")

    second = shape(desired(a, changed), repo, renderer, FLEET_ID)

    assert first.neutral[a.ref] is second.neutral[a.ref]
    assert "c" == second.neutral[b.ref].objects[0].ref.name


def test_a_unit_that_left_is_forgotten(renderer):
    repo = FakeRepo()
    shape(desired(bundle(repo, CONFIG.format("a"))), repo, renderer, FLEET_ID)
    shape(desired(), repo, renderer, FLEET_ID)

    assert not renderer.memo.neutral


def test_bad_units_do_not_stop_good_ones(renderer):
    repo = FakeRepo()
    repo.too_large = frozenset({"bundles/huge/0.yaml"})
    units = (
        bundle(repo, CONFIG.format("a"), name="good"),
        bundle(repo, "a: b: c\n", name="torn"),
        bundle(repo, "x: {{ values.nod }}", name="typo", jinja=True, values={"node": 1}),
        bundle(repo, b"a: \xff\n", name="bytes"),
        bundle(repo, CONFIG.format("h"), name="huge"),
        bundle(repo, "# nothing\n", name="empty"),
        bundle(repo, "{{ 9 ** (9 ** 9) }}", name="bomb", jinja=True),
        unit(service(template="vllm/v9"), "lost"),
    )
    shapes = shape(desired(*units), repo, renderer, FLEET_ID)

    assert [
        ("Bundle/llm/bomb", "render-timeout", "bundles/bomb/bundle.yaml"),
        ("Bundle/llm/bytes", "invalid-encoding", "bundles/bytes/0.yaml:1:1"),
        ("Bundle/llm/empty", "nothing-rendered", "bundles/empty/bundle.yaml:1:1"),
        ("Bundle/llm/huge", "blob-too-large", "bundles/huge/bundle.yaml:1:1"),
        ("Bundle/llm/torn", "invalid-yaml", "bundles/torn/0.yaml:1:5"),
        ("Bundle/llm/typo", "template-error", "bundles/typo/0.yaml.j2:1:7"),
        ("ModelService/llm/lost", "template-not-found", "fleet/lost.yaml:1:1"),
    ] == codes(shapes)
    assert shapes.neutral[units[0].ref].objects


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "a list"),
        ("kind: ConfigMap\nmetadata: {name: a}\n", "apiVersion"),
        ("apiVersion: v1\nkind: yes\nmetadata: {name: a}\n", "kind"),
        ("apiVersion: v1\nkind: ConfigMap\n", "metadata"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 10}\n", "metadata.name"),
        ("apiVersion: v1\nkind: Job\nmetadata: {generateName: a-}\n", "generateName"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [x]}\n", "labels"),
    ],
)
def test_what_is_no_manifest_is_named(renderer, text, problem):
    repo = FakeRepo()
    shapes = shape(desired(bundle(repo, text)), repo, renderer, FLEET_ID)

    (finding,) = shapes.findings
    assert "invalid-manifest" == finding.code
    assert problem in finding.message


def test_lists_are_taken_apart_and_server_fields_dropped(renderer):
    """As kubectl does; an object exported from a cluster works."""
    repo = FakeRepo()
    text = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: x, resourceVersion: '1'}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, creationTimestamp: null}}\n"
    )
    item = bundle(repo, text)
    neutral = shape(desired(item), repo, renderer, FLEET_ID).neutral[item.ref]

    assert [{"name": "a"}, {"name": "b"}] == [o.body["metadata"] for o in neutral.objects]


def test_a_fleets_own_template_comes_before_the_shipped_one(renderer):
    repo = FakeRepo()
    own = (
        repo.add(
            "templates/vllm/v1/all.yaml.j2",
            '{% include "_pod.j2" %}\n---\n{% include "vllm/v1/service.yaml.j2" %}',
        ),
        repo.add(
            "templates/vllm/v1/_pod.j2",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
            "spec: {template: {spec: {containers: [{name: engine, image: own}]}}}\n",
        ),
    )
    web = unit(service())
    shapes = shape(desired(web, templates=own), repo, renderer, FLEET_ID)

    assert not shapes.findings
    assert "own" == shapes.shapes[0].shape.image
    assert ["Service"] == [item.ref.kind for item in shapes.neutral[web.ref].objects]


@pytest.mark.parametrize(
    ("container", "code"), [("server", "engine-container-missing"), ("engine", "")]
)
def test_exactly_one_deployment_holds_the_engine(renderer, container, code):
    repo = FakeRepo()
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
        f"spec: {{template: {{spec: {{containers: [{{name: {container}}}]}}}}}}\n"
    )
    own = (repo.add("templates/mine.yaml.j2", text),)
    shapes = shape(desired(unit(service(template="mine")), templates=own), repo, renderer, FLEET_ID)

    assert [code] * bool(code) == [finding.code for finding in shapes.findings]


def test_a_pod_template_patch_that_drops_the_engine_is_refused(renderer):
    patch = {"spec": {"containers": [{"name": "engine", "$patch": "delete"}, {"name": "x"}]}}
    shapes = shape(desired(unit(service(pod_template=patch))), FakeRepo(), renderer, FLEET_ID)

    assert ["engine-container-missing"] == [finding.code for finding in shapes.findings]


def test_a_pod_template_that_follows_the_count_is_refused(renderer):
    """Scaling would restart every pod; the count beside the template is no problem."""
    repo = FakeRepo()
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}\n"
        "spec:\n  replicas: {{{{ decision.replicas }}}}\n"
        "  template: {{spec: {{containers: [{{name: engine, args: ['{}']}}]}}}}\n"
    )
    bad = (repo.add("templates/bad.yaml.j2", text.format("{{ decision.replicas }}")),)
    good = (repo.add("templates/good.yaml.j2", text.format("{{ placement.node }}")),)
    units = (unit(service(template="bad"), "bad"), unit(service(template="good"), "good"))
    shapes = shape(desired(*units, templates=bad + good), repo, renderer, FLEET_ID)

    assert [("ModelService/llm/bad", "template-error", "templates/bad.yaml.j2")] == codes(shapes)


def test_each_bundle_sees_its_own_values_only(renderer):
    """cases.md row 19."""
    repo = FakeRepo()
    text = CONFIG.replace("a: b", "a: '{{{{ values.x | default(0) }}}}'").format("{{ unit.name }}")
    units = (
        bundle(repo, text, name="a", jinja=True, values={"x": 1}),
        bundle(repo, text, name="b", jinja=True),
    )
    shapes = shape(desired(*units), repo, renderer, FLEET_ID)

    assert ["1", "0"] == [shapes.neutral[u.ref].objects[0].body["data"]["a"] for u in units]


def test_values_never_reach_a_finding(renderer):
    """cases.md row 147, through the whole stage."""
    canary = "canary-55aa"
    repo = FakeRepo()
    text = CONFIG.format("x") + "---\n{{ values.s }}: {{ values.s }}: 1\n---\n{{ values.s.nope }}"
    item = bundle(repo, text, jinja=True, values={"s": canary})
    shapes = shape(desired(item), repo, renderer, FLEET_ID)

    assert shapes.findings
    assert canary not in repr(shapes.findings)


def test_a_finding_that_a_busy_machine_can_cause_is_looked_into_again():
    """Everything else is settled by its input and is not rendered again until that changes."""

    class Later(SystemClock):
        ahead = 0.0

        def monotonic(self):
            return super().monotonic() + self.ahead

    clock = Later()
    repo = FakeRepo()
    slow = bundle(
        repo,
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        name="slow",
        jinja=True,
    )
    torn = bundle(repo, "a: [", name="torn")
    with Renderer(1, clock=clock, limits=Limits(wall_seconds=1.0)) as renderer:
        first = shape(desired(slow, torn), repo, renderer, FLEET_ID)
        again = shape(desired(slow, torn), repo, renderer, FLEET_ID)
        clock.ahead = RETRY_SECONDS + 1
        later = shape(desired(slow, torn), repo, renderer, FLEET_ID)

    assert first.neutral[slow.ref] is again.neutral[slow.ref]
    assert first.neutral[slow.ref] is not later.neutral[slow.ref]
    assert first.neutral[torn.ref] is later.neutral[torn.ref]
