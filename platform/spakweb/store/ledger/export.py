"""Runs in and out as files: the lossless export, its import, artifacts, the report; the check of a ledger.

What is handed out is text and bytes of models and tools: always an attachment, never shown by the browser as
a page of ours (nosniff, and a policy that allows nothing).
"""

from __future__ import annotations

import os
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from spak import canon
from spak.errors import LedgerError, UserError
from spak.ledger import pack
from spak.ledger.export import export, import_
from spak.ledger.verify import Walk
from spak.records import decode
from spak.runner import view
from spak.runner.history import Attempted, History, rules_of
from spak.runner.views import own_tests, refusals
from spak.runner.views.as_recorded import Reading, program_of
from spak.runner.views.causes import Trail
from spak.runner.views.events import events
from spak.runner.views.quality import Quality, judges
from spak.runner.views.report import Facts, Proof, lines, report
from spak.runner.views.run_json import View
from spak.runner.views.steps import steps
from spak.workspace.pushed import push
from spak.workspace.tree import at, differences, load
from spakweb.ground import access
from spakweb.ground.audit.actions import record as note
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import one_line
from spakweb.ground.unsafe_text import reveal, without_nul
from spakweb.store.ledger.blobs import unleased
from spakweb.store.ledger.import_law import UNCHECKED, only_shown
from spakweb.store.ledger.log import DatabaseLog
from spakweb.store.ledger.projection import rebuild
from spakweb.store.ledger.salvage import Compared
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import SANDBOXES, Run, RunRecord, State
from spakweb.store.runs.signing import private_key

KEY_PREFIX, KEY_SUFFIX = 100, 8
"""Characters of an imported run's key: of its own id, and of the hash that makes it the team's."""

IMPORT_BYTES = 64 << 20
"""The largest export that a page takes."""
LINE_BYTES = 4 << 20
"""The longest record of it; longer outputs are blobs."""
FULL = "ledger.full"
SANDBOX = "default-src 'none'; sandbox; frame-ancestors 'none'"
IN_MEMORY = 4 << 20
LISTED = 200
JSONL = "application/x-ndjson"


def attachment(response: Any, name: str) -> Any:
    """A file for the disk, never a page."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[-100:]
    response["Content-Disposition"] = content_disposition_header(True, safe or "file")
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = SANDBOX
    response["Cache-Control"] = "private, no-store"
    return response


def as_jsonl(run: Run) -> Any:
    """The run as one file; `spak replay FILE` works on it.

    Raises: Refused `web.run_empty`, `web.run_damaged`.
    """
    begun(run)
    if not run.ended and not run.agent:
        _keep_files(run)
    return attachment(_written(run, export), f"{run.key}.jsonl")


def as_pack(run: Run) -> Any:
    """The run with a statement in front, signed with the platform's key; with the proof that the last signed
    checkpoint of the team has it, if it does. `spak verify-pack FILE` checks it.

    Raises: Refused `web.run_empty`, `web.run_damaged`, `usage.not_ended`.
    """
    begun(run)
    if not run.ended:
        raise Refused("usage.not_ended", "Only a run that ended has a statement.", "Wait until it ends.", 409)
    log = _proof(run)
    return attachment(
        _written(run, lambda reader, stream: pack.write(reader, stream, private_key(), log)),
        f"{run.key}.pack.jsonl",
    )


def _proof(run: Run) -> str | None:
    """None where no checkpoint has the run. The log has one that was imported under its key here, which its
    records do not know."""
    first = RunRecord.objects.get(run=run, seq=0)
    about = decode(bytes(first.line)).body.get("host")
    if not isinstance(about, dict) or about.get("run") != run.key:
        return None
    try:
        return DatabaseLog(run.team).prove(run)
    except LedgerError as error:
        if error.code == "ledger.not_covered":
            return None
        raise Refused.of(error) from error


SHAPES = {"events": events, "steps": steps}
"""Forms for reading, of docs/registers.md, and what makes each from records and blobs."""


def as_shape(run: Run, shape: str) -> Any:
    """The run as JSON lines in a form of SHAPES.

    Raises: Refused `web.run_empty`, `web.run_damaged`.
    """
    begun(run)

    def write(reader: Any, stream: BinaryIO) -> None:
        for line in SHAPES[shape]((record for record, _ in reader.read()), reader.blobs):
            stream.write(canon.dumps(line) + b"\n")

    return attachment(_written(run, write), f"{run.key}.{shape}.jsonl")


def _written(run: Run, write: Callable[[Any, Any], Any]) -> HttpResponseBase:
    """What a function makes of the run's ledger, as an answer."""
    stream = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  closed when it was read
    try:
        write(DatabaseLedgers().reader(run.key), stream)
    except BaseException as error:
        stream.close()
        if not isinstance(error, UserError) or error.code == FULL:
            raise
        raise Refused("web.run_damaged", error.message, error.hint, 409) from error
    return sent(stream, JSONL)


def sent(stream: Any, kind: str) -> HttpResponseBase:
    """An answer of what was written to the stream; a large file goes piece by piece, none stays in memory."""
    size = stream.tell()
    stream.seek(0)
    if size <= IN_MEMORY:
        with stream:
            return HttpResponse(stream.read(), content_type=kind)
    response = StreamingHttpResponse(_pieces(stream), content_type=kind)
    response["Content-Length"] = str(size)
    return response


def _keep_files(run: Run) -> None:
    """The files of a run that has not ended become blobs of it, so that it can go on where it is imported."""
    now = ((run.summary or {}).get("registers") or {}).get("R3")
    store = store_of(run)
    if now and store.knows(now):
        push(store, now, unleased(run.pk))


async def _pieces(stream: Any) -> AsyncIterator[bytes]:
    with stream:
        while piece := await sync_to_async(stream.read)(IN_MEMORY):
            yield piece


def bring(user: Any, team: Team, file: BinaryIO, size: int) -> Run:
    """A run of this team from an export; importing the same file again gives the same run.

    A run that is not the team's own gets a key of this team, so that neither the key nor the answer says
    whether another team has it. Its records and what is exported again keep the id.

    Raises: Refused `web.run_import`.
    """
    access.require(user, "run.start", team)
    if size > IMPORT_BYTES:
        most = IMPORT_BYTES >> 20
        raise Refused("web.run_import", f"The file is larger than {most} MiB.", "Use spak import.", 413)

    def row(key: str) -> Run:
        return Run(team=team, key=key, name=key, made_by=user, labels=["imported"], state=State.PAUSED,
                   only_shown=UNCHECKED)  # fmt: skip

    def local(run: str) -> str:
        if Run.objects.filter(key=run, team=team).exists():
            return run
        return f"{run[:KEY_PREFIX]}-{canon.content_hash([team.pk, run])[:KEY_SUFFIX]}"

    try:
        run = import_(Brought(file), DatabaseLedgers(row, local=local))  # type: ignore[arg-type]
    except LedgerError as error:
        if error.code == FULL:
            raise
        raise Refused("web.run_import", error.message, error.hint) from error
    found = Run.objects.get(key=local(run))
    if found.only_shown == UNCHECKED:
        _known(found)
        note(user, "run.imported", found.key, team, after=found.head)
    return found


class Brought:
    """A file of somebody's, read line by line. A long line is a blob's, two plain strings, or it is refused
    before it is parsed: five million members in one object stop the whole process for seconds."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readline(self, most: int = -1) -> bytes:
        """Raises: LedgerError `ledger.import`."""
        line = self._file.readline(LINE_BYTES)
        if len(line) < LINE_BYTES or line.endswith(b"\n"):
            return line
        if line.startswith(b'{"blob":'):
            line += self._file.readline(most)
            if line.count(b'"') == 8 and line.count(b"{") == 1 and b"[" not in line:
                return line
        line = b""  # the error may outlive it
        raise LedgerError(
            "ledger.import",
            f"nothing was imported; a record is longer than {LINE_BYTES >> 20} MiB",
            "Import it with `spak import`.",
        )


def _known(found: Run) -> None:
    """Read what was imported; it may go on when its law is ours and its records follow from it."""
    body = decode(bytes(RunRecord.objects.get(run=found, seq=0).line)).body
    about = body.get("host")
    about = without_nul(about) if isinstance(about, dict) else {}
    found.name = one_line(str(about.get("spec") or ""), 120).removesuffix(".spak") or found.key[:120]
    found.mode = str(about.get("mode", ""))[:12]
    launcher = str(about.get("launcher", ""))
    found.sandbox = launcher if launcher in SANDBOXES else ""
    why = only_shown(found.team, body)
    if not why and not (outcome := checked(found))["equal"]:
        why = f"its records do not follow from each other: see record {outcome['difference']}"
    found.only_shown, found.reason = without_nul(why[:200]), ""
    found.state = State.PAUSED if why else State.QUEUED
    try:
        rebuild(found, DatabaseLedgers().reader(found.key).read())
    except UserError as error:  # the chain is whole; its rules are not ones that this version knows
        found.reason = without_nul(f"{error.code}: {error.message}"[:200])
    now = ((found.summary or {}).get("registers") or {}).get("R3")
    if not found.only_shown and not found.ended and not (now and store_of(found).knows(now)):
        found.only_shown, found.state = "the file has not the files that it works on", State.PAUSED
    found.save(update_fields=["name", "mode", "sandbox", "only_shown", "state", "reason"])


def checked(run: Run, progress: Callable[[int], None] = lambda seen: None) -> dict[str, Any]:
    """Verify the chain and derive every commit again; what was found, for the page. `progress` hears how far.

    Raises: Refused `web.run_empty`.
    """
    begun(run)
    found = Reading()
    snapshot = Compared(run, found)
    reader = DatabaseLedgers().reader(run.key)
    walk = Walk(exported=False, blobs=reader.blobs)
    try:
        for seen, (record, line) in enumerate(reader.read(), 1):
            walk.feed(line)
            found.feed(record)
            snapshot.see(record)
            if seen % 500 == 0:
                progress(seen)
    except UserError as error:
        return {"ok": False, "equal": False, "records": run.count, "problems": [error.message], "head": ""}
    found.finish()
    report_, difference = walk.report(), found.difference
    open_end = difference is not None and difference.found is None and not found.state.ended
    known = (run.summary or {}).get("summary_hash")
    other = "" if found.unreplayed is None else found.unreplayed.message
    return {
        "ok": report_.ok,
        "equal": not other and (difference is None or open_end),
        "records": report_.records,
        "head": report_.head,
        "summary": found.state.summary,
        "as_shown": known in (None, found.state.summary),
        "snapshot": snapshot.removed(),
        "problems": [other] * bool(other)
        + [f"record {item.seq}: {item.message}" for item in report_.problems[:5]],
        "unreplayed": other,
        "difference": None if difference is None or open_end else difference.seq,
    }


def as_report(run: Run) -> HttpResponse:
    """The report of `spak report`, as a file. Raises: Refused `web.run_empty`, `web.run_damaged`."""
    text = report(*_of_report(run))
    return attachment(HttpResponse(text, content_type="text/html; charset=utf-8"), f"{run.key}.html")


def report_json(run: Run) -> dict[str, Any]:
    """What the report says: the document of `spak run --json`, whether the chain holds and a replay is equal,
    and the quality in words. Raises: Refused `web.run_empty`, `web.run_damaged`."""
    seen, _, proof, _, quality = _of_report(run)
    checked_ = {"ledger_ok": proof.ledger_ok, "replay_equal": proof.replay_equal and not proof.unreplayed}
    return {**seen.to_json(), **checked_, "quality": lines(quality)}


ReportParts = tuple[View, list[Attempted], Proof, Facts, Quality]
"""What a report is made of."""


def _of_report(run: Run) -> ReportParts:
    begun(run)
    try:
        return _parts(run)
    except UserError as error:
        raise Refused("web.run_damaged", error.message, error.hint, 409) from error


def _parts(run: Run) -> ReportParts:
    reader = DatabaseLedgers().reader(run.key)
    walk, replayed, history = Walk(exported=False, blobs=reader.blobs), Reading(), History()
    trail, quality = Trail(), Quality()
    host: dict[str, Any] = {}
    judged, apart = False, dict[str, Any]()
    for record, line in reader.read():
        walk.feed(line)
        replayed.feed(record)
        if record.seq == 0:
            program = program_of(record.body) if replayed.rules is None else replayed.rules.program
            history.rules = {} if program is None else rules_of(program)
            host = record.body.get("host") or {}
        history.feed(record)
        trail.feed(record)
        quality.feed(record)
        judged = judged or judges(record)
        own_tests.feed(apart, record)
    replayed.finish()
    checked_ = walk.report()
    cause = trail.sentence()
    unhappy = replayed.state.ended and replayed.state.status != "succeeded"
    rests_on = refusals.evidence((record for record, _ in reader.read()), cause) if unhappy else ()
    seen = view(run.key, replayed.state, run.head, run.count, "paused", cause=cause, evidence=rests_on)
    seen = replace(seen, checked=judged, by_own_tests=own_tests.known(apart))
    equal = replayed.difference is None
    unreplayed = "" if replayed.unreplayed is None else replayed.unreplayed.message
    proof = Proof(checked_.ok, equal, checked_.records, checked_.head, replayed.state.summary, unreplayed)
    facts = Facts(title=run.name, machine=host.get("toolchain") or {})
    return seen, history.rows, proof, facts, quality


# ---- artifacts


def artifacts(run: Run) -> list[dict[str, Any]]:
    """Files that the run made or changed, and those of its best candidate, with how they are had."""
    summary = run.summary or {}
    found = [
        {"name": row["name"], "key": f"blob/{row['blob']}", "size": None}
        for row in summary.get("artifacts") or []
    ]
    return found + [
        {"name": reveal(path), "key": key_of(path), "size": node.size} for path, node in _made(run)
    ]


def key_of(path: str) -> str:
    """How an address names it. A file of Linux may be called by any bytes, an address not."""
    return f"file/{path}" if path.isprintable() else f"name/{urlsafe_b64encode(os.fsencode(path)).decode()}"


def artifact(run: Run, key: str) -> HttpResponseBase:
    """One that is a blob. Raises: KeyError when it is none of this run's, LedgerError when it is damaged."""
    name = {row["key"]: row["name"] for row in artifacts(run)}[key]
    return as_file(blob(run, key), name)


def blob(run: Run, key: str) -> bytes:
    """What is in an artifact that is a blob. Raises: LedgerError when it is damaged."""
    return DatabaseLedgers().reader(run.key).blobs.get(key.partition("/")[2])


def as_file(data: bytes, name: str) -> HttpResponseBase:
    """Bytes for the disk, under the last part of a name."""
    stream = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  closed when it was read
    stream.write(data)
    found: HttpResponseBase = attachment(sent(stream, "application/octet-stream"), Path(name).name)
    return found


def _made(run: Run) -> Iterator[tuple[str, Any]]:
    now = ((run.summary or {}).get("registers") or {}).get("R3")
    first = RunRecord.objects.filter(run=run, seq=0).first()
    before = (decode(bytes(first.line)).body.get("rules") or {}).get("r3") if first else None
    if not now or not before or now == before or run.agent:
        return
    store = store_of(run)
    if not (store.knows(before) and store.knows(now)):
        return
    new = load(store, now)
    count = 0
    for path in differences(load(store, before), new):
        node = at(new, path)
        hidden = any(part[0] == "." or part == "__pycache__" for part in path.split("/"))
        if node is not None and node.kind == "f" and not hidden and count < LISTED:
            count += 1
            yield path, node


def begun(run: Run) -> None:
    """Raises: Refused `web.run_empty`."""
    if not run.count:
        raise Refused("web.run_empty", "The run has no records yet.", "Wait until it has begun.", 409)
