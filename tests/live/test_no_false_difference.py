"""No false difference: hundreds of objects of every usual kind are in sync after one pass.

Real passes by real processes against the real API server, with a mutating webhook in the
way. A fresh process must then find nothing to do, write nothing, and ask little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.mutator import OPT_IN, Mutator
from live.running import CLOCK, Audit, is_write
from live.varied import gizmos, limits, varied
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ref_from_manifest
from stoker.sim.controlplane import ControlPlane

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

NAMESPACE = "varied"
LIMITED = "varied-limited"
SHARE_ASKED = 0.5
"""Dry runs an object: two where the webhook is random, one for kinds without a schema."""
PASSES = 6
"""At most, until everything stands: custom resources wait for their definition."""


@dataclass(frozen=True)
class Rig:
    """A cluster with the webhook, and a repository with the objects."""

    folder: Path
    repository: Path
    plane: ControlPlane
    cluster: Client
    mutator: Mutator
    objects: int

    def run(self) -> tuple[int, list[dict[str, Any]]]:
        """One pass by a fresh process: its exit code and its log."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "stoker", "run", "--once", "--allow-file"),
                *("--repo", str(self.repository), "--fleet", "fleet.yaml"),
                *("--kubeconfig", str(self.plane.kubeconfig_path), "--listen", ""),
                *("--state-folder", str(self.folder / "state"), "--log-format", "json"),
                *("--render-workers", "1"),
            ],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        return done.returncode, lines

    def diff(self) -> dict[str, Any]:
        """`stoker diff -o json` against the cluster, by a fresh process."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "stoker", "diff", "-o", "json", "-f", str(self.repository)),
                *("--fleet", "fleet.yaml", "--kubeconfig", str(self.plane.kubeconfig_path)),
            ],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 1, 2}, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Dev", "-c", "user.email=dev@example.invalid")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


def _document(kind: str, name: str, spec: dict[str, Any]) -> str:
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False)


def _repository(folder: Path, cluster_uid: str, *, seed: int, count: int) -> int:
    """Write and commit a fleet of one Bundle a kind; gives the number of objects."""
    fleet = {
        "cluster": {"uid": cluster_uid},
        "mode": "Correct",
        "include": ["/bundles/*/bundle.yaml"],
        "defaults": {"namespace": NAMESPACE},
    }
    spaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {OPT_IN: "true"}},
        }
        for name in (NAMESPACE, LIMITED)
    ]
    found = varied(seed, count, NAMESPACE)
    bundles = {**found, "spaces": spaces, "limits": limits(LIMITED), "gizmos": [gizmos()]}
    for name, bodies in bundles.items():
        at = folder / "bundles" / name
        at.mkdir(parents=True)
        (at / "bundle.yaml").write_text(
            _document("Bundle", name, {"render": {"manifests": ["all.yaml"]}}), encoding="utf-8"
        )
        # JSON, which is YAML: how plain scalars are read is another test's matter.
        (at / "all.yaml").write_text("\n---\n".join(map(json.dumps, bodies)), encoding="utf-8")
    (folder / "fleet.yaml").write_text(_document("Fleet", "varied", fleet), encoding="utf-8")
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "all")
    return sum(len(bodies) for bodies in bundles.values())


def rig_of(folder: Path, plane: ControlPlane, *, seed: int, count: int) -> Iterator[Rig]:
    transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
    cluster = Client(transport)
    repository = folder / "repository"
    repository.mkdir()
    objects = _repository(repository, cluster.server().cluster_uid, seed=seed, count=count)
    with Mutator(folder) as mutator:
        hook = mutator.configuration("varied")
        cluster.apply(hook, manager="test")
        CLOCK.wait(2.0)  # the API server hears of a webhook a moment after it is there
        yield Rig(folder, repository, plane, cluster, mutator, objects)
        cluster.delete(ref_from_manifest(hook))
    transport.close()


@pytest.fixture(scope="module")
def slice_of_it(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Rig]:
    yield from rig_of(tmp_path_factory.mktemp("varied"), own_control_plane, seed=4, count=130)


def _settle(rig: Rig) -> None:
    """Passes until everything stands."""
    for _ in range(PASSES):
        _, log = rig.run()
        ended = [event for event in log if event["event"] == "pass.ended"]
        if ended and not ended[0].get("failed"):
            return
        CLOCK.wait(1.0)
    pytest.fail(f"{json.dumps(log[-3:], indent=1)}\n{_shown(rig.diff())}")


def _shown(found: dict[str, Any]) -> str:
    """Everything that differs, a line each."""
    return "\n".join(
        f"{o['action']} {o['kind']}/{o['name']} {o.get('code', '')} {o.get('note', '')} {o['fields']}"
        for unit in found["units"]
        for o in unit["objects"]
        if o["action"] != "unchanged"
    )


def check(rig: Rig) -> None:
    _settle(rig)
    audit = Audit(rig.plane.audit_log)
    code, log = rig.run()
    asked = list(audit.news())
    audit.close()
    shown = _shown(rig.diff())

    (ended,) = [event for event in log if event["event"] == "pass.ended"]
    writes = [
        request
        for request in asked
        if is_write(request) and "/leases/" not in request[1] and "selfsubject" not in request[1]
    ]
    dry_runs = Counter(uri.split("/")[-2] for _, uri in asked if "dryRun" in uri)
    total = sum(dry_runs.values())
    print(f"{rig.objects} objects, {len(asked)} requests, {total} dry runs: {dry_runs}")  # noqa: T201
    assert "" == shown
    assert [] == writes
    assert 0 == code
    assert "failed" not in ended
    assert total <= rig.objects * SHARE_ASKED, dry_runs


def test_a_slice_of_every_kind_is_in_sync_for_a_fresh_process(slice_of_it: Rig) -> None:
    """a.3 A1, cases.md rows 47, 49 and 51: five objects a kind."""
    check(slice_of_it)
