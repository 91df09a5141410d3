"""The proposer `repair`: one patch for a failing test, found by search, that meets five checks; no model.

Takes a PlanRequest and the MeasureCall of its workspace; gives a call of `apply_patch` with the five
verdicts, or a refusal with a code. What it does and does not accept: docs/repair.md. Everything that it runs,
runs in the sandbox; it writes nothing, and the kernel judges the recorded verdicts once more.
"""

from __future__ import annotations

from dataclasses import replace

from spak import schema_parts as parts
from spak.lang.catalog import NamedEntry
from spak.ports import Candidate, MeasureCall, PlanRequest, Search
from spak.proposers.fitting import fit
from spak.proposers.repair.search import Options, find

TOOL, CODE = "apply_patch", "repair.options"

_SCHEMA = parts.members(
    [],
    test=parts.text(
        "The failing test to mend, as pytest names it; all that fail without it.", 1024, default="", least=0
    ),
    tests=parts.path("A file or folder of tests; all without it.", "."),
    answered=parts.text(
        "A file of tests with people's answers: the search sees all of them.", 4095, default="", least=0
    ),
    candidates=parts.whole("Edits that are tried at most.", 1, 100_000, 6000),
    further=parts.whole("Edits that are tried after the first one that passes.", 0, 100_000, 1500),
    inputs=parts.whole("Inputs that are generated to compare patches.", 0, 2000, 150),
    visible=parts.whole("Percent of the passing tests that the search sees.", 1, 60, 60),
    test_s=parts.seconds("Seconds of CPU time that one test may take.", default=5.0),
)


class Repair:
    """The proposer that searches a patch."""

    entry = NamedEntry("repair", "searches a patch for a failing test", _SCHEMA)

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """One candidate, or a refusal. Raises: UsageError `repair.options`, `repair.test`; UnavailableError;
        RunError `repair.incomplete`; Cancelled."""
        given = dict(request.options)
        fit(CODE, _SCHEMA, given)
        tests = (str(given.pop("tests", ".")),)
        found = find(replace(place, seed=request.seed), Options(tests=tests, **given))
        if found.candidate is None:
            assert found.refusal is not None
            return Search((), found.record, found.refusal.to_json())
        verdicts = tuple(verdict.to_json() for verdict in found.verdicts)
        return Search((Candidate(TOOL, {"patch": found.candidate.patch}, checks=verdicts),), found.record)


__all__ = ["Repair"]
