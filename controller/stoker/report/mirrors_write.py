"""Writes the mirrors of fleet and services to the API server: only what changed.

In: a report. Out: findings (a missing CRD, a right that is not given) and
whether some are left for the next pass. Unforced server-side apply under our own manager;
never an owner reference, never a finalizer. Called by reconcile after report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stoker.errors import Finding, Severity, SourceLocation, StokerError, Unreachable
from stoker.kube.errors import Conflict, Forbidden, KindNotFound, NotFound
from stoker.log import get_log
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.model.times import rfc3339
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.names import FLEET_ID, GROUP, VERSION, manager_of
from stoker.report.inputs import Report
from stoker.report.mirror import Mirror

__all__ = ["MirrorWriter", "MirrorsWritten"]

_log = get_log("mirrors")

KINDS = ("Fleet", "ModelService")
AT_ONCE = 100
"""Mirrors written in one pass; a first pass over a large fleet must not hold up notices."""
LOOK_EVERY_SECONDS = 600.0
"""How often the live mirrors are listed, so that one that somebody deleted comes back."""
LOOK_FOR_KINDS_SECONDS = 600.0
"""How often it is asked whether our kinds are served by now, where they were not, unless
`look_for_kinds` says so."""
NOT_IN_GIT = "NotInGit"


@dataclass(frozen=True, slots=True)
class MirrorsWritten:
    """What came of it. `pending` says that the next pass has more to write."""

    findings: tuple[Finding, ...] = ()
    written: int = 0
    pending: bool = False


@dataclass(slots=True)
class _Known:
    """One live mirror as last seen or written: digest, count, and UID for a deletion."""

    digest: str
    uid: str
    count: object = None

    def shows(self, mirror: Mirror) -> bool:
        """Whether it stands as made, a count that is Git's included (the digest cannot tell)."""
        known = self.digest.partition("-")[0] if mirror.provisional else self.digest
        if known != mirror.digest:
            return False
        wanted = mirror.manifest["spec"].get("replicas")
        return mirror.count_external or wanted is None or wanted == self.count


@dataclass(slots=True)
class _Turn:
    """How far one call has come. `closed` are kinds that just failed in a namespace."""

    checkpoint: Callable[[], None]
    findings: dict[str, Finding] = field(default_factory=dict)
    closed: set[tuple[str, str]] = field(default_factory=set)
    tried: int = 0
    written: int = 0
    pending: bool = False
    unreachable: bool = False


@dataclass(slots=True)
class MirrorWriter:
    """Remembers what stands; for the reconciler's thread."""

    cluster: Cluster
    clock: Clock
    fleet_id: str
    warnings: tuple[Finding, ...] = ()
    """What the last `write` could not do."""
    _known: dict[ObjectRef, _Known] = field(default_factory=dict, init=False)
    _foreign: dict[ObjectRef, str] = field(default_factory=dict, init=False)
    _looked_at: float | None = field(default=None, init=False)
    _missing: tuple[float, str, Finding] | None = field(default=None, init=False)
    """When to ask again for a kind that is not served, the kind, and what is said meanwhile."""

    def write(
        self, report: Report, *, checkpoint: Callable[[], None] = lambda: None
    ) -> MirrorsWritten:
        """Bring the mirrors up to date; ours that are no more go when the report is complete.

        Errors become findings (also in `warnings`, for the next report): mirrors are for
        show, and a pass never fails for them. `checkpoint` is called between requests.
        """
        turn = _Turn(checkpoint)
        if self._look(turn.findings):
            self._bring_up_to_date(report, turn)
        self.warnings = tuple(turn.findings.values())
        return MirrorsWritten(self.warnings, turn.written, turn.pending)

    def forget(self) -> None:
        """List the live mirrors again at the next write: another controller may have written."""
        self._looked_at = self._missing = None

    def look_for_kinds(self) -> None:
        """Ask at the next write: kinds have changed. Callable from any thread."""
        self._missing = None

    def _bring_up_to_date(self, report: Report, turn: _Turn) -> None:
        wanted: set[ObjectRef] = set()
        for mirror in report.mirrors:
            ref = _ref(mirror)
            wanted.add(ref)
            known = self._known.get(ref)
            if known is None and not mirror.count_known:
                continue
            if known is None or not known.shows(mirror):
                self._try(turn, ref, partial(self._write_one, mirror))
        if report.complete:
            for ref in sorted(set(self._known) - wanted):
                self._try(turn, ref, partial(self._delete, ref))
        for ref in sorted(set(self._foreign) - wanted):
            if self._foreign[ref] != NOT_IN_GIT:
                self._try(turn, ref, partial(self._say_not_in_git, ref))

    def _look(self, findings: dict[str, Finding]) -> bool:
        """List the live mirrors when it is time; False while nothing can be read or written."""
        now = self.clock.monotonic()
        if self._looked_at is not None and now < self._looked_at + LOOK_EVERY_SECONDS:
            return True
        if self._missing is not None and now < self._missing[0]:
            findings[self._missing[1]] = self._missing[2]
            return False
        self._missing = None
        known: dict[ObjectRef, _Known] = {}
        foreign: dict[ObjectRef, str] = {}
        for kind in KINDS:
            try:
                page = self.cluster.list(GROUP, kind, version=VERSION)
            except StokerError as error:
                findings[kind] = _finding(error, f"{kind} mirrors cannot be read")
                if isinstance(error, KindNotFound):
                    self._missing = (now + LOOK_FOR_KINDS_SECONDS, kind, findings[kind])
                return False
            for live in page.items:
                ref = ref_from_manifest({**live, "apiVersion": f"{GROUP}/{VERSION}", "kind": kind})
                metadata, status = mapping(live, "metadata"), mapping(live, "status")
                if mapping(metadata, "annotations").get(FLEET_ID) == self.fleet_id:
                    count = mapping(live, "spec").get("replicas")
                    mark = text(status, "observedDigest")
                    known[ref] = _Known(mark, text(metadata, "uid"), count)
                elif kind == "ModelService" and not mapping(metadata, "annotations").get(FLEET_ID):
                    told = [text(c, "reason") for c in items(status, "conditions")]
                    foreign[ref] = NOT_IN_GIT if NOT_IN_GIT in told else ""
        self._known, self._foreign, self._looked_at = known, foreign, now
        return True

    def _try(self, turn: _Turn, ref: ObjectRef, action: Callable[[], None]) -> None:
        """Do one thing unless this turn has done enough, or this kind just failed here.

        What fails is told once a kind and reason, and tried again in the next pass.
        """
        if turn.tried >= AT_ONCE:
            turn.pending = True
            return
        if (ref.kind, ref.namespace) in turn.closed or turn.unreachable:
            return
        turn.checkpoint()
        turn.tried += 1
        try:
            action()
        except NotFound:
            # The namespace is not there yet, or the mirror went away meanwhile.
            self._known.pop(ref, None)
            turn.closed.add((ref.kind, ref.namespace))
        except StokerError as error:
            finding = _finding(error, f"the mirror {ref} cannot be written")
            turn.findings.setdefault(f"{ref.kind} {finding.code}", finding)
            turn.unreachable = isinstance(error, Unreachable)
            if isinstance(error, Forbidden | KindNotFound):
                turn.closed.add((ref.kind, ref.namespace))
            if isinstance(error, KindNotFound):
                self._looked_at = None
            _log.debug("mirror.failed", ref=str(ref), code=error.code, message=error.message)
        else:
            turn.written += 1

    def _write_one(self, mirror: Mirror) -> None:
        ref = _ref(mirror)
        manager = manager_of(self.fleet_id)
        try:
            manifest = self._with_their_count(mirror) if mirror.count_external else mirror.manifest
            live = self.cluster.apply(manifest, manager=manager)
        except Conflict as error:
            if not error.is_field_conflict:
                raise
            live = self._take_back(mirror, manager)
        self.cluster.apply(mirror.status, manager=manager, subresource="status")
        count = mapping(live, "spec").get("replicas")
        self._known[ref] = _Known(mirror.digest, text(mapping(live, "metadata"), "uid"), count)
        self._foreign.pop(ref, None)

    def _with_their_count(self, mirror: Mirror) -> dict[str, Any]:
        """The manifest with the live count, or without one where we do not own it.

        An autoscaler that scaled to 0 owns nothing, so an unforced apply would silently
        bring the old count back [tried]; dropping a count that is ours alone removes it.
        """
        try:
            live = self.cluster.get(_ref(mirror))
        except NotFound:
            return mirror.manifest
        manifest = _pinned(mirror.manifest, live)
        count = mapping(live, "spec").get("replicas")
        if count is None:
            return manifest
        if not _owns_count(live, manager_of(self.fleet_id)):
            return _without_count(manifest)
        return {**manifest, "spec": {**manifest["spec"], "replicas": count}}

    def _take_back(self, mirror: Mirror, manager: str) -> dict[str, Any]:
        """Force what is Git's; a count that is somebody else's stays out of it."""
        live = self.cluster.get(_ref(mirror))
        manifest = _pinned(mirror.manifest, live)
        if mirror.count_external:
            manifest = _without_count(manifest)
        return self.cluster.apply(manifest, manager=manager, force=True)

    def _delete(self, ref: ObjectRef) -> None:
        self.cluster.delete(ref, uid=self._known[ref].uid)
        self._known.pop(ref, None)

    def _say_not_in_git(self, ref: ObjectRef) -> None:
        """Tell whoever applied a ModelService by hand that nothing will come of it."""
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": NOT_IN_GIT,
            "message": "no fleet of this cluster has it in Git; nothing is done for it",
            "lastTransitionTime": rfc3339(self.clock.now_ms()),
        }
        body = {
            "apiVersion": ref.api_version,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "status": {"conditions": [condition]},
        }
        self.cluster.apply(body, manager=manager_of(self.fleet_id), subresource="status")
        self._foreign[ref] = NOT_IN_GIT


def _ref(mirror: Mirror) -> ObjectRef:
    return ObjectRef(GROUP, mirror.kind, mirror.namespace, mirror.name, VERSION)


def _pinned(manifest: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """The manifest for exactly the live object as it was read."""
    read = mapping(live, "metadata")
    pin = {"uid": text(read, "uid"), "resourceVersion": text(read, "resourceVersion")}
    return {**manifest, "metadata": {**manifest["metadata"], **pin}}


def _owns_count(live: dict[str, Any], manager: str) -> bool:
    """Whether our apply owns spec.replicas."""
    return any(
        text(entry, "manager") == manager
        and text(entry, "operation") == "Apply"
        and not text(entry, "subresource")
        and "f:replicas" in mapping(mapping(entry, "fieldsV1"), "f:spec")
        for entry in items(mapping(live, "metadata"), "managedFields")
    )


def _without_count(manifest: dict[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in manifest["spec"].items() if key != "replicas"}
    return {**manifest, "spec": spec}


def _finding(error: StokerError, what: str) -> Finding:
    code, hint = "mirrors-not-written", ""
    if isinstance(error, KindNotFound):
        code, hint = "crd-missing", "stoker install prints the CRDs; apply them"
    elif isinstance(error, Forbidden):
        code, hint = "mirrors-forbidden", "stoker install prints the ClusterRole; apply it"
    return Finding(
        SourceLocation(),
        code,
        f"{what}: {error.message}",
        hint=hint,
        severity=Severity.WARNING,
    )
