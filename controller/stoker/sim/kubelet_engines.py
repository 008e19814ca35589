"""Real engines for the pods of a simulated node: which one a pod asks for, and its probes.

In: a pod. Out: a started `Engine` on loopback, and whether the pod's own probes pass against
it. Used by `sim.kubelet`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx

from stoker.engine import serves_token
from stoker.sim.engine import Engine
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.engine_profile import EngineFaults, EngineProfile
from stoker.sim.kubelet_run import RunningEngine
from stoker.sim.start_times import engine_container, flag_value, served_names, weights_of

__all__ = ["Engines", "probe_passes"]

_PROBE_SECONDS = 1.0


class Engines:
    """Starts engines. `faults` goes to every engine started from then on."""

    def __init__(self, *, batch: BatchProfile | None = None, speed: float = 1.0) -> None:
        self.faults = EngineFaults()
        self._batch = batch or BatchProfile()
        self._speed = speed

    def start(self, pod: dict[str, Any], load_seconds: float, *, stuck: bool = False) -> Engine:
        """An engine that answers after `load_seconds` of real time, never if `stuck`."""
        batch = self._batch
        limit = flag_value(pod, "--max-num-seqs")
        if limit.isdigit():
            batch = replace(batch, max_sequences=int(limit))
        profile = EngineProfile(
            models=served_names(pod) or (weights_of(pod)[0],),
            load_seconds=load_seconds * self._speed,
            batch=batch,
            speed=self._speed,
        )
        faults = replace(self.faults, stuck_start=True) if stuck else self.faults
        return Engine(profile, faults=faults).start()

    def passes(self, pod: dict[str, Any], engine: RunningEngine) -> bool:
        """Whether the pod's probes pass against its engine; see `probe_passes`."""
        return probe_passes(pod, engine.address)


def probe_passes(pod: dict[str, Any], address: str) -> bool:
    """Whether startup and readiness probe of the engine's container pass, as far as it has them.

    An exec probe is taken for the token probe that Stoker's templates use, since there is no
    container to run it in.
    """
    container = engine_container(pod)
    probes = [container.get(name) for name in ("startupProbe", "readinessProbe")]
    return all(_passes(probe, address) for probe in probes if probe)


def _passes(probe: dict[str, Any], address: str) -> bool:
    if "exec" in probe:
        return serves_token(address, _PROBE_SECONDS).ok
    if "httpGet" not in probe:
        return True
    path = probe["httpGet"].get("path") or "/"
    try:
        answer = httpx.get(f"http://{address}{path}", timeout=_PROBE_SECONDS, trust_env=False)
    except httpx.HTTPError:
        return False
    return 200 <= answer.status_code < 400
