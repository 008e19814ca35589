"""The kubelet of simulated nodes: pods bound to them start, become Ready, stop and go.

In: the Cluster port, a clock, durations and faults. Out: pod, node and NodeState status. With
`engines` each engine pod gets a real HTTP engine on loopback and its probes are asked for real;
without, `step(now_ms)` alone plays everything, in virtual time.
"""

from __future__ import annotations

import threading
from typing import Any

from stoker.errors import Retryable, Waiting
from stoker.kube.errors import Forbidden
from stoker.kube.transport import Transport
from stoker.model.ports import Clock, Cluster
from stoker.model.times import rfc3339, to_milliseconds
from stoker.objects import names
from stoker.sim.addresses import HOST_IP, AddressPool
from stoker.sim.kubelet_run import EngineMaker, FaultKind, PodFault, PodRun, Stage, back_off_ms
from stoker.sim.node_agent import NodeAgent
from stoker.sim.nodes import MANAGER, NodeStates, Weights
from stoker.sim.pod_calls import PodCalls
from stoker.sim.pod_status import pod_status
from stoker.sim.pods import is_over, is_ready, restarts_of
from stoker.sim.start_times import (
    StartTimes,
    has_host_path,
    image_of,
    is_engine_pod,
    pre_stop_of,
    shutdown_seconds_of,
)
from stoker.sim.view import POD, is_dying, uid_of

__all__ = ["Kubelet"]

_PROBE_PERIOD_MS = 250
_DEFAULT_GRACE_SECONDS = 30


class Kubelet:
    """Plays the kubelet for every node with the label stoker.dev/simulated=true.

    `transport` is the one under `cluster`, for the last word about a pod.
    `speed` divides every duration of `times` and preStop hooks (10 = ten times as fast); the
    grace period of a deletion is real.
    `faults` may be changed at any time. Not thread-safe: `step` and `run` belong to one thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        transport: Transport,
        *,
        engines: EngineMaker | None = None,
        times: StartTimes | None = None,
        speed: float = 1.0,
        heartbeat_seconds: float = 10.0,
    ) -> None:
        self.faults: list[PodFault] = []
        self.node_states = NodeStates(cluster)
        self._cluster = cluster
        self._clock = clock
        self._calls = PodCalls(transport)
        self._engines = engines
        self._times = times or StartTimes()
        self._speed = speed
        self._node_agent = NodeAgent(cluster, heartbeat_seconds)
        self._runs: dict[str, PodRun] = {}
        self._addresses = AddressPool()

    # ------------------------------------------------------------------ driving

    def step(self, now_ms: int) -> int | None:
        """Bring everything to this time; gives the next instant at which something is due.

        None = nothing before somebody changes a pod. A coarse step still writes the true
        times of what happened in between. Heartbeats are not counted as due.
        """
        nodes = self._node_agent.nodes()
        pods = {
            uid_of(pod): pod
            for pod in self._cluster.list(POD.group, POD.kind).items
            if pod["spec"].get("nodeName") in nodes
        }
        self._node_agent.beat(nodes.values(), now_ms)
        for uid in tuple(self._runs):
            if uid not in pods and not self._node_agent.is_silent(self._runs[uid].node):
                self._forget(self._runs[uid])
        for pod in sorted(pods.values(), key=lambda p: POD.ref(p)):
            try:
                self._advance(pod, now_ms)
            except (Retryable, Waiting, Forbidden):
                continue  # it is gone, or moved under our hands: the next step looks again
        dues = [r.until_ms for r in self._runs.values() if r.until_ms is not None]
        return min(dues, default=None)

    def run(self, stop: threading.Event, *, period_seconds: float = 0.25) -> None:
        """Step until `stop` is set, then kill the engines. An API server that is away is waited for."""
        while not stop.is_set():
            try:
                self.step(self._clock.now_ms())
            except (Retryable, Waiting):
                self._clock.wait(1.0)
            self._clock.wait(period_seconds)
        self.stop()

    def stop(self) -> None:
        """Kill every engine and forget every pod; nothing is written."""
        for run in tuple(self._runs.values()):
            self._forget(run)

    def lose_node(self, node: str) -> None:
        """The machine is gone at once: no heartbeat, no engine, no word about its pods."""
        self._node_agent.lose(node)
        for run in tuple(self._runs.values()):
            if run.node == node:
                self._forget(run)

    def silence(self, node: str, *, silent: bool = True) -> None:
        """Say nothing more of that node and its pods, whose engines go on; or speak again."""
        self._node_agent.silence(node, silent=silent)

    def crash_engines(self, node: str) -> None:
        """Every engine that runs on the node dies; the node itself is well."""
        for run in self._runs.values():
            if run.node == node and run.engine is not None:
                run.engine.crash()

    def engine_address(self, pod_name: str) -> str:
        """Where the real engine of that pod listens, empty without one."""
        for run in self._runs.values():
            if run.ref.name == pod_name and run.engine is not None:
                return run.engine.address
        return ""

    # --------------------------------------------------------------------- pods

    def _advance(self, pod: dict[str, Any], now_ms: int) -> None:
        uid = uid_of(pod)
        run = self._runs.get(uid)
        if is_over(pod):
            return
        if run is None and self._faulty(FaultKind.REFUSED, pod) and not is_ready(pod):
            self._refuse(pod)
            return
        if run is None:
            run = self._admit(pod, now_ms)
            self._runs[uid] = run
            self._report(run, now_ms)
        if is_dying(pod) and run.stage is not Stage.STOPPING:
            self._begin_stop(pod, run, now_ms)
        if run.engine is not None and run.engine.stopped and run.stage is not Stage.STOPPING:
            self._crash(run, 137, now_ms)
            self._report(run, now_ms)
        if run.stage is Stage.READY and not is_ready(pod):
            self._report(run, now_ms)  # somebody else took the node for dead meanwhile
        while run.until_ms is not None and run.until_ms <= now_ms:
            due_ms = run.until_ms
            if run.stage is Stage.STOPPING:
                self._finish_stop(run, now_ms)
                return
            self._next_stage(pod, run, due_ms, now_ms)
            self._report(run, due_ms)

    def _admit(self, pod: dict[str, Any], now_ms: int) -> PodRun:
        """A pod seen for the first time; one that was Ready under a kubelet before stays so."""
        run = PodRun(
            ref=POD.ref(pod),
            uid=uid_of(pod),
            node=pod["spec"]["nodeName"],
            stage=Stage.PULLING,
            until_ms=now_ms,
        )
        if is_ready(pod) and self._engines is None:
            status = pod["status"]
            container = (status.get("containerStatuses") or [{}])[0]
            running = (container.get("state") or {}).get("running") or {}
            run.stage, run.until_ms = Stage.READY, None
            run.ip = self._addresses.take(run.uid, wanted=str(status.get("podIP") or ""))
            run.running_since_ms = to_milliseconds(running.get("startedAt") or rfc3339(now_ms))
            run.restarts = restarts_of(pod)
            return run
        image = image_of(pod)
        held = self._node_agent.holds_image(run.node, image)
        run.until_ms = now_ms + (0 if held else self._ms(self._times.pull_seconds(image)))
        return run

    def _refuse(self, pod: dict[str, Any]) -> None:
        """Fail it for good, as a kubelet does that cannot allocate its devices."""
        status = {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": "Allocate failed due to no healthy devices present, which is unexpected",
        }
        body = {"metadata": {"uid": uid_of(pod)}, "status": status}
        self._cluster.patch(POD.ref(pod), "merge", body, manager=MANAGER, subresource="status")

    def _next_stage(self, pod: dict[str, Any], run: PodRun, due_ms: int, now_ms: int) -> None:
        match run.stage:
            case Stage.PULLING | Stage.PULL_BACK_OFF:
                self._pulled(pod, run, due_ms)
            case Stage.CRASH_BACK_OFF:
                self._start(pod, run, due_ms)
            case Stage.LOADING:
                self._loaded(pod, run, due_ms)
            case Stage.INIT:
                self._initialised(pod, run, due_ms)
            case Stage.PROBING:
                self._probe(pod, run, now_ms)
            case Stage.READY | Stage.STOPPING:
                run.until_ms = None

    def _pulled(self, pod: dict[str, Any], run: PodRun, due_ms: int) -> None:
        image = image_of(pod)
        if self._faulty(FaultKind.IMAGE_PULL, pod):
            run.pull_failures += 1
            run.stage = Stage.PULL_BACK_OFF
            run.message = f'Back-off pulling image "{image}"'
            run.until_ms = due_ms + self._ms(back_off_ms(run.pull_failures) / 1000)
            return
        run.pull_failures = 0
        self._node_agent.add_image(run.node, image, self._times.size_of_image(image))
        self._start(pod, run, due_ms)

    def _start(self, pod: dict[str, Any], run: PodRun, due_ms: int) -> None:
        """Containers run: weights come from disk or from afar."""
        run.running_since_ms = due_ms
        run.ip = run.ip or self._addresses.take(run.uid)
        if not is_engine_pod(pod):
            run.stage = Stage.INIT
            run.until_ms = due_ms + self._ms(self._times.plain_seconds)
            return
        weights = self._times.weights(pod)
        held = self.node_states.holds(run.node, weights)
        seconds = self._times.weights_seconds(weights, held=held)
        if not held and has_host_path(pod):
            self.node_states.note(run.node, weights, complete=False)
        run.stage = Stage.LOADING
        run.until_ms = due_ms + self._ms(seconds)
        if self._engines is not None:
            load_ms = self._ms(seconds + self._times.engine_seconds(pod))
            stuck = self._faulty(FaultKind.STUCK_START, pod)
            run.engine = self._engines.start(pod, load_ms / 1000, stuck=stuck)
            self._say_address(run)

    def _loaded(self, pod: dict[str, Any], run: PodRun, due_ms: int) -> None:
        if has_host_path(pod):
            self._keep_weights(run.node, self._times.weights(pod))
        run.stage = Stage.INIT
        run.until_ms = due_ms + self._ms(self._times.engine_seconds(pod))

    def _keep_weights(self, node: str, weights: Weights) -> None:
        if not self.node_states.holds(node, weights):
            self.node_states.note(node, weights, complete=True)

    def _initialised(self, pod: dict[str, Any], run: PodRun, due_ms: int) -> None:
        if self._faulty(FaultKind.CRASH_LOOP, pod):
            self._crash(run, 1, due_ms)
        elif run.engine is not None:
            run.stage, run.until_ms = Stage.PROBING, due_ms
        elif self._faulty(FaultKind.STUCK_START, pod):
            run.until_ms = None
        else:
            run.stage, run.until_ms = Stage.READY, None

    def _probe(self, pod: dict[str, Any], run: PodRun, now_ms: int) -> None:
        assert run.engine is not None
        assert self._engines is not None
        if self._engines.passes(pod, run.engine):
            run.stage, run.until_ms = Stage.READY, None
        else:
            run.until_ms = now_ms + _PROBE_PERIOD_MS

    def _crash(self, run: PodRun, exit_code: int, now_ms: int) -> None:
        """The container ended by itself and is restarted after a growing wait."""
        if run.engine is not None:
            run.engine.crash()
            run.engine = None
        run.restarts += 1
        run.exit_code, run.ended_ms = exit_code, now_ms
        run.stage = Stage.CRASH_BACK_OFF
        run.message = f"back-off {back_off_ms(run.restarts) // 1000}s restarting failed container"
        run.until_ms = now_ms + self._ms(back_off_ms(run.restarts) / 1000)

    # ---------------------------------------------------------------- departure

    def _begin_stop(self, pod: dict[str, Any], run: PodRun, now_ms: int) -> None:
        """The pod's deletion was asked for: preStop, SIGTERM, at the deadline SIGKILL."""
        meta = pod["metadata"]
        grace = meta.get("deletionGracePeriodSeconds")
        if grace is None:
            grace = pod["spec"].get("terminationGracePeriodSeconds") or _DEFAULT_GRACE_SECONDS
        run.deadline_ms = now_ms + int(grace) * 1000
        hook = pre_stop_of(pod)
        run.drain_until_ms = run.deadline_ms
        seconds = 0.0
        if run.stage in {Stage.LOADING, Stage.INIT, Stage.PROBING, Stage.READY}:
            # A real engine says itself when it has stopped.
            stop = self._times.stop_seconds if run.engine is None else 0.0
            seconds = hook.wait_seconds + stop
            longest_ms = self._ms(hook.wait_seconds + hook.longest_drain_seconds)
            run.drain_until_ms = min(run.deadline_ms, now_ms + longest_ms)
        run.stage = Stage.STOPPING
        run.until_ms = min(run.deadline_ms, now_ms + self._ms(seconds))

    def _finish_stop(self, run: PodRun, now_ms: int) -> None:
        engine = run.engine
        if engine is not None and not engine.stopped and now_ms < run.deadline_ms:
            drained = engine.in_flight == 0 or now_ms >= run.drain_until_ms
            if drained and not run.stop_sent:
                run.stop_sent = True
                engine.begin_shutdown(shutdown_seconds_of(self._cluster.get(run.ref)))
            run.until_ms = min(run.deadline_ms, now_ms + _PROBE_PERIOD_MS)
            return
        self._calls.force_delete(run.ref, run.uid)
        self._forget(run)

    def _forget(self, run: PodRun) -> None:
        if run.engine is not None:
            run.engine.crash()
        self._addresses.give_back(run.uid)
        self._runs.pop(run.uid, None)

    # ------------------------------------------------------------------ writing

    def _report(self, run: PodRun, at_ms: int) -> None:
        if run.stage is Stage.STOPPING or uid_of(fresh := self._cluster.get(run.ref)) != run.uid:
            return
        status = pod_status(fresh, run.state(), ip=run.ip, host_ip=HOST_IP, now_ms=at_ms)
        if all((fresh.get("status") or {}).get(key) == value for key, value in status.items()):
            return
        body = {"metadata": {"uid": run.uid}, "status": status}
        self._cluster.patch(run.ref, "merge", body, manager=MANAGER, subresource="status")

    def _say_address(self, run: PodRun) -> None:
        assert run.engine is not None
        mark = {names.ADDRESS: run.engine.address}
        body = {"metadata": {"uid": run.uid, "annotations": mark}}
        self._cluster.patch(run.ref, "merge", body, manager=MANAGER)

    def _faulty(self, kind: FaultKind, pod: dict[str, Any]) -> bool:
        return any(f.kind is kind and f.hits(pod, image_of(pod)) for f in self.faults)

    def _ms(self, seconds: float) -> int:
        return round(seconds * 1000 / self._speed)
