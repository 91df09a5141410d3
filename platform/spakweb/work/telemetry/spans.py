"""A run as spans: a tree of what took time, folded from its records, with the GenAI conventions' names.

Takes records in order; gives Spans: the run (`invoke_agent`), each visit of a task, each attempt of a step
(`chat` of a model, `execute_tool`, a check, a question to a person). Ids are made from the hash of the first
record and the places of records, so that the same ledger gives the same spans wherever and whenever it is
read: after a replay, an import, or twice. No prompt, answer, argument, output or path is in a span.
Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spak.costs import cost_of
from spak.records import Authority, Kind, Record

LONGEST = 120
"""Characters of a name or a value."""
FAILED = frozenset({"failed", "refused", "cancelled"})
Value = str | int | float | bool | tuple[str, ...]


@dataclass(slots=True)
class Span:
    """What took time. Times are nanoseconds since 1970; `error` is a code, empty for what went well."""

    id: int
    parent: int
    name: str
    begun_ns: int
    ended_ns: int
    attributes: dict[str, Value] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """All spans of a run, its own first."""

    id: int
    spans: tuple[Span, ...]


def of(records: Iterable[Record]) -> Trace | None:
    """The spans of a run; None for a ledger without records."""
    fold: _Fold | None = None
    for record in records:
        if fold is None:
            fold = _Fold(record)
        else:
            fold.feed(record)
    return None if fold is None else fold.trace()


class _Fold:
    """What has been seen so far: the run, the task that is visited, the step that is attempted."""

    def __init__(self, first: Record) -> None:
        self._seed = first.hash
        host = first.body.get("host")
        host = host if isinstance(host, Mapping) else {}
        name = _word(host.get("spec"))
        self.id = (
            int.from_bytes(hashlib.sha256(f"spak trace {self._seed}".encode()).digest()[:16], "big") or 1
        )
        about: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.conversation.id": _word(host.get("run")),
            "spak.mode": _word(host.get("mode")),
        }
        self._run = self._span(first, 0, f"invoke_agent {name}".strip(), about)
        self._provider = _word(host.get("backend"))
        self._task: Span | None = None
        self._in = ""
        self._step: Span | None = None
        self._spans = [self._run]
        self._input = self._output = 0
        self._end = first.at

    def feed(self, record: Record) -> None:
        """Take the next record."""
        self._end = max(self._end, record.at)
        if record.kind == Kind.PERMIT:
            self._begin(record)
        elif record.kind in (Kind.ACT, Kind.PLAN) and record.authority == Authority.PROPOSAL:
            self._answered(record)
        elif record.kind == Kind.ROUTE:
            self._routed(record)
        elif record.kind == Kind.END:
            self._ended(record)

    def trace(self) -> Trace:
        """All spans; what has not ended ends with the last record."""
        for span in (self._step, self._task, self._run):
            if span is not None:
                span.ended_ns = max(span.ended_ns, _ns(self._end))
        self._run.attributes |= {
            "gen_ai.usage.input_tokens": self._input,
            "gen_ai.usage.output_tokens": self._output,
        }
        return Trace(self.id, tuple(self._spans))

    def _begin(self, record: Record) -> None:
        if self._task is None or self._in != record.task:
            self._close(self._task, record)
            self._in = record.task
            name = _word(record.task)
            self._task = self._span(record, self._run.id, f"task {name}", {"spak.task": name}, "task")
            self._spans.append(self._task)
        body = record.body
        name, about = _kind(body, record.step)
        about |= {"spak.task": _word(record.task), "spak.step": _word(record.step)}
        about |= {"spak.attempt": record.attempt, "spak.seq": record.seq}
        self._close(self._step, record)
        self._step = self._span(record, self._task.id, name, about)
        self._spans.append(self._step)
        if body.get("allow") is False:
            self._step.error = _word(body.get("code")) or "denied"

    def _answered(self, record: Record) -> None:
        step = self._step
        if step is None:
            return
        side, body = record.side, record.body
        cost = cost_of(side)
        usage = side.get("usage")
        if cost.answers or isinstance(usage, Mapping):
            usage = usage if isinstance(usage, Mapping) else {}
            used = {name: _count(usage.get(name)) for name in ("input", "output")}
            self._input += used["input"]
            self._output += used["output"]
            model = _word(side.get("by"))
            step.attributes |= {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._provider or "unknown",
                "gen_ai.usage.input_tokens": used["input"],
                "gen_ai.usage.output_tokens": used["output"],
            }
            if model:
                step.name = f"chat {model}"
                step.attributes |= {"gen_ai.request.model": model, "gen_ai.response.model": model}
            if finish := _word(side.get("finish")):
                step.attributes["gen_ai.response.finish_reasons"] = (finish,)
            if cost.priced:
                step.attributes["spak.cost_nanousd"] = cost.nanousd
        if type(body.get("exit")) is int:
            step.attributes["process.exit.code"] = body["exit"]
        step.ended_ns = max(step.ended_ns, _ns(record.at))

    def _routed(self, record: Record) -> None:
        self._close(self._step, record)
        signal = _word(record.body.get("signal"))
        if self._step is not None:
            self._step.attributes["spak.signal"] = signal
            if signal in ("fail", "timeout") and not self._step.error:
                self._step.error = _word(record.body.get("code")) or signal
        self._step = None
        if str(record.body.get("to", "")).endswith("/"):
            if self._task is not None:
                self._task.attributes["spak.signal"] = signal
                self._task.error = signal if signal in ("fail", "timeout") else ""
            self._close(self._task, record)
            self._task, self._in = None, ""

    def _ended(self, record: Record) -> None:
        state = _word(record.body.get("state"))
        codes = record.body.get("codes")
        code = _word(codes[0]) if isinstance(codes, list | tuple) and codes else state
        self._run.attributes["spak.state"] = state
        for span in (self._step, self._task, self._run):
            self._close(span, record)
            if span is not None and state in FAILED:
                span.error = span.error or code
        self._step = self._task = None

    def _close(self, span: Span | None, record: Record) -> None:
        if span is not None:
            span.ended_ns = max(span.ended_ns, _ns(record.at))

    def _span(
        self, record: Record, parent: int, name: str, about: Mapping[str, Value], kind: str = ""
    ) -> Span:
        key = f"spak span {self._seed} {record.seq} {kind}"
        found = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") or 1
        at = _ns(record.at)
        kept = {name: value for name, value in about.items() if value != ""}
        return Span(found, parent, name, at, at, kept)


def _kind(body: Mapping[str, Any], step: str) -> tuple[str, dict[str, Value]]:
    """What an action is called, and what is said of it."""
    act, name = _word(body.get("act")), _word(body.get("name"))
    if act == "tool":
        return f"execute_tool {name}", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if act in ("ask", "plan"):
        return f"{act} {_word(step)}", {}
    return f"{act or 'step'} {_word(step)}".strip(), {}


def _ns(at: int) -> int:
    return at * 1_000_000


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _word(value: object) -> str:
    """A name as it may stand in a span: one line, printable, not long."""
    text = value if isinstance(value, str) else ""
    return "".join(sign if sign.isprintable() else " " for sign in text[:LONGEST]).strip()
