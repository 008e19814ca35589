"""From units to jobs for the children: which files, which names, which data.

Called by shape for units that the memo does not know, and by render for what depends on
decided counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from stoker._version import __version__
from stoker.errors import BadInput, Finding, SourceLocation, Stalled
from stoker.model.fleet import Blob, Bundle, Desired, ModelService, Unit
from stoker.model.ports import Repo
from stoker.model.text_file import conflict_offset, is_lfs_pointer
from stoker.render.pool import Job
from stoker.render.service import NEUTRAL_DECISION, PLACEHOLDERS, service_data
from stoker.render.sources import TEMPLATE_NAME, Source, SourceSet, source_set
from stoker.render.template_files import TemplateIndex, template_index

__all__ = ["Workshop", "key_of"]

MAX_INPUT_BYTES = 32 * 2**20
"""Files of one unit together; the same limit as for what it renders to."""


def key_of(unit: Unit, desired: Desired, index: TemplateIndex) -> str:
    """Everything that settles what a unit renders to before decisions."""
    uses_templates = isinstance(unit.spec, ModelService) or bool(unit.spec.jinja)
    parts = [unit.digest, str(unit.location), desired.fleet.name, __version__]
    return "\n".join([*parts, index.key if uses_templates else ""])


@dataclass(slots=True)
class Workshop:
    """Files of one source revision, read when first asked for.

    `texts` holds the fleet's own templates by object id, across passes.
    """

    desired: Desired
    repo: Repo
    texts: dict[str, str]
    index: TemplateIndex = field(init=False)
    _shared: SourceSet | None = None
    _files: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = template_index(self.desired.fleet, self.desired.templates)

    def fetch(self, units: Iterable[Unit]) -> None:
        """Read the files of these Bundles in one request; failures are left to `job`."""
        blobs = {
            blob.oid: blob
            for unit in units
            if isinstance(unit.spec, Bundle)
            for blob in (*unit.spec.manifests, *unit.spec.jinja)
        }
        wanted = tuple(blobs[oid] for oid in sorted(blobs))
        if not wanted:
            return
        try:
            contents = self.repo.read(wanted)
        except Stalled:
            return
        self._files = dict(zip(sorted(blobs), contents, strict=True))

    def release(self) -> None:
        """Drop the files that `fetch` has read: their jobs are made."""
        self._files = {}

    def job(self, unit: Unit) -> Job:
        """The neutral job of a unit; raises BadInput with findings of this unit."""
        if isinstance(unit.spec, ModelService):
            return self.service_job(unit, unit.spec, self.service_mains(unit, unit.spec))
        return self._bundle_job(unit, unit.spec)

    def service_mains(self, unit: Unit, spec: ModelService) -> tuple[str, ...]:
        """The template files of a service; raises BadInput when there is no such template."""
        mains = self.index.mains(spec.template)
        if not mains:
            message = f"there is no template {spec.template!r} in this fleet or in Stoker"
            location = unit.line_of("spec.render.template")
            hint = "templates are folders of *.yaml.j2 files below Fleet spec.templates"
            raise BadInput((Finding(location, "template-not-found", message, hint=hint),))
        return mains

    def service_job(
        self,
        unit: Unit,
        spec: ModelService,
        mains: tuple[str, ...],
        decision: Mapping[str, Any] = NEUTRAL_DECISION,
    ) -> Job:
        """Render these template files of a service with that decision."""
        data = self._common(unit) | {
            "service": service_data(unit, spec),
            "decision": dict(decision),
            "placement": dict(PLACEHOLDERS),
            "revision": spec.model_revision,
        }
        return Job(unit.location.path, self._templates(), jinja=mains, data=data)

    def names_of(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Template names of files, by the path that errors show."""
        by_path = {source.path: name for name, source in self._templates().named.items()}
        return tuple(sorted(by_path[path] for path in paths))

    def _common(self, unit: Unit) -> dict[str, Any]:
        ref = unit.ref
        return {
            "fleet": {"name": self.desired.fleet.name},
            "unit": {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name},
        }

    def _templates(self) -> SourceSet:
        if self._shared is None:
            own = {blob.oid: blob for blob in self.index.own.values()}
            missing = tuple(own[oid] for oid in sorted(set(own) - set(self.texts)))
            for blob, raw in zip(missing, self.repo.read(missing) if missing else (), strict=True):
                self.texts[blob.oid] = _text(blob, raw)
            for oid in [oid for oid in self.texts if oid not in own]:
                del self.texts[oid]
            self._shared = source_set(self.index.named(self.texts))
        return self._shared

    def _bundle_job(self, unit: Unit, spec: Bundle) -> Job:
        blobs = (*spec.manifests, *spec.jinja)
        read = self._read(blobs)
        if sum(map(len, read)) > MAX_INPUT_BYTES:
            message = f"the files of this unit are larger than {MAX_INPUT_BYTES} bytes together"
            raise BadInput((Finding(unit.location, "render-too-large", message),))
        files = {
            blob.path: Source(blob.oid, blob.path, _text(blob, raw))
            for blob, raw in zip(blobs, read, strict=True)
        }
        path = unit.location.path
        if spec.manifests:
            return Job(path, source_set(files), yaml=tuple(blob.path for blob in spec.manifests))
        bad = [blob.path for blob in spec.jinja if TEMPLATE_NAME.fullmatch(blob.path) is None]
        if bad:
            message = "names of Jinja files may hold letters, digits and ._-/ only"
            raise BadInput(
                tuple(Finding(SourceLocation(name), "template-error", message) for name in bad)
            )
        mains = tuple(
            blob.path for blob in spec.jinja if not PurePosixPath(blob.path).name.startswith("_")
        )
        sources = source_set({**self._templates().named, **files})
        data = self._common(unit) | {"values": spec.values}
        return Job(path, sources, jinja=mains, data=data)

    def _read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        if all(blob.oid in self._files for blob in blobs):
            return tuple(self._files[blob.oid] for blob in blobs)
        return self.repo.read(blobs)


def _text(blob: Blob, raw: bytes) -> str:
    """The text of a manifest or template; raises BadInput where the file is none."""
    if is_lfs_pointer(raw):
        raise _unusable(blob, raw, 0, "lfs-pointer", "is a Git LFS pointer, not the file")
    conflict = conflict_offset(raw)
    if conflict is not None:
        raise _unusable(blob, raw, conflict, "conflict-marker", "an unresolved merge conflict")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = "the file is not UTF-8 text"
        raise _unusable(blob, raw, error.start, "invalid-encoding", message) from error


def _unusable(blob: Blob, raw: bytes, offset: int, code: str, message: str) -> BadInput:
    location = SourceLocation(blob.path, raw[:offset].count(b"\n") + 1, 1)
    return BadInput((Finding(location, code, message),))
