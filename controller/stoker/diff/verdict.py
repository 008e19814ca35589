"""Judges one rendered object against its live one: Synced without a request where it can be.

A manifest, its live object and the facts come in; a `Change` goes out. An object is in sync
when every field we would send equals live and our managedFields entry equals the set of
those fields; what that cannot settle goes to a dry run. Called by diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.diff.adoption import Adoption, adopting, with_memory
from stoker.diff.audit import Audit
from stoker.diff.counts import arbitrate, count_owner
from stoker.diff.dryrun import DryRun, refusal_of, verified
from stoker.diff.frozen import freeze
from stoker.diff.recreate import recreated
from stoker.diff.takeover import taking_over
from stoker.errors import StokerError
from stoker.model.change import Action, Change, FieldChange, Impact
from stoker.model.fleet import Unit
from stoker.model.live import LiveObject
from stoker.model.manifest import Manifest
from stoker.objects.canonical import with_plain_data
from stoker.objects.compare import (
    Comparison,
    Difference,
    compare,
    dotted,
    field_changes,
    keys_of,
    live_has_more,
    removals,
    value_at,
)
from stoker.objects.conflicts import rivals_of, settle
from stoker.objects.consent import consents_in_git, consents_on_live
from stoker.objects.fieldset import FieldSet, fieldset_from_manifest
from stoker.objects.ignored import ignored_paths, leave_alone
from stoker.objects.impact import impact_of
from stoker.objects.owned import apply_entries, our_fields, schema_of
from stoker.objects.schema_table import ListSchema
from stoker.objects.ssa_merge import same_value

__all__ = ["audited", "judge", "payload_of"]


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One object under judgement: what would be sent, and what was taken out of it."""

    live: LiveObject
    schema: ListSchema
    dry_run: DryRun
    payload: dict[str, Any]
    found: Comparison
    taken: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    held_back: tuple[str, ...] = ()
    before: FieldSet = field(default_factory=FieldSet)
    after: FieldSet = field(default_factory=FieldSet)


def payload_of(manifest: Manifest) -> dict[str, Any]:
    """What is sent to create the object."""
    return with_plain_data(manifest.body)


def judge(
    manifest: Manifest,
    live: LiveObject,
    unit: Unit | None,
    scaler: str | None,
    dry_run: DryRun,
    *,
    verify: bool = False,
    adoption: Adoption = Adoption.NO,
    ignored: tuple[str, ...] = (),
) -> Change:
    """Judge an object that stands. `scaler` as in `counts.count_owner`.

    `ignored` are JSON pointers to fields that the fleet leaves to whoever writes them.
    With `verify` a change is dry-run as well, so that a refusal is known before it is sent.
    """
    payload = payload_of(manifest)
    owner = count_owner(payload, unit, scaler)
    facts = (live.uid, live.content_version, owner, verify, adoption, ignored)
    key = (manifest.digest, manifest.frozen_template, *facts)
    known = dry_run.memo.verdict(manifest.ref, key, manifest) if live.resource_version else None
    sent_before = dry_run.sends and dry_run.memo.must_ask(manifest)
    if known is not None and not sent_before:
        if known.live_resource_version != live.resource_version:
            known = replace(known, live_resource_version=live.resource_version)
        return known
    if not _is_whole(live, payload):
        try:
            body = dry_run.cluster.get(manifest.ref)
        except StokerError as error:
            return replace(refusal_of(manifest.ref, error), manifest=manifest)
        live = live.with_body(body)
    if adoption is Adoption.NO and consents_on_live(live.body, dry_run.manager).adopted:
        adoption = Adoption.BEFORE
    if adoption is not Adoption.NO:
        payload = with_memory(payload)
    case = _case(manifest, payload, live, owner, dry_run, ignored)
    ask = sent_before and _is_ours(case)
    change = adopting(_judge(manifest, case, ask=ask), live, dry_run.manager, adoption)
    recreate = consents_in_git(manifest.body).recreate
    if change.action is Action.CHANGE and (verify or recreate or _is_fixed(change)):
        change = verified(change, live, dry_run, force=bool(case.taken))
    if recreate:
        change = recreated(change, payload_of(manifest), live, dry_run)
    change = taking_over(change, case.payload, live, dry_run.manager)
    if change.action is not Action.WAIT and (
        change.action is not Action.ERROR or change.impact is Impact.RECREATE
    ):
        dry_run.memo.keep(manifest.ref, key, change, asked=sent_before)
    return change


def audited(
    change: Change,
    manifest: Manifest,
    live: LiveObject,
    unit: Unit | None,
    scaler: str | None,
    dry_run: DryRun,
    audit: Audit,
    *,
    ignored: tuple[str, ...] = (),
) -> Change:
    """An object that facts call Synced, after the API server was asked about it all the same.

    What the server would change is what is sent; while it does not say, facts stand.
    """
    payload = payload_of(manifest)
    if change.adopted:
        payload = with_memory(payload)
    if not _is_whole(live, payload):
        return change
    owner = count_owner(payload, unit, scaler)
    case = _case(manifest, payload, live, owner, dry_run, ignored)
    settled = dry_run.settle(case.payload, live, again=True)
    if settled.refusal is not None:
        audit.refuse(change.ref, settled.refusal.code)
        return change
    if settled.unchanged:
        audit.agree()
        return change
    found = _write(change, case, settled.differences)
    audit.disagree(change.ref, tuple(item.path for item in found.fields))
    return found


def _is_fixed(change: Change) -> bool:
    """Whether the server will refuse it, as far as we know its fixed fields."""
    return change.impact is Impact.RECREATE


def _is_whole(live: LiveObject, payload: dict[str, Any]) -> bool:
    """Whether the cached body can be compared: in the version we send, with its entries.

    Caches keep only the metadata of objects that bear no mark of ours any more.
    """
    entries = live.body.get("metadata", {}).get("managedFields")
    return bool(entries) and live.body.get("apiVersion") == payload.get("apiVersion")


def _case(
    manifest: Manifest,
    payload: dict[str, Any],
    live: LiveObject,
    owner: str,
    dry_run: DryRun,
    ignored: tuple[str, ...],
) -> _Case:
    """Freeze the template, arbitrate the count, leave what is ignored, foresee the conflicts."""
    schema = schema_of(payload)
    manager = dry_run.manager
    frozen = freeze(manifest, payload, live, manager, schema)
    counted = arbitrate(frozen.payload, live, owner, manager, schema)
    alone = {path for path, _ in counted.left}
    wanted = counted.payload
    others: set[tuple[str, str]] = set()
    if paths := ignored_paths(ignored, wanted, live.body, schema):
        others = set(_ignored(paths, wanted, live, schema))
        quiet = leave_alone(wanted, live.body, manager, schema, paths)
        wanted = (
            quiet
            if _is_quiet(quiet, live, manager, schema)
            else leave_alone(wanted, live.body, manager, schema, paths, give_up=True)
        )
    found = compare(wanted, live.body, schema)
    settlement = settle(wanted, live.body, manager, schema, left_alone=alone, written=found.written)
    if settlement.left:
        found = compare(settlement.payload, live.body, schema)
    others |= {(path, f"{name} owns it") for path, name in settlement.left if path not in alone}
    return _Case(
        live=live,
        schema=schema,
        dry_run=dry_run,
        payload=settlement.payload,
        found=found,
        taken=settlement.taken,
        left=tuple(sorted({*counted.left, *others})),
        held_back=frozen.held_back,
        before=our_fields(live.body, manager),
        after=fieldset_from_manifest(settlement.payload, schema),
    )


def _is_quiet(payload: dict[str, Any], live: LiveObject, manager: str, schema: ListSchema) -> bool:
    """Whether sending the payload would change neither a value nor an owner."""
    same_fields = our_fields(live.body, manager) == fieldset_from_manifest(payload, schema)
    return same_fields and not compare(payload, live.body, schema)


def _ignored(
    paths: tuple[tuple[str, ...], ...], wanted: dict[str, Any], live: LiveObject, schema: ListSchema
) -> Iterator[tuple[str, str]]:
    """Fields that differ and are ignored: told, for they are neither drift nor forgotten."""
    for path in paths:
        git, standing = (value_at(body, path, schema.root) for body in (wanted, live.body))
        if git is not None and not same_value(git, standing):
            yield dotted(path), "ignored by the fleet's rules"


def _is_ours(case: _Case) -> bool:
    """Whether every difference stands in a field that, by its entry, we wrote last."""
    return all(
        _without_index(d.elements) in case.before or d.elements in case.before
        for d in case.found.differences
    )


def _without_index(elements: tuple[str, ...]) -> tuple[str, ...]:
    return elements[:-1] if elements[-1].startswith("i:") else elements


def _judge(manifest: Manifest, case: _Case, *, ask: bool) -> Change:
    found = case.found
    change = Change(
        ref=manifest.ref,
        action=Action.UNCHANGED,
        manifest=manifest,
        live_uid=case.live.uid,
        live_resource_version=case.live.resource_version,
        left_to_others=case.left,
        held_back=case.held_back,
    )
    added = bool(found) and _is_ours(case) and all(live_has_more(d) for d in found.differences)
    if found and not added and not ask:
        return _write(change, case, found.differences)
    if not found and found.settled and _same_version(case):
        if case.before == case.after:
            return change
        if case.schema.exact:
            return _write(change, case, ())
    return _settled(change, case, added=added)


def _settled(change: Change, case: _Case, *, added: bool) -> Change:
    """Let the API server say whether anything would change."""
    settled = case.dry_run.settle(case.payload, case.live)
    refused = settled.refusal
    if settled.unchanged:
        return change
    if refused is None:
        return _write(change, case, settled.differences or case.found.differences)
    refuses = refused.action is Action.ERROR
    if added and refuses and case.dry_run.is_as_made(case.payload, case.live):
        return change
    return replace(change, action=refused.action, code=refused.code, note=refused.note)


def _same_version(case: _Case) -> bool:
    """Whether our entry speaks the version we send: its paths mean something else in another."""
    entries = apply_entries(case.live.body, case.dry_run.manager)
    return all(entry.get("apiVersion") == case.payload.get("apiVersion") for entry in entries)


def _write(change: Change, case: _Case, differences: tuple[Difference, ...]) -> Change:
    """A write is due: say which fields it changes, or else which it takes or gives up."""
    rivals = [rival.fields for rival in rivals_of(case.live.body, case.dry_run.manager)]
    lost = case.before.difference(case.after)
    gone = removals(lost, rivals, case.live.body, case.schema) if case.schema.exact else ()
    differences = (*differences, *gone)
    impact = impact_of(
        change.ref.group,
        change.ref.kind,
        (keys_of(difference.elements) for difference in differences),
        frozen_data=case.live.body.get("immutable") is True,
    )
    return replace(
        change,
        action=Action.CHANGE,
        payload=case.payload,
        fields=field_changes(change.ref.kind, differences) or _ownership(case),
        impact=impact,
        note="; ".join(f"takes {path} back from {owner}" for path, owner in case.taken),
    )


def _ownership(case: _Case) -> tuple[FieldChange, ...]:
    """No value changes, only who answers for it: something must be printed all the same."""
    manager = case.dry_run.manager
    gained = [
        FieldChange(f"metadata.managedFields: {dotted(path)}", None, manager)
        for path in case.after.difference(case.before).elements()
    ]
    lost = [
        FieldChange(f"metadata.managedFields: {dotted(path)}", manager, None)
        for path in case.before.difference(case.after).elements()
    ]
    fields = tuple(sorted((*gained, *lost), key=lambda change: change.path))
    return fields or (FieldChange("metadata.managedFields", "as it was", manager),)
