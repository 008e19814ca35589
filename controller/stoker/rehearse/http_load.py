"""The clients of a rehearsal over HTTP: real requests to real engine stand-ins, in real time.

One thread with an event loop of its own. Endpoints say where a pod's engine truly listens.
A request is refused where no byte of a good answer came, truncated where the stream broke off.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from stoker.model.ports import Clock
from stoker.rehearse.load import Endpoint, EndpointHistory, Sizes, arrivals, sticky_clients
from stoker.rehearse.record import Outcome, Request
from stoker.rehearse.schema import LoadBlock

__all__ = ["STICKY_PAUSE_SECONDS", "HttpLoad", "token_seconds"]

STICKY_PAUSE_SECONDS = 1.0
TOKEN_SECONDS = 0.5
"""An answer is as many tokens as half seconds: few enough for Python to serve hundreds."""
CONNECT_SECONDS = 60.0
"""Loopback refuses at once; what takes longer is a busy machine."""


def token_seconds(time_scale: float) -> float:
    """From one token of an answer to the next."""
    return TOKEN_SECONDS / time_scale


@dataclass(slots=True)
class _Connection:
    """An open connection, and whom it leads to."""

    endpoint: Endpoint
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_usable(self) -> bool:
        """Whether the other side has not closed it, as far as is known."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        """Let it go."""
        with suppress(OSError, RuntimeError):
            self.writer.close()


class HttpLoad:
    """`ground.Load` in real time; times of the load block are divided by `time_scale`."""

    def __init__(
        self,
        load: LoadBlock,
        services: Iterable[str],
        seed: int,
        clock: Clock,
        *,
        time_scale: float = 1.0,
    ) -> None:
        self._load = load
        self._services = tuple(services)
        self._seed = seed
        self._clock = clock
        self._scale = time_scale
        self._endpoints = {service: EndpointHistory() for service in self._services}
        self._random = Random(f"{seed}/choice")  # noqa: S311 - a simulation
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.requests: list[Request] = []

    def note_endpoints(self, at_ms: int, service: str, endpoints: tuple[Endpoint, ...]) -> None:
        """What the cluster says of a service's endpoints from now on."""
        self._endpoints[service].note(at_ms, endpoints)

    def begin(self, at_ms: int) -> None:
        """Requests come from now on."""
        self._began_ms = at_ms
        self._thread.start()

    def stop(self) -> None:
        """No further requests; those under way are cut off and count as open."""
        stopped, self._stopping = self._stopping, True
        if self._thread.is_alive() and not stopped:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        for service in self._services:
            self._start(self._open_loop(service))
            for client in sticky_clients(self._load):
                self._start(self._sticky(service, client))
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0.05))  # connections close one turn later
        self._loop.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open_loop(self, service: str) -> None:
        for after_ms, client, lag_ms, output_ms in arrivals(self._load, service, self._seed):
            due_ms = self._began_ms + after_ms / self._scale
            await asyncio.sleep(max(0.0, (due_ms - self._clock.now_ms()) / 1000))
            now_ms = self._clock.now_ms()
            request = self._new(service, client, now_ms, output_ms)
            seen = self._endpoints[service].seen(now_ms, round(lag_ms / self._scale))
            self._start(self._once(request, self._random.choice(seen) if seen else None))

    async def _once(self, request: Request, endpoint: Endpoint | None) -> None:
        connection = await self._connected(request, endpoint)
        if connection is not None:
            try:
                await self._ask(request, connection)
            finally:
                connection.close()

    async def _sticky(self, service: str, client: str) -> None:
        sizes = Sizes(self._load.output, f"{self._seed}/{service}/{client}")
        kept: list[_Connection] = []
        try:
            while not self._stopping:
                request = self._new(service, client, self._clock.now_ms(), sizes.draw())
                await self._on_kept(request, kept)
                await asyncio.sleep(STICKY_PAUSE_SECONDS / self._scale)
        finally:
            for connection in kept:
                connection.close()

    async def _on_kept(self, request: Request, kept: list[_Connection]) -> None:
        """On the one connection kept, opened anew where its server closed it or failed."""
        if kept and not kept[0].is_usable:
            kept.pop().close()
        if not kept:
            seen = self._endpoints[request.service].seen(request.at_ms, 0)
            opened = await self._connected(request, self._random.choice(seen) if seen else None)
            kept += [] if opened is None else [opened]
        if kept:
            request.pod, request.node = kept[0].endpoint.pod, kept[0].endpoint.node
            await self._ask(request, kept[0])
            if request.failed:
                kept.pop().close()

    def _new(self, service: str, client: str, now_ms: int, output_ms: int) -> Request:
        request = Request(service, client, now_ms, round(output_ms / self._scale))
        self.requests.append(request)
        return request

    async def _connected(self, request: Request, endpoint: Endpoint | None) -> _Connection | None:
        if endpoint is None:
            self._fail(request, Outcome.REFUSED, "no endpoint")
            return None
        request.pod, request.node = endpoint.pod, endpoint.node
        host, _, port = endpoint.address.rpartition(":")
        try:
            opened = asyncio.open_connection(host, int(port))
            reader, writer = await asyncio.wait_for(opened, CONNECT_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            self._fail(request, Outcome.REFUSED, type(error).__name__)
            return None
        return _Connection(endpoint, reader, writer)

    async def _ask(self, request: Request, connection: _Connection) -> None:
        """Send it and read the answer to its end; a cancelled one stays open."""
        tokens = max(1, round(request.output_ms / 1000 / token_seconds(self._scale)))
        body = json.dumps({"prompt": "ping", "max_tokens": tokens, "stream": True}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: e\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            connection.writer.write(head.encode() + body)
            await connection.writer.drain()
            status = await connection.reader.readuntil(b"\r\n\r\n")
            if not status.startswith(b"HTTP/1.1 200"):
                self._fail(request, Outcome.REFUSED, status.split(b"\r\n")[0].decode())
                return
            whole = await self._read(request, connection.reader)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            self._break_off(request, type(error).__name__)
            return
        if whole:
            request.outcome, request.ended_ms = Outcome.OK, self._clock.now_ms()
        else:
            self._break_off(request, "the stream ended early")

    async def _read(self, request: Request, reader: asyncio.StreamReader) -> bool:
        """Chunks to the last one; whether the stream said that it was done."""
        done = False
        while True:
            size = int((await reader.readuntil(b"\r\n")).strip() or b"0", 16)
            data = await reader.readexactly(size + 2)
            if size == 0:
                return done
            if request.first_ms is None:
                request.first_ms = self._clock.now_ms()
                request.ends_ms = request.first_ms + request.output_ms
            done = done or data.startswith(b"data: [DONE]")

    def _break_off(self, request: Request, why: str) -> None:
        begun = request.first_ms is not None
        self._fail(request, Outcome.TRUNCATED if begun else Outcome.REFUSED, why)

    def _fail(self, request: Request, outcome: Outcome, why: str) -> None:
        request.outcome, request.ended_ms = outcome, self._clock.now_ms()
        request.why = why
