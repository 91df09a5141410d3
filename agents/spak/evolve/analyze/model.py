"""What an analysis says: findings with records, severity and, where there is one, a typed edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spak.lang.edit import Op, to_json

CODES: Mapping[str, str] = {
    "loop": "the same action with the same result in the same state, three times or more",
    "redundant_call": "a read whose answer was known: nothing had changed, and nothing had failed in between",
    "retry_cycle": "attempts at a task that failed in the same way until the run gave up",
    "tool_failure": "a tool that fails in more than a fifth of its calls, with the Wilson interval",
    "denied": "the same action denied again and again",
    "rejected_answers": "answers of a model that were unreadable or held no usable call",
    "resent_tokens": "prompts of a task that are nearly what was sent before",
    "unreferenced": "what a step read and nothing written or asked afterwards took up",
    "dead_edge": "an edge that was never taken in many visits of its task",
    "useless_heuristic": "a heuristic after which the task never succeeded",
    "flaky_validator": "a validator that judged the same files both ways",
    "budget_burn": "a run that a budget ended, and the task that used most of it",
    "short_patience": "searches that patience ended while late evaluations still improved",
    "few_retries": "runs that RETRIES ended while late attempts still succeeded",
    "unhandled_trigger": "a signal that a task has no edge for, which ended a run",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`records` are numbers in the ledger of `run`; `severity` is what it cost, in `unit`."""

    code: str
    run: str
    task: str
    records: tuple[int, ...]
    message: str
    severity: float = 0.0
    unit: Literal["tokens", "s"] = "s"
    edit: tuple[Op, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The finding as `spak analyze --json` prints it."""
        return {
            "code": self.code,
            "run": self.run,
            "task": self.task,
            "records": list(self.records),
            "message": self.message,
            "severity": self.severity,
            "unit": self.unit,
            "edit": [to_json(op) for op in self.edit] or None,
        }


@dataclass(frozen=True, slots=True)
class Analysis:
    """Findings, dearest first within a unit, and what was observed of the spec's graph."""

    runs: int
    records: int
    findings: tuple[Finding, ...]
    transitions: tuple[Mapping[str, Any], ...] = ()
    heuristics: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    specs: Mapping[str, int] = field(default_factory=dict)
    """Hash of a spec's text to its runs."""

    def to_json(self) -> dict[str, Any]:
        """The analysis as `spak analyze --json` prints it."""
        return {
            "runs": self.runs,
            "records": self.records,
            "specs": dict(self.specs),
            "findings": [item.to_json() for item in self.findings],
            "transitions": list(self.transitions),
            "heuristics": list(self.heuristics),
            "tools": list(self.tools),
        }
