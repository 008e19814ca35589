"""`stoker import`: what already runs, as files of a fleet repository. Nothing restarts.

import_run does the work; here are its arguments and what is printed.
"""

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
            help="deployment/x, statefulset/x, hpa/x, scaledobject/x, llmscaler/x, helm/x, flux/x, "
            "argocd/x, vllmservice/x, fleetservice/x … or a file with autoscalers.",
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
    translated: Annotated[
        bool,
        typer.Option(
            "--translate",
            help="Make scaling rules of ours from an hpa or scaledobject, where that can be; "
            "else it goes on scaling.",
        ),
    ] = False,
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
    """Write live objects, Helm releases, Flux and Argo CD applications as Bundles, and the rules of
    other autoscalers as scaling of ours.
    """
    from stoker.cli.connect import connect, context_name
    from stoker.cli.import_files import missing_includes, write_files
    from stoker.cli.import_run import Wanted, import_all
    from stoker.cli.import_scalers import is_file
    from stoker.cli.import_sources import parse_source
    from stoker.cli.session import usage

    if as_kind not in {"bundle", "modelservice"}:
        raise usage(f"--as-kind: no {as_kind!r}", "bundle or modelservice")
    files = tuple(dict.fromkeys(text for text in sources if is_file(text)))
    named = (parse_source(text, namespace) for text in sources if text not in files)
    wanted = Wanted(
        tuple(dict.fromkeys(named)),
        files,
        namespace,
        services=as_kind == "modelservice",
        translate=translated,
    )
    if not wanted.needs_cluster:
        made = import_all(wanted, None)
    else:
        client = connect(kubeconfig, context, timeout_seconds=request_timeout, as_user=as_user)
        try:
            uid = client.server().cluster_uid
            narrate(f"context {context_name(kubeconfig, context)}, cluster {uid[:8]}…")
            made = import_all(wanted, client)
        finally:
            client.close()
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
    _lines("to do", made.to_do)
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
