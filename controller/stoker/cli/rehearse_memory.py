"""The in-memory cluster as a ground for rehearsals: virtual time, engines and clients.

The controller is the product's own; a pass runs where its loop would run one: something
changed, a commit came, or the last pass asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stoker.cli.world import World
from stoker.cli.world_repository import Polled
from stoker.rehearse.hand import KubeletHand, Model, start_times
from stoker.rehearse.scenario import FLEET_PATH, service_spec
from stoker.rehearse.schema import ScenarioSpec
from stoker.rehearse.virtual import VirtualEngines, VirtualLoad
from stoker.render import Renderer

__all__ = ["MemoryGround"]

STEP_MS = 250
HEARTBEAT_MS = 10_000
"""How often kubelets say that their nodes live; nothing else happens by itself."""


class MemoryGround:
    """`rehearse.ground.Ground` on a World. Close it."""

    name = "memory"
    time_scale = 1.0

    def __init__(
        self, folder: Path, spec: ScenarioSpec, seed: int, renderer: Renderer | None = None
    ) -> None:
        models = {s.name: Model.of_spec(service_spec(spec, s)) for s in spec.services}
        made: list[VirtualEngines] = []

        def engines(clock: object) -> VirtualEngines:
            made.append(VirtualEngines(clock, spec.load))  # type: ignore[arg-type]
            return made[0]

        self._world = World(
            folder,
            (),
            fleet_path=FLEET_PATH,
            times=start_times(spec.starts, models),
            wrap_repo=Polled,
            engines=engines,
            load_probe=lambda address: made[0].load_of(address),
            renderer=renderer,
        )
        self.cluster, self.clock = self._world.cluster, self._world.clock
        self.nodes = KubeletHand(
            self.cluster,
            self._world.server,
            self.clock,
            self._world.kubelet,
            models,
            plays_lifecycle=True,
        )
        names = [service.name for service in spec.services]
        self.load = VirtualLoad(spec.load, names, seed, made[0])
        self._runs = False
        self._looked_at = self._stepped_at = -1
        self._stepped_ms = 0
        self._look_ms: int | None = None

    def commit(self, message: str, files: Mapping[str, str | None]) -> None:
        """Commit and push; the controller polls at once."""
        self._world.commit(message, files)
        self._looked_at = -1

    def start_controller(self) -> None:
        """A fresh one, which reads everything anew."""
        self._world.start_controller()
        self._runs, self._looked_at = True, -1

    def kill_controller(self) -> None:
        """Its passes end; here nothing of it is ever half done."""
        self._world.stop_controller()
        self._runs = False

    def advance(self) -> None:
        """A quarter of a second goes by: clients, the cluster's own controllers and kubelets, a pass."""
        world = self._world
        world.clock.wait(STEP_MS / 1000)
        now_ms = world.clock.now_ms()
        self.load.advance(now_ms)
        self._turn(now_ms)

    def hear(self) -> None:
        """What was done between two steps is heard when it is done, and endpoints follow: a quarter
        of a second later answers would break off that no controller could have sent elsewhere.
        """
        now_ms = self._world.clock.now_ms()
        if self._world.memory.resource_version != self._looked_at:
            self._turn(now_ms)
            self._step(now_ms)

    def _step(self, now_ms: int) -> None:
        """The cluster's own controllers and kubelets act."""
        self._world.cluster_step()
        self._stepped_at, self._stepped_ms = self._world.memory.resource_version, now_ms

    def _turn(self, now_ms: int) -> None:
        """The cluster acts, then the controller, each where it has anything to do."""
        world = self._world
        if self._moves(now_ms):
            self._step(now_ms)
        due = self._look_ms is not None and now_ms >= self._look_ms
        if self._runs and (due or world.memory.resource_version != self._looked_at):
            world.one_pass()
            self._looked_at = world.memory.resource_version
            wake = None if world.verdict is None else world.verdict.wake_in
            self._look_ms = None if wake is None else now_ms + round(wake * 1000)

    @property
    def version(self) -> int:
        """Changes with every write."""
        return self._world.memory.resource_version

    def _moves(self, now_ms: int) -> bool:
        """Whether nodes or controllers of the cluster have anything to do."""
        if self._stepped_at != self._world.memory.resource_version:
            return True
        due_ms = self._world.due_ms
        return (due_ms is not None and now_ms >= due_ms) or (
            now_ms - self._stepped_ms >= HEARTBEAT_MS
        )

    def close(self) -> None:
        """End everything."""
        self._world.close()
