"""`stoker demo`: four scenes on an embedded cluster, no GPU needed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit

__all__ = ["demo"]


def demo(
    *,
    real: Annotated[
        bool, typer.Option("--real", help="Play on a real Kubernetes control plane.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running, with the folder to commit to.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where everything lives (else a temporary one).")
    ] = None,
) -> int:
    """Watch it work: a first placement, a spot notice under load, a repair, a removal."""
    from stoker.cli.demo_scenes import keep_running, play
    from stoker.cli.demo_stage import Stage
    from stoker.log import configure

    configure("error")
    place = folder or Path(tempfile.mkdtemp(prefix="stoker-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if folder is None and not keep:
            stack.callback(shutil.rmtree, place, ignore_errors=True)
        plane = None
        if real:
            from stoker.sim.controlplane import ControlPlane

            sys.stderr.write("starting a real control plane\n")
            plane = stack.enter_context(ControlPlane(place / "plane"))
        stage = Stage(place, sys.stdout, plane)
        stack.callback(stage.close)
        fine = play(stage)
        if keep:
            keep_running(stage)
    return Exit.OK if fine else Exit.UNDECIDED
