"""The ledger of a guarded session: a run that another machine advances, and that grows here as it reports.

Takes the exact lines that come, with their blobs, for the row of the session; keeps them when they follow
from the records that are here, and writes the projection. Lines that are here already are compared and left.
Nobody has a lease of such a run, and no worker looks at it: the lock on its row is what keeps two reports
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import Q

from spak import canon
from spak.errors import LedgerError, UserError
from spak.kernel.state import State as KernelState
from spak.ledger.chain import follow
from spak.policy.approval import LATER, action_hash
from spak.records import Kind, decode
from spak.runner.resume import snapshot_of, take_up
from spak.runner.views.as_recorded import Reading
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.ledger import projection
from spakweb.store.ledger.blobs import name_of, store
from spakweb.store.ledger.intake import PAGE, row_of
from spakweb.store.ledger.projection import Projection
from spakweb.store.ledger.store import DatabaseLedger
from spakweb.store.ledger.writer_sql import PROJECTED
from spakweb.store.runs.models import GOES_ON, Command, Run, RunBlob, RunRecord, RunSnapshot, State

MOST_ASKED = 200
"""Questions for an approval that are looked at, the newest."""
MOST_OPEN = 20
"""What a page shows of that which a session waits for."""
ANSWERED = "guard.no_question"
"""How the outcome of an answer begins that came too late: the question was answered where the agent runs."""


def keep_blobs(blobs: Iterable[bytes]) -> dict[str, int]:
    """Put bytes into the storage; gives their digests with their sizes. Raises: LedgerError."""
    found: dict[str, int] = {}
    for data in blobs:
        digest = canon.digest(data)
        store(digest, data)
        found[digest] = len(data)
    return found


def append(row: Run, name: str, lines: Sequence[bytes], blobs: Mapping[str, int]) -> int:
    """Add what is new to the run `row`, which is locked; gives how many records were. `name` is the session's
    own id. Raises: LedgerError `ledger.tampered` for a line that does not follow from what is here, or that
    is not the one that is; `ledger.import` for one that pages could not read."""
    known = _new(row, name, lines)
    new = list(follow(iter(known), name, row.count, row.head or canon.ZERO))
    for at in range(0, len(new), PAGE):
        RunRecord.objects.bulk_create(row_of(row.pk, line) for _, line in new[at : at + PAGE])
    RunBlob.objects.bulk_create(
        (RunBlob(run=row, digest=digest, size=size) for digest, size in blobs.items()),
        ignore_conflicts=True,
    )
    if not all(default_storage.exists(name_of(digest)) for digest in blobs):
        raise LedgerError("ledger.import", "a blob was deleted meanwhile", "send it once more")
    if new:
        row.count, row.head = row.count + len(new), new[-1][0].hash
        row.save(update_fields=["count", "head"])
        project(row)
        settle(row)
    return len(new)


def _new(row: Run, name: str, lines: Sequence[bytes]) -> Sequence[bytes]:
    """Those of the lines that are not here yet. Raises: LedgerError `ledger.tampered`."""
    if not lines:
        return ()
    first = decode(lines[0]).seq
    here = RunRecord.objects.filter(run=row, seq__gte=first, seq__lt=min(first + len(lines), row.count))
    kept = [bytes(line) for line in here.order_by("seq").values_list("line", flat=True)]
    for place, line in enumerate(kept):
        if line != lines[place]:
            raise LedgerError(
                "ledger.tampered",
                f"record {first + place} of session {name} is not the one that was sent before",
                "its folder was changed since; spak ledger verify looks at what is there",
            )
    return lines[len(kept) :]


def project(row: Run) -> None:
    """Write the projected columns from the records, on from the snapshot where there is one."""
    seen = Projection(row.summary if row.projected else None)
    ledger = DatabaseLedger(row, writable=False)
    for record, _ in ledger.read(row.projected):
        seen.feed(record)
    state, reason = _state(row, ledger)
    projection.put(row, seen, state)
    row.reason = reason or row.reason
    row.save(update_fields=PROJECTED)


def asks(row: Run) -> list[dict[str, Any]]:
    """What the session waits for, oldest first: actions that nobody has approved or denied yet, in the form
    of `spak.runner.views.run_json.waiting`, and questions of its agent that nobody has answered. An agent
    goes on meanwhile, so the state of its run does not have them."""
    given = Command.objects.filter(Q(outcome="") | Q(kind="answer", outcome__startswith=ANSWERED), run=row)
    over = set(given.exclude(done_at=None).values_list("body__of", flat=True))
    found = [*_approvals(row), *row.summary.get("questions", ())]
    return sorted((one for one in found if one["id"] not in over), key=lambda one: int(one["seq"]))


def _approvals(row: Run) -> Iterable[dict[str, Any]]:
    asked: dict[str, dict[str, Any]] = {}
    newest = list(RunRecord.objects.filter(run=row, kind=Kind.APPROVAL).order_by("-seq")[:MOST_ASKED])
    for approval in reversed(newest):
        body = decode(bytes(approval.line)).body
        permits = RunRecord.objects.filter(run=row, kind=Kind.PERMIT, seq__lt=approval.seq)
        permit = permits.order_by("-seq").first()
        if permit is None:
            continue
        call = decode(bytes(permit.line)).body
        name, args = str(call.get("name", "")), call.get("args")
        action = action_hash(name, args)
        earlier = asked.pop(action, None)
        if body.get("decision") == LATER:
            found = {"kind": "approval", "task": permit.task, "step": permit.step, "id": str(body.get("of"))}
            found |= {"act": call.get("act"), "name": name, "args": args, "action": action, "seq": permit.seq}
            asked[action] = earlier or found
    return asked.values()


def settle(row: Run) -> None:
    """Show whether the session waits for somebody: after a report, and after an answer was handed on."""
    if row.state in GOES_ON:
        found = without_nul(asks(row))[:MOST_OPEN]
        row.state = State.WAITING if found else State.RUNNING
        row.summary = {**row.summary, "waiting": found[0] if found else None, "also": found[1:]}
        row.save(update_fields=["state", "summary"])


def _state(row: Run, ledger: DatabaseLedger) -> tuple[KernelState, str]:
    """The state, and what is to be said of the records if they do not lead to it."""
    try:
        found = take_up(ledger)
    except UserError as error:
        if RunSnapshot.objects.filter(run=row).delete()[0]:  # it may be the snapshot that is wrong
            return _state(row, DatabaseLedger(row, writable=False))
        return _as_recorded(ledger), f"{error.code}: {error.message}"[:200]
    rules = found.replay.rules
    if rules is not None and not found.replay.missing and found.start < ledger.count:
        made = snapshot_of(ledger, rules, found.replay.state, found.history, found.tally)
        fields = {"count": made.count, "head": made.head, "data": made.data}
        RunSnapshot.objects.update_or_create(run=row, defaults=fields)
    return found.replay.state, ""


def _as_recorded(ledger: DatabaseLedger) -> KernelState:
    """What the records say of themselves, where they cannot be derived again."""
    found = Reading()
    for record, _ in ledger.read():
        try:
            found.feed(record)
        except UserError:
            break
    return found.state
