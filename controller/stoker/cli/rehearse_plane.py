"""A real control plane as a ground for rehearsals: real time, a controller process, HTTP.

Nodes and engines are simulated, everything else is real: API server, scheduler, controllers,
the endpoint controller, `stoker run` with its lease, requests over loopback. All times of the
scenario, and the drain times of its services, are divided by the time scale.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from stoker.cli.world_repository import WorldRepository
from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.rehearse.hand import KubeletHand, Model, start_times
from stoker.rehearse.http_load import HttpLoad, token_seconds
from stoker.rehearse.scenario import FLEET_PATH, service_spec
from stoker.rehearse.schema import ScenarioSpec
from stoker.report.definitions import definition_manifests
from stoker.sim.controlplane import ControlPlane
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_engines import Engines

__all__ = ["PlaneGround"]

STEP_SECONDS = 0.2
STOP_SECONDS = 10.0


class PlaneGround:
    """`rehearse.ground.Ground` on a running ControlPlane that nobody else uses. Close it."""

    name = "controlplane"
    version = None

    def __init__(
        self, folder: Path, spec: ScenarioSpec, seed: int, plane: ControlPlane, time_scale: float
    ) -> None:
        self.time_scale = time_scale
        self.clock = SystemClock()
        self._folder = folder
        self._plane = plane
        self._transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        self.cluster = Client(self._transport, user_agent="kubectl")
        for manifest in definition_manifests():
            self.cluster.apply(manifest, manager="install")
        self._repository = WorldRepository.made(folder)
        models = {s.name: Model.of_spec(service_spec(spec, s)) for s in spec.services}
        batch = BatchProfile(
            max_sequences=spec.load.seats,
            kv_blocks=1_000_000,
            step_seconds=token_seconds(time_scale),
            sequence_seconds=0.0,
            prefill_tokens_per_second=1_000_000.0,
        )
        self._kubelet = Kubelet(
            self.cluster,
            self.clock,
            self._transport,
            engines=Engines(batch=batch),
            times=start_times(spec.starts, models),
            speed=time_scale,
        )
        self.nodes = KubeletHand(
            self.cluster, self._transport, self.clock, self._kubelet, models, plays_lifecycle=False
        )
        names = [service.name for service in spec.services]
        self.load = HttpLoad(spec.load, names, seed, self.clock, time_scale=time_scale)
        self._controller: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def commit(self, message: str, files: Mapping[str, str | None]) -> None:
        """Commit and push; the controller polls every second."""
        self._repository.commit(message, files)

    def start_controller(self) -> None:
        """A process of its own, with an empty state folder; its log lies beside it."""
        self._starts += 1
        state = self._folder / f"controller-{self._starts}"
        state.mkdir()
        command = [
            *(sys.executable, "-m", "stoker", "run", "--log-format", "json"),
            *("--repo", f"file://{self._repository.bare}", "--allow-file", "--ref", "main"),
            *("--fleet", FLEET_PATH, "--poll-interval", "1s", "--listen", ""),
            *("--kubeconfig", str(self._plane.kubeconfig_path), "--render-workers", "1"),
            *("--state-folder", str(state / "state")),
        ]
        with (state / "controller.log").open("wb") as log:
            self._controller = subprocess.Popen(
                command,
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(state)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill_controller(self) -> None:
        """SIGKILL."""
        if self._controller is not None:
            self._controller.kill()
            self._controller.wait()
        self._controller = None

    def advance(self) -> None:
        """Wait a little, then let the kubelets act."""
        self.clock.wait(STEP_SECONDS)
        self._kubelet.step(self.clock.now_ms())

    def hear(self) -> None:
        """The controller watches by itself."""

    def close(self) -> None:
        """End everything but the control plane."""
        self.load.stop()
        if self._controller is not None:
            self._controller.send_signal(signal.SIGTERM)
            try:
                self._controller.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill_controller()
        self._kubelet.stop()
        self._transport.close()
