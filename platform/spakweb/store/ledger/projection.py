"""The projection of a run: what lists, headers and graphs show, folded from its records.

Takes records in order (and the kernel's state, for what registers hold); writes the projected columns of
the row. It can be made again from the ledger at any time, and must then be the same: `rebuild` does it, and a
test compares. What it keeps is bounded by the size of the program, not by the length of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from spak.costs import cost_of
from spak.errors import LedgerError
from spak.guard.people import MOST_QUESTIONS, left_open
from spak.kernel.replay import Replay
from spak.kernel.state import State as KernelState
from spak.policy.facts import is_reference
from spak.ports import Prompt
from spak.records import Kind, Record
from spak.runner.blobs import prompt_of
from spak.runner.views import own_tests, quality
from spak.runner.views.as_recorded import Reading
from spak.runner.views.run_json import view
from spakweb.ground import clock
from spakweb.ground.unsafe_text import without_nul
from spakweb.store.jobs.leases import is_held
from spakweb.store.ledger.blobs import StoredBlobs
from spakweb.store.ledger.writer_sql import PROJECTED
from spakweb.store.runs.models import ENDED, Run, State

POINTS = 200
"""Values of the metric that a sparkline keeps; beyond that every second one goes."""
COUNTED = ("permitted", "denied", "axioms", "held", "scored", "micronats", "failures", "healed", "guided",
           "cost", "answers", "priced")  # fmt: skip


class Projection:
    """What has been seen of a run so far. `data` is JSON."""

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        self.data: dict[str, Any] = {
            "nodes": {},
            "edges": {},
            "slips": {},
            "permitted": 0,
            "denied": 0,
            "axioms": 0,
            "held": 0,
            "scored": 0,
            "micronats": 0,
            "checks": 0,
            "failures": 0,
            "healed": 0,
            "guided": 0,
            "tokens": {},
            "cost": 0,
            "answers": 0,
            "priced": 0,
            "fork": 0,
            "taken": {},
            "own_tests": {},
            "asking": None,
            "questions": [],
            "metric": {"values": [], "every": 1, "seen": 0},
            "clock": {"first": 0, "last": 0},
            **(dict(data) if data else {}),
        }
        self.data["nodes"] = {name: {**_node(), **node} for name, node in self.data["nodes"].items()}
        self.data["tokens"] = {"used": tokens_used(self.data)}

    def feed(self, record: Record) -> None:
        """Take the next record."""
        clock = self.data["clock"]
        clock["first"] = clock["first"] or record.at
        clock["last"] = max(clock["last"], record.at)
        if record.kind == Kind.GENESIS:
            host = record.body.get("host") or {}
            self.data["launcher"] = str(host.get("launcher", ""))[:40]
            self.data["fork"] = count((host.get("parent") or {}).get("at"))
        own_tests.feed(self.data["own_tests"], record)
        self._asks(record)
        for name, number in quality.counted(record).items():
            self.data[name] += number
        if record.authority == "commit" and record.task:
            self._commit(record)
        elif record.authority == "proposal":
            self._spend(record.side, record.task)
            self.data["checks"] += quality.judges(record)
            if record.kind == Kind.ACT and record.task in self.data["nodes"]:
                self.data["nodes"][record.task]["exited"] = count(record.body.get("exit")) > 0
            if record.task in self.data["nodes"]:
                quality.corrected(self.data["nodes"][record.task], record)
        if record.seq < self.data["fork"]:  # taken over: it happened in the run that it was forked from
            self.data["taken"] = {name: self.data[name] for name in COUNTED}
            self.data["taken"]["tokens"] = dict(self.data["tokens"])

    def _asks(self, record: Record) -> None:
        """Keep the open questions of a guarded agent. An id has the record of the call that asked first: a
        session that was resumed numbers them anew."""
        body = record.body
        if record.kind == Kind.PERMIT:
            args = body.get("args") if body.get("name") == "ask_person" else None
            text = args.get("question") if isinstance(args, Mapping) else None
            text = text if isinstance(text, str) or is_reference(text) else None
            self.data["asking"] = {"text": text, "seq": record.seq} if text else None
        elif record.kind == Kind.ACT and (asked := self.data["asking"]) is not None:
            self.data["asking"], number = None, left_open(body)
            now = [one for one in self.data["questions"] if one["text"] == asked["text"]]
            if number and now and now[0]["id"].startswith(f"{number}-"):
                return  # asked again
            kept = [
                one for one in self.data["questions"]
                if one not in now and not (number and one["id"].startswith(f"{number}-"))
            ]  # fmt: skip
            if number:
                place = {"task": record.task, "step": record.step}
                kept.append({"kind": "question", "id": f"{number}-{asked['seq']}", **place, **asked})
            self.data["questions"] = kept[-MOST_QUESTIONS:]

    def _commit(self, record: Record) -> None:
        nodes, body = self.data["nodes"], record.body
        node = nodes.get(record.task)
        if node is None:
            node = nodes[record.task] = _node()
        if record.kind == Kind.PERMIT:
            if node["state"] not in ("running", "waiting"):
                node["visits"] += 1
                node["slipped"] = node["missed"] = False
            node["state"] = "waiting" if body.get("act") == "ask" or body.get("allow") == "ask" else "running"
        elif record.kind == Kind.ROUTE:
            signal, target = str(body.get("signal", "")), str(body.get("to", ""))
            if "poll" not in body:  # a poll that has to be done again is no failure
                self._passed_over(node, record, signal)
            if target.endswith("/"):  # to another task; else to a step of the same one
                node["state"] = "failed" if signal == "fail" else "succeeded"
                key = f"{record.task}|{body.get('by') or signal}|{target[:-1]}"
                self.data["edges"][key] = self.data["edges"].get(key, 0) + 1
                if node["slipped"]:
                    self.data["slips"][key] = self.data["slips"].get(key, 0) + 1
            self._measured(body.get("best"))
        elif record.kind == Kind.END:
            node["state"] = str(body.get("state", ""))
        for name, number in quality.corrected(node, record).items():
            self.data[name] += number

    def _passed_over(self, node: dict[str, Any], record: Record, signal: str) -> None:
        """A step failed, and the run went on with the next one or past the task."""
        onward = quality.is_onward(node, record)
        if onward or record.body.get("code") == quality.VOID:
            self._slipped(node, signal in quality.FAILS, onward)
        elif signal not in quality.FAILS:
            self._slipped(node, node["exited"], True)  # the last step, which was allowed to

    def _slipped(self, node: dict[str, Any], slipped: bool, onward: bool) -> None:
        node["passed_over"] += slipped
        node["missed"] = slipped and onward
        node["slipped"] |= node["missed"]

    def _measured(self, value: object) -> None:
        """The best value so far, each time it is better."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        metric = self.data["metric"]
        if metric["seen"] % metric["every"] == 0:
            metric["values"].append(value)
        metric["seen"] += 1
        if len(metric["values"]) > POINTS:
            metric["values"] = metric["values"][::2]
            metric["every"] *= 2

    def _spend(self, side: Mapping[str, Any], task: str) -> None:
        cost = cost_of(side)
        if not cost.answers:
            return
        node = self.data["nodes"].get(task) or _node()
        self.data["tokens"]["used"] += cost.tokens
        self.data["cost"] += cost.nanousd
        self.data["answers"] += cost.answers
        self.data["priced"] += cost.priced
        node["tokens"] += cost.tokens
        node["cost"] += cost.nanousd


def tokens_used(summary: Mapping[str, Any]) -> int:
    """The tokens of a run, by its summary; an older one has those of prompts and answers apart."""
    found = summary.get("tokens") or {}
    return count(found.get("used")) or count(found.get("input")) + count(found.get("output"))


def _node() -> dict[str, Any]:
    """A task: how it shows, its steps as they were met, and its failures that nothing resolved so far, with
    whether a heuristic was injected and a person answered since; how often a step failed and the next one was
    done all the same, whether one did since the task was entered last, whether the newest one did, whether
    the newest tool did not end with exit 0; and what its model used."""
    node: dict[str, Any] = {"state": "", "visits": 0, "passed_over": 0, "tokens": 0, "cost": 0}
    return {**quality.tried(), **node, "slipped": False, "missed": False, "exited": False}


def node_state(node: Mapping[str, Any]) -> str:
    """A task's state as it is shown: `allowed` if it succeeded though its last attempt failed."""
    state = str(node.get("state", ""))
    return "allowed" if state == "succeeded" and node.get("missed") else state


def spent(node: Mapping[str, Any]) -> list[int]:
    """How often a task was entered, the tokens that it used, their cost in nano-dollars, and how many of its
    steps failed that were allowed to."""
    return [int(node.get(name, 0)) for name in ("visits", "tokens", "cost", "passed_over")]


def edges(data: Mapping[str, Any]) -> list[list[Any]]:
    """The edges taken, `[from, signal, to, times, slips]`: how often, and how often after such a failure."""
    slips = data.get("slips") or {}
    found = (
        [*key.split("|", 2), times, slips.get(key, 0)] for key, times in (data.get("edges") or {}).items()
    )
    return [edge for edge in found if len(edge) == 5]


def save(row: Run, seen: Projection, state: KernelState, stop: str = "", prompt: Any = None) -> None:
    """Write the projected columns, unless a worker took the run meanwhile, who knows better; the ledger's and
    what was asked for stay as they are."""
    put(row, seen, state, stop, prompt)
    Run.objects.filter(pk=row.pk, fence=row.fence).update(**{name: getattr(row, name) for name in PROJECTED})


def put(row: Run, seen: Projection, state: KernelState, stop: str = "", prompt: Any = None) -> None:
    """Set the projected columns of the row, without writing them."""
    shown = view(row.key, state, row.head, row.count, stop, prompt)
    row.state = State(shown.state) if shown.state != "running" or stop != "gone" else State.QUEUED
    if row.state == State.WAITING and not stop:  # a worker is at it: the backend is asked, no person
        row.state = State.RUNNING
    if row.only_shown and row.state not in ENDED and not row.agent:
        row.state = State.PAUSED
    row.task = without_nul(shown.task[:120])
    row.reason = without_nul(_reason(shown.refusal)[:200])
    clock = seen.data["clock"]
    row.started_at = _moment(clock["first"])
    row.ended_at = _moment(clock["last"]) if row.state in ENDED else None
    summary = {
        **seen.data,
        "steps": state.r1.steps,
        "elapsed_ms": state.r1.elapsed_ms,
        "metrics": {name: value for name, value in shown.metrics.items() if _small(value)},
        "artifacts": list(shown.artifacts),
        "by_own_tests": own_tests.known(seen.data["own_tests"]) if row.state == State.SUCCEEDED else (),
        "waiting": shown.waiting,
        "refusal": shown.refusal,
        "summary_hash": shown.summary_hash,
        "registers": shown.registers,
    }
    row.summary = without_nul(summary)
    row.projected = row.count


def rebuild(row: Run, records: Any) -> None:
    """The same from nothing but the ledger. `records` are the run's, from the first.

    A run that nobody holds and that has not ended is waiting, or queued to go on.
    """
    seen, replay = Projection(), Reading()
    for record, _ in records:
        replay.feed(record)
        seen.feed(record)
    stop = "gone" if not _held(row) and row.state != State.PAUSED else "paused"
    stop = "" if row.agent else stop
    save(row, seen, replay.state, stop, _question(row, replay))


def _question(row: Run, replay: Replay) -> Prompt | None:
    """The prompt that the run waits with, derived again; None when a part of it is missing."""
    effect = replay.state.r6
    if replay.state.ended or effect is None or effect.cls != "ask" or replay.rules is None:
        return None
    try:
        return prompt_of(effect, StoredBlobs(row.pk), replay.rules)
    except LedgerError:
        return None


def _held(row: Run) -> bool:
    return is_held(row.holder, row.lease_until, clock.now())


def _reason(refusal: Mapping[str, Any] | None) -> str:
    if not refusal:
        return ""
    codes = refusal.get("codes") or []
    return ", ".join(str(code) for code in codes)


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def count(value: object) -> int:
    """A number that counts something; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _small(value: object) -> bool:
    return not isinstance(value, str | list | dict) or len(str(value)) <= 500
