"""Whether an answer contradicts a test: a passing test that fails when the asked call gives the answer.

Takes the workspace with the file of answers and the tests as they ran; runs, in the sandbox, the function as
it is but for the answered calls, and only where a test's own file makes the call. Gives a refusal that names
the answer and the test, or nothing. It changes nothing.
"""

from __future__ import annotations

from typing import Any

from spak.errors import UserError
from spak.files import beneath
from spak.ports import MeasureCall
from spak.proposers.repair import answers, lab
from spak.proposers.repair.functions import Function, functions
from spak.proposers.repair.locate import Ran, Split, limits, table
from spak.proposers.repair.refusals import Refusal

MOST_FILE = 1 << 20


def contradicted(call: MeasureCall, path: str, parts: Split, seconds: int) -> Refusal | None:
    """The first contradiction of an answer in the file `path`. Raises: as `spak.proposers.repair.lab.ask`."""
    text = beneath.read_beneath(call.workspace, path, MOST_FILE).decode("utf-8")
    every = (*parts.visible, *parts.hidden)
    known = {test.name.rpartition("::")[2]: test for test in every if test.file == path}
    passing = tuple(test for test in every if test.outcome == "pass")
    files = sorted({test.file for test in every})
    tables: list[dict[str, Any]] = []
    candidates: list[list[Any]] = []
    said: list[tuple[str, answers.Answer]] = []
    for name, (function, args, answer) in answers.told_apart(text).items():
        place = _function(call, function, known[name]) if name in known else None
        new = answers.planted(place, args, answer, files) if place is not None else None
        others = Split(tuple(test for test in passing if test is not known.get(name)), ())
        if place is None or new is None:
            continue
        about = table(place, others)
        if about["visible"]:
            candidates.append([len(tables), new])
            tables.append({**about, "tried": about["visible"][:1], "hidden": about["visible"]})
            said.append((name, answer))
    if not candidates:
        return None
    first_s, second_s = limits(Split(passing, ()))
    plan = {
        "do": "try", "functions": tables, "candidates": candidates, "further": len(candidates),
        "most_passing": len(candidates) + 1, "most_late": 0, "first_s": first_s, "second_s": second_s,
        "compare": False, "compare_all": False, "seed": 0, "inputs": 0,
    }  # fmt: skip
    heard = lab.ask(call, plan, files, seconds)
    for kind in ("tried", "hidden"):
        for message in heard.of(kind):
            bad = message["bad"]
            if bad is not None and bad[0] and bad[1] == "fail":
                name, answer = said[message["hidden"] if kind == "hidden" else message["tried"] - 1]
                gives = f"raises {answer.raises}" if answer.raises else answer.value
                return Refusal(
                    "repair.contradicts",
                    f"{bad[0]} fails when the call of {name} gives {gives[:200]}",
                    "answer otherwise, or change that test first",
                    {"failed": [bad[0]]},
                )
    return None


def _function(call: MeasureCall, name: str, test: Ran) -> Function | None:
    """The function of that name that an answer's test runs; None where there is none, or more than one."""
    found = []
    for path in test.lines:
        if path == test.file or call.hides(path):
            continue
        try:
            text = beneath.read_beneath(call.workspace, path, MOST_FILE).decode("utf-8")
        except (UserError, UnicodeDecodeError):
            continue
        found += [
            one
            for one in functions(path, text)
            if one.qual == name and test.touches(path, one.first, one.last)
        ]
    return found[0] if len(found) == 1 else None
