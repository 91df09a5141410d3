"""The calls that a tuner makes of its options, and bare words where a free text is expected."""

from __future__ import annotations

import pytest

from spak import config
from spak.lang import check, parse

TUNED = """
AGENT A LEVEL 5 {{
  INPUTS {{ f = "k.c", b = true }}
  START -> a
  TASK a {{
    TOOLS [{tools}]
    PROPOSER tuner {{ {options} }}
    SPACE {{ {space} }}
    VALIDATOR CpuProfiler {{ binary: "k.so" }}
    NEXT {{ metric_improved -> a, plateau -> b }}
  }}
  TASK b {{ GOAL "Say what was found." }}
}}
"""


def found(text: str, code: str) -> list[tuple[str, str]]:
    return [(one.message, one.hint) for one in check(parse(text), config.catalog()) if one.code == code]


@pytest.mark.findings("D1")
@pytest.mark.parametrize(
    ("options", "tools", "space", "message", "hint"),
    [
        ('tool: cc args: { source: "k.c" }', "cc", "t: [8]", "each call of cc would be refused: unknown "
         "argument 'params'", 'params_key: "defines"'),
        ('tool: instantiate args: { template: "k.c" }', "instantiate", "t: [8]", "each call of instantiate "
         "would be refused: argument 'path' is missing", ""),
        ('tool: cc args: { source: "k.c" } params_key: ""', "cc", "TILE: [8]", "unknown argument 'TILE'",
         'params_key: "defines"'),
        ('tool: cc args: { source: 5 } params_key: "defines"', "cc", "t: [8]",
         "'source' wants string, not integer", ""),
    ],
)  # fmt: skip
def test_calls_that_no_tool_takes_are_errors(
    options: str, tools: str, space: str, message: str, hint: str
) -> None:
    said = found(TUNED.format(options=options, tools=tools, space=space), "lang.argument")
    assert len(said) == 1 and message in said[0][0] and hint in said[0][1], said


@pytest.mark.parametrize(
    ("options", "tools", "code"),
    [
        ('tool: cx args: { source: "k.c" } params_key: "defines"', "cc", "lang.unknown_tool"),
        ('tool: cc args: { source: "k.c" } params_key: "defines"', "write_file", "lang.proposer_tool"),
    ],
)
def test_a_tool_that_the_task_does_not_have(options: str, tools: str, code: str) -> None:
    assert len(found(TUNED.format(options=options, tools=tools, space="t: [8]"), code)) == 1


@pytest.mark.parametrize(
    ("options", "space"),
    [
        ('tool: cc args: { source: "k.c" } params_key: "defines"', "TILE: [8], W: range(1, 4)"),
        ('tool: cc args: { source: "k.c" } params_key: ""', 'compiler: ["gcc", "clang"]'),
        ('tool: instantiate args: { template: "k.c", path: "c.c" }', 'T: [8], require: ["T > 4"]'),
        ('tool: cc args: { source: "{{input.f}}", shared: input.b, compiler: "{{input.f}}" } '
         'params_key: "defines"', "TILE: [8]"),
    ],
)  # fmt: skip
def test_calls_that_fit_are_not_reported(options: str, space: str) -> None:
    text = TUNED.format(options=options, tools="cc, instantiate", space=space)
    assert [one.message for one in check(parse(text), config.catalog()) if one.severity == "error"] == []


@pytest.mark.findings("D3")
def test_a_bare_word_as_a_free_text_is_a_warning_with_a_fix() -> None:
    text = """task a {
      step r: tool.read_file { path: "a" output_var: body }
      step w: tool.write_file { path: hello content: draft }
      step v: tool.write_file { path: "b" content: body }
      step c: tool.cc { source: "a.c" lang: c }
    }"""
    said = [message for message, _ in found(text, "lang.bare_word")]
    assert said == [f"'{word}' is not a variable: it is taken as text" for word in ("hello", "draft")]
