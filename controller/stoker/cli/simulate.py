"""`stoker simulate`: what policies would have done on a trace, in virtual time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import FleetPath, NoColor, Root
from stoker.cli.style import Style, narrate

if TYPE_CHECKING:
    from stoker.sim.fleet_ground import FleetGround
    from stoker.sim.own_policy import StokerPolicy
    from stoker.sim.policy import Policy
    from stoker.sim.traffic import Request

__all__ = ["simulate"]

OUTPUTS = ("text", "json", "svg")


def simulate(
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            help="File of requests: Azure's CSV, Mooncake's JSON lines, a table of rates, a range "
            "export of Prometheus; also .gz. A name without a folder is looked for in STOKER_TRACES, "
            "too.",
        ),
    ] = "",
    *,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="NAME[:SIGNAL][=KNOB], as in hpa-average:in-flight=20; repeatable (else stoker and "
            "clairvoyant). fixed, hpa-value, hpa-average, keda, llmscaler, wva-v1, wva-v2, kpa, "
            "stoker (the knob is headroom in %), clairvoyant.",
        ),
    ] = None,
    path: Root = Path(),
    fleet: FleetPath = "",
    service: Annotated[
        str, typer.Option("--service", help="Play the scaling block of this service, too.")
    ] = "",
    base: Annotated[
        str,
        typer.Option("--base", help="Revision whose scaling block of --service is played, too."),
    ] = "",
    head: Annotated[
        str, typer.Option("--head", help="Revision to compare with --base (else the files here).")
    ] = "",
    engine: Annotated[str, typer.Option("--engine", help="8b-l4, 8b-h100 or 70b-8h100.")] = "8b-l4",
    cold_start: Annotated[
        str, typer.Option("--cold-start", help="From purchase to Ready.")
    ] = "60s",
    ttft: Annotated[
        str, typer.Option("--ttft", help="Promised time to the first token; 0s promises nothing.")
    ] = "5s",
    itl: Annotated[
        str, typer.Option("--itl", help="Promised mean time between tokens; 0s promises nothing.")
    ] = "0s",
    first: Annotated[
        int, typer.Option("--first", help="Replicas that serve at the begin.", min=0, max=10_000)
    ] = 1,
    min_replicas: Annotated[
        int, typer.Option("--min", help="Fewest replicas.", min=0, max=10_000)
    ] = 1,
    max_replicas: Annotated[
        int, typer.Option("--max", help="Most replicas.", min=1, max=10_000)
    ] = 100,
    peak: Annotated[
        float,
        typer.Option(
            "--peak",
            help="Scale the trace until its busiest minute keeps so many replicas busy; 0 leaves it.",
            min=0,
            max=1_000,
        ),
    ] = 0.0,
    backwards: Annotated[
        bool, typer.Option("--reversed", help="Play the trace from its end to its begin.")
    ] = False,
    resample: Annotated[
        bool, typer.Option("--resampled", help="Draw its five-minute blocks anew.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="What random choices are drawn from.")] = 1,
    router: Annotated[
        str, typer.Option("--router", help="round-robin, least-queue or prefix.")
    ] = "least-queue",
    spot: Annotated[
        str,
        typer.Option("--spot", help="File of instances that could be had; what is beyond dies."),
    ] = "",
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs of a replica.", min=1, max=64)] = 1,
    price: Annotated[
        float, typer.Option("--price", help="Of a GPU for an hour; 0 is not known.", min=0)
    ] = 0.0,
    prompt_tokens: Annotated[
        int, typer.Option("--prompt-tokens", help="Of a request where the trace has rates.", min=1)
    ] = 1024,
    output_tokens: Annotated[
        int, typer.Option("--output-tokens", help="Of an answer where the trace has rates.", min=1)
    ] = 256,
    output: Annotated[
        str, typer.Option("--output", "-o", help="text, json (stoker schema Simulation) or svg.")
    ] = "text",
    no_color: NoColor = False,
) -> int:
    """Play a trace of requests against policies for the count of replicas, in virtual time.

    Engines are modelled step by step (batching, KV blocks, prefixes); the policy stoker is the
    controller's own rule. Nothing is read from a cluster and nothing is written.
    """
    from stoker.cli.print_simulation import Played, simulation_json, simulation_text
    from stoker.cli.session import usage
    from stoker.cli.simulate_policies import policy_of
    from stoker.cli.simulation_svg import simulation_svg
    from stoker.model.scaling import Slo
    from stoker.sim.fleet_ground import ENGINES, FleetGround
    from stoker.sim.fleet_run import simulate as play
    from stoker.sim.routing import RouterName
    from stoker.sim.trace_files import RateShape, read_spot, read_trace

    if output not in OUTPUTS:
        raise usage(f"no output {output!r}", ", ".join(OUTPUTS))
    if not trace:
        raise usage("no trace", "--trace FILE")
    if engine not in ENGINES:
        raise usage(f"--engine: no engine {engine!r}", ", ".join(ENGINES))
    if router not in list(RouterName):
        raise usage(f"--router: no router {router!r}", ", ".join(RouterName))
    if min_replicas > max_replicas:
        raise usage(f"--min {min_replicas} is above --max {max_replicas}")
    if (base or head) and not (service and base):
        raise usage("--base and --head compare the scaling block of a service", "--service NAME")
    ground = FleetGround(
        ENGINES[engine],
        cold_start_s=_duration_ms("--cold-start", cold_start) / 1000,
        slo=Slo(_duration_ms("--ttft", ttft) or None, _duration_ms("--itl", itl) or None),
        first=min(max(first, min_replicas), max_replicas),
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        gpus=gpus,
        price=price,
        router=RouterName(router),
        seed=seed,
        spot=read_spot(_found(spot)) if spot else None,
    )
    known = list(read_trace(_found(trace), RateShape(prompt_tokens, output_tokens, seed)))
    requests = _made(known, ground, peak, seed, backwards=backwards, resample=resample)
    own: list[StokerPolicy] = []
    if service:
        revisions = (base, head) if base else ("",)
        own = [_from_git(path, fleet, service, revision, ground) for revision in revisions]
    words = policies or ([] if own else ["stoker", "clairvoyant"])
    chosen: list[Policy] = [*own, *(policy_of(word, requests, ground) for word in words)]
    played = Played(Path(trace).name, engine, ground, len(requests), [])
    for policy in chosen:
        narrate(f"{policy.name} on {len(requests)} requests")
        played.runs.append(play(requests, policy, ground))
    match output:
        case "json":
            sys.stdout.write(json.dumps(simulation_json(played), indent=2, sort_keys=True) + "\n")
        case "svg":
            sys.stdout.write(simulation_svg(played))
        case _:
            sys.stdout.write(simulation_text(played, Style(sys.stdout, no_color=no_color)))
    return Exit.OK


def _made(
    known: list[Request],
    ground: FleetGround,
    peak: float,
    seed: int,
    *,
    backwards: bool,
    resample: bool,
) -> list[Request]:
    """The requests that are played, from those of the file."""
    from stoker.sim.traffic import peak_need, resampled, reversed_in_time, scaled

    requests = known
    if peak and requests:
        requests = list(scaled(requests, peak / peak_need(requests, ground.engine), seed))
    if backwards:
        requests = reversed_in_time(requests)
    return resampled(requests, seed) if resample else requests


def _found(name: str) -> Path:
    """The file, or the one of that name in the folder of traces."""
    import os

    path, folder = Path(name), os.environ.get("STOKER_TRACES", "")
    if path.exists() or not folder or path.is_absolute():
        return path
    inside = [Path(folder) / place / name for place in ("", "requests", "spot")]
    return next((place for place in inside if place.exists()), path)


def _duration_ms(option: str, text: str) -> int:
    from stoker.cli.session import usage
    from stoker.source.durations import duration_ms

    try:
        return duration_ms(text)
    except ValueError as error:
        raise usage(f"{option}: {error}", "as in 90s or 1m30s") from error


def _from_git(
    path: Path, fleet: str, service: str, revision: str, ground: FleetGround
) -> StokerPolicy:
    """The scaling block of a service at a revision, as a policy."""
    from stoker.cli.session import local_repo, only_fleet
    from stoker.errors import BadInput, Severity, Stalled
    from stoker.model.fleet import ModelService
    from stoker.sim.own_policy import StokerPolicy
    from stoker.source import SourceMemo, source

    repo = local_repo(path, revision)
    try:
        at = repo.resolve(revision) if revision else repo.fetch()
        desired = source(repo, only_fleet(repo, at, fleet), SourceMemo(), revision=at)
    finally:
        repo.close()
    specs = [unit.spec for unit in desired.units if unit.ref.name == service]
    found = [spec for spec in specs if isinstance(spec, ModelService)]
    where = f" at {revision}" if revision else ""
    errors = tuple(f for f in desired.findings if f.severity is Severity.ERROR)
    if not found and errors:
        raise BadInput(errors)
    if not found:
        raise Stalled(f"no service {service!r}{where}", code="no-such-unit")
    if found[0].scaling is None:
        message = f"{service}{where} has no spec.scaling with mode Stoker"
        raise Stalled(message, code="no-scaling", hint="its count is fixed, or somebody else's")
    label = f"{service}@{revision[:12] or 'files'}"
    price = ground.price * ground.gpus or None
    return StokerPolicy(found[0].scaling, label, round(ground.cold_start_s * 1000), price)
