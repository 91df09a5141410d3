"""The log of a run: what tools, models, validators and people put out, oldest first, each with its record.

Takes records, gives plain text that a template escapes; a page has the newest `PAGE` entries and what comes
after one, the download has all. Of a tool that still runs the page has the end of what it put out so far, as
output.py has it, behind the entries and with no record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from spak.ports import Blobs
from spak.records import Kind, Record, decode
from spakweb.face.runs.filters import went_wrong
from spakweb.face.runs.record_parts import opened
from spakweb.face.streams.summaries import standing
from spakweb.ground import clock
from spakweb.ground.unsafe_text import reveal
from spakweb.store.hints import output
from spakweb.store.ledger.export import attachment
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, RunRecord, State

PAGE = 100
SHOWN = 4_000
"""Characters of one output on the page."""
KINDS = (Kind.PERMIT, Kind.ACT, Kind.PLAN, Kind.APPROVAL, Kind.END)
STRIDE = 500
"""Records read at a time for the file; two at least, as an output belongs to the permit before it."""

PIECE = 1 << 20
"""Bytes after which a piece of the file is sent, however many records are left of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one record put out, under what was done."""

    seq: int
    at: datetime
    where: str
    what: str
    result: str
    out: str = ""
    cut: bool = False
    bad: bool = False

    def __str__(self) -> str:
        line = f"[{self.seq}] {self.at:%Y-%m-%d %H:%M:%SZ} {self.where} {self.what}: {self.result}"
        end = "\n" if self.out and not self.out.endswith("\n") else ""
        return f"{' '.join(line.split())}\n{self.out}{end}"


def entries(rows: Iterable[bytes], blobs: Blobs, most: int | None = SHOWN) -> Iterator[Entry]:
    """Of lines in order; `most` cuts each output in its middle: how a build ends counts more than how it
    began."""
    permit: Record | None = None
    for line in rows:
        record = decode(line)
        if record.kind == Kind.PERMIT:
            permit = record
            if record.body.get("allow") is True:
                continue
        yield _entry(record, line, permit, blobs, most)


def _entry(record: Record, line: bytes, permit: Record | None, blobs: Blobs, most: int | None) -> Entry:
    what, out = record.kind, ""
    if record.kind == Kind.PERMIT:
        what, result = words.action(record.body), words.sentence(record).rpartition(": ")[2]
    elif permit is not None and permit.task == record.task and record.kind != Kind.END:
        what, result = words.action(permit.body), _result(record)
    else:
        result = _result(record)
    given = opened(record.body.get("out", ""), blobs) if record.kind == Kind.ACT else ""
    if isinstance(given, str):
        out = given
    where = f"{record.task}/{record.step}" if record.step else record.task
    cut = most is not None and len(out) > most
    at = datetime.fromtimestamp(record.at / 1000, UTC)
    if cut and most is not None:
        head, tail = out[: most // 4], out[-(most - most // 4) :]
        out = f"{head}\n\u2026 {len(out) - most:,} characters left out\n{tail}"
    return Entry(record.seq, at, where, what, result, out, cut, went_wrong(line))


def _result(record: Record) -> str:
    """Its line without the output, which stands below."""
    body = record.body
    if record.kind == Kind.ACT and isinstance(body.get("out"), str | dict):
        return words.sentence(
            Record(record.kind, record.authority, {**body, "out": ""}, side=record.side)
        ).rstrip(": ")
    return words.sentence(record)


@dataclass(frozen=True, slots=True)
class Running:
    """A tool that runs, and the end of what it put out so far."""

    where: str
    what: str
    out: str


def running(run: Run) -> Running | None:
    """Of the step that has no record yet, if it put out anything."""
    if standing(run.state, run.holder, run.lease_until, clock.now()) != State.RUNNING:
        return None
    found = output.read(run.key, run.fence, run.count)
    if found is None:
        return None
    line = RunRecord.objects.filter(run=run, kind=Kind.PERMIT).order_by("-seq").first()
    if line is None:
        return None
    permit = decode(bytes(line.line))
    where = f"{permit.task}/{permit.step}" if permit.step else permit.task
    return Running(where, words.action(permit.body), found.text)


def pane(run: Run, after: int | None = None, before: int | None = None) -> dict[str, Any]:
    """The newest entries, those before a record, or those after one; with what runs, but before a record."""
    now = running(run) if before is None else None
    rows = RunRecord.objects.filter(run=run, kind__in=KINDS)
    if after is not None:
        lines = list(rows.filter(seq__gt=after).order_by("seq").values_list("line", flat=True)[: 2 * PAGE])
    else:
        if before is not None:
            rows = rows.filter(seq__lt=before)
        lines = list(rows.order_by("-seq").values_list("line", flat=True)[: 2 * PAGE])[::-1]
    if not lines:
        return {"entries": [], "older": None, "running": now}
    found = list(entries(map(bytes, lines), DatabaseLedgers().reader(run.key).blobs))
    older = after is None and len(lines) == 2 * PAGE
    if found and found[-1].seq >= run.count:  # it ended meanwhile
        now = None
    return {"entries": found, "older": decode(bytes(lines[0])).seq if older else None, "running": now}


def as_text(run: Run) -> Any:
    """All of it as a file of text that a terminal can show: control characters are their pictures."""
    response = StreamingHttpResponse(_pieces(run), content_type="text/plain; charset=utf-8")
    return attachment(response, f"{run.key}.log")


async def _pieces(run: Run) -> AsyncIterator[bytes]:
    after = -1
    while True:
        piece, after = await sync_to_async(_piece)(run, after)
        if piece:
            yield piece
        if after < 0:
            return


def _piece(run: Run, after: int) -> tuple[bytes, int]:
    """The next entries as text, and where the one after them begins; -1 after the last."""
    rows = RunRecord.objects.filter(run=run, seq__gt=after, kind__in=KINDS).order_by("seq")
    lines = list(map(bytes, rows.values_list("line", flat=True)[:STRIDE]))
    # a permit belongs to what follows it: it is read again with the next piece
    last = decode(lines[-1]) if lines else None
    reread = len(lines) == STRIDE and last is not None and last.kind == Kind.PERMIT and len(lines) > 1
    if reread:
        lines.pop()
    text = b""
    for entry in entries(lines, DatabaseLedgers().reader(run.key).blobs, None):
        text += reveal(str(entry)).encode("utf-8", "replace")
        if len(text) > PIECE:
            return text, entry.seq
    done = not reread and len(lines) < STRIDE
    return text, -1 if done else decode(lines[-1]).seq
