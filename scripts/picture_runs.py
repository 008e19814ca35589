"""Draw what decisions look like: ready-in, the choice of nodes, one notice. Used by picture.py.

Each picture is drawn from a run of the product on the in-memory cluster: what a node is said to
take, which rule turned it away, when a replica served and drained is read from its plans and
from what its pods did. Deterministic, so that a test can draw them again.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from stoker.cli.print_plan import duration
from stoker.cli.rehearse_memory import MemoryGround
from stoker.cli.svg import svg_frame
from stoker.cli.world import CLUSTER_UID, World
from stoker.decide import decide
from stoker.decide.ready_in import (
    CONTAINER_START_MS,
    DOWNLOAD_BYTES_PER_SECOND,
    IMAGE_BYTES,
    IMAGE_BYTES_PER_SECOND,
    LOCAL_BYTES_PER_SECOND,
    SCHEDULE_MS,
    Facts,
    fetch_ms,
)
from stoker.log import configure
from stoker.model.fleet import ModelService
from stoker.model.history import History
from stoker.model.plan import Attempt, Readiness, ServiceDecision
from stoker.model.refs import ObjectRef
from stoker.model.snapshot import Node
from stoker.reconcile import Pass
from stoker.rehearse.play import play
from stoker.rehearse.record import PodLife, PodState, Recording
from stoker.rehearse.schema import ScenarioFile
from stoker.sim.nodes import Weights, create_node, node_manifest
from stoker.sim.start_times import StartTimes

__all__ = ["notice", "placement", "readiness"]

GREY, BLUE, GREEN, YELLOW, RED, PALE = (
    "#8a93a3", "#82aaff", "#7ec97e", "#e3c069", "#e58080", "#d9dee7",
)  # fmt: skip
GIB = 1024**3
IMAGE = "registry.example/vllm:0.28"
URI, REVISION = "hf://Qwen/Qwen2.5-7B-Instruct", "a09a35458c702b33eeacc393d103063234e8bc28"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: llm}\n"
BUNDLE = """\
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {name: base}
spec: {render: {manifests: [namespace.yaml]}}
"""


# ------------------------------------------------------------------------------ a run
@dataclass(frozen=True, slots=True)
class Machine:
    """A simulated node and what it holds."""

    name: str
    pool: str = "gpu"
    gpus: int = 1
    image: bool = False
    weights: bool = False


@contextmanager
def fleet(machines: tuple[Machine, ...], spec: str, fields: str) -> Iterator[World]:
    """A fleet with one service, `qwen-7b`, committed and not yet worked on."""
    configure("error")
    times = StartTimes(
        image_bytes={IMAGE: IMAGE_BYTES},
        weights_bytes={URI: 15 * GIB},
        pull_bytes_per_second=IMAGE_BYTES_PER_SECOND,
        download_bytes_per_second=DOWNLOAD_BYTES_PER_SECOND,
        disk_bytes_per_second=LOCAL_BYTES_PER_SECOND,
    )
    with (
        tempfile.TemporaryDirectory(prefix="stoker-picture-") as folder,
        closing(World(Path(folder), (), times=times)) as world,
    ):
        for machine in machines:
            _join(world, machine)
        world.commit("The fleet", _files(spec, fields))
        yield world


def _join(world: World, machine: Machine) -> None:
    manifest = node_manifest(machine.name, labels={"pool": machine.pool}, gpus=machine.gpus)
    create_node(world.cluster, manifest)
    if machine.image:
        images = [{"names": [IMAGE], "sizeBytes": IMAGE_BYTES}]
        change(world, "Node", machine.name, {"status": {"images": images}}, "status")
    if machine.weights:
        held = Weights(URI, REVISION, 15 * GIB)
        world.kubelet.node_states.note(machine.name, held, complete=True)


def change(world: World, kind: str, name: str, body: dict[str, Any], subresource: str = "") -> None:
    """Merge into an object without a namespace."""
    ref = ObjectRef("", kind, "", name)
    world.cluster.patch(ref, "merge", body, manager="kubelet", subresource=subresource)


def _files(spec: str, fields: str) -> dict[str, str | None]:
    return {
        "clusters/local/fleet.yaml": (
            "apiVersion: stoker.dev/v1alpha1\nkind: Fleet\nmetadata: {name: local}\nspec:\n"
            f"  cluster: {{uid: {CLUSTER_UID}}}\n  mode: Correct\n"
            "  include: [/models/*.yaml, /bundles/*/bundle.yaml]\n"
            f"  defaults: {{namespace: llm}}\n{fields}"
        ),
        "models/qwen-7b.yaml": service(spec),
        "bundles/base/bundle.yaml": BUNDLE,
        "bundles/base/namespace.yaml": NAMESPACE,
    }


def service(spec: str) -> str:
    """The file of qwen-7b with these further fields."""
    return (
        "apiVersion: stoker.dev/v1alpha1\nkind: ModelService\nmetadata: {name: qwen-7b}\nspec:\n"
        f'  model: {{uri: "{URI}", revision: {REVISION}, size: 15Gi}}\n'
        f"  engine: {{type: vllm, image: {IMAGE}}}\n  gpu: {{count: 1}}\n"
        "  cache: {type: HostPath, path: /mnt/nvme, rootDisk: Refuse}\n"
        f"{spec}"
    )


def one_pass(world: World) -> tuple[Pass, ServiceDecision]:
    """A pass, and what it decided of the service."""
    done = world.one_pass()
    if done is None or done.plan is None:
        raise SystemExit(f"no plan: {world.source_failure or done}")
    return done, done.plan.decisions[0]


def starts_of(decision: ServiceDecision) -> list[Attempt]:
    """Where replicas are started, in the order chosen."""
    return [each for each in decision.attempts if each.verdict.startswith("create")]


def spec_of(done: Pass) -> ModelService:
    """The service as decide saw it."""
    assert done.desired is not None
    (found,) = (u.spec for u in done.desired.units if isinstance(u.spec, ModelService))
    return found


# -------------------------------------------------------------------------- ready-in
LABELS, BARS, TIMES, ROW, TOP = 150, 540, 250, 26, 84
PARTS = (
    ("schedule, start", GREY),
    ("behind other starts", PALE),
    ("image", BLUE),
    ("weights", GREEN),
    ("load and engine", YELLOW),
)


def readiness() -> str:
    """Seven starts of one pass, then the next one once the fleet knows its own starts."""
    machines = (
        Machine("gpu-1", image=True, weights=True),
        Machine("gpu-2", image=True),
        *(Machine(f"gpu-{number}") for number in range(3, 9)),
    )
    pools = "  pools: [{name: gpu, nodeSelector: {matchLabels: {pool: gpu}}}]\n"
    with fleet(machines, "  replicas: 7\n", pools) as world:
        done, first = one_pass(world)
        _let_start(world, 7)
        world.commit("Eight", {"models/qwen-7b.yaml": service("  replicas: 8\n")})
        _, later = one_pass(world)
    rows = [(a.node, a.readiness) for a in (*starts_of(first), *starts_of(later)) if a.readiness]
    return _readiness_svg(spec_of(done), rows)


def _let_start(world: World, count: int) -> None:
    """Let time go by in steps that miss no phase of a start, until so many replicas are Ready."""
    for _ in range(120):
        if len(world.ready_pods()) == count:
            return
        world.clock.wait(15.0)
        world.cluster_step()
        one_pass(world)
    raise SystemExit("the starts did not end")


def _readiness_svg(spec: ModelService, rows: list[tuple[str, Readiness]]) -> str:
    if len(rows) != 8 or rows[-1][1].prior:
        raise SystemExit(f"not the run that is drawn: {rows}")
    height = TOP + ROW * (len(rows) + 1) + 20
    title = "Ready in: seven starts that one pass decides, and the next one"
    parts = svg_frame(LABELS + BARS + TIMES, height, title, 28)
    parts += _keys(16, 56, PARTS)
    longest = max(ready.p50_ms for _, ready in rows)
    for number, (node, ready) in enumerate(rows):
        learned = not ready.prior
        y = TOP + ROW * (number + learned)
        if learned:
            told = f"Later, as {ready.samples} starts like it have ended:"
            parts.append(f'<text class="t" x="16" y="{y - ROW + 14}">{told}</text>')
        parts.append(f'<text x="16" y="{y + 14}">{node}  {ready.warmth}</text>')
        x = float(LABELS)
        for (_, colour), part_ms in zip(PARTS, _parts_ms(spec, ready), strict=True):
            wide = round(part_ms * BARS / longest, 1)
            if wide:
                parts.append(
                    f'<rect x="{round(x, 1)}" y="{y}" width="{wide}" height="18" fill="{colour}"/>'
                )
            x += wide
        told = f"{duration(ready.p50_ms)}, at worst {duration(ready.p90_ms)} ({ready.origin})"
        parts.append(f'<text class="t" x="{round(x + 6)}" y="{y + 14}">{told}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _parts_ms(spec: ModelService, ready: Readiness) -> tuple[int, ...]:
    """The parts of P50, by PARTS. A learned start is known as a whole: its rest is the engine's."""
    facts = Facts(image="image yes" in ready.facts, weights="weights yes" in ready.facts)
    image_ms, weights_ms = fetch_ms(spec, facts) if ready.prior else (0, 0)
    around_ms = SCHEDULE_MS + CONTAINER_START_MS if ready.prior else 0
    rest_ms = ready.p50_ms - around_ms - image_ms - weights_ms - ready.queued_ms
    if rest_ms < 0:
        raise SystemExit(f"parts are more than the whole: {ready}")
    return around_ms, ready.queued_ms, image_ms, weights_ms, rest_ms


def _keys(x: int, y: int, keys: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, colour in keys:
        yield f'<rect x="{x}" y="{y - 11}" width="14" height="14" fill="{colour}"/>'
        yield f'<text class="t" x="{x + 20}" y="{y}">{escape(name)}</text>'
        x += 34 + 7 * len(name)


# ------------------------------------------------------------------------- placement
CARD, HIGH, GAP, LETTERS = 240, 92, 14, 38


def placement() -> str:
    """Three replicas among nodes of three pools: who is chosen, in which order, who not and why."""
    machines = (
        Machine("od-1", "l4-od", image=True),
        Machine("od-2", "l4-od"),
        Machine("od-3", "l4-od", image=True, weights=True),
        Machine("od-4", "l4-od", gpus=4),
        Machine("spot-1", "l4-spot", image=True, weights=True),
        Machine("spot-2", "l4-spot", image=True),
        Machine("spot-3", "l4-spot"),
        Machine("spot-4", "l4-spot"),
        Machine("h100-1", "h100", gpus=8),
    )
    spec = (
        "  replicas: 3\n  disruption: {minReady: 1}\n"
        "  placement: {pools: [{name: l4-od, base: 1}, {name: l4-spot}], spot: {maxPercent: 70}}\n"
    )
    pools = "  pools:\n" + "".join(
        f"  - {{name: {name}, nodeSelector: {{matchLabels: {{pool: {name}}}}}, capacityType: {kind}}}\n"
        for name, kind in (("l4-od", "OnDemand"), ("l4-spot", "Spot"), ("h100", "OnDemand"))
    )
    with fleet(machines, spec, pools) as world:
        _occupy(world, "od-1")
        change(world, "Node", "od-3", {"spec": {"unschedulable": True}})
        down = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        change(world, "Node", "od-4", {"status": {"conditions": down}}, "status")
        now_ms = world.clock.now_ms()
        world.kubelet.node_states.give_notice(
            "spot-2", "spot", at_ms=now_ms, deadline_ms=now_ms + 120_000
        )
        done, decision = one_pass(world)
    return _placement_svg(done, decision)


def _occupy(world: World, node: str) -> None:
    """Somebody else's pod has the GPU."""
    gpu = {"nvidia.com/gpu": "1"}
    container = {"name": "a", "image": "a", "resources": {"requests": gpu, "limits": gpu}}
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "training", "namespace": "default"},
            "spec": {"nodeName": node, "containers": [container]},
        },
        manager="somebody",
    )


def _placement_svg(done: Pass, decision: ServiceDecision) -> str:
    assert done.snapshot is not None
    order = {each.node: number for number, each in enumerate(starts_of(decision), 1)}
    by_pool: dict[str, list[Node]] = {}
    for node in done.snapshot.nodes:
        by_pool.setdefault(dict(node.labels)["pool"], []).append(node)
    names = sorted(by_pool, key=lambda name: ("l4-od", "l4-spot", "h100").index(name))
    most = max(len(nodes) for nodes in by_pool.values())
    width = 110 + most * (CARD + GAP) + 8
    height = 70 + len(names) * (HIGH + GAP) + 34
    title = "3 replicas; pools l4-od (base 1), then l4-spot; spot at most 70 %; floor 1"
    parts = svg_frame(width, height, title, 28)
    for row, name in enumerate(names):
        y = 52 + row * (HIGH + GAP)
        parts.append(f'<text class="h" x="16" y="{y + 20}">{name}</text>')
        for column, node in enumerate(by_pool[name]):
            x = 110 + column * (CARD + GAP)
            parts += _card(x, y, node, *_verdict(done, node, order.get(node.name)))
    counted = ", ".join(f"{rule} {count}" for rule, count in decision.rejected)
    told = f"nodes turned away from the first of the three, by rule: {counted}"
    parts.append(f'<text class="t" x="16" y="{height - 16}">{escape(told)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _verdict(done: Pass, node: Node, number: int | None) -> tuple[str, str, list[str]]:
    """Colour, headline and two lines: of the choice, or of the rule that alone keeps it out."""
    held = [word for word, found in (("weights", node.weights), ("image", node.images)) if found]
    holds = ", ".join(held) or "nothing held"
    gpu = "nvidia.com/gpu"
    free = node.allocatable.device(gpu) - node.used.device(gpu)
    room = f"{free} of {node.allocatable.device(gpu)} GPUs free, {holds}"
    alone = _alone(done, node)
    turned = [each for each in alone.attempts if each.rule]
    starts = starts_of(alone)
    if number is not None:
        assert starts[0].readiness is not None
        ready = starts[0].readiness
        return GREEN, f"{number}. chosen", [room, f"{ready.warmth}, {duration(ready.p50_ms)} alone"]
    if starts:
        return YELLOW, "would do, another is better", [room, ""]
    return RED, turned[0].rule, [room, turned[0].verdict]


def _alone(done: Pass, node: Node) -> ServiceDecision:
    """What the product decides where the fleet has that node only, and one replica is wanted."""
    assert done.desired is not None
    assert done.snapshot is not None
    units = tuple(
        replace(unit, spec=replace(unit.spec, replicas=1))
        if isinstance(unit.spec, ModelService)
        else unit
        for unit in done.desired.units
    )
    snapshot = replace(done.snapshot, nodes=(node,), services=())
    desired = replace(done.desired, units=units)
    plan = decide(desired, done.shapes, snapshot, History(), done.now_ms)
    return plan.decisions[0]


def _card(x: int, y: int, node: Node, colour: str, head: str, lines: list[str]) -> Iterator[str]:
    yield (
        f'<rect x="{x}" y="{y}" width="{CARD}" height="{HIGH}" rx="5" fill="none" '
        f'stroke="{colour}" stroke-width="2"/>'
    )
    yield f'<text class="h" x="{x + 10}" y="{y + 20}">{escape(node.name)}</text>'
    yield f'<text x="{x + 10}" y="{y + 40}">{escape(head)}</text>'
    for number, line in enumerate(lines):
        if line:
            cut = line if len(line) <= LETTERS else line[: LETTERS - 1] + "…"
            yield f'<text class="t" x="{x + 10}" y="{y + 60 + 18 * number}">{escape(cut)}</text>'


# --------------------------------------------------------------------------- a notice
LANES = (
    (PodState.PENDING, PALE),
    (PodState.STARTING, YELLOW),
    (PodState.READY, GREEN),
    (PodState.DRAINING, GREY),
)


NOTICE = {
    "apiVersion": "stoker.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "notice"},
    "spec": {
        "about": "A spot node gets its 2-minute notice while a GPU is free",
        "nodes": [
            {"name": "gpu-1", "capacityType": "Spot", "holds": ["b"]},
            {"name": "gpu-2", "holds": ["b"]},
        ],
        "defaults": {"drain": {"endpointSync": "15s", "max": "10m", "shutdown": "30s"}},
        "services": [{"name": "b"}],
        "load": {
            "output": {"p50": "8s", "p99": "30s", "tail": {"perMille": 0}},
            "lags": ["0s", "2s", "10s"],
            "sticky": 0,
        },
        "warmUp": "30s",
        "events": [{"at": "0s", "notice": {"nodes": ["gpu-1"], "lead": "2m"}}],
        "lasts": "3m",
    },
}
"""The scenario `preemption` with one service, and with answers that end before their node."""


def notice() -> str:
    """A replica on a node that is taken back, and its successor, second by second under load."""
    scenario = ScenarioFile.model_validate(NOTICE)
    configure("error")
    with (
        tempfile.TemporaryDirectory(prefix="stoker-picture-") as folder,
        closing(MemoryGround(Path(folder), scenario.spec, 1)) as ground,
    ):
        seen = play(scenario, ground, 1)
    return _notice_svg(seen)


def _notice_svg(seen: Recording) -> str:
    old, new = sorted(
        (pod for pod in seen.pods.values() if pod.service == "b"), key=lambda pod: pod.states[0]
    )
    (end,) = seen.ends
    asked = [r for r in seen.requests if r.service == "b" and r.at_ms >= end.said_ms - 10_000]
    failed = sum(request.failed for request in asked)
    marks = [
        (end.said_ms, "notice; successor placed"),
        (_when(new, PodState.READY), "successor Ready"),
        (_when(old, PodState.DRAINING), "no new requests"),
        (_when(old, PodState.GONE), "last answer given, pod deleted"),
        (end.end_ms, "deadline: the node is gone"),
    ]
    begin_ms, span_ms = end.said_ms - 10_000, end.end_ms - end.said_ms + 25_000
    width, left, bars = 900, 170, 640

    def at(time_ms: int) -> float:
        inside = min(max(time_ms - begin_ms, 0), span_ms)
        return round(left + inside * bars / span_ms, 1)

    parts = svg_frame(
        width, 262, f"A two-minute notice: {failed} of {len(asked)} requests failed", 28
    )
    parts += _keys(16, 54, tuple((str(state), colour) for state, colour in LANES))
    for row, (pod, name) in enumerate(((old, "old, on " + old.node), (new, "new, on " + new.node))):
        y = 76 + 30 * row
        parts.append(f'<text x="16" y="{y + 15}">{escape(name)}</text>')
        steps = [*pod.states, (begin_ms + span_ms, PodState.GONE)]
        for (since_ms, state), (until_ms, _) in itertools.pairwise(steps):
            colour = dict(LANES).get(state)
            wide = round(at(until_ms) - at(since_ms), 1)
            if colour and wide > 0:
                parts.append(
                    f'<rect x="{at(since_ms)}" y="{y}" width="{wide}" height="20" fill="{colour}"/>'
                )
    for row, (time_ms, text) in enumerate(marks):
        x, y = at(time_ms), 158 + 19 * row
        seconds = (time_ms - end.said_ms) / 1000
        told = escape(f"{seconds:+.0f} s  {text}")
        side = f'x="{x - 5}" text-anchor="end"' if x > left + bars / 2 else f'x="{x + 5}"'
        parts.append(
            f'<line x1="{x}" y1="70" x2="{x}" y2="{y}" stroke="{GREY}" stroke-dasharray="2 3"/>'
        )
        parts.append(f'<text class="t" {side} y="{y}">{told}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _when(pod: PodLife, state: PodState) -> int:
    found = [since_ms for since_ms, known in pod.states if known is state]
    if not found:
        raise SystemExit(f"{pod.name} was never {state}: {pod.states}")
    return found[0]
