"""Trials: what became of each candidate of each task, read off the records as they pass.

A generator that is not a model needs its past; the State does not hold it, since it grows with the run. The
history is made again from the ledger when a run is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from spak.ports import Trial
from spak.records import Kind, Record


@dataclass(slots=True)
class Attempted:
    """One line of the table of candidates."""

    task: str
    number: int
    tool: str
    args: Mapping[str, Any]
    params: Mapping[str, Any]
    outcome: str = ""
    code: str = ""
    value: float | None = None
    ratio: float | None = None
    spread_ppm: int | None = None
    seq: int = -1

    def trial(self) -> Trial:
        outcome = self.outcome if self.outcome in ("improved", "measured") else "fail"
        return Trial(self.args, self.params, outcome, self.value, self.ratio)  # type: ignore[arg-type]


@dataclass(slots=True)
class History:
    """Feed it every record of the run in order."""

    rows: list[Attempted] = field(default_factory=list)
    metrics: dict[str, str] = field(default_factory=dict)
    """Task to the metric that its rule compares."""
    _plan: Mapping[str, Any] | None = None
    _open: Attempted | None = None
    _measured: Mapping[str, Any] | None = None

    def of(self, task: str) -> Sequence[Trial]:
        return [row.trial() for row in self.rows if row.task == task]

    def feed(self, record: Record) -> None:
        match record.kind:
            case Kind.PLAN:
                self._plan = record.body
            case Kind.SELECT:
                self._select(record)
            case Kind.ACT if "status" in record.body:
                self._measured = record.body
            case Kind.ROUTE:
                self._route(record)

    def _select(self, record: Record) -> None:
        index = record.body.get("i", -1)
        candidates = (self._plan or {}).get("candidates")
        if not isinstance(candidates, list) or not 0 <= index < len(candidates):
            return
        chosen = candidates[index]
        args = chosen.get("args", {})
        params = chosen.get("params") or args.get("params") or {}
        number = sum(row.task == record.task for row in self.rows) + 1
        self._open = Attempted(record.task, number, chosen["tool"], args, params, seq=record.seq)
        self._measured = None

    def _route(self, record: Record) -> None:
        row, body = self._open, record.body
        if row is None or record.task != row.task:
            return
        target = str(body.get("to", "/"))
        failed = body.get("signal") in ("fail", "timeout")
        if not target.endswith("/") and not failed:
            return
        row.code = str(body.get("code", ""))
        if failed:
            row.outcome = "fail"
        else:
            row.outcome = "improved" if "best" in body else "measured"
        if self._measured is not None:
            self._read(row, self._measured)
        self.rows.append(row)
        self._open = None

    def _read(self, row: Attempted, body: Mapping[str, Any]) -> None:
        metrics = body.get("metrics") or {}
        value = metrics.get(self.metrics.get(row.task, ""))
        row.value = float(value) if isinstance(value, (int, float)) else None
        spread = metrics.get("spread_ppm")
        row.spread_ppm = spread if isinstance(spread, int) else None
        ratios = [
            min(pair["candidate"]) / min(pair["incumbent"])
            for pair in body.get("pairs") or ()
            if pair.get("candidate") and pair.get("incumbent")
        ]
        row.ratio = median(ratios) if ratios else None
        if row.value is None and row.outcome == "measured":
            row.outcome = "static" if body.get("status") == "static" else row.outcome
