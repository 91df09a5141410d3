"""How tasks of recorded runs come out under a patch: same, flipped, or not known."""

from __future__ import annotations

from typing import Any

import pytest

from bench.scripted import exited, ledger, planned
from spak.evolve.gate import rehearse
from spak.evolve.gate.counterfactual import to_json, under
from spak.evolve.gate.task_outcomes import flips
from spak.kernel.state import Effect
from spak.records import Record

BASE = """
AGENT A LEVEL 4 {
  START -> look
  TASK look {
    step one: tool.read_file { path: "a.txt" }
    step two: tool.read_file { path: "b.txt", on_fail: "stop" }
    NEXT { success -> report, fail -> mend }
  }
  TASK mend {
    step again: tool.list_files { path: "tests" }
    NEXT { success -> report }
  }
  TASK report { step end: tool.list_files { path: "." } }
}
"""
SUCCESS, FAIL = ["success", "report", ""], ["fail", "mend", ""]
END, NEVER = ["success", "", ""], ["", "", ""]
NO_ROUTE = ["fail", "", "tool.exit"]


def ran(text: str = BASE, breaks: bool = False) -> list[Record]:
    """A run in which the second file cannot be read, or can."""

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            return planned(("read_file", {"path": "a.txt"}))
        return exited(1 if breaks and effect.args.get("path") == "b.txt" else 0, f"of {effect.args}")

    return ledger(text, script, 1)


def counted(runs: list[list[Record]], patch: str, base: str = BASE) -> dict[str, tuple[Any, ...]]:
    """By task: change or old name, same, flips, unknown, and the ways with their runs."""
    was = [rehearse(f"r{number}", run) for number, run in enumerate(runs)]
    rows = flips([(one, under(one, patch)) for one in was], base, patch)
    return {
        row["task"]: (
            row["was"] or row["change"], row["same"], row["flips"], row["unknown"],
            *((way["before"], way["after"], way["runs"]) for way in row["ways"]),
        )
        for row in rows
    }  # fmt: skip


def test_the_outcomes_of_a_run_are_how_its_tasks_were_left() -> None:
    assert {name: list(found) for name, found in rehearse("r", ran(breaks=True)).tasks.items()} == {
        "look": FAIL, "mend": SUCCESS, "report": END,
    }  # fmt: skip
    assert "mend" not in rehearse("r", ran()).tasks


def renamed(text: str, old: str, new: str) -> str:
    return text.replace(f"TASK {old}", f"TASK {new}").replace(f"-> {old}", f"-> {new}")


CASES: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "the same text": (BASE, {"look": ("", 2, 0, 0), "mend": ("", 2, 0, 0), "report": ("", 2, 0, 0)}),
    "a failure that counts no more": (
        BASE.replace('on_fail: "stop"', 'on_fail: "continue"'),
        {
            "look": ("", 1, 1, 0, (FAIL, SUCCESS, ["r1"])),
            "mend": ("", 1, 1, 0, (SUCCESS, NEVER, ["r1"])),
            "report": ("", 2, 0, 0),
        },
    ),
    "an edge that is gone": (
        BASE.replace(", fail -> mend", ", timeout -> mend"),
        {
            "look": ("", 1, 1, 0, (FAIL, NO_ROUTE, ["r1"])),
            "mend": ("", 1, 1, 0, (SUCCESS, NEVER, ["r1"])),
            "report": ("", 1, 1, 0, (END, NEVER, ["r1"])),
        },
    ),
    "a budget in which the run stops": (
        BASE.replace("  START", "  CONFIG { BUDGET { steps: 1 } }\n  START"),
        {
            "look": (
                "",
                0,
                2,
                0,
                (SUCCESS, ["", "", "budget.steps"], ["r0"]),
                (FAIL, ["", "", "budget.steps"], ["r1"]),
            ),
            "report": ("", 0, 2, 0, (END, NEVER, ["r0", "r1"])),
            "mend": ("", 1, 1, 0, (SUCCESS, NEVER, ["r1"])),
        },
    ),
    "a renamed task": (
        renamed(BASE, "mend", "repair"),
        {"look": ("", 2, 0, 0), "repair": ("mend", 2, 0, 0), "report": ("", 2, 0, 0)},
    ),
    "a removed task": (
        BASE[: BASE.index("  TASK mend")].replace("fail -> mend", "fail -> report")
        + BASE[BASE.index("  TASK report") :],
        {
            "look": ("", 1, 1, 0, (FAIL, ["fail", "report", ""], ["r1"])),
            "mend": ("removed", 1, 1, 0, (SUCCESS, NEVER, ["r1"])),
            "report": ("", 2, 0, 0),
        },
    ),
    "an added task on the way": (
        BASE.replace("success -> report, fail", "success -> more, fail").replace(
            "  TASK mend",
            '  TASK more { step a: tool.list_files { path: "." } NEXT { success -> report } }\n  TASK mend',
        ),
        {
            # its listing is what `report` was answered; that one has no answer left
            "look": ("", 1, 1, 0, (SUCCESS, ["success", "more", ""], ["r0"])),
            "more": ("added", 1, 1, 0, (NEVER, SUCCESS, ["r0"])),
            "mend": ("", 2, 0, 0),
            "report": ("", 1, 0, 1),
        },
    ),
    "unknown after a step, of a task that what follows does not lead back to": (
        BASE.replace('path: "tests"', 'path: "docs"'),
        {"look": ("", 2, 0, 0), "mend": ("", 1, 0, 1), "report": ("", 1, 0, 1)},
    ),
    "unknown after a step that may lead back": (
        BASE.replace('path: "tests"', 'path: "docs"').replace(
            "NEXT { success -> report }", "NEXT { success -> report, fail -> look }"
        ),
        {"look": ("", 1, 0, 1), "mend": ("", 1, 0, 1), "report": ("", 1, 0, 1)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_flips_are_counted_by_task_and_unknown_apart(case: str) -> None:
    patch, expected = CASES[case]
    assert counted([ran(), ran(breaks=True)], patch) == expected


def test_a_run_of_an_older_text_counts_under_the_names_of_the_patch() -> None:
    older = renamed(renamed(BASE, "mend", "repair"), "look", "see")
    found = counted([ran(older, breaks=True)], BASE)
    assert found == {"look": ("", 1, 0, 0), "mend": ("", 1, 0, 0), "report": ("", 1, 0, 0)}


def test_a_run_that_cannot_be_replayed_counts_for_nothing() -> None:
    found = counted([ran()[:-1], ran()], BASE)
    assert {row[1:] for row in found.values()} == {(1, 0, 0)}


def test_many_runs_are_counted_whole_and_named_in_part() -> None:
    patch = CASES["a failure that counts no more"][0]
    one = rehearse("r", ran(breaks=True))
    rows = flips([(one, under(one, patch))] * 30, BASE, patch)
    assert [row["task"] for row in rows] == ["look", "mend", "report"], "most flips first"
    [way] = rows[0]["ways"]
    assert (rows[0]["flips"], way["count"], len(way["runs"])) == (30, 30, 10)
    assert "tasks" not in to_json(under(one, patch))
