"""Figures of seed 000 section 6 that a run's records say: consistency, self-correction, and perplexity where
it was reported.

Consistency is the share of checked axioms that held in the artifacts that were checked (the validator
Compliance). The share of actions that the policy permitted is another figure. Self-correction is the share of
a task's failures after which the task came right without a person. Perplexity is that of the tokens whose
log-probabilities a model's engine reported; where none did there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite
from typing import Any

from spak.records import Authority, Kind, Record

DEEDS = ("tool", "validate")
"""Acts that do something, and so keep to the policy or do not: no questions, no checks of the kernel."""

FAILS = ("fail", "timeout")
"""Signals of a task that failed."""
VOID = "validator.void"
"""The code of a measurement that said nothing and is taken again."""

MICRO = 1_000_000
MOST = 2**53 // MICRO
"""Nats that one answer may count: more is no measurement."""

_AXIOM = re.compile(r"axiom\.\d+\Z")


@dataclass(slots=True)
class Quality:
    """Feed it every record of the run in order."""

    axioms: int = 0
    """Axioms checked, each time that an artifact was measured."""
    held: int = 0
    permitted: int = 0
    denied: int = 0
    scored: int = 0
    """Tokens with a log-probability, and their sum in millionths of a nat, negated."""
    micronats: int = 0
    failures: int = 0
    healed: int = 0
    guided: int = 0
    """Those of the healed after which a heuristic was injected."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By task: what `corrected` keeps of it."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Quality:
        """The figures of some records."""
        found = cls()
        for record in records:
            found.feed(record)
        return found

    def feed(self, record: Record) -> None:
        """Take the next record."""
        if record.task:
            task = self.tasks.get(record.task)
            if task is None:
                task = self.tasks[record.task] = tried()
            self._add(corrected(task, record))
        self._add(counted(record))

    def _add(self, more: Mapping[str, int]) -> None:
        for name, number in more.items():
            setattr(self, name, getattr(self, name) + number)

    @property
    def consistency(self) -> float | None:
        """The share of axioms that held, from 0 to 1; None where none was checked."""
        return share(self.held, self.axioms)

    @property
    def permission(self) -> float | None:
        """The share of permits among decisions, from 0 to 1; None where there was none."""
        return share(self.permitted, self.permitted + self.denied)

    @property
    def correction(self) -> float | None:
        """The share of failures that the run mended by itself, from 0 to 1; None where nothing failed."""
        return share(self.healed, self.failures)

    @property
    def perplexity(self) -> float | None:
        """The perplexity of the answers whose log-probabilities are known; None for none."""
        return perplexity(self.micronats, self.scored)

    def to_json(self) -> dict[str, Any]:
        """The figures with their counts; what was not reported is null."""
        return {
            "consistency": {"value": self.consistency, "held": self.held, "checked": self.axioms},
            "permitted": {"value": self.permission, "permitted": self.permitted, "denied": self.denied},
            "self_correction": {
                "value": self.correction,
                "failures": self.failures,
                "resolved": self.healed,
                "by_heuristics": self.guided,
            },
            "perplexity": {"value": self.perplexity, "tokens": self.scored},
        }


def counted(record: Record) -> dict[str, int]:
    """What one record adds to the figures of a Quality, by name."""
    if record.kind == Kind.PERMIT and record.authority == Authority.COMMIT:
        if record.body.get("allow") is False:
            return {"denied": 1}
        done = record.body.get("allow") is True and record.body.get("act") in DEEDS
        return {"permitted": 1} if done else {}
    if record.authority != Authority.PROPOSAL or not ("checks" in record.body or "logprobs" in record.side):
        return {}
    return {**_axioms(record.body), **_scored(record.side)}


def tried() -> dict[str, Any]:
    """A task before its first record: its steps as they were met, its failures that nothing resolved so far,
    and whether a heuristic was injected and a person answered since the first of these. JSON."""
    return {"steps": [], "failed": 0, "hinted": False, "helped": False}


def corrected(task: dict[str, Any], record: Record) -> dict[str, int]:
    """What a record of this task adds to `failures`, `healed` and `guided`; keeps in `task` what that needs.

    A route to a later step judges no task, nor does a void measurement, which is taken again, nor a poll that
    has to be done again. What ends the run comes right by its end.
    """
    if record.authority == Authority.PROPOSAL:
        task["helped"] |= record.side.keys() == {"by"}  # nobody but a person
    elif record.authority == Authority.COMMIT and record.kind == Kind.INJECT:
        task["hinted"] = True
    elif record.authority == Authority.COMMIT and record.kind == Kind.END:
        return _resolved(task) if record.body.get("state") == "succeeded" else {}
    elif record.authority == Authority.COMMIT and record.kind == Kind.ROUTE and "poll" not in record.body:
        goes_on = is_onward(task, record) or record.body.get("code") == VOID
        if record.step not in task["steps"]:
            task["steps"].append(record.step)
        if goes_on:
            return {}
        if record.body.get("signal") in FAILS:
            if not task["failed"]:
                task.update(hinted=False, helped=False)
            task["failed"] += 1
            return {"failures": 1}
        return _resolved(task) if record.body.get("to") else {}
    return {}


def is_onward(task: Mapping[str, Any], record: Record) -> bool:
    """Whether a route leads to a step of the same task that was not met before."""
    target, steps = str(record.body.get("to", "")), task["steps"]
    met = steps[: steps.index(record.step) + 1] if record.step in steps else [*steps, record.step]
    return bool(target) and not target.endswith("/") and target not in met


def _resolved(task: dict[str, Any]) -> dict[str, int]:
    """It came right: by itself unless a person answered since it failed, guided if by a heuristic."""
    failed, task["failed"] = task["failed"], 0
    if task["helped"] or not failed:
        return {}
    return {"healed": failed, "guided": failed if task["hinted"] else 0}


def judges(record: Record) -> bool:
    """Whether the record is what a validator or a condition says of the work. A success without any such
    record is one by its own account alone."""
    return (
        record.authority == Authority.PROPOSAL
        and record.kind == Kind.ACT
        and ("facts" in record.body or "status" in record.body)
    )


def judged_roots(records: Iterable[Record], first: str) -> frozenset[str]:
    """The roots of the workspace, of a run that began with `first`, that a validator or a condition saw."""
    found, now = set(), first
    for record in records:
        root = record.body.get("r3")
        now = root if isinstance(root, str) else now
        if judges(record):
            found.add(now)
    return frozenset(found)


def share(part: int, whole: int) -> float | None:
    """A part of a whole, from 0 to 1; None where the whole is 0."""
    return part / whole if whole else None


def perplexity(micronats: int, tokens: int) -> float | None:
    """e to the mean negated log-probability of a token; None of no tokens, or of a mean beyond measure."""
    mean = micronats / MICRO / tokens if tokens else None
    return exp(mean) if mean is not None and mean < 700 else None


def score(logprobs: Sequence[float]) -> dict[str, int]:
    """What is recorded with log-probabilities so that they can be summed; nothing for odd numbers."""
    total = -sum(logprobs)
    if not logprobs or not isfinite(total) or not 0 <= total < MOST:
        return {}
    return {"tokens": len(logprobs), "micronats": round(total * MICRO)}


def _axioms(body: Mapping[str, Any]) -> dict[str, int]:
    checks = body.get("checks") if body.get("status") == "checked" else None
    listed = [
        check
        for check in (checks if isinstance(checks, list) else ())
        if isinstance(check, Mapping) and _AXIOM.match(str(check.get("name")))
    ]
    return {"axioms": len(listed), "held": sum(check.get("ok") is True for check in listed)} if listed else {}


def _scored(side: Mapping[str, Any]) -> dict[str, int]:
    found = side.get("logprobs")
    if not isinstance(found, Mapping):
        return {}
    tokens, micronats = found.get("tokens"), found.get("micronats")
    if type(tokens) is not int or type(micronats) is not int or tokens <= 0 or micronats < 0:
        return {}
    return {"scored": tokens, "micronats": micronats}
