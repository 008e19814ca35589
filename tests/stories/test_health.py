"""Health files: custom kinds are judged by them, in status as in `stoker explain`."""

from __future__ import annotations

from typing import Any

import yaml

from stoker.model.refs import ObjectRef
from stories.files import FLEET, a_custom_kind, a_fleet, the_fleet
from stories.looks import conditions, errors, fleet_status, message, rest, tell, unit_status

SIDE = "Bundle/llm/side"
KEDA = ObjectRef("keda.sh", "ScaledObject", "llm", "llama", "v1alpha1")
WIDGET = ObjectRef("example.com", "Widget", "llm", "w", "v1")
OWN = "policies/health/widget.yaml"
CHECK = """\
apiVersion: stoker.dev/v1alpha1
kind: HealthPolicy
metadata: {name: widget}
spec:
  checks:
    - apiVersion: example.com/v1
      kind: Widget
      failed: status.phase == 'Down'
      current: status.phase == 'Up'
      message: "['phase', status.phase].join(' ')"
"""


def manifest(ref: ObjectRef, **spec: Any) -> str:
    metadata = {"name": ref.name}
    body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}
    return yaml.safe_dump(body, sort_keys=False)


def a_deployment(image: str) -> str:
    pod = {"containers": [{"name": "main", "image": image}]}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    ref = ObjectRef("apps", "Deployment", "llm", "web", "v1")
    return manifest(ref, replicas=1, selector={"matchLabels": labels}, template=template)


def files_with(ref: ObjectRef, plural: str, **more: str) -> dict[str, str]:
    side = {"object.yaml": manifest(ref, a=1)}
    crds = {"crd.yaml": a_custom_kind(ref, plural)}
    return {**the_fleet(crds=crds, side=side), **more}


def say(world, ref: ObjectRef, **status: Any) -> None:
    """What the kind's own controller writes."""
    world.cluster.patch(
        ref, "merge", {"status": status}, manager="its-controller", subresource="status"
    )


def ready(status: str, why: str = "") -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": "Because", "message": why}


def test_a_shipped_file_judges_and_is_named(settled):
    world = settled(files_with(KEDA, "scaledobjects"))
    say(world, KEDA, conditions=[ready("False", "no such metric")])
    tell(world)

    status = unit_status(world, SIDE)

    assert status["health"] == {"status": "Degraded"}
    assert conditions(status)["Healthy"] == ("False", "Failed")
    assert message(status, "Healthy") == (
        "ScaledObject llm/llama: no such metric (by policies/health/keda.yaml of Stoker)"
    )

    say(world, KEDA, conditions=[ready("True")])
    tell(world)

    assert unit_status(world, SIDE)["health"] == {"status": "Healthy"}


def test_the_fleets_own_file_judges_at_the_commit_it_stands_in(settled):
    """A commit to the file alone judges every object of the kind anew."""
    world = settled(files_with(WIDGET, "widgets", **{OWN: CHECK}))
    say(world, WIDGET, phase="Down")
    tell(world)
    assert message(unit_status(world, SIDE), "Healthy") == f"Widget llm/w: phase Down (by {OWN})"

    mended = CHECK.replace("== 'Down'", "== 'Broken'").replace("== 'Up'", "== 'Down'")
    world.commit("Down is as it should be", {OWN: mended})
    rest(world)

    assert unit_status(world, SIDE)["health"] == {"status": "Healthy"}


def test_a_kind_that_nothing_describes_is_unknown(settled):
    world = settled(files_with(WIDGET, "widgets"))
    assert unit_status(world, SIDE)["health"] == {"status": "Healthy"}, "no status, no wait"

    say(world, WIDGET, phase="Up")
    tell(world)

    status = unit_status(world, SIDE)
    assert conditions(status)["Healthy"] == ("Unknown", "NoHealthCheck")
    assert "policies/health/" in message(status, "Healthy")


def test_a_health_file_that_is_wrong_is_told_by_line_and_stops_no_unit(settled):
    world = settled(files_with(WIDGET, "widgets", **{OWN: CHECK.replace("'Up'", "up")}))
    say(world, WIDGET, phase="Up")

    world.commit("Go on", {"bundles/side/object.yaml": manifest(WIDGET, a=2)})
    rest(world)

    assert world.cluster.get(WIDGET)["spec"] == {"a": 2}
    assert errors(fleet_status(world)) == [("invalid-expression", OWN, 9)]
    status = unit_status(world, SIDE)
    assert status["health"] == {"status": "Unknown"}
    assert f"{OWN}:9:" in message(status, "Healthy")


def test_health_files_are_never_taken_for_units(settled):
    """Or the unit set would be unknown, and nothing pruned any more."""
    fleet = a_fleet(include=["/bundles/*/bundle.yaml", "/policies/**/*.yaml"])
    world = settled(files_with(WIDGET, "widgets", **{OWN: CHECK, FLEET: fleet}))

    assert [e for e in errors(fleet_status(world)) if e[1] == OWN] == []
    assert unit_status(world, SIDE)["sync"] == {"status": "Synced"}


def test_what_was_just_written_is_judged_as_it_was_answered(settled):
    """A new template is no Ready one before its pods are: `wait --for Ready` would return early."""
    world = settled(the_fleet(side={"web.yaml": a_deployment("x:1")}))
    before = conditions(unit_status(world, SIDE))["Ready"]
    world.commit("Another image", {"bundles/side/web.yaml": a_deployment("x:2")})

    world.one_pass()
    world.clock.wait(5)
    world.work.publisher.turn()
    status = unit_status(world, SIDE)

    assert before[0] == "True"
    assert status["sync"] == {"status": "Synced"}
    assert status["health"] == {"status": "Progressing"}
    assert conditions(status)["Ready"][0] == "False"
