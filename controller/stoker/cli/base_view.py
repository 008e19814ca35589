"""A rendered revision seen as if it stood in a cluster: the base that `diff --base` compares with.

Every object carries our managedFields entry, as the server would record it, so that the same
diff stage answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from stoker.model.live import LiveObject
from stoker.model.manifest import ManifestSet
from stoker.model.refs import ObjectRef
from stoker.objects.fieldset import fieldset_from_manifest
from stoker.objects.names import OWNER, manager_of, unit_of_mark
from stoker.objects.schema_table import schema_for

__all__ = ["BaseView"]


class BaseView:
    """LiveView of ManifestSets: everything is known, nothing else exists."""

    def __init__(self, sets: Iterable[ManifestSet], fleet_id: str) -> None:
        self._objects = {
            manifest.ref: _live(manifest.ref, manifest.body, fleet_id)
            for found in sets
            for manifest in found.manifests
        }

    def get(self, ref: ObjectRef) -> LiveObject | None:
        """The object of the base."""
        return self._objects.get(ref)

    def known(self, ref: ObjectRef) -> bool:
        """Always: the base is a whole."""
        return ref is not None

    def owned(self, fleet_id: str) -> tuple[LiveObject, ...]:
        """Everything, sorted."""
        return tuple(
            item
            for ref, item in sorted(self._objects.items())
            if unit_of_mark(item.owner, fleet_id, ref) is not None
        )

    def why_unknown(self, ref: ObjectRef) -> str:
        """Nothing is unknown."""
        return "" if ref.kind else "no kind"

    def has_kind(self, ref: ObjectRef) -> bool | None:
        """Every kind is taken to be served."""
        return bool(ref.kind)

    def is_namespaced(self, ref: ObjectRef) -> bool:
        """As the manifest says."""
        return bool(ref.namespace)

    def scaler(self, ref: ObjectRef) -> str | None:
        """Nobody else owns a count in a base."""
        return "" if ref.kind else None

    def namespace_phase(self, name: str) -> str:
        """Every namespace is taken to be there."""
        return "Active" if name else ""


def _live(ref: ObjectRef, body: dict[str, object], fleet_id: str) -> LiveObject:
    fields = fieldset_from_manifest(body, schema_for(ref.group, ref.kind, ref.version))
    metadata = dict(body["metadata"])  # type: ignore[call-overload]
    uid = hashlib.sha256(ref.key.encode()).hexdigest()[:32]
    metadata |= {
        "uid": uid,
        "resourceVersion": "1",
        "managedFields": [
            {
                "manager": manager_of(fleet_id),
                "operation": "Apply",
                "apiVersion": ref.api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields.to_v1(),
            }
        ],
    }
    owner = str((metadata.get("annotations") or {}).get(OWNER, ""))
    return LiveObject(ref, uid, "1", owner, {**body, "metadata": metadata})
