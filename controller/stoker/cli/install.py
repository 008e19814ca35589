"""`stoker install`: the manifests that run the controller, for `kubectl apply -f -`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import RepoUrl
from stoker.cli.style import narrate

__all__ = ["install"]

CONTROLLER_NAMESPACE = "stoker-system"
"""Its pod security is too strict for a reporter, which then has a namespace of its own."""


def install(
    *,
    repo: RepoUrl = "",
    fleet: Annotated[str, typer.Option("--fleet", help="Fleet file in it.")] = "fleet.yaml",
    image: Annotated[str, typer.Option("--image", help="Image of the controller.")] = "",
    ref: Annotated[str, typer.Option("--ref", help="Branch, tag or commit to follow.")] = "main",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the controller.")
    ] = CONTROLLER_NAMESPACE,
    fleet_id: Annotated[
        str, typer.Option("--fleet-id", help="Id fixed for good; derived from --repo if empty.")
    ] = "",
    write_namespaces: Annotated[
        list[str] | None,
        typer.Option("--write-namespace", help="Namespace the fleet may write in; repeatable."),
    ] = None,
    header_secrets: Annotated[
        list[str] | None,
        typer.Option(
            "--header-secret", help="Secret that a metric source's headers come from; repeatable."
        ),
    ] = None,
    ssh_secret: Annotated[
        str, typer.Option("--ssh-secret", help="Existing Secret with ssh-privatekey, known_hosts.")
    ] = "",
    https_secret: Annotated[
        str, typer.Option("--https-secret", help="Existing Secret with key credentials.")
    ] = "",
    known_hosts: Annotated[
        Path | None, typer.Option("--known-hosts", help="Host keys of the forge.")
    ] = None,
    path: Annotated[
        Path, typer.Option("--path", "-f", help="Folder of the repository, to read the id from.")
    ] = Path(),
    crds_only: Annotated[
        bool, typer.Option("--crds-only", help="Only the custom resource definitions.")
    ] = False,
    reporter: Annotated[
        bool,
        typer.Option("--reporter", help="Only the node reporter (namespace stoker-reporter)."),
    ] = False,
    cache_path: Annotated[
        str, typer.Option("--cache-path", help="With --reporter: folder of the weights on a node.")
    ] = "",
    engine_namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--engine-namespace",
            help="With --reporter: let it find engines by their pods there; repeatable.",
        ),
    ] = None,
    evict: Annotated[
        bool,
        typer.Option(
            "--evict", help="With --cache-path: delete weights beyond cache.maxSize; root."
        ),
    ] = False,
    host_network: Annotated[
        bool,
        typer.Option("--host-network", help="With --reporter: for AWS at hop limit 1."),
    ] = False,
    reporter_options: Annotated[
        list[str] | None,
        typer.Option("--reporter-option", help="With --reporter: as --cloud=aws; repeatable."),
    ] = None,
) -> int:
    """Print CRDs, rights, Deployment and a new SSH deploy key for one fleet.

    With --reporter, print what runs the node reporter instead.
    """
    from stoker.cli.session import usage
    from stoker.report import (
        InstallSettings,
        Login,
        ReporterInstall,
        definition_texts,
        install_manifests,
        instance_id,
        new_deploy_key,
        reporter_manifests,
        wants_deploy_key,
    )

    if crds_only:
        sys.stdout.write("".join(f"---\n{text.rstrip()}\n" for _, text in definition_texts()))
        return Exit.OK
    if reporter:
        if not image:
            raise usage("--reporter: --image is needed", "an image with Stoker and nvidia-ml-py")
        if cache_path and not cache_path.startswith("/"):
            raise usage(f"--cache-path: {cache_path!r} is not absolute", "a folder on the nodes")
        if evict and not cache_path:
            raise usage("--evict needs the folder", "name it with --cache-path")
        told = ReporterInstall(
            image,
            "stoker-reporter" if namespace == CONTROLLER_NAMESPACE else namespace,
            cache_path=cache_path,
            host_network=host_network,
            evict=evict,
            engine_namespaces=tuple(engine_namespaces or ()),
            options=tuple(reporter_options or ()),
        )
        sys.stdout.write(reporter_manifests(told))
        return Exit.OK
    if not image or not repo:
        raise usage("--image and --repo are needed", "or --crds-only")
    fixed = fleet_id or _id_of_local_file(path, fleet)
    secret = ssh_secret or https_secret
    key = None
    if not secret and wants_deploy_key(repo):
        key = new_deploy_key(f"stoker-{fixed or instance_id(repo, fleet)}")
    settings = InstallSettings(
        image=image,
        repo=repo,
        fleet=fleet,
        ref=ref,
        namespace=namespace,
        fleet_id=fixed,
        namespaces=tuple(write_namespaces or ()),
        deploy_key=key,
        known_hosts=known_hosts.read_text(encoding="utf-8") if known_hosts else "",
        secret=secret,
        login=Login.HTTPS if https_secret else Login.SSH,
        header_secrets=tuple(header_secrets or ()),
    )
    sys.stdout.write(install_manifests(settings))
    if fixed:
        narrate(f"fleet id {fixed}: keep it, it survives renames (--fleet-id)")
    else:
        narrate(f"{fleet} is not here, so the id follows from cluster and fleet name; never rename")
    if key is not None:
        narrate(f"add this deploy key, with write access, to the repository:\n{key.public}")
    for name in sorted({*settings.namespaces} - {settings.namespace}):
        narrate(
            f"its rights stand in namespace {name}; if missing: kubectl create namespace {name}"
        )
    if not settings.namespaces:
        narrate("the fleet can only look: name the namespaces it may write in, --write-namespace")
    return Exit.OK


def _id_of_local_file(path: Path, fleet: str) -> str:
    """The id that the controller would derive, read from the Fleet file here; else empty."""
    from stoker.errors import StokerError
    from stoker.objects.names import fleet_id_of
    from stoker.source import read_fleet

    place = path / fleet.lstrip("/")
    if not place.is_file():
        return ""
    try:
        found = read_fleet(fleet, place.read_bytes()).fleet
    except StokerError:
        return ""
    return fleet_id_of(found.cluster_uid, found.name)
