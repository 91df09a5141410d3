"""Large files that come and go: none stays in memory longer than it must, none stops the process."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from process_kit import WAIT_S
from run_rows_kit import with_file
from spak.errors import LedgerError
from spak.runner import Run as Runner
from spakweb.face.runs import checks, run_parts
from spakweb.store.ledger import export
from spakweb.store.runs.models import Run, RunRecord, State
from spakweb.work.runs.actions import fork, request_control
from spakweb.work.worker import beginning, execute

ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("what", "line"), [
    ("a record", b'{"#":"' + b"x" * 5000 + b'"}\n'),
    ("members without end", b'{"blob":{' + b",".join(b'"%d":1' % at for at in range(900)) + b"}}\n"),
    ("numbers without end", b'{"blob":"a","data":[' + b"1," * 3000 + b'1],"x":"y"}\n'),
    ("no end", b"x" * 5000),
])  # fmt: skip
def test_a_long_line_is_refused_before_it_is_parsed(
    what: str, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LINE_BYTES", 4096)
    with pytest.raises(LedgerError, match="longer than"):
        export.Brought(BytesIO(line)).readline()


def test_a_long_blob_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "LINE_BYTES", 4096)
    line = b'{"blob":"' + b"d" * 43 + b'","data":"' + b64encode(bytes(9000)) + b'"}\n'
    assert export.Brought(BytesIO(line + b"{}\n")).readline(1 << 20) == line


def test_a_long_line_in_an_upload_has_an_answer(
    cast: Any, ground: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LINE_BYTES", 4096)
    file = SimpleUploadedFile("f.jsonl", b'{"a":[' + b"1," * 5000 + b"1]}\n")
    where = reverse("spak-run-import", args=[cast.team.slug])
    answer = cast.client("bob").post(where, {"file": file}, headers={"Accept": "application/json"})
    assert answer.status_code == 400 and answer.json()["code"] == "web.run_import"
    assert "spak import" in answer.json()["hint"]


def test_a_large_file_is_sent_in_pieces(
    cast: Any, ran: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "IN_MEMORY", 1000)
    run = ran()
    data = bytes(range(256)) * 20
    answer = export.artifact(run, with_file(run, data))

    async def pieces() -> list[bytes]:
        return [piece async for piece in answer]

    assert answer.streaming and answer["Content-Length"] == str(len(data))
    assert answer["Content-Disposition"] == 'attachment; filename="best.c"'
    sent = asyncio.run(pieces())
    assert b"".join(sent) == data and max(map(len, sent)) <= 1000


def test_a_long_check_goes_on_behind_its_answer(
    cast: Any, ran: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "WAIT_S", 0.01)
    run, client, look = ran(), cast.client("vera"), {"HX-Request": "true"}
    where = reverse("spak-run-check", args=[cast.team.slug, run.key])
    over = threading.Event()
    another: Any = SimpleNamespace(work=lambda: over.wait(WAIT_S))
    checks._line.put(another)
    text = client.post(where, headers=look).content.decode()
    assert "waiting for its turn" in text and "data-again" in text
    under_way = checks.going(run)
    assert under_way is not None and checks.begin(run) is under_way
    under_way.seen = 5
    page = client.get(reverse("spak-run", args=[cast.team.slug, run.key])).content.decode()
    assert f"5 of {run.count} records checked" in page and "Replay and verify" not in page
    other = checks.begin(ran())
    assert other.result is None
    assert [thread.name for thread in threading.enumerate()].count("run-check") == 1
    over.set()
    assert other.done.wait(WAIT_S) and under_way.done.wait(WAIT_S) and checks.going(run) is None
    text = client.post(where, {"same": under_way.key}, headers=look).content.decode()
    assert "chain whole, replay equal" in text
    again = checks.begin(run)  # asked for anew it is done anew
    assert again is not under_way and again.done.wait(WAIT_S)
    assert again.result == under_way.result


def test_a_check_that_breaks_says_so(
    cast: Any, ran: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*ignored: object) -> None:
        raise RuntimeError

    run = ran()
    monkeypatch.setattr(export, "checked", broken)
    where = reverse("spak-run-check", args=[cast.team.slug, run.key])
    text = cast.client("vera").post(where, headers={"HX-Request": "true"}).content.decode()
    assert "the check itself failed" in text


def test_a_fork_that_takes_over_many_records_says_so(cast: Any, ran: Callable[..., Run]) -> None:
    parent = ran()
    made = fork(cast["alice"], parent, 3)
    assert "Waiting to start" in run_parts.outcome(made)
    Run.objects.filter(pk=made.pk).update(holder="w", lease_until=timezone.now() + timedelta(seconds=9))
    made.refresh_from_db()
    assert run_parts.outcome(made) == f"Copies the records of {parent.key} before record 3."


@pytest.mark.parametrize(("wanted", "state"), [("cancel", State.CANCELLED), ("pause", State.SUCCEEDED)])
def test_who_cancels_a_fork_does_not_wait_for_all_that_it_takes_over(
    cast: Any, ran: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, wanted: str, state: str
) -> None:
    """It comes in pieces, which are seen at once; one that is only paused has them all."""
    parent, seen = ran(), list[int]()
    made = fork(cast["alice"], parent, parent.count)
    adopt = Runner.adopt

    def adopted(run: Runner, proposals: Any) -> None:
        adopt(run, proposals)
        seen.append(RunRecord.objects.filter(run=made).count())
        request_control(cast["alice"], made, wanted)

    monkeypatch.setattr(beginning, "PIECE", 1)
    monkeypatch.setattr(Runner, "adopt", adopted)
    execute.advance(made.key)
    made.refresh_from_db()
    assert 0 < seen[0] < parent.count and (len(seen) == 1) == (wanted == "cancel")
    assert made.state == state


def test_who_cancels_a_fork_does_not_wait_until_its_parent_is_read(
    cast: Any, ran: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, taken = ran(), list[object]()
    made = fork(cast["alice"], parent, parent.count)
    Run.objects.filter(pk=made.pk).update(wanted="cancel")  # a worker has it already
    monkeypatch.setattr(beginning.forking, "expects", lambda state, record: taken.append(record))
    execute.advance(made.key)
    made.refresh_from_db()
    assert made.state == State.CANCELLED and not taken


def test_a_long_answer_counts_as_long_as_it_is(cast: Any, ran: Callable[..., Run]) -> None:
    """As fields of an address each letter would be sent as nine: too large from 116 KB on."""
    run, bob = ran(ASKING), cast.client("bob")
    page = bob.get(run_parts.address(run)).content.decode()
    assert '<form method="post" enctype="multipart/form-data"' in page
    where, of = reverse("spak-run-answer", args=[cast.team.slug, run.key]), run.summary["waiting"]["id"]
    assert bob.post(where, {"of": of, "text": "\u4e2d" * 340_000}).status_code == 302
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED
    given = b"".join(bob.get(f"{run_parts.address(run)}files/file/word.txt"))
    assert given.decode() == "\u4e2d" * 340_000
    refused = bob.post(where, {"of": of, "text": "x" * (2 << 20)}, headers={"Accept": "application/json"})
    assert refused.status_code == 413 and "1024 KB" in refused.json()["hint"]
