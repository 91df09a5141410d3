"""Trials: what became of each candidate of each task, read off the records as they pass.

A generator that is not a model needs its past; the State does not hold it, since it grows with the run. When
a run is taken up from a snapshot, `kept` brings back what does not grow, and the records before it are read
(not replayed) when somebody asks for what does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from spak.kernel.metric.decision import is_win
from spak.ports import Trial
from spak.program import MetricRule, Program
from spak.records import Authority, Kind, Record
from spak.runner.origins import Origins
from spak.runner.repeats import OtherPrompts

COMMITS = "git_commit"
MAX_OUTPUT = 600
"""Characters of what a candidate's last tool or validator printed that are kept."""


@dataclass(slots=True)
class Attempted:
    """One line of the table of candidates."""

    task: str
    number: int
    tool: str
    args: Mapping[str, Any]
    params: Mapping[str, Any]
    outcome: str = ""
    """`improved`, `measured`, `static` (only evidence was taken), `done` (nothing measures) or `fail`."""
    code: str = ""
    value: float | None = None
    """Its metric; None where nothing was measured."""
    ratio: float | None = None
    """To the best of its time: the median over pairs of measurements in turn, on which the rule decides.
    Values of two candidates were measured at different times and decide nothing."""
    wins: int = 0
    """Pairs in which it was better by the rule's margin, of so many `pairs`."""
    pairs: int = 0
    spread_ppm: int | None = None
    seq: int = -1
    unit: str = "ms"
    """The unit in which people read the metric, and how many of the metric's own make one."""
    per_unit: int = 1_000_000
    bound: float | None = None
    """What the machine's measured peak allows at best (the roofline), in the metric's own unit."""
    measured: int = -1
    """The record of its measurement, -1 where there is none."""
    source: str = ""
    """The blob of its source as it was measured; empty where the validator keeps none."""
    said: str = ""
    """The end of what the last tool or validator that ran for it found wrong or printed."""

    @property
    def bound_shown(self) -> float | None:
        """The bound in its unit."""
        return None if self.bound is None else self.bound / self.per_unit

    @property
    def roof_percent(self) -> float | None:
        """How much of the roofline it reaches; None where nothing was measured or there is no roofline."""
        return 100 * self.bound / self.value if self.bound and self.value else None

    @property
    def shown(self) -> float | None:
        """The metric in its unit."""
        return None if self.value is None else self.value / self.per_unit

    def trial(self) -> Trial:
        """The attempt as proposers see it."""
        outcome: Literal["improved", "measured", "fail"] = "fail"
        if self.outcome in ("improved", "measured", "done"):
            outcome = "improved" if self.outcome == "improved" else "measured"
        output = self.said if outcome == "fail" else ""
        return Trial(self.args, self.params, outcome, self.value, self.ratio, self.code, output)


@dataclass(slots=True)
class History:
    """Feed it every record of the run in order."""

    rows: list[Attempted] = field(default_factory=list)
    """Those since the snapshot that the run was taken up from; all of them where there was none."""
    rules: Mapping[str, MetricRule] = field(default_factory=dict)
    """Those of the tasks that have one (`rules_of`)."""
    origins: Origins = field(default_factory=lambda: Origins(""))
    output: Any = ""
    """What the last tool wrote that was not rolled back: a text, or a reference to a long one."""
    others: OtherPrompts = field(default_factory=OtherPrompts)
    committed: str = ""
    """The call that made the last commit of the run, which was not rolled back."""
    refused: list[tuple[int, str, Trial]] = field(default_factory=list)
    """Answers of models that were no plan: record, task, and the trial that they count as. As `rows`, those
    since the snapshot."""
    _given: list[Mapping[str, Any]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    """By task: the number of its last row."""
    _called: bool = False
    _commits: bool = False
    _commit: str = ""
    _planning: bool = False
    _written: Any = None
    _plan: Mapping[str, Any] | None = None
    _open: Attempted | None = None
    _measured: Mapping[str, Any] | None = None
    _skipped: bool = False
    """Whether answers of a recording are among the records before the snapshot."""
    _earlier: Callable[[], Iterable[Record]] | None = None
    _before: History | None = None

    @classmethod
    def take_up(
        cls,
        rules: Mapping[str, MetricRule],
        kept: Mapping[str, Any],
        earlier: Callable[[], Iterable[Record]],
    ) -> History:
        """The history after the records of `earlier`, from what `kept` gave then.

        Raises: KeyError, TypeError when that is something else.
        """
        made = cls(rules=rules, origins=Origins.take_up(kept["origins"]))
        made._numbers = dict(kept["numbers"])
        made._open = None if kept["open"] is None else Attempted(**kept["open"])
        made._measured = kept["measured"]
        made._skipped = bool(kept["given"])
        made.output, made._called, made._written = kept["output"], kept["called"], kept["written"]
        made._planning = kept["planning"]
        made.committed, made._commits, made._commit = kept["committed"]
        made.others = OtherPrompts(**kept["others"])
        made._earlier = earlier
        made.origins.before = lambda: made._all().origins
        return made

    def kept(self) -> dict[str, Any]:
        """What a snapshot holds: all that later rows depend on and that does not grow with the run."""
        return {
            "called": self._called,
            "committed": [self.committed, self._commits, self._commit],
            "given": self._skipped or bool(self._given),
            "measured": self._measured,
            "numbers": self._numbers,
            "open": None if self._open is None else asdict(self._open),
            "origins": self.origins.kept(),
            "others": asdict(self.others),
            "output": self.output,
            "planning": self._planning,
            "written": self._written,
        }

    def metric(self, task: str) -> str:
        """The name of the metric that a task's rule compares; empty where there is none."""
        rule = self.rules.get(task)
        return "" if rule is None else rule.metric

    @property
    def chosen(self) -> bool:
        """Whether a plan chose what runs now: a candidate, of which no row says yet how it ended."""
        return self._open is not None

    @property
    def given(self) -> tuple[Mapping[str, Any], ...]:
        """The answers that came from a recording, as `Answer.recorded` names them."""
        return (*self._all()._given, *self._given) if self._skipped else tuple(self._given)

    def of(self, task: str) -> Sequence[Trial]:
        """The trials of a task, oldest first, with those that the run began with."""
        parts = [self._all(), self] if self._earlier is not None else [self]
        found = [(row.seq, row.trial()) for part in parts for row in part.rows if row.task == task]
        found += [(seq, trial) for part in parts for seq, of, trial in part.refused if of == task]
        return [trial for _, trial in sorted(found, key=lambda item: item[0])]

    def table(self) -> list[Attempted]:
        """The rows of the whole run; the records before the snapshot are read only if there were any."""
        earlier = self._all().rows if self._numbers and self._earlier is not None else []
        return [*earlier, *self.rows]

    def _all(self) -> History:
        """The history of the records before the snapshot, read when it is first needed."""
        if self._before is None:
            self._before = History(rules=self.rules)
            for record in self._earlier() if self._earlier is not None else ():
                if record.kind == Kind.GENESIS:
                    self._before.origins = Origins(record.body["rules"]["r3"])
                self._before.feed(record)
        return self._before

    def feed(self, record: Record) -> None:
        """Take the next record."""
        if record.authority == Authority.PROPOSAL and isinstance(noted := record.side.get("recorded"), dict):
            self._given.append(noted)
        self.others.feed(record)
        self.origins.feed(record)
        self._hear(record)
        match record.kind:
            case Kind.PLAN:
                self._plan = record.body
            case Kind.SELECT:
                self._select(record)
            case Kind.ACT if record.body.get("outcome") == "malformed" and self._planning:
                trial = Trial(
                    {}, {}, "refused", code=str(record.body.get("code", "")), said=_refusal(record.body)
                )
                self.refused.append((record.seq, record.task, trial))
            case Kind.ACT:
                if "status" in record.body:
                    self._measured = record.body
                if self._open is not None:
                    self._open.measured = record.seq if "status" in record.body else self._open.measured
                    self._open.said = _output(record)
            case Kind.ROUTE:
                self._route(record)

    def _hear(self, record: Record) -> None:
        """Keep what a tool wrote, once the kernel has committed its result."""
        if record.kind == Kind.PERMIT:
            self._called = record.body.get("act") == "tool" and record.body.get("allow") is True
            self._planning = record.body.get("act") == "plan" and record.body.get("allow") is True
            self._commits = self._called and record.body.get("name") == COMMITS
        elif record.kind == Kind.ACT:
            exited = self._called and record.body.get("outcome") == "exited"
            self._written = record.body.get("out", "") if exited else None
            done = exited and self._commits and record.body.get("exit") == 0
            self._commit = str(record.body.get("of", "")) if done else ""
        elif record.authority == Authority.COMMIT and self._written is not None:
            self.output = self.output if record.body.get("txn") == "rollback" else self._written
            self._written = None
            if self._commit and record.body.get("txn") != "rollback":
                self.committed = self._commit
            self._commit = ""

    def _select(self, record: Record) -> None:
        index = record.body.get("i", -1)
        candidates = (self._plan or {}).get("candidates")
        if not isinstance(candidates, list) or not 0 <= index < len(candidates):
            return
        chosen = candidates[index]
        args = chosen.get("args", {})
        params = chosen.get("params") or args.get("params") or {}
        number = self._numbers.get(record.task, 0) + 1
        self._open = Attempted(record.task, number, chosen["tool"], args, params, seq=record.seq)
        self._measured = None

    def _route(self, record: Record) -> None:
        row, body = self._open, record.body
        if row is None or record.task != row.task:
            return
        target = str(body.get("to", "/"))
        signal = body.get("signal")
        failed = signal in ("fail", "timeout") or (signal == "plateau" and bool(body.get("code")))
        if not target.endswith("/") and not failed:
            return
        row.code = str(body.get("code", ""))
        if failed:
            row.outcome = "fail"
        else:
            row.outcome = "improved" if "best" in body else "done" if self._measured is None else "measured"
        if self._measured is not None:
            self._read(row, self._measured)
        self.rows.append(row)
        self._numbers[row.task] = row.number
        self._open = None

    def _read(self, row: Attempted, body: Mapping[str, Any]) -> None:
        metrics = body.get("metrics") or {}
        value = metrics.get(self.metric(row.task))
        row.value = float(value) if isinstance(value, (int, float)) else None
        if isinstance(metrics.get("per_unit"), int) and metrics["per_unit"] > 0:
            row.per_unit, row.unit = metrics["per_unit"], _unit(body)
        row.source = source_of(body)
        if self.metric(row.task).endswith("_ns"):
            row.bound = _bound(body)
        spread = metrics.get("spread_ppm")
        row.spread_ppm = spread if isinstance(spread, int) else None
        self._compare(row, body)
        if row.value is None and row.outcome == "measured":
            row.outcome = "static" if body.get("status") == "static" else row.outcome

    def _compare(self, row: Attempted, body: Mapping[str, Any]) -> None:
        rule = self.rules.get(row.task)
        if rule is None:
            return
        higher = rule.better == "higher"
        best = max if higher else min
        found = [
            (best(pair["candidate"]), best(pair["incumbent"]))
            for pair in body.get("pairs") or ()
            if pair.get("rival", "incumbent") == "incumbent"
            and pair.get("candidate")
            and pair.get("incumbent")
        ]
        row.pairs = len(found)
        row.wins = sum(is_win(mine, other, rule.margin_num, rule.margin_den, higher) for mine, other in found)
        row.ratio = median(mine / other for mine, other in found) if found else None


def best_of(rows: Sequence[Attempted]) -> Attempted | None:
    """The best candidate: the last that the rule found better than the best before it."""
    return next((row for row in reversed(rows) if row.outcome == "improved" and row.shown is not None), None)


def rules_of(program: Program) -> dict[str, MetricRule]:
    """The metric rules of a program's tasks."""
    return {name: task.rule for name, task in program.tasks.items() if task.rule is not None}


def source_of(body: Mapping[str, Any]) -> str:
    """The blob of the source that a measurement was of; empty where it keeps none."""
    subject = body.get("subject")
    kept = subject.get("source") if isinstance(subject, Mapping) else None
    digest = kept.get("$blob") if isinstance(kept, Mapping) else None
    return digest if isinstance(digest, str) else ""


def _refusal(body: Mapping[str, Any]) -> str:
    """Why an answer was refused, in a line."""
    found = [str(body.get(name, "")) for name in ("received", "hint")]
    return "; ".join(text for text in found if text)[:MAX_OUTPUT]


def _output(record: Record) -> str:
    """What a tool or a validator found wrong: diagnostics and failed checks, else the end of its output."""
    body, details = record.body, record.side.get("details")
    listed = body.get("diagnostics")
    found = [
        _text(item.get("message"))
        for item in (listed if isinstance(listed, list) else ())[:3]
        if isinstance(item, Mapping)
    ]
    if isinstance(details, Mapping):
        found += [f"{name}: {_text(text)}" for name, text in details.items()]
    return "\n".join(text for text in found if text)[:MAX_OUTPUT] or _text(body.get("out", ""))[-MAX_OUTPUT:]


def _text(value: Any) -> str:
    """A text of a record, or the beginning of one that is a blob."""
    if isinstance(value, Mapping):
        value = value.get("head", "")
    return value if isinstance(value, str) else ""


def _bound(body: Mapping[str, Any]) -> float | None:
    """The roofline of a measurement of time, in nanoseconds."""
    for part in (body.get("metrics"), body.get("evidence")):
        bound = part.get("bound_ns") if isinstance(part, Mapping) else None
        if isinstance(bound, int) and bound > 0:
            return float(bound)
    return None


def _unit(body: Mapping[str, Any]) -> str:
    evidence = body.get("evidence")
    unit = evidence.get("unit") if isinstance(evidence, Mapping) else ""
    return unit if isinstance(unit, str) else ""
