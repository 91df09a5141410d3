"""A policy over a file of events: each request answered, as if a run had asked.

Takes a policy and JSON lines; gives a Verdict for each request. A line is one event:

    {"at": "2026-01-05T09:00:00Z", "kind": "request", "id": "a", "action": "transfer",
     "input": {"to": "B", "amount": 4000}, "expect": "deny"}
    {"at": "2026-01-05T09:00:02Z", "kind": "response", "id": "a", "output": {"status": "ok"}}

`kind` is `request` (the default), `response` or `error`; `at` is a date in UTC or a number of milliseconds,
by default the time of the line before; `id` is what pairs an answer with its call, by default the oldest call
under way of that action. `expect` says what a test wants. `{"case": "NAME"}` begins a new case. What a run
would know of a request besides is given with it: `act` (one of ACTS, `tool` by default),
`signed` (who approved it), `missing` (its paths that do not exist), `checks` (what checks found).
It carries nothing out; a request that is permitted is under way until a line answers it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from spak import canon
from spak.datalog import Fact, Name, Policy, Session
from spak.datalog.errors import PolicyError
from spak.errors import UsageError, UserError
from spak.policy.actions import Action, Seen, World
from spak.policy.facts import ACTION, facts
from spak.policy.history import state
from spak.policy.history.deciding import Past, answers, fed, feeding, folds_of, past, results
from spak.policy.history.state import History
from spak.policy.judge import Decision, decide, denied
from spak.policy.textual import decided
from spak.policy.toolfacts import text

KINDS = ("request", "response", "error")
EXPECT = ("allow", "deny")
MAX_LINE = 1 << 20
ACTS = ("tool", "ask", "plan", "check", "validate")
_ABOUT = {"act", "signed", "missing", "checks"}
_MEMBERS = {"at", "kind", "id", "action", "input", "output", "expect", "case", *_ABOUT}
_EARLIEST, _LATEST = 0, 2**53

BLIND = World(lambda path: decided(path) or Seen("inside", path), lambda pattern: (), None)
"""A workspace that nobody looks into: what a path's text does not decide lies inside."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line, read."""

    line: int
    case: str = ""
    """The name of the case that begins here; the line has no other member."""
    at: int | None = None
    kind: str = "request"
    id: str = ""
    action: str = ""
    input: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None
    expect: str = ""
    act: str = "tool"
    signed: str = ""
    missing: tuple[str, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one request."""

    event: Event
    case: str
    decision: Decision
    past: tuple[Past, ...]

    @property
    def expected(self) -> bool:
        """Whether the decision is the one that the trace expects, if it expects one."""
        return self.event.expect in ("", self.decision.decision)

    def to_json(self) -> dict[str, Any]:
        """The verdict as commands print it."""
        found: dict[str, Any] = {"line": self.event.line, "action": self.event.action}
        if self.case:
            found["case"] = self.case
        if self.event.expect:
            found |= {"expect": self.event.expect, "ok": self.expected}
        return found | self.decision.to_json() | {"past": [item.to_json() for item in self.past]}


class Trace:
    """A policy and what has happened under it so far."""

    def __init__(
        self, policy: Policy, declared: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    ) -> None:
        """`declared` has what the arguments of tools are, where their entries say (`ToolEntry.arguments`)."""
        self.policy, self._world = policy, replace(BLIND, declared=declared)
        self.folds = folds_of(policy)
        self._feeding = feeding(policy)
        self.history = History()
        self.case = ""
        self._waiting: dict[str, Event] = {}
        self._denied: dict[str, str] = {}

    def run(self, events: Iterable[Event]) -> Iterator[Verdict]:
        """The verdicts, in order. Raises: UsageError `policy.events` for an answer to no call."""
        for event in events:
            if event.case:
                self.history, self.case, self._waiting, self._denied = History(), event.case, {}, {}
            elif event.kind == "request":
                yield self.request(event)
            else:
                self.answer(event)

    def request(self, event: Event) -> Verdict:
        """Judge a call after all that happened before it."""
        self.history = state.begin(self.history, self.history.now if event.at is None else event.at)
        seen: tuple[Past, ...] = ()
        rows: state.Fed = ()
        try:
            known = self._facts(event)
            session = self._session(known)
            seen = tuple(past(self.folds, self.history, session))
            decision = _reasoned(decide(self.policy, known, True, session), seen)
            rows = fed(self.folds, session)
        except UserError as error:
            decision = denied(error.code, error.message, error.hint)
        allow = decision.decision == "allow"
        call = event.id or f"line {event.line}"
        if allow and call in self._waiting:
            raise _bad(event.line, f"a call named {call} is under way already")
        self.history, trouble = state.requested(
            self.folds, self.history, call, rows, allow=allow, record=event.line
        )
        if trouble:
            decision = denied("policy.limit", trouble, "declare more keys or entries, or a shorter window")
        elif allow:
            self._waiting[call] = event
        if decision.decision != "allow":
            self._denied[call] = event.action
        return Verdict(event, self.case, decision, seen)

    def answer(self, event: Event) -> None:
        """Take the result of a call into the history. Raises: UsageError where no call waits for it."""
        call = event.id or next(
            (name for name, asked in self._waiting.items() if asked.action == event.action), ""
        )
        asked = self._waiting.pop(call, None)
        if asked is None:
            if event.id in self._denied or event.action in self._denied.values():
                return  # of a call that never was: whoever wrote the trace expected another answer
            raise _bad(event.line, f"no call of {event.id or event.action or 'this action'} is under way")
        done = event.kind == "response"
        rows: state.Fed = ()
        if done and self._feeding is not None:
            known = [*self._facts(asked), *results(event.output or {})]
            rows = fed(self.folds, self._feeding.session(known))
        at = self.history.now if event.at is None else event.at
        self.history = state.settled(
            self.folds, self.history, call, at, done=done, record=event.line, fed=rows
        )

    def _facts(self, event: Event) -> list[Fact]:
        """The facts of a request in a run whose sandbox holds every tool."""
        known: list[Fact] = [("event", (ACTION,))] if self.folds else []
        known += [("act", (ACTION, Name(f"/{event.act}"))), ("sandboxed", (ACTION, Name("/restricted")))]
        known += [("missing_path", (ACTION, text(path))) for path in event.missing]
        known += [("checks_ran", (name, Name(f"/{signal}"))) for name, signal in event.checks]
        known += [("signed_approval", (ACTION, event.signed))] if event.signed else []
        if event.act == "validate":
            known.append(("validator", (ACTION, event.action)))
        known = [fact for fact in known if (fact[0], len(fact[1])) in self.policy.predicates]
        if event.act != "tool":
            return known
        return [*known, *facts(Action(event.action, event.input or {}), self._world)]

    def _session(self, known: list[Fact]) -> Session:
        session = self.policy.session([*known, *state.rows(self.folds, self.history)])
        while requests := session.requests():
            for request in requests:
                rows = answers(self.folds, self.history, request)
                if rows is None:
                    message = f"{request} asks the world, and a file of events has none"
                    raise PolicyError("policy.incomplete", message, "leave out what is external")
                session.supply(request, rows)
        return session


def _reasoned(decision: Decision, seen: tuple[Past, ...]) -> Decision:
    """The decision with what the past had to do with a denial in its reason."""
    if decision.decision == "allow":
        return decision
    forbidden = decision.code == "policy.forbidden"
    reasons = canon.dumps(decision.why_not).decode()
    about = [item.text for item in seen if item.holds == forbidden and f"{item.fold}(" in reasons]
    return replace(decision, reason="; ".join([decision.reason, *about[:3]]))


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events of JSON lines but empty ones. Raises: UsageError `policy.events` with the line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _event(number, line)


def _event(number: int, line: str) -> Event:
    if len(line) > MAX_LINE:
        raise _bad(number, f"more than {MAX_LINE} characters")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(number, "no JSON") from error
    if not isinstance(found, dict):
        raise _bad(number, "no JSON object")
    if odd := sorted(found.keys() - _MEMBERS):
        raise _bad(number, f"no event has a member {odd[0][:40]!a}: known are {', '.join(sorted(_MEMBERS))}")
    if "case" in found:
        if len(found) > 1 or not isinstance(found["case"], str) or not found["case"]:
            raise _bad(number, "a case is a name alone")
        return Event(number, case=found["case"])
    kind = found.get("kind", "request")
    if kind not in KINDS:
        raise _bad(number, f"a kind is one of {', '.join(KINDS)}")
    for name in ("id", "action", "expect", "act", "signed"):
        if not isinstance(found.get(name, ""), str):
            raise _bad(number, f"{name} is a string")
    about = _ABOUT & found.keys()
    if about and kind != "request":
        raise _bad(number, f"{min(about)} belongs to a request")
    missing, checks = found.get("missing", []), found.get("checks", {})
    if not isinstance(missing, list) or not all(isinstance(path, str) for path in missing):
        raise _bad(number, "missing is a list of paths")
    if not isinstance(checks, dict) or not all(_is_signal(signal) for signal in checks.values()):
        raise _bad(number, "checks name validators with success, fail or timeout")
    if found.get("act", "tool") not in ACTS:
        raise _bad(number, f"an act is one of {', '.join(ACTS)}")
    for name in ("input", "output"):
        if not isinstance(found.get(name, {}), dict):
            raise _bad(number, f"{name} is an object")
    if kind == "request" and not found.get("action"):
        raise _bad(number, "a request names its action")
    if kind != "request" and not (found.get("id") or found.get("action")):
        raise _bad(number, "an answer names its call, by id or by action")
    if "expect" in found and (kind != "request" or found["expect"] not in EXPECT):
        raise _bad(number, "a request expects allow or deny")
    return Event(
        number,
        at=_time(number, found["at"]) if "at" in found else None,
        kind=kind,
        id=found.get("id", ""),
        action=found.get("action", ""),
        input=found.get("input"),
        output=found.get("output"),
        expect=found.get("expect", ""),
        act=found.get("act", "tool"),
        signed=found.get("signed", ""),
        missing=tuple(missing),
        checks=tuple(checks.items()),
    )


def _is_signal(signal: Any) -> bool:
    return signal in ("success", "fail", "timeout", "metric_improved", "plateau")


def _time(number: int, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and _EARLIEST <= value <= _LATEST:
        return value
    try:
        found = datetime.fromisoformat(value)
        at = round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad(number, "at is a date such as 2026-01-05T09:00:00Z, or milliseconds since 1970") from error
    if not _EARLIEST <= at <= _LATEST:
        raise _bad(number, "at is before 1970")
    return at


def _bad(number: int, message: str) -> UsageError:
    return UsageError("policy.events", f"line {number}: {message}", "see docs/history.md")
