"""Every command: its panel in the help, its module, and the line that describes it.

The root help is printed from here without loading the argument parser, and only the module
of the command that is called gets imported: both keep the command line quick.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

__all__ = ["COMMANDS", "Command", "root_help"]


@dataclass(frozen=True, slots=True)
class Command:
    """One verb. `function` is a command, or (for a group) the Typer app, of `module`."""

    name: str
    panel: str
    summary: str
    module: str = ""
    function: str = ""
    group: bool = False
    hidden: bool = False
    """Not in the root help: nobody types it, a DaemonSet does."""

    @property
    def place(self) -> tuple[str, str]:
        """Module below stoker.cli, and attribute in it."""
        return self.module or self.name, self.function or self.name


COMMANDS = (
    Command("init", "Write", "Write a working fleet repository: one model, one pool, schemas"),
    Command(
        "import",
        "Write",
        "Write what already runs as files, to be adopted without a restart",
        "import_objects",
        "import_objects",
    ),
    Command("validate", "Write", "Check every file at once, without a cluster"),
    Command("schema", "Write", "Print the JSON schemas of the fleet files and of -o json"),
    Command("render", "Preview", "Print the manifests as they would be sent"),
    Command("diff", "Preview", "Show which fields would change; exit 1 when some would"),
    Command("plan", "Preview", "Show what a change leads to, step by step, and its cost"),
    Command("simulate", "Preview", "Play a trace against rules for the count of replicas"),
    Command("install", "Run", "Print CRDs, rights and Deployment of the controller"),
    Command("apply", "Run", "Show the difference, ask, and make one pass at a revision"),
    Command("run", "Run", "Follow a repository and make the cluster what it says", "run_command"),
    Command("reporter", "Run", "Report what this node holds, and its notices", hidden=True),
    Command("uninstall", "Run", "Leave the cluster: keep every workload, give up every field"),
    Command("status", "Look", "Show how the fleet is, and what needs attention"),
    Command("explain", "Look", "Say why a unit is as it is, or what a reason code means"),
    Command("history", "Look", "List revisions and what came of each, of the fleet or a service"),
    Command("coldstart", "Look", "Say where the time of a start went, and what would save it"),
    Command("inventory", "Look", "List what the fleet holds in the cluster, and why it stays"),
    Command("override", "Act", "Set a service's count for a while, outside Git"),
    Command("suspend", "Act", "Leave a service or the fleet alone for now, outside Git"),
    Command("resume", "Act", "End what suspend began"),
    Command("reconcile", "Act", "Ask the controller for a pass now, and wait for it"),
    Command("wait", "Act", "Wait until a unit is Synced, Ready or Healthy"),
    Command("rollback", "Act", "Commit a service's file as it was, on a new branch"),
    Command("dev", "Tools", "Stand-ins: a control plane, GPU nodes, an engine", "", "app", True),
    Command("rehearse", "Tools", "Play a scenario under load, and judge it against its bars"),
    Command("demo", "Tools", "Watch four scenes on an embedded cluster, no GPU needed"),
    Command("doctor", "Tools", "Check programs, the render jail and the cluster"),
    Command("completion", "Tools", "Print the completion script of a shell"),
    Command("version", "Tools", "Print the version"),
)

_HEAD = """\
Usage: stoker [OPTIONS] COMMAND [ARGS]...

  Declarative GitOps for fleets of LLM inference servers: commit YAML, and
  each model replica runs on the node that can serve it soonest.
"""
_TAIL = """\
Options:
  -h, --help  Show this message and exit (also after a command)
  --debug     Show tracebacks (also after a command)
  --version   Show the version

Exit codes: 0 done, 1 differences, 2 wrong use or files, 3 undecided, 70 a bug,
130 interrupted.
"""


def root_help() -> str:
    """What `stoker --help` prints: commands by panel, in the order in which one meets them."""
    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    parts = [_HEAD]
    for panel in dict.fromkeys(command.panel for command in COMMANDS):
        lines = [f"{panel}:"]
        for command in COMMANDS:
            if command.panel == panel and not command.hidden:
                lines.append(f"  {command.name:11} {command.summary}"[:width])
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _TAIL])
