"""What came of an effect, as codes: why a tool was rolled back, and what a check found in the present files.

Takes the body of an act, or a check's signal; gives codes and rows for the registers. Pure; decides no route.
Source: DESIGN.md section 4 (rollback), ADR 0022 (checks hold for files).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel import fit
from spak.kernel.rules import Rules

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

REPOSITORY = "workspace.repository"
"""Why the runner undid what was permitted: it changed .git in a way that nothing permits (ADR 0022)."""

SETTINGS = "workspace.settings"
"""The same: it changed a `spak.toml` in the folder of a person, which decides what later runs may do."""

CONTROL = "workspace.control"
"""The same: its programs changed a file that says what is run, which the law permits to no command line."""

EMPTIED = "workspace.emptied"
"""The same: its programs left nothing in a file of code or text, which they did not remove."""

CHANGES = "policy.changes"
"""The same: the law forbids what it changed."""

_UNTOUCHED = {
    CHANGES: "changes that the law permits",
    REPOSITORY: "no change of .git but by git_commit, or by git alone on a line; "
    "commits hold the checked files",
    SETTINGS: "spak.toml as it was: it says what later runs may do",
    CONTROL: "files that say what is run as they were: write_file and apply_patch may change them",
    EMPTIED: "files of code with something in them; a line may remove those that it names",
}

PASSED = ("success", "metric_improved")
BEGINNING = "beginning:"
"""What the options of a check begin with that was taken again, on the run's ordinary changes alone."""
MAX_CHECKS = 50


def rolled_back(rules: Rules, body: Mapping[str, Any]) -> tuple[str, str]:
    """The outcome of a tool that did not end by itself, and its code."""
    outcome = body.get("outcome")
    known = outcome if isinstance(outcome, str) and outcome in ROLLED_BACK else "invalid"
    given = body.get("code") if known == "invalid" and rules.decides.runner_codes else None
    codes = (*NOT_DONE, *_UNTOUCHED) if rules.decides.checks_hold_files else NOT_DONE
    return known, str(given) if given in codes else f"tool.{known}"


def rollback_r4(outcome: str, code: str, hint: str, why: object = None) -> Mapping[str, Any]:
    """R4 for it."""
    if code in _UNTOUCHED:
        return fit.r4(code, _UNTOUCHED[code], why if isinstance(why, str) else "undone", hint)
    return fit.r4(code, "the tool to end by itself", outcome, hint)


def with_check(
    rules: Rules,
    known: tuple[tuple[str, str, str], ...],
    validator: str,
    options: Mapping[str, Any],
    signal: str,
    code: str,
    beginning: bool = False,
) -> tuple[tuple[str, str, str], ...]:
    """The checks of the present files with one more; the same check, taken again, replaces it. Bounded. One
    of the `beginning` is kept beside that of the run's own files."""
    subject = ""
    if rules.decides.checks_hold_files:
        subject = canon.content_hash(options)
        if signal == "plateau":
            signal = "fail" if code else "success"
    if beginning:
        subject = BEGINNING + subject
    checks = {(name, of): found for name, of, found in known}
    checks[validator, subject] = signal
    failed_first = sorted(checks.items(), key=lambda item: item[1] in PASSED)[:MAX_CHECKS]
    return tuple(sorted((name, of, found) for (name, of), found in failed_first))
