"""The first stage: a candidate that does not parse, check and format back to itself is refused unmeasured.

Invariants of the graph come from `check`: an end stays reachable, every loop has a budget, every trigger is
handled. What the base has wrong already is not held against the candidate; one more of a kind is.
"""

from __future__ import annotations

from collections import Counter

from spak.errors import UserError
from spak.evolve.gate.candidate import Candidate
from spak.evolve.gate.stage import Stage
from spak.lang import check, parse
from spak.lang.catalog import Catalog
from spak.lang.diagnostics import Severity
from spak.lang.diff import compare
from spak.lang.format import format_text

KEPT = frozenset(
    {
        *(
            "lang.no_end",
            "lang.unreachable_task",
            "lang.unbounded_loop",
            "lang.no_budget",
            "lang.dead_trigger",
        ),
        *("lang.unjudged_write", "lang.unchecked_task", "lang.idle_heuristic", "lang.denied"),
        *("lang.maybe_unbound", "lang.never_bound", "lang.empty_task", "lang.lookalike", "lang.direction"),
    }
)
"""Warnings of which a candidate may not have more than its base."""


def form(base: str, candidate: Candidate, catalog: Catalog) -> tuple[Stage, str]:
    """The verdict, and the candidate's text (empty where there is none)."""
    try:
        text = candidate.text(base)
    except UserError as error:
        return Stage("form", "fail", f"it cannot be applied: {error.message} [{error.code}]"), ""
    old, new = parse(base), parse(text)
    found = compare(old, new, catalog)
    if found.equal:
        return Stage(
            "form", "fail", "it changes nothing but layout" if found.formatting_only else "it changes nothing"
        ), ""
    before, after = (Counter(_kept(parsed, catalog)) for parsed in (old, new))
    more = after - before
    if more:
        code, message = next(iter(more))
        return Stage("form", "fail", f"{message} [{code}]"), ""
    try:
        formatted = format_text(text).text
    except UserError as error:
        return Stage("form", "fail", f"it cannot be formatted: {error.message}"), ""
    if parse(formatted).spec.hash != new.spec.hash or format_text(formatted).text != formatted:
        return Stage("form", "fail", "formatting it changes what it means"), ""
    return Stage("form", "pass", evidence={"spec": new.spec.hash, "base": old.spec.hash}), text


def _kept(parsed: object, catalog: Catalog) -> list[tuple[str, str]]:
    return [
        (item.code, item.message)
        for item in check(parsed, catalog)  # type: ignore[arg-type]
        if item.severity == Severity.ERROR or item.code in KEPT
    ]
