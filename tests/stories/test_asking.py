"""suspend, resume, override, reconcile and wait, beside a controller that answers."""

from __future__ import annotations

import re

import pytest

from stoker.cli import waiting
from stoker.cli.app import run
from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.model.refs import ObjectRef
from stoker.objects.names import GROUP
from stoker.objects.wishes import OVERRIDE, SUSPEND, WHEN_FULL
from stories.faults import Faults
from stories.files import FLEET, NEW, a_config_map, a_fleet, a_service
from stories.looks import conditions, errors, rest, serving, unit_status

TINY = "ModelService/llm/tiny"


class Waiter:
    """A clock of the wall for commands, whose waiting lets the world go on."""

    def __init__(self, world) -> None:
        self._world = world

    def now_ms(self) -> int:
        return self._world.clock.now_ms()

    def monotonic(self) -> float:
        return self._world.clock.monotonic()

    def wait(self, seconds: float) -> None:
        self._world.advance(max(1, round(seconds)))


@pytest.fixture
def stoker(world, monkeypatch, capsys):
    """Run a command on the world's cluster: exit code, stdout, stderr.

    The world's time is not before the real one, which commands that look go by.
    """
    world.clock.wait(max(0.0, (SystemClock().now_ms() - world.clock.now_ms()) / 1000 + 60))
    world.advance(1)

    def connect(*_arguments, **_options):
        return Client(Faults()(world.server), user_agent="command")

    monkeypatch.setattr("stoker.cli.session.connect", connect)
    monkeypatch.setattr("stoker.cli.mirror_asks.connect", connect)
    monkeypatch.setattr("stoker.clock.SystemClock", lambda: Waiter(world))

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return command


def mirror(world, name: str = "tiny"):
    return world.cluster.get(ObjectRef(GROUP, "ModelService", "llm", name, "v1alpha1"))


# -------------------------------------------------------------------- suspend and resume
def test_suspend_and_resume_are_obeyed_by_the_controller(world, stoker):
    code, out, err = stoker("suspend", "tiny", "--reason", "vendor outage", "--for", "2h")
    world.commit("Scale", {"models/tiny.yaml": a_service(replicas=1)})
    rest(world)

    assert (0, True) == (code, out.startswith("suspended ModelService llm/tiny until 2"))
    assert "fleet local" in err
    assert 2 == len(serving(world))
    assert "vendor outage" in conditions_message(world)

    status = stoker("status", "--path", str(world.work_tree))[1]
    assert "SUSPENDED  llm/tiny" in status
    assert "vendor outage" in status

    assert "resumed ModelService llm/tiny\n" == stoker("resume", "llm/tiny")[1]
    rest(world)

    assert 1 == len(serving(world))


def conditions_message(world) -> str:
    status = unit_status(world, TINY)
    assert "Suspended" in conditions(status)
    return next(c["message"] for c in status["conditions"] if c["type"] == "Suspended")


def test_the_whole_fleet_is_suspended_by_its_name(world, stoker):
    assert 0 == stoker("suspend", "fleet/local", "--reason", "audit")[0]
    rest(world)

    assert "Suspended" == unit_status(world, TINY)["health"]["status"]
    assert "SUSPENDED  the fleet" in stoker("status", "--path", str(world.work_tree))[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("suspend", "side", "--reason", "x"), "a Bundle has none: commit the change to its file"),
        (("suspend", "tiny", "--reason", " "), "one line that says why"),
        (("suspend", "tiny", "--reason", "x", "--for", "40d"), "--for"),
        (("suspend", "tiny", "--reason", "x", "--for", "800h"), "at most 744h"),
        (("suspend", "fleet/other", "--reason", "x"), "fleets: local"),
        (("override", "tiny"), "either --replicas N or --when-full Unpinned, or --clear"),
        (("override", "tiny", "--clear", "--when-full", "Hold"), "or --clear"),
        (("override", "tiny", "--when-full", "Buy"), "one of Hold, Unpinned"),
        (("override", "tiny", "--when-full", "Hold", "--reason", "x"), "--for is required"),
        (("override", "tiny", "--when-full", "Hold", "--for", "1h"), "one line that says why"),
        (("override", "tiny", "--replicas", "1", "--reason", "x"), "--for is required"),
        (("override", "tiny", "--replicas", "1", "--for", "1h"), "one line that says why"),
        (
            ("override", "tiny", "--replicas", "0", "--for", "1h", "--reason", "x"),
            "below the floor",
        ),
        (("wait", "tiny", "--for", "Done"), "Synced, Synced=HEAD, Ready or Healthy"),
        (("wait", "nobody"), "no"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_says_what_to_do_and_changes_nothing(world, stoker, arguments, told):
    code, out, err = stoker(*arguments)

    assert (2, "") == (code, out)
    assert told in err
    assert not {SUSPEND, OVERRIDE, WHEN_FULL} & set(mirror(world)["metadata"]["annotations"])


def test_resuming_what_is_suspended_in_git_says_so(world, stoker):
    """The command cannot lift what a file says."""
    text = a_service(replicas=2, suspend=True)
    world.commit("Suspend", {"models/tiny.yaml": text})
    rest(world)

    code, out, err = stoker("resume", "tiny")

    assert (0, "was not suspended by hand: ModelService llm/tiny\n") == (code, out)
    assert "suspended in Git" in err


# ------------------------------------------------------------------------------ override
def test_an_override_is_set_shown_and_cleared(world, stoker):
    arguments = ("override", "tiny", "--replicas", "1", "--for", "2h", "--reason", "less load")
    code, out, _ = stoker(*arguments)
    rest(world)

    assert (0, True) == (code, "ModelService llm/tiny wants 1 until 2" in out)
    assert 1 == len(serving(world))
    here = ("--path", str(world.work_tree))
    status, explained = stoker("status", "--all", *here)[1], stoker("explain", "tiny", *here)[1]
    assert "OVERRIDE   llm/tiny   1 until" in status
    assert "O: count set by hand for a time" in status
    assert "Override: until" in explained
    assert "Override llm/tiny: 1 until" in stoker("plan", *here)[2]
    assert "Override llm/tiny: 1 until" in stoker("diff", *here)[2]
    assert 1 == mirror(world)["spec"]["replicas"]

    assert "cleared ModelService llm/tiny\n" == stoker("override", "tiny", "--clear")[1]
    rest(world)

    assert 2 == len(serving(world))
    assert 0 == stoker("override", "tiny", "--clear")[0]


def test_a_node_is_asked_for_shown_and_no_longer_asked_for(world, stoker):
    """ux.md, stoker status: the commands that help stand below what is held."""
    world.commit("Three", {"models/tiny.yaml": a_service(replicas=3)})
    rest(world)
    here = ("--path", str(world.work_tree))
    command = "stoker override tiny --when-full Unpinned --for 4h --reason TEXT   ask for a node:"
    assert command in stoker("status", *here)[1]
    assert command in stoker("explain", "tiny", *here)[1]
    assert "stoker override tiny --replicas 2 --for 4h" in stoker("status", *here)[1]

    proposed = command.partition("   ")[0].replace("TEXT", "launch").split()[1:]
    code, out, _ = stoker(*proposed)
    rest(world)

    assert (0, True) == (code, "tiny wants whenFull Unpinned until 2" in out)
    assert any(not pod["spec"].get("nodeName") for pod in world.objects("", "Pod", "llm"))
    told = "whenFull Unpinned until"
    assert f"OVERRIDE   llm/tiny   {told}" in stoker("status", "--all", *here)[1]
    assert f"override {told}" in stoker("explain", "tiny", *here)[1]
    assert f"Override llm/tiny: {told}" in stoker("plan", *here)[2]
    both = ("--when-full", "Hold", "--replicas", "2", "--for", "1h", "--reason", "enough")
    assert "wants 2 and whenFull Hold until" in stoker("override", "tiny", *both)[1]

    assert "cleared ModelService llm/tiny\n" == stoker("override", "tiny", "--clear")[1]

    assert not {OVERRIDE, WHEN_FULL} & set(mirror(world)["metadata"]["annotations"])


def test_a_node_that_cannot_be_read_for_is_told(world, stoker):
    annotate(world, WHEN_FULL, "please")
    rest(world)

    assert "stoker.dev/override-when-full" in unit_status(world, TINY)["errors"][0]["message"]
    assert 2 == len(serving(world))


def test_nobody_asks_for_a_node_where_kubernetes_places(world, stoker):
    text = a_service(replicas=2, placement={"mode": "Scheduler", "pools": [{"name": "gpu"}]})
    world.commit("Scheduler", {"models/tiny.yaml": text})
    rest(world)

    command = ("override", "tiny", "--when-full", "Unpinned", "--for", "1h", "--reason", "x")
    code, _, err = stoker(*command)

    assert (2, True) == (code, "leaves nodes to Kubernetes" in err)


def test_an_override_that_cannot_be_read_is_told_and_lowers_nothing(world, stoker):
    """Typed by hand, it would else end in silence, with the replicas it had asked for."""
    assert 0 == stoker("override", "tiny", "--replicas", "1", "--for", "2h", "--reason", "x")[0]
    rest(world)
    annotate(world, OVERRIDE, '{"replicas": 1, "until": "tomorrow"}')
    world.commit("Less", {"models/tiny.yaml": a_service(replicas=0)})
    rest(world)

    status = unit_status(world, TINY)
    assert [("override-unreadable", "", 0)] == errors(status)
    assert '"until": "tomorrow"' in status["errors"][0]["message"]
    assert "True" == conditions(status)["Ready"][0]
    assert 1 == len(serving(world))
    here = ("--path", str(world.work_tree))
    assert "OVERRIDE   llm/tiny   1 kept, Git wants 0" in stoker("status", "--all", *here)[1]
    assert "cannot be read" in stoker("plan", *here)[2]

    assert 0 == stoker("override", "tiny", "--clear")[0]
    rest(world)

    assert [] == errors(unit_status(world, TINY))
    assert [] == serving(world)


def annotate(world, key: str, value: str) -> None:
    ref = ObjectRef(GROUP, "ModelService", "llm", "tiny", "v1alpha1")
    body = {"metadata": {"annotations": {key: value}}}
    world.cluster.patch(ref, "merge", body, manager="kubectl-annotate")


def test_below_the_floor_only_when_one_says_so(world, stoker):
    arguments = ("override", "tiny", "--replicas", "0", "--for", "1h", "--reason", "save")

    assert 2 == stoker(*arguments)[0]
    assert 0 == stoker(*arguments, "--below-floor")[0]
    rest(world)

    assert [] == serving(world)


def test_a_count_that_somebody_else_owns_is_not_overridden(world, stoker):
    text = a_service(replicas=None, scaling={"mode": "External"})
    world.commit("External", {"models/tiny.yaml": text})
    rest(world)

    code, _, err = stoker("override", "tiny", "--replicas", "3", "--for", "1h", "--reason", "x")

    assert 2 == code
    assert "External owns the count of ModelService llm/tiny" in err


# -------------------------------------------------------------------- reconcile and wait
def test_reconcile_waits_for_the_pass_it_asked_for(world, stoker):
    code, out, err = stoker("reconcile")

    assert 0 == code, err
    assert out.startswith("fleet local   Synced main@")
    assert "Healthy" in out


def test_reconcile_says_when_nobody_answers(world, stoker, monkeypatch):
    monkeypatch.setattr(Waiter, "wait", lambda self, seconds: self._world.clock.wait(seconds))

    code, out, err = stoker("reconcile", "--timeout", "3s")

    assert (3, "") == (code, out)
    assert "no pass within 3s" in err


def test_wait_follows_a_change_to_its_end(world, stoker):
    """`step by step on stderr, the result on stdout` (ux.md, the journey of a change)."""
    world.commit("Less", {"models/tiny.yaml": a_service(replicas=1)})

    here = ("--path", str(world.work_tree))
    code, out, err = stoker("wait", "tiny", "--for", "Synced=HEAD", "--timeout", "2m", *here)

    assert 0 == code, err
    assert "ModelService llm/tiny Synced Healthy, 1 Ready, 0 warming of 1\n" == out
    assert "is not applied" in err
    assert 1 == len(serving(world))


def test_wait_tells_how_far_a_start_is_and_of_how_much(world, stoker):
    """ux.md, the journey of a change: `l4-od-3 Starting 1m12s of 4m10s, 4 Ready`."""
    world.commit("Newer", {"models/tiny.yaml": a_service(replicas=2, revision=NEW)})

    here = ("--path", str(world.work_tree))
    code, out, err = stoker("wait", "tiny", "--for", "Synced=HEAD", "--timeout", "5m", *here)

    assert 0 == code, err
    assert out.startswith("ModelService llm/tiny Synced ")
    lines = [line.partition("  ")[2] for line in err.splitlines()]
    starts = [line for line in lines if re.match(r"gpu-\d (Pulling|Starting) \d+s of \d+", line)]
    assert starts, err
    assert all(" Ready, " in line for line in starts)


def test_wait_ends_with_1_when_the_time_is_over(world, stoker):
    world.commit("More", {"models/tiny.yaml": a_service(replicas=9)})
    rest(world)

    here = ("--path", str(world.work_tree))
    code, out, err = stoker("wait", "tiny", "--for", "Ready", "--timeout", "3s", *here)

    assert (1, "") == (code, out)
    assert "HeldNoCapacity" in err
    assert "not Ready within 3s" in err


def test_wait_ends_with_3_when_a_person_must_act(world, stoker):
    world.commit("Break", {"bundles/side/side.yaml": a_config_map("side", {"bad key!": "x"})})
    rest(world)

    here = ("--path", str(world.work_tree))
    code, _, err = stoker("wait", "side", "--for", "Synced=HEAD", "--timeout", "1m", *here)

    assert 3 == code
    assert "Stalled InvalidObject" in err


@pytest.mark.parametrize("name", ["Bundle/llm/side", "llm/tiny", "fleet/local"])
@pytest.mark.parametrize("goal", ["Synced=HEAD", "Ready", "Healthy"])
def test_wait_knows_units_and_fleets(world, stoker, name, goal):
    code, _, err = stoker("wait", name, "--for", goal, "--path", str(world.work_tree))

    assert 0 == code, err


def test_wait_for_a_service_needs_no_repository(world, stoker, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()

    assert 0 == stoker("wait", "tiny", "--path", str(empty))[0]


@pytest.mark.parametrize("text", ["Synced=", "Ready=HEAD", "synced", ""])
def test_goals_that_are_none_are_refused(text):
    with pytest.raises(Exception, match="--for"):
        waiting.goal_of(text)


# ------------------------------------------------------------------- windows, beforehand
def test_a_closed_window_is_told_before_the_merge_and_only_while_something_waits(world, stoker):
    """`stoker plan` says when a change would be applied; what stands waits for nothing."""
    freeze = {"name": "freeze", "kind": "Deny", "schedule": "* * * * *", "duration": "1h"}
    here = ("--path", str(world.work_tree))
    world.commit("Freeze", {FLEET: a_fleet(changeWindows=[freeze])})
    rest(world)
    assert "PENDING" not in stoker("status", *here)[1]

    world.commit("Scale", {"models/tiny.yaml": a_service(replicas=1)})
    rest(world)

    assert 2 == len(serving(world))
    assert "is applied later (change windows: freeze)" in stoker("plan", *here)[2]
    assert "PENDING" in stoker("status", *here)[1]
    code, _, err = stoker("apply", "--yes", *here)
    assert (3, True) == (code, "nothing is written" in err)
    assert 2 == len(serving(world))
