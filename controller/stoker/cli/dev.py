"""`stoker dev`: a real control plane, simulated GPU nodes and engines, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import Context, Kubeconfig
from stoker.cli.style import narrate
from stoker.errors import Stalled

if TYPE_CHECKING:
    from stoker.sim.controlplane import ControlPlane
    from stoker.sim.dev_cluster import DevCluster, NodePool

__all__ = ["app"]

app = typer.Typer(
    help="Stand-ins for development: a cluster, GPU nodes, an engine. No GPU needed.",
    no_args_is_help=True,
)

START_SECONDS = 2400
"""A first start compiles the control plane, about 5 minutes on two cores."""

Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="Where its files live (else below XDG_STATE_HOME)."),
]
Pool = Annotated[
    list[str] | None,
    typer.Option("--pool", help="Nodes to make: NAME=COUNTxGPUS, `:spot` for spot; repeatable."),
]
Speed = Annotated[float, typer.Option("--speed", help="How much faster than real time starts are.")]


@app.command("cluster", short_help="Run a real control plane with simulated GPU nodes")
def cluster(
    *,
    nodes: Annotated[int, typer.Option("--nodes", help="GPU nodes with the label pool=gpu.")] = 3,
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs on each of them.")] = 1,
    pool: Pool = None,
    speed: Speed = 1.0,
    folder: Folder = None,
    background: Annotated[
        bool, typer.Option("--background", help="Leave it running and come back.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the one that runs.")] = False,
) -> int:
    """Run a real Kubernetes control plane with simulated GPU nodes until Ctrl-C.

    Prints the path of its kubeconfig once it serves.
    """
    from stoker.sim.dev_cluster import DevCluster, NodePool, pool_from_text

    place = DevCluster(folder or _state_folder())
    if stop:
        narrate(f"stopped the cluster in {place.folder}" if place.stop() else "no cluster runs")
        return Exit.OK
    pools = [pool_from_text(text) for text in pool or ()]
    if nodes:
        pools.insert(0, NodePool("gpu", nodes, gpus))
    if background:
        return _in_background(place, tuple(pools), speed)

    def started(control_plane: ControlPlane) -> None:
        made = sum(p.count for p in pools)
        narrate(f"{control_plane.url} serves, {made} simulated nodes; Ctrl-C ends it")
        sys.stdout.write(f"{place.kubeconfig_path}\n")
        sys.stdout.flush()

    with _stopped_by_signals() as ended:
        place.serve(ended, tuple(pools), speed=speed, progress=narrate, started=started)
    return Exit.OK


@app.command("nodes", short_help="Play the kubelet of simulated GPU nodes")
def nodes(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    pool: Pool = None,
    speed: Speed = 1.0,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote", help="Also on a cluster that is not on this machine: pods go there!"
        ),
    ] = False,
) -> int:
    """Play the kubelet of simulated GPU nodes, one HTTP engine a pod, until Ctrl-C.

    Nodes of --pool are made; nodes with the label stoker.dev/simulated=true are played.
    """
    from stoker.kube.https import HttpsTransport
    from stoker.sim.dev_cluster import play_nodes, pool_from_text

    pools = tuple(pool_from_text(text) for text in pool or ())
    transport = HttpsTransport.from_kubeconfig(kubeconfig, context or None, environment=os.environ)
    if not allow_remote and not transport.url.startswith(("https://127.", "https://localhost")):
        raise Stalled(
            f"{transport.url} is not on this machine: real pods would be sent to nodes that don't exist",
            code="usage",
            hint="--allow-remote if that cluster is for nothing else",
        )

    def ready() -> None:
        narrate(f"playing {sum(p.count for p in pools)} nodes on {transport.url}; Ctrl-C ends it")

    with _stopped_by_signals() as ended:
        play_nodes(transport, pools, ended, speed=speed, ready=ready)
    transport.close()
    return Exit.OK


@app.command("engine", short_help="Run one engine stand-in that speaks vLLM's HTTP")
def engine(
    *,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Served model name; repeatable.")
    ] = None,
    load_seconds: Annotated[
        float, typer.Option("--load-seconds", help="Time from start to the first answer.")
    ] = 0.0,
    max_num_seqs: Annotated[
        int, typer.Option("--max-num-seqs", help="Sequences in one batch.")
    ] = 16,
    shutdown_timeout: Annotated[
        float, typer.Option("--shutdown-timeout", help="Seconds to finish requests after SIGTERM.")
    ] = 0.0,
    speed: Speed = 1.0,
    dev_mode: Annotated[
        bool,
        typer.Option("--dev-mode/--no-dev-mode", help="Serve /sleep, /wake_up and /is_sleeping."),
    ] = True,
) -> int:
    """Run one engine stand-in that speaks vLLM's HTTP; prints its address."""
    from stoker.clock import SystemClock
    from stoker.sim.engine import Engine
    from stoker.sim.engine_batch import BatchProfile
    from stoker.sim.engine_profile import EngineProfile

    profile = EngineProfile(
        models=tuple(model or ("model",)),
        load_seconds=load_seconds,
        batch=BatchProfile(max_sequences=max_num_seqs),
        speed=speed,
        dev_mode=dev_mode,
    )
    with _stopped_by_signals() as ended, Engine(profile, port=port, clock=SystemClock()) as running:
        sys.stdout.write(f"{running.address}\n")
        sys.stdout.flush()
        ended.wait()
        narrate(f"stopping with {running.in_flight} requests in flight")
        running.shutdown(shutdown_timeout)
    return Exit.OK


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, both the normal way to end these commands.

    A second one interrupts whatever still runs, such as a compiler.
    """
    event = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_background(place: DevCluster, pools: tuple[NodePool, ...], speed: float) -> int:
    """Start the same command in a session of its own and wait until it serves."""
    from stoker.clock import SystemClock
    from stoker.sim.child import tail

    if not place.running_pid():
        place.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "stoker", "dev", "cluster", "--nodes", "0"]
        command += ["--folder", str(place.folder), "--speed", str(speed)]
        for each in pools:
            spot = ":spot" if each.spot else ""
            command += ["--pool", f"{each.name}={each.count}x{each.gpus}{spot}"]
        with place.log_path.open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        clock = SystemClock()
        deadline = clock.monotonic() + START_SECONDS
        while not place.ready:
            if child.poll() is not None or clock.monotonic() > deadline:
                raise Stalled(
                    f"the cluster did not start: {tail(place.log_path)}",
                    code="control-plane-not-ready",
                )
            clock.wait(0.1)
        # It outlives us on purpose; forgetting it keeps Python from warning at its end.
        child.returncode = 0
    narrate(f"a cluster runs in {place.folder}; stoker dev cluster --stop ends it")
    narrate(f"export KUBECONFIG={place.kubeconfig_path}")
    sys.stdout.write(f"{place.kubeconfig_path}\n")
    return Exit.OK


def _state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "stoker" / "dev-cluster"
