"""Values of Secrets in what others say: refusals that quote them, conditions that cite them.

reliability-security.md b, row 20: whatever the API server, a webhook or a controller says of
a value that stands in a rendered Secret, nobody reads it in our status, logs or commands.
"""

from __future__ import annotations

import base64
import json
import logging
import subprocess

import pytest
import yaml

from stoker.cli.app import run
from stoker.kube.client import Client
from stoker.model.refs import ObjectRef
from stories.faults import answer
from stories.files import a_config_map, a_custom_kind, the_fleet
from stories.looks import message, rest, tell, unit_status

LONG, SHORT = "canary-7d20c1-with-more", "hunt3r2"
FORMS = (LONG, SHORT, *(base64.b64encode(text.encode()).decode() for text in (LONG, SHORT)))
SIDE = "Bundle/llm/side"
WIDGET = ObjectRef("example.com", "Widget", "llm", "w", "v1")


def a_secret(**values: str) -> str:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}}
    return yaml.safe_dump({**body, "stringData": values})


SAYS = 'admission webhook "x" denied it: '
QUOTED = SAYS + ", ".join(f'"{form}"' for form in FORMS)
REPEATED = SAYS + LONG * 300
"""Longer than anybody's limit: whoever cuts it cuts through the value."""


def refusing(name: str, text: str):
    """Refuse writes of one object with these words."""

    def refuse(request):
        if request.method == "PATCH" and request.path.endswith(f"/{name}"):
            return answer(422, "Invalid", text)
        return None

    return refuse


@pytest.fixture
def stoker(monkeypatch, capsys, faults):
    """Run a command on a world through the same faulty transport as the controller."""

    def command(world, *arguments: str) -> str:
        def connect(*_arguments, **_options):
            return Client(faults(world.server), user_agent="command")

        monkeypatch.setattr("stoker.cli.session.connect", connect)
        capsys.readouterr()
        run(list(arguments))
        captured = capsys.readouterr()
        return captured.out + captured.err

    return command


def the_status_branch(world) -> str:
    """Every file of every ref that the controller has pushed, whole."""
    refs = subprocess.run(
        ["git", "-C", str(world.bare), "log", "-p", "--all", "--", "units", "status.yaml"],
        check=True,
        capture_output=True,
        text=True,
    )
    return refs.stdout


def everything_told(world, caplog) -> list[str]:
    values = [getattr(record, "values", {}) for record in caplog.records]
    return [
        caplog.text + json.dumps(values, default=str),
        the_status_branch(world),
        *(
            json.dumps(world.objects(group, kind, namespace))
            for group, kind, namespace in (
                ("stoker.dev", "Fleet", "stoker-system"),
                ("stoker.dev", "ModelService", "llm"),
                ("", "ConfigMap", "stoker-system"),
                ("", "Event", "stoker-system"),
            )
        ),
    ]


@pytest.mark.parametrize("text", [QUOTED, REPEATED], ids=["quoted", "repeated"])
def test_a_refusal_that_quotes_a_secret_is_told_without_it(
    settled, faults, stoker, caplog, tmp_path, text
):
    """Through apply, diff, the exit text of apply and of run --once, logs and status."""
    caplog.set_level(logging.DEBUG)
    login = {"login.yaml": a_secret(long=LONG, short=SHORT)}
    world = settled(the_fleet(side={**login, "m.yaml": a_config_map("m")}))
    faults.refuse = refusing("m", text)
    world.commit("Change it", {"bundles/side/m.yaml": a_config_map("m", {"key": "new"})})
    rest(world)
    here = ("--path", str(world.work_tree))
    git = ("--repo", str(world.bare), "--allow-file", "--fleet", "clusters/local/fleet.yaml")
    said = {
        "diff": stoker(world, "diff", *here),
        "diff -o json": stoker(world, "diff", "-o", "json", *here),
        "status": stoker(world, "status", *here),
        "explain": stoker(world, "explain", "side", *here),
        "apply": stoker(world, "apply", "--yes", *here),
        "run --once": stoker(
            world, "run", *git, "--once", "--no-lease", "--state-folder", str(tmp_path / "s")
        ),
    }

    refused = "admission webhook"
    assert refused in message(unit_status(world, SIDE), "Ready")
    tellers = [name for name in said if refused in said[name]]
    assert ["diff", "diff -o json", "apply", "run --once"] == tellers
    for told in (*said.values(), *everything_told(world, caplog)):
        assert [form for form in (*FORMS, LONG[:12], LONG[-12:]) if form in told] == []


def test_a_condition_that_cites_a_secret_is_told_without_it(settled, stoker, caplog):
    """What a controller writes into the status of its object."""
    caplog.set_level(logging.DEBUG)
    body = {"apiVersion": WIDGET.api_version, "kind": "Widget", "metadata": {"name": "w"}}
    side = {"login.yaml": a_secret(long=LONG, short=SHORT), "w.yaml": yaml.safe_dump(body)}
    world = settled(the_fleet(crds={"crd.yaml": a_custom_kind(WIDGET, "widgets")}, side=side))
    text = f'cannot log in to postgres://me:{LONG}@db with "{SHORT}"'
    condition = {"type": "Ready", "status": "False", "reason": "Login", "message": text}
    status = {"status": {"conditions": [condition]}}
    world.cluster.patch(WIDGET, "merge", status, manager="widgets", subresource="status")
    tell(world)
    rest(world)
    said = [
        stoker(world, name, *more, "--path", str(world.work_tree))
        for name, more in (("status", ()), ("explain", ("side",)), ("diff", ()))
    ]

    assert "cannot log in" in message(unit_status(world, SIDE), "Healthy")
    assert "cannot log in" in said[1]
    for told in (*said, *everything_told(world, caplog)):
        assert [form for form in FORMS if form in told] == []
