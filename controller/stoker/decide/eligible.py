"""Which nodes may hold a replica: an ordered table of small rules.

Read by place when it groups nodes, by transition for replicas that already stand, and by
explain for its words. A rule answers why not, in a few words, or an empty string. The
order is the one people check in: where may it run, is the node well, does it fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stoker.model.fleet import Pool, Requirement
from stoker.model.shape import Toleration
from stoker.model.snapshot import Node, Taint

__all__ = [
    "FIT_RULES",
    "MEMORY_LABEL",
    "PRODUCT_LABEL",
    "RULES",
    "Ask",
    "Rejection",
    "ask_labels",
    "first_rejection",
    "must_move",
    "pool_of",
]

PRODUCT_LABEL = "nvidia.com/gpu.product"
"""Set by NVIDIA GPU feature discovery, such as `NVIDIA-H100-80GB-HBM3`."""
MEMORY_LABEL = "nvidia.com/gpu.memory"
"""Set by NVIDIA GPU feature discovery: MiB of one GPU."""
MEMORY_TOLERANCE_PERCENT = 8
"""A card reports less than its name says (an L4 of 24 GiB: 23034 MiB). Design section 4."""
VACATE_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")
"""Taints by which a node autoscaler says that it will drain the node; no deadline."""
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ask:
    """Everything one service asks of a node except room; equal asks share their answers.

    `pools` is in order of preference and holds only pools that the fleet knows.
    """

    pools: tuple[Pool, ...]
    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[tuple[Requirement, ...], ...] = ()
    gpu_products: tuple[str, ...] = ()
    gpu_min_memory_bytes: int | None = None
    needs_gpus: bool = True
    spread_key: str = ""
    """The node label whose domains the service spreads over; empty for none."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first rule that says no, and why."""

    rule: str
    reason: str


Labels = Mapping[str, str]
Check = Callable[[Node, Labels, Ask], str]


def first_rejection(node: Node, labels: Labels, ask: Ask) -> Rejection | None:
    """Why the node may not hold a new replica, whatever its room; None when it may."""
    for rule, check in RULES:
        reason = check(node, labels, ask)
        if reason:
            return Rejection(rule, reason)
    return None


def must_move(node: Node, labels: Labels, ask: Ask) -> str:
    """Why a replica that stands on the node has to move some day; empty when it may stay.

    Weaker than the rules for new replicas: what Kubernetes ignores during execution
    (taints, affinity) is ignored, and so is a node that is not ready or has lost its GPU
    labels, for what is unknown moves nobody.
    """
    if pool_of(labels, ask.pools) is None:
        return f"node {node.name} is in none of its pools"
    if node.cordoned:
        return f"node {node.name} is cordoned"
    if node.notice is not None and node.notice.vacates:
        return f"node {node.name} is drained ({node.notice.kind})"
    for taint in node.taints:
        if taint.key in VACATE_TAINTS:
            return f"node {node.name} has the taint {taint.key}"
    if PRODUCT_LABEL in labels and (why := _wrong_product(node, labels, ask)):
        return f"node {node.name}: {why}"
    if MEMORY_LABEL in labels and (why := _too_little_memory(node, labels, ask)):
        return f"node {node.name}: {why}"
    return ""


def pool_of(labels: Labels, pools: Iterable[Pool]) -> tuple[int, str] | None:
    """Place in the preference and name of the first pool that the labels match."""
    for place, pool in enumerate(pools):
        if _all_match(labels, pool.match_labels, pool.match_expressions):
            return place, pool.name
    return None


def ask_labels(ask: Ask) -> set[str]:
    """Keys of the node labels that the rules read for this ask."""
    keys = {PRODUCT_LABEL, MEMORY_LABEL}
    for pool in ask.pools:
        keys.update(key for key, _ in pool.match_labels)
        keys.update(term.key for term in pool.match_expressions)
    keys.update(key for key, _ in ask.node_selector)
    keys.update(term.key for terms in ask.node_affinity for term in terms)
    return keys


def _not_in_pools(_node: Node, labels: Labels, ask: Ask) -> str:
    if pool_of(labels, ask.pools) is not None:
        return ""
    return "in none of the pools " + ", ".join(pool.name for pool in ask.pools)


def _not_ready(node: Node, _labels: Labels, _ask: Ask) -> str:
    return "" if node.ready else "node is not Ready"


def _cordoned(node: Node, _labels: Labels, _ask: Ask) -> str:
    return "cordoned" if node.cordoned else ""


def _noticed(node: Node, _labels: Labels, _ask: Ask) -> str:
    return f"going away: {node.notice.kind}" if node.notice else ""


def _tainted(node: Node, _labels: Labels, ask: Ask) -> str:
    for taint in node.taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not _tolerated(taint, ask.tolerations):
            return f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    return ""


def _not_selected(_node: Node, labels: Labels, ask: Ask) -> str:
    for key, value in ask.node_selector:
        if labels.get(key) != value:
            return f"label {key} is not {value}"
    return ""


def _no_affinity(_node: Node, labels: Labels, ask: Ask) -> str:
    if not ask.node_affinity or any(_all_match(labels, (), terms) for terms in ask.node_affinity):
        return ""
    return "matches no term of the required node affinity"


def _no_domain(_node: Node, labels: Labels, ask: Ask) -> str:
    """As the scheduler: a node without the label is in no domain and takes nothing."""
    if not ask.spread_key or ask.spread_key in labels:
        return ""
    return f"has no label {ask.spread_key}, by which the service spreads"


def _uncountable(node: Node, _labels: Labels, ask: Ask) -> str:
    return (
        f"GPUs cannot be counted: {node.gpu_unknown}" if ask.needs_gpus and node.gpu_unknown else ""
    )


def _wrong_product(_node: Node, labels: Labels, ask: Ask) -> str:
    product = labels.get(PRODUCT_LABEL, "")
    if not ask.gpu_products or product in ask.gpu_products:
        return ""
    return f"GPU {product or 'of unknown product'} is not in gpu.products"


def _too_little_memory(_node: Node, labels: Labels, ask: Ask) -> str:
    if ask.gpu_min_memory_bytes is None:
        return ""
    text = labels.get(MEMORY_LABEL, "")
    if not text.isdecimal():
        return "GPU memory is unknown"
    if int(text) * MIB * 100 >= ask.gpu_min_memory_bytes * (100 - MEMORY_TOLERANCE_PERCENT):
        return ""
    return f"GPU has {text}Mi, less than gpu.minMemory"


RULES: tuple[tuple[str, Check], ...] = (
    ("pool", _not_in_pools),
    ("not-ready", _not_ready),
    ("cordoned", _cordoned),
    ("noticed", _noticed),
    ("taint", _tainted),
    ("node-selector", _not_selected),
    ("node-affinity", _no_affinity),
    ("topology-spread", _no_domain),
    ("gpu-unknown", _uncountable),
    ("gpu-product", _wrong_product),
    ("gpu-memory", _too_little_memory),
)
"""The rules that do not depend on room, in the order they are asked."""

FIT_RULES = (
    "leaving-here",
    "failed-here",
    "quarantined",
    "gpus",
    "devices",
    "cpu",
    "memory",
    "pods",
)
"""Rules that depend on this service's replicas and on room; asked by place, after RULES."""


def _all_match(
    labels: Labels,
    equal: tuple[tuple[str, str], ...],
    expressions: tuple[Requirement, ...],
) -> bool:
    return all(labels.get(key) == value for key, value in equal) and all(
        _matches(labels, term) for term in expressions
    )


def _matches(labels: Labels, term: Requirement) -> bool:
    """Kubernetes' node selector operators; NotIn holds for an absent label."""
    value = labels.get(term.key)
    match term.operator:
        case "In":
            return value in term.values
        case "NotIn":
            return value not in term.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, term)
        case _:
            return False


def _compares(value: str | None, term: Requirement) -> bool:
    try:
        have, bound = int(value or ""), int(term.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if term.operator == "Gt" else have < bound


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """As the scheduler: an empty effect or (with Exists) an empty key matches all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value
