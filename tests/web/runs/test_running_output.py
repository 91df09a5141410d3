"""What a tool puts out while it runs: on the page of its run, and never when it does not run."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from needs import missing
from process_kit import WAIT_S, until
from runs_kit import Socket, looped
from servers_kit import Redis, binary
from spak import data
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret
from spakweb.face.runs import log, run_parts
from spakweb.store.hints import news, output
from spakweb.store.ledger import workspaces
from spakweb.store.runs.models import Run, State
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
SLOW = '''\
task Slow {
  step script: tool.write_file { path: "slow.py" content: """
import os, sys, time
sys.stdout.buffer.write(b"10%\\r<b>60%</b>\\r<img src=x>\\0\\x1b[31m\\xff\\n")
sys.stdout.flush()
while not os.path.exists("go"):
    time.sleep(0.02)
print("after")
""" }
  step quiet: tool.run { cmd: "echo before" }
  step build: tool.run { cmd: "python slow.py" }
  success: exit_code(build) == 0
}
'''


@pytest.fixture
def under_way(ran: Ran) -> Iterator[Run]:
    """A run whose second tool has put something out and waits for the file `go`."""
    run = ran(SLOW, advance=False)

    def work() -> None:
        execute.advance(run.key)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: bool(shown(run)))
        yield run
    finally:
        (workspaces.folder_of(run.key) / "workspace" / "go").touch()
        thread.join(WAIT_S)


def shown(run: Run) -> str:
    found = log.running(Run.objects.get(pk=run.pk))
    return found.out if found is not None and "slow.py" in found.what else ""


def test_it_is_behind_the_entries_until_its_record_is_there(cast: Any, under_way: Run) -> None:
    client = cast.client("vera")
    page = client.get(run_parts.address(under_way), {"tab": "log"}).content.decode()
    assert page.index("before") < page.index("still running") < page.index("&lt;img src=x&gt;\ufffd\n")
    assert "60%" not in page and "\0" not in page and "\x1b" not in page
    heads = {"HX-Request": "true", "HX-Target": "log"}
    last = log.pane(Run.objects.get(pk=under_way.pk))["entries"][-1].seq
    after = client.get(
        run_parts.address(under_way), {"tab": "log", "after": last}, headers=heads
    ).content.decode()
    assert "still running" in after and "data-seq" not in after
    (workspaces.folder_of(under_way.key) / "workspace" / "go").touch()
    until(lambda: Run.objects.get(pk=under_way.pk).ended)
    after = client.get(
        run_parts.address(under_way), {"tab": "log", "after": last}, headers=heads
    ).content.decode()
    assert "still running" not in after and "after" in after and "data-seq" in after
    until(lambda: not output._file(under_way.key).exists())


def test_streams_hint_at_it(cast: Any, under_way: Run) -> None:
    path = f"/t/{under_way.team.slug}/runs/{under_way.key}/events"

    async def watch() -> dict[str, Any]:
        async with Socket(path, cast["vera"]) as page:
            await page.until(lambda page: any(one["type"] == "output" for one in page.messages))
            return page.messages[-1]

    count = Run.objects.get(pk=under_way.pk).count
    hint = looped(watch)
    assert hint == {"type": "output", "seq": count, "size": hint["size"], "line": "<img src=x>\ufffd"}
    assert hint["size"] > 20


def test_a_search_is_seen_while_it_runs(ground: None, cast: Any) -> None:
    """The project's second test passes only once the page has what was said of the first one."""
    text = data.path("specs/strategies/repair.spak").read_text(encoding="utf-8")
    spec = create_spec(cast["alice"], cast.team, "repair", text)
    loop = "    while not os.path.exists('seen'):\n        time.sleep(0.02)\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("test_a.py", "def test_a():\n    pass\n")
        made.writestr("test_b.py", f"import os, time\n\n\ndef test_b():\n{loop}")
    size = archive.tell()
    archive.seek(0)
    upload = actions.bring_files(cast["alice"], spec, "tests.zip", archive, size)[0]
    run = actions.start(cast["alice"], spec, files=upload)

    def work() -> None:
        execute.advance(run.key)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    page = ""

    def seen() -> bool:
        nonlocal page
        page = cast.client("vera").get(run_parts.address(run), {"tab": "log"}).content.decode()
        return "tests run: 1, failing: 0" in page

    try:
        until(seen)
        assert 'id="run-output"' in page
        (workspaces.folder_of(run.key) / "workspace" / "seen").touch()
    finally:
        thread.join(WAIT_S)
    run.refresh_from_db()
    assert run.state == "refused" and run.reason.startswith("repair.not_reproduced")


@pytest.mark.parametrize("change", ["fence", "count", "holder", "state", "old"])
def test_what_a_dead_worker_left_is_not_shown(under_way: Run, change: str) -> None:
    row = Run.objects.get(pk=under_way.pk)
    assert log.running(row) is not None
    if change == "old":
        past = time.time() - output.HOLDS_S - 1
        output.sender._tools.clear()
        os.utime(output._file(row.key), (past, past))
    setattr(row, change, {"holder": "", "state": State.QUEUED, "old": 0}.get(change, row.count + 1))
    assert log.running(row) is None


def test_what_lies_there_damaged_is_nothing(ran: Ran) -> None:
    run = ran()
    for content in (b"", b"{", b"[]", b'{"fence":1}', b"\xff"):
        output._file(run.key).write_bytes(content)
        assert output.read(run.key, 1, 1) is None


def test_a_tool_that_puts_out_nothing_costs_nothing(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    sender = output.Sender()
    with sender.hearing("r", 1, 2, None):
        pass
    assert sender._thread is None and not list(tmp_path.iterdir())


@pytest.fixture(params=["file", "redis"])
def store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[str]:
    settings.DATA_DIR = tmp_path
    (tmp_path / "runs" / "r").mkdir(parents=True)
    if request.param == "file":
        yield "file"
        return
    if not binary(Redis.needs):
        missing("Redis", "redis-server")
    with Redis(tmp_path / "redis") as redis:
        settings.REDIS_URL = redis.url
        yield "redis"
    output._unavailable_at = float("-inf")


def test_a_flood_is_handed_in_at_a_pace(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "publish", lambda key, count: None)
    put: list[dict[str, Any]] = []
    real = output._put
    monkeypatch.setattr(output, "_put", lambda key, data: (put.append(json.loads(data)), real(key, data)))
    sender = output.Sender()
    with sender.hearing("r", 7, 30, Redactor([Secret("canary-5f1d0c77")])) as heard:
        heard(1, b"first line\n")
        until(lambda: output.read("r", 7, 30) is not None)
        for _ in range(2000):
            heard(1, b"x" * 60 + b" canary-5f1d0c77\n" * 100)
        until(lambda: (seen := output.read("r", 7, 30)) is not None and seen.size == 2000 * 1760 + 11)
        found = output.read("r", 7, 30)
        assert found is not None and len(found.text) < 17_000
        assert output.read("r", 7, 31) is None and output.read("r", 6, 30) is None
    until(lambda: output.read("r", 7, 30) is None)
    assert put[0]["text"] == "first line\n" and not any("canary" in one["text"] for one in put)
    assert len(put) < 10


def test_a_redis_that_is_away_is_not_waited_for(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        monkeypatch.setattr(output, "REDIS_S", 0.1)
        monkeypatch.setattr(output, "_unavailable_at", float("-inf"))
        asked: list[str] = []
        real = output._redis
        monkeypatch.setattr(output, "_redis", lambda url: (asked.append(url), real(url))[1])
        for _ in range(5):
            assert output.read("r", 1, 1) is None
        assert len(asked) == 1
