"""Order and waiting: suspension, dependencies, change windows, overrides, back-off, timeouts."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from stoker.cli.mirror_asks import annotate, find_fleet, find_mirror
from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects.names import GROUP
from stoker.objects.wishes import (
    OVERRIDE,
    RECONCILE,
    SUSPEND,
    text_of_override,
    text_of_suspension,
)
from stories.faults import answer
from stories.files import FLEET, NEW, OLD, a_bundle, a_config_map, a_fleet, a_service, the_fleet
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    fleet_status,
    is_clean,
    message,
    pod_uids,
    rest,
    revisions,
    serving,
    standing,
    tell,
    unit_status,
    watch,
)

TINY, OTHER = "ModelService/llm/tiny", "ModelService/llm/other"
SIDE, EXTRA = "Bundle/llm/side", "Bundle/llm/extra"
AFTER_SIDE = [{"kind": "Bundle", "name": "side"}]
NODES = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3, 4))
HOUR = 3_600_000


def with_spec(text: str, **spec) -> str:
    """A unit's file with more in its spec."""
    body = yaml.safe_load(text)
    body["spec"] |= spec
    return yaml.safe_dump(body, sort_keys=False)


def ask(world, name: str, key: str, value: str | None) -> None:
    """What `stoker suspend`, `override` and `reconcile` write."""
    asked = find_mirror(world.cluster, name, "", fleets=True)
    annotate(world.cluster, asked, key, value)


def for_a_while(world, hours: int = 1) -> int:
    return world.clock.now_ms() + hours * HOUR


def side(value: str) -> dict[str, str]:
    return {"bundles/side/side.yaml": a_config_map("side", {"key": value})}


def a_fleet_of(*services: str, **bundles) -> dict[str, str]:
    return the_fleet(*services, side={"side.yaml": a_config_map("side")}, **bundles)


# ------------------------------------------------------------------------- suspension
def test_a_unit_suspended_in_git_is_left_alone_until_it_is_resumed(settled):
    """Nothing is written, scaled, moved or pruned; drift and a new revision wait."""
    world = settled(a_fleet_of(a_service()), *NODES)
    before = as_it_stands(world)
    wanted = a_service(replicas=2, revision=NEW)

    world.commit("Suspend", {"models/tiny.yaml": with_spec(wanted, suspend=True)} | side("new"))
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert "new" == data(world, "side")["key"], "others go on"
    del before["Service/tiny"], before["ConfigMap/side"]
    assert before == {k: v for k, v in as_it_stands(world).items() if k != "ConfigMap/side"}
    status = unit_status(world, TINY)
    assert ("OutOfSync", "Suspended") == (status["sync"]["status"], status["health"]["status"])
    told = conditions(status)
    assert ("True", "Suspended") == told["Suspended"]
    assert ("False", "Suspended") == told["Ready"]
    assert ("False", "Suspended") == told["Reconciling"]
    assert "spec.suspend in models/tiny.yaml" == message(status, "Suspended")
    assert 1 == fleet_status(world)["summary"]["suspended"]
    assert ("True", "Succeeded") == conditions(fleet_status(world))["Ready"]

    world.commit("Resume", {"models/tiny.yaml": wanted})
    rest(world)

    assert is_clean(world)
    assert ({NEW}, 2) == (revisions(world), len(serving(world)))


def test_a_suspended_unit_keeps_its_gpus_booked(settled):
    """Another service gets only what is really free."""
    nodes = (WorldNode("gpu-1"), WorldNode("gpu-2"))
    world = settled(a_fleet_of(a_service()), *nodes)
    suspended = with_spec(a_service(), suspend=True)

    world.commit(
        "Both", {"models/tiny.yaml": suspended, "models/other.yaml": a_service("other", replicas=2)}
    )
    rest(world)

    assert 1 == len(serving(world))
    assert 1 == len(serving(world, "other"))
    assert "HeldNoCapacity" in {h["reason"] for h in unit_status(world, OTHER)["holds"]}


def test_a_unit_that_left_git_while_suspended_is_kept_until_a_trailer_names_it(settled):
    """Suspension never leads to a delete, not even when the file goes with it."""
    files = a_fleet_of(a_service(), extra={"extra.yaml": a_config_map("extra")})
    world = settled(files, *NODES)
    world.commit(
        "Suspend",
        {"bundles/extra/bundle.yaml": with_spec(files["bundles/extra/bundle.yaml"], suspend=True)},
    )
    rest(world)

    world.commit("Remove", {"bundles/extra/bundle.yaml": None, "bundles/extra/extra.yaml": None})
    rest(world)

    assert "ConfigMap/extra" in standing(world)
    note = unit_status(world, EXTRA)["notes"][0]
    assert "suspended" == note["reason"]
    assert f"Stoker-Allow-Delete: {EXTRA}" in note["message"]

    world.commit(f"Let it go\n\nStoker-Allow-Delete: {EXTRA}", {})
    rest(world)

    assert "ConfigMap/extra" not in standing(world)
    assert is_clean(world)


def test_a_suspended_fleet_writes_nothing_but_status(settled):
    world = settled(a_fleet_of(a_service()), *NODES)
    before = as_it_stands(world)
    state = [
        c["metadata"]["resourceVersion"] for c in world.objects("", "ConfigMap", "stoker-system")
    ]

    world.commit(
        "Suspend",
        {
            FLEET: a_fleet(suspend=True),
            "bundles/side/bundle.yaml": None,
            "bundles/side/side.yaml": None,
        }
        | {"models/tiny.yaml": a_service(replicas=3, revision=NEW)},
    )
    rest(world)

    assert before == as_it_stands(world)
    assert state == [
        c["metadata"]["resourceVersion"] for c in world.objects("", "ConfigMap", "stoker-system")
    ], "neither inventory nor history"
    status = fleet_status(world)
    assert "Suspended" == status["health"]["status"]
    assert ("True", "Suspended") == conditions(status)["Suspended"]

    world.commit("Resume", {FLEET: a_fleet()})
    rest(world)

    assert is_clean(world)
    assert "ConfigMap/side" not in standing(world)
    assert 3 == len(serving(world))


def test_a_live_suspension_holds_lapses_and_survives_our_own_writes(settled):
    world = settled(a_fleet_of(a_service()), *NODES)
    until = for_a_while(world)

    ask(world, "tiny", SUSPEND, text_of_suspension("vendor outage", world.clock.now_ms(), until))
    world.commit("Scale", {"models/tiny.yaml": a_service(replicas=2)})
    rest(world)

    assert 1 == len(serving(world))
    status = unit_status(world, TINY)
    assert f"suspended by hand until {rfc3339(until)}: vendor outage" == message(
        status, "Suspended"
    )
    mirror = world.cluster.get(ObjectRef(GROUP, "ModelService", "llm", "tiny", "v1alpha1"))
    assert SUSPEND in mirror["metadata"]["annotations"]
    assert "Suspended" == mirror["status"]["health"]["status"]
    assert until == world.work.last.wake_at_ms, "the loop wakes when it lapses"

    world.clock.wait(3600)
    rest(world)

    assert 2 == len(serving(world))
    assert is_clean(world)


def test_a_live_suspension_of_the_fleet_ends_with_resume(settled):
    world = settled(a_fleet_of(a_service()), *NODES)
    ask(world, "fleet/local", SUSPEND, text_of_suspension("audit", world.clock.now_ms(), None))
    world.commit("Side", side("new"))
    rest(world)

    assert "value" == data(world, "side")["key"]
    assert "the fleet: suspended by hand: audit" == message(fleet_status(world), "Suspended")

    ask(world, "fleet/local", SUSPEND, None)
    rest(world)

    assert "new" == data(world, "side")["key"]


def test_a_suspension_that_cannot_be_read_still_suspends(settled):
    """Somebody typed the annotation by hand: they wanted it left alone."""
    world = settled(a_fleet_of(a_service()), *NODES)
    ask(world, "tiny", SUSPEND, "yes please")
    world.commit("Scale", {"models/tiny.yaml": a_service(replicas=2)})
    rest(world)

    assert 1 == len(serving(world))
    assert "Suspended" == unit_status(world, TINY)["health"]["status"]


@pytest.mark.parametrize("plural", ["fleets", "modelservices"])
def test_what_could_not_be_asked_counts_as_asked(settled, faults, plural):
    """Unknown is not no: a restarted controller must not write what may be suspended."""
    world = settled(a_fleet_of(a_service()), *NODES)
    world.stop_controller()

    def refuse(request):
        asked = request.method == "GET" and request.path.endswith(f"/v1alpha1/{plural}")
        return answer(500, "InternalError", "etcd is away") if asked else None

    faults.refuse = refuse
    world.commit("Side", side("new"))
    world.advance(5)

    assert "value" == data(world, "side")["key"]
    told = message(fleet_status(world), "Suspended")
    assert told.startswith(f"the fleet: whether it is suspended is unknown: {plural}")

    faults.refuse = lambda request: None
    rest(world)

    assert "new" == data(world, "side")["key"]
    assert ("True", "Succeeded") == conditions(fleet_status(world))["Ready"]


# ------------------------------------------------------------------------ dependencies
def test_a_unit_waits_until_what_it_depends_on_is_healthy(settled, new_world):
    """Nothing of it is written before; then it goes on by itself."""
    dependent = with_spec(a_service("other"), dependsOn=[{"kind": "ModelService", "name": "tiny"}])
    world = new_world(*NODES)
    world.commit("First", a_fleet_of(a_service(), dependent))
    seen = watch(world, 30, lambda: (len(serving(world)), "Service/other" in standing(world)))
    rest(world)

    assert (0, True) not in seen, "no object of it before tiny serves"
    assert (1, True) in seen
    assert is_clean(world)
    assert [TINY] == unit_status(world, OTHER)["dependsOn"]


def test_what_runs_stays_and_is_repaired_while_a_new_revision_waits(settled):
    """The dependency cannot be applied: its manifest is refused by the API server."""
    world = settled(a_fleet_of(with_spec(a_service(), dependsOn=AFTER_SIDE)), *NODES)
    pods = pod_uids(world)
    broken = a_config_map("side", {"bad key!": "x"})

    world.commit(
        "Both",
        {
            "bundles/side/side.yaml": broken,
            "models/tiny.yaml": with_spec(a_service(revision=NEW), dependsOn=AFTER_SIDE),
        },
    )
    tell(world)
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert pods == pod_uids(world)
    assert "Service/tiny" in standing(world), "drift of the old revision is repaired"
    status = unit_status(world, TINY)
    assert "OutOfSync" == status["sync"]["status"]
    assert ("False", "WaitingForDependency") == conditions(status)["Ready"]
    assert message(status, "Ready").startswith(
        f"waits for {SIDE}: it has not applied this revision"
    )

    world.commit("Fix", side("good"))
    rest(world)

    assert {NEW} == revisions(world)
    assert is_clean(world)


def test_a_restarted_controller_goes_on_with_the_revision_before(settled):
    """The unit's own commit is read again from Git; a moved replica is repaired meanwhile."""
    world = settled(a_fleet_of(with_spec(a_service(), dependsOn=AFTER_SIDE)), *NODES)
    broken = a_config_map("side", {"bad key!": "x"})
    world.commit(
        "Both",
        {
            "bundles/side/side.yaml": broken,
            "models/tiny.yaml": with_spec(a_service(revision=NEW), dependsOn=AFTER_SIDE),
        },
    )
    rest(world)
    pods = pod_uids(world)

    world.stop_controller()
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert pods == pod_uids(world)
    assert "Service/tiny" in standing(world)
    assert {OLD} == revisions(world)


def test_an_unwell_dependency_does_not_stop_repairs_of_what_was_let_through(settled):
    world = settled(a_fleet_of(with_spec(a_service(), dependsOn=AFTER_SIDE)), *NODES)
    world.commit("Break", {"bundles/side/side.yaml": a_config_map("side", {"bad key!": "x"})})
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert "Service/tiny" in standing(world)
    assert "Synced" == unit_status(world, TINY)["sync"]["status"]


def test_units_that_leave_together_go_in_reverse_order(settled):
    """`extra` depends on `side`: while it stands, `side` stays."""
    files = a_fleet_of(
        a_service(), extra={"extra.yaml": a_config_map("extra", finalizers=["x.org/y"])}
    )
    files["bundles/extra/bundle.yaml"] = with_spec(
        files["bundles/extra/bundle.yaml"], dependsOn=AFTER_SIDE
    )
    files[FLEET] = a_fleet(prune={"maxUnits": 5})
    world = settled(files, *NODES)

    gone = [path for path in files if path.startswith(("bundles/side", "bundles/extra"))]
    world.commit("Remove", dict.fromkeys(gone))
    rest(world)

    assert "ConfigMap/side" in standing(world)
    assert "dependents-first" == unit_status(world, SIDE)["notes"][0]["reason"]

    patch = {"metadata": {"finalizers": None}}
    world.cluster.patch(ObjectRef("", "ConfigMap", "llm", "extra"), "merge", patch, manager="x")
    rest(world)

    assert not {"ConfigMap/side", "ConfigMap/extra"} & set(standing(world))
    assert is_clean(world)


# ----------------------------------------------------------------------------- windows
def night(world, hours_from_now: int, kind: str = "Allow") -> dict:
    """A window of an hour that opens so many hours from now, each day."""
    hour = int(rfc3339(world.clock.now_ms() + hours_from_now * HOUR)[11:13])
    return {"name": "night", "kind": kind, "schedule": f"0 {hour} * * *", "duration": "1h"}


def test_outside_a_window_only_git_changes_wait(settled):
    """Drift is repaired, a restart forgets nothing, and the opening wakes the loop."""
    world = settled(a_fleet_of(a_service()), *NODES)
    windows = [night(world, 3)]
    first = world.commit(
        "Windows",
        {FLEET: a_fleet(changeWindows=windows), "models/tiny.yaml": a_service(replicas=2)},
    )
    rest(world)

    assert 1 == len(serving(world)), "the commit that brings the windows waits for them, too"
    status = fleet_status(world)
    assert f"main@sha1:{first}" == status["pending"]["revision"]
    assert ["night"] == status["pending"]["windows"]
    opens = status["pending"]["until"]
    assert ("True", "ChangeWindowClosed") == conditions(status)["Reconciling"]
    assert opens in message(status, "Reconciling")
    assert opens == rfc3339(world.work.last.wake_at_ms)
    assert "True" == conditions(status)["Ready"][0]

    world.stop_controller()
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert "Service/tiny" in standing(world)
    assert 1 == len(serving(world))

    world.clock.wait(3 * 3600)
    rest(world)

    assert 2 == len(serving(world))
    assert is_clean(world)
    assert "pending" not in fleet_status(world)


def test_outside_a_window_replicas_still_leave_noticed_nodes(settled):
    """Windows are for Git changes; a node that goes away asks nobody."""
    world = settled(a_fleet_of(a_service()), *NODES)
    world.commit("Windows", {FLEET: a_fleet(changeWindows=[night(world, 3)])})
    rest(world)
    node = serving(world)[0]["spec"]["nodeName"]

    world.cluster.patch(
        ObjectRef("", "Node", "", node),
        "merge",
        {
            "spec": {
                "taints": [
                    {
                        "key": "aws-node-termination-handler/spot-itn",
                        "value": "x",
                        "effect": "NoSchedule",
                    }
                ]
            }
        },
        manager="aws",
    )
    rest(world)

    assert 1 == len(serving(world))
    assert node != serving(world)[0]["spec"]["nodeName"]


def test_what_stops_things_is_obeyed_outside_a_window(settled):
    world = settled(a_fleet_of(a_service()), *NODES)
    fleet = a_fleet(changeWindows=[night(world, 3)])
    world.commit(
        "Suspend",
        {FLEET: fleet, "models/tiny.yaml": with_spec(a_service(replicas=2), suspend=True)},
    )
    world.cluster.delete(ObjectRef("", "Service", "llm", "tiny"))
    rest(world)

    assert "Service/tiny" not in standing(world)
    assert "Suspended" == unit_status(world, TINY)["health"]["status"]


def test_a_first_install_outside_a_window_waits_for_it(new_world):
    """Nothing was ever applied, so nothing is."""
    world = new_world(*NODES)
    files = a_fleet_of(a_service())
    files[FLEET] = a_fleet(changeWindows=[night(world, 3)])
    world.commit("First", files)
    rest(world)

    assert {} == standing(world)
    assert ("False", "ChangeWindowClosed") == conditions(unit_status(world, TINY))["Ready"]

    world.clock.wait(3 * 3600)
    rest(world)

    assert is_clean(world)


def test_a_commit_can_open_the_windows(settled):
    """An emergency is a commit: the windows of the newest revision count."""
    world = settled(a_fleet_of(a_service()), *NODES)
    freeze = {"name": "freeze", "kind": "Deny", "schedule": "* * * * *", "duration": "1h"}
    world.commit("Freeze", {FLEET: a_fleet(changeWindows=[freeze])} | side("waits"))
    rest(world)
    assert "value" == data(world, "side")["key"]

    world.commit("Emergency", {FLEET: a_fleet()} | side("now"))
    rest(world)

    assert "now" == data(world, "side")["key"]
    assert is_clean(world)


# ---------------------------------------------------------------------------- overrides
def test_an_override_sets_the_count_shows_everywhere_and_lapses(settled):
    world = settled(a_fleet_of(a_service(replicas=2)), *NODES)
    until = for_a_while(world)
    ask(world, "tiny", OVERRIDE, text_of_override(3, "launch day", world.clock.now_ms(), until))
    rest(world)

    assert 3 == len(serving(world))
    count = unit_status(world, TINY)["count"]
    assert "Override" == count["source"]
    assert f"until {rfc3339(until)}, Git wants 2: launch day" == count["detail"]
    assert 1 == fleet_status(world)["summary"]["overrides"]
    assert is_clean(world)
    assert until == world.work.last.plan.wake_at_ms, "the loop wakes when it lapses"

    world.clock.wait(3600)
    rest(world)

    assert 2 == len(serving(world))
    assert "Git" == unit_status(world, TINY)["count"]["source"]


def test_an_override_below_the_floor_says_so(settled):
    world = settled(a_fleet_of(a_service(replicas=3, disruption={"minReady": 2})), *NODES)
    ask(world, "tiny", OVERRIDE, text_of_override(1, "", world.clock.now_ms(), for_a_while(world)))
    rest(world)

    assert 1 == len(serving(world))
    assert "below the floor (2)" in unit_status(world, TINY)["count"]["detail"]


def test_an_override_of_a_count_that_an_autoscaler_owns_changes_nothing(settled):
    files = a_fleet_of(a_service(replicas=None, scaling={"mode": "External"}))
    world = settled(files, *NODES)
    ask(world, "tiny", OVERRIDE, text_of_override(3, "", world.clock.now_ms(), for_a_while(world)))
    rest(world)

    assert 1 == len(serving(world))
    assert "External" == unit_status(world, TINY)["count"]["source"]


# ------------------------------------------------------------------ retries and timeouts
def test_what_was_refused_is_sent_again_after_the_units_own_interval(settled, faults):
    """Passes for other reasons do not send it; a change of the file does at once."""
    bundle = "bundles/side/bundle.yaml"
    files = a_fleet_of(a_service())
    files[bundle] = with_spec(files[bundle], retryInterval="1m")
    files |= {"bundles/side/side.yaml": a_config_map("side", {"bad key!": "x"})}
    world = settled(files, *NODES)
    tries = []
    inner = world.work.parts.cluster.apply

    def apply(body, **options):
        if body["metadata"]["name"] == "side":
            tries.append(world.clock.now_ms())
        return inner(body, **options)

    world.work.parts.cluster.apply = apply
    world.advance(180)

    assert 3 == len(tries)
    assert {60_000, 61_000} >= {after - before for before, after in pairwise(tries)}
    assert ("True", "InvalidObject") == conditions(unit_status(world, SIDE))["Stalled"]

    world.commit("Fix", side("good"))
    world.advance(2)

    assert "good" == data(world, "side")["key"]


def test_a_request_for_a_pass_is_answered_and_ends_the_wait(settled):
    bundle = "bundles/side/bundle.yaml"
    files = a_fleet_of(a_service())
    files[bundle] = with_spec(files[bundle], retryInterval="1h")
    world = settled(
        files | {"bundles/side/side.yaml": a_config_map("side", {"bad key!": "x"})}, *NODES
    )
    assert world.work.state.holding.retries

    asked = find_fleet(world.cluster)
    annotate(world.cluster, asked, RECONCILE, "now-1")
    world.advance(1)

    live = world.cluster.get(asked.ref)
    assert "now-1" == live["status"]["lastHandledReconcileAt"]
    retry = next(iter(world.work.state.holding.retries.values()))
    assert 1 == retry.failures, "it was sent again just now"


def test_a_unit_that_is_not_healthy_in_time_is_stalled_and_worked_on(settled):
    world = settled(a_fleet_of(a_service()), *NODES)
    late = with_spec(a_service("other", replicas=9), timeout="5m")

    world.commit("Late", {"models/other.yaml": late})
    world.advance(60)
    assert "False" == conditions(unit_status(world, OTHER))["Stalled"][0]
    assert world.work.last.wake_at_ms is not None
    world.advance(260)

    status = unit_status(world, OTHER)
    assert ("True", "TimedOut") == conditions(status)["Stalled"]
    assert "not Healthy within spec.timeout (300s)" in message(status, "Stalled")

    world.commit("Less", {"models/other.yaml": with_spec(a_service("other"), timeout="5m")})
    rest(world)

    assert is_clean(world)


# --------------------------------------------------------------------------------- jobs
def a_job(image: str = "job:1", ttl: int | None = None) -> str:
    spec: dict = {"template": {"spec": {"restartPolicy": "Never"}}}
    spec["template"]["spec"]["containers"] = [
        {"name": "main", "image": f"registry.example/{image}"}
    ]
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec}
    return yaml.safe_dump(body)


JOB = ObjectRef("batch", "Job", "llm", "once")


def finish(world) -> str:
    """The Job controller's part: the Job has run; gives its UID."""
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "llm"},
        "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]},
    }
    done = world.cluster.apply(body, manager="job-controller", subresource="status")
    return str(done["metadata"]["uid"])


def jobs(world) -> list[str]:
    return [str(job["metadata"]["uid"]) for job in world.objects("batch", "Job", "llm")]


def test_a_job_runs_once_and_again_only_when_it_changes(settled):
    """A finished Job is no reason to run it again; a change of its template needs consent."""
    world = settled(a_fleet_of(a_service(), work={"job.yaml": a_job()}), *NODES)
    uid = finish(world)

    world.advance(20)
    world.stop_controller()
    world.advance(5)

    assert [uid] == jobs(world)
    assert is_clean(world)

    world.commit("Other image", {"bundles/work/job.yaml": a_job("job:2")})
    world.advance(5)

    assert [uid] == jobs(world)
    told = conditions(unit_status(world, "Bundle/llm/work"))["Stalled"]
    assert "True" == told[0]


def test_a_job_that_its_ttl_removed_is_done_until_it_changes(settled):
    """cases.md row 85: ttl 0 counts as done. Made again it would run for ever."""
    world = settled(a_fleet_of(a_service(), work={"job.yaml": a_job(ttl=0)}), *NODES)
    uid = finish(world)
    world.cluster.delete(JOB, uid=uid, propagation="Background")

    world.advance(10)
    world.stop_controller()
    world.advance(5)

    assert [] == jobs(world)
    assert is_clean(world)

    world.commit(
        "Beside it",
        {"bundles/work/bundle.yaml": with_spec(a_bundle("work", ("job.yaml",)), timeout="1h")},
    )
    world.advance(5)
    assert [] == jobs(world), "another change of the unit is none of the Job"

    world.commit("Other image", {"bundles/work/job.yaml": a_job("job:2", ttl=0)})
    world.advance(5)

    assert 1 == len(jobs(world))


def test_a_done_job_of_a_suspended_unit_is_not_forgotten(settled):
    files = a_fleet_of(a_service(), work={"job.yaml": a_job(ttl=0)})
    world = settled(files, *NODES)
    world.cluster.delete(JOB, uid=finish(world), propagation="Background")
    bundle = "bundles/work/bundle.yaml"

    world.commit("Suspend", {bundle: with_spec(files[bundle], suspend=True)})
    world.advance(5)
    world.commit("Resume", {bundle: files[bundle]})
    world.advance(5)

    assert [] == jobs(world)
    assert is_clean(world)
