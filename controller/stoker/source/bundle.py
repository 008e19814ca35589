"""Finds the files that a Bundle names, once its own file is in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stoker.errors import Finding
from stoker.model.fleet import Blob, Bundle, Unit
from stoker.source.compile import Compiled
from stoker.source.include import FileIndex, is_wild, left_out_finding, resolve_path
from stoker.source.places import Field, closest, dotted
from stoker.source.schema_bundle import BundleSpec

__all__ = ["bundle_of", "names_files", "stands"]


def bundle_of(
    unit: Compiled, spec: BundleSpec, index: FileIndex, unit_files: Collection[str]
) -> tuple[Bundle, tuple[Finding, ...]]:
    """The Bundle with its files, in the order of patterns and then paths, each once.

    Patterns are relative to the Bundle's own file. Unit files of the fleet, this one
    first, are left out: they are no manifests.
    """
    render = spec.render
    at: Field
    if render.jinja is not None:
        at = ("spec", "render", "jinja", "paths")
        found, findings = _files(unit, render.jinja.paths, at, index, unit_files)
        return Bundle(jinja=found, values=_values(unit)), findings
    at = ("spec", "render", "manifests")
    found, findings = _files(unit, render.manifests or (), at, index, unit_files)
    return Bundle(manifests=found), findings


def names_files(spec: BundleSpec) -> bool:
    """Whether every pattern is the name of one file."""
    render = spec.render
    patterns = render.jinja.paths if render.jinja is not None else render.manifests or ()
    return not any(is_wild(pattern) for pattern in patterns)


def stands(unit: Unit, index: FileIndex, unit_files: Collection[str]) -> bool:
    """Whether the files of a Bundle that names each of them are as they were."""
    if not isinstance(unit.spec, Bundle):
        return False
    return all(
        index.get(blob.path) == blob and blob.path not in unit_files
        for blob in (*unit.spec.manifests, *unit.spec.jinja)
    )


def _values(unit: Compiled) -> dict[str, object]:
    values = unit.raw["spec"]["render"]["jinja"].get("values")
    return dict(values) if isinstance(values, dict) else {}


def _files(
    unit: Compiled,
    patterns: Sequence[str],
    at: Field,
    index: FileIndex,
    unit_files: Collection[str],
) -> tuple[tuple[Blob, ...], tuple[Finding, ...]]:
    found: dict[str, Blob] = {}
    findings: list[Finding] = []
    folder = unit.location.path.rpartition("/")[0]
    for number, pattern in enumerate(patterns):
        path = resolve_path(pattern, folder)
        if path is None:
            code, message = "path-outside-repository", f"{pattern!r} leads out of the repository"
        else:
            blobs = [blob for blob in index.matching(path) if blob.path not in unit_files]
            found.update((blob.path, blob) for blob in blobs)
            left_out = index.left_out_matching(path)
            findings += [left_out_finding(each, str(unit.ref)) for each in left_out]
            if blobs or left_out:
                continue
            code, message = "manifest-no-match", f"{pattern!r} matches no file"
        here = (*at, number)
        place = closest(unit.places, here, unit.location)
        hint = "" if path is None else f"looked for {path} from the repository root"
        findings.append(Finding(place, code, message, dotted(here), hint, unit=str(unit.ref)))
    return tuple(found.values()), tuple(findings)
