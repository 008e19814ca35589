from dataclasses import replace
from typing import Any

import pytest

from stoker.errors import StokerError, Unreachable
from stoker.kube.errors import api_error
from stoker.model.plan import CountReason, Readiness, WarmthClass
from stoker.model.ports import ListPage
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.report.inputs import Report, StatusWritten
from stoker.report.mirrors_write import (
    AT_ONCE,
    LOOK_EVERY_SECONDS,
    LOOK_FOR_KINDS_SECONDS,
    MirrorWriter,
)
from stoker.report.report import report
from stoker.sim.clock import VirtualClock
from unit.report.report_builders import (
    GATEWAY,
    NOW,
    QWEN,
    Live,
    bundle,
    change_set,
    changes_of,
    decision,
    desired,
    inputs,
    live_object,
    next_pass,
    plan,
    ready_on,
    service,
    snapshot,
)

MANAGER = "stoker-c0ffee01"


def made(**changes: Any) -> Report:
    return report(inputs(**changes))


def mirror(result: Report, kind: str = "ModelService"):
    return next(m for m in result.mirrors if m.kind == kind)


def test_git_has_one_mirror_a_service_and_one_for_the_fleet():
    both = made(
        desired=desired(service(), bundle()),
        changes=change_set(changes_of(QWEN), changes_of(GATEWAY)),
        live=Live(live_object("qwen-7b"), live_object("gateway")),
    )

    assert [("Fleet", "stoker-system", "prod-eu"), ("ModelService", "llm", "qwen-7b")] == [
        (m.kind, m.namespace, m.name) for m in both.mirrors
    ]


def test_what_autoscalers_need_is_always_there():
    """Without spec.replicas or a selector string an HPA fails [tried]."""
    shown = mirror(made(plan=plan(decision(want=0, ready=0)), snapshot=snapshot()))

    assert 0 == shown.manifest["spec"]["replicas"]
    assert "stoker.dev/service=qwen-7b" == shown.status["status"]["selector"]


def test_of_groups_an_autoscaler_counts_leaders():
    """One pod a replica: workers would be taken for replicas that are not there."""
    unit = service()
    unit = replace(unit, spec=replace(unit.spec, nodes=2))

    shown = mirror(made(desired=desired(unit)))

    selector = "stoker.dev/service=qwen-7b,leaderworkerset.sigs.k8s.io/worker-index=0"
    assert selector == shown.status["status"]["selector"]


def adopting(**changes: Any) -> Report:
    """A service that took over a Deployment of the name `old`."""
    unit = service()
    unit = replace(unit, spec=replace(unit.spec, adopt="old"))
    return made(desired=desired(unit), **changes)


def test_an_adopted_deployment_keeps_its_own_selector():
    """An autoscaler counts the pods that stand, which bear no label of ours until the next rev."""
    body = {**live_object("old"), "kind": "Deployment"}
    terms = [{"key": "tier", "operator": "In", "values": ["b", "a"]}]
    body["spec"] = {"selector": {"matchLabels": {"app": "vllm"}, "matchExpressions": terms}}

    shown = mirror(adopting(live=Live(body)))
    assert "app=vllm,tier in (a,b)" == shown.status["status"]["selector"]


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(Live(), id="absent"),
        pytest.param(
            Live(unknown=(ObjectRef("apps", "Deployment", "llm", "old", "v1"),)), id="unknown"
        ),
    ],
)
def test_until_it_is_seen_our_label_selects(live):
    assert "stoker.dev/service=qwen-7b" == mirror(adopting(live=live)).status["status"]["selector"]


def test_surge_copies_are_left_out_and_warming_replicas_shown_beside():
    """Seed 000: a scaler that cannot see warming replicas asks for them again."""
    status = mirror(
        made(plan=plan(decision(ready=3, warming=2)), snapshot=snapshot(ready_on(QWEN, 3)))
    ).status["status"]

    assert (4, 3, 2) == (status["replicas"], status["readyReplicas"], status["warmingReplicas"])


def starting_in(result: Report) -> list[tuple[str, int]]:
    shown = mirror(result).status["status"].get("starting", ())
    return [(entry["node"], entry["seconds"]) for entry in shown]


def estimated(*, ready: int, seconds: int) -> dict[str, Any]:
    """Four replicas of which so many are Ready, and what the last is expected to take now."""
    found = decision(ready=ready, warming=4 - ready)
    readiness = Readiness(WarmthClass.COLD, seconds * 1000, 2 * seconds * 1000)
    *others, last = found.placements
    placements = (*others, replace(last, readiness=readiness if ready < 4 else None))
    found = replace(found, placements=placements)
    return {"plan": plan(found), "snapshot": snapshot(ready_on(QWEN, ready))}


def test_the_first_estimate_of_a_start_is_shown_until_it_is_over():
    """A later one is of what is left to load; whoever waits wants to know of how much."""
    first = made(**estimated(ready=3, seconds=250))
    second = report(next_pass(inputs(), first.memory, **estimated(ready=3, seconds=90)))
    third = report(next_pass(inputs(), second.memory, **estimated(ready=4, seconds=90)))

    assert [[("l4-od-4", 250)], [("l4-od-4", 250)], []] == [
        starting_in(result) for result in (first, second, third)
    ]
    assert mirror(second) is mirror(first)
    assert first.substance == second.substance


def test_an_unknown_count_is_not_written():
    shown = mirror(made(plan=plan()))

    assert not shown.count_known
    assert "replicas" not in shown.manifest["spec"]


@pytest.mark.parametrize("kind", ["Fleet", "ModelService"])
def test_a_mirror_never_owns_anything(kind):
    """With ownerReferences, deleting the mirror deletes the workload in half a second [tried]."""
    shown = mirror(made(), kind)

    for body in (shown.manifest, shown.status):
        assert {"ownerReferences", "finalizers"}.isdisjoint(body["metadata"])
    assert "stoker.dev/owner" not in shown.manifest["metadata"]["annotations"]


def test_an_idle_pass_keeps_the_very_mirror():
    first = made()
    second = report(next_pass(inputs(), first.memory))

    assert mirror(second) is mirror(first)
    assert mirror(second, "Fleet").digest == mirror(first, "Fleet").digest


class Server:
    """A Cluster that keeps mirrors; `refuse` maps a kind or name to the error it meets."""

    def __init__(self) -> None:
        self.objects: dict[ObjectRef, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.refuse: dict[str, StokerError] = {}
        self.rivals: dict[str, int] = {}
        """Counts of mirrors by name that somebody else owns through /scale."""
        self.applied: Any = []

    def list(self, group: str, kind: str, namespace: str = "", **options: Any) -> ListPage:
        self._note("list", kind)
        return ListPage("1", tuple(o for ref, o in self.objects.items() if ref.kind == kind))

    def get(self, ref: ObjectRef, **options: Any) -> dict[str, Any]:
        self._note("get", ref.name)
        if ref not in self.objects:
            raise api_error(404, {"message": f"{ref} not found"}, what="get")
        return self.objects[ref]

    def apply(
        self,
        manifest: dict[str, Any],
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> dict[str, Any]:
        ref = ref_from_manifest(manifest)
        self._note(f"apply {subresource}".strip() + (" forced" if force else ""), ref.name)
        assert manager == MANAGER
        self.applied.append(manifest)
        live = self.objects.get(ref, {"metadata": {"uid": f"uid-{ref.name}"}})
        count = manifest.get("spec", {}).get("replicas")
        theirs = self.rivals.get(ref.name)
        if not force and theirs is not None and count is not None and count != theirs:
            cause = {"reason": "FieldManagerConflict", "field": ".spec.replicas", "message": "hpa"}
            raise api_error(
                409, {"reason": "Conflict", "details": {"causes": [cause]}}, what="apply"
            )
        metadata = {**live["metadata"], **manifest["metadata"], "resourceVersion": "7"}
        spec = {**live.get("spec", {}), **manifest.get("spec", {})}
        status = manifest["status"] if subresource else live.get("status", {})
        self.objects[ref] = {
            "apiVersion": ref.api_version,
            "kind": ref.kind,
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }
        return self.objects[ref]

    def delete(self, ref: ObjectRef, *, uid: str = "", **options: Any) -> None:
        self._note("delete", ref.name)
        assert uid == self.objects[ref]["metadata"]["uid"]
        del self.objects[ref]

    def _note(self, verb: str, name: str) -> None:
        self.requests.append((verb, name))
        if name in self.refuse:
            raise self.refuse[name]

    def names(self):
        return sorted(ref.name for ref in self.objects)

    def sent(self, kind: str):
        """What was applied to objects of a kind, status apart."""
        return [m for m in self.applied if m["kind"] == kind and "spec" in m]


class World:
    def __init__(self) -> None:
        self.server = Server()
        self.clock = VirtualClock()
        cluster: Any = self.server
        self.writer = MirrorWriter(cluster, self.clock, "c0ffee01")

    def write(self, result: Report):
        self.server.requests.clear()
        return self.writer.write(result)


def owned_by(manager: str, operation: str = "Apply") -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def test_mirrors_and_their_status_are_written():
    world = World()
    done = world.write(made())

    assert (2, (), False) == (done.written, done.findings, done.pending)
    assert ["prod-eu", "qwen-7b"] == world.server.names()
    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    assert (4, 4) == (live["spec"]["replicas"], live["status"]["readyReplicas"])


def test_what_did_not_change_costs_no_request():
    world = World()
    first = made()
    world.write(first)
    world.write(report(next_pass(inputs(), first.memory)))

    assert [] == world.server.requests


def test_a_restart_writes_nothing_that_stands():
    world = World()
    world.write(made())
    world.writer = MirrorWriter(world.writer.cluster, world.clock, "c0ffee01")
    world.write(made())

    assert ["list", "list"] == [verb for verb, _ in world.server.requests]


def test_a_restart_that_has_pushed_nothing_yet_leaves_what_stands():
    """Only whoever pushes can say how the branch takes it; not to know that is no news."""
    pushed = StatusWritten("stoker-status/prod-eu", "9c01d2e" * 5, NOW)
    world = World()
    world.write(made(written=pushed))
    world.writer = MirrorWriter(world.writer.cluster, world.clock, "c0ffee01")
    after_start = world.write(made()).written
    after_push = world.write(made(written=replace(pushed, commit="b" * 40))).written

    assert (0, 0) == (after_start, after_push)


def test_a_branch_that_ceases_to_take_commits_is_shown_in_the_cluster():
    world = World()
    world.write(made(written=StatusWritten("stoker-status/prod-eu", "9c01d2e" * 5, NOW)))
    world.write(made(written=StatusWritten("b", "", None, "push-rejected", "protected branch")))

    told = world.server.objects[ObjectRef("stoker.dev", "Fleet", "stoker-system", "prod-eu")]
    shown = {c["type"]: c["reason"] for c in told["status"]["conditions"]}
    assert "PushRejected" == shown["StatusWritten"]


def test_only_the_mirror_that_changed_is_written():
    world = World()
    world.write(made())
    world.write(made(plan=plan(decision(ready=3, warming=1))))

    assert ["prod-eu", "prod-eu", "qwen-7b", "qwen-7b"] == [n for _, n in world.server.requests]


def test_a_mirror_that_somebody_deleted_comes_back():
    world = World()
    world.write(made())
    world.server.objects.clear()
    world.clock.wait(LOOK_EVERY_SECONDS)
    world.write(made())

    assert ["prod-eu", "qwen-7b"] == world.server.names()


def test_the_mirror_of_a_service_that_left_git_is_removed():
    world = World()
    first = made()
    world.write(first)
    gone = next_pass(inputs(), first.memory, desired=desired(), plan=plan(), changes=change_set())
    world.write(report(gone))

    assert ["prod-eu"] == world.server.names()


def test_no_mirror_is_removed_while_the_set_of_units_is_not_known():
    world = World()
    first = made()
    world.write(first)
    world.write(replace(first, mirrors=(), complete=False))

    assert ["prod-eu", "qwen-7b"] == world.server.names()


def test_mirrors_of_another_fleet_are_left_alone():
    world = World()
    world.write(made())
    other = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    theirs = {**other["metadata"], "name": "x", "annotations": {"stoker.dev/fleet-id": "beef"}}
    world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "x")] = {
        **other,
        "metadata": theirs,
    }
    world.clock.wait(LOOK_EVERY_SECONDS)
    world.write(made())

    assert ["list", "list"] == [verb for verb, _ in world.server.requests]


def test_a_service_applied_by_hand_is_told_that_nothing_comes_of_it():
    world = World()
    ref = ObjectRef("stoker.dev", "ModelService", "llm", "mine")
    world.server.objects[ref] = {"metadata": {"name": "mine", "namespace": "llm"}, "spec": {}}
    world.write(made())
    told = list(world.server.requests)
    world.clock.wait(LOOK_EVERY_SECONDS)
    world.write(made())

    assert ("apply status", "mine") in told
    assert "NotInGit" == world.server.objects[ref]["status"]["conditions"][0]["reason"]
    assert ["list", "list"] == [verb for verb, _ in world.server.requests]


def test_a_missing_crd_is_told_with_the_way_out():
    world = World()
    world.server.refuse["ModelService"] = api_error(404, "404 page not found", what="list")
    done = world.write(made())

    assert [("crd-missing", "stoker install prints the CRDs; apply them")] == [
        (f.code, f.hint) for f in done.findings
    ]
    assert done.findings == world.writer.warnings
    assert done.findings == world.write(made()).findings
    assert [] == world.server.requests, "asked again at once"
    world.server.refuse.clear()
    world.clock.wait(LOOK_FOR_KINDS_SECONDS)
    assert 2 == world.write(made()).written
    assert () == world.writer.warnings


def test_a_missing_crd_is_looked_for_at_once_when_kinds_have_changed():
    world = World()
    world.server.refuse["ModelService"] = api_error(404, "404 page not found", what="list")
    world.write(made())
    world.server.refuse.clear()

    world.writer.look_for_kinds()

    assert 2 == world.write(made()).written


def test_a_missing_right_is_told_once_and_asked_for_once_a_namespace():
    names = [f"s{n}" for n in range(5)]
    refs = [replace(QWEN, name=name) for name in names]
    world = World()
    world.server.refuse = dict.fromkeys(names, api_error(403, {"message": "no"}, what="patch"))
    done = world.write(
        made(
            desired=desired(*(service(ref) for ref in refs)),
            plan=plan(*(decision(ref) for ref in refs)),
        )
    )

    assert ["mirrors-forbidden"] == [f.code for f in done.findings]
    assert 1 == sum(1 for _, name in world.server.requests if name in names)


def test_an_absent_namespace_is_waited_for_without_a_word():
    world = World()
    missing = {"message": 'namespaces "llm" not found', "reason": "NotFound"}
    world.server.refuse["qwen-7b"] = api_error(404, missing, what="patch")

    assert () == world.write(made()).findings


def test_a_silent_server_is_asked_once():
    world = World()
    world.write(made(plan=plan(decision(ready=3))))
    world.server.refuse["prod-eu"] = Unreachable("no answer")
    done = world.write(made())

    assert ["mirrors-not-written"] == [f.code for f in done.findings]
    assert 1 == len(world.server.requests)


def test_a_large_fleet_is_written_in_turns_that_leave_room_for_notices():
    refs = [replace(QWEN, name=f"s{n:03}") for n in range(250)]
    result = made(
        desired=desired(*(service(ref) for ref in refs)),
        plan=plan(*(decision(ref) for ref in refs)),
    )
    world = World()
    turns = [world.write(result) for _ in range(3)]

    assert [AT_ONCE, AT_ONCE, 51] == [turn.written for turn in turns]
    assert [True, True, False] == [turn.pending for turn in turns]


def test_an_unknown_count_creates_no_mirror_and_leaves_a_standing_one_alone():
    world = World()
    world.write(made(plan=plan()))
    assert ["prod-eu"] == world.server.names()

    world.write(made())
    world.write(made(plan=plan()))
    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    assert 4 == live["spec"]["replicas"]


def external(want: int) -> Report:
    owner = CountReason("HorizontalPodAutoscaler/x")
    return made(plan=plan(decision(want=want, ready=want, count=owner)))


def stands(world: World, count: int, manager: str, operation: str = "Apply") -> dict[str, Any]:
    """The mirror stands with a count owned by that manager."""
    world.write(external(4))
    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    live["spec"]["replicas"] = count
    live["metadata"]["managedFields"] = [owned_by(manager, operation)]
    return live


def test_the_count_of_an_autoscaler_is_never_overwritten_even_at_zero():
    """After a scale to 0 nobody owns the field, and an apply would restore the old count."""
    world = World()
    stands(world, 0, "someone-else", "Update")
    world.write(external(3))

    manifest = world.server.sent("ModelService")[-1]
    assert "replicas" not in manifest["spec"]
    assert "7" == manifest["metadata"]["resourceVersion"]


def test_a_count_that_only_we_own_is_sent_again_as_it_is():
    """Dropping it would remove it, and an autoscaler fails without it."""
    world = World()
    stands(world, 4, MANAGER)
    world.write(external(3))

    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    assert 4 == live["spec"]["replicas"]


def test_a_count_that_somebody_scaled_by_hand_is_put_right_at_the_next_look():
    """The digest stands in the status, so it cannot tell."""
    world = World()
    world.write(made())
    ref = ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")
    world.server.objects[ref]["spec"]["replicas"] = 0
    world.clock.wait(LOOK_EVERY_SECONDS)
    world.write(made())

    assert 4 == world.server.objects[ref]["spec"]["replicas"]


def test_a_count_that_git_owns_is_taken_back_from_whoever_wrote_it():
    world = World()
    world.write(made())
    world.server.rivals["qwen-7b"] = 9
    world.write(made(plan=plan(decision(want=3, ready=3)), desired=desired(service(replicas=3))))

    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    assert ("apply forced", "qwen-7b") in world.server.requests
    assert (3, "uid-qwen-7b") == (live["spec"]["replicas"], live["metadata"]["uid"])


def test_a_conflict_over_a_count_that_is_not_ours_leaves_it():
    world = World()
    stands(world, 4, MANAGER)
    world.server.rivals["qwen-7b"] = 9
    world.write(external(3))

    live = world.server.objects[ObjectRef("stoker.dev", "ModelService", "llm", "qwen-7b")]
    assert 4 == live["spec"]["replicas"]


def test_a_stale_read_is_tried_again_in_the_next_pass():
    world = World()
    stale = {"reason": "Conflict", "message": "the object has been modified"}
    world.server.refuse["qwen-7b"] = api_error(409, stale, what="apply")
    done = world.write(made())

    assert ["mirrors-not-written"] == [f.code for f in done.findings]
