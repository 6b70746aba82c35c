"""A real HTTP server on this machine that can be told to misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """What the server holds, how it behaves and what it was asked."""

    files: dict[str, bytes]
    url: str = ""
    etag: str | None = '"one"'
    ranges: bool = True  # does it answer Range requests?
    range_offset: int = 0  # answers with a range that starts this much later
    break_after: list[int] = field(default_factory=list)  # bytes after which the next answers stop
    requests: list[dict[str, str]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    state = Server(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(dict(self.headers))
            content = state.files.get(self.path.lstrip("/"))
            if content is None:
                state.answers.append(404)
                self.send_error(404)
                return
            start = self._start(len(content))
            if start is not None and start > len(content):
                state.answers.append(416)
                self.send_error(416)
                return
            body = content[start or 0 :]
            state.answers.append(200 if start is None else 206)
            self.send_response(state.answers[-1])
            if state.etag:
                self.send_header("ETag", state.etag)
            if start is not None:
                first = start + state.range_offset
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.break_after.pop(0)] if state.break_after else body)

        def _start(self, length: int) -> int | None:
            asked = self.headers.get("Range")
            if not asked or not state.ranges or self.headers.get("If-Range") != state.etag:
                return None
            return int(asked.removeprefix("bytes=").split("-")[0])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
