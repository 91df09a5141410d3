"""Completion and hover, as tables: a text with the cursor in it, and what is offered or said there."""

from __future__ import annotations

import re

import pytest

from lang_catalog import CATALOG
from spak import config
from spak.lang import check, parse, settings
from spak.lang.features import View, complete, hover
from spak.lang.features.words import KEYWORDS
from spak.lang.parser.generate import KEYWORDS as GRAMMAR

CURSOR = "‸"
AGENT = "AGENT A LEVEL 2 {\n  START -> a\n  "
TASK_KEYS = set(settings.PLACES["task"])


def at(text: str) -> tuple[View, int]:
    offset = text.index(CURSOR)
    return View(parse(text.replace(CURSOR, "")), CATALOG), offset


def labels(text: str) -> list[str]:
    return [item.label for item in complete(*at(text))]


def said(text: str) -> str:
    found = hover(*at(text))
    return "" if found is None else found.markdown


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("‸", ["AGENT", "TASK", "SYSTEM_MODEL", *settings.PLACES["agent"]]),
        ("AGENT A ‸", ["LEVEL", "{"]),
        ("AGENT A LEVEL ‸", ["1", "2", "3", "4", "5"]),
        ("AGENT ‸", []),
        ("AGENT A LEVEL 1 { ‸ }", ["START", "TASK", "SYSTEM_MODEL", *settings.PLACES["agent"]]),
        (AGENT + "CONFIG { } ‸ }", ["TASK", "SYSTEM_MODEL", "POLICY", "INPUTS", "IMPORT", "EXPORT"]),
        (AGENT + "CONFIG { ‸ } }", list(settings.PLACES["config"])),
        (AGENT + "CONFIG { MODE ‸ } }", list(settings.MODES)),
        (AGENT + "CONFIG { MODE: ‸ } }", list(settings.MODES)),
        (AGENT + "CONFIG { MODE full_auto SANDBOX ‸ } }", list(settings.SANDBOXES)),
        (AGENT + "CONFIG { BUDGET { steps: 3 ‸ } } }", list(settings.PLACES["budget"])[1:]),
        (AGENT + "CONFIG { BACKEND ‸ } }", list(CATALOG.backends)),
        (AGENT + "TASK a { RULE { better: ‸ } } }", ["lower", "higher"]),
        (AGENT + "TASK a { BUDGET { ‸ } } }", ["patience", "evaluations"]),
        (AGENT + "TASK a { VALIDATOR ‸ } }", [*CATALOG.validators, "none"]),
        (AGENT + "TASK a { VALIDATOR CpuProfiler { ‸ } } }", ["binary", "warmup"]),
        (AGENT + "TASK a { VALIDATOR CpuProfiler { warmup: 1, ‸ } } }", ["binary"]),
        (AGENT + "TASK a { VALIDATOR Linter { tool: ‸ } } }", ["ruff", "gcc", "last_tool_output"]),
        (AGENT + 'TASK a { VALIDATOR Linter { tool: "‸" } } }', ["ruff", "gcc"]),
        (AGENT + "TASK a { PROPOSER tuner { strategy: ‸ } } }", ["random", "climb", "tpe"]),
        (AGENT + "TASK a { PROPOSER ‸ } }", [*CATALOG.proposers, "none"]),
        (AGENT + "TASK a { SPACE { x: ‸ } } }", ["range", "log"]),
        (AGENT + "INPUTS { n: ‸ } }", ["int", "float", "string", "bool", "enum"]),
        (AGENT + "TASK a { NEXT { ‸ } } }", ["success", "fail", "timeout", "budget_low"]),
        (AGENT + "TASK a { NEXT { fail -> a, ‸ } } }", ["success", "timeout", "budget_low"]),
        (AGENT + "TASK a { NEXT { success ‸ } } }", ["->"]),
        (AGENT + "TASK a { NEXT { success -> ‸ } } TASK b { } }", ["a", "b"]),
        (AGENT.replace("-> a", "-> ‸") + "TASK a { } TASK b { } }", ["a", "b"]),
        (AGENT + "TASK a { step s: tool.run { ‸ } } }", ["cmd", "output_var", "on_fail", "poll"]),
        (AGENT + "TASK a { step s: tool.run { poll: { ‸ } } } }", ["every_s", "limit"]),
        (AGENT + 'TASK a { step s: tool.run { cmd: "x" on_fail: ‸ } } }', ["stop", "retry", "continue"]),
        ("task a { evaluation { ‸ } }", ["check"]),
        ("task a { step ‸ }", []),
        ("task ‸", []),
        ("system_model m { ‸ }", ["axiom", "heuristic", "prediction"]),
        ("SYSTEM_MODEL m { ‸ }", ["AXIOM", "HEURISTIC", "PREDICTION"]),
        ('SYSTEM_MODEL m { HEURISTIC "x" ‸ }', ["WHEN", "AXIOM", "HEURISTIC", "PREDICTION"]),
        (
            'SYSTEM_MODEL m { HEURISTIC "x" WHEN ‸ }',
            ["success", "fail", "timeout", "budget_low", "metric_improved", "plateau"],
        ),
        ("task a { // ‸", []),
        ("task a { # TOOLS [‸", []),
        ('task a { GOAL "‸" }', []),
    ],
)
def test_what_is_offered(text: str, offered: list[str]) -> None:
    assert labels(text) == offered


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        (AGENT + "TASK a { TOOLS [‸] } }", {"cc", "nvcc", "run", "write_cuda"}),
        (AGENT + "TASK a { step s: ‸ } }", {"tool.run", "tool.nvcc", "llm.query", "llm.plan"}),
        (AGENT + "TASK a { step s: tool.‸ } }", {"tool.run", "tool.cc"}),
        (AGENT + "TASK a { ‸ } }", TASK_KEYS | {"step", "NEXT", "evaluation", "success", "invariant"}),
        (AGENT + 'TASK a { success: file_exists("x") ‸ } }', {"and", "or", "NEXT"}),
        (AGENT + 'TASK a { success: file_exists("x") and ‸ } }', {"not", "file_exists", "exit_code", "true"}),
    ],
)
def test_what_is_offered_among_others(text: str, offered: set[str]) -> None:
    assert offered <= set(labels(text))


STEPS = """task a {
  step one: llm.query { prompt: "x" output_var: first }
  step two: tool.apply_patch { patch: %s }
  step three: llm.query { prompt: "%s" output_var: third }
  evaluation { check warnings: tool.run { cmd: "x" } }
  success: %s
}"""


def test_a_variable_is_offered_only_where_it_has_a_value() -> None:
    assert "first" in labels(STEPS % ("‸", "x", "true"))
    assert "third" not in labels(STEPS % ("‸", "x", "true"))
    in_template = labels(STEPS % ("first", "{{‸}}", "true"))
    assert {"first", "last_tool_output", "goal", "error", "exit_code.two"} <= set(in_template)
    assert not {"third", "exit_code.three", "cc", "step"} & set(in_template)
    assert {"warnings", "third", "exit_code"} <= set(labels(STEPS % ("first", "x", "‸")))
    assert labels(STEPS % ("first", "x", "exit_code(‸)")) == ["two"]
    assert labels(STEPS % ("first", "x", "metric(‸)")) == ["warnings"]


def test_a_goal_is_filled_in_when_the_task_is_entered() -> None:
    text = AGENT + 'INPUTS { n: int = 1 } TASK a { GOAL "{{‸}}" TOOLS [run] } }'
    assert labels(text) == ["last_tool_output", "error", "input.n"]


def test_an_axiom_is_offered_the_checks_of_the_catalog_and_their_arguments() -> None:
    text = AGENT + 'SYSTEM_MODEL M { AXIOM "a" CHECK ‸ } }'
    assert {"max_lines", "not_contains"} <= set(labels(text))
    text = AGENT + 'SYSTEM_MODEL M { AXIOM "a" CHECK max_lines { ‸ } } }'
    assert labels(text) == ["lines"]


def test_a_lost_brace_does_not_lose_the_place() -> None:
    broken = AGENT + "TASK a { NEXT { success -> b }\n TASK b { TOOLS [cc] }\n ‸"
    assert labels(broken)[:2] == ["TASK", "SYSTEM_MODEL"]
    assert labels(AGENT + "TASK a { NEXT { success -> b \n TASK b { TOOLS [‸")[0] == "run"


def test_what_is_written_replaces_the_word_that_is_there() -> None:
    view, offset = at("task a { step s: tool.ap‸ply { } }")
    item = next(item for item in complete(view, offset) if item.label == "tool.apply_patch")
    assert view.text[item.start : item.end] == "tool.apply"
    view, offset = at('task a { step s: llm.query { prompt: "é{{ last_‸ }}" } }')
    item = next(item for item in complete(view, offset) if item.label == "last_tool_output")
    assert view.text[item.start : item.end] == "last_"


def test_snippets_parse_once_their_places_are_filled() -> None:
    body = "".join(
        f"{item.insert}\n" for item in complete(*at("AGENT A LEVEL 1 {‸}")) if item.label == "TASK"
    )
    filled = re.sub(r"\$\{\d:([^}]*)\}|\$\d", r"\1", body)
    assert parse(f"AGENT A LEVEL 1 {{ {filled} }}").ok
    whole = next(item for item in complete(*at("‸")) if item.label == "AGENT")
    assert whole.snippet
    text = re.sub(r"\$\{\d:([^}]*)\}|\$\d", r"\1", whole.insert)
    assert not [item for item in check(parse(text), CATALOG) if item.severity == "error"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AG‸ENT A LEVEL 1 { }", "graph of tasks"),
        (AGENT + "CONFIG { MO‸DE full_auto } }", "**MODE** in CONFIG"),
        (AGENT + "CONFIG { MODE full‸_auto } }", "Continue to the end"),
        (AGENT + "CONFIG { BUDGET { ste‸ps: 3 } } }", "Default: `1000`"),
        (AGENT + "TASK a { TOOLS [c‸c] } }", "the C compiler"),
        (AGENT + "TASK a { TOOLS [nv‸cc] } }", "**cc** (tool)"),
        (AGENT + "TASK a { VALIDATOR Cpu‸Profiler { warmup: 1 } } }", "Gives `success`, `fail`"),
        (AGENT + "TASK a { VALIDATOR CpuProfiler { warm‸up: 1 } } }", "at least 0"),
        (AGENT + "TASK a { NEXT { fa‸il -> a } } }", "(trigger)"),
        (AGENT + 'TASK b { GOAL "x *y*" } TASK a { NEXT { fail -> ‸b } } }', r"x \*y\*"),
        (AGENT + "TASK a { NEXT { fail -> gone‸ } } }", "no task `gone`"),
        (STEPS % ("fir‸st", "x", "true"), "the output of step `one` of task `a`"),
        (STEPS % ("first", "{{la‸st_tool_output}}", "true"), "What the last tool wrote"),
        (STEPS % ("first", "x", "exit_code(t‸wo) == 0"), "step of `a`"),
        (STEPS % ("first", "x", "exit_c‸ode(two) == 0"), "exit code of a tool step"),
        (STEPS % ("first", "x", "warn‸ings < 3"), "check of `a`"),
        ('task a { step s: llm.query { prompt: "x" output‸_var: b } }', "gets the step's"),
        ('SYSTEM_MODEL m { AXIOM "Be still." } task a { GOAL "{{axiom‸.1}}" }', "Be still"),
        (AGENT + 'INPUTS { n: enum("a", "b") = "a" } TASK a { GOAL "{{input.n‸}}" } }', "of `a`, `b`"),
    ],
)  # fmt: skip
def test_what_a_hover_says(text: str, words: str) -> None:
    assert words in said(text)


@pytest.mark.parametrize(
    "text",
    [
        "‸",
        "task a { // AGE‸NT",
        'task a { GOAL "AGE‸NT" }',
        "task a { }  ‸",
        'task a { step s: tool.run { cmd: "c‸c" } }',
    ],
)
def test_where_a_hover_says_nothing(text: str) -> None:
    assert said(text) == ""


def test_every_keyword_of_the_grammar_has_its_sentence() -> None:
    assert set(KEYWORDS) == set(GRAMMAR)


def test_no_offset_of_any_text_is_an_error() -> None:
    texts = [
        STEPS % ("first", "{{x", "exit_code("),
        AGENT + 'TASK { NEXT { -> } SPACE { : [ ( } \0 "{{',
        '"""{{',
        "]]}})",
        "",
    ]
    for text in texts:
        view = View(parse(text), CATALOG)
        for offset in range(len(text) + 1):
            for item in complete(view, offset):
                assert item.start <= offset <= item.end
            hover(view, offset)


def test_every_option_and_argument_says_what_it_is_for():
    catalog = config.catalog()
    for table in (catalog.tools, catalog.validators, catalog.proposers):
        for name, entry in table.items():
            for key, schema in entry.schema.get("properties", {}).items():
                assert schema.get("description"), f"{name}.{key}"
