"""The CustomResourceDefinitions of group stoker.dev, shipped as YAML beside this module.

Out: their text for `stoker install` and their manifests for tests and `stoker dev cluster`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

__all__ = ["definition_manifests", "definition_texts"]


@cache
def definition_texts() -> tuple[tuple[str, str], ...]:
    """File name and text of each definition, sorted by name."""
    folder = files("stoker.report") / "crds"
    found = [(f.name, f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".yaml")]
    return tuple(sorted(found))


def definition_manifests() -> tuple[dict[str, Any], ...]:
    """The definitions as manifests to be applied, in the same order; fresh copies."""
    return tuple(yaml.load(text, yaml.CSafeLoader) for _, text in definition_texts())
