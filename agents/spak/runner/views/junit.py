"""A run as JUnit XML, for CI: a test for each time that a task ended, and one for the whole run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from spak.records import Kind, Record

_NO_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\ufffd")
"""Characters that XML cannot hold. Source: XML 1.0, section 2.2."""
FAILED = frozenset({"fail", "timeout"})
"""Signals with which a task did not do what it was to do."""


def junit(name: str, records: Iterable[Record]) -> str:
    """`name` is the spec's. Refused, cancelled and unfinished runs are errors; times in s."""
    cases: list[str] = []
    failures = errors = 0
    visits: Counter[str] = Counter()
    began = last = first = 0
    end: Record | None = None
    for record in records:
        first = first or record.at
        began, last = began or record.at, record.at
        if record.kind == Kind.ROUTE and record.body.get("signal"):
            visits[record.task] += 1
            many = f" #{visits[record.task]}" if visits[record.task] > 1 else ""
            signal = str(record.body["signal"])
            bad = signal in FAILED
            failures += bad
            code = str(record.body.get("code") or signal)
            inside = _element("failure", signal, code) if bad else ""
            cases.append(_case(name, record.task + many, last - began, inside))
            began = record.at
        elif record.kind == Kind.END:
            end = record
    state = str(end.body["state"]) if end is not None else "not ended"
    words = ", ".join(map(str, (end.body.get("codes") or ()) if end is not None else ())) or state
    if state == "failed":
        failures, inside = failures + 1, _element("failure", state, words)
    elif state != "succeeded":
        errors, inside = errors + 1, _element("error", state, words)
    else:
        inside = ""
    cases.append(_case(name, "the run", last - first, inside))
    head = (
        f'<testsuite name={_attr(name)} tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'time="{(last - first) / 1000:.3f}">'
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", head, *cases]
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _case(name: str, task: str, ms: int, inside: str) -> str:
    return f'<testcase classname={_attr(name)} name={_attr(task)} time="{ms / 1000:.3f}">{inside}</testcase>'


def _element(kind: str, type_: str, message: str) -> str:
    return f"<{kind} type={_attr(type_)} message={_attr(message)}/>"


def _attr(text: str) -> str:
    return quoteattr(text.translate(_NO_XML))
