"""Which nodes may hold a replica: each rule, alone."""

from __future__ import annotations

import pytest

from builders import GIB, a_node, a_notice, a_pool, a_taint, a_toleration
from stoker.decide.eligible import Ask, Rejection, ask_labels, first_rejection, must_move, pool_of
from stoker.model.fleet import Requirement

L4_MIB = "23034"
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"


def an_ask(**fields):
    return Ask(**{"pools": (a_pool(),), **fields})


def judge(ask, **fields):
    node = a_node(**fields)
    return first_rejection(node, dict(node.labels), ask)


def rule_of(rejection: Rejection | None) -> str:
    return rejection.rule if rejection is not None else ""


@pytest.mark.parametrize(
    ("rule", "ask", "node"),
    [
        ("", {}, {}),
        ("pool", {}, {"pool": "h100"}),
        ("pool", {"pools": ()}, {}),
        ("not-ready", {}, {"ready": False}),
        ("cordoned", {}, {"cordoned": True}),
        ("noticed", {}, {"notice": a_notice()}),
        ("taint", {}, {"taints": (a_taint("gpu"),)}),
        ("taint", {}, {"taints": (a_taint("gpu", "NoExecute"),)}),
        ("", {}, {"taints": (a_taint("gpu", "PreferNoSchedule"),)}),
        ("", {"tolerations": (a_toleration("gpu"),)}, {"taints": (a_taint("gpu"),)}),
        ("", {"tolerations": (a_toleration(),)}, {"taints": (a_taint("gpu"),)}),
        ("taint", {"tolerations": (a_toleration("other"),)}, {"taints": (a_taint("gpu"),)}),
        (
            "taint",
            {"tolerations": (a_toleration("gpu", effect="NoExecute"),)},
            {"taints": (a_taint("gpu"),)},
        ),
        (
            "",
            {"tolerations": (a_toleration("gpu", "Equal", value="yes", effect="NoSchedule"),)},
            {"taints": (a_taint("gpu", value="yes"),)},
        ),
        (
            "taint",
            {"tolerations": (a_toleration("gpu", "Equal", value="no"),)},
            {"taints": (a_taint("gpu", value="yes"),)},
        ),
        (
            "taint",
            {"tolerations": (a_toleration("", "Equal", value="yes"),)},
            {"taints": (a_taint("gpu", value="yes"),)},
        ),
        ("node-selector", {"node_selector": (("disk", "nvme"),)}, {}),
        ("", {"node_selector": (("disk", "nvme"),)}, {"labels": {"disk": "nvme"}}),
        ("gpu-unknown", {}, {"gpu_unknown": "handed out by DRA"}),
        ("", {"needs_gpus": False}, {"gpu_unknown": "handed out by DRA"}),
        ("gpu-product", {"gpu_products": ("NVIDIA-L4",)}, {}),
        ("gpu-product", {"gpu_products": ("NVIDIA-L4",)}, {"labels": {PRODUCT: "NVIDIA-A10"}}),
        ("", {"gpu_products": ("NVIDIA-L4",)}, {"labels": {PRODUCT: "NVIDIA-L4"}}),
        ("", {"gpu_min_memory_bytes": 24 * GIB}, {"labels": {MEMORY: L4_MIB}}),
        ("gpu-memory", {"gpu_min_memory_bytes": 25 * GIB}, {"labels": {MEMORY: L4_MIB}}),
        ("gpu-memory", {"gpu_min_memory_bytes": 24 * GIB}, {}),
        ("gpu-memory", {"gpu_min_memory_bytes": 24 * GIB}, {"labels": {MEMORY: "24Gi"}}),
    ],
)
def test_each_rule_turns_away_what_it_is_for(rule, ask, node):
    """Labels that are not known admit nobody; memory may be 8 % less than asked for."""
    assert rule == rule_of(judge(an_ask(**ask), **node))


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ("a", "b"), {"zone": "a"}, True),
        ("In", ("a", "b"), {}, False),
        ("NotIn", ("a",), {"zone": "b"}, True),
        ("NotIn", ("a",), {}, True),
        ("NotIn", ("a",), {"zone": "a"}, False),
        ("Exists", (), {"zone": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {}, True),
        ("DoesNotExist", (), {"zone": "a"}, False),
        ("Gt", ("8",), {"zone": "9"}, True),
        ("Gt", ("8",), {"zone": "8"}, False),
        ("Lt", ("8",), {"zone": "7"}, True),
        ("Lt", ("8",), {"zone": "x"}, False),
        ("Lt", (), {"zone": "7"}, False),
        ("Near", ("8",), {"zone": "8"}, False),
    ],
)
def test_expressions_match_as_kubernetes_matches_them(operator, values, labels, matches):
    term = Requirement("zone", operator, values)
    pool = a_pool("any", match_labels=(), match_expressions=(term,))

    assert ((0, "any") if matches else None) == pool_of(labels, (pool,))
    affinity = an_ask(node_affinity=((term,),))
    assert ("" if matches else "node-affinity") == rule_of(judge(affinity, labels=labels))


def test_one_matching_term_of_the_affinity_is_enough():
    never, ever = Requirement("x", "Exists"), Requirement("pool", "Exists")

    assert not rule_of(judge(an_ask(node_affinity=((never,), (ever,)))))
    assert "node-affinity" == rule_of(judge(an_ask(node_affinity=((never, ever),))))


def test_the_first_pool_that_matches_is_the_nodes_pool():
    wide = a_pool("wide", match_labels=())

    assert (1, "wide") == pool_of({"pool": "l4"}, (a_pool("h100"), wide, a_pool("l4")))


def test_the_reason_says_what_is_wrong():
    rejection = judge(an_ask(), taints=(a_taint("gpu", value="yes"),))

    assert Rejection("taint", "taint gpu=yes:NoSchedule is not tolerated") == rejection


@pytest.mark.parametrize(
    ("ask", "node", "moves"),
    [
        ({}, {}, False),
        ({}, {"pool": "h100"}, True),
        ({}, {"cordoned": True}, True),
        ({}, {"taints": (a_taint("karpenter.sh/disrupted"),)}, True),
        ({}, {"taints": (a_taint("ToBeDeletedByClusterAutoscaler"),)}, True),
        ({}, {"taints": (a_taint("gpu"),)}, False),
        ({}, {"ready": False}, False),
        ({"gpu_products": ("NVIDIA-L4",)}, {}, False),
        ({"gpu_products": ("NVIDIA-L4",)}, {"labels": {PRODUCT: "NVIDIA-L4"}}, False),
        ({"gpu_products": ("NVIDIA-L4",)}, {"labels": {PRODUCT: "NVIDIA-A10"}}, True),
        ({"gpu_min_memory_bytes": 80 * GIB}, {}, False),
        ({"gpu_min_memory_bytes": 24 * GIB}, {"labels": {MEMORY: L4_MIB}}, False),
        ({"gpu_min_memory_bytes": 80 * GIB}, {"labels": {MEMORY: L4_MIB}}, True),
    ],
)
def test_a_standing_replica_moves_only_for_what_is_known_and_meant(ask, node, moves):
    """A node that lost its GPU labels or is not Ready moves nobody: unknown is not wrong."""
    node = a_node(**node)

    assert moves == bool(must_move(node, dict(node.labels), an_ask(**ask)))


def test_the_labels_of_an_ask_are_all_that_the_rules_read():
    ask = an_ask(
        pools=(a_pool("p", match_expressions=(Requirement("tier", "Exists"),)),),
        node_selector=(("disk", "nvme"),),
        node_affinity=((Requirement("zone", "Exists"),),),
    )

    assert {"pool", "tier", "disk", "zone", PRODUCT, MEMORY} == ask_labels(ask)
