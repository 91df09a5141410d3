"""A run as JUnit XML, for CI: a test for each time that a step ended, and one for the whole run. Pure.

Its parts (`testcase`, `element`, `output`, `attr`) also make the report of an experiment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from spak.errors import LedgerError
from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand
from spak.runner.views import causes, own_tests
from spak.runner.views.run_json import OWN_TESTS

_NO_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\ufffd")
"""Characters that XML cannot hold. Source: XML 1.0, section 2.2."""
FAILED = frozenset({"fail", "timeout"})
"""Signals with which a task did not do what it was to do."""
LAST_LINES, LAST_LETTERS = 20, 2_000
"""The most of a failed step's output that a test shows."""


def junit(name: str, records: Iterable[Record], url: str = "", blobs: Blobs | None = None) -> str:
    """`name` is the spec's, `url` the run's address, `blobs` has the texts that records only refer to.

    Failures and errors are there exactly where the run did not succeed: a fail that the spec has an edge for
    is output of its test then. Refused, cancelled and unfinished runs are errors; times in s.
    """
    visits: list[tuple[str, int, str, str]] = []
    many: Counter[str] = Counter()
    began = last = first = 0
    trail, out, apart = causes.Trail(), "", dict[str, Any]()
    for record in records:
        first = first or record.at
        began, last = began or record.at, record.at
        trail.feed(record)
        own_tests.feed(apart, record)
        if record.kind == Kind.ACT and "out" in record.body:
            out = _last_lines(record.body["out"], blobs)
        if record.kind == Kind.ROUTE and record.body.get("signal"):
            test = f"{record.task}.{record.step}"
            many[test] += 1
            test += f" #{many[test]}" if many[test] > 1 else ""
            signal = str(record.body["signal"])
            failed = signal if signal in FAILED else ""
            why = _why(trail, str(record.body.get("code") or signal), out) if failed else ""
            visits.append((test, last - began, failed, why))
            began, out = record.at, ""
    state = str(trail.end.body["state"]) if trail.end is not None else "not ended"
    codes = ", ".join(map(str, trail.end.body.get("codes") or ())) if trail.end is not None else ""
    cause = trail.sentence() if visits else ""  # whoever may not see the text gets no routes and no cause
    good = state == "succeeded"
    cases = [
        testcase(
            name, test, ms, "" if not failed else output(why) if good else element("failure", failed, why)
        )
        for test, ms, failed, why in visits
    ]
    failures = 0 if good else sum(bool(failed) for _, _, failed, _ in visits) + (state == "failed")
    errors = int(state not in ("succeeded", "failed"))
    about = "\n".join(filter(None, (codes or state, cause, url)))
    whole = element("error" if errors else "failure", state, about)
    said = "\n".join(filter(None, (_by_own_tests(apart), url)))
    cases.append(testcase(name, "the run", last - first, (output(said) if said else "") if good else whole))
    head = (
        f'<testsuite name={attr(name)} tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'time="{(last - first) / 1000:.3f}">'
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", head, *cases]
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _by_own_tests(apart: Mapping[str, Any]) -> str:
    """What to say of a success whose check fails without paths that the run changed."""
    paths = own_tests.known(apart)
    return f"{OWN_TESTS}: its check fails without {own_tests.named(paths)}" if paths else ""


def _why(trail: causes.Trail, code: str, out: str) -> str:
    """The step that failed, its exit code or what its check says, the code, and the last lines of output."""
    if not trail.failures:
        return code
    found = trail.failures[-1]
    step = f"step {found.step}" if found.step and found.name != causes.CHECK else found.name
    first = ": ".join(filter(None, (step, found.why))) + f" [{code}]"
    return f"{first}\n{out}" if out else first


def _last_lines(out: Any, blobs: Blobs | None) -> str:
    """The end of an output; of one that is a blob which nobody gives, what the record has of it."""
    if isinstance(out, Mapping):
        try:
            out = expand(out, blobs) if blobs is not None else out.get("tail") or out.get("head", "")
        except LedgerError:
            out = out.get("tail") or out.get("head", "")
    return "\n".join(str(out).strip().splitlines()[-LAST_LINES:])[-LAST_LETTERS:]


def testcase(name: str, task: str, ms: int, inside: str) -> str:
    """A test of the class `name`, with what is inside of it."""
    return f'<testcase classname={attr(name)} name={attr(task)} time="{ms / 1000:.3f}">{inside}</testcase>'


def element(kind: str, type_: str, text: str, message: str = "") -> str:
    """A failure or an error; the message is the first line of the text, unless there is another."""
    message = message or text.partition("\n")[0]
    return f"<{kind} type={attr(type_)} message={attr(message)}>{_text(text)}</{kind}>"


def output(text: str) -> str:
    """What a test said."""
    return f"<system-out>{_text(text)}</system-out>"


def _text(text: str) -> str:
    return escape(text.translate(_NO_XML))


def attr(text: str) -> str:
    """A value of an attribute, in quotes."""
    return quoteattr(text.translate(_NO_XML))
