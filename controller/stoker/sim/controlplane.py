"""A real Kubernetes control plane on loopback, for tests, benchmarks and `stoker dev cluster`.

In: a folder and the components wanted. Out: a running API server with a kubeconfig that
verifies its certificate. Flags, costs and traps were measured 2026-11-29: start with Popen,
stop with SIGKILL (a polite stop of API server and etcd together took up to 248 s).
"""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import signal
import ssl
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.model.ports import Clock
from stoker.sim.child import die_with_parent, free_ports, tail
from stoker.sim.controlplane_binary import COMPONENTS, Programs, Progress, find_or_build
from stoker.sim.controlplane_flags import Ports, audit_policy, flags, kubeconfig, token_rows

__all__ = ["COMPONENTS", "ControlPlane"]

READY_SECONDS = 60.0
"""Ready takes 2 to 5 s on two quiet cores; a machine that builds beside it needs far more."""
STARTS = 3
"""Another program may take a port between our finding it free and the component's bind."""
DEFAULT_SERVICE_ACCOUNT = "stoker-system/stoker"


class ControlPlane:
    """Starts on entering, is gone without a trace on leaving.

    Enter it on a thread that lives as long as the cluster: the kernel kills the children
    when that thread ends, which is how they die with a killed owner. `service_accounts`
    (`namespace/name`) get a token each, known before the start; they have no rights until
    somebody binds a role. Raises Stalled when the programs can't be had or don't get ready.
    """

    def __init__(
        self,
        folder: Path,
        *,
        components: tuple[str, ...] = COMPONENTS,
        audit: bool = False,
        service_accounts: tuple[str, ...] = (DEFAULT_SERVICE_ACCOUNT,),
        programs: Programs | None = None,
        progress: Progress | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.components = components
        self._audit = audit
        self._service_accounts = service_accounts
        self._programs = programs
        self._progress = progress
        self._clock = clock or SystemClock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = Ports(0, 0, 0, 0, 0)
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self._ports.api}"

    @property
    def kubeconfig_path(self) -> Path:
        """Rights of system:masters, which skips both RBAC and priority and fairness."""
        return self.folder / "kubeconfig"

    @property
    def ca_path(self) -> Path:
        """The certificate to verify the API server by."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON event a line, level Metadata, at ResponseComplete; only with `audit`."""
        return self.folder / "audit.log"

    def pid(self, component: str) -> int:
        """The process of a running component, for tests that stop and continue it."""
        return self._children[component].pid

    def log(self, component: str) -> Path:
        """What that component printed."""
        return self.folder / "logs" / f"{component}.log"

    def token_for(self, service_account: str = DEFAULT_SERVICE_ACCOUNT) -> str:
        """The bearer token of a service account given at the start (`namespace/name`).

        Requests with it meet RBAC and priority and fairness; the admin's meet neither.
        """
        return self._tokens[service_account]

    def kubeconfig_for(self, service_account: str = DEFAULT_SERVICE_ACCOUNT) -> Path:
        """Write a kubeconfig with that service account's token and give its path."""
        path = self.folder / f"kubeconfig-{service_account.replace('/', '-')}"
        text = kubeconfig(self.url, self.ca_path, self.token_for(service_account), service_account)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self) -> None:
        """Start everything and wait until it serves."""
        programs = self._programs or find_or_build(self._progress, components=self.components)
        if isinstance(programs, str):
            raise Stalled(
                f"no Kubernetes control plane: {programs}",
                code="no-control-plane",
                hint="set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver,"
                " or install Go 1.26",
            )
        self._programs = programs
        for attempt in range(1, STARTS + 1):
            try:
                self._start_once()
            except _PortTaken:
                self.stop()
                if attempt == STARTS:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return

    def stop(self) -> None:
        """Kill every component and remove what was written here, logs included."""
        for component in tuple(self._children):
            self.kill(component)
        self._clean()

    def kill(self, component: str) -> None:
        """SIGKILL one component, as a crash would; its data stays."""
        child = self._children.pop(component)
        child.send_signal(signal.SIGKILL)
        child.wait()

    def restart(self, component: str) -> None:
        """Start a killed component again on its old port; wait until the API server serves."""
        self._launch(component)
        self._wait_ready()

    def _start_once(self) -> None:
        self._prepare()
        early = tuple(c for c in self.components if c in {"etcd", "kube-apiserver"})
        for component in early:
            self._launch(component)
        self._wait_ready()
        admin = kubeconfig(self.url, self.ca_path, self._tokens["admin"], "admin")
        self.kubeconfig_path.write_text(admin, encoding="utf-8")
        for component in self.components:
            if component not in early:
                self._launch(component)
        self._wait_until("namespace kube-system", "/api/v1/namespaces/kube-system")
        if "kube-controller-manager" in self.components:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait_until("the default service account", account)

    def _clean(self) -> None:
        for name in ("etcd", "certs", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for pattern in ("kubeconfig*", "tokens.csv", "sa.key", "audit.log", "audit-policy.json"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def _prepare(self) -> None:
        # An owner that was killed left its data, made with keys that are gone.
        self._clean()
        for path in (self.folder / "logs", self.folder / "certs"):
            path.mkdir(parents=True, exist_ok=True)
        self._ports = Ports(*free_ports(5))
        self._tokens = {"admin": secrets.token_hex(16)}
        for account in self._service_accounts:
            self._tokens[account] = secrets.token_hex(16)
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(token_rows(self._tokens), encoding="utf-8")
        _make_signing_key(self.folder / "sa.key")
        if self._audit:
            policy = json.dumps(audit_policy())
            (self.folder / "audit-policy.json").write_text(policy, encoding="utf-8")

    def _launch(self, component: str) -> None:
        assert self._programs is not None
        command = [
            *self._programs.command(component),
            *flags(component, self.folder, self._ports, audit=self._audit),
        ]
        with self.log(component).open("ab") as log:
            self._children[component] = subprocess.Popen(
                command,
                cwd=self.folder,
                # GOGC 200 saves 10 % CPU for 130 MB; no proxies, no user's kubeconfig.
                env={"GOGC": "200", "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, bound beforehand
            )

    def _wait_ready(self) -> None:
        self._wait_until("/readyz", "/readyz")

    def _wait_until(self, what: str, path: str) -> None:
        """Ask until the answer is 200; a component that died is told at once."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while True:
            for component, child in self._children.items():
                if child.poll() is not None:
                    self._explain_death(component)
            if self._get(path) == 200:
                return
            if self._clock.monotonic() > deadline:
                said = tail(self.log("kube-apiserver"))
                raise Stalled(
                    f"the control plane waits for {what} since {READY_SECONDS:.0f} s: {said}",
                    code="control-plane-not-ready",
                )
            self._clock.wait(0.05)

    def _explain_death(self, component: str) -> None:
        said = tail(self.log(component))
        if "address already in use" in said:
            raise _PortTaken(f"{component}: {said}", code="control-plane-not-ready")
        raise Stalled(f"{component} ended at its start: {said}", code="control-plane-not-ready")

    def _get(self, path: str) -> int:
        """The answer's status code, 0 without an answer."""
        if not self.ca_path.exists():
            return 0
        try:
            context = ssl.create_default_context(cafile=str(self.ca_path))
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self._ports.api, timeout=5, context=context
            )
            try:
                token = self._tokens["admin"]
                connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                answer.read()
                return answer.status
            finally:
                connection.close()
        except (OSError, ssl.SSLError, http.client.HTTPException):
            return 0


class _PortTaken(Stalled):
    """Somebody else bound a port first; another try with other ports may work."""


def _make_signing_key(path: Path) -> None:
    """An RSA key for service account tokens; the API server takes its public half from it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise Stalled(
            "openssl is needed to make the service account key",
            code="no-control-plane",
            hint="install the openssl package",
        )
    subprocess.run(
        [openssl, "genrsa", "-out", str(path), "2048"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
    )
