"""Axioms with a CHECK: are the check and its arguments those of the catalog, and which does a validator get?

Takes an Outline; reports unknown checks and arguments that do not fit, of a SYSTEM_MODEL as well as of a
validator's own list of axioms; gives the SYSTEM_MODEL's axioms in the form that such a validator takes. A
catalog without checks (one of a genesis record) judges none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.lang import ast, values
from spak.lang.catalog import NamedEntry
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import Choice, Outline
from spak.lang.report import Report
from spak.lang.schema import Violation, violations
from spak.policy.law import is_clause

_LEAST = ("schema.minimum", "schema.min_items", "schema.min_length")


def stated(spec: ast.Spec, report: Report) -> list[dict[str, Any]]:
    """Every axiom as `{text, check, args}`, in order; `check` is empty where it has none."""
    found = []
    for axiom in _axioms(spec):
        body = axiom.check.body if axiom.check else None
        args = values.plain_map(body, report, values.as_text)
        check = axiom.check.name if axiom.check else ""
        found.append({"text": axiom.text.value, "check": check, "args": args})
    return found


def for_validator(made: Outline) -> tuple[dict[str, Any], ...]:
    """The axioms for a validator that was given none: all but rules of the policy; empty where none of them
    has a CHECK."""
    found = stated(made.spec, Report(made.spec.source))
    if not any(axiom["check"] for axiom in found):
        return ()
    return tuple(
        axiom if axiom["check"] else {"text": axiom["text"]}
        for axiom in found
        if axiom["check"] or not is_clause(axiom["text"])
    )


def check_axioms(made: Outline) -> None:
    """The CHECKs of the SYSTEM_MODELs."""
    for axiom in _axioms(made.spec) if made.catalog.checks else ():
        if axiom.check is not None:
            args = values.plain_map(axiom.check.body, made.report, values.as_text)
            body = axiom.check.body.entries if axiom.check.body is not None else ()
            _judge(made, axiom.check.name, args, axiom.check.start, {entry.key: entry for entry in body})


def check_option(made: Outline, choice: Choice, given: Mapping[str, Any]) -> None:
    """A validator's option of axioms: judged where it is given; where it is not, there must be others."""
    name = getattr(choice.entry, "axioms", "")
    if not name:
        return
    if name not in given:
        if not for_validator(made):
            hint = 'AXIOM "..." CHECK max_lines { lines: 80 } in the SYSTEM_MODEL'
            message = f"{choice.name} has nothing to check: no AXIOM has a CHECK"
            report = made.report.warn if choice.options is None else made.report.error
            report("lang.missing_option", message, hint, choice.at)
        return
    entries = choice.options.entries if choice.options is not None else ()
    value = next((item.value for item in entries if item.key == name), None)
    if isinstance(value, ast.ListValue):
        for node, item in zip(value.items, given[name], strict=False):
            if isinstance(node, ast.MapValue) and isinstance(item, Mapping):
                _judge_item(made, node, item)


def _judge_item(made: Outline, node: ast.MapValue, item: Mapping[str, Any]) -> None:
    entries = {entry.key: entry for entry in node.entries}
    check, args = item.get("check"), item.get("args", {})
    if isinstance(check, str) and isinstance(args, Mapping) and "$text" not in args:
        below = entries["args"].value if "args" in entries else None
        inner = below.entries if isinstance(below, ast.MapValue) else ()
        _judge(made, check, args, entries["check"].value, {entry.key: entry for entry in inner})


def _judge(
    made: Outline, name: str, args: Mapping[str, Any], at: Any, entries: Mapping[str, ast.Entry]
) -> None:
    """Report a check that does not exist, or the first argument of one that does not fit."""
    known, report = made.catalog.checks, made.report
    if not known or not name:
        return
    check = known.get(name)
    if check is None:
        hint = did_you_mean(name, known) or f"known: {', '.join(sorted(known))}"
        bare = isinstance(at, (int, ast.Name))  # a text keeps its quotes
        fix = report.replace(at, nearest(name, known)) if bare else None
        report.error("lang.unknown_check", f"unknown check '{name}'", hint, at, fix)
        return
    found = violations(check.schema, args)
    for wrong in sorted(found, key=lambda item: item.code != "schema.unknown_member")[:1]:
        key = wrong.path.split("/")[1] if wrong.path else ""
        _report_wrong(made.report, check, wrong, key, entries.get(key, at))


def _report_wrong(report: Report, check: NamedEntry, wrong: Violation, key: str, at: Any) -> None:
    """Report an argument of a check that does not fit: at its entry, or at the check where it is missing."""
    name, takes = check.name, check.schema.get("properties", {})
    entry = at if isinstance(at, ast.Entry) else None
    if wrong.code == "schema.required":
        hint = f"CHECK {name} {{ {wrong.expected}: ... }}"
        report.error("lang.argument", f"check {name} needs '{wrong.expected}'", hint, at)
    elif wrong.code == "schema.unknown_member":
        hint = did_you_mean(key, takes) or f"it takes: {', '.join(takes) or 'nothing'}"
        fix = report.replace(entry.start, nearest(key, takes)) if entry is not None else None
        place = entry.start if entry is not None else at
        report.error("lang.argument", f"check {name} takes no '{key}'", hint, place, fix)
    else:
        least = "at least " if wrong.code in _LEAST else ""
        kinds = wrong.expected if isinstance(wrong.expected, list) else [wrong.expected]
        message = f"'{key}' of check {name} wants {least}{' or '.join(map(str, kinds))}, not {wrong.received}"
        place = entry.value if entry is not None else at
        report.error("lang.argument", message, wrong.hint or f"CHECK {name} {{ {key}: ... }}", place)


def _axioms(spec: ast.Spec) -> list[ast.Axiom]:
    return [item for model in spec.models() for item in model.items if isinstance(item, ast.Axiom)]
