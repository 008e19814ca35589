"""Settings of the controller, frozen, by group. Only cli reads arguments and environment
and fills these; every field is an option of `stoker run` (tested).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ClusterSettings", "LoopSettings", "ServerSettings", "Settings", "SourceSettings"]


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where desired state comes from."""

    repo: str
    """URL of the fleet repository (https, ssh, or http on loopback)."""
    ref: str = "main"
    """Branch, tag or commit; `main` and `refs/heads/main` are the same."""
    fleet: str = "fleet.yaml"
    """Path of the Fleet file from the repository root."""
    ssh_key: Path | None = None
    """Private key for ssh URLs."""
    known_hosts: Path | None = None
    """Host keys for ssh URLs; without it the user's own file is used."""
    credentials: Path | None = None
    """File with one line `user:password` (or a token as password) for https URLs."""
    allow_file: bool = False
    """Allow paths and file URLs as repository: for demo and tests only."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Which cluster, and under which name this controller works in it."""

    kubeconfig: Path | None = None
    """Kubeconfig file; without it KUBECONFIG, then in-cluster, then ~/.kube/config."""
    context: str = ""
    """Context of the kubeconfig; empty means its current one."""
    namespace: str = "stoker-system"
    """Where inventory and lease live."""
    fleet_id: str = ""
    """Id fixed at first install; empty derives it from cluster and fleet name."""
    request_timeout_seconds: float = 30.0
    """Bound of one API request."""
    impersonate: str = ""
    """User to act as, as kubectl's --as."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """When passes run."""

    poll_interval_seconds: float = 30.0
    """How often the repository is asked for news; jitter of 10 % is added."""
    coalesce_seconds: float = 0.2
    """How long events are collected before a pass (design section 2)."""
    backoff_first_seconds: float = 1.0
    """First wait after a failed pass; doubles up to backoff_max_seconds."""
    backoff_max_seconds: float = 300.0
    """Longest wait after failed passes."""
    full_pass_seconds: float = 600.0
    """A pass over everything at least this often, whatever the events say."""
    lease: bool = True
    """Hold a Lease so that one controller works at a time."""
    lease_duration_seconds: float = 15.0
    """How long others watch an unchanged lease before they take it."""
    lease_renew_deadline_seconds: float = 10.0
    """After the last renewal no write starts later than that; a write may take 80 % of what is
    left of lease_duration_seconds, so slow admission webhooks need longer leases."""
    lease_retry_seconds: float = 2.0
    """How often the lease is renewed; who waits looks twice as often."""
    once: bool = False
    """One pass, then publish and exit."""
    render_workers: int = 0
    """Render children; 0 means one per core."""
    jail: str = "Preferred"
    """Required refuses to render where the kernel lacks a part of the jail."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the controller shows over HTTP."""

    address: str = "127.0.0.1:8080"
    """Listen address of /healthz, /readyz and /metrics; empty turns it off."""
    log_format: str = "text"
    """text for people, json for machines."""
    log_level: str = "info"
    """debug, info, warning or error."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it. `state_folder` holds the Git mirror and caches (0700)."""

    source: SourceSettings
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    state_folder: Path = Path(".stoker")
