"""The candidates of a run for its page: their table in any order, two sources side by side, one to take away.

Takes a run and what the address says; gives dictionaries for templates, and a zip of one candidate with the
record of its measurement. What it shows is read off records and blobs of the run. It measures nothing.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.http.response import HttpResponseBase

from spak.errors import LedgerError
from spak.program import MetricRule
from spak.records import Kind, Record, decode
from spak.runner.history import Attempted, History, best_of, rules_of, source_of
from spak.runner.views.as_recorded import program_of
from spakweb.face.runs import record_parts
from spakweb.face.runs.record_parts import Part
from spakweb.ground.errors import Refused
from spakweb.store.ledger import export
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.runs import files

MOST = 20_000
"""Records of plans, choices and results that are read."""
ROWS = 200
"""Candidates that the table lists."""
CHOICES = 500
"""Candidates that the form for two sources offers."""
ORDERS: dict[str, Callable[[Attempted], Any]] = {
    "number": lambda row: row.seq,
    "result": lambda row: (row.outcome, row.code),
    "ratio": lambda row: row.ratio,
    "value": lambda row: row.value,
    "spread": lambda row: row.spread_ppm,
}
"""By what the table can be ordered; what a row has not comes last."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that was measured."""

    seq: int
    """The record of the measurement."""
    label: str
    blob: str


@dataclass(slots=True)
class Candidates:
    """What the records say of them."""

    history: History = field(default_factory=History)
    ends: list[Source] = field(default_factory=list)
    """Sources that no plan chose: what the run began with, and what it measured again at its end."""

    def sources(self) -> list[Source]:
        """Those of candidates, each by its number, after those that no plan chose."""
        best = best_of(self.history.rows)
        return self.ends + [
            Source(row.measured, _label(row, row is best), row.source)
            for row in self.history.rows
            if row.source and row.measured >= 0
        ]  # fmt: skip


def candidates(run: Run) -> Candidates:
    """The table of candidates, read off the records that make it."""
    found = Candidates()
    history = found.history
    kinds = (Kind.GENESIS, Kind.PLAN, Kind.SELECT, Kind.ACT, Kind.ROUTE)
    rows = RunRecord.objects.filter(run=run, kind__in=kinds).order_by("seq").values_list("line", flat=True)
    for line in rows[:MOST].iterator(chunk_size=500):
        record = decode(bytes(line))
        if record.kind == Kind.GENESIS:
            rules = metric_rules(record)
            if rules is None:
                return found
            history.rules = rules
        history.feed(record)
        blob = source_of(record.body) if record.kind == Kind.ACT and not history.chosen else ""
        if blob:
            found.ends.append(Source(record.seq, record.task, blob))
    return found


def metric_rules(genesis: Record) -> dict[str, MetricRule] | None:
    """The metric rule of each task that has one; None when the rules cannot be read."""
    program = program_of(genesis.body)
    return None if program is None else rules_of(program)


# ---- the table


def table(found: Candidates, given: Mapping[str, str]) -> dict[str, Any]:
    """The rows in the order that `by` names, newest first where it names none."""
    by, rows = given.get("by", ""), list(found.history.rows)
    name, falling = by.removeprefix("-"), by.startswith("-")
    key = ORDERS.get(name)
    if key is None:
        name, falling, key = "number", True, ORDERS["number"]
    known = [row for row in rows if key(row) is not None]
    rows = sorted(known, key=key, reverse=falling) + [row for row in rows if key(row) is None]
    return {
        "candidates": [(row, found.history.metric(row.task)) for row in rows[:ROWS]],
        "candidate_count": len(rows),
        "ordered": by.removeprefix("-") in ORDERS,
        "columns": [
            {
                "title": title,
                "hint": hint,
                "address": f"?tab=metrics&by={_turned(column, name, falling)}#candidates",
                "sort": ("descending" if falling else "ascending") if column == name else "",
            }
            for column, title, hint in COLUMNS
        ],
    }  # fmt: skip


COLUMNS = (
    ("number", "#", ""),
    ("result", "Result", ""),
    (
        "ratio",
        "Of the best",
        "In paired runs, which decide: the median, and the pairs won by the rule's margin",
    ),
    ("value", "Value", ""),
    ("spread", "Spread", ""),
)


def _turned(column: str, name: str, falling: bool) -> str:
    return column if column != name or falling else f"-{column}"


# ---- two sources


def compared(run: Run, found: Candidates, given: Mapping[str, str]) -> dict[str, Any]:
    """The form that chooses two sources, and how they differ once two were chosen."""
    sources = found.sources()
    if len(sources) < 2:
        return {"sources": [], "difference": None}
    best = best_of(found.history.rows)
    usual = best.measured if best is not None and best.source else sources[-1].seq
    by_seq = {source.seq: source for source in sources}
    one = by_seq.get(_number(given.get("one")), sources[0])
    two = by_seq.get(_number(given.get("two")), by_seq.get(usual, sources[-1]))
    offered = {source.seq: source for source in (*sources[-CHOICES:], *found.ends[:1], one, two)}
    shown = {
        "sources": [offered[seq] for seq in sorted(offered)],
        "one": one.seq,
        "two": two.seq,
        "difference": None,
    }
    if "one" in given:
        shown["difference"] = _difference(run, one, two)
    return shown


def _difference(run: Run, one: Source, two: Source) -> Part:
    title = f"From {one.label} to {two.label}"
    blobs = DatabaseLedgers().reader(run.key).blobs
    try:
        texts = [files.as_text(blobs.get(source.blob)) for source in (one, two)]
    except (LedgerError, OSError) as error:
        return Part(title, "text", f"A source cannot be read: {error}")
    if None in texts:
        return Part(title, "text", "A source is not a text.")
    if texts[0] == texts[1]:
        return Part(title, "text", "The two sources are the same.")
    return record_parts.changed_text(title, *texts)


def _label(row: Attempted, is_best: bool) -> str:
    value = "" if row.shown is None else f", {row.shown:.4g} {row.unit}".rstrip()
    return f"{row.task} {row.number}{value}{', the best' if is_best else ''}"


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else -1


# ---- one to take away

README = """\
Candidate {number} of task {task}, of the run {run}.

measurement.json     what was measured, with the pairs that decided: record {seq} of the run's ledger
{files}
To check that this is what was measured: download the run's records on its page ("Records as JSONL") and run

    spak ledger verify {run}.jsonl
    spak replay {run}.jsonl

Record {seq} has the hash {hash}, and names the files above by the SHA-256 of their contents, in base64url.
"""


def as_zip(run: Run, seq: int) -> HttpResponseBase:
    """A candidate, by the record of its measurement: its files, the measurement, and how to check it.

    Raises: Refused `web.run_candidate` where the record measured none, or its files are gone.
    """
    row = RunRecord.objects.filter(run=run, seq=seq, kind=Kind.ACT).first()
    record = decode(bytes(row.line)) if row is not None else None
    subject = record.body.get("subject") if record is not None else None
    if record is None or not isinstance(subject, Mapping) or "status" not in record.body:
        raise _none(seq)
    blobs = DatabaseLedgers().reader(run.key).blobs
    chosen = next((one for one in candidates(run).history.rows if one.measured == seq), None)
    about = {
        "run": run.key, "record": seq, "hash": record.hash, "task": record.task, "step": record.step,
        "candidate": None if chosen is None else chosen.number,
        "parameters": {} if chosen is None else dict(chosen.params),
        "outcome": "" if chosen is None else chosen.outcome,
        "measurement": {
            name: value if name == "subject" else record_parts.opened(value, blobs)
            for name, value in record.body.items()
        },
    }  # fmt: skip
    kept: dict[str, bytes] = {}
    named: list[str] = []
    try:
        for role, blob in sorted(subject.items()):
            name = _name(role, chosen)
            kept[name] = blobs.get(blob["$blob"])
            named.append(f"{name:<20} {len(kept[name]):,} bytes, {blob['$blob']}\n")
    except (LedgerError, OSError, KeyError, TypeError) as error:
        raise _none(seq) from error
    words = README.format(
        number=about["candidate"] or "", task=record.task, run=run.key, seq=seq, hash=record.hash,
        files="".join(named),
    )  # fmt: skip
    stream = tempfile.SpooledTemporaryFile(max_size=export.IN_MEMORY)  # noqa: SIM115  closed when read
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("README.txt"), words)
        archive.writestr(
            zipfile.ZipInfo("measurement.json"), json.dumps(about, indent=2, sort_keys=True) + "\n"
        )
        for name, data in kept.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    stream.seek(0, 2)
    name = f"{run.key}-candidate-{seq}.zip"
    response: HttpResponseBase = export.attachment(export.sent(stream, "application/zip"), name)
    return response


def _none(seq: int) -> Refused:
    what = f"Record {seq} of this run measured no candidate whose files were kept."
    return Refused(
        "web.run_candidate", what, "Take one from the table of candidates on the tab Metrics.", 404
    )


def _name(role: str, chosen: Attempted | None) -> str:
    """The name of a file in the zip: its role, with the ending that its source was written under."""
    path = chosen.args.get("path") if chosen is not None and role == "source" else None
    ending = Path(path).suffix if isinstance(path, str) else ""
    return f"candidate.{role}{ending if ending.isascii() and ending[1:].isalnum() else ''}"


def offered(rows: Sequence[Attempted]) -> int | None:
    """The record of the best candidate's measurement, where its files were kept."""
    best = best_of(rows)
    return best.measured if best is not None and best.source else None
