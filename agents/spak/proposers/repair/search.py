"""The search for a repair: what fails, where it may come from, which edits pass, and which is accepted.

    1. Every test runs by itself, a failing one several times. What fails now and then is not searched.
    2. The tests are split by the seed. Lines of the visible ones give the suspicion, its functions the edits.
    3. The edits are tried in order of suspicion and of their operator's class, on the visible tests of their
       function. Time-outs have two phases: an edit that a short limit ended is tried once more with a long
       one when nothing else passed. Budgets are counts, so that the same seed finds the same on every day.
    4. What passes meets the checks of spak.proposers.repair.checks; one patch is accepted, or none.
    5. Where none is accepted and a model can be asked, it gives one more candidate for the same checks.

Takes a MeasureCall and Options; gives a Found, whose `patch` is empty where there is a refusal. It writes
nothing into the workspace and decides nothing about the run: the five verdicts are recorded and judged there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spak import canon
from spak.errors import RunError, UnavailableError, UsageError, UserError
from spak.files import beneath
from spak.ports import Ask, MeasureCall
from spak.proposers.repair import checks, lab, model, progress
from spak.proposers.repair.candidates import Candidate
from spak.proposers.repair.contradictions import contradicted
from spak.proposers.repair.functions import Function, functions
from spak.proposers.repair.locate import Ran, Split, editable, limits, split, suspicion, table
from spak.proposers.repair.operators import edits
from spak.proposers.repair.refusals import Refusal, listed, nowhere

MOST_TESTS, MOST_LINES, MOST_FILE = 2000, 2000, 1 << 20
PENALTY = 120
"""Thousandths of suspicion that one class of operators is worth."""
RUNS = 5
"""How often a failing test runs before it counts as failing."""
JOB_S = 1800


@dataclass(frozen=True, slots=True)
class Options:
    """What bounds a search; all are counts but `test_s`."""

    tests: tuple[str, ...] = ()
    test: str = ""
    answered: str = ""
    """A file of tests that are answers of people: all visible (spak.proposers.repair.answers)."""
    candidates: int = 6000
    further: int = 1500
    """Edits that are tried after the first one that passes."""
    inputs: int = 150
    visible: int = 60
    test_s: float = 5.0
    edits: Mapping[str, str] = field(default_factory=dict)
    """New texts of files that are judged in the place of a search, by path."""
    off: frozenset[str] = frozenset()
    """Checks that are left out, to see what each catches; of benches and tests, no run can ask for it."""
    compare_all: bool = False
    """Whether patches that fail hidden tests are compared too, as a bench needs it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a search."""

    record: Mapping[str, Any]
    """Parameters and counts, as they are recorded."""
    candidate: Candidate | None = None
    verdicts: tuple[checks.Verdict, ...] = ()
    refusal: Refusal | None = None


def find(call: MeasureCall, options: Options) -> Found:
    """Search, or say why not. Raises: UnavailableError, RunError `repair.incomplete`; UsageError
    `repair.test`; Cancelled."""
    looked = look(call, options)
    refusal = looked.refusal
    if refusal is None and options.answered:
        refusal = contradicted(call, options.answered, looked.parts, JOB_S)
    if refusal is not None:
        return Found(looked.record, refusal=refusal)
    found = _searched(call, options, looked.parts, looked.files, dict(looked.record))
    refusal = found.refusal
    if refusal is None or refusal.code not in model.HELPS or call.ask is None or options.edits:
        return found
    return _asked(call, call.ask, options, looked, found)


def _asked(call: MeasureCall, ask: Ask, options: Options, looked: Looked, found: Found) -> Found:
    """The same with the candidate of a model: its patch, or the end of the search with why there is none."""
    suspects = suspicion(looked.parts.visible)
    places = suspected(call, suspects, looked.files)
    shown, items, schema = model.question(places, suspects, looked.parts.visible)
    if not shown:
        return found

    def refused(refusal: Refusal) -> Found:
        return replace(found, record={**found.record, "model": refusal.to_json()})

    progress.tell(call, "no edit is accepted; a model is asked")
    try:
        answer = ask(items, schema)
    except (RunError, UnavailableError) as error:
        if not error.code.startswith("llm."):
            raise
        return refused(Refusal(error.code, error.message, error.hint))
    if not answer:
        return found
    candidate = model.read(answer, shown, schema)
    if isinstance(candidate, Refusal):
        return refused(candidate)
    tried = _tried(call, options, looked.parts, [candidate], {}, suspects)
    if tried.refusal is not None:
        return refused(model.judged(candidate, tried.refusal))
    return replace(tried, record={**found.record, "by": "model", "checked": tried.record})


@dataclass(frozen=True, slots=True)
class Looked:
    """The tests before any change: what a search sees of them, and the files that they are in."""

    record: Mapping[str, Any]
    parts: Split = field(default_factory=lambda: Split((), ()))
    files: frozenset[str] = frozenset()
    refusal: Refusal | None = None


def look(call: MeasureCall, options: Options) -> Looked:
    """Run every test by itself and split them, or say why nothing is searched. Raises: as `find`."""
    paths, answered = options.tests, options.answered
    if answered and not any(one == "." or f"{answered}/".startswith(f"{one}/") for one in paths):
        paths = (*paths, answered)
    missing = next((path for path in paths if not (call.workspace / path).exists()), None)
    if missing is not None:
        raise UsageError("repair.test", f"there is no path {missing!r}", "name one of the project")
    seen = lab.ask(call, {"do": "look", "runs": RUNS, "test_s": options.test_s}, paths, JOB_S)
    tests = tuple(Ran.of(message) for message in seen.of("test"))
    record: dict[str, Any] = {"seed": call.seed, "tests": len(tests)}
    refusal = _unfit(tests, seen, options)
    if refusal is not None:
        return Looked(record, refusal=refusal)
    asked = [test.name for test in tests if options.test and _named(test.name, options.test)]
    wanted = [
        test for test in tests
        if test.outcome == "pass"
        or (test.outcome == "fail" and (not asked or test.name in asked or test.file == answered))
    ]  # fmt: skip
    parts = split(wanted, asked, options.visible, call.seed, answered)
    record |= {"visible": len(parts.visible), "hidden": len(parts.hidden)}
    return Looked(record, parts, frozenset(test.file for test in tests))


def _unfit(tests: Sequence[Ran], seen: lab.Heard, options: Options) -> Refusal | None:
    """Why nothing is searched. Raises: UsageError `repair.test` for a test that is not there."""
    if len(tests) > MOST_TESTS:
        return Refusal(
            "repair.too_wide",
            f"{len(tests)} tests, at most {MOST_TESTS} are searched with",
            "name fewer with --tests",
        )
    if seen.errors:
        name, why = seen.errors[0]
        return Refusal(
            "repair.uncollected",
            f"{name} cannot be imported: {why.strip().splitlines()[-1] if why.strip() else ''}",
            "mend the import first: a repair needs tests that run",
        )
    named = [test for test in tests if options.test and _named(test.name, options.test)]
    if options.test and not named:
        raise UsageError(
            "repair.test", f"there is no test {options.test!r}", "name it as pytest does: FILE::TEST"
        )
    flaky = [
        test.name
        for test in tests
        if test.outcome == "flaky" and (test in named or test.file == options.answered or not options.test)
    ]
    if flaky:
        return Refusal(
            "repair.flaky",
            f"{listed(flaky)} passes and fails on the same code",
            "make it say the same each time, or name another with --test",
        )
    looked_at = named or tests
    if not any(test.outcome == "fail" for test in looked_at):
        what = f"{options.test} passes" if options.test else f"none of {len(tests)} tests fails"
        hint = "write a test that fails first; nothing was changed"
        if failing := [test.name for test in tests if test.outcome == "fail"]:
            what += f", and {len(failing)} others fail" if len(failing) > 1 else ", and another test fails"
            hint = f"repair what fails: leave out --test, or name {listed(failing)}"
        return Refusal("repair.not_reproduced", what, hint, {"failed": failing[:5]} if failing else {})
    return None


def _named(name: str, asked: str) -> bool:
    return name == asked or name.startswith((f"{asked}[", f"{asked}::"))


def _searched(
    call: MeasureCall, options: Options, parts: Split, test_files: Collection[str], record: dict[str, Any]
) -> Found:
    suspects = suspicion(parts.visible)
    places = suspected(call, suspects, test_files)
    progress.tell(call, progress.suspected({place.path: suspects[place.path] for place in places}))
    lines = sum(
        1 for path, found in suspects.items() for line in found
        if any(one.path == path and one.first <= line <= one.last for one in places)
    )  # fmt: skip
    if lines > MOST_LINES:
        top = sorted(
            ((score, path, line) for path, found in suspects.items() for line, score in found.items()),
            reverse=True,
        )
        return Found(
            record,
            refusal=Refusal(
                "repair.too_wide",
                f"{lines} lines are suspected, at most {MOST_LINES} are searched",
                "name a test of less with --test",
                {"suspects": [f"{path}:{line}" for _, path, line in top[:20]]},
            ),
        )
    external = checks.external(options.edits, places) if options.edits else None
    if isinstance(external, Refusal):
        return Found(record, refusal=external)
    ranked = _ranked(places, suspects) if external is None else [external]
    record |= {"functions": len(places), "lines": lines, "candidates": len(ranked)}
    if not ranked:
        return Found(record, refusal=nowhere())
    record["list"] = canon.content_hash(
        [[one.function.path, one.function.qual, one.edit.text] for one in ranked]
    )
    return _tried(call, options, parts, ranked, record, suspects)


def suspected(
    call: MeasureCall, suspects: Mapping[str, Mapping[int, int]], test_files: Collection[str]
) -> list[Function]:
    """The functions that may be edited and that a failing test runs."""
    found = []
    for path, lines in suspects.items():
        if call.hides(path):
            continue
        try:
            text = beneath.read_beneath(call.workspace, path, MOST_FILE).decode("utf-8")
        except (UserError, UnicodeDecodeError):
            continue
        if editable(path, text, test_files):
            continue
        found += [
            one
            for one in functions(path, text)
            if any(one.first < line <= one.last or one.first == one.last == line for line in lines)
        ]
    return found


def _ranked(places: Sequence[Function], suspects: Mapping[str, Mapping[int, int]]) -> list[Candidate]:
    """Every edit of every function, the most suspected first."""
    found = []
    for place in places:
        lines = suspects[place.path]
        for edit in edits(place):
            near = next((line for line in range(edit.line, place.first - 1, -1) if line in lines), None)
            if near is not None:
                found.append(Candidate(place, edit, lines[near] - PENALTY * (edit.group - 1)))
    return sorted(found, key=_order)


def _order(one: Candidate) -> tuple[int, str, int, int]:
    """The most suspected first; of equals the smallest change of a line."""
    longer = abs(len(one.edit.text) - len(one.function.text))
    return -one.score, one.function.path, one.edit.line, longer


def _tried(
    call: MeasureCall, options: Options, parts: Split, ranked: Sequence[Candidate], record: dict[str, Any],
    suspects: Mapping[str, Mapping[int, int]],
) -> Found:  # fmt: skip
    places = list(dict.fromkeys((one.function.path, one.function.qual) for one in ranked))
    first = {(one.function.path, one.function.qual): one.function for one in reversed(ranked)}
    tables = [table(first[place], parts) for place in places]
    if "visible" in options.off:
        tables = [{**one, "tried": []} for one in tables]
    numbers = {place: number for number, place in enumerate(places)}
    tried = list(ranked[: options.candidates])
    first_s, second_s = limits(parts)
    plan = {
        "do": "try",
        "functions": tables,
        "candidates": [[numbers[one.function.path, one.function.qual], one.edit.text] for one in tried],
        "further": options.further,
        "most_passing": 12 if "visible" in options.off else 60,
        "most_late": 12,
        "first_s": first_s,
        "second_s": second_s,
        "compare_s": 60.0,
        "seed": call.seed,
        "inputs": options.inputs,
        "compare_all": options.compare_all,
    }
    files = sorted({test.file for test in (*parts.visible, *parts.hidden)})
    heard = lab.ask(call, plan, files, JOB_S)
    done = heard.of("searched")[0]
    record |= {
        "tried": done["searched"],
        "late": len(done["late"]),
        "again": done["again"],
        "passing": len(done["passing"]),
    }
    if not done["passing"]:
        return Found(record, refusal=nothing_passes(done, len(ranked), parts, suspects))
    outcome = checks.judge(tried, tables, heard, options.off)
    record |= outcome.counts
    return Found(record, outcome.candidate, outcome.verdicts, outcome.refusal)


def nothing_passes(
    done: Mapping[str, Any], ranked: int, parts: Split, suspects: Mapping[str, Mapping[int, int]]
) -> Refusal:
    """Why no edit is left: the budget, with the slowest test where edits were late, or the space."""
    top = sorted(((-score, path, line) for path, found in suspects.items() for line, score in found.items()))
    evidence: dict[str, Any] = {"suspects": [f"{path}:{line}" for _, path, line in top[:10]]}
    if done["late"]:
        slow = max(parts.visible, key=lambda test: (test.cpu_ms, test.name)).name
        evidence["slowest_test"] = slow
    if done["searched"] < ranked or len(done["late"]) > done["again"]:
        return Refusal(
            "repair.budget",
            f"none of {done['searched']} edits of {ranked} passes",
            "raise candidates, or name one test with --test",
            evidence,
        )
    return Refusal(
        "repair.exhausted", f"none of {ranked} single edits passes the failing tests",
        "the mistake is larger than one edit, elsewhere, or in the test", evidence,
    )  # fmt: skip
