"""The policy of a run, put together: the law of those in charge, the spec's own POLICY, and its AXIOMs that
are rules.

Takes texts; gives a Policy, or raises with every finding. What only the kernel and the world state
(RESERVED) no text states or derives. The operator's law extends every table of the
shipped law, a team's rules permit more and lift no prohibition, a spec only narrows (closed.py). It reads no
file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spak import canon
from spak.datalog.errors import PolicyError
from spak.datalog.session import Policy, load
from spak.datalog.syntax import Clause, Const, Finding
from spak.datalog.text.parse import parse
from spak.kept import by_size
from spak.policy.closed_predicates import Level, closed, known
from spak.policy.stated import COLUMNS

RESERVED = frozenset({*COLUMNS, "held", "as_strict"})
"""Predicates whose rows the runtime states, or the world answers: no rule or fact of a spec makes one."""

SPEC = "POLICY"
"""The name of the file that the spec's own policy is, in findings and proofs."""
GUARD = "guard_"
"""What the names of the shipped files begin with that stand where they are asked for."""
_ANY = "*"
"""The guard of a rule that names none, `guard(X) :- wanted(X)`: each may be meant."""
OPERATOR, TEAM = "operator/", "team/"
"""What the names of the operator's files and of a team's begin with, in findings and proofs."""


@dataclass(frozen=True, slots=True)
class Law:
    """What those in charge say: the texts of each level, by the name of the file."""

    shipped: Mapping[str, str]
    operator: Mapping[str, str] = field(default_factory=dict)
    team: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, str]:
        """Every text but those of guards, by the name that findings and proofs give it."""
        return self.with_guards(())

    def with_guards(self, more: Iterable[str]) -> dict[str, str]:
        """Every text, with the shipped `guard_X.mg` where one of the law or of `more` states `guard(/X)`."""
        operator = {OPERATOR + name: text for name, text in self.operator.items()}
        added = {**operator, **{TEAM + name: text for name, text in self.team.items()}}
        wanted = {f"{GUARD}{name}.mg" for text in (*added.values(), *more) for name in _guards(text)}
        all_stand = f"{GUARD}{_ANY}.mg" in wanted
        shipped = {
            name: text
            for name, text in self.shipped.items()
            if not name.startswith(GUARD)
            or ((all_stand or name in wanted) and name.removeprefix(GUARD) not in self.operator)
        }
        return {**shipped, **added}

    @property
    def team_files(self) -> frozenset[str]:
        """The names that findings and proofs give the team's texts."""
        return frozenset(TEAM + name for name in self.team)

    def to_json(self) -> dict[str, Any]:
        """The members of `genesis.rules.policy`; levels that say nothing are left out."""
        own = {"operator": dict(self.operator), "team": dict(self.team)}
        return {"constitution": dict(self.shipped), **{name: texts for name, texts in own.items() if texts}}

    @classmethod
    def from_json(cls, policy: Mapping[str, Any]) -> Law:
        """The law of a genesis record."""
        return cls(
            policy["constitution"],
            policy.get("operator", {}),
            policy.get("team", {}),
        )

    def guarded(self, names: Iterable[str]) -> Law:
        """The law that asks for these shipped guards too, whatever a spec says."""
        text = "".join(f"guard(/{name}).\n" for name in names)
        file = "asked.mg"
        while file in self.operator:
            file = f"also_{file}"
        return replace(self, operator={**self.operator, file: text}) if text else self

    def joined(self, texts: Mapping[str, str], level: Level) -> Law:
        """The law with these texts besides, among a team's, each by a name of its own: they say no more about
        this law than that level may. Raises: PolicyError as `compiled`, with the place."""
        if not texts:
            return self
        named = dict(self.team)
        for name, text in texts.items():
            while name in named:
                name = f"also_{name}"
            named[name] = text
        made = replace(self, team=named)
        own = made.team_files - self.team_files
        _refuse(list(_added(compiled(made, "", {}), self.sources, own, level)))
        return made

    @property
    def key(self) -> bytes:
        """Equal for equal laws."""
        return canon.dumps(self.to_json())

    @property
    def hash(self) -> str:
        """The hash of the policy of a spec that says nothing. Raises: PolicyError when it does not load."""
        return policy_hash(self, "", {})


def policy_hash(law: Law, spec: str, axioms: Mapping[str, str]) -> str:
    """The hash of a run's policy, which each run that begins and each look at a patch asks for.

    Raises: PolicyError when it does not load.
    """
    return _hash(canon.dumps([law.to_json(), spec, dict(axioms)]))


@by_size(1 << 20)
def _hash(key: bytes) -> str:
    law, spec, axioms = canon.loads(key)
    return compiled(Law.from_json(law), spec, axioms).hash


def compiled(law: Law, spec: str, axioms: Mapping[str, str]) -> Policy:
    """The policy of a run: the checks of a spec, its forecast and its run ask for the same one.

    Raises: PolicyError `policy.invalid`, `policy.reserved`, `policy.closed`.
    """
    return _compiled(law.key, spec, tuple(sorted(axioms.items())))


@by_size(1 << 18)
def _compiled(key: bytes, spec: str, axioms: tuple[tuple[str, str], ...]) -> Policy:
    law = Law.from_json(canon.loads(key))
    own = {name: text for name, text in ((SPEC, spec), *axioms) if text}
    sources = law.with_guards(own.values())
    if own.keys() & sources.keys():
        raise PolicyError("policy.closed", f"{min(own.keys() & sources.keys())} is a file of the law")
    made = load({**sources, **own})
    wrong = [*_stated(made, {*sources, *own} - {*law.shipped})]
    above = [name for name in sources if not name.startswith(TEAM)]
    upper, both = replace(law, team={}).sources, law.sources
    if law.team:
        wrong += _added(made, upper, {*both} - {*upper} - {*law.team_files}, "team")
        wrong += _added(made, above, law.team_files, "team")
    if own:
        wrong += _added(made, both, {*sources} - {*both}, "spec")
        wrong += _added(made, list(sources), own, "spec")
    _refuse(wrong)
    return made


def _refuse(wrong: Sequence[Finding]) -> None:
    if wrong:
        first = wrong[0]
        raise PolicyError(first.code, f"{first.place}: {first.message}", first.hint, tuple(wrong))


def _guards(text: str) -> list[str]:
    """The names of the guards that a text asks for, by a fact or a rule: `flow` of `guard(/flow).`"""
    if "guard" not in text:
        return []
    heads = (clause.head for clause in parse(text, SPEC).clauses if clause.head.key == ("guard", 1))
    asked = (head.args[0] for head in heads)
    return [str(arg.value).removeprefix("/") if isinstance(arg, Const) else _ANY for arg in asked]


def _stated(made: Policy, own: Collection[str]) -> Iterator[Finding]:
    """Rows of what is stated by the kernel or answered by the world, in a text that does not ship."""
    ours = {clause.head.pred for clause in made.clauses if clause.place.file not in own}
    for clause in made.clauses:
        pred = clause.head.pred
        theirs = clause.place.file.startswith(OPERATOR) and pred in ours
        if clause.place.file in own and pred in RESERVED and not theirs:
            yield Finding(
                "policy.reserved",
                "error",
                f"rows of {pred} are facts: the kernel or the world states them, no policy does",
                clause.place,
                "state what follows from them under another name",
            )


def _added(made: Policy, above: Collection[str], own: Collection[str], level: Level) -> Iterator[Finding]:
    """What a level adds to the law above it and may not."""
    shut = closed(made, above, level)
    for clause in made.clauses:
        if clause.place.file in own and clause.head.key in shut and clause.head.pred not in RESERVED:
            yield _refused(clause, level)
    names = known(made, above)
    for decl in made.decls.values():
        if decl.place.file in own and decl.atom.pred in names:
            message = f"{decl.atom.pred} is the law's: a {level} does not declare it"
            yield Finding("policy.closed", "error", message, decl.place, "declare a name of your own")


def _refused(clause: Clause, level: Level) -> Finding:
    pred = clause.head.pred
    if level == "team":
        message = f"{pred} is the law's: one more row of it could lift what the law forbids"
        hint = "a team permits more and forbids more; the operator's law changes what is forbidden"
    else:
        message = f"{pred} is the law's: one more row of it could permit what the law does not"
        hint = _WHERE.get(pred, _WHERE["permitted"])
    return Finding("policy.closed", "error", message, clause.place, hint)


_WHERE = {
    "permitted": "a spec forbids more; what is to be permitted belongs in the operator's law "
    "([policy] law) or in the team's rules",
    "allowed_host": "name the host in HOSTS of CONFIG, or in the operator's law ([policy] law)",
    "secret_may_go": "who keeps the secret says where it goes: in the operator's law ([policy] law) "
    "or in the team's rules",
}


def rules_of(axioms: Iterable[str]) -> dict[str, str]:
    """The axioms that are Mangle clauses, whole, by name."""
    return {name_of(number): text for number, text in enumerate(axioms, 1) if is_clause(text)}


def name_of(number: int) -> str:
    """The name that a rule of the Nth axiom, from 1, has in findings and proofs."""
    return f"axiom.{number}"


def is_clause(text: str) -> bool:
    """Whether the whole text is one clause; a sentence for people is none."""
    if "(" not in text or not text.rstrip().endswith("."):
        return False
    found = parse(text, "axiom")
    errors = any(item.severity == "error" for item in found.findings)
    return len(found.clauses) == 1 and not found.decls and not errors
