"""An API server in memory: the second Transport, for unit stories, demo and simulation.

In: Requests, as kube.client makes them. Out: the answers of a Kubernetes 1.37 API server, as
far as the contract suite (tests/contract) proves it request by request. One lock, no threads,
no files; time comes from the Clock it is given.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from stoker.errors import Unreachable
from stoker.kube.answers import StreamRefused
from stoker.kube.memory_call import Call, checked_call
from stoker.kube.memory_commit import Commits, Written
from stoker.kube.memory_delete import Deletes
from stoker.kube.memory_discovery import CRDS, Served, establish
from stoker.kube.memory_errors import StatusAnswer, not_found
from stoker.kube.memory_kinds import Resource
from stoker.kube.memory_pods import Pods
from stoker.kube.memory_read import Lists, metadata_only, partial_wanted, selector_of
from stoker.kube.memory_scale import Scales
from stoker.kube.memory_store import Store
from stoker.kube.memory_watch import Watches
from stoker.kube.memory_write import Writes
from stoker.kube.transport import Request, Response
from stoker.model.ports import Clock

__all__ = ["AuditEntry", "MemoryServer"]

Json = dict[str, Any]

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_JSON: Final = (("content-type", "application/json"),)
_TEXT: Final = (("content-type", "text/plain; charset=utf-8"),)


class AuditEntry(NamedTuple):
    """One request that reached the server."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    user_agent: str
    status: int


class _PlainAnswer(Exception):  # noqa: N818 - an answer, not an error
    """An answer without a Status body."""


class MemoryServer:
    """Implements kube.transport.Transport. Safe to use from many threads.

    `before(request)` and `after(request, response)` are called outside the lock when set;
    what they raise (Unreachable, say) is what the caller sees: from `before` the request
    never arrived, from `after` it was carried out and the answer lost. `audit` lists what
    arrived. `seed` makes UIDs and generated names differ between servers.
    """

    def __init__(self, clock: Clock, *, url: str = "memory://cluster", seed: str = "") -> None:
        self.url = url
        self.audit: list[AuditEntry] = []
        self.before: Callable[[Request], None] | None = None
        self.after: Callable[[Request, Response], None] | None = None
        self._clock = clock
        self._lock = threading.RLock()
        self._closed = False
        self._store = Store(self._lock)
        self._commits = Commits(self._store, clock, seed)
        self._writes = Writes(self._commits)
        self._deletes = Deletes(self._store, clock)
        self._lists = Lists(self._store)
        self._scales = Scales(self._store, self._commits)
        self._pods = Pods(self._store, self._commits, self._deletes)
        self._served = Served(self._store)
        self._watches = Watches(self._store, clock, self._lock)
        with self._lock:
            for name in _NAMESPACES:
                self._create_namespace(name)

    # --------------------------------------------------------------- transport

    def send(self, request: Request) -> Response:
        """Answer one request."""
        self._refuse_when_closed()
        if self.before is not None:
            self.before(request)
        with self._lock:
            response = self._answer(request)
            self._record(request, response.status)
        if self.after is not None:
            self.after(request, response)
        return response

    def stream(self, request: Request) -> Iterator[bytes]:
        """Lines of a watch; StreamRefused where it is refused."""
        self._refuse_when_closed()
        if self.before is not None:
            self.before(request)
        with self._lock:
            try:
                call = self._call(request)
                lines, version = self._watches.start(call)
            except (StatusAnswer, _PlainAnswer) as answer:
                response = _refusal(answer)
                self._record(request, response.status)
                raise StreamRefused(response) from answer
            self._record(request, 200)
        return self._watches.lines(call, lines, version)

    def close(self) -> None:
        """End running watches; later requests are Unreachable."""
        with self._lock:
            self._closed = True
            self._watches.close()

    def compact(self) -> None:
        """Forget history: watches and pages from older versions get 410."""
        with self._lock:
            self._store.compact()
            self._lists.forget_pages()

    @property
    def resource_version(self) -> int:
        """The version of the newest write."""
        return self._store.version

    def version_of(self, group: str, kind: str) -> int:
        """The version of the last write to any object of a kind, for who would list it again.

        0 before the first write, -1 while the kind is not served.
        """
        key = self._served.key_of(group, kind)
        return self._store.version_of(key) if key else -1

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unreachable("the in-memory API server is closed", code="api-server-unreachable")

    def _record(self, request: Request, status: int) -> None:
        entry = AuditEntry(request.method, request.path, request.query, request.user_agent, status)
        self.audit.append(entry)

    # ------------------------------------------------------------------ routing

    def _answer(self, request: Request) -> Response:
        try:
            return self._routed(request)
        except (StatusAnswer, _PlainAnswer) as answer:
            return _refusal(answer)

    def _routed(self, request: Request) -> Response:
        if request.path in {"/readyz", "/livez", "/healthz"}:
            return Response(200, b"ok", _TEXT)
        document = None
        if request.method == "GET":
            document = self._served.document(request.path, request.accept)
        if document is not None:
            return _json(200, document)
        call = self._call(request)
        if call.subresource and call.subresource not in call.resource.subresources:
            raise _unknown_resource()
        if request.method == "GET":
            return self._read(call)
        return self._write(call)

    def _call(self, request: Request) -> Call:
        resource, namespace, name, subresource = self._located(request.path)
        return checked_call(request, resource, namespace, name, subresource)

    def _located(self, path: str) -> tuple[Resource, str, str, str]:
        """Resource, namespace, name and subresource of a path; 404 as the server says it."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise _PlainAnswer
        namespace = ""
        own = len(rest) < 3 or (len(rest) == 3 and rest[2] in {"status", "finalize"})
        if rest[0] == "namespaces" and len(rest) > 1 and not (own and not group):
            namespace, rest = rest[1], rest[2:]
        resource = self._served.find(group, version, rest[0]) if rest else None
        wrong_scope = resource is not None and bool(namespace) != resource.namespaced
        if resource is None or len(rest) > 3 or (wrong_scope and (namespace or len(rest) > 1)):
            if self._served.is_built_in(group):
                raise _unknown_resource()
            raise _PlainAnswer
        rest = [*rest, "", ""]
        return resource, namespace, rest[1], rest[2]

    # ------------------------------------------------------------------ reading

    def _read(self, call: Call) -> Response:
        partial = partial_wanted(call.request.accept)
        if not call.name:
            return Response(200, self._lists.page(call, partial=partial), _JSON)
        if call.subresource == "scale":
            return _json(200, self._scales.get(call))
        if call.subresource in {"binding", "eviction"}:
            raise _not_allowed()
        stored = self._store.get(call.resource.key, call.namespace, call.name)
        if stored is None:
            raise not_found(call.resource, call.name)
        if partial:
            return _json(200, metadata_only(stored.manifest))
        return Response(200, stored.text(), _JSON)

    # ------------------------------------------------------------------ writing

    def _write(self, call: Call) -> Response:
        method, named = call.request.method, bool(call.name)
        match method, call.subresource:
            case "POST", "binding":
                return _json(201, self._pods.bind(call))
            case "POST", "eviction":
                return _json(201, self._pods.evict(call))
            case "PUT", "finalize":
                return _json(200, self._deletes.finalize(call))
            case "PUT" | "PATCH", "scale":
                return _json(200, self._scales.write(call))
            case "POST", "" if not named and (call.namespace or not call.resource.namespaced):
                return self._written(call, self._writes.create(call))
            case "PUT", "" | "status" if named:
                return self._written(call, self._writes.replace(call))
            case "PATCH", "" | "status" if named:
                return self._written(call, self._writes.patch(call))
            case "DELETE", "" if named:
                return self._deleted(call)
            case "DELETE", "":
                return self._deleted_all(call)
            case _:
                raise _not_allowed()

    def _written(self, call: Call, written: Written) -> Response:
        if call.resource.key == CRDS and not call.dry_run:
            name = written.manifest["metadata"]["name"]
            establish(self._commits, name)
            self._served.refresh()
        return _json(201 if written.created else 200, written.manifest)

    def _deleted(self, call: Call) -> Response:
        held = self._store.get(call.resource.key, call.namespace, call.name)
        body = self._deletes.delete(call)
        left = self._store.get(call.resource.key, call.namespace, call.name)
        if call.resource.key == CRDS and held is not None and left is None:
            self._store.forget_kind(self._served.keys_of(held.manifest))
            self._served.refresh()
        return _json(200, body)

    def _deleted_all(self, call: Call) -> Response:
        answer = self._lists.page(call, partial=False)
        matches = selector_of(call)
        for (namespace, name), stored in self._store.items(call.resource.key, call.namespace):
            if matches(stored.manifest):
                one = checked_call(call.request, call.resource, namespace, name, "")
                self._deletes.delete(one)
        return Response(200, answer, _JSON)

    def _create_namespace(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        request = Request(
            "POST",
            "/api/v1/namespaces",
            body=json.dumps(body).encode(),
            content_type="application/json",
            user_agent="kube-apiserver",
        )
        self._answer(request)


def _unknown_resource() -> StatusAnswer:
    text = "the server could not find the requested resource"
    return StatusAnswer(404, "NotFound", text, {})


def _not_allowed() -> StatusAnswer:
    text = "the server does not allow this method on the requested resource"
    return StatusAnswer(405, "MethodNotAllowed", text, {})


def _refusal(answer: StatusAnswer | _PlainAnswer) -> Response:
    if isinstance(answer, _PlainAnswer):
        return Response(404, b"404 page not found\n", _TEXT)
    response = _json(answer.code, answer.body())
    if answer.retry_after:
        after = ("retry-after", str(answer.retry_after))
        return Response(response.status, response.body, (*_JSON, after))
    return response


def _json(status: int, body: Json) -> Response:
    return Response(status, json.dumps(body, separators=(",", ":")).encode(), _JSON)
