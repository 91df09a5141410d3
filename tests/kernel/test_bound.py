"""No run stops for want of a value that `check` did not warn of: random programs in random worlds."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_kit import CATALOG, World, fresh, measured, rules
from spak.kernel.state import Effect
from spak.lang import check, parse
from spak.lang.diagnostics import Severity
from spak.program import compile as compile_program
from spak.records import Kind

TASKS = ("a", "b", "c", "d")
OUTPUTS = ("u", "v", "w")
REFUSED = re.compile(r"bind (\S+) before (?:step \S+ of )?TASK ([a-z])")
WARNED = re.compile(r"'(\S+)' may have no value here: .*?([a-z])$")


def spec(draw: random.Random) -> str:
    names = TASKS[: draw.randint(1, 4)]
    tasks = " ".join(_task(draw, name, names) for name in names)
    return f"AGENT P LEVEL 5 {{ CONFIG {{ BUDGET {{ steps: 60 watchdog: 60 }} }} START -> a {tasks} }}"


def _task(draw: random.Random, name: str, names: tuple[str, ...]) -> str:
    parts = []
    if draw.random() < 0.3:
        parts.append(f'GOAL "{_text(draw)}"')
    planned = draw.random() < 0.25
    steps = [_step(draw, f"{name}{number}") for number in range(0 if planned else draw.randint(1, 4))]
    if planned or any("llm.plan" in step for step in steps):
        parts.append("TOOLS [look, write, mend]")
    if planned and draw.random() < 0.7:
        parts.append(f"OUTPUT {draw.choice(OUTPUTS)}")
    parts += steps
    if draw.random() < 0.2:
        parts.append(f'evaluation {{ check m{name}: tool.look {{ text: "{_text(draw)}" }} }}')
    if draw.random() < 0.2:
        parts.append(f'success: file_exists("{_text(draw)}")')
    if draw.random() < 0.25:
        parts.append(f'VALIDATOR Tests {{ note: "{_text(draw)}" }}')
    parts.append(f"RETRIES {draw.randint(0, 3)}")
    triggers = [trigger for trigger in ("success", "fail", "timeout") if draw.random() < 0.6]
    if triggers:
        edges = " ".join(f"{trigger} -> {draw.choice(names)}" for trigger in triggers)
        parts.append(f"NEXT {{ {edges} }}")
    return f"TASK {name} {{ {' '.join(parts)} }}"


def _step(draw: random.Random, name: str) -> str:
    output = f" output_var: {draw.choice(OUTPUTS)}" if draw.random() < 0.6 else ""
    kind = draw.randrange(6)
    if kind == 0:
        return f'step {name}: llm.query {{ prompt: "{_text(draw)}"{output} }}'
    if kind == 1:
        return f'step {name}: llm.plan {{ prompt: "{_text(draw)}"{output} }}'
    tool = draw.choice(("look", "write", "mend"))
    on_fail = draw.choice(("", "", " on_fail: continue", " on_fail: retry"))
    return f'step {name}: tool.{tool} {{ text: "{_text(draw)}"{output}{on_fail} }}'


def _text(draw: random.Random) -> str:
    """Often no variable, else one or two."""
    paths = (*OUTPUTS, "last_tool_output", "exit_code.a0", "exit_code.b1", "metric.ma")
    return "t " + " ".join(f"{{{{{draw.choice(paths)}}}}}" for _ in range(draw.choice((0, 0, 1, 2))))


def answers(draw: random.Random) -> Any:
    """A world in which everything may fail, take too long or be undone."""

    def script(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
        luck = draw.random()
        if effect.act == "plan" and luck < 0.2:
            return Kind.PLAN, {"candidates": [{"tool": "poll", "args": {}}]}
        if effect.act == "validate":
            return Kind.ACT, {"status": "timeout"} if luck < 0.2 else _measured(luck)
        if effect.act == "check":
            return Kind.ACT, {"facts": [luck < 0.7 for _ in effect.args["atoms"]]}
        if effect.act == "ask":
            return Kind.ACT, {"outcome": "answered" if luck < 0.8 else "none", "out": "x"}
        kind, body = fresh(effect, count)
        if effect.act == "tool" and luck < 0.5:
            outcome = draw.choice(("timeout", "crash", "oom", "exited", "exited"))
            body = {**body, "outcome": outcome, "exit": draw.choice((0, 1, 2))}
        return kind, body

    return script


def _measured(luck: float) -> Mapping[str, Any]:
    """With every metric that a text may read: which ones a validator gives is not known before the run."""
    body = measured(5, checks=_checks(luck))[1]
    return {**body, "metrics": {**body["metrics"], "ma": 1}}


def _checks(luck: float) -> list[Mapping[str, Any]]:
    return [{"name": "c", "ok": luck < 0.6, "code": "c"}]


def ended_unbound(text: str, seed: int) -> Iterator[tuple[str, str]]:
    """The variable and the task of each of some runs that stopped for want of a value."""
    made = rules(compile_program(parse(text), CATALOG))
    for number in range(6):
        world = World(made, answers(random.Random(f"{seed}/{number}"))).run()
        if "run.unbound_variable" in world.state.r7.codes:
            found = REFUSED.search(world.state.r7.knob)
            assert found, world.state.r7.knob
            yield found[1], found[2]


def warned(text: str) -> set[tuple[str, str]] | None:
    """The variables that may have no value, by task; None where the spec has an error."""
    found = check(parse(text), CATALOG)
    if any(item.severity is Severity.ERROR for item in found):
        return None
    said = (WARNED.search(item.message) for item in found if item.code == "lang.maybe_unbound")
    return {(match[1], match[2]) for match in said if match}


@given(st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_a_variable_that_check_calls_bound_is_bound_in_every_run(seed: int) -> None:
    text = spec(random.Random(seed))
    known = warned(text)
    if known is not None:
        assert set(ended_unbound(text, seed)) <= known, text


def test_the_property_is_not_empty() -> None:
    """Among a few hundred programs some are without a warning and some runs stop where one was given."""
    clean = stopped = 0
    for seed in range(200):
        text = spec(random.Random(seed))
        known = warned(text)
        if known is not None:
            clean += not known
            stopped += bool(known) and bool(set(ended_unbound(text, seed)))
    assert clean >= 20
    assert stopped >= 5


@pytest.mark.parametrize("code", ["lang.never_bound", "lang.maybe_unbound"])
def test_random_programs_show_both_findings(code: str) -> None:
    found = (check(parse(spec(random.Random(seed))), CATALOG) for seed in range(200))
    assert any(item.code == code for items in found for item in items)
