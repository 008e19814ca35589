"""One run under faults: a real API server, two controllers behind proxies, a faulty Git host.

A plan comes in; what happened (for people) and what was violated go out. Both controllers act
as users of their own, each with a Git mirror, a log and a git program that a fault can keep
from writing to disk.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from fakes_disk import FullDisk
from faults.oracle import Evidence, ended_by_itself, not_left_alone, violations
from faults.people import People
from faults.plan import Happening, Plan
from faults.proxy import Proxy
from live.running import CLOCK, Running, until
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request, Response
from stoker.report.definitions import definition_manifests
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_flags import kubeconfig
from stoker.sim.git_http import GitFault, GitServer

__all__ = ["Rig", "Verdict"]

USERS = ("one", "two")
SHORT = ("--lease-duration", "4s", "--lease-renew-deadline", "2500ms", "--lease-retry", "500ms")
LEASE_REACH_MS = 2_500 + 1_200 + 500
"""Renew deadline, the time a write may take, and half a second for a busy machine's stamps."""
POLL_SECONDS = 0.5
BEGIN_SECONDS = 240.0
"""A first start is no part of the bar; two busy cores take a minute for it."""
CONVERGE_SECONDS = 60.0
QUIET_SECONDS = 10 * POLL_SECONDS
"""Ten polls (I5)."""
PEOPLE_WAIT_SECONDS = 3.0
STALL_TAIL_MS = 1_000
"""After it goes on, an API server takes so long at most to read what waited."""
LOOP_KILLS = 3
GIT_FAULTS = {
    "git-401": GitFault(status=401),
    "git-404": GitFault(status=404),
    "git-503": GitFault(status=503),
    "git-truncate": GitFault(path="git-upload-pack", truncate=200),
    "git-hang": GitFault(hang=True),
    "git-dead": GitFault(dead=True),
    "git-full": GitFault(full=True),
    "git-slow": GitFault(slow=True),
}


@dataclass(slots=True)
class Verdict:
    """What a run came to. `violations` empty and `converged` set are what is wanted."""

    violations: list[str] = field(default_factory=list)
    converged: float | None = None
    met: dict[str, int] = field(default_factory=dict)
    """How many requests each fault met."""
    began: float = 0.0
    """Seconds until the fleet stood for the first time."""
    seconds: float = 0.0
    """Of the whole run."""


@dataclass(slots=True)
class _Controller:
    user: str
    proxy: Proxy
    kubeconfig: Path
    folder: Path
    disk: FullDisk
    process: Running | None = None
    killed: bool = False
    logs: list[Path] = field(default_factory=list)


class Rig:
    """A fresh fleet on a control plane that other runs have used."""

    def __init__(
        self,
        folder: Path,
        plane: ControlPlane,
        git: GitServer,
        certificate: tuple[Path, Path],
        plan: Plan,
    ) -> None:
        self._folder, self._plane, self._git, self._plan = folder, plane, git, plan
        self.fleet = f"seed-{plan.seed}"
        self.namespace = f"faults-{plan.seed}"
        self._audit_from = plane.audit_log.stat().st_size
        self._since_ms = CLOCK.now_ms()
        self._transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        self._cluster = Client(_Impatient(self._transport), user_agent="kubectl")
        self._prepare()
        bare = git.create_repo(self.fleet)
        self._people = People(self.fleet, self.namespace, bare, folder, self._cluster)
        self._undo: list[Callable[[], None]] = []
        self._stalls: list[tuple[int, int]] = []
        self._i9: list[str] = []
        self._scaled_ms = 1 << 60
        admin = yaml.safe_load(plane.kubeconfig_path.read_text(encoding="utf-8"))
        self._token = admin["users"][0]["user"]["token"]
        self._controllers = [self._controller(user, certificate) for user in USERS]

    # ------------------------------------------------------------------ set-up
    def _prepare(self) -> None:
        for body in definition_manifests():
            self._cluster.apply(body, manager="kubectl")
        for user in USERS:
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"stoker-{user}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
                ],
            }
            self._cluster.apply(binding, manager="kubectl")

    def _controller(self, user: str, certificate: tuple[Path, Path]) -> _Controller:
        seed = self._plan.seed + len(user)
        url, authority = self._plane.url, self._plane.ca_path
        proxy = Proxy(url, authority, certificate, seed=seed, client=user)
        proxy.__enter__()
        folder = self._folder / user
        folder.mkdir()
        file = folder / "kubeconfig"
        file.write_text(kubeconfig(proxy.url, certificate[1], self._token, user), encoding="utf-8")
        return _Controller(user, proxy, file, folder, FullDisk.in_folder(folder))

    def _start(self, controller: _Controller) -> None:
        process = Running(
            controller.folder / f"run-{len(controller.logs)}",
            *("--repo", self._git.url(self.fleet), "--fleet", "fleet.yaml"),
            *("--poll-interval", f"{POLL_SECONDS * 1000:.0f}ms", "--listen", ""),
            *("--render-workers", "1", "--kubeconfig", str(controller.kubeconfig)),
            *("--as", controller.user, *SHORT),
            *("--backoff-max", "10s", "--full-pass", "20s"),
            state=controller.folder / "state",
            programs=controller.disk.programs,
        )
        controller.process, controller.killed = process, False
        controller.logs.append(process.log)

    # --------------------------------------------------------------------- run
    def run(self) -> Verdict:
        """Live through the plan, let everything heal, and judge."""
        verdict = Verdict()
        began = CLOCK.monotonic()
        stop = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(stop,), daemon=True)
        try:
            for controller in self._controllers:
                self._start(controller)
            keeper.start()
            verdict.began = self._converge(BEGIN_SECONDS)
            self._scaled_ms = CLOCK.now_ms()
            self._suffer()
            self._heal()
            verdict.converged = self._converge(CONVERGE_SECONDS)
            verdict.violations += self._quiet()
        except TimeoutError as error:
            verdict.violations.append(f"I5: {error}")
        finally:
            stop.set()
            if keeper.ident is not None:
                keeper.join(5)
            self._end()
        verdict.violations += [*self._i9, *violations(self._evidence())]
        for controller in self._controllers:
            for name, count in controller.proxy.counts.items():
                verdict.met[name] = verdict.met.get(name, 0) + count
        verdict.seconds = CLOCK.monotonic() - began
        return verdict

    def _suffer(self) -> None:
        began = CLOCK.monotonic()
        for controller in self._controllers:
            mine = tuple(w for w in self._plan.windows if w.victim in {"", controller.user})
            controller.proxy.begin(mine)
        for happening in self._plan.happenings:
            CLOCK.wait(max(0.0, began + happening.at - CLOCK.monotonic()))
            self._happen(happening)
        CLOCK.wait(max(0.0, began + self._plan.seconds - CLOCK.monotonic()))

    def _happen(self, happening: Happening) -> None:
        people, seconds = self._people, happening.seconds
        match happening.what:
            case "commit":
                people.commit()
            case "remove":
                people.commit(remove=True)
            case "git-rewrite":
                people.commit(amend=True)
            case "drift":
                people.drift()
            case "scale":
                people.scale()
            case "note" | "git-race":
                people.note()
            case "git-litter":
                people.litter()
            case "git-gone":
                people.delete_branch()
                self._later(seconds, people.restore_branch)
            case "git-protected":
                people.protect_status(now=True)
                self._later(seconds, lambda: people.protect_status(now=False))
            case "kill":
                self._end_leader(signal.SIGKILL)
            case "term":
                self._end_leader(signal.SIGTERM)
            case "crash-loop":
                for number in range(LOOP_KILLS):
                    pause = number * seconds / LOOP_KILLS
                    self._later(pause, lambda: self._end_leader(signal.SIGKILL), undo=False)
            case "stop":
                self._freeze(self._pid(self._leader()), seconds)
            case "disk-full":
                self._fill_disk(self._leader(), seconds)
            case "few-files":
                self._exhaust_files(self._pid(self._leader()), seconds)
            case "api-restart":
                self._restart("kube-apiserver")
            case "etcd-restart":
                self._restart("etcd")
            case "api-freeze":
                self._stall("kube-apiserver", seconds)
            case "etcd-freeze":
                self._stall("etcd", seconds)
            case what:
                self._git.break_with(GIT_FAULTS[what])
                self._later(seconds, self._git.heal)

    def _later(self, seconds: float, act: Callable[[], None], *, undo: bool = True) -> None:
        """Do it after so many seconds; what undoes a fault also when everything heals, once."""
        done = threading.Lock()

        def once() -> None:
            if done.acquire(blocking=False):
                act()

        if undo:
            self._undo.append(once)
        timer = threading.Timer(seconds, once)
        timer.daemon = True
        timer.start()

    def _leader(self) -> _Controller:
        """The controller that leads as far as the lease says; any that runs else."""
        holder = self._holder()
        running = [c for c in self._controllers if c.process is not None]
        return next((c for c in running if f"-{self._pid(c)}-" in holder), running[0])

    def _pid(self, controller: _Controller) -> int:
        assert controller.process is not None
        return controller.process.pid

    def _end_leader(self, number: signal.Signals) -> None:
        leader = self._leader()
        leader.killed = True
        with suppress(ProcessLookupError):
            os.kill(self._pid(leader), number)

    def _fill_disk(self, controller: _Controller, seconds: float) -> None:
        """Its git children and its log write no byte for so long (c.1 row 10)."""
        pid = self._pid(controller)
        controller.disk.fill()
        _limit(pid, resource.RLIMIT_FSIZE, 0)

        def free() -> None:
            controller.disk.free()
            _limit(pid, resource.RLIMIT_FSIZE, None)

        self._later(seconds, free)

    def _exhaust_files(self, pid: int, seconds: float) -> None:
        """It keeps what it has open, and opens nothing more."""
        with suppress(OSError):
            highest = max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())
            _limit(pid, resource.RLIMIT_NOFILE, highest + 1)
            self._later(seconds, lambda: _limit(pid, resource.RLIMIT_NOFILE, None))

    def _restart(self, component: str) -> None:
        now = CLOCK.now_ms()
        self._plane.kill(component)
        self._plane.restart(component)
        self._stalls.append((now, CLOCK.now_ms() + STALL_TAIL_MS))

    def _stall(self, component: str, seconds: float) -> None:
        now = CLOCK.now_ms()
        self._stalls.append((now, now + int(seconds * 1000) + STALL_TAIL_MS))
        self._freeze(self._plane.pid(component), seconds)

    def _freeze(self, pid: int, seconds: float) -> None:
        """SIGSTOP for so long."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        self._later(seconds, lambda: _go_on(pid))

    def _heal(self) -> None:
        for controller in self._controllers:
            controller.proxy.end()
        for undo in self._undo:
            undo()
        self._people.commit()

    def _keep(self, stop: threading.Event) -> None:
        """What kubelet and controllers do; who ends by itself after its start is noted (I9)."""
        while not stop.wait(0.5):
            self._people.run_workloads()
            for controller in self._controllers:
                process = controller.process
                if process is None or process.returncode is None:
                    continue
                self._i9 += ended_by_itself(
                    controller.user,
                    process.returncode,
                    killed=controller.killed,
                    had_started=bool(process.events("controller.started")),
                )
                self._start(controller)

    def _end(self) -> None:
        for controller in self._controllers:
            if controller.process is not None:
                controller.process.kill()
            controller.proxy.__exit__()
        self._transport.close()

    # --------------------------------------------------------------------- looks
    def _holder(self) -> str:
        with suppress(StokerError):
            leases = self._cluster.list("coordination.k8s.io", "Lease", "stoker-system").items
            return " ".join(str(body["spec"].get("holderIdentity", "")) for body in leases)
        return ""

    def _converge(self, seconds: float) -> float:
        """Wait until all is as wanted; gives how long that took, raises TimeoutError with why not."""
        try:
            return until(lambda: not self._people.why_not(), seconds=seconds, every=0.5)
        except TimeoutError:
            message = f"not within {seconds:.0f} s: {self._people.why_not()}"
            raise TimeoutError(message) from None

    def _quiet(self) -> list[str]:
        """I5: a fixed point is left alone."""
        CLOCK.wait(1.0)
        since = CLOCK.now_ms()
        CLOCK.wait(QUIET_SECONDS)
        found = not_left_alone((r for c in self._controllers for r in c.proxy.forwarded), since)
        why_not = self._people.why_not()
        return [*found, f"I5: not at rest: {why_not}"] if why_not else found

    def _evidence(self) -> Evidence:
        people = self._people
        return Evidence(
            audit_log=self._plane.audit_log,
            audit_from=self._audit_from,
            since_ms=self._since_ms,
            users=USERS,
            lease_reach_ms=LEASE_REACH_MS,
            namespace=self.namespace,
            forwarded=[r for c in self._controllers for r in c.proxy.forwarded],
            wanted=people.wanted,
            removed_ms=people.removed_ms,
            edits=people.edits,
            bare=people.bare,
            branch=people.branch,
            foreign=people.foreign,
            secrets=(self._token, *people.secrets),
            logs=tuple(log for c in self._controllers for log in c.logs),
            stalls=tuple(self._stalls),
            scaled_ms=self._scaled_ms,
        )


class _Impatient:
    """People's requests: they must not hold up what is to happen next."""

    def __init__(self, inner: HttpsTransport) -> None:
        self.url = inner.url
        self._inner = inner

    def send(self, request: Request) -> Response:
        return self._inner.send(replace(request, timeout_seconds=PEOPLE_WAIT_SECONDS))

    def stream(self, request: Request) -> Iterator[bytes]:
        return self._inner.stream(request)

    def close(self) -> None:
        self._inner.close()


def _go_on(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _limit(pid: int, kind: int, most: int | None) -> None:
    """Bound what a process may use, None: as far as it may; nothing for one that has gone."""
    with suppress(ProcessLookupError):
        hard = resource.prlimit(pid, kind)[1]
        resource.prlimit(pid, kind, (hard if most is None else most, hard))
