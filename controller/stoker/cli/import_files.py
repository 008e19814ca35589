"""Writes imported files into a fleet repository, and says whether a Fleet includes them.

Texts by path and the target folder come in. A file that is there is never overwritten: then
nothing is written at all. In a repository's root Bundles go to `bundles/`, models to `models/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from stoker.errors import Stalled
from stoker.model.fleet import Blob
from stoker.source.include import FileIndex, resolve_path

__all__ = ["missing_includes", "write_files"]

_ROOT_MARKS = (".git", "clusters")
"""What stands in the root of a fleet repository."""


def write_files(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files below the folder; gives their paths in order.

    Raises Stalled `file-exists` before anything is written.
    """
    root = _is_root(folder)
    targets = {
        folder / (_place(path) if root else "") / path: text for path, text in sorted(files.items())
    }
    for target in targets:
        if target.exists() or target.is_symlink():
            raise Stalled(
                f"{target} exists; nothing was written",
                code="file-exists",
                hint="take it away, or choose another folder with --to",
            )
    for target, text in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return tuple(targets)


def _place(path: str) -> str:
    """Where a fleet repository keeps it: Bundles are folders, models single files."""
    return "bundles" if "/" in path else "models"


def missing_includes(folder: Path, written: Iterable[Path]) -> tuple[str, ...]:
    """For each Fleet file of the repository, the pattern that it lacks; empty for none."""
    root = _root_of(folder)
    if root is None:
        return ()
    files = [_below(path, root) for path in written]
    bundles = {path.parent for path in files if path.name == "bundle.yaml"}
    units = [path for path in files if path.name == "bundle.yaml" or path.parent not in bundles]
    index = FileIndex([Blob(unit.as_posix(), "") for unit in units])
    hints: list[str] = []
    for fleet in sorted({*root.glob("clusters/*/fleet.yaml"), *root.glob("fleet.yaml")}):
        name = _below(fleet, root).as_posix()
        seen = {blob.path for pattern in _patterns(root, name) for blob in index.matching(pattern)}
        lacking = {_pattern(unit) for unit in units if unit.as_posix() not in seen}
        hints += [f"add {pattern} to spec.include of {name}" for pattern in sorted(lacking)]
    return tuple(hints)


def _pattern(unit: Path) -> str:
    """The pattern that includes the unit's file and its neighbours."""
    bundle = unit.name == "bundle.yaml"
    folder = (unit.parent.parent if bundle else unit.parent).as_posix()
    return f"/{folder}/{'*/bundle.yaml' if bundle else '*.yaml'}".replace("/./", "/")


def _below(path: Path, root: Path) -> Path:
    return path.resolve().relative_to(root)


def _patterns(root: Path, fleet: str) -> list[str]:
    """The include patterns of a Fleet file, from the root; none where it cannot be read."""
    try:
        document = yaml.safe_load((root / fleet).read_text(encoding="utf-8"))
        patterns = [str(item) for item in document["spec"]["include"]]
    except (KeyError, OSError, TypeError, UnicodeDecodeError, yaml.YAMLError):
        return []
    found = (resolve_path(pattern, fleet.rpartition("/")[0]) for pattern in patterns)
    return [pattern for pattern in found if pattern]


def _is_root(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _ROOT_MARKS)


def _root_of(folder: Path) -> Path | None:
    """The repository that the folder belongs to; None where there is none."""
    here = folder.resolve()
    return next((place for place in (here, *here.parents) if _is_root(place)), None)
