"""What came of an effect, as codes: why a tool was rolled back, and what a check found in the present files.

Takes the body of an act, or a check's signal; gives codes and rows for the registers. Pure; decides no route.
Source: DESIGN.md section 4 (rollback), ADR 0022 (checks hold for files).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel import fit

ROLLED_BACK = frozenset({"timeout", "oom", "limit", "launcher", "unknown", "crash", "invalid"})
"""Outcomes of a tool whose changes are rolled back; a non-zero exit is not one of them."""

NOT_DONE = (
    "policy.changed",
    "secret.unknown",
    "secret.judged",
    "secret.long_text",
    "run.text_too_long",
    "schema.const",
    "schema.enum",
    "schema.max_length",
    "schema.min_length",
    "schema.pattern",
)
"""Why the runner did not do what was permitted."""

CHANGES = "policy.changes"
"""Why the runner undid what was permitted: the law forbids what it changed."""

PASSED = ("success", "metric_improved")
BEGINNING = "beginning:"
"""What the options of a check begin with that was taken again, on the run's ordinary changes alone."""
SEALED = "sealed:"
"""What those of sealed checks begin with, which are one check of all that the run made."""
SEALED_CHECKS = "sealed"
"""What sealed checks are called among validators."""
MAX_CHECKS = 50


def rolled_back(body: Mapping[str, Any]) -> tuple[str, str]:
    """The outcome of a tool that did not end by itself, and its code."""
    outcome = body.get("outcome")
    known = outcome if isinstance(outcome, str) and outcome in ROLLED_BACK else "invalid"
    given = body.get("code") if known == "invalid" else None
    return known, str(given) if given in (*NOT_DONE, CHANGES) else f"tool.{known}"


def rollback_r4(outcome: str, code: str, hint: str, why: object = None) -> Mapping[str, Any]:
    """R4 for it."""
    if code == CHANGES:
        return fit.r4(code, "changes that the law permits", why if isinstance(why, str) else "undone", hint)
    if code in NOT_DONE and isinstance(why, str):
        return fit.r4(code, "a call that can be made", why, hint)
    return fit.r4(code, "the tool to end by itself", outcome, hint)


def with_check(
    known: tuple[tuple[str, str, str], ...],
    validator: str,
    options: Mapping[str, Any],
    signal: str,
    code: str,
    kind: str = "",
) -> tuple[tuple[str, str, str], ...]:
    """The checks of the present files with one more; the same check, taken again, replaces it. Bounded. One
    of another kind (BEGINNING, SEALED) is kept beside that of the run's own files."""
    subject = kind + canon.content_hash(options)
    if signal == "plateau":
        signal = "fail" if code else "success"
    checks = {(name, of): found for name, of, found in known}
    checks[validator, subject] = signal
    failed_first = sorted(checks.items(), key=lambda item: item[1] in PASSED)[:MAX_CHECKS]
    return tuple(sorted((name, of, found) for (name, of), found in failed_first))
