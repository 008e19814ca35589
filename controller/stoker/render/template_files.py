"""Finds the files of a template: the fleet's own first, then what ships with Stoker.

`Desired.templates` and the shipped folder come in, template names and their files go out.
Called by neutral; nothing is read from Git before some unit needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

from stoker.model.codec import digest
from stoker.model.fleet import Blob, Fleet
from stoker.render.sources import TEMPLATE_NAME, Source
from stoker.shipped import shipped_folder

__all__ = ["MAIN_SUFFIXES", "TemplateIndex", "is_main", "template_index"]

MAIN_SUFFIXES = (".yaml.j2", ".yml.j2")
"""Files that are rendered by themselves; others, and names with a leading _, are included."""


@dataclass(frozen=True, slots=True)
class TemplateIndex:
    """Every template by name (`vllm/v1/service.yaml.j2`).

    `own` are the fleet's files, by name, found before those in `shipped`. `key` changes
    when any of them does.
    """

    own: Mapping[str, Blob] = field(hash=False)
    shipped: Mapping[str, Source] = field(hash=False)
    key: str

    def mains(self, template: str) -> tuple[str, ...]:
        """The files that `render.template` names, sorted; empty when there is no such template.

        `vllm/v1` is the folder vllm/v1 or the file vllm/v1.yaml.j2, of the fleet if it has
        one of that name, else shipped.
        """
        if TEMPLATE_NAME.fullmatch(template) is None:
            return ()
        own = _mains(self.own, template)
        return own or _mains(self.shipped, template)

    def named(self, texts: Mapping[str, str]) -> dict[str, Source]:
        """All files by name, the fleet's with their texts by object id."""
        own = {
            name: Source(blob.oid, blob.path, texts[blob.oid])
            for name, blob in self.own.items()
            if blob.oid in texts
        }
        return {**self.shipped, **own}


def template_index(fleet: Fleet, blobs: tuple[Blob, ...]) -> TemplateIndex:
    """Name the fleet's template files by their folder in `templates`, and add the shipped ones.

    Folders earlier in `fleet.template_paths` win. Files whose names hold anything but
    letters, digits and `._-/` are left out.
    """
    own: dict[str, Blob] = {}
    for folder in reversed(fleet.template_paths):
        prefix = folder.strip("/")
        prefix = f"{prefix}/" if prefix else ""
        for blob in blobs:
            name = blob.path.removeprefix(prefix)
            if blob.path.startswith(prefix) and TEMPLATE_NAME.fullmatch(name):
                own[name] = blob
    shipped = _shipped()
    rows = sorted((name, blob.oid, blob.path) for name, blob in own.items())
    return TemplateIndex(own, shipped, digest([rows, sorted(s.oid for s in shipped.values())]))


def is_main(name: str) -> bool:
    """Whether a template file is rendered by itself."""
    return name.endswith(MAIN_SUFFIXES) and not PurePosixPath(name).name.startswith("_")


def _mains(files: Mapping[str, object], template: str) -> tuple[str, ...]:
    single = [template + suffix for suffix in MAIN_SUFFIXES if template + suffix in files]
    inside = [
        name
        for name in files
        if is_main(name) and PurePosixPath(name).parent == PurePosixPath(template)
    ]
    return tuple(sorted(inside or single))


@cache
def _shipped() -> Mapping[str, Source]:
    folder = shipped_folder("templates")
    found: dict[str, Source] = {}
    for file in sorted(folder.rglob("*.j2")):
        name = file.relative_to(folder).as_posix()
        raw = file.read_bytes()
        oid = hashlib.sha256(raw).hexdigest()
        found[name] = Source(oid, f"shipped:templates/{name}", raw.decode())
    return found
