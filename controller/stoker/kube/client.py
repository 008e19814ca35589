"""The Cluster port over a Transport: paths, bodies, paging, errors of the tree.

In: manifests and references. Out: manifests, or an error from kube.errors. Every stage that
talks to an API server does it through this client; the transport decides whether that is a
real server or the in-memory one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from stoker.kube.answers import StreamRefused, error_of, event_from_line, parsed_answer
from stoker.kube.discovery import Discovery
from stoker.kube.errors import Hide
from stoker.kube.requests import (
    ACCEPT_JSON,
    ACCEPT_METADATA,
    CONTENT_TYPES,
    collection_path,
    object_path,
)
from stoker.kube.transport import Request, Transport
from stoker.model.ports import ApiResource, ListPage, PatchType, ServerInfo, WatchEvent
from stoker.model.refs import ObjectRef, ref_from_manifest

__all__ = ["PAGE_SIZE", "Client", "StreamRefused"]

PAGE_SIZE: Final = 500
"""Objects a list request asks for at a time; pages are joined."""


class Client:
    """One API server. Thread-safe when its transport is."""

    def __init__(
        self, transport: Transport, *, user_agent: str = "stoker", warnings: tuple[str, ...] = ()
    ) -> None:
        self.warnings = warnings
        """Sentences for a person on what makes the connection less than safe."""
        self._transport = transport
        self._user_agent = user_agent
        self._discovery = Discovery(self._get_document)
        self._server: ServerInfo | None = None
        self._hide: Hide = str

    # ------------------------------------------------------------------ server

    def server(self) -> ServerInfo:
        """Version and cluster UID, read once."""
        if self._server is None:
            version = self._get_document("/version", "version of the API server")
            namespace = self._get_document(
                "/api/v1/namespaces/kube-system", "Namespace kube-system"
            )
            self._server = ServerInfo(
                version=str(version.get("gitVersion", "")),
                cluster_uid=str(namespace["metadata"]["uid"]),
                url=self._transport.url,
            )
        return self._server

    def resource(self, group: str, kind: str, version: str = "") -> ApiResource:
        """The served resource of a kind; raises KindNotFound. Discovery is cached."""
        return self._discovery.resource(group, kind, version)

    def forget_discovery(self) -> None:
        """Read discovery again at the next `resource`."""
        self._discovery.forget()

    def learn(self, other: Client) -> None:
        """Know the kinds that another client of the same server discovers, for both."""
        self._discovery.learn(other._discovery)

    def hide_in_errors(self, hide: Hide) -> None:
        """Send every text of a refusal through `hide` from now on."""
        self._hide = hide

    def close(self) -> None:
        """Close the transport's connections."""
        self._transport.close()

    # ----------------------------------------------------------------- reading

    def get(self, ref: ObjectRef, *, subresource: str = "") -> dict[str, Any]:
        """Read one object."""
        return self._send("GET", ref, f"get {ref}", subresource=subresource)

    def list(
        self,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        each: Callable[[dict[str, Any]], None] | None = None,
    ) -> ListPage:
        """Read all objects of a kind, each with apiVersion and kind; every page, or an error.

        With `each` it gets them page by page and none is kept.
        """
        served = self.resource(group, kind, version)
        path = collection_path(served, namespace)
        what = f"list {kind}" + (f" in {namespace}" if namespace else "")
        selectors = (("labelSelector", label_selector), ("fieldSelector", field_selector))
        base = tuple(pair for pair in selectors if pair[1])
        api_version = f"{served.group}/{served.version}" if served.group else served.version
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            more = (("continue", token),) if token else ()
            request = self._request(
                "GET",
                path,
                (*base, ("limit", str(PAGE_SIZE)), *more),
                accept=ACCEPT_METADATA if metadata_only else ACCEPT_JSON,
            )
            page = self._answer(request, what)
            for item in page.get("items") or ():
                known = {} if metadata_only else {"apiVersion": api_version, "kind": served.kind}
                (each or items.append)({**known, **item})
            metadata = page.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                break
        return ListPage(str(metadata.get("resourceVersion", "")), tuple(items))

    def log(self, pod: ObjectRef, container: str, *, limit_bytes: int) -> str:
        """What a container's present run has printed so far, each line with its instant."""
        served = self.resource("", "Pod")
        query = (
            ("container", container),
            ("timestamps", "true"),
            ("limitBytes", str(limit_bytes)),
        )
        request = self._request("GET", object_path(served, pod, "log"), query, accept="*/*")
        response = self._transport.send(request)
        if response.status != 200:
            raise error_of(response, f"read the log of {pod}", self._hide)
        return response.body.decode("utf-8", "replace")

    def watch(
        self,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        version: str = "",
        resource_version: str,
        timeout_seconds: int = 300,
        label_selector: str = "",
    ) -> Iterator[WatchEvent]:
        """Events after that version until the server ends the stream; Gone on a 410."""
        served = self.resource(group, kind, version)
        query = [
            ("watch", "true"),
            ("resourceVersion", resource_version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(timeout_seconds)),
        ]
        if label_selector:
            query.append(("labelSelector", label_selector))
        request = self._request(
            "GET",
            collection_path(served, namespace),
            tuple(query),
            timeout_seconds=float(timeout_seconds),
        )
        return self._events(request, f"watch {kind}")

    def _events(self, request: Request, what: str) -> Iterator[WatchEvent]:
        try:
            for line in self._transport.stream(request):
                if line.strip():
                    yield WatchEvent(*event_from_line(line, what, self._hide))
        except StreamRefused as refused:
            raise error_of(refused.response, what, self._hide) from refused

    # ----------------------------------------------------------------- writing

    def apply(
        self,
        manifest: dict[str, Any],
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> dict[str, Any]:
        """Server-side apply; gives the object as stored (or as it would be).

        `force` is always sent, also when false: audit logs count applies by it.
        """
        ref = ref_from_manifest(manifest)
        query = (("fieldManager", manager), ("force", "true" if force else "false"))
        return self._send(
            "PATCH",
            ref,
            f"apply {ref}",
            subresource=subresource,
            query=query,
            dry_run=dry_run,
            body=manifest,
            content_type=CONTENT_TYPES["apply"],
        )

    def patch(
        self,
        ref: ObjectRef,
        kind: PatchType,
        body: Any,
        *,
        manager: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Merge, strategic-merge or JSON patch."""
        return self._send(
            "PATCH",
            ref,
            f"patch {ref}",
            subresource=subresource,
            query=(("fieldManager", manager),),
            dry_run=dry_run,
            body=body,
            content_type=CONTENT_TYPES[kind],
        )

    def create(
        self, manifest: dict[str, Any], *, manager: str, dry_run: bool = False
    ) -> dict[str, Any]:
        """POST; AlreadyExists when the name is taken."""
        ref = ref_from_manifest(manifest)
        served = self.resource(ref.group, ref.kind, ref.version)
        return self._answer(
            self._request(
                "POST",
                collection_path(served, ref.namespace),
                _query((("fieldManager", manager),), dry_run=dry_run),
                body=manifest,
                content_type=CONTENT_TYPES["object"],
            ),
            f"create {ref}",
        )

    def update(
        self, manifest: dict[str, Any], *, manager: str, subresource: str = ""
    ) -> dict[str, Any]:
        """PUT; with metadata.resourceVersion it fails with Conflict on a stale one."""
        ref = ref_from_manifest(manifest)
        return self._send(
            "PUT",
            ref,
            f"update {ref}",
            subresource=subresource,
            query=(("fieldManager", manager),),
            body=manifest,
            content_type=CONTENT_TYPES["object"],
        )

    def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        """Delete with preconditions; NotFound when absent, Conflict on a mismatch."""
        # Beside a body the server ignores the query: dryRun in it would delete for real.
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if dry_run:
            options["dryRun"] = ["All"]
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in preconditions.items() if value}
        if preconditions:
            options["preconditions"] = preconditions
        self._send(
            "DELETE",
            ref,
            f"delete {ref}",
            body=options,
            content_type=CONTENT_TYPES["object"],
        )

    # ---------------------------------------------------------------- requests

    def _send(
        self,
        method: str,
        ref: ObjectRef,
        what: str,
        *,
        subresource: str = "",
        query: tuple[tuple[str, str], ...] = (),
        dry_run: bool = False,
        body: Any = None,
        content_type: str = "",
    ) -> dict[str, Any]:
        served = self.resource(ref.group, ref.kind, ref.version)
        request = self._request(
            method,
            object_path(served, ref, subresource),
            _query(query, dry_run=dry_run),
            body=body,
            content_type=content_type,
        )
        return self._answer(request, what)

    def _request(
        self,
        method: str,
        path: str,
        query: tuple[tuple[str, str], ...] = (),
        *,
        body: Any = None,
        content_type: str = "",
        accept: str = ACCEPT_JSON,
        timeout_seconds: float = 30.0,
    ) -> Request:
        return Request(
            method=method,
            path=path,
            query=query,
            body=b"" if body is None else json.dumps(body, separators=(",", ":")).encode(),
            content_type=content_type,
            accept=accept,
            timeout_seconds=timeout_seconds,
            user_agent=self._user_agent,
        )

    def _get_document(self, path: str, what: str, accept: str = ACCEPT_JSON) -> dict[str, Any]:
        return self._answer(self._request("GET", path, accept=accept), what)

    def _answer(self, request: Request, what: str) -> dict[str, Any]:
        return parsed_answer(self._transport.send(request), what, self._hide)


def _query(query: tuple[tuple[str, str], ...], *, dry_run: bool) -> tuple[tuple[str, str], ...]:
    return (*query, ("dryRun", "All")) if dry_run else query
