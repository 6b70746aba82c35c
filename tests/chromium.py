"""A headless Chromium, driven through its debugging pipe: no driver, no package, no port."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
SECONDS = 60.0
# For every piece of text: its colour against the nearest opaque background, as in WCAG 2.2, 1.4.3.
CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const linear = (v) => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
    return .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let worst = [99, "", 0];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement, style = getComputedStyle(parent);
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "title", "desc"].includes(parent.tagName)) continue;
    const colour = parse(parent.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(parent))].sort((x, y) => y - x);
    worst[2] += 1;
    const ratio = (a + .05) / (b + .05);
    if (ratio < worst[0]) { worst[0] = ratio; worst[1] = node.textContent; }
  }
  document.querySelectorAll("details").forEach((each) => { each.open = false; });
  return worst;
})()
"""


def find_chromium() -> str | None:
    """Its path, where it is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def require_chromium() -> str:
    """Its path; without it tests are skipped, but not in CI."""
    found = find_chromium()
    if found is None:
        assert "CI" not in os.environ, "chromium is missing; scripts/install_browser.sh installs it"
        pytest.skip("no chromium here; scripts/install_browser.sh installs it")
    return found


class Page:
    """One tab: commands go out, answers and events come in, each ended by a zero byte."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in, self._buffer, self._id = to_browser, from_browser, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command and return its result."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._id:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.visit(path.as_uri())

    def visit(self, url: str) -> None:
        """Load a page and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def look(self, width: int, height: int, dark: bool = False, media: str = "screen") -> None:
        """A window of this size, light or dark, or on paper."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """The whole page, or its upper part, as a PNG."""
        size = self.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": height or size[1], "scale": 1}
        shot = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def of(self, method: str) -> list[dict[str, Any]]:
        """The events of a kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            assert time.monotonic() < deadline, "chromium does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def browsing(chromium: str, profile: Path) -> Iterator[Page]:
    """A browser with one tab, ended afterwards. It reads commands from descriptor 3 and answers on 4."""
    (read_commands, write_commands), (read_answers, write_answers) = os.pipe(), os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_commands, write_answers)]  # out of the way of 3 and 4
    process = subprocess.Popen(
        [chromium, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=lambda: [os.dup2(end, wanted) for end, wanted in zip(ends, (3, 4), strict=True)] and None,
        pass_fds=(3, 4),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in (read_commands, write_answers, *ends):
        os.close(end)
    try:
        yield Page(write_commands, read_answers)
    finally:
        process.kill()
        process.wait()
        os.close(write_commands)
        os.close(read_answers)
