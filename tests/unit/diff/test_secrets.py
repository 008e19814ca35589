"""Secrets are masked by place and by value, in fields, notes and whole new objects."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict

import pytest

from fakes_live import FakeLive, applied_by
from stoker.cli.diff_forms import diff_json, diff_unified
from stoker.cli.print_diff import diff_text
from stoker.cli.style import Style
from stoker.diff import DiffMemo, Summary, diff
from stoker.kube.errors import api_error
from stoker.model.change import Action
from stoker.model.ports import ServerInfo
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    US,
    A,
    B,
    config,
    deployment,
    desired,
    marked,
    rendered,
    secret,
)

CANARY = "canary-5e1f0c2d"
ENCODED = base64.b64encode(CANARY.encode()).decode()
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def with_container(**fields):
    return deployment(container=fields)


def shown(*bodies, live=(), cluster=None, verify=False):
    """Everything that any form prints; the Secret is another unit's."""
    view = FakeLive()
    view.put(*live)
    wanted = desired(A, B)
    sets = (rendered(A, *bodies), rendered(B, secret(stringData={"token": CANARY})))
    inventory = Inventory(FLEET_ID, "prod")
    changes = diff(wanted, sets, view, inventory, cluster, FLEET_ID, DiffMemo(), verify=verify)
    forms = (
        diff_text(changes, wanted, Style(no_color=True)),
        diff_unified(changes),
        json.dumps(diff_json(changes, wanted, asdict(Summary()))),
    )
    return changes, "\n".join(forms)


PLACES = {
    "a ConfigMap's value": config(data={"a": CANARY}),
    "inside a ConfigMap's file": config(data={"a": f"user=x\npassword is {CANARY}\n"}),
    "base64 of it": config(data={"a": ENCODED}),
    "an env value with an innocent name": with_container(env=[{"name": "X", "value": CANARY}]),
    "an argument": with_container(args=["--x", CANARY]),
    "an argument with its flag": with_container(args=[f"--x={CANARY}"]),
    "an annotation": config(annotations={"note": CANARY}),
    "last-applied": config(annotations={LAST_APPLIED: json.dumps({"data": {"a": CANARY}})}),
    "a probe's header": with_container(
        readinessProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": "X", "value": CANARY}]}}
    ),
}


@pytest.mark.parametrize("body", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("side", ["new", "before", "after"])
def test_a_value_of_a_secret_is_hidden_wherever_it_stands(body, side):
    """cases.md row 147, reliability-security.md b: copies of a secret are secrets."""
    plain = config() if body["kind"] == "ConfigMap" else deployment()
    live = {
        "new": (),
        "before": (applied_by(US, marked(A, body)),),
        "after": (applied_by(US, marked(A, plain)),),
    }[side]
    wanted = plain if side == "before" else body
    changes, text = shown(wanted, live=live)

    assert CANARY not in text
    assert ENCODED not in text
    change = changes.units[0].changes[0]
    assert change.action is (Action.CREATE if side == "new" else Action.CHANGE)
    if side != "new":
        assert change.fields, "something is printed all the same"


def test_what_is_sent_is_never_masked():
    changes, _ = shown(config(data={"a": CANARY}))

    assert changes.units[0].changes[0].payload["data"] == {"a": CANARY}


def test_words_and_short_values_hide_nothing():
    """A secret called `true` would blank out every flag."""
    view = FakeLive()
    sets = (
        rendered(A, config(data={"a": "true", "b": "no", "c": "x"})),
        rendered(B, secret(stringData={"a": "true", "b": "no", "c": "x"})),
    )
    inventory = Inventory(FLEET_ID, "prod")
    view.put(applied_by(US, marked(A, config(data={"a": "1", "b": "1", "c": "1"}))))
    found = diff(desired(A, B), sets, view, inventory, NO_CLUSTER, FLEET_ID, DiffMemo())
    fields = found.units[0].changes[0].fields

    assert [f.after for f in fields] == ["true", "no", "x"]


class Refuses:
    """The API server quotes the value that it refuses."""

    def server(self):
        return ServerInfo("v1.37.2", "c1")

    def apply(self, manifest, **options):
        message = f'ConfigMap "c" is invalid: data[a]: Invalid value: "{CANARY}": no such thing'
        raise api_error(422, {"message": message, "reason": "Invalid"}, what="apply")


def test_an_error_of_the_server_quotes_no_secret():
    changes, text = shown(config(data={"a": CANARY}), cluster=Refuses(), verify=True)

    assert changes.units[0].changes[0].action is Action.ERROR
    assert CANARY not in text
    assert "no such thing" in text, "what is wrong is still said"


def test_two_values_of_one_secret_read_as_a_change():
    live = applied_by(US, marked(A, config(data={"a": CANARY})))
    _, text = shown(config(data={"a": f" {CANARY}"}), live=(live,))

    assert "*** -> *** (changed)" in text


def test_a_pass_over_one_unit_knows_the_secrets_of_the_others():
    memo, view, wanted = DiffMemo(), FakeLive(), desired(A, B)
    inventory = Inventory(FLEET_ID, "prod")
    theirs = rendered(B, secret(stringData={"token": CANARY}))
    view.put(applied_by(US, marked(A, config())))
    diff(wanted, (rendered(A, config()), theirs), view, inventory, NO_CLUSTER, FLEET_ID, memo)
    alone = (rendered(A, config(data={"a": CANARY})),)
    found = diff(wanted, alone, view, inventory, NO_CLUSTER, FLEET_ID, memo)

    assert [f.after for f in found.units[0].changes[0].fields] == ["***"]
    diff(desired(A), (rendered(A, config()),), view, inventory, NO_CLUSTER, FLEET_ID, memo)
    assert list(memo.secrets) == [A], "what left Git is forgotten"
