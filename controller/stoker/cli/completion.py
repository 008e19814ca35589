"""`stoker completion`: the shell's script, printed, never installed behind one's back."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.errors import Stalled

__all__ = ["completion"]

_SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")],
) -> int:
    """Print the completion script of a shell; `source <(stoker completion bash)` loads it."""
    if shell not in _SHELLS:
        raise Stalled(f"no completion for {shell!r}", code="usage", hint="bash, zsh or fish")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="stoker", complete_var="_STOKER_COMPLETE", shell=shell)
    sys.stdout.write(script + "\n")
    return Exit.OK
