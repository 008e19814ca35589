"""What the demo plays on: a world with three nodes and two models, and a stream to tell it to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from stoker.cli.demo_clients import NAMESPACE, Clients, DemoEngines
from stoker.cli.world import CLUSTER_UID, World, WorldNode
from stoker.model.plan import ServiceDecision
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stoker.sim.nodes import Weights
from stoker.sim.start_times import StartTimes

__all__ = ["MODEL", "MODEL_FILE", "SERVICE", "Stage"]

MODEL = "qwen-0-5b"
MODEL_FILE = f"models/{MODEL}.yaml"
_URI = "hf://Qwen/Qwen2.5-0.5B-Instruct"
_REVISION = "7ae557604adf67be50417f59c2c2f167def9a775"
_OTHER_URI = "hf://BAAI/bge-reranker-v2-m3"
_OTHER_REVISION = "953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e"
_GIB = 1024**3
_IMAGE = "registry.example/vllm:0.28"
_WAIT_SECONDS = 300
_TURNS = 4
"""Of the clients, in a second."""

_FLEET = f"""\
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata: {{name: demo}}
spec:
  cluster: {{uid: {CLUSTER_UID}}}
  mode: Correct
  include: [/models/*.yaml, /bundles/*/bundle.yaml]
  defaults: {{namespace: {NAMESPACE}, modelService: {{render: {{template: vllm/v2}}}}}}
  pools:
  - {{name: gpu, nodeSelector: {{matchLabels: {{pool: gpu}}}}}}
"""
SERVICE = f"""\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {{name: {MODEL}}}
spec:
  model: {{uri: "{_URI}", revision: {_REVISION}, size: 1Gi}}
  engine: {{type: vllm, image: {_IMAGE}}}
  gpu: {{count: 1}}
  replicas: 2
  placement: {{pools: [{{name: gpu}}]}}
  cache: {{type: HostPath, path: /mnt/models}}
  drain: {{endpointSync: 2s, max: 20s, shutdown: 5s}}
"""
_OTHER = f"""\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {{name: rerank-m3}}
spec:
  model:
    uri: "{_OTHER_URI}"
    revision: {_OTHER_REVISION}
    size: 2Gi
  engine: {{type: vllm, image: {_IMAGE}}}
  gpu: {{count: 1}}
  replicas: 1
  placement: {{pools: [{{name: gpu}}]}}
"""
_BUNDLE = """\
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {name: base}
spec: {render: {manifests: ["namespace.yaml"]}}
"""
_NAMESPACE = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"
_FILES = {
    "clusters/demo/fleet.yaml": _FLEET,
    "models/rerank-m3.yaml": _OTHER,
    "bundles/base/bundle.yaml": _BUNDLE,
    "bundles/base/namespace.yaml": _NAMESPACE,
}


class Stage:
    """A world with three nodes on which rerank-m3 serves, and a stream to tell what happens."""

    def __init__(self, folder: Path, out: TextIO, plane: ControlPlane | None = None) -> None:
        self.out = out
        self.folder = folder
        self.real = plane is not None
        if (folder / "world").exists():
            shutil.rmtree(folder / "world")
        (folder / "world").mkdir()
        engines = DemoEngines(real=self.real)
        self.world = World(
            folder / "world",
            tuple(
                WorldNode(f"gpu-{n}", {"pool": "gpu"}, gpus=max(1, n - 1), spot=n == 1)
                for n in (1, 2, 3)
            ),
            fleet_path="clusters/demo/fleet.yaml",
            times=StartTimes(
                image_bytes={_IMAGE: 4 * _GIB},
                weights_bytes={_URI: 6 * _GIB},
                init_seconds=3.0,
                disk_bytes_per_second=3 * _GIB,
            ),
            plane=plane,
            speed=4.0 if plane is not None else 1.0,
            engines=engines.made,
            load_probe=None if self.real else engines.load_of,
        )
        self.clients = Clients(self.world.cluster, self.world.clock, engines, MODEL)
        self.is_loaded = False
        holds = self.world.kubelet.node_states.note
        holds("gpu-1", Weights(_URI, _REVISION, 6 * _GIB), complete=True)
        holds("gpu-3", Weights(_OTHER_URI, _OTHER_REVISION, 2 * _GIB), complete=True)
        for number in (1, 2, 3):
            self._hold_image(f"gpu-{number}")
        self.began = self.world.clock.now_ms()
        self.lines = 0

    def set_up(self) -> bool:
        """Let the fleet as it was before the demo come to rest; time is told from then on."""
        self.world.commit("The fleet", _FILES)
        fine = self.wait(lambda: "rerank-m3" in self.serving(), "the fleet as it was")
        self.began = self.world.clock.now_ms()
        return fine

    def _hold_image(self, node: str) -> None:
        images = [{"names": [_IMAGE], "sizeBytes": 4 * _GIB}]
        self.world.cluster.patch(
            ObjectRef("", "Node", "", node),
            "merge",
            {"status": {"images": images}},
            manager="kubelet",
            subresource="status",
        )

    # ------------------------------------------------------------------- telling
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
        return self.serving().get(MODEL, set())

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
            for d in self.world.objects("apps", "Deployment", NAMESPACE)
            if (d["metadata"].get("labels") or {}).get(names.SERVICE_LABEL) == MODEL
        ]

    def holds(self, node: str) -> bool:
        """Whether any pod of the model is on that node."""
        return any(
            (pod["metadata"].get("labels") or {}).get(names.SERVICE_LABEL) == MODEL
            and pod["spec"].get("nodeName") == node
            for pod in self.world.objects("", "Pod", NAMESPACE)
        )

    def decision(self) -> ServiceDecision | None:
        """What the last pass decided of the model."""
        done = self.world.work.last if self.world.work is not None else None
        decisions = () if done is None or done.plan is None else done.plan.decisions
        return next((each for each in decisions if each.ref.name == MODEL), None)

    # ---------------------------------------------------------------------- time
    def begin_load(self) -> None:
        """Clients ask from now on."""
        self.clients.begin()
        self.is_loaded = True

    def end_load(self) -> None:
        """They have had enough."""
        self.clients.end()
        self.is_loaded = False

    def second(self) -> None:
        """A second goes by, with a pass at its end."""
        if not self.is_loaded:
            self.world.advance(1)
            return
        for _ in range(_TURNS):
            self.world.clock.wait(1 / _TURNS)
            self.clients.turn()
            self.world.cluster_step()
        self.world.one_pass()
        self.clients.turn()

    def wait(self, check: Callable[[], bool], what: str) -> bool:
        """Let time go by until it holds; say so when it does not."""
        for _ in range(_WAIT_SECONDS):
            if check():
                return True
            self.second()
        self.tell("GAVE UP", f"{what} did not happen within {_WAIT_SECONDS} s")
        return False

    def close(self) -> None:
        """End everything."""
        self.clients.end()
        self.world.kubelet.stop()
        self.world.close()
