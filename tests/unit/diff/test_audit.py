"""Which objects the audit asks about, and when."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.diff import Audit
from stoker.diff.admission import KINDS, LOOK_MS, Admission, AdmissionRule
from stoker.diff.audit import AFTER_UPGRADE, AT_ONCE, DAY_MS, ROUND_MS
from stoker.kube.errors import KindNotFound, api_error
from stoker.model.ports import ListPage
from stoker.model.refs import ObjectRef

HOUR = 3_600_000
REFS = tuple(ObjectRef("", "ConfigMap", "llm", f"object-{number}", "v1") for number in range(500))


def taken(audit: Audit, now_ms: int, version: str = "v1.37.2") -> list[ObjectRef]:
    audit.begin(now_ms, version)
    return [ref for ref in REFS if audit.takes(ref)]


def test_a_fresh_process_asks_nothing_in_its_first_pass():
    assert [] == taken(Audit(), 1_700_000_000_000)


@given(
    st.integers(0, 2 * DAY_MS),
    st.lists(st.integers(1, 2 * HOUR), min_size=12, max_size=60),
)
def test_each_object_once_a_day_whenever_the_passes_are(start, steps):
    """However the day is cut into passes, nothing is left out and nothing asked twice."""
    audit, now, asked = Audit(), start, []
    taken(audit, now)
    for step in [*steps, *[HOUR] * 24]:
        now = min(now + step, start + DAY_MS)
        asked += taken(audit, now)

    assert now == start + DAY_MS
    assert len(asked) == len(set(asked))
    asked += taken(audit, now + ROUND_MS)
    assert sorted(REFS) == sorted(set(asked))


def test_passes_in_quick_succession_share_a_round():
    """A commit, the pass that looks again and an edit by hand ask nothing of their own."""
    audit = Audit()
    taken(audit, 0)
    asked = [taken(audit, now) for now in range(1000, ROUND_MS, 1000)]

    assert not any(asked)
    assert sorted(taken(audit, HOUR)) == sorted(taken_at_once(0, HOUR))


def taken_at_once(start: int, end: int) -> list[ObjectRef]:
    audit = Audit()
    taken(audit, start)
    return taken(audit, end)


def test_ten_minutes_ask_their_share():
    audit, now = Audit(), 0
    taken(audit, now)
    counts = [len(taken(audit, now + n * HOUR)) for n in range(1, 25)]

    assert sum(counts) == len(REFS)
    assert max(counts) < 3 * len(REFS) / 24


def test_a_new_server_version_is_asked_about_everything_within_the_hour_and_then_no_faster():
    audit = Audit()
    taken(audit, 0)
    asked = [ref for n in range(1, 13) for ref in taken(audit, n * HOUR // 12, "v1.38.0")]

    assert sorted(asked) == sorted(REFS)
    assert len(taken(audit, 2 * HOUR, "v1.38.0")) < 3 * len(REFS) / AFTER_UPGRADE


def test_a_clock_that_goes_back_asks_nothing_and_goes_on():
    audit = Audit()
    taken(audit, 5 * HOUR)

    assert [] == taken(audit, HOUR)
    assert taken(audit, 6 * HOUR)


def test_a_pass_after_a_long_sleep_asks_a_bounded_number():
    audit = Audit()
    taken(audit, 0)

    assert AT_ONCE == len(taken(audit, 3 * DAY_MS))


# ------------------------------------------------------------------------ webhooks
MAPS = AdmissionRule(("",), ("configmaps",))
OTHERS = AdmissionRule(("apps",), ("deployments",))


def after_a_change(audit: Audit, *rules: AdmissionRule) -> list[ObjectRef]:
    """What is asked within the hour after rules changed, beyond what is due anyway."""
    plain = Audit()
    asked: list[ObjectRef] = []
    for part in range(14):
        now = part * HOUR // 12
        plain.begin(now, "v1.37.2")
        audit.begin(now, "v1.37.2", frozenset(rules) if part == 1 else frozenset())
        usual = [ref for ref in REFS if plain.takes(ref)]
        asked += [ref for ref in REFS if audit.takes(ref) and ref not in usual]
    return asked


def test_objects_that_a_changed_webhook_matches_are_asked_within_the_hour():
    """Issue B: once a day, spread evenly, and after a server or webhook change."""
    assert len(set(after_a_change(Audit(), MAPS))) >= 0.9 * len(REFS)
    assert [] == after_a_change(Audit(), OTHERS)


def test_the_second_hand_goes_round_once():
    audit = Audit()
    after_a_change(audit, MAPS)

    assert len(taken(audit, 26 * HOUR // 12 + HOUR)) < 3 * len(REFS) / AFTER_UPGRADE


@pytest.mark.parametrize(
    ("rule", "ref", "matches"),
    [
        (AdmissionRule(("*",), ("*",)), ObjectRef("apps", "Deployment", "n", "x"), True),
        (
            AdmissionRule(("apps",), ("deployments",)),
            ObjectRef("apps", "Deployment", "n", "x"),
            True,
        ),
        (AdmissionRule(("",), ("deployments",)), ObjectRef("apps", "Deployment", "n", "x"), False),
        (AdmissionRule(("",), ("pods",)), ObjectRef("apps", "Deployment", "n", "x"), False),
        (
            AdmissionRule(("networking.k8s.io",), ("networkpolicies",)),
            ObjectRef("networking.k8s.io", "NetworkPolicy", "n", "x"),
            True,
        ),
    ],
    ids=["all", "same", "other group", "pods", "plural in -ies"],
)
def test_a_rule_matches_what_it_may_change(rule, ref, matches):
    assert matches is rule.matches(ref)


def a_configuration(*resources: str, bundle: str = "") -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "resources": list(resources)}
    hook = {"name": "h", "clientConfig": {"caBundle": bundle}, "rules": [rule]}
    return {"metadata": {"uid": "1"}, "webhooks": [hook]}


class Cluster:
    """Answers the lists with what is set by kind, or raises it; other kinds are not served."""

    def __init__(self, **bodies: Any) -> None:
        self.of_kind: dict[str, Any] = bodies
        self.lists = 0

    @property
    def bodies(self) -> Any:
        return self.of_kind["MutatingWebhookConfiguration"]

    @bodies.setter
    def bodies(self, bodies: Any) -> None:
        self.of_kind["MutatingWebhookConfiguration"] = bodies

    def list(self, _group: str, kind: str) -> ListPage:
        self.lists += 1
        found = self.of_kind.get(kind, KindNotFound("not served"))
        if isinstance(found, Exception):
            raise found
        return ListPage("1", found)


def test_looks_are_far_apart_and_a_new_certificate_is_no_change():
    """cert-manager renews certificates in webhook configurations all the time."""
    hooks, cluster = Admission(), Cluster()
    cluster.bodies = (a_configuration("deployments"),)
    answers = []
    for minute in range(61):
        cluster.bodies = (a_configuration("deployments", bundle=str(minute)),)
        answers.append(hooks.changed(cluster, minute * 60_000))  # type: ignore[arg-type]

    assert {frozenset()} == set(answers)
    assert len(KINDS) * 6 == cluster.lists


def test_old_and_new_rules_count_and_scale_is_left_out():
    hooks, cluster = Admission(), Cluster()
    cluster.bodies = (a_configuration("deployments", "deployments/scale"),)
    hooks.changed(cluster, 0)  # type: ignore[arg-type]
    hooks.changed(cluster, LOOK_MS)  # type: ignore[arg-type]
    cluster.bodies = (a_configuration("statefulsets/*"),)

    found = hooks.changed(cluster, 2 * LOOK_MS)  # type: ignore[arg-type]

    assert {("deployments",), ("statefulsets",)} == {rule.resources for rule in found}


def a_policy(*resources: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "resources": list(resources)}
    constraints = {"matchConstraints": {"resourceRules": [rule]}}
    return {"metadata": {"uid": "1"}, "spec": {**constraints, **spec}}


def a_binding(*resources: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "resources": list(resources)}
    matched = {"matchResources": {"resourceRules": [rule]}} if resources else {}
    return {"metadata": {"uid": "2"}, "spec": {"policyName": "p", **matched, **spec}}


def looked(admission: Admission, cluster: Cluster, look: int) -> set[tuple[str, ...]]:
    """The resources of what changed, at the look of that number, from 0."""
    if look == 0:
        admission.changed(cluster, 0)  # type: ignore[arg-type]
    found = admission.changed(cluster, (look + 1) * LOOK_MS)  # type: ignore[arg-type]
    return {rule.resources for rule in found}


@pytest.mark.parametrize("how", ["Mutating", "Validating"])
@pytest.mark.parametrize(
    ("kind", "before", "after", "resources"),
    [
        ("Policy", (a_policy("deployments"),), (a_policy("deployments", x=1),), ("deployments",)),
        ("Policy", (), (a_policy("deployments"),), ("deployments",)),
        ("Policy", (a_policy("deployments"),), (), ("deployments",)),
        ("Policy", KindNotFound("no"), (a_policy("deployments"),), ("deployments",)),
        ("PolicyBinding", (), (a_binding("jobs"),), ("jobs",)),
        ("PolicyBinding", (a_binding(),), (a_binding(validationActions=["Warn"]),), ("*",)),
    ],
    ids=["changed", "added", "removed", "served from now on", "bound", "bound to all"],
)
def test_what_a_changed_policy_matches_is_due(how, kind, before, after, resources):
    """A policy refuses or changes what is sent as a webhook does, and no watch tells."""
    admission, cluster = Admission(), Cluster(**{f"{how}Admission{kind}": before})
    assert set() == looked(admission, cluster, 0)

    cluster.of_kind[f"{how}Admission{kind}"] = after

    assert {resources} == looked(admission, cluster, 1)
    assert set() == looked(admission, cluster, 2)


def test_a_kind_that_cannot_be_read_is_no_change_and_hides_no_other():
    """Who upgrades has no right to read policies before the next install."""
    forbidden = api_error(403, {"message": "no"}, what="list")
    cluster = Cluster(ValidatingAdmissionPolicy=(a_policy("jobs"),))
    cluster.bodies = (a_configuration("deployments"),)
    admission = Admission()
    looked(admission, cluster, 0)

    cluster.of_kind["ValidatingAdmissionPolicy"] = forbidden
    cluster.bodies = (a_configuration("statefulsets"),)

    assert {("deployments",), ("statefulsets",)} == looked(admission, cluster, 1)
    cluster.of_kind["ValidatingAdmissionPolicy"] = (a_policy("cronjobs"),)
    assert {("jobs",), ("cronjobs",)} == looked(admission, cluster, 2)
