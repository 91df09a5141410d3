"""Mutants of the shipped constitution: each rule taken away, weakened, turned round, one at a time.

Takes a policy; gives every mutant that still is a policy, with a name that says what was changed and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spak.datalog import Policy
from spak.datalog.static_check import check
from spak.datalog.syntax import Clause, Literal_, Part, Source
from spak.datalog.text.format import numbered

ELSEWHERE = "guards.mg"
"""Its rules have cases and mutants of their own (test_guards)."""

EQUIVALENT = frozenset(
    [
        "network.mg: without condition 3: permitted(V0) :- tool(V0, /http_request), "
        'asks_url(V0, "https", V1, 443), allowed_host(V1), asks_method(V0, V2), reading_method(V2), '
        "!odd_url(V0), !odd_header(V0), !sends_body(V0).",
        "network.mg: without condition 3: permitted(V0) :- tool(V0, /tunnel), asks_url(V0, _, V1, 443), "
        "allowed_host(V1), !odd_url(V0).",
    ]
)
"""Mutants that decide everything alike. Of these guards.mg forbids what they would permit, a host that is
not named, unless a person has signed for it, and what is signed for is permitted by base.mg: the condition is
held twice, so that neither file alone lets a strange host through."""

TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "!=", "!=": "="}
HEADS = {"permitted": "forbidden", "forbidden": "permitted"}


def mutants(policy: Policy) -> Iterator[tuple[str, Policy]]:
    """Every mutant; what does not load any more is none."""
    clauses, decls = list(policy.clauses), tuple(policy.decls.values())
    for index, clause in enumerate(clauses):
        if clause.place.file == ELSEWHERE:
            continue
        for what, changed in _changes(clause):
            kept = (*clauses[:index], *((changed,) if changed else ()), *clauses[index + 1 :])
            if any(item.severity == "error" for item in check((Source("all.mg", kept, decls, ()),))):
                continue
            yield f"{clause.place.file}: {what}: {numbered(clause)}", Policy(kept, decls, ())


def _changes(clause: Clause) -> Iterator[tuple[str, Clause | None]]:
    yield "taken away", None
    if clause.head.pred in HEADS:
        head = replace(clause.head, pred=HEADS[clause.head.pred])
        yield "head turned", replace(clause, head=head)
    for index, part in enumerate(clause.body):
        rest = (*clause.body[:index], *clause.body[index + 1 :])
        if rest:
            yield f"without condition {index + 1}", replace(clause, body=rest)
        turned: Part
        if isinstance(part, Literal_):
            turned = replace(part, negated=not part.negated)
        else:
            turned = replace(part, op=TURNED[part.op])
        body = (*clause.body[:index], turned, *clause.body[index + 1 :])
        yield f"condition {index + 1} turned", replace(clause, body=body)
