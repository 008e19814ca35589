"""The root of the command line: finds the command, runs it, turns errors into exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

import typer
import typer.completion

from stoker.cli.catalog import COMMANDS, Command
from stoker.cli.completion import completion
from stoker.cli.exits import Exit, exit_code_of, print_crash, print_error
from stoker.errors import Stalled, StokerError

__all__ = ["build", "run"]

COMPLETE = "_STOKER_COMPLETE"
"""Set by the shell when it asks for completions (typer's own variable for this name)."""


def build(only: str = "") -> typer.Typer:
    """The whole command line, or just the command of that name (all, if there is none)."""
    wanted = [c for c in COMMANDS if c.name == only] or list(COMMANDS)
    app = typer.Typer(
        name="stoker",
        help="Declarative GitOps for fleets of LLM inference servers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback()
    def root() -> None:
        """Keep commands as subcommands, however few are loaded."""

    for command in wanted:
        _add(app, command)
    return app


def _add(app: typer.Typer, command: Command) -> None:
    module, attribute = command.place
    found = getattr(import_module(f"stoker.cli.{module}"), attribute)
    if command.group:
        app.add_typer(found, name=command.name, rich_help_panel=command.panel)
    else:
        app.command(command.name, rich_help_panel=command.panel, hidden=command.hidden)(found)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code; errors are printed here and nowhere else."""
    debug = "--debug" in arguments or bool(os.environ.get("STOKER_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"]
    try:
        result = _quick(arguments) if _is_quick(arguments) else _parsed(arguments)
    except StokerError as error:
        if debug:
            traceback.print_exception(error)
        print_error(error)
        return exit_code_of(error)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.OK
    except OSError as error:
        if debug:
            traceback.print_exception(error)
        place = f"{error.filename}: " if error.filename else ""
        print_error(Stalled(f"{place}{error.strerror or error}", code="file-error"))
        return Exit.UNDECIDED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.USAGE
    except Exception as error:  # noqa: BLE001 - the top of the process: a crash is reported as a bug
        return _library_exit(error, debug=debug)
    if result == Exit.INTERRUPTED:
        return _interrupted()
    return result if isinstance(result, int) else Exit.OK


def _interrupted() -> int:
    sys.stderr.write("interrupted\n")
    return Exit.INTERRUPTED


def _is_quick(arguments: list[str]) -> bool:
    """Shells load the completion script at each start: it does without the parser."""
    asks = arguments[:1] == ["completion"] and len(arguments) == 2
    return asks and not arguments[1].startswith("-") and COMPLETE not in os.environ


def _quick(arguments: list[str]) -> int:
    return completion(arguments[1])


def _parsed(arguments: list[str]) -> object:
    completing = COMPLETE in os.environ
    if completing:
        typer.completion.completion_init()  # type: ignore[attr-defined]
    app = build("" if completing or not arguments else arguments[0])
    return app(arguments, standalone_mode=False, prog_name="stoker")


def _library_exit(error: Exception, *, debug: bool) -> int:
    """Usage errors of the argument parser are 2, its aborts 130, anything else a crash."""
    code = getattr(error, "exit_code", None)
    show = getattr(error, "show", None)
    if code is not None and callable(show):
        show()
        return Exit.USAGE
    if type(error).__name__ == "Abort":
        return _interrupted()
    if code is not None:
        return int(code)
    print_crash(error, debug=debug)
    return Exit.CRASH
