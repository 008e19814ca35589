"""`stoker import`: what already runs, as files of a fleet repository. Nothing restarts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, RequestTimeout
from stoker.cli.style import narrate
from stoker.errors import Stalled

__all__ = ["import_objects"]

_SHOWN = 20
"""So many lines of a kind are printed; the rest is counted."""


def import_objects(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME...",
            help="deployment/x, statefulset/x, hpa/x, scaledobject/x, helm/x, flux/x, argocd/x, vllmservice/x, fleetservice/x …",
            show_default=False,
        ),
    ],
    *,
    to: Annotated[Path, typer.Option("--to", help="Folder of the fleet repository to write to.")],
    as_kind: Annotated[
        str,
        typer.Option(
            "--as-kind", help="bundle, or modelservice for Deployments that run vLLM (spec.adopt)."
        ),
    ] = "bundle",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of what is named (else default, flux-system or argocd).",
        ),
    ] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Write live objects, Helm releases, Flux and Argo CD applications as Bundles."""
    from stoker.cli.connect import connect, context_name
    from stoker.cli.import_bundles import bundles_of, read_scalers, with_converted
    from stoker.cli.import_coldstart import COLD_START_KINDS, convert
    from stoker.cli.import_files import missing_includes, write_files
    from stoker.cli.import_sources import cold_start_object, gather, parse_source
    from stoker.cli.session import usage

    if as_kind not in {"bundle", "modelservice"}:
        raise usage(f"--as-kind: no {as_kind!r}", "bundle or modelservice")
    wanted = tuple(dict.fromkeys(parse_source(text, namespace) for text in sources))
    client = connect(kubeconfig, context, timeout_seconds=request_timeout, as_user=as_user)
    try:
        uid = client.server().cluster_uid
        narrate(f"context {context_name(kubeconfig, context)}, cluster {uid[:8]}…")
        converted = [
            convert(*cold_start_object(source, client))
            for source in wanted
            if source.kind in COLD_START_KINDS
        ]
        others = [source for source in wanted if source.kind not in COLD_START_KINDS]
        gathered = [gather(source, client) for source in others]
        spaces = {found.ref.namespace for part in gathered for found in part.objects} - {""}
        made = bundles_of(gathered, read_scalers(spaces, client), services=as_kind != "bundle")
    finally:
        client.close()
    made = with_converted(made, converted)
    if not made.files:
        raise Stalled(
            "nothing of this can be carried: " + "; ".join(made.left), code="source-not-carried"
        )
    written = write_files(to, made.files)
    sys.stdout.write("".join(f"{path}\n" for path in written))
    _lines("drift, live value carried", made.drift)
    _lines("left out, holds a secret in clear (stays live as it is)", made.secrets)
    adopted = f"{_count(made.services, 'service')}, {_count(made.objects, 'object')} to adopt"
    parts = [f"{adopted}, {_count(made.restarts, 'restart')}, 0 deletes", *made.kept]
    if made.left:
        parts.append(f"not carried: {', '.join(made.left)}")
    narrate("; ".join(parts))
    for hint in missing_includes(to, written):
        narrate(hint)
    narrate("next: stoker diff, then commit; mode Correct adopts them")
    return Exit.OK


def _lines(title: str, lines: tuple[str, ...]) -> None:
    for line in lines[:_SHOWN]:
        narrate(f"{title}: {line}")
    if len(lines) > _SHOWN:
        narrate(f"{title}: {len(lines) - _SHOWN} more")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
