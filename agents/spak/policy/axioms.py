"""Which AXIOMs of a spec are rules: those whose whole text is clauses of a policy, and no others.

Takes the texts in their order; gives the rules by name (`AXIOM 2`), ready to be loaded beside the
constitution. A sentence is never half understood: what does not parse as a whole stays prose, which is said
to a model and counts as checked only where a CHECK says how. Source: DESIGN.md section 4, seed 004.
"""

from __future__ import annotations

from collections.abc import Sequence

from spak.policy.parse import parse


def rules_of(axioms: Sequence[str]) -> dict[str, str]:
    """The axioms that are rules, by name: their place among all axioms, from 1."""
    return {name_of(index): text for index, text in enumerate(axioms, start=1) if is_rule(text)}


def name_of(index: int) -> str:
    """The name that a rule of an axiom has in findings and proofs."""
    return f"AXIOM {index}"


def is_rule(text: str) -> bool:
    """True when the whole text is clauses in Mangle's own form."""
    if "(" not in text or not text.rstrip().endswith("."):
        return False
    source = parse(text, "AXIOM")
    return bool(source.clauses) and not source.decls and not source.findings
