"""A report as text for a terminal, as one HTML page, and as JUnit XML for other programs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from spak.evolve.experiments.model import Cell, Done, cells
from spak.evolve.experiments.summary import UNTESTED, Comparison, Report, SpecRow
from spak.runner.views.junit import attr, element, output, testcase

MARK = {"pass": "+", "fail": "-", "void": "?", "missing": "."}
WORDS = {
    "better": "is better",
    "worse": "is worse",
    "no_difference": "no difference shown",
    "no_result": "nothing to compare",
}
UNITS = {"tokens": ("tokens", 1.0, 0), "cost_nanousd": ("USD", 1e9, 4), "ms": ("s", 1000.0, 2)}
SPENT = {
    "runs": "the budget of runs is used up",
    "tokens": "the budget of tokens is used up",
    "money": "the budget of dollars is used up",
    "time": "the budget of run seconds is used up",
}
"""Why an experiment or a campaign stopped, as it is printed; another reason is printed as it is."""
UNKNOWN = {"tokens": "tokens", "cost_nanousd": "cost", "ms": "time"}

_STYLE = """
:root{color-scheme:light dark;--line:#8886}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
th,td{border-bottom:1px solid var(--line);padding:.3rem .7rem;text-align:left}
.scroll{overflow-x:auto}.pass{color:#187a3d}.fail{color:#b3261e}.void,.missing{color:#8a6100}
@media(prefers-color-scheme:dark){.pass{color:#7fd69b}.fail{color:#ff9d94}.void,.missing{color:#f0c36d}}
code{font-size:.85em}.verdict{font-size:1.3rem}
"""


def text(report: Report) -> str:
    """For a terminal: the matrix, a line for each spec, the verdict, and what has no result."""
    plan = report.plan
    lines = []
    width = max(len(case) for case in plan.cases)
    for case in plan.cases:
        row = "  ".join(f"{spec} {_marks(report, case, spec)}" for spec in plan.specs)
        lines.append(f"{case:<{width}}  {row}")
    lines.append("")
    for spec in report.specs:
        lines.append(f"{spec.spec}: {rate(spec)}")
        power = [f"pass^{k + 1} {value:.3f}" for k, value in enumerate(spec.power) if k and value is not None]
        lines += [f"  {', '.join(power)}"] if power else []
        lines += [f"  flaky: {', '.join(spec.flaky)}"] if spec.flaky else []
        lines.append(f"  a case: {', '.join(amount(name, spec.figures[name]) for name in UNITS)}")
        lines += [f"  void: {item}" for item in spec.void]
        lines += [f"  missing: {len(spec.missing)}, first {spec.missing[0]}"] if spec.missing else []
        lines.append(f"  spec {spec.hash}")
    for found in report.comparisons:
        lines += ["", *verdict(found)]
    if report.stopped:
        lines.append(f"stopped: {SPENT.get(report.stopped, report.stopped)}")
    lines.append(f"experiment {report.experiment}, suite {plan.suite_hash}, ledger {report.head}")
    return "\n".join(lines) + "\n"


def verdict(found: Comparison) -> list[str]:
    """The comparison in sentences."""
    lines = [
        f"{found.candidate} against {found.base}: {WORDS[found.verdict]} "
        f"({found.wins} won, {found.losses} lost, {found.ties} equal, p = {found.p:.3g})"
    ]
    if found.interval is not None:
        low, high = found.interval
        lines.append(
            f"  won less lost: {found.net:+.3f} of the cases, "
            f"{100 * (1 - found.alpha):.3g} % from {low:+.3f} to {high:+.3f}"
        )
    if found.difference != found.net:
        lines.append(f"  {found.difference:+.3f} of the runs pass")
    if found.verdict == "no_difference" and found.needed_n is not None:
        cases = f"{found.needed_n:,} case{'' if found.needed_n == 1 else 's'}"
        lines.append(f"  about {cases} would show a difference like this one")
    elif found.verdict == "no_difference":
        lines.append("  wins and losses are equal: no number of cases follows from them")
    for name in UNITS:
        if found.figures[name]["mean"]:
            untested = "; not tested, other work on the machine changes it" if name in UNTESTED else ""
            lines.append(f"  a case: {amount(name, found.figures[name], signed=True)}{untested}")
    if found.against:
        lines.append(f"  {len(found.against)} without a result count against it, first {found.against[0]}")
    if found.unpaired:
        lines.append(f"  {len(found.unpaired)} without a result are left out, first {found.unpaired[0]}")
    if found.non_inferior is not None:
        margin = found.non_inferior
        word = "holds" if margin["holds"] else "not shown"
        enough = margin["needed_ties"] or "too many"
        lines += [
            f"  no worse than {margin['margin'] * 100:g} points: {word} "
            f"(evidence {margin['evidence']:.3g} of 20)",
            f"  {margin['cases']} case{'' if margin['cases'] == 1 else 's'}; {enough} equal ones would do",
        ]
    return lines


def junit(report: Report, address: Callable[[str], str] = str) -> str:
    """JUnit XML: a suite for each spec, a test for each run with its address. It is red exactly where the
    report is not `ok`: by the runs of a single spec (void and missing are errors), else by the test `verdict`
    of a candidate; the outcomes of compared runs are output of their tests. One that is halted has an error
    of its own."""
    verdicts = {one.candidate: one for one in report.comparisons}
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for spec in report.plan.specs:
        rows = [(cell, report.done.get(cell)) for cell in cells(report.plan) if cell.spec == spec]
        tests = [_testcase(cell, done, address, bool(verdicts)) for cell, done in rows]
        tests += [_verdict_test(verdicts[spec])] if spec in verdicts else []
        failures, errors = (sum(f"<{tag} " in test for test in tests) for tag in ("failure", "error"))
        parts.append(
            f'<testsuite name={attr(spec)} tests="{len(tests)}" failures="{failures}" errors="{errors}">'
        )
        parts += [*tests, "</testsuite>"]
    if report.halted:
        why = SPENT.get(report.stopped, report.stopped)
        error = testcase(report.experiment, "stopped", 0, element("error", "stopped", why))
        parts.append(f'<testsuite name="stopped" tests="1" failures="0" errors="1">{error}</testsuite>')
    return "\n".join([*parts, "</testsuites>"]) + "\n"


def html(report: Report, address: Callable[[str], str]) -> str:
    """One page without scripts: verdict, figures, and the matrix with a link to the `address` of each run."""
    plan = report.plan
    head = "".join(f"<th scope=col>{escape(spec)}" for spec in plan.specs)
    rows = []
    for case in plan.cases:
        inside = "".join(f"<td>{_boxes(report, case, spec, address)}" for spec in plan.specs)
        rows.append(f"<tr><th scope=row>{escape(case)}{inside}")
    title = "Experiment " + escape(report.experiment)
    top = ""
    for found in report.comparisons:
        first, *more = verdict(found)
        top += f"<p class=verdict>{escape(first)}" + "".join(f"<p>{escape(line)}" for line in more)
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
            f"<p>suite <code>{escape(plan.suite)}</code> <code>{escape(plan.suite_hash)}</code>, "
            f"ledger <code>{escape(report.head)}</code>{_stopped(report)}",
            top,
            "<h2>Specs</h2><div class=scroll tabindex=0><table><tr><th scope=col>spec<th scope=col>passed"
            "<th scope=col>tokens<th scope=col>cost<th scope=col>time<th scope=col>flaky</tr>",
            *(_spec_row(row) for row in report.specs),
            "</table></div><h2>Cases</h2>",
            f"<div class=scroll tabindex=0><table><tr><th scope=col>case{head}</tr>",
            *rows,
            "</table></div></body></html>",
        ]
    )


def _stopped(report: Report) -> str:
    return f", stopped: {escape(SPENT.get(report.stopped, report.stopped))}" if report.stopped else ""


def _spec_row(row: SpecRow) -> str:
    amounts = "".join(f"<td>{escape(amount(name, row.figures[name]))}" for name in UNITS)
    return (
        f"<tr><th scope=row>{escape(row.spec)}<br><code>{escape(row.hash)}</code>"
        f"<td>{escape(rate(row))}{amounts}<td>{escape(', '.join(row.flaky) or 'none')}</tr>"
    )


def _boxes(report: Report, case: str, spec: str, address: Callable[[str], str]) -> str:
    parts = []
    for k in range(report.plan.n):
        done = report.done.get(Cell(case, spec, k))
        outcome = "missing" if done is None else done.outcome
        run = ""
        if done is not None:
            run = f' <a href="{escape(address(done.run))}"><code>{escape(done.run)}</code></a>'
        why = f": {escape(done.why[:300])}" if done is not None and done.why else ""
        parts.append(f'<div class="{outcome}">{outcome}{run}{why}</div>')
    return "".join(parts)


def _testcase(cell: Cell, done: Done | None, address: Callable[[str], str], compared: bool) -> str:
    outcome = "missing" if done is None else done.outcome
    body = "" if done is None else f"run {address(done.run)}\n{done.why}"
    inside = ""
    if compared and outcome != "pass":
        inside = output(f"{outcome}\n{body}")
    elif outcome != "pass":
        why = "missing" if done is None else done.why.partition("\n")[0][:200]
        inside = element("failure" if outcome == "fail" else "error", outcome, body, why)
    return testcase(cell.spec, f"{cell.case}#{cell.k + 1}", 0 if done is None else done.ms, inside)


def _verdict_test(found: Comparison) -> str:
    body = "\n".join(verdict(found))
    inside = output(body) if found.ok else element("failure", found.verdict, body)
    return testcase(found.candidate, "verdict", 0, inside)


def _marks(report: Report, case: str, spec: str) -> str:
    found = (report.done.get(Cell(case, spec, k)) for k in range(report.plan.n))
    return "".join(MARK["missing" if done is None else done.outcome] for done in found)


def rate(row: SpecRow) -> str:
    """Passes of the cells that count with the exact interval, in words."""
    if not row.n:
        return "no run has a result"
    low, high = row.interval
    share = 100 * row.passed / row.n
    return f"{row.passed} of {row.n} passed, {share:.0f} % (95 % from {100 * low:.0f} to {100 * high:.0f} %)"


def amount(name: str, figure: Mapping[str, Any], signed: bool = False) -> str:
    """A mean by case with its interval, in words."""
    unit, scale, digits = UNITS[name]
    if figure["mean"] is None:
        return f"{UNKNOWN[name]} unknown"
    sign = "+" if signed else ""
    mean = f"{figure['mean'] / scale:{sign}.{digits}f} {unit}"
    if figure["interval"] is None:
        return mean
    low, high = (value / scale for value in figure["interval"])
    ends = f"{low:{sign}.{digits}f} to {high:{sign}.{digits}f}"
    return f"{mean} (approximately {ends}, {figure['cases']} cases)"
