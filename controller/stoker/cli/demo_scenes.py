"""The demo's four scenes, and what they print: at most 60 lines, plain text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from stoker.cli.print_diff import diff_text
from stoker.cli.print_plan import duration
from stoker.cli.style import Style
from stoker.cli.world import CLUSTER_UID, World, WorldNode
from stoker.diff import summarise
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.reconcile import Reach, State, reconcile
from stoker.sim.controlplane import ControlPlane
from stoker.sim.nodes import Weights
from stoker.sim.start_times import StartTimes

__all__ = ["Stage", "keep_running", "play"]

_MODEL = "qwen-0-5b"
_URI = "hf://Qwen/Qwen2.5-0.5B-Instruct"
_REVISION = "7ae557604adf67be50417f59c2c2f167def9a775"
_GIB = 1024**3
_IMAGE = "registry.example/vllm:0.28"
_START_SECONDS = 300

_FLEET = f"""\
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata: {{name: demo}}
spec:
  cluster: {{uid: {CLUSTER_UID}}}
  mode: Correct
  include: [/models/*.yaml, /bundles/*/bundle.yaml]
  defaults: {{namespace: llm}}
  pools:
  - {{name: gpu, nodeSelector: {{matchLabels: {{pool: gpu}}}}}}
"""
_SERVICE = f"""\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {{name: {_MODEL}}}
spec:
  model: {{uri: "{_URI}", revision: {_REVISION}, size: 1Gi}}
  engine: {{type: vllm, image: {_IMAGE}}}
  gpu: {{count: 1}}
  replicas: 2
  placement: {{pools: [{{name: gpu}}]}}
  cache: {{type: HostPath, path: /mnt/models}}
  drain: {{endpointSync: 2s, max: 20s, shutdown: 5s}}
"""
_OTHER = """\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {name: rerank-m3}
spec:
  model:
    uri: "hf://BAAI/bge-reranker-v2-m3"
    revision: 953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e
    size: 2Gi
  engine: {type: vllm, image: registry.example/vllm:0.28}
  gpu: {count: 1}
  replicas: 1
  placement: {pools: [{name: gpu}]}
"""
_BUNDLE = """\
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {name: base}
spec: {render: {manifests: ["namespace.yaml"]}}
"""
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: llm}\n"


class Stage:
    """A world with three nodes, and a stream to tell what happens on it."""

    def __init__(self, folder: Path, out: TextIO, plane: ControlPlane | None = None) -> None:
        self.out = out
        self.folder = folder
        self.real = plane is not None
        if (folder / "world").exists():
            shutil.rmtree(folder / "world")
        (folder / "world").mkdir()
        times = StartTimes(
            image_bytes={_IMAGE: 4 * _GIB},
            weights_bytes={_URI: 6 * _GIB},
            init_seconds=3.0,
            disk_bytes_per_second=3 * _GIB,
        )
        self.world = World(
            folder / "world",
            tuple(WorldNode(f"gpu-{n}", {"pool": "gpu"}, gpus=max(1, n - 1)) for n in (1, 2, 3)),
            fleet_path="clusters/demo/fleet.yaml",
            times=times,
            plane=plane,
            speed=4.0 if plane is not None else 1.0,
        )
        self.world.kubelet.node_states.note(
            "gpu-1", Weights(_URI, _REVISION, 6 * _GIB), complete=True
        )
        for node in ("gpu-1", "gpu-2"):
            self._hold_image(node)
        self.began = self.world.clock.now_ms()
        self.lines = 0

    def _hold_image(self, node: str) -> None:
        images = [{"names": [_IMAGE], "sizeBytes": 4 * _GIB}]
        self.world.cluster.patch(
            ObjectRef("", "Node", "", node),
            "merge",
            {"status": {"images": images}},
            manager="kubelet",
            subresource="status",
        )

    def say(self, text: str) -> None:
        """One line as it is."""
        self.out.write(text.rstrip() + "\n")
        self.out.flush()
        self.lines += 1

    def tell(self, word: str, text: str) -> None:
        """One line with the time since the beginning."""
        seconds = (self.world.clock.now_ms() - self.began) // 1000
        self.say(f"      {seconds // 60:02d}:{seconds % 60:02d} {word:6} {text}")

    def scene(self, number: int, title: str, command: str) -> None:
        """A heading."""
        self.say(f"[{number}/4] {title:40}{command}".rstrip())

    # ------------------------------------------------------------------- looking
    def nodes_of_ready(self) -> set[str]:
        """Nodes with a Ready replica of the model that takes traffic."""
        return self.serving().get(_MODEL, set())

    def serving(self) -> dict[str, set[str]]:
        """By service the nodes with a Ready replica that takes traffic."""
        found: dict[str, set[str]] = {}
        for pod in self.world.ready_pods():
            labels = pod["metadata"].get("labels") or {}
            service = labels.get(names.SERVICE_LABEL)
            if service and names.TRAFFIC_LABEL in labels:
                found.setdefault(str(service), set()).add(str(pod["spec"].get("nodeName")))
        return found

    def deployments(self) -> list[dict[str, Any]]:
        """The model's Deployments."""
        return [
            d
            for d in self.world.objects("apps", "Deployment", "llm")
            if (d["metadata"].get("labels") or {}).get(names.SERVICE_LABEL) == _MODEL
        ]

    def wait(self, check: Callable[[], bool], what: str) -> bool:
        """Let time go by until it holds; say so when it does not."""
        if self.world.until(check, seconds=_START_SECONDS):
            return True
        self.tell("GAVE UP", f"{what} did not happen within {_START_SECONDS} s")
        return False

    def close(self) -> None:
        """End everything."""
        self.world.close()


def play(stage: Stage) -> bool:
    """All four scenes; False when one did not come to its end."""
    kind = "a real Kubernetes control plane" if stage.real else "an in-memory cluster"
    stage.say(
        f"Stoker demo: 3 simulated GPU nodes on {kind}, one Git repository, no GPU needed.\n"
        f"Everything lives in {stage.folder} while it runs."
    )
    fine = all([_first(stage), _change(stage), _repair(stage), _removal(stage)])
    seconds = (stage.world.clock.now_ms() - stage.began) // 1000
    commits = stage.world.status_commits("stoker-status/demo")
    end = "Done" if fine else "NOT done"
    stage.say(f"{end} in {seconds}s of cluster time: 4 scenes, {commits} status commits.")
    stage.say(
        "Try:   make demo ARGS=--keep (then edit and commit)    make demo ARGS=--real    "
        "stoker init my-fleet"
    )
    return fine


def _first(stage: Stage) -> bool:
    stage.scene(1, "You commit a model", f'$ git commit -m "Add {_MODEL}, 2 replicas"')
    world = stage.world
    world.commit(
        f"Add {_MODEL}, 2 replicas",
        {
            "clusters/demo/fleet.yaml": _FLEET,
            f"models/{_MODEL}.yaml": _SERVICE,
            "models/rerank-m3.yaml": _OTHER,
            "bundles/base/bundle.yaml": _BUNDLE,
            "bundles/base/namespace.yaml": _NAMESPACE,
        },
    )
    done = world.one_pass()
    if done is None or done.plan is None:
        failure = world.source_failure or (done.failure if done else None)
        stage.tell("failed", str(failure))
        return False
    for decision in done.plan.decisions:
        places = ", ".join(
            f"{p.node} ({p.readiness.warmth}, about {duration(p.readiness.p50_ms)})"
            for p in decision.placements
            if p.readiness is not None
        )
        stage.tell("plan", f"{decision.ref.name} -> {places}")
    stage.say("                   gpu-1 holds the weights and the image, gpu-2 only the image")
    seen: set[str] = set()

    def both_ready() -> bool:
        for node in sorted(stage.nodes_of_ready() - seen):
            stage.tell("ready", node)
            seen.add(node)
        return len(seen) == 2

    return stage.wait(both_ready, "2 Ready replicas") and _status(stage)


def _change(stage: Stage) -> bool:
    stage.scene(2, "You want 3 replicas, and look first", "$ stoker diff; git commit")
    world = stage.world
    world.commit("3 replicas", {f"models/{_MODEL}.yaml": _SERVICE.replace(": 2\n", ": 3\n")})
    _show_diff(stage)
    return stage.wait(lambda: len(stage.nodes_of_ready()) == 3, "3 Ready replicas") and _told(
        stage, "ready", "3 replicas on " + ", ".join(sorted(stage.nodes_of_ready()))
    )


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


def _repair(stage: Stage) -> bool:
    target = stage.deployments()[0]["metadata"]["name"]
    stage.scene(3, "Somebody scales a replica away", "$ kubectl scale deploy/… --replicas=0")
    world = stage.world
    ref = ObjectRef("apps", "Deployment", "llm", target)
    world.cluster.patch(
        ref, "merge", {"spec": {"replicas": 0}}, manager="kubectl", subresource="scale"
    )
    world.cluster_step()
    if not stage.wait(lambda: _replicas(stage, ref) == 1, "the repair"):
        return False
    stage.tell("repair", f"{target}: spec.replicas 0 -> 1, as Git says")
    return stage.wait(lambda: len(stage.nodes_of_ready()) == 3, "3 Ready replicas") and _told(
        stage, "ready", "3 replicas again; the node kept the weights"
    )


def _replicas(stage: Stage, ref: ObjectRef) -> int:
    return int(stage.world.cluster.get(ref)["spec"]["replicas"])


def _removal(stage: Stage) -> bool:
    stage.scene(4, "You remove the model", f"$ git rm models/{_MODEL}.yaml; git commit")
    world = stage.world
    world.commit(
        f"Remove {_MODEL}\n\nStoker-Allow-Delete: ModelService/llm/{_MODEL}",
        {f"models/{_MODEL}.yaml": None},
    )
    if not stage.wait(lambda: not stage.deployments(), "the removal"):
        return False
    others = [str(d["metadata"]["name"]) for d in world.objects("apps", "Deployment", "llm")]
    stage.tell("pruned", f"everything that {_MODEL} had; untouched: {', '.join(others)}")
    return _status(stage)


def _told(stage: Stage, word: str, text: str) -> bool:
    stage.tell(word, text)
    return True


def _status(stage: Stage) -> bool:
    """Wait for the status commit and tell it."""
    world = stage.world
    world.until(lambda: False, seconds=2)
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
