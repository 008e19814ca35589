"""Every example is a working repository: it validates, renders and converges as it stands."""

from __future__ import annotations

import pytest

from stoker.cli.app import run
from stoker.cli.world import CLUSTER_UID, WorldNode
from stoker.sim.groups import group_definition
from stories.files import EXAMPLES, example
from stories.looks import is_clean, serving

OTHER_UID = CLUSTER_UID[:-1] + "2"
GPUS = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
L4 = tuple(
    WorldNode(
        f"l4-{number}",
        {"pool": "l4", "capacity": "spot" if number > 3 else "on-demand"},
        spot=number > 3,
    )
    for number in (1, 2, 3, 4, 5)
)
RACKS = tuple(
    WorldNode(f"h100-{rack}{number}", {"pool": "h100", "example.com/rack": rack}, gpus=4)
    for rack in ("a", "b")
    for number in (1, 2)
)
SCENES = {
    "quickstart": ("local", GPUS, {"qwen-0-5b": 2}),
    "scheduler": ("scheduler", GPUS, {"rerank-m3": 2}),
    "bundle": ("bundle", GPUS[:1], {}),
    "scaling": ("local", GPUS, {"chat": 1, "embed": 1}),
    "groups": ("groups", RACKS, {"large-405b": 2}),
    "two-pools": ("prod-eu", L4, {"qwen-7b": 3, "embed-e5": 2}),
    "two-clusters": ("prod-eu", GPUS, {"qwen-7b": 2}),
    "two-clusters/us": ("prod-us", GPUS, {"qwen-7b": 1}),
}


NO_FLEETS = {"coldstart", "rehearsals", "traces"}
"""Recorded starts, for `stoker coldstart`; tests/unit/cli/test_coldstart.py reads them.
Scenarios, for `stoker rehearse`; test_rehearsals.py plays them.
A trace, for `stoker simulate`; tests/shape/test_docs_pictures.py draws it.
"""


def test_every_example_is_told_here():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - NO_FLEETS

    assert folders == {name.partition("/")[0] for name in SCENES}


@pytest.mark.parametrize("name", sorted({name.partition("/")[0] for name in SCENES}))
def test_an_example_validates_and_renders(name, capsys):
    assert 0 == run(["validate", str(EXAMPLES / name)])

    fleets = sorted(
        path.relative_to(EXAMPLES / name) for path in EXAMPLES.glob(f"{name}/clusters/*/*")
    )
    for fleet in fleets:
        capsys.readouterr()
        assert 0 == run(["render", "--path", str(EXAMPLES / name), "--fleet", str(fleet)])
        assert "stoker.dev/owner" in capsys.readouterr().out


@pytest.mark.parametrize("name", SCENES)
def test_an_example_converges(new_world, name):
    fleet, nodes, replicas = SCENES[name]
    folder = "local" if fleet in {"scheduler", "bundle", "groups"} else fleet
    world = new_world(*nodes, fleet_path=f"clusters/{folder}/fleet.yaml")
    world.cluster.apply(group_definition(), manager="install")
    files = example(name.partition("/")[0])

    if name.endswith("/us"):
        files = {path: text.replace(OTHER_UID, CLUSTER_UID) for path, text in files.items()}
    world.commit("The example", files)
    world.advance(10)
    world.clock.wait(60)
    world.settle()

    assert replicas == {service: len(serving(world, service)) for service in replicas}
    assert is_clean(world, fleet)
