"""context.json names the states of seed 002's step machine besides ours."""

from __future__ import annotations

from typing import get_args

import pytest

from spak.kernel.state import State, Status
from spak.runner.views.run_json import TASK_STATES, context, shown_state, view


@pytest.mark.parametrize(
    ("status", "stop", "named"),
    [
        ("new", "", "READY"),
        ("running", "", "RUNNING"),
        ("running", "paused", "SUSPEND"),
        ("running", "interrupted", "SUSPEND"),
        ("succeeded", "", "SUCCESS"),
        ("failed", "", "FAIL"),
        ("refused", "", "FAIL"),
        ("cancelled", "", "FAIL"),
    ],
)
def test_each_state_has_a_name(status: Status, stop: str, named: str) -> None:
    state = State(status=status)
    assert context(view("r", state, "", 0, stop), state)["task_state"] == named


def test_no_state_is_without_a_name() -> None:
    states = {
        shown_state(State(status=status), stop) for status in get_args(Status) for stop in ("", "paused")
    }
    assert states | {"queued", "waiting"} == set(TASK_STATES)
    assert set(TASK_STATES.values()) == {"READY", "RUNNING", "SUSPEND", "WAIT_INPUT", "SUCCESS", "FAIL"}
