"""What a plan did can be used: its output, its variable, and a GOAL that reads earlier tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kernel_kit import CATALOG, World, exited, fresh, rules
from spak.kernel.state import Effect
from spak.lang import parse
from spak.program import compile as compile_program
from spak.records import Kind

GATHER = """
AGENT A LEVEL 2 {
  START -> gather
  TASK gather { GOAL "Look." TOOLS [look] OUTPUT notes NEXT { success -> tell fail -> gather } }
  TASK tell { GOAL "Sum up {{notes}}." step s: llm.query { prompt: "PROMPT" } }
}
"""


def look(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
    if effect.act == "plan":
        return Kind.PLAN, {"candidates": [{"tool": "look", "args": {"text": "x"}}]}
    return fresh(effect, count)


def run(text: str, script: Any = look) -> World:
    return World(rules(compile_program(parse(text), CATALOG)), script).run()


def shown(world: World, name: str) -> list[Any]:
    """The prompt items of a name that were put to anybody, in order."""
    asked = [effect for effect in world.effects if effect.act in ("ask", "plan") and effect.items]
    return [item["text"] for effect in asked for item in effect.items if item["name"] == name]


@pytest.mark.parametrize("read", ["{{last_tool_output}}", "{{notes}}"])
def test_the_next_question_reads_what_the_plan_of_a_task_did(read: str) -> None:
    world = run(GATHER.replace("PROMPT", read))
    assert world.state.status == "succeeded"
    assert shown(world, "prompt") == ["out 1"]


def test_a_plan_among_steps_gives_its_output_too() -> None:
    text = """
    task a {
      TOOLS [look]
      step first: tool.poll { text: "1" }
      step p: llm.plan { prompt: "choose" output_var: found }
      step q: llm.query { prompt: "{{last_tool_output}} {{found}}" }
    }
    """
    assert shown(run(text), "prompt") == ["choose", "out 2 out 2"]


def test_a_goal_reads_what_an_earlier_task_found() -> None:
    world = run(GATHER.replace("PROMPT", "{{goal}}"))
    assert shown(world, "goal") == ["Look.", "Sum up out 1."]
    assert shown(world, "prompt") == ["Sum up out 1."]


def test_a_goal_stays_as_it_was_when_the_task_was_entered() -> None:
    text = """
    AGENT A LEVEL 2 {
      START -> a
      TASK a { step s: tool.look { text: "1" output_var: x } NEXT { success -> b } }
      TASK b {
        GOAL "from {{x}}"
        step t: tool.look { text: "2" output_var: x }
        step q: llm.query { prompt: "{{goal}} to {{x}}" }
      }
    }
    """
    assert shown(run(text), "prompt") == ["from out 0 to out 1"]


def test_a_goal_is_filled_in_again_when_the_task_is_entered_again() -> None:
    text = """
    AGENT A LEVEL 2 {
      START -> a
      TASK a { step s: tool.look { text: "1" output_var: x } NEXT { success -> b } }
      TASK b {
        GOAL "see {{x}}"
        step q: llm.query { prompt: "how?" }
        step t: tool.look { text: "2" output_var: x }
        NEXT { success -> c fail -> b }
      }
      TASK c { step u: tool.look { text: "3" } }
    }
    """

    def once(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
        if effect.step == "t" and count < 3:
            return exited(1, out="failed", key="k")
        return fresh(effect, count)

    assert shown(run(text, once), "goal") == ["see out 0", "see failed"]


def test_a_goal_without_its_value_refuses_the_run_and_names_the_task() -> None:
    text = """
    AGENT A LEVEL 2 {
      START -> a
      TASK a { step s: tool.look { text: "1" output_var: x } NEXT { success -> b timeout -> b } }
      TASK b { GOAL "see {{x}}" step q: llm.query { prompt: "how?" } }
    }
    """
    world = run(text, lambda effect, count: (Kind.ACT, {"outcome": "timeout"}))
    assert (world.state.status, world.state.r7.codes) == ("refused", ("run.unbound_variable",))
    assert world.state.r7.knob == "bind x before TASK b, whose GOAL reads it"


# ---- a step's tools and the model's ------------------------------------------------------------------------

MIXED = """
task a {
  TOOLS [look]
  step fixed: tool.write { text: "x" }
  step p: llm.plan { prompt: "choose" }
}
"""


def test_a_fixed_step_does_not_hand_its_tool_to_the_model() -> None:
    def greedy(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
        if effect.act == "plan":
            return Kind.PLAN, {"candidates": [{"tool": "write", "args": {"text": "mine"}}]}
        return fresh(effect, count)

    world = run(MIXED, greedy)
    assert (world.state.status, world.state.r7.codes) == ("failed", ("run.rollbacks",))
    assert {body["r4"]["code"] for body in world.bodies("route") if "r4" in body} == {"policy.not_in_tools"}
    assert [effect.name for effect in world.effects if effect.act == "tool"] == ["write"]


def test_the_prompt_of_a_plan_lists_what_the_plan_may_choose_from() -> None:
    world = run(MIXED)
    (tools,) = shown(world, "tools")
    assert "look" in tools and "write" not in tools
    assert world.state.status == "succeeded"


def test_checks_of_an_evaluation_are_no_plan() -> None:
    text = "task a { evaluation { check n: tool.look { text: 'x' } } success: n == 1 }".replace("'", '"')
    program = compile_program(parse(text), CATALOG)
    assert [step.kind for step in program.tasks["a"].steps] == ["tool", "check"]


def test_a_level_counts_the_tools_of_steps_and_of_plans() -> None:
    for task in ("TOOLS [write]", 'TOOLS [look] step s: tool.write { text: "x" }'):
        assert compile_program(parse(f"task a {{ {task} }}"), CATALOG).level == 2
    assert compile_program(parse("task a { TOOLS [look] }"), CATALOG).level == 1
