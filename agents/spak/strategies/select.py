"""The choice of a strategy by the shipped law select.mg: exactly one, or why there is none.

`Selector()` loads the law with the headers of the strategies and tries it in every situation that can be;
`choose` then derives one. It reads no folder and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spak import data
from spak.datalog import Policy, PolicyError, Session, load
from spak.datalog.explain import Proof, prove
from spak.datalog.syntax import Compare, Const, Term
from spak.datalog.values import Fact, Name, decode
from spak.strategies.shipped import Strategy, shipped
from spak.strategies.situation import Situation, situations

LAW = "specs/policy/strategies/select.mg"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a situation is served by."""

    strategy: Strategy | None
    proof: Proof | None
    """Why, where there is one."""
    unmet: tuple[str, ...] = ()
    """Why not, where there is none."""


class Selector:
    """The law and the strategies, tried in all situations."""

    def __init__(self, text: str | None = None, strategies: Sequence[Strategy] | None = None) -> None:
        """Raises: PolicyError `policy.invalid`; `policy.strategy` where a situation has two strategies, one
        that does not ship or that its header does not name, or neither a strategy nor a reason."""
        law = data.path(LAW).read_text(encoding="utf-8") if text is None else text
        self.policy = load({LAW.rpartition("/")[2]: law})
        self.strategies = {one.name: one for one in (shipped() if strategies is None else strategies)}
        self._serves: tuple[Fact, ...] = tuple(
            ("serves", (Name(f"/{one.name}"), Name(f"/{verb}"), Name(f"/{kind}")))
            for one in self.strategies.values()
            for verb, kind in one.serves
        )
        rows = self.policy.session(()).query("verb", None, None, None, None)
        self.verbs = {str(name)[1:]: str(category)[1:] for name, category, _, _ in rows}
        """Each verb with its category."""
        self._try()

    def choose(self, situation: Situation) -> Choice:
        """The strategy of a situation, or why there is none."""
        session = self._session(situation)
        names = self._names(session)
        if not names:
            return Choice(None, None, _reasons(session))
        return Choice(self.strategies[names[0]], prove(session, "strategy", Name(f"/{names[0]}")))

    def _session(self, situation: Situation) -> Session:
        return self.policy.session((*self._serves, *situation.facts()))

    @staticmethod
    def _names(session: Session) -> list[str]:
        return sorted(str(name)[1:] for (name,) in session.query("strategy", None))

    def _try(self) -> None:
        """Derive in every situation. A header that promises what no situation gives is wrong too."""
        promised = {(name, *pair) for name, one in self.strategies.items() for pair in one.serves}
        for situation in situations(self.verbs.items(), _numbers(self.policy)):
            session = self._session(situation)
            names = self._names(session)
            at = f"{situation.verb} of a target that is {situation.kind}, {situation.count} files"
            if len(names) > 1:
                raise _wrong(f"the law chooses {' and '.join(names)} at {at}")
            if not names and not _reasons(session):
                raise _wrong(f"the law gives neither a strategy nor a reason at {at}")
            for name in names:
                promised.discard((name, situation.verb, situation.kind))
                found = self.strategies.get(name)
                if found is None or (situation.verb, situation.kind) not in found.serves:
                    raise _wrong(f"the law chooses {name} at {at}, and no header says that it serves that")
        if promised:
            raise _wrong(f"no situation leads to {' of '.join(min(promised))}, which its header promises")


def _reasons(session: Session) -> tuple[str, ...]:
    return tuple(sorted(str(reason) for (reason,) in session.query("unmet", None)))


def _numbers(policy: Policy) -> set[int]:
    """The numbers that the law compares something with, or that stand in an atom of its rules."""
    terms: list[Term] = []
    for clause in policy.clauses:
        for part in clause.body:
            terms += (part.left, part.right) if isinstance(part, Compare) else part.atom.args
    values = [decode(term.value) for term in terms if isinstance(term, Const)]
    return {value for value in values if type(value) is int}


def _wrong(message: str) -> PolicyError:
    return PolicyError("policy.strategy", message, "exactly one strategy, or a reason, for each situation")
