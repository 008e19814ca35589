"""One run under faults: a real API server, two controllers behind proxies, a faulty Git host.

A plan comes in; what happened (for people) and what was violated go out. Both controllers act
as users of their own. The fleet is a bundle whose value changes with each commit, and one
whose objects come and go.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from faults.oracle import Evidence, violations
from faults.plan import Happening, Plan
from faults.proxy import Proxy
from live.running import CLOCK, Running, until
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request, Response
from stoker.model.refs import ObjectRef
from stoker.report.definitions import definition_manifests
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_flags import kubeconfig
from stoker.sim.git_http import GitFault, GitServer

__all__ = ["Rig", "Verdict"]

USERS = ("one", "two")
SHORT = ("--lease-duration", "4s", "--lease-renew-deadline", "2500ms", "--lease-retry", "500ms")
LEASE_REACH_MS = 2_500 + 1_200 + 500
"""Renew deadline, the time a write may take, and half a second for a busy machine's stamps."""
CONVERGE_SECONDS = 60.0
QUIET_SECONDS = 10.0
"""Ten polls (I5)."""
EXTRAS = 4
PEOPLE_WAIT_SECONDS = 3.0
STALL_TAIL_MS = 1_000
"""After it goes on, an API server takes so long at most to read what waited."""
GIT_FAULTS = {
    "git-401": GitFault(status=401),
    "git-503": GitFault(status=503),
    "git-truncate": GitFault(path="git-upload-pack", truncate=200),
    "git-hang": GitFault(hang=True),
    "git-dead": GitFault(dead=True),
}


@dataclass(slots=True)
class Verdict:
    """What a run came to. `violations` empty and `converged` set are what is wanted."""

    violations: list[str] = field(default_factory=list)
    converged: float | None = None
    met: dict[str, int] = field(default_factory=dict)
    """How many requests each fault met."""


@dataclass(slots=True)
class _Controller:
    user: str
    proxy: Proxy
    kubeconfig: Path
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
        self._transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        self._cluster = Client(_Impatient(self._transport), user_agent="kubectl")
        self._bare = git.create_repo(self.fleet)
        self._work = folder / "work"
        self._values: dict[str, str] = {}
        self._edits: Counter[str] = Counter()
        self._removed: dict[str, int] = {}
        self._foreign: dict[str, str] = {}
        self._extras = list(range(EXTRAS))
        self._next_extra = EXTRAS
        self._frozen: list[int] = []
        self._stalls: list[tuple[int, int]] = []
        self._i9: list[str] = []
        self._since_ms = CLOCK.now_ms()
        self._prepare()
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
        self._run("clone", "-q", str(self._bare), str(self._work), at=self._folder)
        self._run("checkout", "-q", "-B", "main")
        self._commit()

    def _controller(self, user: str, certificate: tuple[Path, Path]) -> _Controller:
        proxy = Proxy(
            self._plane.url, self._plane.ca_path, certificate, seed=self._plan.seed + len(user)
        )
        proxy.__enter__()
        file = self._folder / f"kubeconfig-{user}"
        file.write_text(kubeconfig(proxy.url, certificate[1], self._token, user), encoding="utf-8")
        return _Controller(user, proxy, file)

    def _start(self, controller: _Controller) -> None:
        number = len(controller.logs)
        process = Running(
            self._folder / f"run-{controller.user}-{number}",
            *("--repo", self._git.url(self.fleet), "--fleet", "fleet.yaml"),
            *("--poll-interval", "1s", "--listen", "", "--render-workers", "1"),
            *("--kubeconfig", str(controller.kubeconfig), "--as", controller.user, *SHORT),
            *("--backoff-max", "10s", "--full-pass", "20s"),
            state=self._folder / f"state-{controller.user}",
        )
        controller.process, controller.killed = process, False
        controller.logs.append(process.log)

    # --------------------------------------------------------------------- run
    def run(self) -> Verdict:
        """Live through the plan, let everything heal, and judge."""
        verdict = Verdict()
        stop = threading.Event()
        keeper = threading.Thread(target=self._keep_alive, args=(stop,), daemon=True)
        try:
            for controller in self._controllers:
                self._start(controller)
            until(self._is_applied)
            keeper.start()
            self._suffer()
            self._heal()
            with suppress(TimeoutError):
                verdict.converged = until(self._is_applied, seconds=CONVERGE_SECONDS)
            if verdict.converged is None:
                verdict.violations.append(f"I5: {self._why_not()}")
            else:
                verdict.violations += self._quiet()
        finally:
            stop.set()
            if keeper.ident is not None:
                keeper.join(5)
            self._end()
        verdict.violations += [*self._i9, *violations(self._evidence())]
        for controller in self._controllers:
            for name, count in controller.proxy.counts.items():
                verdict.met[name] = verdict.met.get(name, 0) + count
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
        match happening.what:
            case "commit":
                self._commit()
            case "remove":
                self._commit(remove=True)
            case "drift":
                self._drift()
            case "note" | "git-race":
                self._note()
            case "kill":
                self._leader_process().kill()
            case "stop":
                self._stop_for(happening.seconds)
            case "api-restart":
                self._plane.kill("kube-apiserver")
                self._plane.restart("kube-apiserver")
            case "api-freeze":
                self._stall("kube-apiserver", happening.seconds)
            case "etcd-freeze":
                self._stall("etcd", happening.seconds)
            case what:
                self._git.break_with(GIT_FAULTS[what])
                timer = threading.Timer(happening.seconds, self._git.heal)
                timer.daemon = True
                timer.start()

    def _leader_process(self) -> Running:
        """The controller that leads as far as the lease says; any that runs else."""
        holder = self._holder()
        running = [c for c in self._controllers if c.process is not None]
        chosen = next((c for c in running if f"-{c.process.pid}-" in holder), running[0])  # type: ignore[union-attr]
        chosen.killed = True
        assert chosen.process is not None
        return chosen.process

    def _stop_for(self, seconds: float) -> None:
        self._freeze(self._leader_process().pid, seconds)

    def _stall(self, component: str, seconds: float) -> None:
        now = CLOCK.now_ms()
        self._stalls.append((now, now + int(seconds * 1000) + STALL_TAIL_MS))
        self._freeze(self._plane.pid(component), seconds)

    def _freeze(self, pid: int, seconds: float) -> None:
        """SIGSTOP for so long."""
        self._frozen.append(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, _go_on, (pid,))
        timer.daemon = True
        timer.start()

    def _heal(self) -> None:
        for controller in self._controllers:
            controller.proxy.end()
        for pid in self._frozen:
            _go_on(pid)
        self._git.heal()
        self._commit()

    def _keep_alive(self, stop: threading.Event) -> None:
        """What a kubelet does; a process that ends by itself after its start is noted (I9)."""
        while not stop.wait(0.5):
            for controller in self._controllers:
                process = controller.process
                if process is None or process.returncode is None:
                    continue
                if not controller.killed and process.events("controller.started"):
                    self._i9.append(f"I9: {controller.user} ended with {process.returncode}")
                self._start(controller)

    def _end(self) -> None:
        for controller in self._controllers:
            if controller.process is not None:
                controller.process.kill()
            controller.proxy.__exit__()
        self._transport.close()

    # -------------------------------------------------------------------- people
    def _commit(self, *, remove: bool = False) -> None:
        """A new value; with `remove` one of the extras leaves and another comes."""
        if remove:
            gone = self._extras.pop(0)
            self._removed[f"extra-{gone}"] = CLOCK.now_ms()
            self._extras.append(self._next_extra)
            self._next_extra += 1
            (self._work / f"more/extra-{gone}.yaml").unlink()
        value = f"value-{self._plan.seed}-{len(self._values)}"
        for path, text in self._files(value).items():
            target = self._work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self._run("add", "-A")
        self._run("commit", "-q", "--allow-empty", "-m", value)
        commit = self._run("rev-parse", "HEAD")
        self._values[commit] = value
        self._edits["side"] += 1
        self._run("push", "-q", str(self._bare), "HEAD:refs/heads/main")

    def _files(self, value: str) -> dict[str, str]:
        uid = self._cluster.server().cluster_uid
        fleet: dict[str, Any] = {
            "cluster": {"uid": uid},
            "mode": "Correct",
            "include": ["/*/bundle.yaml"],
            "defaults": {"namespace": self.namespace},
            "prune": {"mode": "Auto", "maxUnits": "100%"},
            "status": {"branch": f"stoker-status/{self.fleet}", "flushInterval": "1s"},
        }
        found = {
            "fleet.yaml": _dump("Fleet", self.fleet, fleet),
            "side/bundle.yaml": _dump("Bundle", "side", {"render": {"manifests": ["*.yaml"]}}),
            "side/namespace.yaml": f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {self.namespace}}}\n",
            "side/side.yaml": _config_map("side", value),
            "more/bundle.yaml": _dump("Bundle", "more", {"render": {"manifests": ["*.yaml"]}}),
        }
        for number in self._extras:
            found[f"more/extra-{number}.yaml"] = _config_map(f"extra-{number}", "same")
        return found

    def _drift(self) -> None:
        """Somebody edits one object and deletes another."""
        extra = f"extra-{self._extras[-1]}"
        for name in ("side", extra):
            self._edits[name] += 1
            ref = ObjectRef("", "ConfigMap", self.namespace, name, "v1")
            with suppress(StokerError):
                if name == extra:
                    self._cluster.delete(ref)
                else:
                    body = {"data": {"key": "mine"}}
                    self._cluster.patch(ref, "merge", body, manager="kubectl-edit")

    def _note(self) -> None:
        """A person commits a file to the status branch, perhaps just while we push."""
        path, text = f"NOTES-{len(self._foreign)}.md", "mine"
        branch = f"refs/heads/stoker-status/{self.fleet}"
        stream = (
            f"commit {branch}\ncommitter P <p@example.invalid> {CLOCK.now_ms() // 1000} +0000\n"
            f"data 4\nnote\nfrom {branch}^0\nM 100644 inline {path}\ndata 4\nmine\n"
        )
        done = subprocess.run(
            ["git", "-C", str(self._bare), "fast-import", "--quiet"],
            input=stream,
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            self._foreign[path] = text

    def _run(self, *arguments: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=Dev", "-c", "user.email=dev@example.invalid")
        done = subprocess.run(
            ["git", *who, "-C", str(at or self._work), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
        )
        return done.stdout.strip()

    # --------------------------------------------------------------------- looks
    def _holder(self) -> str:
        with suppress(StokerError):
            leases = self._cluster.list("coordination.k8s.io", "Lease", "stoker-system").items
            return " ".join(str(body["spec"].get("holderIdentity", "")) for body in leases)
        return ""

    def _wanted(self) -> tuple[str, str]:
        return list(self._values.items())[-1]

    def _data(self) -> dict[str, str]:
        found = self._cluster.list("", "ConfigMap", self.namespace).items
        return {
            body["metadata"]["name"]: str((body.get("data") or {}).get("key", ""))
            for body in found
            if body["metadata"]["name"] != "kube-root-ca.crt"
        }

    def _status(self) -> dict[str, Any]:
        ref = f"refs/heads/stoker-status/{self.fleet}:status.yaml"
        shown = subprocess.run(
            ["git", "-C", str(self._bare), "show", ref], capture_output=True, text=True, check=False
        )
        return yaml.safe_load(shown.stdout) or {}

    def _is_applied(self) -> bool:
        return not self._why_not()

    def _why_not(self) -> str:
        """What is not yet as the newest commit wants it; empty when all is."""
        commit, value = self._wanted()
        wanted = {"side": value} | {f"extra-{number}": "same" for number in self._extras}
        try:
            data = self._data()
        except StokerError as error:
            return f"the cluster cannot be read: {error.message}"
        if data != wanted:
            return f"the cluster holds {data}, wanted {wanted}"
        status = self._status()
        applied = str(status.get("lastAppliedRevision", ""))
        if not applied.endswith(commit):
            return f"status claims {applied or 'nothing'}, wanted {commit}"
        ready = {c["type"]: c["status"] for c in status["conditions"]}.get("Ready")
        return "" if ready == "True" else f"Ready is {ready}"

    def _quiet(self) -> list[str]:
        """I5: a fixed point is left alone."""
        CLOCK.wait(2.0)
        since = CLOCK.now_ms()
        CLOCK.wait(QUIET_SECONDS)
        found = [
            f"I5: {request.method} {request.path} at rest"
            for controller in self._controllers
            for request in controller.proxy.forwarded
            if request.at_ms > since
            and request.method != "GET"
            and "dryRun" not in request.path
            and "/leases" not in request.path
            and "/selfsubjectreviews" not in request.path  # a process that just started
        ]
        return found if self._is_applied() else [*found, f"I5: not at rest: {self._why_not()}"]

    def _evidence(self) -> Evidence:
        return Evidence(
            audit_log=self._plane.audit_log,
            since_ms=self._since_ms,
            users=USERS,
            lease_reach_ms=LEASE_REACH_MS,
            namespace=self.namespace,
            forwarded=[r for c in self._controllers for r in c.proxy.forwarded],
            values=self._values,
            removed_ms=self._removed,
            edits=self._edits,
            bare=self._bare,
            branch=f"refs/heads/stoker-status/{self.fleet}",
            foreign=self._foreign,
            secrets=(self._token,),
            logs=tuple(log for c in self._controllers for log in c.logs),
            stalls=tuple(self._stalls),
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


def _dump(kind: str, name: str, spec: dict[str, Any]) -> str:
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False)


def _config_map(name: str, value: str) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"key": value},
    }
    return json.dumps(body) + "\n"
