"""From flags to the parts of a pass; `run`, `apply`, `diff`, `plan` and `explain` share it.

A session owns what has to be closed: transport, Git children, render children.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from stoker._version import __version__
from stoker.apply import HistoryStore, InventoryStore
from stoker.cli.connect import connect, context_name, expected_caller
from stoker.cli.exits import print_findings
from stoker.clock import SystemClock
from stoker.diff import DiffMemo
from stoker.errors import BadInput, Finding, Severity, SourceLocation, Stalled
from stoker.git import FolderRepo, open_local
from stoker.kube.client import Client
from stoker.kube.gate import WriteGate
from stoker.model.fleet import Desired
from stoker.model.ports import Clock, Cluster, Repo
from stoker.model.refs import SourceRevision
from stoker.objects.names import fleet_id_of
from stoker.observe import Observer
from stoker.reconcile import Parts
from stoker.render import Renderer
from stoker.report import Identity
from stoker.signals import ReadOnce, SecretHeaders, SignalReader
from stoker.source import SourceMemo, source

__all__ = [
    "ClosableRepo",
    "Session",
    "Target",
    "connect",
    "find_fleets",
    "fleet_header",
    "local_repo",
    "only_fleet",
    "usage",
]

LOAD_TIMEOUT_SECONDS = 1.0


class ClosableRepo(Repo, Protocol):
    """A repository that holds child processes."""

    def close(self) -> None:
        """End them."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster, which fleet, and under which name we work there."""

    kubeconfig: Path | None = None
    context: str = ""
    fleet_path: str = ""
    fleet_id: str = ""
    namespace: str = "stoker-system"
    timeout_seconds: float = 30.0
    as_user: str = ""
    """Whom to act as; empty for the kubeconfig's own user."""


def local_repo(path: Path, revision: str = "") -> ClosableRepo:
    """The folder as it is (uncommitted files too), or a revision of its own Git history."""
    if not path.is_dir():
        what = "is no folder" if path.exists() else "does not exist"
        raise Stalled(f"{path} {what}", code="usage", hint="--path FOLDER")
    return open_local(path, revision) if revision else FolderRepo(path)


def find_fleets(repo: Repo, revision: SourceRevision, wanted: str = "") -> tuple[str, ...]:
    """Paths of the Fleet files: the one asked for, else every file called fleet.yaml.

    Raises Stalled when there is none.
    """
    if wanted:
        return (wanted.lstrip("/"),)
    found = tuple(
        blob.path
        for blob in repo.tree(revision.commit)
        if blob.path.rsplit("/", 1)[-1] == "fleet.yaml"
    )
    if not found:
        raise Stalled(
            "no file called fleet.yaml in this repository",
            code="fleet-file-missing",
            hint="name it with --fleet PATH, or start with `stoker init`",
        )
    return found


def only_fleet(repo: Repo, revision: SourceRevision, wanted: str = "") -> str:
    """The one Fleet file; raises Stalled with all their paths when there are several."""
    found = find_fleets(repo, revision, wanted)
    if len(found) > 1:
        raise Stalled(
            f"{len(found)} fleets in this repository: {', '.join(found)}",
            code="usage",
            hint="choose one with --fleet PATH",
        )
    return found[0]


def fleet_header(desired: Desired, target: Target) -> str:
    """The first words of every live command: fleet, context and cluster, and whom we act as."""
    acting = f", as {target.as_user}" if target.as_user else ""
    context = context_name(target.kubeconfig, target.context)
    where = f"context {context}, " if context else ""
    return f"fleet {desired.fleet.name} ({where}cluster {desired.fleet.cluster_uid[:8]}…{acting})"


@dataclass(slots=True)
class Session:
    """A connected cluster and a fleet of a repository, with everything a pass needs.

    A `shared_renderer` outlives the session; with a `load_probe` it speaks for the engines, which are
    then not asked by HTTP for what they measure either.
    Writes of `connected` and pushes of `repo` ask the `gate`.
    """

    repo: ClosableRepo
    target: Target
    clock: Clock = field(default_factory=SystemClock)
    cluster: Cluster | None = None
    render_workers: int = 0
    require_jail: bool = False
    shared_renderer: Renderer | None = None
    load_probe: Callable[[str], int | None] | None = None
    memo: SourceMemo = field(default_factory=SourceMemo)
    gate: WriteGate = field(default_factory=WriteGate)
    _stack: ExitStack = field(default_factory=ExitStack)
    _own_renderer: Renderer | None = None

    def __enter__(self) -> Self:
        self._stack.callback(self.repo.close)
        self.renderer()  # its first child starts while files and cluster are being read
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def connected(self) -> Cluster:
        """The cluster's client, connected at the first call."""
        if self.cluster is None:
            client: Client = connect(
                self.target.kubeconfig,
                self.target.context,
                timeout_seconds=self.target.timeout_seconds,
                as_user=self.target.as_user,
                gate=self.gate,
            )
            self._stack.callback(client.close)
            self.cluster = client
            print_findings(self.warnings)
        return self.cluster

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What makes the connection to the cluster less than safe; people see it in status."""
        found = self.cluster.warnings if isinstance(self.cluster, Client) else ()
        return tuple(
            Finding(
                SourceLocation(),
                "api-server-unverified",
                text,
                hint="name the certificate authority in the kubeconfig",
                severity=Severity.WARNING,
            )
            for text in found
        )

    def aside(self, timeout_seconds: float) -> Client:
        """A connection of its own that asks no gate: for the lease, which opens it."""
        client = connect(
            self.target.kubeconfig,
            self.target.context,
            timeout_seconds=min(timeout_seconds, self.target.timeout_seconds),
            as_user=self.target.as_user,
        )
        self._stack.callback(client.close)
        if isinstance(known := self.connected(), Client):
            client.learn(known)
        return client

    def expected_caller(self) -> str:
        """Whom the API server should take us for; empty where nothing says so."""
        target = self.target
        return expected_caller(target.kubeconfig, target.context, target.as_user)

    def fleet_id(self, desired: Desired) -> str:
        """The id given, or the one that cluster and name make."""
        uid = self.connected().server().cluster_uid
        return self.target.fleet_id or fleet_id_of(uid, desired.fleet.name)

    def desired(self, revision: SourceRevision) -> Desired:
        """What the fleet files want at a revision; raises BadInput when the fleet is unusable."""
        return source(self.repo, self.target.fleet_path, self.memo, revision=revision)

    def renderer(self) -> Renderer:
        """Render children, ended with the session unless they are shared."""
        if self.shared_renderer is not None:
            return self.shared_renderer
        if self._own_renderer is None:
            own = Renderer(self.render_workers, clock=self.clock, require_jail=self.require_jail)
            self._own_renderer = self._stack.enter_context(own)
            own.warm_up()
        return self._own_renderer

    def signals(self) -> SignalReader:
        """Who reads signals: of one pass at once, of the controller at every interval."""
        headers = SecretHeaders(self.connected(), self.clock, self.target.namespace)
        reader = SignalReader(self.clock, headers)
        self._stack.callback(reader.close)
        return reader

    def parts(self, desired: Desired, ref: str = "") -> Parts:
        """Everything a pass works with, for this fleet on this cluster."""
        cluster = self.connected()
        server = cluster.server()
        fleet_id = self.fleet_id(desired)
        memo = DiffMemo()
        cluster.hide_in_errors(lambda text: memo.known.hide_text(text))
        return Parts(
            cluster=cluster,
            repo=self.repo,
            clock=self.clock,
            observer=Observer(
                cluster,
                self.clock,
                fleet_id=fleet_id,
                load_probe=self.load_probe or probe_load,
                measures=ReadOnce(self.signals()) if self.load_probe is None else None,
            ),
            renderer=self.renderer(),
            store=InventoryStore(cluster, fleet_id, namespace=self.target.namespace),
            history=HistoryStore(cluster, fleet_id, namespace=self.target.namespace),
            identity=Identity(
                version=__version__,
                fleet_id=fleet_id,
                cluster_uid=server.cluster_uid,
                source_ref=ref or desired.revision.ref,
                source_path=self.target.fleet_path,
                namespace=self.target.namespace,
                fleet_name=desired.fleet.name,
            ),
            source_memo=self.memo,
            diff_memo=memo,
        )


def probe_load(address: str) -> int | None:
    """Running plus waiting requests of an engine; None when it does not answer."""
    # Only a drain asks, and the HTTP client would cost every command a tenth of a second.
    from stoker.engine.load import in_flight

    return in_flight(address, LOAD_TIMEOUT_SECONDS)


def refuse_findings(findings: tuple[Finding, ...]) -> None:
    """Raise BadInput with all errors among the findings, if there are any."""
    errors = tuple(f for f in findings if f.severity == "error")
    if errors:
        raise BadInput(errors)


def usage(message: str, hint: str = "") -> BadInput:
    """Wrong use of a command, as one finding."""
    return BadInput((Finding(SourceLocation(), "usage", message, hint=hint),))
