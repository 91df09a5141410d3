"""A campaign as its ledger records it: the plan, the candidates, the results of stages and pairs.

    genesis    the plan, with the text of the base
    candidate  {"number", "candidate"}               verdict  {"number", "verdict", "why"}
    stage      {"number", "stage", "verdict", ...}   stop     {"why"}
    violation  {"run"}: the proposer asked for a run of another split
    budget     {"runs", "tokens", "cost_nanousd"}: what holds from here on instead of the plan's
    pair       {"number", "case", "k", "outcome", "runs", "why"}, and "used" where the runs are known: of base
               and candidate the outcome, tokens, cost and time

Only appends; what follows from the records is computed again whenever they are read, so that a campaign that
was killed goes on where its ledger ends. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, get_args

from spak.errors import OuterError
from spak.evolve import host_ledger
from spak.evolve.experiments.model import Outcome
from spak.evolve.gate.candidate import Candidate
from spak.evolve.stats import Betting, Within, spent
from spak.lang.edit import ops
from spak.ledger.files import FileLedgers
from spak.records import Kind, Record

VERSION = 1
REMOVALS = (ops.RemoveModelItem, ops.RemoveStep, ops.RemoveEdge)
"""Edits that only take something out."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Fixed before the first candidate. `pairs` is the most that one candidate may take, `candidates` the
    most that are tried; runs, tokens and billionths of a US dollar are what all pairs together may take, 0 is
    no limit. alpha, stake and margin are fractions, as text. With a margin above 0 a candidate that only
    takes something out has to be no worse than the base by it, instead of better; all other candidates have
    to be better."""

    spec: str
    base: str
    """The base's text."""
    suite: str
    suite_hash: str
    golden: tuple[str, ...]
    cases: tuple[str, ...]
    alpha: str = "1/20"
    stake: str = "1/2"
    candidates: int = 10
    pairs: int = 100
    runs: int = 0
    proposer: str = "rules"
    margin: str = "0"
    tokens: int = 0
    cost_nanousd: int = 0

    def to_json(self) -> dict[str, Any]:
        """The plan as the campaign's first record has it."""
        fields = {**asdict(self), "golden": list(self.golden), "cases": list(self.cases)}
        return {"campaign": VERSION, **fields}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """The plan of a first record. Raises: KeyError, TypeError where it is none."""
        if value["campaign"] != VERSION:
            raise KeyError("campaign")
        known = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        return cls(**{**known, "golden": tuple(known["golden"]), "cases": tuple(known["cases"])})


@dataclass(frozen=True, slots=True)
class Half:
    """What one run of a pair came to and used: billionths of a US dollar, milliseconds of its effects."""

    outcome: Outcome
    tokens: int = 0
    cost_nanousd: int = 0
    ms: int = 0

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Half:
        """What a record has. Raises: TypeError, ValueError where it is none."""
        found = cls(**body)
        counts = (found.tokens, found.cost_nanousd, found.ms)
        if found.outcome not in get_args(Outcome) or any(type(one) is not int or one < 0 for one in counts):
            raise ValueError(body)
        return found


@dataclass(frozen=True, slots=True)
class Pair:
    """One case once under base and candidate: 1 the candidate won, -1 it lost, 0 no difference."""

    case: str
    k: int
    outcome: int
    runs: tuple[str, str] = ("", "")
    why: str = ""
    used: tuple[Half, Half] | None = None
    """Of base and candidate; None where the ledger does not say."""

    @property
    def holds(self) -> bool:
        """Whether the outcome is what the two runs came to; True where the ledger does not say."""
        if self.used is None:
            return True
        base, candidate = (half.outcome for half in self.used)
        if base == "void" and self.outcome == -1:
            return True  # ledgers have it since before a base without a result counted as one that passed
        return self.outcome == outcome_of(base, candidate)

    def to_json(self) -> dict[str, Any]:
        """The pair as its record has it."""
        body = {"case": self.case, "k": self.k, "outcome": self.outcome}
        body |= {"runs": list(self.runs), "why": self.why}
        return body if self.used is None else {**body, "used": [asdict(half) for half in self.used]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Pair:
        """The pair of a record. Raises: KeyError, TypeError, ValueError where it is none."""
        used = None
        if "used" in body:
            base, candidate = (Half.from_json(half) for half in body["used"])
            used = base, candidate
        return cls(body["case"], body["k"], body["outcome"], tuple(body["runs"]), body["why"], used)


def outcome_of(base: Outcome, candidate: Outcome) -> int:
    """Who won a pair that counts: a candidate without a result lost, a base without one passed."""
    return -1 if candidate == "void" else (candidate == "pass") - (base != "fail")


@dataclass(slots=True)
class Tested:
    """A candidate and all that is known of it."""

    number: int
    candidate: Candidate
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    verdict: str = ""
    why: str = ""

    @property
    def removal(self) -> bool:
        """Whether it only takes something out."""
        edits = self.candidate.edits
        return bool(edits) and all(isinstance(op, REMOVALS) for op in edits)


@dataclass(slots=True)
class Campaign:
    """A campaign as its ledger records it: the plan and each candidate that was tested."""

    name: str
    plan: Plan
    tested: list[Tested] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    stopped: str = ""
    head: str = ""
    tokens: int = 0
    """Tokens that pairs have cost so far, where their records say."""
    cost_nanousd: int = 0
    """The same in billionths of a US dollar."""

    @property
    def stake(self) -> Fraction:
        """The share of the capital that is bet on each pair."""
        return Fraction(self.plan.stake)

    @property
    def runs(self) -> int:
        """Runs that pairs have cost so far."""
        return sum(2 * len(item.pairs) for item in self.tested)

    @property
    def exhausted(self) -> str:
        """The name of the budget of pairs that is used up; empty while there is something left."""
        plan = self.plan
        limits = {
            "runs": (self.runs, plan.runs),
            "tokens": (self.tokens, plan.tokens),
            "money": (self.cost_nanousd, plan.cost_nanousd),
        }
        return next((name for name, (used, limit) in limits.items() if limit and used >= limit), "")

    def alpha(self, tested: Tested) -> Fraction:
        """What may be spent on a candidate: they are counted in the order in which they came to the test."""
        before = [item for item in self.tested if item.number < tested.number and "fresh" in item.stages]
        return spent(Fraction(self.plan.alpha), len(before) + 1)

    def beginning(self, tested: Tested) -> Betting:
        """The evidence for a candidate before its first pair: of a gain, or for a removal in a campaign with
        a margin that it is no worse by it."""
        margin = Fraction(self.plan.margin)
        return Within(margin=margin) if margin and tested.removal else Betting(self.stake)

    def evidence(self, tested: Tested) -> list[Betting]:
        """The evidence before the first fresh pair and after each. Golden pairs prove nothing: they were
        chosen because the base passes them."""
        found = [self.beginning(tested)]
        for pair in tested.pairs[len(self.plan.golden) :]:
            found.append(found[-1].after(pair.outcome))
        return found

    def counts(self) -> dict[str, int]:
        """How many candidates had a verdict, in all and by verdict."""
        words = [item.verdict for item in self.tested if item.verdict]
        return {"tried": len(words), **{word: words.count(word) for word in sorted(set(words))}}

    @classmethod
    def create(cls, root: Path, name: str, plan: Plan) -> Campaign:
        """A new campaign, with its plan as the first record. Raises: LedgerError where it exists."""
        return cls(name, plan, head=host_ledger.create(root, name, plan.to_json()))

    @classmethod
    def read(cls, root: Path, name: str) -> Campaign:
        """Raises: OuterError `outer.campaign`; LedgerError `ledger.tampered` when a record was changed."""
        unknown, hint = f"there is no campaign {name} in {root}", "spak outer campaign"
        reader = host_ledger.reader(root, name, OuterError("outer.campaign", unknown, hint))
        return cls.of(name, (record for record, _ in reader.read()))

    @classmethod
    def of(cls, name: str, records: Iterable[Record]) -> Campaign:
        """The campaign of these records. Raises: OuterError `outer.campaign`."""
        found: Campaign | None = None
        try:
            for record in records:
                if record.kind == Kind.GENESIS:
                    found = cls(name, Plan.from_json(record.body))
                elif found is not None:
                    found.see(record.kind, record.body)
                if found is not None:
                    found.head = record.hash
            if found is None:
                raise KeyError("genesis")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OuterError(
                "outer.campaign", f"{name} holds no campaign", "name one of spak outer campaign"
            ) from error
        return found

    def see(self, kind: str, body: Mapping[str, Any]) -> None:
        """Apply a record."""
        if kind == "stop":
            self.stopped = str(body["why"])
            return
        self.stopped = ""
        if kind == "violation":
            self.violations.append(str(body["run"]))
            return
        if kind == "budget":
            self.plan = replace(self.plan, **body)
            return
        number = body["number"]
        if kind == "candidate":
            self.tested.append(Tested(number, Candidate.from_json(body["candidate"])))
            return
        mine = self.tested[number - 1]
        if kind == "stage":
            mine.stages[body["stage"]] = dict(body)
        elif kind == "pair":
            pair = Pair.from_json(body)
            mine.pairs.append(pair)
            self.tokens += sum(half.tokens for half in pair.used or ())
            self.cost_nanousd += sum(half.cost_nanousd for half in pair.used or ())
        elif kind == "verdict":
            mine.verdict, mine.why = body["verdict"], body["why"]

    def take_more(self, root: Path, limits: Mapping[str, int]) -> None:
        """Put these limits, in all, in the place of those before; a limit that is not named holds on.

        Raises: LedgerError `ledger.busy` when another process runs the campaign.
        """
        if any(getattr(self.plan, name) != value for name, value in limits.items()):
            with self.writing(root) as writer:
                writer.put("budget", limits)

    @contextmanager
    def writing(self, root: Path) -> Iterator[Writer]:
        """Hold the ledger. Raises: LedgerError `ledger.busy` when another process runs the campaign."""
        with FileLedgers(root).open(self.name) as ledger:
            yield Writer(self, ledger)


class Held(Protocol):
    """The part of a ledger held for writing that a campaign needs."""

    head: str

    def append(self, records: Sequence[Record]) -> Sequence[Record]:
        """Append records."""

    def flush(self) -> None:
        """Wait until they are durable."""


@dataclass(slots=True)
class Writer:
    """A campaign whose ledger is held for writing."""

    campaign: Campaign
    ledger: Held

    def put(self, kind: str, body: Mapping[str, Any]) -> None:
        """Append one record, durably, and apply it."""
        self.ledger.append([host_ledger.record(kind, body)])
        self.ledger.flush()
        self.campaign.head = self.ledger.head
        self.campaign.see(kind, body)
