"""What webhooks write into our objects is told from what left Git, by dry run."""

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fakes_live import FakeLive, applied_by
from stoker.diff import DiffMemo, diff
from stoker.kube.errors import api_error
from stoker.model.change import Action
from stoker.model.fleet import FleetMode
from stoker.model.ports import ServerInfo
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    QWEN,
    US,
    A,
    config,
    deployment,
    desired,
    marked,
    placement,
    rendered,
)
from unit.diff.test_verdict import judged

OURS = {"key": "gpu", "operator": "Exists"}
CONSTANT = {"key": "spot", "operator": "Exists"}
IMMUTABLE = api_error(422, {"message": "field is immutable"}, what="apply")


@dataclass
class Webhook:
    """An API server whose webhook adds tolerations; it refuses what `refuses` names."""

    adds: Any
    refuses: str = ""
    asked: list[str] = field(default_factory=list)

    def server(self):
        return ServerInfo("v1.37.2", "c1")

    def apply(self, manifest, *, manager, force=False, dry_run=False, subresource=""):
        assert dry_run
        self.asked.append(manifest["metadata"]["name"])
        if manifest["metadata"]["name"] == self.refuses:
            raise IMMUTABLE
        body = {
            **manifest,
            "metadata": {k: v for k, v in manifest["metadata"].items() if k != "uid"},
        }
        answer = copy.deepcopy(applied_by(manager, body))
        _pod(answer)["tolerations"] = [*_pod(answer)["tolerations"], *self.adds()]
        return answer


def _pod(body):
    return body["spec"] if body["kind"] == "Pod" else body["spec"]["template"]["spec"]


def tolerating(*tolerations, kind="Deployment"):
    body = deployment()
    if kind == "Pod":
        body = {**body, "apiVersion": "v1", "kind": "Pod", "spec": _pod(body)}
    _pod(body)["tolerations"] = list(tolerations)
    return body


def standing(body, *added, unit=A):
    live = applied_by(US, marked(unit, body))
    _pod(live)["tolerations"] += added
    return live


def numbered():
    """A toleration that is another one each time."""
    numbers = itertools.count(1)
    return lambda: [CONSTANT, {"key": "random", "value": str(next(numbers))}]


@pytest.mark.parametrize(
    ("adds", "added"),
    [
        (lambda: [CONSTANT], [CONSTANT]),
        (numbered(), [CONSTANT, {"key": "random", "value": "99"}]),
    ],
    ids=["constant", "random"],
)
def test_what_a_webhook_adds_to_a_list_is_no_difference(adds, added):
    """cases.md row 49: every pass would restart the pods.

    reliability-security c.2 rows 40 and 41.
    """
    cluster, memo = Webhook(adds), DiffMemo()
    live = standing(tolerating(OURS), *added)

    assert judged(A, tolerating(OURS), live, cluster=cluster, memo=memo).action is Action.UNCHANGED
    asked = len(cluster.asked)
    assert asked <= 2
    assert judged(A, tolerating(OURS), live, cluster=cluster, memo=memo).action is Action.UNCHANGED
    assert asked == len(cluster.asked)


@pytest.mark.parametrize("wanted", [(), (CONSTANT,)], ids=["removed", "exchanged"])
def test_what_left_git_is_a_difference_beside_what_a_webhook_adds(wanted):
    live = standing(tolerating(OURS), {"key": "random", "value": "99"})
    numbers = itertools.count(1)
    cluster = Webhook(lambda: [{"key": "random", "value": str(next(numbers))}])
    change = judged(A, tolerating(*wanted), live, cluster=cluster)

    assert change.action is Action.CHANGE
    assert all(f.path.startswith("spec.template.spec.tolerations") for f in change.fields)
    assert change.fields


def test_a_pod_that_refuses_to_change_is_as_it_would_be_made():
    """Admission adds two tolerations to every pod, and no pod gives one up."""
    live = standing(tolerating(OURS, kind="Pod"), CONSTANT)
    cluster = Webhook(lambda: [CONSTANT], refuses="d")

    assert judged(A, tolerating(OURS, kind="Pod"), live, cluster=cluster).action is Action.UNCHANGED
    assert cluster.asked == ["d", "d-asked", "d-asked"]


def test_a_pod_that_refuses_to_change_and_differs_is_an_error():
    """cases.md row 45: a refused dry run is never Synced."""
    live = standing(tolerating(OURS, CONSTANT, kind="Pod"), CONSTANT)
    change = judged(
        A, tolerating(OURS, kind="Pod"), live, cluster=Webhook(lambda: [CONSTANT], refuses="d")
    )

    assert (change.action, change.code) == (Action.ERROR, "invalid-object")


def test_what_a_webhook_adds_to_a_frozen_template_is_not_held_back():
    """While the rev stands, Git's tolerations do too: nothing waits for a restart."""
    body = placement()
    _pod(body)["tolerations"] = [OURS]
    change = judged(QWEN, body, standing(body, CONSTANT, unit=QWEN), cluster=Webhook(list))

    assert (change.action, change.held_back) == (Action.UNCHANGED, ())


def test_a_value_that_a_webhook_overwrites_is_sent_once():
    """What was sent and still differs is asked about; then it is known.

    reliability-security c.2 row 40.
    """

    class Overwrites(Webhook):
        def apply(self, manifest, **options):
            self.asked.append(manifest["metadata"]["name"])
            return live

    live = applied_by(US, marked(A, config()))
    live["data"]["a"] = "theirs"
    cluster, memo = Overwrites(list), DiffMemo()
    first = judged(A, config(), live, cluster=cluster, memo=memo)
    second = judged(A, config(), live, cluster=cluster, memo=memo)
    third = judged(A, config(), live, cluster=cluster, memo=memo)

    assert [c.action for c in (first, second, third)] == [
        Action.CHANGE, Action.UNCHANGED, Action.UNCHANGED,
    ]  # fmt: skip
    assert len(cluster.asked) == 1


def test_in_mode_observe_nothing_was_sent_and_nothing_is_asked():
    """A fleet of 4,000 changes that only observes must not ask 4,000 times."""
    live, memo, cluster = applied_by(US, marked(A, config())), DiffMemo(), Webhook(list)
    for _ in range(3):
        view = FakeLive()
        view.put(live)
        changes = diff(
            desired(A, mode=FleetMode.OBSERVE),
            (rendered(A, config(data={"a": "2"})),),
            view,
            Inventory(FLEET_ID, "prod"),
            cast("Any", cluster),
            FLEET_ID,
            memo,
        )
        assert changes.units[0].changes[0].action is Action.CHANGE
    assert cluster.asked == []


def test_what_somebody_took_is_drift_however_often_it_was_sent():
    live = applied_by(US, marked(A, config(data={"a": "1", "b": "1"})))
    live["data"]["a"] = "theirs"
    for entry in live["metadata"]["managedFields"]:
        del entry["fieldsV1"]["f:data"]["f:a"]
    memo, cluster = DiffMemo(), Webhook(list)
    for _ in range(3):
        change = judged(A, config(data={"a": "1", "b": "1"}), live, cluster=cluster, memo=memo)
        assert change.action is Action.CHANGE
    assert cluster.asked == []
