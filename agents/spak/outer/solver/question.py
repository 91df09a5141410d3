"""The question to the solver, and what may be said of its answer.

`ask(old, new, most, seconds)` takes two policies, the most facts that are combined and a time limit; gives
an Asked: counterexamples with their proofs, what was enumerated and what was not. Each set of facts that the
solver names is judged by the engine under both laws, in sessions of its own, and facts that make no
difference are taken out of it. Where engine and solver disagree, that is a fault of ours (`bug.solver`) and
nothing is claimed.

It says nothing of actions with more facts, of values outside the domain, and of whether a real action could
have these facts at once.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import Any

from spak.datalog.explain import prove
from spak.datalog.externals import Request
from spak.datalog.plan import Key
from spak.datalog.session import Policy, Session
from spak.datalog.values import Fact, Row, Value, decode, encode, show_atom
from spak.datalog.why_not import why_not
from spak.errors import BugError, UnavailableError, UserError
from spak.outer.abstract_actions import Direction, kinds_of_acts
from spak.outer.solver.domain import domain
from spak.outer.solver.search import Job
from spak.outer.solver.translate import Untranslatable, translate
from spak.policy.history.deciding import answers, folds_of
from spak.policy.history.state import History
from spak.policy.toolfacts import ACTION

SECONDS = 60


class Answer(StrEnum):
    """What the solver found, as commands print it."""

    NOTHING_NEW = "nothing_new"
    COUNTEREXAMPLE = "counterexample"
    NOT_APPLICABLE = "not_applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Facts under which the two laws differ, each needed for it."""

    facts: tuple[str, ...]
    newly: Direction
    proof: str
    """How the side that permits derives it."""
    why_not: str
    """What the side that denies lacks, or how it forbids."""

    def to_json(self) -> dict[str, Any]:
        """As commands print it."""
        return {"facts": list(self.facts), "newly": self.newly, "proof": self.proof, "why_not": self.why_not}


@dataclass(slots=True)
class Asked:
    """What was asked, and the answer."""

    most: int
    candidates: int = 0
    """Facts of which any so many are combined with each act."""
    values: int = 0
    acts: int = 0
    found: list[Counterexample] = field(default_factory=list)
    """One for each act and direction."""
    finished: set[str] = field(default_factory=set)
    """Directions in which no further act differs."""
    left_out: list[str] = field(default_factory=list)
    why: str = ""
    """Why there is no answer, or not the whole of it."""
    is_applicable: bool = True

    def newly(self, direction: Direction) -> list[Counterexample]:
        """The counterexamples in one direction."""
        return [item for item in self.found if item.newly == direction]

    @property
    def answer(self) -> Answer:
        """Whether something is newly permitted."""
        if self.newly("permitted"):
            return Answer.COUNTEREXAMPLE
        if not self.is_applicable:
            return Answer.NOT_APPLICABLE
        return Answer.NOTHING_NEW if "permitted" in self.finished else Answer.UNKNOWN

    def to_json(self) -> dict[str, Any]:
        """As commands print it."""
        return {
            "most_facts": self.most, "acts": self.acts, "candidates": self.candidates, "values": self.values,
            "finished": sorted(self.finished), "left_out": self.left_out, "why": self.why,
            "newly_permitted": [item.to_json() for item in self.newly("permitted")],
            "newly_denied": [item.to_json() for item in self.newly("denied")],
        }  # fmt: skip


Search = Callable[[Job, float], Iterator[dict[str, Any]]]


def ask(old: Policy, new: Policy, most: int, seconds: float = SECONDS, search: Search | None = None) -> Asked:
    """Ask for each act with at most `most` facts that the two judge differently.

    Raises: UnavailableError `unavailable.solver` where clingo is not installed; BugError `bug.solver` where
    the engine does not confirm what the solver says.
    """
    if find_spec("clingo") is None:
        raise UnavailableError(
            "unavailable.solver",
            "the solver clingo is not installed",
            "pip install 'spak[solver]'",
        )
    found = Asked(most)
    kinds = [*kinds_of_acts(old, new)]
    space = domain(old, new, max(most, 1))
    found.acts, found.candidates, found.values = len(kinds), len(space.facts), space.values
    found.left_out += space.left_out
    if old.hash == new.hash:
        found.finished |= {"permitted", "denied"}
        return found
    try:
        job = Job(translate(old, new, kinds, space, most), most)
    except Untranslatable as error:
        found.is_applicable, found.why = False, str(error)
        return found
    for line in (search or in_a_process)(job, seconds):
        if "found" in line:
            facts = [space.facts[number] for number in line["chosen"]]
            found.found.append(_confirmed(old, new, kinds[line["kind"]][0], facts, line["found"]))
        elif "done" in line:
            found.finished.add(line["done"])
        elif "refused" in line:
            found.is_applicable, found.why = False, line["refused"]
        elif "stopped" in line:
            found.why = line["stopped"]
        else:
            found.left_out += [f"acts at which a rule may fail: {place}" for place in line["faults"]]
    return found


def in_a_process(job: Job, seconds: float) -> Iterator[dict[str, Any]]:
    """The lines of `search` from a process that is ended after so many seconds."""
    command = [sys.executable, "-m", "spak.outer.solver.search"]
    stopped = ""
    with TemporaryFile() as given:
        given.write(pickle.dumps(job))
        given.seek(0)
        with subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                text, errors = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                stopped = f"the time limit of {seconds:g} s has passed"
                process.kill()
                text, errors = process.communicate()
            except BaseException:
                process.kill()
                raise
    for line in text.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)
    if process.returncode != 0:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        yield {"stopped": stopped or f"the solver ended early: {last or process.returncode}"}


def _confirmed(
    old: Policy, new: Policy, kind: Sequence[Fact], chosen: Sequence[tuple[Key, Row]], newly: Direction
) -> Counterexample:
    """The counterexample with the facts that it needs, as the engine judges it."""
    own = [*kind]
    facts: list[Fact] = [(key[0], tuple(map(decode, row))) for key, row in chosen]
    if not _differs(old, new, [*own, *facts], newly):
        shown = ", ".join(_shown([*own, *facts]))
        raise BugError(
            "bug.solver", f"the solver says {newly} of {shown}, and the engine does not", "report it"
        )
    for fact in [*facts]:
        fewer = [other for other in facts if other is not fact]
        if _differs(old, new, [*own, *fewer], newly):
            facts = fewer
    whole = [*own, *facts]
    permits, denies = (new, old) if newly == "permitted" else (old, new)
    reasons = _reason(denies, whole)
    proof = _reason(permits, whole)
    return Counterexample(tuple(_shown(whole)), newly, proof, reasons)


def _differs(old: Policy, new: Policy, facts: Sequence[Fact], newly: Direction) -> bool:
    before, after = _judged(old, facts)[0], _judged(new, facts)[0]
    return (before, after) == ((False, True) if newly == "permitted" else (True, False))


def _judged(policy: Policy, facts: Sequence[Fact]) -> tuple[bool, Session | UserError]:
    """Whether a law permits an act with these facts, with the session, or the error that denies it."""
    folds = folds_of(policy)
    known = {(name, len(row)) for name, row in facts} & policy.predicates - {*policy.externals}
    stated = [fact for fact in facts if (fact[0], len(fact[1])) in known]
    if folds and ("event", 1) in policy.predicates:
        stated.append(("event", (ACTION,)))
    try:
        session = policy.session(stated)
        while requests := session.requests():
            for request in requests:
                rows = _rows(facts, request) or answers(folds, History(), request) or ()
                session.supply(request, rows)
        permits = session.holds("permitted", ACTION) and not session.holds("forbidden", ACTION)
    except UserError as error:
        return False, error
    return permits, session


def _rows(facts: Sequence[Fact], request: Request) -> list[tuple[Value, ...]]:
    """The chosen rows that answer a question."""
    return [
        row
        for name, row in facts
        if (name, len(row)) == request.key
        and all(
            given is None or encode(given) == encode(value)
            for given, value in zip(request.args, row, strict=True)
        )
    ]


def _reason(policy: Policy, facts: Sequence[Fact]) -> str:
    permits, session = _judged(policy, facts)
    if not isinstance(session, Session):
        return f"{session.message} [{session.code}]"
    if permits:
        return prove(session, "permitted", ACTION).text()
    if session.holds("forbidden", ACTION):
        return prove(session, "forbidden", ACTION).text()
    return why_not(session, "permitted", ACTION).text()


def _shown(facts: Sequence[Fact]) -> list[str]:
    return [show_atom(name, map(encode, row)) for name, row in facts]
