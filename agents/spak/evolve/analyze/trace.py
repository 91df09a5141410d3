"""A ledger as deeds and visits: what was done with what result, and how each attempt at a task came out.

Takes records in order; gives a Trace. A deed is one permit with what came back and the route that followed; a
visit is the time in a task until the run leaves it, its own edge back to itself included. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.costs import cost_of
from spak.errors import LedgerError, OuterError, SpecError
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.records import Authority, Kind, Record


@dataclass(slots=True)
class Deed:
    """One permitted (or denied) action. `result` names what came back; `before` and `after` are R3."""

    seq: int
    task: str
    step: str
    act: str
    name: str
    action: str
    before: str
    allowed: bool = True
    result: str = ""
    after: str = ""
    outcome: str = ""
    exit: int = 0
    out: object = ""
    ms: int = 0
    tokens: int = 0
    code: str = ""
    signal: str = ""
    polled: bool = False
    prompt: str = ""
    checks_ok: bool | None = None
    written: object = None
    """The arguments of a call, where later texts may be taken from what was read."""
    end: int = -1

    @property
    def failed(self) -> bool:
        """Whether it ended other than it should, or with an exit that is not 0."""
        return bool(self.outcome) and (
            self.outcome not in ("exited", "answered", "planned") or self.exit != 0
        )


@dataclass(slots=True)
class Visit:
    """An attempt at a task: how it ended (`signal`, `code`, the task it led to) and what was injected."""

    task: str
    first: int
    last: int = -1
    signal: str = ""
    code: str = ""
    to: str = ""
    fired: tuple[int, ...] = ()
    ms: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Trace:
    """A recorded run as the finders read it."""

    run: str
    rules: Rules
    text: str
    records: int = 0
    deeds: list[Deed] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    state: str = ""
    codes: tuple[str, ...] = ()
    last: int = -1

    @property
    def spec(self) -> str:
        """The hash of the run's spec."""
        return canon.digest(self.text.encode())


def read(records: Iterable[Record], run: str = "") -> Trace:
    """The trace of a ledger. Raises: OuterError `outer.empty` when nothing happened in it; LedgerError."""
    reading: _Reading | None = None
    for record in records:
        if reading is None:
            try:
                reading = _Reading(run, record)
            except SpecError as error:
                raise LedgerError("ledger.genesis", f"its spec does not compile: {error.message}") from error
        else:
            reading.take(record)
    if reading is None or not reading.trace.deeds:
        raise OuterError(
            "outer.empty",
            f"the trace {run or 'given'} holds no action, so nothing follows from it",
            "run it first",
        )
    reading.finish()
    return reading.trace


def prompts_of(records: Iterable[Record]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The items of each prompt by its hash. They are in no record: a replay makes them again."""
    made: dict[str, Sequence[Mapping[str, Any]]] = {}
    replay = Replay()
    for record in records:
        replay.feed(record)
        pending = replay.state.r6
        if pending is not None and pending.items:
            made[str(pending.args.get("prompt", ""))] = pending.items
    return made


class _Reading:
    def __init__(self, run: str, genesis: Record) -> None:
        rules = Rules.of(genesis.body)
        self.trace = Trace(run, rules, str(genesis.body["rules"]["spec"]), 1)
        self.root = rules.r3
        self.deed: Deed | None = None
        self.visit: Visit | None = None

    def take(self, record: Record) -> None:
        self.trace.records += 1
        if record.authority == Authority.HOST:
            return
        match record.kind:
            case Kind.PERMIT:
                self.permit(record)
            case Kind.ACT | Kind.PLAN:
                self.act(record)
            case Kind.SELECT:
                if self.deed is not None and record.body.get("i") == -1:
                    self.deed.outcome = "rejected"
            case Kind.INJECT:
                visit = self.entered(record)
                visit.fired = (*visit.fired, int(record.body["heuristic"]))
            case Kind.OBSERVE | Kind.CONTEXT:
                if self.deed is not None and record.kind == Kind.CONTEXT:
                    self.deed.tokens += int(record.body.get("tokens", 0) or 0)
            case Kind.ROUTE:
                self.route(record)
            case Kind.END:
                self.trace.state = str(record.body.get("state", ""))
                self.trace.codes = tuple(record.body.get("codes", ()))
                self.trace.last = record.seq

    def entered(self, record: Record) -> Visit:
        if self.visit is None or (self.visit.task != record.task and record.task):
            self.leave(record.seq, "", "", record.task)
            self.visit = Visit(record.task, record.seq)
        return self.visit

    def permit(self, record: Record) -> None:
        body, args = record.body, record.body.get("args")
        self.entered(record)
        prompt = (
            str(args.get("prompt", ""))
            if isinstance(args, dict) and body.get("act") in ("ask", "plan")
            else ""
        )
        self.deed = Deed(
            record.seq, record.task, record.step, str(body.get("act")), str(body.get("name")),
            canon.content_hash([body.get("act"), body.get("name"), args]), self.root,
            allowed=body.get("allow") is True, prompt=prompt, written=args, end=record.seq,
        )  # fmt: skip
        if not self.deed.allowed:
            self.deed.code = str(body.get("code", ""))
        self.trace.deeds.append(self.deed)

    def act(self, record: Record) -> None:
        deed, body = self.deed, record.body
        if deed is None:
            return
        deed.end = record.seq
        deed.outcome = "planned" if record.kind == Kind.PLAN else str(body.get("outcome", "exited"))
        deed.exit = body.get("exit", 0) if type(body.get("exit", 0)) is int else 1
        deed.out = body.get("out", "")
        if record.kind == Kind.PLAN:
            deed.written = body.get("candidates")
        deed.result = canon.content_hash({name: body[name] for name in body.keys() - {"of", "r3"}})
        root = body.get("r3")
        deed.after = root if isinstance(root, str) else deed.before
        deed.ms += int(record.side.get("ms", 0) or 0)
        if cost := cost_of(record.side).tokens:
            deed.tokens = cost
        checks = body.get("checks")
        if isinstance(checks, list) and checks:
            deed.checks_ok = all(item.get("ok") is True for item in checks)
        if self.visit is not None:
            self.visit.ms += deed.ms
            self.visit.tokens += deed.tokens

    def route(self, record: Record) -> None:
        body = record.body
        root = body.get("r3")
        if isinstance(root, str):
            self.root = root
        if self.deed is not None:
            self.deed.signal, self.deed.code = str(body.get("signal", "")), str(body.get("code", ""))
            self.deed.polled = "poll" in body
        to = body.get("to")
        if not isinstance(to, str) or to.endswith("/"):
            target = to[:-1] if isinstance(to, str) else ""
            self.entered(record)
            trigger = body.get("by") or body.get("signal", "")
            self.leave(record.seq, str(trigger), str(body.get("code", "")), target)
        self.deed = None

    def leave(self, seq: int, signal: str, code: str, to: str) -> None:
        visit, self.visit = self.visit, None
        if visit is not None:
            visit.last, visit.signal, visit.code, visit.to = seq, signal, code, to
            self.trace.visits.append(visit)

    def finish(self) -> None:
        if self.visit is not None:
            self.leave(self.visit.first, "", "", "")
