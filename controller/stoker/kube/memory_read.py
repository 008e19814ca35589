"""GET, LIST and WATCH of the in-memory API server.

In: Calls. Out: documents, and the lines of a watch. Lists are whole at one version however
many pages they come in. Used by the in-memory API server.
"""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from stoker.kube.memory_call import Call
from stoker.kube.memory_errors import StatusAnswer, bad_request, internal
from stoker.kube.memory_store import Store, Stored

__all__ = ["Lists", "Selector", "metadata_only", "partial_wanted", "selector_of"]

Json = dict[str, Any]
Selector = Callable[[Json], bool]

_PAGES_KEPT: Final = 64


def metadata_only(manifest: Json) -> Json:
    """A PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": manifest["metadata"],
    }


def partial_wanted(accept: str) -> bool:
    """Whether metadata only is asked for; 406 where nothing we can give is."""
    for offer in accept.split(",") if accept else ("application/json",):
        kind, *parameters = (part.strip() for part in offer.split(";"))
        wanted = dict(p.partition("=")[::2] for p in parameters)
        if kind not in {"application/json", "*/*", "application/*"}:
            continue
        view = wanted.get("as", "")
        if not view:
            return False
        known = view in {"PartialObjectMetadataList", "PartialObjectMetadata"}
        if known and wanted.get("g") == "meta.k8s.io" and wanted.get("v") == "v1":
            return True
    raise StatusAnswer(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml,"
        " application/vnd.kubernetes.protobuf",
    )


class Lists:
    """Lists of one store, with continue tokens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: OrderedDict[str, tuple[int, list[Stored]]] = OrderedDict()
        self._tokens = 0

    def forget_pages(self) -> None:
        """Let every continue token expire."""
        self._pages.clear()

    def page(self, call: Call, *, partial: bool) -> bytes:
        """The list document. 410 for an expired continue token."""
        _check_version(call, self._store.version)
        version, found = self._start(call)
        limit = int(call.query.get("limit") or 0)
        metadata: Json = {"resourceVersion": str(version)}
        if limit and len(found) > limit:
            found, rest = found[:limit], found[limit:]
            metadata["continue"] = self._keep(version, rest)
            metadata["remainingItemCount"] = len(rest)
        head: Json = {
            "kind": f"{call.resource.kind}List",
            "apiVersion": call.resource.api_version,
            "metadata": metadata,
        }
        if partial:
            head |= {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [
                json.dumps(metadata_only(s.manifest), separators=(",", ":")).encode() for s in found
            ]
        else:
            is_custom = call.resource.crd is not None
            items = [stored.text() if is_custom else stored.item() for stored in found]
        start = json.dumps(head, separators=(",", ":")).encode()[:-1]
        return b"%s,%s[%s]}" % (start, b'"items":', b",".join(items))

    def _start(self, call: Call) -> tuple[int, list[Stored]]:
        token = call.query.get("continue", "")
        if token:
            if token not in self._pages:
                return _expired_or_bad(token)
            return self._pages[token]
        matches = selector_of(call)
        found = [
            stored
            for _, stored in self._store.items(call.resource.key, call.namespace)
            if matches(stored.manifest)
        ]
        return self._store.version, found

    def _keep(self, version: int, rest: list[Stored]) -> str:
        self._tokens += 1
        raw = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": str(self._tokens)})
        token = base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")
        self._pages[token] = (version, rest)
        while len(self._pages) > _PAGES_KEPT:
            self._pages.popitem(last=False)
        return token


def _expired_or_bad(token: str) -> tuple[int, list[Stored]]:
    try:
        json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError as error:
        text = f"invalid continue token: continue key is not valid: {error}"
        raise bad_request(text) from error
    text = (
        "The provided continue parameter is too old to display a consistent list result. You can"
        " start a new list without the continue parameter."
    )
    raise StatusAnswer(410, "Expired", text)


def _check_version(call: Call, current: int) -> None:
    version = call.query.get("resourceVersion", "")
    if version and not version.isdigit():
        text = (
            f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing'
            f' "{version}": invalid syntax'
        )
        raise internal(text)
    if version and int(version) > current:
        text = f"Timeout: Too large resource version: {version}, current: {current}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        details = {"causes": causes, "retryAfterSeconds": 1}
        raise StatusAnswer(504, "Timeout", text, details, retry_after=1)


# ---------------------------------------------------------------------- selectors


def selector_of(call: Call) -> Selector:
    """What a list or watch asks for: both its label and its field selector."""
    labels = [_label_term(term) for term in _terms(call.query.get("labelSelector", ""))]
    fields = [_field_term(term, call) for term in _terms(call.query.get("fieldSelector", ""))]

    def matches(manifest: Json) -> bool:
        held = manifest["metadata"].get("labels") or {}
        return all(term(held) for term in labels) and all(term(manifest) for term in fields)

    return matches if labels or fields else lambda _: True


def _terms(text: str) -> list[str]:
    return [term.strip() for term in re.split(r",(?![^(]*\))", text) if term.strip()]


_SET_TERM: Final = re.compile(r"(\S+)\s+(in|notin)\s*\(([^)]*)\)")
_EQUAL_TERM: Final = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)")


def _label_term(term: str) -> Selector:
    sets = _SET_TERM.fullmatch(term)
    if sets:
        key, operator = sets[1], sets[2]
        values = {value.strip() for value in sets[3].split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    equal = _EQUAL_TERM.fullmatch(term)
    if equal:
        key, operator, value = equal[1], equal[2], equal[3]
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    name = term.lstrip("!").strip()
    if not re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_./]*", name):
        found = next((c for c in term if not (c.isalnum() or c in "-_./")), term)
        raise bad_request(f"unable to parse requirement: found '{found}', expected: identifier")
    if term.startswith("!"):
        return lambda labels: name not in labels
    return lambda labels: name in labels


_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "Secret": ("type",),
    "Namespace": ("status.phase",),
    "ReplicaSet": ("status.replicas",),
    "Job": ("status.successful",),
    "Node": ("spec.unschedulable",),
}


def _field_term(term: str, call: Call) -> Selector:
    equal = _EQUAL_TERM.fullmatch(term)
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get(call.resource.kind, ()))
    if equal is None or equal[1] not in known:
        path = equal[1] if equal else term
        listed = ", ".join(f'"{name}"' for name in known)
        raise bad_request(f'"{path}" is not a known field selector: only {listed}')
    path, operator, wanted = equal[1].split("."), equal[2], equal[3]

    def value_of(manifest: Json) -> str:
        value: Any = manifest
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return "" if value is None else str(value).lower() if value is True else str(value)

    if operator == "!=":
        return lambda manifest: value_of(manifest) != wanted
    return lambda manifest: value_of(manifest) == wanted
