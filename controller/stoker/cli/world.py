"""A fleet on an embedded cluster: in-memory API server, simulated nodes, a Git repository.

Everything but the cluster is the product itself: the same parts, the same passes. The demo
shows it, stories and crash tests drive it; time is virtual and moves only in `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.cli.controller import build_work
from stoker.cli.session import Session, Target
from stoker.cli.world_news import Open, WorldNews
from stoker.cli.world_repository import WorldRepository
from stoker.clock import SystemClock
from stoker.errors import Finding, StokerError
from stoker.git import GitRepo
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Transport
from stoker.loop.loop import PassRequest, PassVerdict
from stoker.loop.step import PassKind
from stoker.loop.work import Work
from stoker.metrics import Metrics
from stoker.model.ports import Clock, Repo
from stoker.reconcile import Pass, finding_of
from stoker.render import Renderer, RenderMemo
from stoker.report.definitions import definition_manifests
from stoker.sim.clock import VirtualClock
from stoker.sim.controlplane import ControlPlane
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_run import EngineMaker
from stoker.sim.nodes import create_node, node_manifest
from stoker.sim.recalling import Recalling
from stoker.sim.start_times import StartTimes
from stoker.sim.workloads import Workloads

__all__ = ["CLUSTER_UID", "World", "WorldNode"]

CLUSTER_UID = "00000000-0000-4000-8000-000000000001"
STEP_MS = 1000


@dataclass(frozen=True, slots=True)
class WorldNode:
    """One simulated node. `labels` are the pool's."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: {"pool": "gpu"})
    gpus: int = 1
    spot: bool = False


class World:
    """`commit`, `advance`, look. `wrap` and `wrap_repo` let tests put faults between.

    Controllers of one world share a given `renderer`; what it remembers goes with each.
    `engines` makes the engines of pods, `load_probe` asks them; without, nobody serves.
    `ref` is what the controller follows. A world made `beside` another has a repository and
    a controller of its own on the same cluster; time is moved by either.
    """

    def __init__(
        self,
        folder: Path,
        nodes: tuple[WorldNode, ...],
        *,
        fleet_path: str = "clusters/local/fleet.yaml",
        times: StartTimes | None = None,
        wrap: Callable[[Transport], Transport] = Open(),
        wrap_repo: Callable[[Repo], Repo] = lambda repo: repo,
        definitions: bool = True,
        fleet_id: str = "",
        plane: ControlPlane | None = None,
        speed: float = 1.0,
        renderer: Renderer | None = None,
        ref: str = "main",
        beside: World | None = None,
        engines: Callable[[Clock], EngineMaker] | None = None,
        load_probe: Callable[[str], int | None] | None = None,
    ) -> None:
        self._plane = plane
        self.clock: Clock = VirtualClock() if plane is None else SystemClock()
        self.server: Transport = (
            MemoryServer(self.clock)
            if plane is None
            else HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        )
        if beside is not None:
            self.clock, self.server = beside.clock, beside.server
        self.cluster = Client(self.server, user_agent="world")
        self.cluster_uid = self.cluster.server().cluster_uid
        self._folder = folder
        self._fleet_path = fleet_path
        self._fleet_id = fleet_id
        self._wrap = wrap
        self._wrap_repo = wrap_repo
        self._renderer = renderer
        self._load_probe = load_probe or (_no_engine if plane is None else None)
        self._ref = ref
        self._session: Session | None = None
        self._news = WorldNews()
        self._starts = 0
        self.work: Work | None = None
        self.verdict: PassVerdict | None = None
        """What the last pass asked for."""
        self.source_failure: Finding | None = None
        if definitions:
            self._define()
        for node in nodes:
            self.add_node(node)
        self.workloads = None
        if isinstance(self.server, MemoryServer):
            self.workloads = Workloads(self.cluster, self.server, version_of=self.server.version_of)
        watching: Client = self.cluster
        if isinstance(self.server, MemoryServer):
            watching = Recalling(self.server, self.server.version_of, user_agent="world")
        self.kubelet = Kubelet(
            watching,
            self.clock,
            self.server,
            engines=None if engines is None else engines(self.clock),
            times=times or StartTimes(),
            speed=speed,
        )
        if beside is not None:
            self.workloads, self.kubelet = beside.workloads, beside.kubelet
        self._due_ms: int | None = None
        self._repository = WorldRepository.made(folder)

    # ------------------------------------------------------------------ cluster
    def add_node(self, node: WorldNode) -> None:
        """A node joins."""
        manifest = node_manifest(
            node.name,
            labels=node.labels,
            gpus=node.gpus,
            spot=node.spot,
            now_ms=self.clock.now_ms(),
        )
        create_node(self.cluster, manifest)

    def objects(self, group: str, kind: str, namespace: str = "") -> tuple[dict[str, Any], ...]:
        """Live objects of a kind, sorted by name."""
        found = self.cluster.list(group, kind, namespace).items
        return tuple(sorted(found, key=lambda item: str(item["metadata"]["name"])))

    def ready_pods(self, namespace: str = "llm") -> tuple[dict[str, Any], ...]:
        """Pods with the Ready condition."""
        return tuple(
            pod
            for pod in self.objects("", "Pod", namespace)
            if any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in (pod.get("status") or {}).get("conditions") or ()
            )
        )

    def _define(self) -> None:
        for body in definition_manifests():
            self.cluster.apply(body, manager="install")

    # --------------------------------------------------------------- repository
    @property
    def work_tree(self) -> Path:
        """The folder that people edit and commit in."""
        return self._repository.work_tree

    @property
    def bare(self) -> Path:
        """The repository that the controller follows."""
        return self._repository.bare

    def commit(self, message: str, files: Mapping[str, str | None]) -> str:
        """Write (None deletes), commit and push; gives the commit id.

        CLUSTER_UID in a text stands for this cluster's.
        """
        uid = self.cluster_uid
        texts = {
            path: None if text is None else text.replace(CLUSTER_UID, uid)
            for path, text in files.items()
        }
        return self._repository.commit(message, texts)

    def commit_all(self, message: str) -> str:
        """Commit whatever stands in the work tree, and push."""
        return self._repository.commit(message, {})

    def status_file(self, path: str = "status.yaml", branch: str = "stoker-status/local") -> str:
        """A file of the status branch; empty when there is none."""
        return self._repository.show(f"refs/heads/{branch}:{path}")

    def status_commits(self, branch: str = "stoker-status/local") -> int:
        """How many commits the status branch has."""
        return self._repository.count(f"refs/heads/{branch}")

    # --------------------------------------------------------------- controller
    def start_controller(self) -> None:
        """A fresh controller process: nothing is remembered but what cluster and Git hold."""
        self.stop_controller()
        self._starts += 1
        repo = GitRepo(
            str(self.bare),
            self._ref,
            self._folder / f"state-{self._starts}",
            clock=self.clock,
            allow_file=True,
        )
        transport, self._news = self._wrap(self.server), WorldNews()
        if self._renderer is not None:
            self._renderer.memo = RenderMemo()
        self._session = Session(
            self._wrap_repo(repo),  # type: ignore[arg-type]
            Target(fleet_path=self._fleet_path, fleet_id=self._fleet_id),
            clock=self.clock,
            cluster=Client(transport, user_agent="stoker"),
            render_workers=1,
            shared_renderer=self._renderer,
            load_probe=self._load_probe,
        )
        self._session.__enter__()

    def stop_controller(self) -> None:
        """End its children; the cluster keeps everything."""
        if self._session is not None:
            self._session.__exit__(None, None, None)
        self._session, self.work = None, None

    def one_pass(self) -> Pass | None:
        """Fetch, list everything again, run one pass, publish what is due.

        None when there is no fleet yet and the source fails: `source_failure` says why.
        """
        if self._session is None:
            self.start_controller()
        session = self._session
        assert session is not None
        revision, finding = None, None
        try:
            revision = session.repo.fetch()
        except StokerError as error:
            finding = finding_of(error)
        self.source_failure = finding
        if self.work is None:
            if revision is None:
                return None
            try:
                self.work = build_work(session, revision, Metrics())
            except StokerError as error:
                self.source_failure = finding_of(error)
                return None
        self.work.parts.observer.refresh(self._news.unwritten(self.server, self._wrap))
        self.verdict = self.work.run(PassRequest(PassKind.FULL, revision, finding))
        self.work.publisher.turn()
        return self.work.last

    def cluster_step(self) -> None:
        """The cluster's own controllers and kubelets act, at this instant."""
        now = self.clock.now_ms()
        if self.workloads is None:
            self._due_ms = self.kubelet.step(now)
            return
        for _ in range(20):
            writes = self.workloads.step(now)
            self._due_ms = self.kubelet.step(now)
            if not writes:
                return

    @property
    def is_busy(self) -> bool:
        """Whether a simulated pod is still on its way to something."""
        return self._due_ms is not None

    @property
    def due_ms(self) -> int | None:
        """When a simulated pod is where it is on its way to; None for none."""
        return self._due_ms

    def advance(self, seconds: float, *, passes: bool = True) -> None:
        """Let time go by, second by second, with a pass after each."""
        for _ in range(round(seconds * 1000 / STEP_MS)):
            self.clock.wait(STEP_MS / 1000)
            self.cluster_step()
            if passes:
                self.one_pass()

    def settle(self, *, seconds: int = 900, quiet: int = 5) -> int:
        """Advance until nothing was written for `quiet` seconds; gives the seconds it took.

        Raises TimeoutError when the fleet does not come to rest within `seconds`.
        """
        server = self.memory
        still = 0
        for second in range(seconds):
            before = server.resource_version
            self.advance(1)
            resting = server.resource_version == before and not self.is_busy
            still = still + 1 if resting else 0
            if still >= quiet:
                return second + 1
        raise TimeoutError(f"no rest within {seconds} s")

    def until(self, check: Callable[[], bool], *, seconds: int) -> bool:
        """Advance until `check` holds; False when it does not within that time."""
        for _ in range(seconds):
            if check():
                return True
            self.advance(1)
        return check()

    @property
    def memory(self) -> MemoryServer:
        """The in-memory API server; only where there is no control plane."""
        assert isinstance(self.server, MemoryServer)
        return self.server

    def close(self) -> None:
        """End everything."""
        self.stop_controller()
        self.server.close()


def _no_engine(address: str) -> int | None:  # noqa: ARG001 - the signature of load probes
    """Pods of the in-memory cluster have addresses that lead nowhere."""
    return None
