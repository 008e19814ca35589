"""The demo's four scenes, and what they print: at most 60 lines, plain text."""

from __future__ import annotations

import subprocess

from stoker.cli.demo_clients import NAMESPACE, RATE_PER_SECOND
from stoker.cli.demo_stage import MODEL, MODEL_FILE, SERVICE, Stage
from stoker.cli.print_diff import diff_text
from stoker.cli.print_plan import duration
from stoker.cli.style import Style
from stoker.diff import summarise
from stoker.model.plan import Placement
from stoker.model.refs import ObjectRef
from stoker.reconcile import Reach, State, reconcile

__all__ = ["keep_running", "play"]

_NOTICED = "gpu-1"
_NOTICE_MS = 120_000
"""What AWS gives a spot instance."""
_CALM_SECONDS = 5
"""Of load before the notice, and after the move."""


def play(stage: Stage) -> bool:
    """All four scenes; False when one did not come to its end, or a request failed."""
    kind = "a real Kubernetes control plane" if stage.real else "an in-memory cluster"
    stage.say(
        f"Stoker demo: 3 simulated GPU nodes on {kind}, one Git repository, no GPU needed.\n"
        f"Everything lives in {stage.folder} while it runs."
    )
    scenes = (_first, _notice, _repair, _removal)
    fine = stage.set_up() and all(scene(stage) for scene in scenes)
    seconds = (stage.world.clock.now_ms() - stage.began) // 1000
    commits = stage.world.status_commits("stoker-status/demo")
    stage.say(
        f"{'Done' if fine else 'NOT done'} in {seconds}s of cluster time: 4 scenes, "
        f"{commits} status commits, {stage.clients.failed} failed requests."
    )
    stage.say(
        "Try:   make demo ARGS=--keep (then edit and commit)    make demo ARGS=--real    "
        "stoker init my-fleet"
    )
    return fine


# ---------------------------------------------------------------------- 1: a model
def _first(stage: Stage) -> bool:
    stage.scene(1, "You commit a model, and look first", "$ git commit; stoker diff")
    stage.world.commit(f"Add {MODEL}, 2 replicas", {MODEL_FILE: SERVICE})
    _show_diff(stage)
    stage.world.one_pass()
    decision = stage.decision()
    if decision is None:
        stage.tell("failed", str(stage.world.source_failure))
        return False
    stage.tell("plan", f"{MODEL} -> {', '.join(map(_place, decision.placements))}")
    stage.say("                   gpu-1 holds the weights and the image, gpu-2 only the image")
    seen: set[str] = set()

    def both_ready() -> bool:
        for node in sorted(stage.nodes_of_ready() - seen):
            stage.tell("ready", node)
            seen.add(node)
        return len(seen) == 2

    return stage.wait(both_ready, "2 Ready replicas") and _status(stage)


def _place(placement: Placement) -> str:
    """A node, and what a start there takes."""
    ready = placement.readiness
    told = "" if ready is None else f" ({ready.warmth}, about {duration(ready.p50_ms)})"
    return f"{placement.node}{told}"


def _show_diff(stage: Stage) -> None:
    """What `stoker diff` prints, before the pass that applies it."""
    world = stage.world
    assert world.work is not None
    parts = world.work.parts
    revision = parts.repo.fetch()
    parts.observer.refresh()
    state = State(world.work.state.desired, world.work.state.history, world.work.state.previous)
    found = reconcile(parts, state, revision=revision, reach=Reach.DIFF)
    if found.changes is None or found.desired is None or found.live is None:
        return
    text = diff_text(found.changes, found.desired, Style(stage.out))
    for line in text.splitlines()[:14]:
        if line:
            stage.say(f"      {line}")
    stage.say(f"      {summarise(found.changes, found.plan, found.live, parts.identity.fleet_id)}")


# --------------------------------------------------------------------- 2: a notice
def _notice(stage: Stage) -> bool:
    seconds = _NOTICE_MS // 1000
    stage.scene(2, f"{_NOTICED} is a spot node and gets its {seconds} s notice, under load", "")
    stage.begin_load()
    stage.tell("load", f"{RATE_PER_SECOND} requests a second to {MODEL}, answers of 2 to 6 s")
    for _ in range(_CALM_SECONDS):
        stage.second()
    before = stage.nodes_of_ready()
    now_ms = stage.world.clock.now_ms()
    stage.world.kubelet.node_states.give_notice(
        _NOTICED, "spot", at_ms=now_ms, deadline_ms=now_ms + _NOTICE_MS
    )
    moved = stage.wait(lambda: bool(_successors(stage, before)), "a successor")
    if moved:
        (successor, *_) = _successors(stage, before)
        ready = successor.readiness
        in_time = ready is not None and ready.p50_ms <= _NOTICE_MS
        why = (
            f"fits in {seconds} s: start first, drain after" if in_time else "too late to be first"
        )
        stage.tell("plan", f"{_NOTICED} -> {_place(successor)}: {why}")
        moved = _moved(stage, successor.node)
    for _ in range(_CALM_SECONDS):
        stage.second()
    stage.end_load()
    failed, answered = stage.clients.failed, stage.clients.answered
    stage.tell("load", f"failed requests {failed} of {answered}")
    return moved and answered > 0 and not failed


def _successors(stage: Stage, before: set[str]) -> list[Placement]:
    """What the last pass placed where nothing of the model served before."""
    decision = stage.decision()
    placements = () if decision is None else decision.placements
    return [each for each in placements if each.node not in before]


def _moved(stage: Stage, node: str) -> bool:
    if not stage.wait(lambda: node in stage.nodes_of_ready(), "the successor"):
        return False
    stage.tell("ready", f"{node} takes requests")
    if not stage.wait(lambda: not stage.holds(_NOTICED), "the drain"):
        return False
    stage.tell("gone", f"{_NOTICED}, drained")
    return True


# -------------------------------------------------------------------- 3: a repair
def _repair(stage: Stage) -> bool:
    target = stage.deployments()[0]["metadata"]["name"]
    stage.scene(3, "Somebody scales a replica away", "$ kubectl scale deploy/… --replicas=0")
    world = stage.world
    ref = ObjectRef("apps", "Deployment", NAMESPACE, target)
    world.cluster.patch(
        ref, "merge", {"spec": {"replicas": 0}}, manager="kubectl", subresource="scale"
    )
    world.cluster_step()
    if not stage.wait(lambda: _replicas(stage, ref) == 1, "the repair"):
        return False
    stage.tell("repair", f"{target}: spec.replicas 0 -> 1, as Git says")
    if not stage.wait(lambda: len(stage.nodes_of_ready()) == 2, "2 Ready replicas"):
        return False
    stage.tell("ready", "2 replicas again; the node kept the weights")
    return True


def _replicas(stage: Stage, ref: ObjectRef) -> int:
    return int(stage.world.cluster.get(ref)["spec"]["replicas"])


# -------------------------------------------------------------------- 4: the end
def _removal(stage: Stage) -> bool:
    stage.scene(4, "You remove the model", f"$ git rm {MODEL_FILE}; git commit")
    world = stage.world
    world.commit(
        f"Remove {MODEL}\n\nStoker-Allow-Delete: ModelService/{NAMESPACE}/{MODEL}",
        {MODEL_FILE: None},
    )
    if not stage.wait(lambda: not stage.deployments(), "the removal"):
        return False
    others = [str(d["metadata"]["name"]) for d in world.objects("apps", "Deployment", NAMESPACE)]
    stage.tell("pruned", f"everything that {MODEL} had; untouched: {', '.join(others)}")
    return _status(stage)


def _status(stage: Stage) -> bool:
    """Wait for the status commit and tell it."""
    world = stage.world
    for _ in range(2):
        stage.second()
    if world.work is not None:
        world.work.publisher.flush(10.0)
    head = subprocess.run(
        ["git", "-C", str(world.bare), "log", "-1", "--format=%h %s",
         "refs/heads/stoker-status/demo"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    commit, _, subject = head.partition(" ")
    said = subject.removeprefix("status: ").removesuffix("[skip ci]").strip()
    text = f"{commit} on stoker-status/demo: {said}" if head else "no status commit"
    stage.tell("status", text)
    return bool(head)


def keep_running(stage: Stage) -> None:
    """Go on until Ctrl-C; commits that are pushed to the repository are acted on."""
    from stoker.clock import SystemClock

    world = stage.world
    stage.say(f"\nIt goes on. Commit and push in   {world.work_tree}")
    stage.say(
        "Ctrl-C ends it. Status: git -C that-folder fetch && git log origin/stoker-status/demo"
    )
    clock = SystemClock()
    last = ""
    while True:
        world.advance(1)
        if not stage.real:
            clock.wait(1.0)
        done = world.work.last if world.work is not None else None
        if done is not None and done.attempted is not None:
            ready = [f"{s} on {', '.join(sorted(n))}" for s, n in sorted(stage.serving().items())]
            line = f"{done.attempted.short} ready: {'; '.join(ready) or 'nothing'}"
            if line != last:
                stage.tell("now", line)
                last = line
