"""What a request may cost: bytes, rows, seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Of one request, and of all that are worked on at once."""

    max_rows: int = 10_000
    max_bytes: int = 16 * 2**20
    max_seconds: float = 30.0  # for its body to arrive, and again for its prediction
    at_once: int = 2  # predictions that are computed side by side; others wait
    max_waiting: int = 200  # requests that wait for a prediction; more are sent away


class LimitedBody:
    """Reads the body of every request whole before the application sees it, and refuses one that is too large (413) or
    does not arrive in time (408). The connection is closed then, so that nobody waits for the rest.
    """

    def __init__(self, app: Application, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self._read(scope, receive), self._limits.max_seconds)
        except TimeoutError:
            await refuse(send, 408, f"the body did not arrive within {self._limits.max_seconds:g} s", "body")
            return
        if body is None:
            least = f"the body has more than {self._limits.max_bytes:,} bytes; send fewer rows per request"
            await refuse(send, 413, least, "body")
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes | None:
        """The body; None where it is too large."""
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._limits.max_bytes:
            return None
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            part = message.get("body", b"")
            size += len(part)
            if size > self._limits.max_bytes:
                return None
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()  # tells of a client that has left
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Send, status: int, error: str, field: str) -> None:
    """An answer in the form of all refusals."""
    content = json.dumps({"error": error, "field": field}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send(
        {"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]},
    )
    await send({"type": "http.response.body", "body": content})
