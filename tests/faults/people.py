"""People and other controllers of one fault run: they commit, edit, scale, push, and break.

In: the bare repository of a fleet and an administrator's connection. Out: a history of what was
wanted when, which the judge compares with what was written, and whether the fleet is there yet.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from faults.oracle import Wanted
from live.running import CLOCK
from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.model.refs import ObjectRef

__all__ = ["People"]

EXTRAS = 4
_PUSHES = 10
FEWEST, MOST = 2, 6
"""Bounds of the counts that Git and the autoscaler ask for."""
APPS, MAP = ("apps", "Deployment"), ("", "ConfigMap")
SCALER = ("autoscaling", "HorizontalPodAutoscaler")
KCM = "kube-controller-manager"
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
LOOKED = {
    "currentReplicas": FEWEST,
    "desiredReplicas": FEWEST,
    "conditions": [{"type": kind, "status": "True"} for kind in ("AbleToScale", "ScalingActive")],
}


class People:
    """Everybody but the controllers. One fleet, three bundles, in a namespace of its own.

    `side` changes its value with each commit, `more` has objects that come and go, `counts` a
    Deployment whose count Git says, one whose count an autoscaler says, and a Secret.
    """

    def __init__(self, fleet: str, namespace: str, bare: Path, folder: Path, cluster: Client):
        self.fleet, self.namespace, self.bare = fleet, namespace, bare
        self.wanted: list[Wanted] = []
        self.edits: Counter[str] = Counter()
        self.removed_ms: dict[str, int] = {}
        self.foreign: dict[str, str] = {}
        self.scaled: list[int] = []
        self.secret = f"hunter2-of-{fleet}"
        self._cluster = cluster
        self._folder = folder
        self._work = folder / "work"
        self._uid = cluster.server().cluster_uid
        self._draw = random.Random(fleet)
        self._extras = list(range(EXTRAS))
        self._next_extra = EXTRAS
        self._git("clone", "-q", str(bare), str(self._work), at=folder)
        self._git("checkout", "-q", "-B", "main")
        self.commit()

    @property
    def branch(self) -> str:
        return f"refs/heads/stoker-status/{self.fleet}"

    # ------------------------------------------------------------------------ in Git
    def commit(self, *, remove: bool = False, amend: bool = False) -> None:
        """A new value; with `remove` one of the extras leaves and another comes.

        With `amend` the newest commit makes room for the new one (c.3 row 60).
        """
        if remove:
            gone = self._extras.pop(0)
            self.removed_ms[f"extra-{gone}"] = CLOCK.now_ms()
            self._extras.append(self._next_extra)
            self._next_extra += 1
            (self._work / f"more/extra-{gone}.yaml").unlink()
        value = f"value-{self.fleet}-{len(self.wanted)}"
        count = self._draw.randint(FEWEST, MOST)
        for path, text in self._files(value, count).items():
            target = self._work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self._git("add", "-A")
        how = ["--amend"] if amend else []
        self._git("commit", "-q", "--allow-empty", "-m", value, *how)
        commit = self._git("rev-parse", "HEAD")
        self.wanted.append(Wanted(CLOCK.now_ms(), commit, value, count))
        self.edits.update(("side", "counted"))
        self._push(*(["--force"] if amend else []))

    def delete_branch(self) -> None:
        """The tracked branch goes (c.3 row 61)."""
        self._git("update-ref", "-d", "refs/heads/main", at=self.bare)

    def restore_branch(self) -> None:
        """It is there again, as the last commit left it."""
        self._push()

    def _push(self, *force: str) -> None:
        """Push as people do: again, where somebody else just had the branch in hand."""
        for _ in range(_PUSHES):
            with suppress(subprocess.CalledProcessError):
                self._git("push", "-q", *force, str(self.bare), "HEAD:refs/heads/main")
                return
            CLOCK.wait(0.3)
        self._git("push", "-q", *force, str(self.bare), "HEAD:refs/heads/main")

    def protect_status(self, *, now: bool) -> None:
        """The host refuses pushes to the status branch, or does so no more (c.3 row 69)."""
        hook = self.bare / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        if now:
            hook.write_text(
                '#!/bin/sh\ncase "$1" in *stoker*) echo protected; exit 1;; esac\n', "utf-8"
            )
            hook.chmod(0o755)
        else:
            hook.unlink(missing_ok=True)

    def note(self) -> None:
        """A person commits a file to the status branch, perhaps just while we push."""
        path = f"NOTES-{len(self.foreign)}.md"
        if self._push_file(path, "mine"):
            self.foreign[path] = "mine"

    def litter(self) -> None:
        """A person breaks the status file (c.3 row 71)."""
        self._push_file("status.yaml", "<<<<<<< HEAD\nlastAppliedRevision: [")

    def _push_file(self, path: str, text: str) -> bool:
        stream = (
            f"commit {self.branch}\n"
            f"committer P <p@example.invalid> {CLOCK.now_ms() // 1000} +0000\n"
            f"data 4\nnote\nfrom {self.branch}^0\nM 100644 inline {path}\n"
            f"data {len(text)}\n{text}\n"
        )
        done = subprocess.run(
            ["git", "-C", str(self.bare), "fast-import", "--quiet"],
            input=stream,
            text=True,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def _git(self, *arguments: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=Dev", "-c", "user.email=dev@example.invalid")
        done = subprocess.run(
            ["git", *who, "-C", str(at or self._work), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
        )
        return done.stdout.strip()

    def _files(self, value: str, count: int) -> dict[str, str]:
        fleet: dict[str, Any] = {
            "cluster": {"uid": self._uid},
            "mode": "Correct",
            "include": ["/*/bundle.yaml"],
            "defaults": {"namespace": self.namespace},
            "prune": {"mode": "Auto", "maxUnits": "100%"},
            "status": {"branch": f"stoker-status/{self.fleet}", "flushInterval": "1s"},
        }
        render = {"render": {"manifests": ["*.yaml"]}}
        found = {
            "fleet.yaml": _own("Fleet", self.fleet, fleet),
            "side/bundle.yaml": _own("Bundle", "side", render),
            "side/namespace.yaml": _object("v1", "Namespace", self.namespace),
            "side/side.yaml": _object("v1", "ConfigMap", "side", data={"key": value}),
            "more/bundle.yaml": _own("Bundle", "more", render),
            "counts/bundle.yaml": _own("Bundle", "counts", render),
            "counts/counted.yaml": _deployment("counted", count),
            "counts/scaled.yaml": _deployment("scaled", FEWEST),
            "counts/autoscaler.yaml": _autoscaler(),
            "counts/secret.yaml": _object("v1", "Secret", "key", data={"key": self.secrets[1]}),
        }
        for number in self._extras:
            name = f"extra-{number}"
            found[f"more/{name}.yaml"] = _object("v1", "ConfigMap", name, data={"key": "same"})
        return found

    # -------------------------------------------------------------------- in the cluster
    def drift(self) -> None:
        """Somebody edits one object, deletes another, and scales a third to nothing."""
        extra = f"extra-{self._extras[-1]}"
        self.edits.update(("side", "counted", extra))
        with suppress(StokerError):
            self._cluster.delete(self._ref(MAP, extra))
        with suppress(StokerError):
            self._patch(MAP, "side", {"data": {"key": "mine"}}, "kubectl-edit")
        with suppress(StokerError):
            self._patch(APPS, "counted", {"spec": {"replicas": 0}}, "kubectl-edit")

    def scale(self) -> None:
        """The autoscaler wants another count."""
        count = self._draw.randint(FEWEST, MOST) + len(self.scaled) % 2 * MOST
        self.scaled.append(count)
        body = {"spec": {"replicas": count}}
        with suppress(StokerError):
            self._patch(APPS, "scaled", body, KCM, subresource="scale")

    def run_workloads(self) -> None:
        """Say of each Deployment that all it wants is there, as its controller would.

        And of the autoscaler, that it has looked at its target.
        """
        with suppress(StokerError):
            for body in self._cluster.list(*SCALER, self.namespace).items:
                if not (body.get("status") or {}).get("conditions"):
                    self._patch(SCALER, "scaled", {"status": LOOKED}, KCM, subresource="status")
            for body in self._cluster.list(*APPS, self.namespace).items:
                count = body["spec"]["replicas"]
                status = {
                    "observedGeneration": body["metadata"]["generation"],
                    **dict.fromkeys(COUNTS, count),
                    "conditions": [{"type": "Available", "status": "True"}],
                }
                said = body.get("status") or {}
                if any(said.get(key, 0) != status[key] for key in ("observedGeneration", *COUNTS)):
                    name = body["metadata"]["name"]
                    self._patch(APPS, name, {"status": status}, KCM, subresource="status")

    def _patch(self, kind: tuple[str, str], name: str, body: Any, manager: str, **more: Any):
        self._cluster.patch(self._ref(kind, name), "merge", body, manager=manager, **more)

    def _ref(self, kind: tuple[str, str], name: str) -> ObjectRef:
        return ObjectRef(*kind, self.namespace, name, "v2" if kind == SCALER else "v1")

    # ------------------------------------------------------------------------------ looks
    @property
    def secrets(self) -> tuple[str, ...]:
        """What may stand nowhere: as it is, and as a Secret carries it."""
        return (self.secret, base64.b64encode(self.secret.encode()).decode())

    def why_not(self) -> str:
        """What is not yet as the newest commit wants it; empty when all is."""
        newest = self.wanted[-1]
        data = {"side": newest.value} | {f"extra-{number}": "same" for number in self._extras}
        try:
            live = self._data()
            counts = self._counts()
        except StokerError as error:
            return f"the cluster cannot be read: {error.message}"
        if live != data:
            return f"the cluster holds {live}, wanted {data}"
        if counts.get("counted") != newest.count:
            return f"the cluster has {counts}, wanted {newest.count} of counted"
        status = self._status()
        applied = str(status.get("lastAppliedRevision", ""))
        if not applied.endswith(newest.commit):
            return f"status claims {applied or 'nothing'}, wanted {newest.commit}"
        conditions = {c["type"]: c for c in status["conditions"]}
        ready = conditions.get("Ready", {})
        return "" if ready.get("status") == "True" else f"Ready is {ready}"

    def _data(self) -> dict[str, str]:
        found = self._cluster.list(*MAP, self.namespace).items
        return {
            body["metadata"]["name"]: str((body.get("data") or {}).get("key", ""))
            for body in found
            if body["metadata"]["name"] != "kube-root-ca.crt"
        }

    def _counts(self) -> dict[str, int]:
        found = self._cluster.list(*APPS, self.namespace).items
        return {body["metadata"]["name"]: int(body["spec"]["replicas"]) for body in found}

    def _status(self) -> dict[str, Any]:
        shown = subprocess.run(
            ["git", "-C", str(self.bare), "show", f"{self.branch}:status.yaml"],
            capture_output=True,
            text=True,
            check=False,
        )
        with suppress(yaml.YAMLError):
            return yaml.safe_load(shown.stdout) or {}
        return {}


def _own(kind: str, name: str, spec: dict[str, Any]) -> str:
    return _object("stoker.dev/v1alpha1", kind, name, spec=spec)


def _object(version: str, kind: str, name: str, **rest: Any) -> str:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}
    return json.dumps(body) + "\n"


def _deployment(name: str, count: int) -> str:
    labels = {"app": name}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/engine:1"}]},
    }
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": pod}
    return _object("apps/v1", "Deployment", name, spec=spec)


def _autoscaler() -> str:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    spec = {"scaleTargetRef": target, "minReplicas": FEWEST, "maxReplicas": 2 * MOST}
    return _object("autoscaling/v2", "HorizontalPodAutoscaler", "scaled", spec=spec)
