"""`stoker run`: the controller, or one pass with --once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, is_wrong_use, print_findings
from stoker.cli.options import Context, Kubeconfig, Ref, RepoUrl, RequestTimeout, StateNamespace

__all__ = ["run"]


def run(
    *,
    repo: RepoUrl,
    ref: Ref = "main",
    fleet: Annotated[str, typer.Option("--fleet", help="Fleet file in it.")] = "fleet.yaml",
    once: Annotated[bool, typer.Option("--once", help="One pass, publish, exit.")] = False,
    poll_interval: Annotated[
        str, typer.Option("--poll-interval", help="How often Git is asked (30s, 1m).")
    ] = "30s",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: Annotated[
        str, typer.Option("--fleet-id", help="Id fixed at the first install.")
    ] = "",
    state_folder: Annotated[
        Path, typer.Option("--state-folder", help="Git mirror and caches.")
    ] = Path(".stoker"),
    ssh_key: Annotated[Path | None, typer.Option("--ssh-key", help="Key for ssh URLs.")] = None,
    known_hosts: Annotated[
        Path | None, typer.Option("--known-hosts", help="Host keys for ssh URLs.")
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option("--credentials", help="File `user:password` for https URLs.")
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", help="Address of /healthz, /readyz, /metrics; empty: none.")
    ] = "127.0.0.1:8080",
    log_format: Annotated[str, typer.Option("--log-format", help="text or json.")] = "text",
    log_level: Annotated[
        str, typer.Option("--log-level", help="debug, info, warning, error.")
    ] = "info",
    render_workers: Annotated[
        int, typer.Option("--render-workers", help="Render children; 0: one per core.")
    ] = 0,
    jail: Annotated[
        str, typer.Option("--jail", help="Preferred, or Required: refuse to render without it.")
    ] = "Preferred",
    lease: Annotated[
        bool, typer.Option("--lease/--no-lease", help="One controller of a fleet at a time.")
    ] = True,
    request_timeout: RequestTimeout = 30.0,
    allow_file: Annotated[
        bool, typer.Option("--allow-file", help="Allow a path as --repo (demo and tests).")
    ] = False,
) -> int:
    """Follow a fleet repository and make the cluster what it says."""
    from stoker.cli.controller import Controller
    from stoker.cli.remote import git_repo
    from stoker.cli.session import Session, Target, usage
    from stoker.log import configure
    from stoker.settings import (
        ClusterSettings,
        LoopSettings,
        ServerSettings,
        Settings,
        SourceSettings,
    )
    from stoker.source.durations import duration_ms

    if log_format not in {"text", "json"} or jail not in {"Preferred", "Required"}:
        raise usage("--log-format is text or json, --jail Preferred or Required")
    try:
        poll_ms = duration_ms(poll_interval)
    except ValueError as error:
        raise usage(f"--poll-interval: {error}", "for instance 30s") from error
    configure(log_level, log_format)
    settings = Settings(
        source=SourceSettings(repo, ref, fleet, ssh_key, known_hosts, credentials, allow_file),
        cluster=ClusterSettings(kubeconfig, context, state_namespace, fleet_id, request_timeout),
        loop=LoopSettings(
            poll_interval_seconds=poll_ms / 1000,
            lease=lease and not once,
            once=once,
            render_workers=render_workers,
            jail=jail,
        ),
        server=ServerSettings(listen, log_format, log_level),
        state_folder=state_folder,
    )
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout)
    session = Session(
        git_repo(settings),
        target,
        render_workers=render_workers,
        require_jail=jail == "Required",
    )
    with session:
        controller = Controller(settings, session)
        if not once:
            controller.run()
            return Exit.OK
        failure = controller.once()
        if failure is not None:
            print_findings((failure,))
            return Exit.USAGE if is_wrong_use(failure.code) else Exit.UNDECIDED
    return Exit.OK
