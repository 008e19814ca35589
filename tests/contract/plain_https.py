"""The simplest transport to a real API server: no retries, so that a 500 stays a 500."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from urllib.parse import urlencode

import yaml

from stoker.errors import Unreachable
from stoker.kube.answers import StreamRefused
from stoker.kube.transport import Request, Response


class PlainHttps:
    """The simplest HTTPS transport: one connection, no retries, so that 500 stays 500."""

    def __init__(self, kubeconfig: str) -> None:
        loaded = yaml.safe_load(kubeconfig)
        self.url = loaded["clusters"][0]["cluster"]["server"]
        self._token = loaded["users"][0]["user"]["token"]
        self._context = ssl._create_unverified_context()
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        host, _, port = self.url.removeprefix("https://").partition(":")
        return http.client.HTTPSConnection(host, int(port), context=self._context, timeout=30)

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": request.accept,
            "User-Agent": request.user_agent,
        }
        if request.content_type:
            headers["Content-Type"] = request.content_type
        return headers

    def _open(
        self, connection: http.client.HTTPSConnection, request: Request
    ) -> http.client.HTTPResponse:
        query = f"?{urlencode(request.query)}" if request.query else ""
        connection.request(
            request.method,
            request.path + query,
            body=request.body or None,
            headers=self._headers(request),
        )
        return connection.getresponse()

    def send(self, request: Request) -> Response:
        try:
            answer = self._open(self._connection, request)
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(str(error)) from error
        headers = tuple((name.lower(), value) for name, value in answer.getheaders())
        return Response(answer.status, body, headers)

    def stream(self, request: Request) -> Iterator[bytes]:
        connection = self._connect()
        answer = self._open(connection, request)
        try:
            if answer.status != 200:
                raise StreamRefused(Response(answer.status, answer.read()))
            yield from iter(answer.readline, b"")
        finally:
            answer.close()
            connection.close()

    def close(self) -> None:
        self._connection.close()
