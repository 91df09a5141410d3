"""A platform for browser tests: `manage.py up --demo` on a free port, and a Chromium that is watched.

`running(data)` starts and stops it as a person would. `Watched` is a signed-in window that remembers every
error on its console, every violation of the content policy and every request to another host.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
START_S = 60


def missing(what: str, package: str) -> None:
    """Skips where it may be missing; in CI it may not."""
    words = f"{what} is not on this machine: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def environment(data: Path, port: int, **more: str) -> dict[str, str]:
    """No SPAK_ setting of the caller's, nor one that pytest's plug-ins have set."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPAK_", "DJANGO_SETTINGS_MODULE"))
    }
    return {**kept, "SPAK_WEB_DATA": str(data), "SPAK_WEB_PORT": str(port), "PYTHONUNBUFFERED": "1", **more}


class Up:
    """A running `manage.py up`."""

    def __init__(self, data: Path, port: int, *words: str, **more: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log = data.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "up", *words],
                cwd=ROOT, env=environment(data, port, **more),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait(self) -> None:
        """Until it says that it runs."""
        ends = time.monotonic() + START_S
        while "SPAK is running" not in self.said:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < ends, self.said
            time.sleep(0.1)

    def children(self) -> list[int]:
        return [int(pid) for pid in self.listed().split()]

    def listed(self) -> str:
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return task.read_text() if task.exists() else ""

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def running(data: Path, *words: str, **more: str) -> Iterator[Up]:
    found = Up(data, free_port(), *words, **more)
    try:
        found.wait()
        yield found
    finally:
        if found.process.poll() is None:
            found.stop()


class Watched:
    """A browser window of its own, signed in."""

    def __init__(self, browser: Any, url: str, name: str = "", **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(f"page: {error}"))
        self.page.on("request", self._asked)
        if name:
            self.go("/account/login/")
            self.page.fill("[name=login]", name)
            self.page.fill("[name=password]", "spak-demo")
            self.page.press("[name=password]", "Enter")
            self.page.wait_for_url("**/t/**")

    def go(self, path: str) -> Any:
        return self.page.goto(self.url + path)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.troubles.append(f"another host: {request.url}")

    def forget(self, word: str) -> None:
        """What a test meant to happen: drop what was said with that word; it must come in seconds."""
        until = time.monotonic() + 10
        while not any(word in item for item in self.troubles) and time.monotonic() < until:
            self.page.wait_for_timeout(50)
        kept = [item for item in self.troubles if word not in item]
        assert len(kept) < len(self.troubles), f"nothing was said of {word}"
        self.troubles = kept

    def close(self) -> None:
        self.context.close()
        assert not self.troubles, "\n".join(self.troubles)
