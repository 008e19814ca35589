"""The daily audit: who runs it, and what a changed webhook makes it ask (issue B, design 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from definitions import a_definition
from stoker.cli.world import World
from stoker.diff import Audit
from stoker.diff.admission import LOOK_MS
from stoker.kube.transport import Request, Response
from stoker.model.refs import ref_from_manifest
from stoker.reconcile import Reach, reconcile
from stories.faults import Faults

GROUP = "admissionregistration.k8s.io"
KINDS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
"""Served as custom kinds here: the in-memory API server has no admission of its own."""
HOOKS = tuple(KINDS.values())
MINUTE = 60


def a_hook(resources: list[str], groups: list[str], url: str = "https://hook.example.invalid"):
    rule = {
        "apiGroups": groups,
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "sidecars"},
        "webhooks": [
            {
                "name": "sidecars.example.invalid",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": url},
                "rules": [rule],
            }
        ],
    }


@pytest.fixture
def audited(world) -> World:
    """The village, watched by the audit as the long-running controller has it."""
    for kind, plural in KINDS.items():
        definition = a_definition(GROUP, "v1", kind, plural, scope="Cluster")
        world.cluster.apply(definition, manager="server")
    world.work.parts.audit = Audit()
    world.advance(1)
    return world


def later(world: World, minutes: float) -> None:
    """Time goes by with a pass every ten minutes."""
    for _ in range(-(-round(minutes) // 10)):
        world.clock.wait(10 * MINUTE)
        world.advance(1)


def looks(faults: Faults) -> int:
    return sum(r.path.endswith(HOOKS) for r in faults.asked)


def asked(faults: Faults) -> set[str]:
    """Objects that were asked about by dry run, as the last two parts of their paths."""
    return {
        "/".join(r.path.rsplit("/", 2)[-2:])
        for r in faults.asked
        if any(key == "dryRun" for key, _ in r.query)
    }


def test_a_follower_that_warms_up_moves_no_hand(audited):
    """Whoever does not lead would pass over instants that nobody then asks about."""
    world, parts = audited, audited.work.parts
    before = repr(parts.audit)
    world.clock.wait(30 * MINUTE)

    reconcile(parts, world.work.state, reach=Reach.DIFF)

    assert before == repr(parts.audit)


def test_a_fresh_process_asks_for_no_webhooks(audited, faults):
    """The bar of 30 requests for a no-op has no room for what only a long life needs."""
    faults.asked.clear()
    audited.work.parts.audit = Audit()

    audited.advance(3)

    assert 0 == looks(faults)


def test_a_long_life_looks_at_each_kind_once_in_ten_minutes_at_most(audited, faults):
    faults.asked.clear()

    later(audited, 30)

    assert 0 < looks(faults) <= len(HOOKS) * 3


def test_a_changed_webhook_makes_the_kinds_it_matches_due_within_the_hour(audited, faults):
    """Design 6: once a day, spread evenly, and after a server or webhook change."""
    world = audited
    world.cluster.apply(a_hook(["deployments"], ["apps"]), manager="installer")
    later(world, LOOK_MS / 60_000 + 1)
    faults.asked.clear()

    changed = a_hook(["deployments"], ["apps"], url="https://other.example.invalid")
    world.cluster.apply(changed, manager="installer")
    later(world, LOOK_MS / 60_000 + 61)

    names = {d["metadata"]["name"] for d in world.objects("apps", "Deployment", "llm")}
    assert {f"deployments/{name}" for name in names} <= asked(faults)
    assert not any(a.startswith("configmaps/") for a in asked(faults)) or len(asked(faults)) < 8


@pytest.mark.parametrize("gone", [True, False], ids=["removed", "added"])
def test_a_webhook_that_comes_or_goes_is_a_change(audited, faults, gone):
    world = audited
    hook = a_hook(["*"], ["*"])
    if gone:
        world.cluster.apply(hook, manager="installer")
    later(world, LOOK_MS / 60_000 + 1)
    faults.asked.clear()

    if gone:
        for found in world.objects("admissionregistration.k8s.io", "MutatingWebhookConfiguration"):
            world.cluster.delete(ref_from_manifest(found))
    else:
        world.cluster.apply(hook, manager="installer")
    later(world, LOOK_MS / 60_000 + 61)

    assert {"configmaps/side", "services/tiny", "namespaces/llm"} <= asked(faults)


def test_a_changed_policy_makes_the_kinds_it_matches_due_within_the_hour(audited, faults):
    """It judges what is sent as a webhook does."""
    world = audited
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["services"]}
    policy: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "ports"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Fail"},
    }
    world.cluster.apply(policy, manager="installer")
    later(world, LOOK_MS / 60_000 + 1)
    faults.asked.clear()

    policy["spec"] = {**policy["spec"], "failurePolicy": "Ignore"}
    world.cluster.apply(policy, manager="installer")
    later(world, LOOK_MS / 60_000 + 61)

    assert {"services/tiny", "services/other"} <= asked(faults)


def test_webhooks_that_cannot_be_read_are_no_change(audited, faults):
    """Unknown is not empty: a right taken away must not set off thousands of dry runs."""
    world = audited
    world.cluster.apply(a_hook(["*"], ["*"]), manager="installer")
    later(world, LOOK_MS / 60_000 + 1)
    faults.refuse = refusing(HOOKS)
    faults.asked.clear()

    later(world, 61)

    assert len(asked(faults)) < 4


def refusing(names: tuple[str, ...]) -> Callable[[Request], Response | None]:
    def refuse(request: Request) -> Response | None:
        if not request.path.endswith(names):
            return None
        return Response(403, b'{"kind":"Status","code":403,"reason":"Forbidden"}')

    return refuse
