"""The root of the command line: which commands there are, in which panel of the help."""

from __future__ import annotations

import os
import sys

import typer

from stoker.cli import (
    apply,
    completion,
    demo,
    dev,
    diff,
    doctor,
    explain,
    init,
    install,
    plan,
    render,
    run_command,
    schema,
    status,
    validate,
    version,
)
from stoker.cli.exits import Exit, exit_code_of, print_crash, print_error
from stoker.errors import StokerError

__all__ = ["app", "run"]

app = typer.Typer(
    name="stoker",
    help="Declarative GitOps for fleets of LLM inference servers: commit YAML, and each model "
    "replica runs on the node that can serve it soonest.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_WRITE, _PREVIEW, _RUN, _LOOK, _TOOLS = "Write", "Preview", "Run", "Look", "Tools"

app.command("init", rich_help_panel=_WRITE)(init.init)
app.command("validate", rich_help_panel=_WRITE)(validate.validate)
app.command("schema", rich_help_panel=_WRITE)(schema.schema)
app.command("render", rich_help_panel=_PREVIEW)(render.render)
app.command("diff", rich_help_panel=_PREVIEW)(diff.diff)
app.command("plan", rich_help_panel=_PREVIEW)(plan.plan)
app.command("install", rich_help_panel=_RUN)(install.install)
app.command("apply", rich_help_panel=_RUN)(apply.apply)
app.command("run", rich_help_panel=_RUN)(run_command.run)
app.command("status", rich_help_panel=_LOOK)(status.status)
app.command("explain", rich_help_panel=_LOOK)(explain.explain)
app.add_typer(dev.app, name="dev", rich_help_panel=_TOOLS)
app.command("demo", rich_help_panel=_TOOLS)(demo.demo)
app.command("doctor", rich_help_panel=_TOOLS)(doctor.doctor)
app.command("completion", rich_help_panel=_TOOLS)(completion.completion)
app.command("version", rich_help_panel=_TOOLS)(version.version)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code; errors are printed here and nowhere else."""
    debug = "--debug" in arguments or bool(os.environ.get("STOKER_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"]
    try:
        result = app(arguments, standalone_mode=False, prog_name="stoker")
    except StokerError as error:
        print_error(error)
        if debug:
            print_crash(error, debug=True)
        return exit_code_of(error)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.OK
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.USAGE
    except Exception as error:  # noqa: BLE001 - the top of the process: a crash is reported as a bug
        return _library_exit(error, debug=debug)
    return result if isinstance(result, int) else Exit.OK


def _library_exit(error: Exception, *, debug: bool) -> int:
    """Usage errors of the argument parser are 2, its aborts 130, anything else a crash."""
    code = getattr(error, "exit_code", None)
    show = getattr(error, "show", None)
    if code is not None and callable(show):
        show()
        return Exit.USAGE
    if code is not None:
        return int(code)
    if type(error).__name__ == "Abort":
        return Exit.INTERRUPTED
    print_crash(error, debug=debug)
    return Exit.CRASH
