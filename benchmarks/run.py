"""`make bench`: run the sections, print a table, write benchmarks/results.json."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def sections(name: str) -> list:
    """The functions of a section; each gives rows."""
    import bench_cli
    import bench_decide
    import bench_w1

    table = {"core": [bench_decide.run, bench_cli.run, bench_w1.run]}
    if name not in table:
        sys.exit(f"no section {name!r}; there are: {', '.join(sorted(table))}")
    return table[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--section", default="core")
    parser.add_argument("--only", default="", help="name of one module: decide, cli, w1")
    options = parser.parse_args()
    rows = []
    for run in sections(options.section):
        if options.only and not run.__module__.endswith(options.only):
            continue
        rows.extend(run())
        width = max(len(r["measure"]) for r in rows)
    print(f"\n{'measure':{width}}  {'value':>10}  {'bar':>8}  unit")
    for r in rows:
        bar = "-" if r["bar"] is None else f"{r['bar']:g}"
        mark = "" if r["holds"] else "   MISSED"
        print(f"{r['measure']:{width}}  {r['value']:>10g}  {bar:>8}  {r['unit']}{mark}")
    results = {
        "machine": {
            "cpus": __import__("os").cpu_count(),
            "python": platform.python_version(),
            "system": platform.system(),
        },
        "command": f"make bench SECTION={options.section}",
        "rows": rows,
    }
    if not options.only:
        (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
