"""The editor as its stories and its bench drive it: a platform of its own and people in a real browser.

`Server` is uvicorn with a database that is gone afterwards, `Person` a signed-in window. Each window is
watched: an error on the console, a violation of the content policy, or a request to another host is kept in
`troubles`.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--force-device-scale-factor=1",
]
PASSWORD = "spak-demo"
READY = "#editor[data-ready=true]"


@dataclass
class Server:
    """uvicorn on a port of its own, with a database that is gone afterwards."""

    data: Path
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPAK_", "DJANGO_"))}
        return {**kept, "SPAK_WEB_DATA": str(self.data), "SPAK_WEB_DEMO": "true"}

    def manage(self, *words: str) -> None:
        command = [sys.executable, "-W", "ignore", str(ROOT / "manage.py"), *words]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]

    def begin(self) -> None:
        """With the demo team and the shipped specs."""
        self.manage("migrate", "-v", "0")
        self.manage("seed_demo")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "spakweb.asgi:application", "--port", str(self.port)]
        with (self.data / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--log-level", "warning", "--timeout-graceful-shutdown", "1"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((self.data / "server.log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def chromium() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


class Person:
    """A signed-in browser window of its own."""

    def __init__(self, browser, server: Server, name: str, **options: object) -> None:
        self.server = server
        self.context = browser.new_context(**{"viewport": {"width": 1360, "height": 820}, **options})
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.expected: list[str] = []
        self.watch(self.page)
        self.sign_in(self.page, name)

    def watch(self, page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.troubles.append(f"error in the page: {error}"))
        page.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"console: {message.text} {message.location.get('url', '')}")

    def _asked(self, request) -> None:
        if not request.url.startswith((self.server.url, "data:", "blob:", "about:")):
            self.troubles.append(f"asked another host: {request.url}")

    def sign_in(self, page, name: str) -> None:
        page.goto(f"{self.server.url}/account/login/")
        page.fill("[name=login]", name)
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/t/**")

    def settle(self) -> None:
        """What went wrong in the page, apart from what the test expected."""
        found = [item for item in self.troubles if not any(re.search(word, item) for word in self.expected)]
        self.context.close()
        assert not found, "\n".join(found)

    # ---- the editor

    def make(self, text: str) -> str:
        """A spec with that text; its path."""
        name = f"spec {next(self.server.numbers)}"
        page = self.page
        page.goto(f"{self.server.url}/t/demo-team/specs/new/")
        token = page.locator("form input[name=csrfmiddlewaretoken]").first.get_attribute("value")
        answer = self.context.request.post(
            page.url,
            form={"csrfmiddlewaretoken": token, "name": name, "text": text},
            headers={"Referer": page.url},
            max_redirects=0,
        )
        assert answer.status == 302, answer.text()
        return answer.headers["location"]

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server.url}{path}edit/")
        self.page.wait_for_selector(READY)

    def editor(self, text: str) -> str:
        path = self.make(text)
        self.open(path)
        return path

    @property
    def text(self) -> str:
        """The text as the editor has it."""
        return self.page.evaluate(
            "() => document.querySelector('#text-pane .cm-content').cmTile.view.state.doc.toString()"
        )

    def cursor(self, word: str, after: bool = True) -> None:
        """The text cursor behind (or before) the first place of a word, by the keyboard's focus."""
        at = self.text.index(word) + (len(word) if after else 0)
        self.page.evaluate(
            """(at) => { const { view } = document.querySelector('#text-pane .cm-content').cmTile;
            view.focus(); view.dispatch({ selection: { anchor: at }, scrollIntoView: true }); }""",
            at,
        )

    def looked(self) -> None:
        """Wait until what is shown is about the text as it stands."""
        self.page.wait_for_timeout(320)
        self.page.wait_for_function("() => !document.querySelector('#editor').hasAttribute('aria-busy')")

    def node(self, name: str):
        return self.page.locator(f'#graph-pane [data-task="{name}"]')
