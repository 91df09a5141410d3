"""What judges what a task writes: a judge, the exit of a program after it, a commit of what was judged."""

from __future__ import annotations

import pytest

from spak import config
from spak.lang import parse
from spak.lang.check import check

SPEC = """
AGENT Writes LEVEL 4 {
  CONFIG { MODE full_auto BUDGET { steps: 9 } }
  START -> first
  TASK first { step l: tool.run { cmd: "ruff check" } NEXT { success -> t } }
  TASK t { STEPS }
}
"""
WRITE = 'step w: tool.write_file { path: "a.py" content: "b" }'
TESTS = 'step t: tool.run { cmd: "pytest" }'
COMMIT = 'step c: tool.git_commit { message: "Mend it" }'
PUSH = 'step p: tool.git_push { url: "https://git.example.com/a.git" branch: "main" }'


def warned(steps: str) -> bool:
    found = check(parse(SPEC.replace("STEPS", steps)), config.catalog())
    return "lang.unjudged_write" in {item.code for item in found}


@pytest.mark.findings("S5.10")
@pytest.mark.parametrize(
    "steps", [COMMIT, f"{COMMIT} {PUSH}", f"{WRITE} {TESTS} {COMMIT}", f"{TESTS} {COMMIT}"]
)
def test_a_task_whose_exits_decide_is_judged(steps: str) -> None:
    assert not warned(steps)


@pytest.mark.parametrize(
    "steps", [WRITE, f"{TESTS} {WRITE}", f"{WRITE} {COMMIT}", f"{TESTS} {WRITE} {COMMIT}"]
)
def test_a_file_that_is_written_last_is_not(steps: str) -> None:
    assert warned(steps)


@pytest.mark.parametrize(("judge", "told"), [("VALIDATOR PyTest {}", False), (TESTS, True)])
def test_a_move_of_the_law_to_a_validator_judges(judge: str, told: bool) -> None:
    routed = f"{WRITE} NEXT BY next_action {{ /run_tests -> check }} }} TASK check {{ {judge} "
    assert warned(routed) == told
