"""`stoker init`: a fleet repository that works as it stands, in mode Observe."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import Context, Kubeconfig
from stoker.cli.style import narrate
from stoker.errors import Stalled, StokerError
from stoker.shipped import NEWEST_TEMPLATE

__all__ = ["init"]

UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS label: the fleet's name becomes part of branch and label."""

_LEFT_ALONE = frozenset({".gitignore", ".pre-commit-config.yaml", "README.md"})
"""Files that a new clone often has; one that is there stays as it is."""

_FLEET = """\
# yaml-language-server: $schema=../../.stoker/schema/fleet.json
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata:
  name: {name}
spec:
  cluster:
    uid: {uid}   # UID of namespace kube-system; checked before anything else
  mode: Observe   # computes and reports everything, writes nothing; Correct applies
  include:
  - /models/*.yaml
  - /bundles/*/bundle.yaml
  defaults:
    namespace: llm
    modelService:
      render: {{template: {template}}}   # the newest; an older one stays as it is for ever
  pools:
  - name: gpu   # nodes with this label; `stoker dev cluster` makes three
    nodeSelector:
      matchLabels: {{pool: gpu}}
"""

_MODEL = """\
# yaml-language-server: $schema=../.stoker/schema/modelservice.json
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {name: qwen-0-5b}
spec:
  model:
    uri: hf://Qwen/Qwen2.5-0.5B-Instruct
    revision: 7ae557604adf67be50417f59c2c2f167def9a775
    size: 1Gi
  engine: {type: vllm, image: registry.example/vllm:0.28}   # your image, best with a digest
  gpu: {count: 1}
  replicas: 2
  placement: {pools: [{name: gpu}]}
"""

_BUNDLE = """\
# yaml-language-server: $schema=../../.stoker/schema/bundle.json
apiVersion: stoker.dev/v1alpha1
kind: Bundle
metadata: {name: base}
spec:
  render:
    manifests: ["*.yaml"]
"""

_NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: llm
  annotations:
    stoker.dev/adopt: enabled   # it stands before an installed controller, whose rights are in it
"""

_TEMPLATES = """\
# Own templates

A folder here with the name of a shipped one (`{template}`) is used instead of it, once the Fleet
file lists this folder under `spec.templates`. Copy, edit, then look: `stoker render qwen-0-5b`.
"""

_IGNORE = "/.stoker/git/\n"

_README = """\
# Fleet {name}

| do | type |
|---|---|
| check every file | `stoker validate` |
| see the manifests of one model | `stoker render qwen-0-5b` |
| see what would change in the cluster | `stoker diff` |
| see what that costs | `stoker plan` |
| install the controller | `stoker install --image IMAGE --repo URL --fleet clusters/{name}/fleet.yaml \\| kubectl apply -f -` |

The fleet starts in mode `Observe`: it computes and reports everything and writes nothing.
Commit `mode: Correct` in `clusters/{name}/fleet.yaml` when `stoker diff` shows what you want.
Status comes back on the branch `stoker-status/{name}`.
"""

_PRE_COMMIT = """\
repos:
- repo: local
  hooks:
  - id: stoker-validate
    name: stoker validate
    entry: stoker validate
    language: system
    pass_filenames: false
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path(),
    *,
    fleet: Annotated[
        str, typer.Option("--fleet", help="Name of the fleet, for instance prod-eu.")
    ] = "local",
    cluster_uid: Annotated[
        str,
        typer.Option(
            "--cluster-uid", help="UID of namespace kube-system (else the cluster is asked)."
        ),
    ] = "",
    from_cluster: Annotated[
        bool,
        typer.Option(
            "--from-cluster", help="Take pools and namespace from a cluster that already runs."
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> int:
    """Write a working fleet repository: one model, one pool, schemas for the editor."""
    from stoker.cli.session import usage

    if not _NAME.fullmatch(fleet):
        raise usage(f"--fleet: {fleet!r} is no DNS label", "a-z, 0-9 and -, for instance prod-eu")
    if from_cluster and cluster_uid:
        raise usage("--cluster-uid is read from the cluster with --from-cluster")
    hints: tuple[str, ...] = ()
    if from_cluster:
        uid, files, hints = _files_of_cluster(fleet, kubeconfig, context, folder)
    else:
        uid = cluster_uid or _ask_cluster(kubeconfig, context)
        files = _files(fleet, uid or UNKNOWN_UID)
    there = {path for path in files if (folder / path).exists()}
    taken = sorted(there - _LEFT_ALONE)
    if taken:
        raise Stalled(
            f"{folder / taken[0]} exists; nothing was written",
            code="file-exists",
            hint="choose an empty folder",
        )
    files = {path: text for path, text in files.items() if path not in there}
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    sys.stdout.write("".join(f"{folder / path}\n" for path in files))
    if not uid:
        narrate(
            "no cluster could be asked for its UID: put it into "
            f"clusters/{fleet}/fleet.yaml (spec.cluster.uid)"
        )
    for hint in hints:
        narrate(hint)
    go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    narrate(f"next: {go}stoker validate")
    return Exit.OK


def _files_of_cluster(
    fleet: str, kubeconfig: Path | None, context: str, folder: Path
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """A repository without an example, its Fleet file as the cluster is; and what to import."""
    from stoker.cli.connect import connect, context_name
    from stoker.cli.init_cluster import fleet_text, look

    client = connect(kubeconfig, context)
    try:
        seen = look(client)
    finally:
        client.close()
    narrate(f"cluster {seen.uid}, as context {context_name(kubeconfig, context)} leads to")
    files = {
        path: text
        for path, text in _files(fleet, seen.uid).items()
        if not path.startswith(("bundles/", "models/"))
    }
    files[f"clusters/{fleet}/fleet.yaml"] = fleet_text(fleet, seen)
    files["README.md"] = (
        files["README.md"]
        .replace(" qwen-0-5b", "")
        .replace("the manifests of one model", "all manifests")
    )
    hints = [
        f"to adopt: stoker import {' '.join(sources)} -n {space} --to {folder}"
        for space, sources in seen.sources
    ]
    if not seen.pools:
        hints.append("no pools: no GPU node has a label by which its pool is known; add spec.pools")
    return seen.uid, files, tuple(hints)


def _files(fleet: str, uid: str) -> dict[str, str]:
    from stoker.source import schemas

    files = {
        f"clusters/{fleet}/fleet.yaml": _FLEET.format(
            name=fleet, uid=uid, template=NEWEST_TEMPLATE
        ),
        "models/qwen-0.5b.yaml": _MODEL,
        "bundles/base/bundle.yaml": _BUNDLE,
        "bundles/base/namespace.yaml": _NAMESPACE,
        "templates/README.md": _TEMPLATES.format(template=NEWEST_TEMPLATE),
        ".gitignore": _IGNORE,
        ".pre-commit-config.yaml": _PRE_COMMIT,
        "README.md": _README.format(name=fleet),
    }
    for kind, schema in sorted(schemas().items()):
        text = json.dumps(schema, indent=2, sort_keys=True) + "\n"
        files[f".stoker/schema/{kind.lower()}.json"] = text
    return files


def _ask_cluster(kubeconfig: Path | None, context: str) -> str:
    """The UID of the cluster that the kubeconfig leads to; empty when none can be asked."""
    from stoker.cli.connect import connect, context_name

    try:
        uid = connect(kubeconfig, context, timeout_seconds=5.0).server().cluster_uid
    except StokerError:
        return ""
    narrate(f"cluster {uid}, as context {context_name(kubeconfig, context)} leads to")
    return uid
