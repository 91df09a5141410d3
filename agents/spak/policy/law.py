"""The policy of a run, put together: the constitution, the spec's own POLICY, and its AXIOMs that are rules.

Takes texts; gives a Policy, or raises with every finding. What only the kernel and the world state
(`spak.policy.shards.RESERVED`), and what a prohibition of the law rests on through a negation (closed.py), no
text of a spec may state or derive. It reads no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spak.policy.closed import closed
from spak.policy.errors import PolicyError
from spak.policy.parse import parse
from spak.policy.session import Policy, load
from spak.policy.shards import RESERVED
from spak.policy.syntax import Finding

SPEC = "POLICY"
"""The name of the file that the spec's own policy is, in findings and proofs."""


def compiled(
    constitution: Mapping[str, str], spec: str, axioms: Mapping[str, str], *, is_closed: bool = True
) -> Policy:
    """The policy of a run; `is_closed` keeps a spec from lifting what the law forbids (since semantics 3).

    Raises: PolicyError `policy.invalid`, `policy.reserved`.
    """
    own = {name: text for name, text in ((SPEC, spec), *axioms.items()) if text}
    made = load({**constitution, **own})
    wrong = tuple(
        Finding(
            "policy.reserved",
            "error",
            f"rows of {clause.head.pred} are facts: the kernel or the world states them, no policy does",
            clause.place,
            "state what follows from them under another name",
        )
        for clause in made.clauses
        if clause.place.file in own and clause.head.pred in RESERVED
    )
    shut = closed(made, own) if is_closed and own else frozenset()
    wrong += tuple(
        Finding(
            "policy.reserved",
            "error",
            f"{clause.head.pred} is the law's: one more row of it could lift what the law forbids",
            clause.place,
            "a spec forbids more, or adds rows to a table that the law opens; an operator changes the law",
        )
        for clause in made.clauses
        if clause.place.file in own and clause.head.key in shut and clause.head.pred not in RESERVED
    )
    if wrong:
        first = wrong[0]
        raise PolicyError("policy.reserved", f"{first.place}: {first.message}", first.hint, wrong)
    return made


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
