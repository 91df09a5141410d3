"""A validator's Measurement as it is recorded: the body that the kernel decides on, and its side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spak import canon
from spak.diagnostics import first
from spak.errors import RunError
from spak.lang.catalog import ToolEntry, ValidatorEntry
from spak.lang.schema import violations
from spak.ports import Blobs, Measurement
from spak.program.model import MetricRule
from spak.runner.blobs import shrink

MAX_DIAGNOSTICS = 50


def recorded(
    of: str, seen: Measurement, blobs: Blobs, clean: Callable[[Any], Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Body and side of the proposal that answers the effect `of`; `clean` removes secrets from a value."""
    whole = clean([dict(check) for check in seen.checks])
    checks = [{name: value for name, value in check.items() if name != "detail"} for check in whole]
    body: dict[str, Any] = {
        "of": of,
        "outcome": "exited",
        "status": seen.status,
        "checks": checks,
        "key": canon.content_hash([seen.status, [[check.get("ok"), check.get("code")] for check in checks]]),
    }
    optional = {
        "metrics": dict(seen.metrics),
        "pairs": [dict(pair) for pair in seen.pairs],
        "samples": {name: list(values) for name, values in seen.samples.items()},
        "subject": {role: {"$blob": blobs.put(data)} for role, data in seen.subject.files.items()},
        "diagnostics": shrink(clean(first(seen.diagnostics, MAX_DIAGNOSTICS)), blobs),
        "evidence": shrink(clean(dict(seen.evidence)), blobs),
    }
    body |= {name: value for name, value in optional.items() if value}
    details = {check["name"]: check["detail"] for check in whole if check.get("detail")}
    side: dict[str, Any] = {"ms": seen.wall_ms, "cpu_ms": seen.cpu_ms}
    if details:
        side["details"] = shrink(details, blobs)
    return body, side


def must_fit(entry: ToolEntry | ValidatorEntry, used: Any, judged: Any) -> None:
    """Judge arguments by their schema once more, now that the texts of references are known.

    Raises: RunError `schema.*` for what does not fit.
    """
    if used != judged and (found := violations(entry.schema, used)):
        first = found[0]
        raise RunError(first.code, f"{first.path}: expected {first.expected}", first.hint)


def lacking(entry: ValidatorEntry, options: Any) -> Measurement | None:
    """What stands in for a measurement where an option that the validator needs is missing; else None."""
    given = options if isinstance(options, Mapping) else {}
    missing = [name for name in entry.schema.get("required", ()) if name not in given]
    if not missing:
        return None
    detail = f"{entry.name} {{ {' '.join(f'{name}: ...' for name in missing)} }}"
    return failed(f"an option is missing: {', '.join(missing)}", detail)


def failed(message: str, detail: str) -> Measurement:
    """What stands in for a measurement that the options do not allow."""
    finding = {
        "severity": "info",
        "code": "options",
        "message": message,
        "hint": detail,
    }
    check = {"name": "options", "ok": False, "code": "options", "detail": detail}
    return Measurement("checked", checks=(check,), diagnostics=(finding,))


def integers(rule: MetricRule | None) -> dict[str, int]:
    """What a validator is given of a task's rule; nothing without one."""
    if rule is None:
        return {}
    names = ("margin_num", "margin_den", "evidence", "max_pairs")
    return {**{name: getattr(rule, name) for name in names}, "higher": int(rule.better == "higher")}
