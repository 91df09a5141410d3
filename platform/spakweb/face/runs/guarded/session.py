"""What the page of a guarded session shows: the conversation, each action with its class and verdict, and
what each transaction changed.

Takes a row, gives dictionaries for templates. An action is what the records of one attempt say; a page has
the newest of them, and a cursor for the older ones. Contents of files are those that the guard sent. Text of
agents and models is plain text, which templates escape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.costs import cost_of
from spak.guard import talk
from spak.ports import Blobs
from spak.records import Kind, decode
from spak.runner.views import guarded
from spakweb.face.runs.filters import within
from spakweb.face.runs.record_parts import MOST, Part, opened, reason_of, sent_files
from spakweb.ground import clock
from spakweb.ground.teams.law import FILE
from spakweb.ground.unsafe_text import reveal
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import words
from spakweb.store.runs.models import GOES_ON, Run, RunRecord, State

TABS = {"session": "Session", "records": "Records", "timeline": "Timeline", "registers": "Registers"}
PAGE = 40
RECORDS = 8 * PAGE
"""Records that are read for a page: an action has six, and more where it waits."""
MODEL, CHANGES, SEEN = guarded.MODEL, guarded.CHANGES, guarded.SEEN
TUNNEL = "A host was judged; what went there is known by its size."
MEANINGS = {
    MODEL: "Judged before it left, and sent without values of secrets.",
    CHANGES: "What the agent's own tools did in its copy: seen as a diff, kept or taken back.",
    SEEN: "Reported by a hook of the agent; nothing held it.",
    "tunnel": TUNNEL,
    "tunnel_closed": TUNNEL,
    guarded.DONE: "A tool of SPAK did it, judged before.",
}
MINE = (Kind.PERMIT, Kind.ACT, Kind.APPROVAL, Kind.ROUTE)


class Action:
    """One action of the agent, and what the page shows of it."""

    def __init__(self, did: guarded.Action) -> None:
        self.did, self.by = did, did.signer
        self.seq, self.tool, self.args, self.act = did.seq, did.tool, did.args, did.act
        self.verdict, self.why = did.verdict, did.why
        self.said: list[talk.Said] = []
        self.files: list[Part] = []

    @property
    def of(self) -> tuple[str, str]:
        """Its class, and what that means."""
        return self.did.effect, MEANINGS.get(self.tool, MEANINGS[guarded.DONE])

    @property
    def title(self) -> str:
        """What it is, on a line."""
        if self.tool == MODEL:
            return str(self.args.get("model") or self.args.get("path") or "")
        if self.tool == CHANGES:
            return reveal(self.did.paths)
        said = words.action({"name": self.tool, "args": self.args})
        return reveal(said.removeprefix(self.tool).strip())

    @property
    def tokens(self) -> int:
        """What the model used."""
        return cost_of(self.act.side).tokens if self.act else 0

    @property
    def cost(self) -> int | None:
        """Its price in billionths, where it is known."""
        found = cost_of(self.act.side) if self.act else None
        return found.nanousd if found is not None and found.priced else None

    @property
    def turn(self) -> int | None:
        """The record that *Take back from here* names: of changes that were kept."""
        kept = self.tool == CHANGES and self.act is not None and self.verdict[0] == "succeeded"
        return self.act.seq if kept and self.act is not None else None


def pane(run: Run, before: int | None) -> dict[str, Any]:
    """The newest actions before a record, oldest first, with the cursor of those before them."""
    rows = RunRecord.objects.filter(run=run, kind__in=MINE)
    rows = rows if before is None else rows.filter(seq__lt=before)
    lines = list(rows.order_by("-seq").values_list("line", flat=True)[:RECORDS])
    records = [decode(bytes(line)) for line in reversed(lines)]
    found = [Action(one) for one in guarded.actions(records)]
    whole = len(lines) < RECORDS
    shown = found[-PAGE:] if whole or len(found) > PAGE else found[1:]  # the first one may lack its beginning
    blobs, begun = DatabaseLedgers().reader(run.key).blobs, _begun(run)
    _fill(run, shown, blobs)
    for one in shown:
        one.by = begun["signers"].get(one.by, one.by)
    return {
        "actions": shown,
        "older": shown[0].seq if shown and (not whole or len(found) > len(shown)) else None,
        "newer": before is not None,
        "begun": begun,
    }


def _fill(run: Run, shown: list[Action], blobs: Blobs) -> None:
    """Put in what the page shows of each: what was said, what changed, and why it was not kept."""
    root = _root_before(run, shown[0].seq) if shown else ""
    for one in shown:
        if one.tool == MODEL:
            one.said = _conversation(one, blobs)
        elif one.tool not in (CHANGES, SEEN) and one.act is not None:
            text = str(opened(one.act.body.get("out", ""), blobs))
            one.said = [talk.Said(talk.TOOL, text)] if text.strip() else []
        if one.did.allow is not True and one.act is None:
            one.why = _reason(run, one.seq, blobs) or one.why
        now = one.act.body.get("r3") if one.act is not None and not one.did.rolled_back else None
        if isinstance(now, str) and now != root:
            one.files = sent_files(run, root, now) if root else []
            root = now
        one.said = [talk.Said(said.who, reveal(said.text[:MOST])) for said in one.said if said.text.strip()]


def _conversation(one: Action, blobs: Blobs) -> list[talk.Said]:
    """What the request added, and the answer. A body that was not sent is shown as far as its record has
    it."""
    request = opened(one.args.get("request", ""), blobs)
    said = talk.asked(request) if isinstance(request, str) else [_beginning(request)]
    out = one.act.body.get("out", "") if one.act is not None else ""
    answer = opened(out, blobs)
    return [*said, *(talk.answered(answer) if isinstance(answer, str) else [_beginning(answer)])]


def _beginning(found: Any) -> talk.Said:
    head = str(found.get("head", "")) if isinstance(found, Mapping) else ""
    return talk.Said(talk.TOOL, f"{head} [the rest was not sent: it is larger than a report takes]")


def _reason(run: Run, seq: int, blobs: Blobs) -> str:
    row = RunRecord.objects.filter(run=run, seq=seq).first()
    return reason_of(decode(bytes(row.line)), blobs) if row is not None else ""


def _root_before(run: Run, seq: int) -> str:
    """The root of the copy before a record."""
    rows = RunRecord.objects.filter(run=run, seq__lt=seq, kind__in=(Kind.ACT, Kind.GENESIS))
    rows = rows.alias(place=within("line", b'"r3":"')).filter(place__gt=0).order_by("-seq")
    row = rows.first()
    if row is None:
        return ""
    body = decode(bytes(row.line)).body
    root = body.get("r3") or (body.get("rules") or {}).get("r3")
    return root if isinstance(root, str) else ""


def own_id(run: Run) -> str:
    """The id that a guarded session has where it runs; empty for other runs."""
    return _begun(run)["id"] if run.agent else ""


def _begun(run: Run) -> dict[str, Any]:
    """What the first record says: the id that the session has where it runs, and whether the rules of the
    team are its own."""
    row = RunRecord.objects.filter(run=run, seq=0).first()
    body = decode(bytes(row.line)).body if row is not None else {}
    rules = body.get("rules") or {}
    theirs = (rules.get("policy") or {}).get("team") or {}
    signers = {
        str(key.get("id")): str(key.get("name")) for key in rules.get("keys") or () if isinstance(key, dict)
    }
    ours = {FILE: run.team.rules} if run.team.rules else {}
    return {"id": str((body.get("host") or {}).get("run", "")), "lawful": theirs == ours, "rules": bool(ours),
            "signers": signers}  # fmt: skip


def outcome(run: Run) -> str:
    """How the session stands, in a sentence; empty where it says no more than of any run."""
    match run.state:
        case State.RUNNING:
            return f"{run.agent} is at work on the machine of {run.made_by}."
        case State.WAITING:
            waiting = ((run.summary or {}).get("waiting") or {}).get("kind")
            return f"{run.agent} waits for an {'answer' if waiting == 'question' else 'approval'}."
        case State.PAUSED if run.heard_at is not None:
            ago = words.took(round((clock.now() - run.heard_at).total_seconds()) * 1000)
            return (
                f"Not heard of since {run.heard_at:%H:%M} UTC, {ago} ago: its guard ended, or cannot reach "
                "the platform. What it recorded meanwhile comes when it can."
            )
        case State.SUCCEEDED:
            return f"{run.agent} has ended."
    return ""


def goes_on(run: Run) -> bool:
    """Whether its guard can still be asked for something."""
    return run.state in GOES_ON
