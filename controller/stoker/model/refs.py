"""Names: of Kubernetes objects, of units, of source revisions."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ObjectRef", "SourceRevision", "UnitRef", "ref_from_manifest"]


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """One Kubernetes object. Two versions of a kind are the same object.

    `group` is empty for the core group, `namespace` for cluster-scoped objects.
    """

    group: str
    kind: str
    namespace: str
    name: str
    version: str = field(default="v1", compare=False)

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """`group/kind/namespace/name`: sortable, unique, free of the version."""
        return f"{self.group}/{self.kind}/{self.namespace}/{self.name}"

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


def ref_from_manifest(manifest: dict[str, object]) -> ObjectRef:
    """Name the object of a manifest that has apiVersion, kind and metadata.name."""
    api_version = str(manifest.get("apiVersion", ""))
    group, _, version = api_version.rpartition("/")
    metadata = manifest.get("metadata")
    meta: dict[str, object] = metadata if isinstance(metadata, dict) else {}
    return ObjectRef(
        group=group,
        kind=str(manifest.get("kind", "")),
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        version=version,
    )


@dataclass(frozen=True, slots=True, order=True)
class UnitRef:
    """One unit of the fleet: a ModelService, Bundle or ScalePolicy."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def short(self) -> str:
        """`namespace/name`, as tables print it."""
        return f"{self.namespace}/{self.name}"

    def is_called(self, name: str) -> bool:
        """Whether a person means it by `name`, `namespace/name` or `Kind/namespace/name`."""
        return name in {self.name, self.short, str(self)}

    @property
    def file_name(self) -> str:
        """The unit's file under `units/` on the status branch."""
        return f"{self.kind.lower()}.{self.namespace}.{self.name}.yaml"


@dataclass(frozen=True, slots=True)
class SourceRevision:
    """A commit and the ref that led to it, printed as Flux does: `main@sha1:<40 hex>`."""

    ref: str
    commit: str

    def __str__(self) -> str:
        return f"{self.ref}@sha1:{self.commit}"

    @property
    def short(self) -> str:
        """The first seven digits of the commit."""
        return self.commit[:7]
