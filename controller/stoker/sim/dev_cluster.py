"""A control plane with simulated nodes that stays up until it is told to stop.

In: a state folder. Out: a kubeconfig in it. `serve` runs it in this process; the folder's lock
says that it runs, so that another process finds it, waits for it and stops it. Used by
`stoker dev cluster` and, through it, by `make cluster`.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Transport
from stoker.model.ports import Clock
from stoker.sim.controlplane import ControlPlane
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_engines import Engines
from stoker.sim.nodes import create_node, node_manifest

__all__ = ["DevCluster", "NodePool", "play_nodes", "pool_from_text"]

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class NodePool:
    """Nodes to make: `<name>-1` and so on, with the label pool=<name>."""

    name: str
    count: int
    gpus: int
    spot: bool = False


def pool_from_text(text: str) -> NodePool:
    """Read `name=COUNTxGPUS`, `:spot` after it for spot nodes; raises Stalled (usage)."""
    found = re.fullmatch(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?)=(\d+)x(\d+)(:spot)?", text)
    if found is None:
        raise Stalled(
            f"{text!r} is not a pool",
            code="usage",
            hint="NAME=COUNTxGPUS, as in l4=3x1 or a=2x8:spot",
        )
    return NodePool(found[1], int(found[3]), int(found[4]), spot=bool(found[5]))


def play_nodes(
    transport: Transport,
    pools: tuple[NodePool, ...],
    stop: threading.Event,
    *,
    speed: float = 1.0,
    clock: Clock | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Make the pools' nodes and play their kubelet, with real engines, until `stop` is set."""
    clock = clock or SystemClock()
    cluster = Client(transport)
    for pool in pools:
        for number in range(1, pool.count + 1):
            manifest = node_manifest(
                f"{pool.name}-{number}",
                labels={"pool": pool.name},
                gpus=pool.gpus,
                spot=pool.spot,
                now_ms=clock.now_ms(),
            )
            create_node(cluster, manifest)
    if ready is not None:
        ready()
    kubelet = Kubelet(cluster, clock, transport, engines=Engines(), speed=speed)
    kubelet.run(stop)


class DevCluster:
    """One cluster a folder."""

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        self.folder = folder
        self._clock = clock or SystemClock()

    @property
    def kubeconfig_path(self) -> Path:
        """Where its kubeconfig stands while it runs."""
        return self.folder / "kubeconfig"

    @property
    def log_path(self) -> Path:
        """What a cluster in the background prints."""
        return self.folder / "cluster.log"

    def running_pid(self) -> int:
        """The process that runs it, 0 when nobody does."""
        path = self.folder / "lock"
        if not path.exists():
            return 0
        with path.open("r+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read().strip() or 0)
            return 0

    @property
    def ready(self) -> bool:
        """Whether it runs and its nodes stand."""
        return bool(self.running_pid()) and (self.folder / "ready").exists()

    def serve(
        self,
        stop: threading.Event,
        pools: tuple[NodePool, ...] = (),
        *,
        speed: float = 1.0,
        progress: Callable[[str], None] | None = None,
        started: Callable[[ControlPlane], None] | None = None,
    ) -> None:
        """Run it here until `stop` is set; raises Stalled (already-running) if somebody does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock(), ControlPlane(self.folder, progress=progress) as control_plane:

            def ready() -> None:
                (self.folder / "ready").touch()
                if started is not None:
                    started(control_plane)

            transport = HttpsTransport.from_kubeconfig(control_plane.kubeconfig_path)
            try:
                play_nodes(transport, pools, stop, speed=speed, ready=ready)
            finally:
                (self.folder / "ready").unlink(missing_ok=True)
                transport.close()

    def stop(self) -> bool:
        """End it, wherever it runs; False when it didn't."""
        pid = self.running_pid()
        if not pid:
            return False
        os.kill(pid, signal.SIGTERM)
        deadline = self._clock.monotonic() + _STOP_SECONDS
        while self.running_pid() == pid:
            if self._clock.monotonic() > deadline:
                # Its children die with it; what it wrote stays for the next start to replace.
                os.kill(pid, signal.SIGKILL)
                break
            self._clock.wait(0.05)
        return True

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "lock").open("a+", encoding="utf-8") as lock:
            self._take(lock)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def _take(self, lock: TextIO) -> None:
        """Take the lock; somebody who only looks holds it for an instant, so ask a few times."""
        for _ in range(20):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._clock.wait(0.02)
            else:
                return
        raise Stalled(
            f"a cluster runs in {self.folder} already",
            code="already-running",
            hint="stoker dev cluster --stop ends it",
        )
