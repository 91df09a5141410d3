"""Guarded sessions: what the guards of developers send, and what people ask of a session from its page.

A report has JSON lines: records as the ledger has them, blobs as an export has them, and what was done of
what people asked, `{"done":N,"outcome":""}`. Its answer is how many records are here and what people asked
since. Each person's sessions are their own: the key of a run is made of the team, the person and the id that
the session has where it runs, so that nobody appends to what somebody else sends.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from spak import canon
from spak.errors import LedgerError, UserError
from spak.guard.as_spec import draft
from spak.kernel.state import Effect
from spak.ledger.chain import check_run_id
from spak.records import Kind, decode
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.text import as_number, one_line
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.hints import news
from spakweb.store.ledger import guarded
from spakweb.store.ledger.export import IMPORT_BYTES, KEY_PREFIX, KEY_SUFFIX, Brought
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import GOES_ON, Command, Run, RunRecord, State
from spakweb.store.runs.signing import signed
from spakweb.store.specs.models import Spec
from spakweb.work.runs.deleted import gone
from spakweb.work.specs.actions import create_spec

SHOWN = "its guard advances it on another machine"
"""Why a guarded session is only shown."""
EXPIRES_S = 86_400
"""How long an approval counts that nobody used: an agent asks again when it comes to it."""
MOST_ASKED = 100


@dataclass(slots=True)
class Report:
    """What came in one request."""

    lines: list[bytes] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    done: dict[int, str] = field(default_factory=dict)
    """What became of what people asked, by its number; empty: it was done."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a guard is answered; `run` is None before its first record came."""

    run: Run | None
    team: Team
    asked: list[dict[str, Any]]

    @property
    def records(self) -> int:
        """How many are here."""
        return 0 if self.run is None else self.run.count

    @property
    def path(self) -> str:
        """The page of the session; empty before its first record came."""
        return "" if self.run is None else f"/t/{self.team.slug}/runs/{self.run.key}/"


def key_of(team: Team, user: Any, name: str) -> str:
    """The key of a person's session here. Raises: LedgerError `ledger.run_id`."""
    own = canon.content_hash([team.pk, user.pk, check_run_id(name)])
    return f"{name[:KEY_PREFIX]}-{own[:KEY_SUFFIX]}"


def receive(user: Any, team: Team, name: str, file: BinaryIO, size: int) -> Heard:
    """Take a report of the session `name` of this person. The same report again changes nothing.

    Raises: Refused `web.guarded_records` where it does not follow from what is here, `web.guarded_report`,
    `web.run_deleted`.
    """
    access.require(user, "run.start", team)
    if size > IMPORT_BYTES:
        raise _unread(f"the report is larger than {IMPORT_BYTES >> 20} MiB", 413)
    try:
        key, report = key_of(team, user, name), _read(file)
        blobs = guarded.keep_blobs(report.blobs)
        with short_lock_wait():
            row = _row(user, team, key, name, report)
            if row is not None:
                guarded.append(row, name, report.lines, blobs)
                asked = _told(row, report.done)
                transaction.on_commit(partial(news.publish, key, row.count))
    except LedgerError as error:
        if error.code == "ledger.full":
            raise
        raise Refused("web.guarded_records", error.message, error.hint, 409) from error
    return Heard(row, team, asked if row is not None else [])


def _read(file: BinaryIO) -> Report:
    """Raises: Refused `web.guarded_report`; LedgerError."""
    found, brought = Report(), Brought(file)
    while line := brought.readline(IMPORT_BYTES):
        if line.startswith(b'{"#":'):
            found.lines.append(line)
            continue
        try:
            value = canon.loads(line)
            if "blob" in value:
                found.blobs.append(b64decode(value["data"], validate=True))
                if canon.digest(found.blobs[-1]) != value["blob"]:
                    raise _unread("a blob is not what its name says")
            else:
                found.done[int(value["done"])] = str(value["outcome"])
        except (UserError, Base64Error, KeyError, TypeError, ValueError) as error:
            if isinstance(error, Refused):
                raise
            raise _unread("a line is neither a record nor a blob nor an outcome") from error
    return found


def _row(user: Any, team: Team, key: str, name: str, report: Report) -> Run | None:
    """The row of the session, locked, with what it was heard of; made with the first record."""
    row = Run.objects.select_for_update(no_key=True).filter(key=key).first()
    if row is not None and row.deleted_at is not None:
        raise gone(row)
    if row is None:
        if not report.lines:
            return None
        row = _begun(user, team, key, name, report.lines[0])
    row.heard_at = clock.now()
    row.save(update_fields=["heard_at"])
    return row


def _begun(user: Any, team: Team, key: str, name: str, line: bytes) -> Run:
    """Raises: Refused `web.guarded_records`, `web.guarded_report`."""
    first = decode(line)
    if first.kind != Kind.GENESIS:
        message = f"Record {first.seq} came, and nothing of the session is here."
        raise Refused("web.guarded_records", message, "Send it from its first record on.", 409)
    host = first.body.get("host")
    host = without_nul(host) if isinstance(host, dict) else {}
    labels = host.get("labels")
    agent = one_line(str(labels.get("agent", "")) if isinstance(labels, dict) else "", 60)
    if host.get("run") != name or not agent:
        raise _unread("its first record is not that of a guarded session of this id")
    row = Run(
        team=team, key=key, name=agent, agent=agent, made_by=user, mode=str(host.get("mode", ""))[:12],
        only_shown=SHOWN, state=State.RUNNING, heard_at=clock.now(),
    )  # fmt: skip
    row.save(force_insert=True)
    record(user, "run.guarded", key, team, after=first.hash, agent=agent)
    return row


def _unread(why: str, status: int = 422) -> Refused:
    return Refused(
        "web.guarded_report", f"Nothing was kept: {why}.", "spak guard --server sends them.", status
    )


def _told(row: Run, done: Mapping[int, str]) -> list[dict[str, Any]]:
    """Note what became of what people asked; gives what is still asked."""
    for pk, outcome in done.items():
        rows = Command.objects.filter(run=row, pk=pk, done_at=None)
        rows.update(done_at=timezone.now(), outcome=without_nul(outcome[:200]))
    if done:
        guarded.settle(row)
    waiting = Command.objects.filter(run=row, done_at=None).select_related("by")
    if row.ended:
        waiting.update(done_at=timezone.now(), outcome="the session has ended")
        return []
    return [asked for one in waiting[:MOST_ASKED] if (asked := _asked(row, one)) is not None]


def _asked(row: Run, command: Command) -> dict[str, Any] | None:
    """What the guard is told of it; an approval is signed when it is told first."""
    body = dict(command.body)
    if command.kind in ("approve", "deny") and "signed" not in body:
        asked = next((one for one in guarded.asks(row) if one["id"] == body.get("of")), None)
        if asked is None:
            command.outcome, command.done_at = "the session no longer waits for this", timezone.now()
            command.save(update_fields=["outcome", "done_at"])
            return None
        first = decode(bytes(RunRecord.objects.get(run=row, seq=0).line)).body
        effect = Effect(
            asked["id"], "approve", asked["name"], "ask", asked["task"], asked["step"], 0,
            {"act": asked["act"], "args": asked["args"]}, "",
        )  # fmt: skip
        expires, keys = body.get("expires", EXPIRES_S), first["rules"]["keys"]
        body["signed"] = signed(str(first["host"]["run"]), effect, command.kind, expires, command.by, keys)
        command.body = body
        command.save(update_fields=["body"])
    return {"id": command.pk, "kind": command.kind, "by": command.by.get_username(), "body": body}


def take_back(user: Any, run: Run, seq: str) -> Command:
    """Ask the guard to take the copy back to before a transaction, named by the record of its outcome.

    Raises: Refused `web.run_ended`, `web.guarded_turn`.
    """
    access.require(user, "run.control", run)
    with short_lock_wait():
        now = Run.objects.select_for_update().get(pk=run.pk)
        if not now.agent or now.state not in GOES_ON:
            raise Refused("web.run_ended", "The session has ended.", "spak apply brings what it kept.", 409)
        number = as_number(seq)
        row = RunRecord.objects.filter(run=now, seq=number, kind=Kind.ACT).first()
        if row is None or "r3" not in decode(bytes(row.line)).body:
            message = "No changes of the session are named there."
            raise Refused("web.guarded_turn", message, "Reload the page, and choose one of its list.", 409)
        waiting = now.commands.filter(done_at=None, kind="take_back").first()
        if waiting is not None:
            return waiting
        command = Command.objects.create(run=now, kind="take_back", body={"seq": number}, by=user)
        record(user, "run.take_back", now.key, now.team, seq=number)
        transaction.on_commit(partial(news.publish, now.key, now.count))
    return command


def make_spec(user: Any, run: Run) -> Spec:
    """What the session did so far as the first version of a new spec, which a person edits.

    Raises: Refused of `create_spec`, `web.guarded_turn` for a run that is no guarded session."""
    access.require(user, "spec.edit", run.team)
    if not run.agent or not run.count:
        raise Refused("web.guarded_turn", "This is no guarded session.", "Choose one of the list.", 409)
    reader = DatabaseLedgers().reader(run.key)
    made = draft((record for record, _ in reader.read()), reader.blobs, store_of(run).read)
    name = f"{run.agent} {made.run}"
    return create_spec(user, run.team, name, made.text, f"A draft from the guarded session {run.key}")
