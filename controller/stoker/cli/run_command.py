"""`stoker run`: the controller, or one pass with --once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, is_wrong_use, print_findings
from stoker.cli.options import (
    As,
    Context,
    FleetId,
    Kubeconfig,
    LogFormat,
    LogLevel,
    Ref,
    RepoUrl,
    RequestTimeout,
    StateNamespace,
)

__all__ = ["run"]


def run(
    *,
    repo: RepoUrl,
    ref: Ref = "main",
    fleet: Annotated[
        str, typer.Option("--fleet", help="Fleet file, from the repository root.")
    ] = "fleet.yaml",
    once: Annotated[
        bool, typer.Option("--once", help="Make one pass, publish status, exit.")
    ] = False,
    poll_interval: Annotated[
        str, typer.Option("--poll-interval", help="How often Git is asked (30s, 1m).")
    ] = "30s",
    full_interval: Annotated[
        str, typer.Option("--full-pass", help="A pass over everything at least this often.")
    ] = "10m",
    coalesce: Annotated[
        str, typer.Option("--coalesce", help="How long events are collected before a pass.")
    ] = "200ms",
    backoff_first: Annotated[
        str, typer.Option("--backoff-first", help="Wait after a failed pass; doubles each time.")
    ] = "1s",
    backoff_max: Annotated[
        str, typer.Option("--backoff-max", help="Longest wait after failed passes.")
    ] = "5m",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
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
    log_format: LogFormat = "text",
    log_level: LogLevel = "info",
    render_workers: Annotated[
        int, typer.Option("--render-workers", help="Render children; 0: one per core.")
    ] = 0,
    jail: Annotated[
        str, typer.Option("--jail", help="Preferred, or Required: refuse to render without it.")
    ] = "Preferred",
    lease: Annotated[
        bool, typer.Option("--lease/--no-lease", help="One controller of a fleet at a time.")
    ] = True,
    lease_duration: Annotated[
        str, typer.Option("--lease-duration", help="How long others watch a lease that is still.")
    ] = "15s",
    lease_renew_deadline: Annotated[
        str,
        typer.Option("--lease-renew-deadline", help="Writes start until so long after a renewal."),
    ] = "10s",
    lease_retry: Annotated[
        str, typer.Option("--lease-retry", help="How often the lease is renewed.")
    ] = "2s",
    request_timeout: RequestTimeout = 30.0,
    allow_file: Annotated[
        bool, typer.Option("--allow-file", help="Allow a path as --repo (demo and tests).")
    ] = False,
) -> int:
    """Follow a fleet repository and make the cluster what it says."""
    from stoker.cli.controller import Controller
    from stoker.cli.remote import git_repo
    from stoker.cli.session import Session, Target, usage
    from stoker.cli.values import check_logging, check_words, seconds_of
    from stoker.kube.gate import WriteGate
    from stoker.log import configure
    from stoker.settings import (
        ClusterSettings,
        LoopSettings,
        ServerSettings,
        Settings,
        SourceSettings,
    )

    check_logging(log_format, log_level)
    check_words("--jail", jail, ("Preferred", "Required"))
    if Path(repo).is_dir():
        if not allow_file:
            raise usage(f"--repo: {repo} is a folder", "--allow-file allows one")
        repo = str(Path(repo).absolute())
    configure(log_level, log_format)
    settings = Settings(
        source=SourceSettings(repo, ref, fleet, ssh_key, known_hosts, credentials, allow_file),
        cluster=ClusterSettings(
            kubeconfig, context, state_namespace, fleet_id, request_timeout, as_user
        ),
        loop=LoopSettings(
            poll_interval_seconds=seconds_of("--poll-interval", poll_interval),
            coalesce_seconds=seconds_of("--coalesce", coalesce),
            backoff_first_seconds=seconds_of("--backoff-first", backoff_first),
            backoff_max_seconds=seconds_of("--backoff-max", backoff_max),
            full_pass_seconds=seconds_of("--full-pass", full_interval),
            lease=lease,
            lease_duration_seconds=seconds_of("--lease-duration", lease_duration),
            lease_renew_deadline_seconds=seconds_of("--lease-renew-deadline", lease_renew_deadline),
            lease_retry_seconds=seconds_of("--lease-retry", lease_retry),
            once=once,
            render_workers=render_workers,
            jail=jail,
        ),
        server=ServerSettings(listen, log_format, log_level),
        state_folder=state_folder,
    )
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    gate = WriteGate()
    session = Session(
        git_repo(settings, gate),
        target,
        render_workers=render_workers,
        require_jail=jail == "Required",
        gate=gate,
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
