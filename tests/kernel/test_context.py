"""Prompts: their order, their stable beginning, and what is decided on a count."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_kit import program, rules
from spak.kernel import context, memory
from spak.kernel.memory import Memory, entry, settle
from spak.kernel.recollect import Size
from spak.kernel.state import Counter, Executive, State
from spak.program import Heuristic, Ref, Step, Task, Template

PLAN = Step("p", "plan")
TASK = Task("T", "make it fast", ("look", "write"), (PLAN,))
RULES = rules(program(TASK, axioms=("never delete",), heuristics=(Heuristic("look first"),)))
R4 = {"code": "schema.type", "expected": "string", "received": "integer", "hint": "quotes"}


def filled(count: int) -> Memory:
    made = Memory()
    for ref in range(1, count + 1):
        made = settle.remember(memory.sent(made), entry(ref, "user", "look", f"result {ref}", "{}"), "FIFO")
    return made


def names(state: State, kept: Memory = filled(2)) -> list[str]:  # noqa: B008
    return [item["name"] for item in context.build(RULES, state, TASK, PLAN, kept).items]


def state(**executive: Any) -> State:
    return State("running", r0=Counter("T", "p", 3), r4=R4 if executive else None, r7=Executive(**executive))


def test_what_never_changes_comes_first_and_what_always_changes_last() -> None:
    found = names(state(fired=(0,), fails=1, retries=2))
    assert found == [
        *("axioms", "goal", "tools", "format"),
        *("ref.1", "ref.1", "ref.2", "ref.2"),
        *("heuristic.1", "error", "state"),
    ]
    assert names(state()) == found[:8]


def test_a_prompt_begins_with_the_stable_part_of_the_one_before() -> None:
    one = context.build(RULES, state(fired=(0,), fails=1), TASK, PLAN, filled(3))
    other = context.build(RULES, state(metrics={"time_ns": 5}), TASK, PLAN, filled(4))
    assert one.prefix < len(one.items)
    assert other.items[: one.prefix] == one.items[: one.prefix]


def test_facts_are_atoms_and_only_where_they_say_something() -> None:
    built = context.build(RULES, state(metrics={"time_ns": 812}, fails=1, retries=2), TASK, PLAN, Memory())
    assert built.items[-1]["text"] == 'metric("time_ns", 812).\nfails(1).\nretries_left(2).'


def test_a_question_sees_what_its_template_names_and_no_memory() -> None:
    step = Step("q", "ask", "", {"prompt": Template(("Why ", Ref("goal"), "?"))})
    built = context.build(RULES, State("running", r0=Counter("T", "q", 1)), TASK, step, filled(3))
    assert [item["name"] for item in built.items] == ["axioms", "goal", "prompt"]
    assert built.items[-1]["text"] == "Why make it fast?"


def test_the_same_state_gives_the_same_prompt() -> None:
    assert names(state(fired=(0,))) == names(state(fired=(0,)))


@pytest.mark.parametrize(
    ("count", "room", "kept", "decided"),
    [
        (10**6, None, Memory(), "send"),
        (90, 90, filled(3), "send"),
        (91, 90, filled(3), "compact"),
        (91, 90, Memory(), "refuse"),
        (1, 0, filled(1), "compact"),
        (1, -5, Memory(folded=4, upto=9), "refuse"),
    ],
)
def test_send_compact_or_refuse(count: int, room: int | None, kept: Memory, decided: str) -> None:
    assert context.verdict(count, room, kept) == decided


def test_compacting_ends_in_send_or_refuse() -> None:
    kept: Memory | None = filled(30)
    rounds = 0
    while kept is not None and context.verdict(1000, 10, kept) == "compact":
        kept = settle.compact(kept, "FIFO", 10**6)
        rounds += 1
    assert rounds <= 2


@pytest.mark.parametrize(
    ("body", "spent", "budget", "room"),
    [
        ({"tokens": 50}, 10, 0, None),
        ({"tokens": 50, "window": 100}, 0, 0, 80),
        ({"tokens": 50, "window": 1}, 0, 0, 0),
        ({"tokens": 50, "window": 100}, 40, 90, 50),
        ({"tokens": 50}, 100, 90, -10),
        ({"tokens": "many", "window": -1}, 0, 0, None),
    ],
)
def test_the_room_is_the_least_of_window_and_budget(
    body: dict[str, Any], spent: int, budget: int, room: int | None
) -> None:
    assert Size.of(body, spent, budget).room == room
