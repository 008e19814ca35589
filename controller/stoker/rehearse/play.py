"""Plays a scenario on a ground: one driver for all of them.

In: a scenario, a ground, a seed. Out: a Recording. First the fleet is committed and comes to
be Ready, then the load begins; after the warm-up the events happen at their times.
"""

from __future__ import annotations

from stoker.rehearse.actions import Actions
from stoker.rehearse.agenda import Agenda
from stoker.rehearse.ground import Ground
from stoker.rehearse.record import Ending, Recording
from stoker.rehearse.scenario import NAMESPACE, fleet_files, service_spec
from stoker.rehearse.schema import ScenarioFile
from stoker.rehearse.watch import Watcher

__all__ = ["play"]

READY_MS = 1_800_000
"""A fleet whose services are not Ready within this time is not rehearsed."""


def play(scenario: ScenarioFile, ground: Ground, seed: int) -> Recording:
    """Play it to its end; the recording says if it never began."""
    spec = scenario.spec
    services = tuple(service.name for service in spec.services)
    recording = Recording(seed, ground.name, ground.time_scale)
    recording.nodes = [node.name for node in spec.nodes]
    for service in spec.services:
        said = service_spec(spec, service)
        wanted = int(said.get("replicas", 1))
        recording.wanted[service.name] = wanted
        least = (said.get("disruption") or {}).get("minReady")
        recording.floors[service.name] = min(wanted, max(1, wanted - 1) if least is None else least)
    for node in spec.nodes:
        if node.joins is None:
            ground.nodes.add(node)
    uid = ground.cluster.server().cluster_uid
    ground.commit("The fleet", fleet_files(spec, uid, ground.time_scale))
    ground.start_controller()
    watcher = Watcher(ground.cluster, NAMESPACE, services, recording, ground.load.note_endpoints)
    if not _begun(ground, watcher, recording):
        recording.ending = Ending.NEVER_BEGAN
        recording.why = _not_ready(watcher, recording)
        return recording
    _with_load(scenario, ground, watcher, recording)
    return recording


def _begun(ground: Ground, watcher: Watcher, recording: Recording) -> bool:
    """Let time go by until every service is Ready."""
    deadline_ms = ground.clock.now_ms() + READY_MS
    while ground.clock.now_ms() < deadline_ms:
        ground.advance()
        _look(ground, watcher)
        if all(watcher.ready(name) >= count for name, count in recording.wanted.items()):
            return True
    return False


def _look(ground: Ground, watcher: Watcher) -> None:
    """Look, unless the cluster is as it was at the last look."""
    version = ground.version
    if version is None or version != watcher.version:
        watcher.look(ground.clock.now_ms())
        watcher.version = version


def _not_ready(watcher: Watcher, recording: Recording) -> str:
    short = [
        f"{name} {watcher.ready(name)} of {count} Ready"
        for name, count in recording.wanted.items()
        if watcher.ready(name) < count
    ]
    return f"before the load began: {', '.join(short)}"


def _with_load(
    scenario: ScenarioFile, ground: Ground, watcher: Watcher, recording: Recording
) -> None:
    spec, scale = scenario.spec, ground.time_scale
    known_ms = ground.clock.now_ms() + round(max(spec.load.lags) / scale)
    while ground.clock.now_ms() <= known_ms:  # the client furthest behind knows the endpoints
        ground.advance()
        _look(ground, watcher)
    recording.load_ms = ground.clock.now_ms()
    recording.zero_ms = recording.load_ms + round(spec.warm_up / scale)
    recording.end_ms = recording.zero_ms + round(spec.lasts / scale)
    agenda = Agenda()
    actions = Actions(spec, ground, agenda, recording)
    for event in spec.events:
        agenda.at(recording.zero_ms + round(event.at / scale), actions.bound(event))
    for node in spec.nodes:
        if node.joins is not None:
            joins = recording.zero_ms + round(node.joins / scale)
            agenda.at(joins, actions.joining(node))
    ground.load.begin(recording.load_ms)
    while ground.clock.now_ms() < recording.end_ms:
        ground.advance()
        now_ms = ground.clock.now_ms()
        agenda.run(now_ms)
        ground.hear()
        _look(ground, watcher)
    ground.load.stop()
    recording.requests = ground.load.requests
