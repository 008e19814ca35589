"""`stoker reporter`: one node's own facts, written to its NodeState; run by a DaemonSet."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import Context, Kubeconfig, LogFormat, LogLevel, RequestTimeout
from stoker.errors import Retryable
from stoker.model.ports import Clock, Cluster

__all__ = ["node_of_token", "reporter"]

MOST_ENGINES = 32
PAUSE_SECONDS = 5.0
"""Between questions to an API server that does not answer at the start."""


def reporter(
    *,
    node: Annotated[str, typer.Option("--node", help="Name of the node that this runs on.")],
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", help="HOST:PORT of an engine on this node; repeatable."),
    ] = None,
    engine_namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--engine-namespace", help="Find engines by their pods on this node; repeatable."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="Folder of the weights cache: volume, HF_HOME or hub."),
    ] = None,
    evict: Annotated[
        bool,
        typer.Option("--evict", help="Delete weights beyond cache.maxSize, longest unused first."),
    ] = False,
    cloud: Annotated[
        str, typer.Option("--cloud", help="Whose notices: auto, aws, gcp, azure or none.")
    ] = "auto",
    metadata_address: Annotated[
        str,
        typer.Option("--metadata-address", help="Its metadata service; link-local or loopback."),
    ] = "169.254.169.254",
    interval: Annotated[
        str, typer.Option("--interval", help="How often is looked; notices are told at once.")
    ] = "15s",
    holder: Annotated[
        str, typer.Option("--holder", help="Name of this reporter, the same after a restart.")
    ] = "",
    listen: Annotated[
        str, typer.Option("--listen", help="Address of /healthz and /readyz; empty: none.")
    ] = "127.0.0.1:8081",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    request_timeout: RequestTimeout = 10.0,
    log_format: LogFormat = "text",
    log_level: LogLevel = "info",
) -> int:
    """Write what this node holds, how busy it is and whether it goes away to its NodeState.

    Everything works without it, with coarser facts. Ends on Ctrl-C and SIGTERM.
    """
    from stoker.cli.connect import connect
    from stoker.cli.session import usage
    from stoker.cli.single import ourselves
    from stoker.cli.values import check_logging, check_words, seconds_of
    from stoker.clock import SystemClock
    from stoker.log import configure
    from stoker.loop.server import StatusServer
    from stoker.node.engine_pods import EnginePods
    from stoker.node.notices_auto import Cloud, notice_source
    from stoker.node.reporter import Reporter, ReporterSettings
    from stoker.node.state_writer import StateWriter

    check_words("--cloud", cloud, tuple(Cloud))
    check_logging(log_format, log_level)
    engines = tuple(dict.fromkeys(engine or ()))
    for address in engines:
        _check_address(address)
    if len(engines) > MOST_ENGINES:
        raise usage(f"--engine: {len(engines)} engines", f"at most {MOST_ENGINES} on a node")
    every = seconds_of("--interval", interval)
    if every < 1:
        raise usage(f"--interval: {interval} is too often", "at least 1s")
    if evict and cache is None:
        raise usage("--evict needs the folder", "name it with --cache")
    configure(log_level, log_format)
    clock = SystemClock()
    source = notice_source(Cloud(cloud), clock, address=metadata_address)
    cluster = connect(kubeconfig, context, timeout_seconds=request_timeout)
    bound, uid = node_of_token(cluster, clock)
    if bound not in {"", node}:
        raise usage(f"--node: {node} is not {bound}, where this pod runs", "spec.nodeName names it")
    writer = StateWriter(cluster, clock, node, holder or ourselves(), uid)
    settings = ReporterSettings(engines, cache, evict, every)
    spaces = tuple(dict.fromkeys(engine_namespace or ()))
    pods = EnginePods(cluster, node, spaces) if spaces else None
    working = Reporter(settings, writer, clock, source=source, pods=pods)
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        working.stop(stopped)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    server = None
    if listen:
        server = StatusServer(
            listen, ready=working.parts, healthy=working.healthy, metrics=lambda: b""
        )
    try:
        working.run(stopped)
    finally:
        if server is not None:
            server.close()
    return Exit.OK


def node_of_token(cluster: Cluster, clock: Clock) -> tuple[str, str]:
    """Name and UID of the node that our token is bound to; asks until the API server answers.

    On a node that boots its network comes later; a container that ends is started with longer
    and longer pauses, in which a notice would go unseen.
    """
    from stoker.kube.caller import bound_node
    from stoker.log import get_log

    while True:
        try:
            return bound_node(cluster)
        except Retryable as error:
            get_log("reporter").warning("node.unknown", code=error.code, message=error.message)
            clock.wait(PAUSE_SECONDS)


def _check_address(address: str) -> None:
    from stoker.cli.session import usage

    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise usage(f"--engine: {address!r} is no HOST:PORT", "for instance 127.0.0.1:8000")
