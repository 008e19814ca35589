"""`stoker rehearse`: play a scenario under load, and hold what happened against its bars."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import NoColor
from stoker.cli.style import Style, narrate

if TYPE_CHECKING:
    from stoker.cli.print_rehearsal import Played
    from stoker.rehearse.ground import Ground
    from stoker.rehearse.schema import ScenarioFile

__all__ = ["rehearse"]

OUTPUTS = ("text", "json", "svg")
GROUNDS = ("memory", "controlplane")


def rehearse(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="Name of a shipped scenario, or a file; without it, the shipped ones are listed.",
        ),
    ] = "",
    *,
    ground: Annotated[
        str,
        typer.Option(
            "--on",
            help="memory: the in-memory cluster in virtual time; controlplane: a real one with "
            "simulated nodes, in real time.",
        ),
    ] = "memory",
    speed: Annotated[
        float,
        typer.Option("--speed", help="How much faster than real time, on a real control plane."),
    ] = 1.0,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seed", help="What the requests are drawn from; repeatable (else 1)."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="text, json (stoker schema Rehearsal) or svg.")
    ] = "text",
    no_color: NoColor = False,
) -> int:
    """Play a scenario under load: nodes that go, evictions, changes, a controller that dies.

    Requests come as an open loop without retries; refused, truncated and unavoidable ones are
    counted apart. Exit 0 when every bar of the scenario holds, 1 when one is missed, 3 when the
    services were not Ready to begin with.
    """
    from stoker.cli.print_rehearsal import rehearsal_json, rehearsal_text
    from stoker.cli.rehearsal_svg import rehearsal_svg
    from stoker.cli.session import usage
    from stoker.log import configure
    from stoker.rehearse.scenario import scenario_named

    if output not in OUTPUTS:
        raise usage(f"no output {output!r}", "text, json or svg")
    if ground not in GROUNDS:
        raise usage(f"--on: no ground {ground!r}", ", ".join(GROUNDS))
    if not scenario:
        return _list()
    configure("error")
    found = scenario_named(scenario)
    played = []
    for seed in seeds or [1]:
        narrate(f"{found.metadata.name} on {ground}, seed {seed}")
        played.append(_played(found, ground, seed, speed))
    match output:
        case "json":
            data = rehearsal_json(found, played)
            sys.stdout.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
        case "svg":
            sys.stdout.write(rehearsal_svg(found, *played[0]))
        case _:
            style = Style(sys.stdout, no_color=no_color)
            sys.stdout.write(rehearsal_text(found, played, style))
    if not all(judgement.began for _, judgement in played):
        return Exit.UNDECIDED
    return Exit.OK if all(judgement.holds for _, judgement in played) else Exit.DIFFERENCES


def _played(scenario: ScenarioFile, ground: str, seed: int, speed: float) -> Played:
    from stoker.rehearse.judge import judge
    from stoker.rehearse.play import play

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="stoker-rehearsal-")))
        stage = _stage(stack, folder, scenario, ground, seed, speed)
        recording = play(scenario, stage, seed)
    return recording, judge(scenario.spec, recording)


def _stage(
    stack: ExitStack, folder: Path, scenario: ScenarioFile, ground: str, seed: int, speed: float
) -> Ground:
    """The ground, ended with the stack."""
    if ground == "memory":
        from stoker.cli.rehearse_memory import MemoryGround

        return stack.enter_context(closing(MemoryGround(folder, scenario.spec, seed)))
    from stoker.cli.rehearse_plane import PlaneGround
    from stoker.sim.controlplane import ControlPlane

    plane = stack.enter_context(ControlPlane(folder / "plane", progress=narrate))
    return stack.enter_context(closing(PlaneGround(folder, scenario.spec, seed, plane, speed)))


def _list() -> int:
    from stoker.rehearse.scenario import scenario_named, shipped_scenarios

    names = list(shipped_scenarios())
    width = max((len(name) for name in names), default=0)
    for name in names:
        sys.stdout.write(f"{name:{width}}  {scenario_named(name).spec.about}\n")
    return Exit.OK
