"""The data of an experiment: its plan, its cells, what each gave, and the budget. JSON both ways, no effects.

A cell is one run: a case under a spec for the k-th time. The k-th run of a case has the same seed under every
spec. Cells come in the order k, case, spec, so that a budget that runs out leaves pairs; the specs of a case
in an order drawn from the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from spak import canon

VERSION = 1
Outcome = Literal["pass", "fail", "void"]


class Cell(NamedTuple):
    """One run of an experiment: the k-th of a case under a spec."""

    case: str
    spec: str
    k: int

    @property
    def key(self) -> str:
        """The cell in one text."""
        return f"{self.case}/{self.spec}/{self.k}"


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that an experiment uses; 0 is no limit. Cells that are under way are finished."""

    runs: int = 0
    tokens: int = 0
    cost_nanousd: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Used:
    """What an experiment has used so far; costs in nano-dollars, times in milliseconds."""

    runs: int = 0
    tokens: int = 0
    cost_nanousd: int = 0
    ms: int = 0

    def and_(self, done: Done) -> Used:
        """The same with one more run."""
        return Used(
            self.runs + 1,
            self.tokens + done.tokens,
            self.cost_nanousd + done.cost_nanousd,
            self.ms + done.ms,
        )

    def exhausted(self, budget: Budget) -> str:
        """The name of the limit that is reached; empty while there is something left."""
        limits = {
            "runs": (self.runs, budget.runs),
            "tokens": (self.tokens, budget.tokens),
            "money": (self.cost_nanousd, budget.cost_nanousd),
            "time": (self.ms, int(budget.seconds * 1000)),
        }
        return next((name for name, (used, limit) in limits.items() if limit and used >= limit), "")


@dataclass(frozen=True, slots=True)
class Done:
    """What a cell gave. `ran` is the hash of the spec's text as the run's first record has it, `summary`
    that of its decisions. A void run has no result: by its spec's own fault, unless `of_host` says that the
    host failed it or somebody ended it."""

    run: str
    outcome: Outcome
    why: str = ""
    state: str = ""
    codes: tuple[str, ...] = ()
    tokens: int = 0
    cost_nanousd: int = 0
    ms: int = 0
    ran: str = ""
    summary: str = ""
    of_host: bool = False

    @property
    def void(self) -> bool:
        """Whether it has no result."""
        return self.outcome == "void"

    def to_json(self) -> dict[str, Any]:
        """The result as the experiment's records have it."""
        return {**asdict(self), "codes": list(self.codes)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Done:
        """The result of a record; what it lacks has its default."""
        known = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        return cls(**{**known, "codes": tuple(known.get("codes", ()))})


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment does, fixed before its first cell; the first record of its ledger."""

    suite: str
    suite_hash: str
    cases: Mapping[str, str]
    """Name to hash, in the order of the suite."""
    specs: Mapping[str, str]
    """Label to the hash of its text with imports resolved; the first is the base of a comparison."""
    files: Mapping[str, str]
    """Label to the path of its file."""
    n: int = 1
    splits: tuple[str, ...] = ("train", "gate")
    backend: str = ""
    budget: Budget = field(default_factory=Budget)
    non_inferior: float | None = None
    """The margin of a preregistered comparison, as a part of 1."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the experiment's first record has it."""
        return {
            "experiment": VERSION,
            **asdict(self),
            "cases": [[name, digest] for name, digest in self.cases.items()],
            "specs": [[name, digest] for name, digest in self.specs.items()],
            "splits": list(self.splits),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Raises: KeyError, TypeError where it is no plan."""
        if value["experiment"] != VERSION:
            raise KeyError("experiment")
        return cls(
            value["suite"],
            value["suite_hash"],
            dict(value["cases"]),
            dict(value["specs"]),
            value["files"],
            value["n"],
            tuple(value["splits"]),
            value["backend"],
            Budget(**value["budget"]),
            value["non_inferior"],
        )


def cells(plan: Plan) -> list[Cell]:
    """All cells in their order. Each spec comes first, second, ... in equally many cases, or one more: what
    the first run of a case pays for the others (a cold cache) is shared."""
    found = []
    for k in range(plan.n):
        specs = _drawn(plan.specs, f"{plan.suite_hash}/{k}")
        turn = {case: number % len(specs) for number, case in enumerate(_drawn(plan.cases, plan.suite_hash))}
        for case in plan.cases:
            found += [Cell(case, spec, k) for spec in specs[turn[case] :] + specs[: turn[case]]]
    return found


def seed_of(case: str, seed: int, k: int) -> int:
    """The seed of a case's k-th run: its own first, then drawn from its hash."""
    return (
        seed if k == 0 else int.from_bytes(hashlib.sha256(f"{case}/{seed}/{k}".encode()).digest()[:6], "big")
    )


def spec_hash(text: str) -> str:
    """The hash of a spec's text."""
    return canon.digest(text.encode())


def _drawn(names: Iterable[str], seed: str) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
