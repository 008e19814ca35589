"""Stage 1: what one commit of the fleet repository wants.

A repository and the path of its Fleet file come in, Desired goes out. The Fleet file must be
right (BadInput says what is not, all at once); a unit file that is wrong becomes findings,
and its units stay as they are. Called by reconcile at the start of a pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from stoker.cel import Cel
from stoker.errors import BadInput, Finding, SourceLocation, Stalled
from stoker.model.fleet import Blob, Bundle, Desired, ModelService, Unit
from stoker.model.health_file import HealthCheck
from stoker.model.ports import Repo
from stoker.model.refs import SourceRevision, UnitRef
from stoker.source.bundle import bundle_of, names_files, stands
from stoker.source.compile import Compiled, Patch, compile_draft
from stoker.source.dependencies import dependency_findings
from stoker.source.findings import did_you_mean
from stoker.source.fleet_file import FleetRead, Pattern, read_fleet
from stoker.source.health_files import (
    HEALTH_FILES,
    HealthFile,
    in_force,
    missing_runtime,
    read_health_file,
)
from stoker.source.include import FileIndex, left_out_finding, resolve_path
from stoker.source.memo import SourceMemo
from stoker.source.owners import owner_findings
from stoker.source.schema_bundle import BundleSpec
from stoker.source.trailers import allowed_deletes
from stoker.source.unit_file import UnitFile, read_unit_file, too_large

__all__ = ["source"]

_SUGGESTED = 3
_ACROSS = frozenset({"duplicate-unit", "unknown-dependency", "dependency-circle", "second-owner"})
"""Codes of faults that only show beside other units."""


def source(
    repo: Repo,
    fleet_path: str,
    memo: SourceMemo | None = None,
    *,
    revision: SourceRevision | str | None = None,
) -> Desired:
    """Read one revision of a fleet: the tracked ref as it is now, unless one is given.

    Raises what the repository raises (Unreachable, Retryable, Stalled) and BadInput when the
    Fleet file is missing or wrong. Units and findings are sorted; nothing is written.
    """
    memo = memo if memo is not None else SourceMemo()
    if isinstance(revision, str):
        revision = repo.resolve(revision)
    revision = revision or repo.fetch()
    path = resolve_path(fleet_path, "") or fleet_path
    key = (revision.ref, revision.commit, path)
    if (known := memo.last.to(equal=key)) is not None:
        return known
    index = FileIndex(repo.tree(revision.commit), repo.left_out(revision.commit))
    read, fleet_blob = _fleet(repo, index, path, revision, memo)
    desired = _desired(repo, index, read, fleet_blob, revision, memo)
    memo.last.keep(desired, equal=key)
    return desired


def _fleet(
    repo: Repo, index: FileIndex, path: str, revision: SourceRevision, memo: SourceMemo
) -> tuple[FleetRead, Blob]:
    blob = index.get(path)
    if blob is None:
        raise BadInput((_fleet_missing(index, path, revision),))
    key = (path, blob.oid, revision.ref)
    if memo.fleet is None or memo.fleet[0] != key:
        data, problem = _read_one(repo, blob)
        if problem is not None:
            raise BadInput((problem,))
        memo.fleet = (key, read_fleet(path, data, revision.ref))
    return memo.fleet[1], blob


def _fleet_missing(index: FileIndex, path: str, revision: SourceRevision) -> Finding:
    others = [each for each in index.paths() if each.rpartition("/")[2] == "fleet.yaml"]
    hint = did_you_mean(path, others)
    left_out = index.left_out_matching(path)
    if left_out:
        hint = f"it {left_out_finding(left_out[0]).message}"
    elif not hint and others:
        hint = f"there is {', '.join(others[:_SUGGESTED])}"
    message = f"no such file in commit {revision.short}; nothing is changed or deleted"
    return Finding(SourceLocation(path), "fleet-file-missing", message, hint=hint)


def _desired(
    repo: Repo,
    index: FileIndex,
    read: FleetRead,
    fleet_blob: Blob,
    revision: SourceRevision,
    memo: SourceMemo,
) -> Desired:
    blobs, findings = _included(read, index, fleet_blob.path)
    known = not findings
    templates, template_findings = _templates(read, index)
    findings += template_findings
    health, health_findings = _health(repo, index, memo)
    findings += health_findings
    files = _unit_files(repo, blobs, memo)
    compiled: list[Compiled] = []
    for blob, file in zip(blobs, files, strict=True):
        findings += file.findings
        known = known and file.known
        compiled += _compiled(blob, file, fleet_blob, read, memo)
    memo.keep_only({(blob.path, blob.oid) for blob in blobs}, (fleet_blob.path, fleet_blob.oid))
    findings += (finding for unit in compiled for finding in unit.findings)
    known = known and all(unit.ref is not None for unit in compiled)
    findings += _duplicates(compiled)
    findings += dependency_findings(compiled, known=known)
    findings += owner_findings(compiled)
    wrong = {finding.unit for finding in findings if finding.code in _ACROSS}
    paths = {blob.path for blob in blobs}
    units, bundle_findings = _units(compiled, index, paths, wrong, memo)
    findings += bundle_findings
    if known:
        findings += _unmatched(read.settings.patches, compiled)
    if not compiled and known:
        message = "the included files hold no unit; nothing is pruned"
        findings.append(Finding(read.fleet.location, "no-units", message, "spec.include"))
        known = False
    good = {unit.ref for unit in units}
    broken = {unit.ref for unit in compiled if unit.ref is not None and unit.ref not in good}
    return Desired(
        revision=revision,
        fleet=read.fleet,
        units=_with_templates(sorted(units, key=lambda unit: unit.ref), templates),
        findings=tuple(sorted(set(findings))),
        broken=tuple(sorted(broken)),
        unit_set_known=known,
        templates=templates,
        health=health,
        allow_delete=allowed_deletes(repo.message(revision.commit)),
    )


def _with_templates(units: list[Unit], templates: tuple[Blob, ...]) -> tuple[Unit, ...]:
    """Units whose digest covers the fleet's own templates too, where they may use them.

    What a commit changes in a template is a new revision of these units, for whoever waits
    for it or after it. Without templates of the fleet's own digests stay as they are.
    """
    if not templates:
        return tuple(units)
    text = "\n".join(f"{blob.path} {blob.oid}" for blob in templates)
    return tuple(
        replace(unit, digest=hashlib.sha256(f"{unit.digest}\n{text}".encode()).hexdigest())
        if isinstance(unit.spec, ModelService) or unit.spec.jinja
        else unit
        for unit in units
    )


def _included(
    read: FleetRead, index: FileIndex, fleet_path: str
) -> tuple[list[Blob], list[Finding]]:
    """Every unit file, sorted by path, each once; a finding for each pattern without any."""
    found: dict[str, Blob] = {}
    findings = []
    others = {fleet_path, *(blob.path for blob in index.matching(HEALTH_FILES))}
    for pattern in read.include:
        blobs = [blob for blob in index.matching(pattern.path) if blob.path not in others]
        found.update((blob.path, blob) for blob in blobs)
        left_out = index.left_out_matching(pattern.path)
        findings += [left_out_finding(each) for each in left_out]
        if not blobs and not left_out:
            findings.append(_no_match(pattern, index, "include-no-match"))
    return [found[path] for path in sorted(found)], findings


def _no_match(pattern: Pattern, index: FileIndex, code: str) -> Finding:
    hint = f"looked for {pattern.path} from the repository root"
    if index.under(pattern.path) and code == "include-no-match":
        hint = f"that is a folder; write {pattern.written.rstrip('/')}/*.yaml"
    message = f"{pattern.written!r} matches no file"
    return Finding(pattern.location, code, message, pattern.field, hint)


def _templates(read: FleetRead, index: FileIndex) -> tuple[tuple[Blob, ...], list[Finding]]:
    found: dict[str, Blob] = {}
    findings = []
    for pattern in read.templates:
        blobs = index.under(pattern.path)
        found.update((blob.path, blob) for blob in blobs)
        if not blobs:
            findings.append(_no_match(pattern, index, "templates-no-match"))
    return tuple(found.values()), findings


def _health(
    repo: Repo, index: FileIndex, memo: SourceMemo
) -> tuple[tuple[HealthCheck, ...], list[Finding]]:
    """What the fleet's health files say; none of their faults stops a unit."""
    cel = Cel()
    blobs = index.matching(HEALTH_FILES)
    left_out = [left_out_finding(each) for each in index.left_out_matching(HEALTH_FILES)]
    if not blobs:
        memo.health = {}
        return (), [*left_out, *missing_runtime(cel)]
    wanted = [blob for blob in blobs if (blob.path, blob.oid) not in memo.health]
    for blob, data, problem in _read_all(repo, wanted):
        read = HealthFile(findings=(problem,)) if problem is not None else None
        memo.health[blob.path, blob.oid] = read or read_health_file(blob.path, data, cel)
    files = [memo.health[blob.path, blob.oid] for blob in blobs]
    memo.health = {(b.path, b.oid): file for b, file in zip(blobs, files, strict=True)}
    checks, findings = in_force(files)
    findings += (finding for file in files for finding in file.findings)
    return checks, [*findings, *left_out, *missing_runtime(cel)]


def _unit_files(repo: Repo, blobs: Sequence[Blob], memo: SourceMemo) -> list[UnitFile]:
    """The parsed file of each blob; only those not remembered are read, in one request."""
    wanted = [blob for blob in blobs if (blob.path, blob.oid) not in memo.files]
    for blob, data, problem in _read_all(repo, wanted):
        if problem is not None:
            file = UnitFile(findings=(problem,), known=False)
        else:
            file = read_unit_file(blob.path, data)
        memo.files[blob.path, blob.oid] = file
        memo.parsed += 1
    return [memo.files[blob.path, blob.oid] for blob in blobs]


def _read_all(repo: Repo, blobs: Sequence[Blob]) -> list[tuple[Blob, bytes, Finding | None]]:
    try:
        contents = repo.read(tuple(blobs))
    except Stalled:
        return [(blob, *_read_one(repo, blob)) for blob in blobs]
    return [(blob, data, None) for blob, data in zip(blobs, contents, strict=True)]


def _read_one(repo: Repo, blob: Blob) -> tuple[bytes, Finding | None]:
    try:
        return repo.read((blob,))[0], None
    except Stalled as error:
        message = error.message.removeprefix(f"{blob.path} ")
        if error.code == "file-too-large":
            return b"", too_large(blob.path, message)
        return b"", Finding(SourceLocation(blob.path), error.code, message, hint=error.hint)


def _compiled(
    blob: Blob, file: UnitFile, fleet_blob: Blob, read: FleetRead, memo: SourceMemo
) -> tuple[Compiled, ...]:
    key = ((fleet_blob.path, fleet_blob.oid), (blob.path, blob.oid))
    found = memo.units.get(key)
    if found is None:
        found = tuple(compile_draft(draft, read.settings) for draft in file.drafts)
        memo.units[key] = found
    return found


def _duplicates(compiled: Sequence[Compiled]) -> list[Finding]:
    """A finding at every definition of a unit that has more than one."""
    by_ref: dict[UnitRef, list[Compiled]] = {}
    for unit in compiled:
        if unit.ref is not None:
            by_ref.setdefault(unit.ref, []).append(unit)
    findings = []
    for ref, units in by_ref.items():
        for unit in units if len(units) > 1 else ():
            others = ", ".join(str(each.location) for each in units if each is not unit)
            message = f"{ref} is defined again in {others}"
            findings.append(
                Finding(unit.location, "duplicate-unit", message, "metadata.name", unit=str(ref))
            )
    return findings


def _units(
    compiled: Sequence[Compiled],
    index: FileIndex,
    unit_files: set[str],
    wrong: set[str],
    memo: SourceMemo,
) -> tuple[list[Unit], list[Finding]]:
    """Every unit in order, with its files found; what a Bundle lacks comes as findings.

    A Bundle whose files are named one by one and stand as they did is the same object again.
    """
    units: list[Unit] = []
    findings: list[Finding] = []
    bundles: dict[UnitRef, tuple[Compiled, Unit]] = {}
    for each in compiled:
        if each.ref is None or each.spec is None or str(each.ref) in wrong:
            continue
        spec: ModelService | Bundle
        digest = each.digest
        if isinstance(each.spec, BundleSpec):
            known = memo.bundles.get(each.ref)
            if known is not None and known[0] is each and stands(known[1], index, unit_files):
                units.append(known[1])
                bundles[each.ref] = known
                continue
            spec, missing = bundle_of(each, each.spec, index, unit_files)
            if missing:
                findings += missing
                continue
            names = "".join(f"\n{b.oid} {b.path}" for b in (*spec.manifests, *spec.jinja))
            digest = hashlib.sha256((digest + names).encode()).hexdigest()
        else:
            spec = each.spec
        units.append(Unit(each.ref, spec, each.location, digest, each.lines, each.flow))
        if isinstance(each.spec, BundleSpec) and names_files(each.spec):
            bundles[each.ref] = (each, units[-1])
    memo.bundles = bundles
    return units, findings


def _unmatched(patches: Sequence[Patch], compiled: Sequence[Compiled]) -> list[Finding]:
    """A finding for each patch that no unit is meant by."""
    refs = [unit.ref for unit in compiled if unit.ref is not None]
    findings = []
    for index, patch in enumerate(patches):
        if any(patch.targets(ref) for ref in refs):
            continue
        target = f"{patch.kind} {patch.namespace + '/' if patch.namespace else ''}{patch.name}"
        names = [ref.name for ref in refs if ref.kind == patch.kind]
        field = f"spec.unitPatches[{index}].target"
        message = f"the fleet has no {target}"
        hint = did_you_mean(patch.name, names)
        findings.append(Finding(patch.location, "unit-patch-no-match", message, field, hint))
    return findings
