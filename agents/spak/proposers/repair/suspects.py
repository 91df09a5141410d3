"""The proposer `suspects`: which function a failing test points at, so that its text is read before a patch.

Takes a PlanRequest and the MeasureCall of its workspace; gives calls of `read_file`, one for each suspected
function, the most suspected first, or a refusal with a code. It is the first half of a repair: the same tests
are seen, drawn by the same seed, and nothing is tried. What runs, runs in the sandbox; it writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spak import schema_parts as parts
from spak.lang.catalog import NamedEntry
from spak.ports import Candidate, MeasureCall, PlanRequest, Search
from spak.proposers.fitting import fit
from spak.proposers.repair.locate import suspicion
from spak.proposers.repair.refusals import nowhere
from spak.proposers.repair.search import Options, look, suspected

TOOL, CODE = "read_file", "repair.options"
MOST = 20
"""Functions that are proposed."""

_SCHEMA = parts.members(
    [],
    test=parts.text(
        "The failing test to explain, as pytest names it; all that fail without it.",
        1024,
        default="",
        least=0,
    ),
    tests=parts.path("A file or folder of tests; all without it.", "."),
    visible=parts.whole("Percent of the passing tests that are looked at.", 1, 60, 60),
    test_s=parts.seconds("Seconds of CPU time that one test may take.", default=5.0),
)


class Suspects:
    """The proposer that names the function to read."""

    entry = NamedEntry("suspects", "names the function that a failing test points at", _SCHEMA)

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """The functions to read, or a refusal. Raises: UsageError `repair.options`, `repair.test`;
        UnavailableError; RunError `repair.incomplete`; Cancelled."""
        given: dict[str, Any] = dict(request.options)
        fit(CODE, _SCHEMA, given)
        call = replace(place, seed=request.seed)
        looked = look(call, Options(tests=(str(given.pop("tests", ".")),), **given))
        if looked.refusal is not None:
            return Search((), looked.record, looked.refusal.to_json())
        lines = suspicion(looked.parts.visible)
        found = []
        for one in suspected(call, lines, looked.files):
            inside = {line: score for line, score in lines[one.path].items() if one.first < line <= one.last}
            score = max(inside.values(), default=0)
            line = next((line for line in sorted(inside) if inside[line] == score), one.first)
            found.append((-score, one.path, line, one))
        found.sort(key=lambda item: item[:3])
        record = {**looked.record, "functions": len(found)}
        record["suspects"] = [f"{path}:{line}" for _, path, line, _ in found[:MOST]]
        if not found:
            return Search((), record, nowhere().to_json())
        return Search(
            tuple(
                Candidate(TOOL, {"path": path, "start_line": one.first, "end_line": one.last}, score=-score)
                for score, path, _, one in found[:MOST]
            ),
            record,
        )


__all__ = ["Suspects"]
