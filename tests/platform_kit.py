"""A platform for browser tests: servers on free ports, and a Chromium whose windows are watched.

`running(data)` is `manage.py up` as a person starts and stops it, `Web` its web part alone. `seeded` is a
data folder with the demo team in it, made once for all workers of a test run. `Watched` is a signed-in window
that remembers every error on its console, every violation of the content policy and every request to another
host.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

import warm_kit
from process_kit import WAIT_S, happens, start, start_warm, until
from servers_kit import Postgres

ROOT = Path(__file__).resolve().parents[1]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), "")
"""The one without desktop windows if it is installed: the same engine at a fraction of the CPU time."""
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
START_S = WAIT_S
STOP_S = 120.0
"""Within the time of a test, so that it can be told what holds a process that does not stop."""
"""Of a start."""
STEP_MS = 60_000
"""Within it a page does what it was asked for."""
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe that look at colours: a page in other colours can break no other."""


LAYOUT = """() => {
    const found = [], shown = (one) => one && one.getClientRects().length;
    for (const head of document.querySelectorAll("main :is(h2, .section-head)")) {
        const next = head.nextElementSibling;
        if (!shown(head) || !shown(next) || !next.matches(".card, .table-wrap, .rows")) continue;
        const gap = next.getBoundingClientRect().top - head.getBoundingClientRect().bottom;
        if (gap >= 0 && gap < 6) found.push(`heading "${head.innerText}" sticks to what is below it`);
    }
    for (const field of document.querySelectorAll("main .field")) {
        if (!shown(field) || !field.lastElementChild) continue;
        const last = field.lastElementChild.getBoundingClientRect();
        const below = field.getBoundingClientRect().bottom - last.bottom;
        if (below > 40) found.push(`${Math.round(below)} px are empty below the field "${field.innerText}"`);
    }
    for (const row of document.querySelectorAll("main p.actions"))
        if (!row.childElementCount) found.push("a form inside a paragraph of actions ended it");
    const rows = [...document.querySelectorAll("main .head > .actions")].filter(shown);
    for (const row of rows) {
        const [first, second] = [...row.children].map((one) => one.getBoundingClientRect());
        const wide = row.parentElement.clientWidth;
        if (second && first.width + second.width + 20 < wide / 2 && second.top >= first.bottom)
            found.push("actions stand in a column");
    }
    return found;
}"""


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


def manage(data: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What `manage.py` said and gave."""
    line = ["-W", "ignore", str(ROOT / "manage.py"), *words]
    return warm_kit.run(line, cwd=ROOT, env=environment(data, 8000, **more))


# ---- servers

SEED = (
    "from django.core.management import call_command as do; do('migrate', verbosity=0); do('seed_demo'); "
    "from spakweb.ground.teams.models import Team; Team.objects.update(widening='never')"
)
"""A demo team whose editors save what widens too; stories of that rule switch it on."""


def seed(data: Path) -> None:
    """Tables and the demo team, into a folder."""
    done = manage(data, "shell", "--no-imports", "-c", SEED)
    assert done.returncode == 0, done.stderr[-2000:]


def migrated(factory: pytest.TempPathFactory) -> Path:
    """A data folder with tables, to be copied: to make them takes seconds of a core."""

    def make(data: Path) -> None:
        done = manage(data, "migrate", "--verbosity", "0")
        assert done.returncode == 0, done.stderr[-2000:]

    return _once(factory, "migrated", make)


def seeded(factory: pytest.TempPathFactory) -> Path:
    """A data folder with tables and the demo team, to be copied."""

    def make(data: Path) -> None:
        shutil.copytree(migrated(factory), data)
        seed(data)

    return _once(factory, "seeded", make)


def migrated_server(factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped PostgreSQL with tables in its database, to be copied."""

    def make(part: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="spak-pg-") as name:
            with Postgres(Path(name) / "pg", durable=False) as server:
                done = manage(
                    Path(name) / "web", "migrate", "--verbosity", "0", SPAK_WEB_DATABASE_URL=server.url
                )
                assert done.returncode == 0, done.stderr[-2000:]
            shutil.copytree(server.folder / "data", part)

    return _once(factory, "migrated-server", make)


def _once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once for all workers of a run."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            make(shared / f"{name}.part")
            (shared / f"{name}.part").rename(shared / name)
    return shared / name


def held(top: int) -> str:
    """A process and those below it, a line each: what it is, its state, and where the kernel holds it."""
    lines, below = [], [top]
    for pid in below:  # it grows
        at = Path(f"/proc/{pid}")
        with suppress(OSError):
            below += [int(child) for child in (at / f"task/{pid}/children").read_text().split()]
            state = re.findall(
                r"^(?:State|SigBlk|SigCgt|ShdPnd|SigPnd):.*", (at / "status").read_text(), re.M
            )
            command = (at / "cmdline").read_text().replace("\0", " ")
            lines.append(f"{pid} {command}: {state} {(at / 'wchan').read_text()}")
    return "\n".join(lines)


class Server:
    """A process of the platform's on a port; its words go to a file beside its data."""

    command: tuple[str, ...]

    def __init__(self, data: Path, port: int = 0, *words: str, cold: bool = False, **more: str) -> None:
        """A `cold` one is a new interpreter, for tests of how it begins."""
        self.data, self.port, self.cold = data, port or free_port(), cold
        self.url = f"http://127.0.0.1:{self.port}"
        self.words, self.more = words, more
        self.log = data.with_suffix(".log")
        self.log.write_bytes(b"")
        self.cookies: dict[str, Any] = {}
        """Of whoever signed in, by name."""
        self.idle: dict[str, list[Any]] = {}
        """Windows that nobody uses, by what they were asked for with."""
        self.process: Any = None
        self.begin()

    def begin(self) -> None:
        line, env = [*self.command, *self.words], environment(self.data, self.port, **self.more)
        kept: Any = {"cwd": ROOT, "env": env, "instead_of": self.process}
        with self.log.open("ab") as log:
            if self.cold:
                named: Any = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
                self.process = start([sys.executable, *line], **named, **kept)
            else:
                self.process = start_warm(line, output=log, **kept)

    @property
    def said(self) -> str:
        return self.log.read_text()

    def ready(self) -> bool:
        raise NotImplementedError

    def wait(self) -> None:
        """Until it is ready."""

        def ready_or_ended() -> bool:
            assert self.process.poll() is None, self.said
            return self.ready()

        until(ready_or_ended, lambda: self.said)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        try:
            return int(self.process.wait(STOP_S))
        except subprocess.TimeoutExpired:
            state = held(self.process.pid)
            if not self.cold:
                self.process.send_signal(signal.SIGUSR2)  # it says where its threads are
                happens(lambda: "Current thread" in self.said, 5)
            self.process.kill()
            raise AssertionError(f"it did not stop\n{state}\n{self.said}") from None


class Up(Server):
    """A running `manage.py up`."""

    command = (str(ROOT / "manage.py"), "up")

    def ready(self) -> bool:
        return "SPAK is running" in self.said

    def children(self) -> list[int]:
        return [int(pid) for pid in self.listed().split()]

    def listed(self) -> str:
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return task.read_text() if task.exists() else ""


class Web(Server):
    """The web part alone, of the demo: no worker, no supervisor. `data` has its tables already."""

    command = (str(ROOT / "manage.py"), "serve")

    def __init__(self, data: Path) -> None:
        super().__init__(data, SPAK_WEB_DEMO="true")

    def ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/healthz", timeout=WAIT_S).close()
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Once more, where it was."""
        self.begin()
        self.wait()


Kind = TypeVar("Kind", bound=Server)


@contextmanager
def kept(found: Kind) -> Iterator[Kind]:
    """That server while it is needed."""
    try:
        found.wait()
        yield found
    finally:
        if found.process.poll() is None:
            found.stop()


@contextmanager
def running(data: Path, *words: str, **more: str) -> Iterator[Up]:
    """`manage.py up` while it is needed; then it is told to end, and ends in good order."""
    with kept(Up(data, 0, *words, **more)) as found:
        yield found
        if found.process.poll() is None:
            assert found.stop(signal.SIGTERM) == 0, found.said


# ---- browsers


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=STEP_MS)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=STEP_MS)
        yield made
        made.close()


SCRIPTS_FIRST = """
const deaf = new CSSStyleSheet(); deaf.replaceSync("html { pointer-events: none }");
document.adoptedStyleSheets.push(deaf);
document.addEventListener("DOMContentLoaded", () => document.adoptedStyleSheets.pop());
"""
"""A page takes a click once its scripts have run: a press on what no script hears yet is lost."""


class Watched:
    """A browser window of its own. The first of a name signs in by the form, the next have its cookies."""

    size = (1280, 860)

    def __init__(
        self, browser: Any, server: Server, name: str = "", early: bool = False, **options: Any
    ) -> None:
        """`early`: it presses before the scripts of a page have run, too."""
        self.server, self.url = server, server.url
        width, height = self.size
        options = {"viewport": {"width": width, "height": height}, **options}
        known = server.cookies.get(name)
        if known:
            options["storage_state"] = {"cookies": known, "origins": []}
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(STEP_MS)
        if not early:
            self.context.add_init_script(SCRIPTS_FIRST)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.expected: list[str] = ["htmx:error: timeout"]
        """Patterns of what may be said, or not: what a slow machine gave up on is asked again."""
        self.watch(self.page)
        if name and not known:
            self.sign_in(name)
            server.cookies[name] = self.context.cookies()

    def watch(self, page: Any) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.troubles.append(f"page: {error}"))
        page.on("request", self._asked)

    def sign_in(self, name: str) -> None:
        self.go("/account/login/")
        self.page.fill("[name=login]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.press("[name=password]", "Enter")
        self.page.wait_for_url("**/t/**")

    def go(self, path: str) -> Any:
        return self.page.goto(self.url + path)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:", "about:")):
            self.troubles.append(f"another host: {request.url}")

    def forget(self, word: str) -> None:
        """What a test meant to happen: drop what was said with that word, once it is said."""
        until = time.monotonic() + STEP_MS / 1000
        while not any(word in item for item in self.troubles) and time.monotonic() < until:
            self.page.wait_for_timeout(50)
        kept = [item for item in self.troubles if word not in item]
        assert len(kept) < len(self.troubles), f"nothing was said of {word}"
        self.troubles = kept

    def axe(self, rules: list[str] | None = None) -> list[str]:
        """What axe calls serious, in words. Its script goes in by the debugger's channel, which is no part of
        the page: the page's own policy lets no script in."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text())
        options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
        found = self.page.evaluate("async (how) => (await axe.run(document, how)).violations", options)
        return [
            f"{item['id']} ({item['impact']}): {node['target']} {node.get('failureSummary', '')}"
            for item in found
            if item["impact"] in ("serious", "critical")
            for node in item["nodes"]
        ]

    def layout(self) -> list[str]:
        """Headings that stick to the card below them, fields taller than what they hold, and rows of actions
        that came apart: a form inside a paragraph ends it."""
        return self.page.evaluate(LAYOUT)

    def flaws(self, dark: bool = False) -> list[str]:
        """What is wrong for everyone with the page as it is now, and, if wanted, with its colours in the dark
        and without motion: all else follows from its elements and words, which are the same."""
        found = self.axe() + self.layout()
        wider = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            found.append(f"{wider} px too wide")
        if dark:
            self.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
            found += [f"dark: {item}" for item in self.axe(COLOURS)]
            self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        return found

    def check(self) -> None:
        """Nothing was said but what was expected."""
        found = [item for item in self.troubles if not any(re.search(word, item) for word in self.expected)]
        assert not found, "\n".join(found)

    def rest(self, name: str) -> None:
        """As when it was new, without a new process: no other page, nothing kept, signed in as before."""
        for page in self.context.pages:
            if page != self.page:
                page.close()
        self.context.clear_cookies()
        self.go("/account/login/")
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.context.clear_cookies()
        self.context.add_cookies(self.server.cookies.get(name, []))
        self.troubles.clear()
        self.expected.clear()


Window = TypeVar("Window", bound=Watched)


@contextmanager
def windows(kind: type[Window], browser: Any, server: Server) -> Iterator[Callable[..., Window]]:
    """`make("alice", color_scheme="dark")`: windows that are looked through at the end. One may have been
    another test's before; who changes what it hears or lets through asks for a `fresh` one."""
    used: list[tuple[str, str, Window]] = []
    closed: list[Window] = []

    def make(name: str = "", fresh: bool = False, **options: Any) -> Window:
        key = f"{name} {sorted(options.items())}"
        idle = server.idle.setdefault(key, [])
        made = idle.pop() if idle and not fresh else kind(browser, server, name, **options)
        if fresh:
            closed.append(made)
        else:
            used.append((key, name, made))
        return made

    yield make
    for one in closed:
        one.context.close()
    for key, name, one in used:
        if one.troubles or one.expected or one.page.is_closed():
            one.context.close()
        else:
            one.rest(name)
            server.idle[key].append(one)
    for one in (*closed, *(one for *_, one in used)):
        one.check()
