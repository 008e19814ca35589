"""The events of a scenario as deeds: on the cluster, on the nodes, in the repository.

In: an event and the ground. Out: what is done now, and notes on the agenda for what follows
(the end of a noticed node, the next try of an eviction, the return of a taint).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.kube.errors import NotFound
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.rehearse.agenda import Agenda
from stoker.rehearse.ground import Ground
from stoker.rehearse.record import Happening, NodeEnd, Recording
from stoker.rehearse.scenario import merged, service_file, service_spec
from stoker.rehearse.schema import NodeBlock, ScenarioSpec
from stoker.rehearse.schema_events import (
    BreakBlock,
    ChangeBlock,
    EventBlock,
    EvictBlock,
    FlapBlock,
    KillBlock,
    LoseBlock,
    NodesBlock,
    NoticeBlock,
    TaintBlock,
)
from stoker.sim.view import NODE, POD, is_dying

__all__ = ["Actions"]

PERSON = "kubectl"
EVICT_AGAIN_MS = 5_000
"""kubectl drain and Karpenter both ask again every few seconds."""
KARPENTER_TAINT = "karpenter.sh/disrupted"


class Actions:
    """Does what events say. Times of the scenario are divided by the ground's time scale."""

    def __init__(
        self, spec: ScenarioSpec, ground: Ground, agenda: Agenda, recording: Recording
    ) -> None:
        self._spec = spec
        self._ground = ground
        self._agenda = agenda
        self._recording = recording
        self._services = {s.name: service_spec(spec, s) for s in spec.services}

    def bound(self, event: EventBlock) -> Callable[[], None]:
        """The event as a deed."""
        block: Any = getattr(event, _FIELDS.get(event.what, event.what))
        deeds: dict[type[Any], Callable[[Any], None]] = {
            NoticeBlock: self._notice,
            LoseBlock: self._lose,
            EvictBlock: self._evict,
            TaintBlock: self._taint,
            FlapBlock: self._flap,
            BreakBlock: self._break,
            ChangeBlock: self._change,
            KillBlock: self._kill,
            NodesBlock: self._drain,
        }
        deed = deeds[type(block)]
        return lambda: deed(block)

    def joining(self, node: NodeBlock) -> Callable[[], None]:
        """A node of the scenario that joins later."""

        def join() -> None:
            self._say(f"{node.name} joins")
            self._ground.nodes.add(node)

        return join

    def _notice(self, block: NoticeBlock) -> None:
        now_ms, last = self._now_ms, max(1, len(block.nodes) - 1)
        for number, node in enumerate(block.nodes):
            at_ms = now_ms + self._scaled(block.within) * number // last
            self._agenda.at(at_ms, self._noticing(node, block))

    def _noticing(self, node: str, block: NoticeBlock) -> Callable[[], None]:
        def give() -> None:
            said_ms = self._now_ms
            end_ms = said_ms + self._scaled(block.lead)
            self._say(f"notice {node}: {block.lead // 1000} s")
            self._recording.ends.append(NodeEnd(node, said_ms, end_ms))
            self._ground.nodes.give_notice(node, block.notice, said_ms, end_ms)
            self._agenda.at(end_ms, lambda: self._end(node))

        return give

    def _end(self, node: str) -> None:
        """The machine is taken, and the cloud's controller deletes its Node."""
        self._say(f"{node} is gone")
        self._ground.nodes.lose(node)
        self._delete_node(node)

    def _delete_node(self, node: str) -> None:
        ref = _node(node)
        try:
            uid = self._ground.cluster.get(ref)["metadata"]["uid"]
            self._ground.cluster.delete(ref, uid=uid)
        except NotFound:
            return

    def _lose(self, block: LoseBlock) -> None:
        now_ms = self._now_ms
        for node in block.nodes:
            self._say(f"{node} dies")
            self._recording.ends.append(NodeEnd(node, now_ms, now_ms))
            self._ground.nodes.lose(node)
            known_ms = now_ms + self._scaled(block.known_after)
            self._agenda.at(known_ms, _later(self._delete_node, node))

    def _drain(self, block: NodesBlock) -> None:
        for node in block.nodes:
            self._say(f"kubectl drain {node}")
            self._patch_node(node, {"spec": {"unschedulable": True}})
            self._evict_pods(node)

    def _evict(self, block: EvictBlock) -> None:
        end_ms = self._now_ms + self._scaled(block.lead)
        for node in block.nodes:
            self._say(f"Karpenter evicts {node}")
            self._recording.ends.append(NodeEnd(node, self._now_ms, end_ms))
            self._set_taint(node, KARPENTER_TAINT, "NoSchedule")
            self._evict_pods(node)
            self._agenda.at(end_ms, _later(self._end, node))

    def _evict_pods(self, node: str) -> None:
        """Ask for every pod of the node to go; again later for those that may not go yet."""
        left = 0
        for pod in self._ground.cluster.list(POD.group, POD.kind).items:
            if pod["spec"].get("nodeName") != node:
                continue
            left += 1
            if not is_dying(pod):
                self._ground.nodes.evict(POD.ref(pod))
        if left:
            again_ms = self._now_ms + self._scaled(EVICT_AGAIN_MS)
            self._agenda.at(again_ms, _later(self._evict_pods, node))

    def _taint(self, block: TaintBlock) -> None:
        for node in block.nodes:
            self._say(f"taint {node} {block.key}:{block.effect}")
            self._set_taint(node, block.key, block.effect)
            if block.lasts is not None:
                off_ms = self._now_ms + self._scaled(block.lasts)
                self._agenda.at(off_ms, self._untainting(node, block.key))

    def _untainting(self, node: str, key: str) -> Callable[[], None]:
        def take_off() -> None:
            self._say(f"untaint {node} {key}")
            kept = [t for t in self._taints(node) if t["key"] != key]
            self._patch_node(node, {"spec": {"taints": kept}})

        return take_off

    def _set_taint(self, node: str, key: str, effect: str) -> None:
        taint = {"key": key, "effect": effect, "timeAdded": rfc3339(self._now_ms)}
        others = [t for t in self._taints(node) if t["key"] != key]
        self._patch_node(node, {"spec": {"taints": [*others, taint]}})

    def _taints(self, node: str) -> list[dict[str, Any]]:
        try:
            found = self._ground.cluster.get(_node(node))
        except NotFound:
            return []
        return list((found.get("spec") or {}).get("taints") or ())

    def _flap(self, block: FlapBlock) -> None:
        at_ms = self._now_ms
        for _ in range(block.times):
            for node in block.nodes:
                self._agenda.at(at_ms, self._said(f"{node} falls silent", "silence", node))
                back_ms = at_ms + self._scaled(block.silent)
                self._agenda.at(back_ms, self._said(f"{node} is back", "speak", node))
            at_ms += self._scaled(block.silent + block.well)

    def _break(self, block: BreakBlock) -> None:
        for node in block.nodes:
            self._say(f"{node} breaks: starts crash")
            self._ground.nodes.break_starts(node, running=block.engines == "All")

    def _change(self, block: ChangeBlock) -> None:
        self._say(f"commit: {block.service}")
        spec = merged(self._services[block.service], block.patch)
        self._services[block.service] = spec
        if block.engines == "Crash":
            self._ground.nodes.crash_image(str(spec["engine"]["image"]))
        path, text = service_file(block.service, spec, self._ground.time_scale)
        self._ground.commit(f"Change {block.service}", {path: text})
        self._recording.wanted[block.service] = int(spec.get("replicas", 1))

    def _kill(self, block: KillBlock) -> None:
        self._say("the controller is killed")
        self._ground.kill_controller()

        def start() -> None:
            self._say("a controller starts")
            self._ground.start_controller()

        self._agenda.at(self._now_ms + self._scaled(block.down), start)

    def _said(self, text: str, deed: str, node: str) -> Callable[[], None]:
        def act() -> None:
            self._say(text)
            getattr(self._ground.nodes, deed)(node)

        return act

    def _patch_node(self, node: str, body: dict[str, Any]) -> None:
        try:
            self._ground.cluster.patch(_node(node), "merge", body, manager=PERSON)
        except NotFound:
            return

    def _say(self, text: str) -> None:
        self._recording.happenings.append(Happening(self._now_ms, text))

    @property
    def _now_ms(self) -> int:
        return self._ground.clock.now_ms()

    def _scaled(self, milliseconds: int) -> int:
        return round(milliseconds / self._ground.time_scale)


_FIELDS = {"break": "break_nodes", "killController": "kill_controller"}


def _node(name: str) -> ObjectRef:
    return ObjectRef(NODE.group, NODE.kind, "", name)


def _later(deed: Callable[[str], None], node: str) -> Callable[[], None]:
    return lambda: deed(node)
