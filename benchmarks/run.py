"""`make bench`: run the sections, print a table, write results.json and docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
SMALLER = (
    *("W1_UNITS", "W1_SIZES", "W1_STEADY_SECONDS", "W1_NODES", "W1_PODS", "W1_CONFIG_MAPS"),
    *("W1_DEPLOYMENTS", "SOAK_UNITS", "SOAK_SECONDS", "SOAK_VIRTUAL_HOURS"),
    *("NOTICE_NODES", "NOTICE_SERVICES", "NOTICES"),
    *("FRONTIER_TRACES", "FRONTIER_STARTS", "FRONTIER_PEAKS", "OUTAGES"),
    *("WARMTH_SEEDS", "WARMTH_SPEED", "WARMTH_SCENARIOS"),
)
"""Environment variables that make a run smaller; such a run is printed and not kept."""


def modules(section: str) -> list[ModuleType]:
    """The modules of a section; each has a `run` that gives rows."""
    import bench_apply
    import bench_cli
    import bench_decide
    import bench_fragments
    import bench_frontier
    import bench_notice
    import bench_one
    import bench_outages
    import bench_replicas
    import bench_sizes
    import bench_soak
    import bench_w1
    import bench_warmth

    table = {
        "warmth": [bench_notice, bench_warmth],
        "core": [bench_decide, bench_fragments, bench_cli, bench_w1],
        "apply": [bench_apply, bench_one, bench_sizes, bench_soak],
        "replicas": [bench_replicas, bench_outages, bench_frontier],
    }
    if section not in table:
        sys.exit(f"no section {section!r}; there are: {', '.join(sorted(table))}")
    return table[section]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--section", default="core")
    parser.add_argument(
        "--only",
        default="",
        help="name of one module: decide, fragments, cli, w1, apply, one, sizes, soak, notice, warmth, "
        "replicas, outages, frontier",
    )
    options = parser.parse_args()
    from measure import machine

    rows: list[dict[str, Any]] = []
    made: dict[str, Any] = {
        "machine": machine(),
        "command": _command(options.section, options.only),
    }
    with tempfile.TemporaryDirectory() as bytecode:
        _as_installed(bytecode)
        for module in modules(options.section):
            part = module.__name__.removeprefix("bench_")
            if options.only in {"", part}:
                found = module.run()
                rows += found
                _keep(options.section, part, found, made)  # what follows may fail
    _print(rows)
    if not options.only:
        _keep(options.section, "", rows, made)
    return 0 if all(found["holds"] for found in rows) else 1


def _command(section: str, only: str) -> str:
    return f"make bench SECTION={section}" + (f" ONLY={only}" if only else "")


def _keep(section: str, part: str, rows: list[dict[str, Any]], made: dict[str, Any]) -> None:
    """Write the rows of a part, or (empty) of the whole section, unless the run was a small one."""
    if any(name in os.environ for name in SMALLER):
        return
    from measure import machine
    from page import PAGE, kept, page_with

    at_end = machine()["load_average"]
    made = {**made, "machine": made["machine"] | {"load_average_at_end": at_end}}
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    results = kept(results, section, part, rows, made)
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), results), encoding="utf-8")


def _as_installed(folder: str) -> None:
    """Let the measured processes find bytecode, as an installed wheel has it.

    Where the environment turns it off, most of a start-up is the compiler.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = folder


def _print(rows: list[dict[str, Any]]) -> None:
    width = max((len(found["measure"]) for found in rows), default=0)
    print(f"\n{'measure':{width}}  {'value':>10}  {'bar':>8}  unit")
    for found in rows:
        bar = "-" if found["bar"] is None else f"{found['bar']:g}"
        mark = "" if found["holds"] else "   MISSED"
        print(f"{found['measure']:{width}}  {found['value']:>10g}  {bar:>8}  {found['unit']}{mark}")


if __name__ == "__main__":
    sys.exit(main())
