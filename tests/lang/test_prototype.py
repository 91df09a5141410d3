"""Files of the kind that people wrote for the prototype of seed 002: good ones compile, bad ones say where.

The files are our own. Together they hold what such files are made of: blocks that nobody knows, nested maps,
commas between fields, a system_model before the task, texts in triple quotes, roles as kinds of steps,
evaluations, success and invariant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from spak import config
from spak.errors import SpecError
from spak.lang import check, parse
from spak.lang.diagnostics import Severity
from spak.program import compile as compile_program
from spak.program.model import Ref, Template

HERE = Path(__file__).with_name("prototype")
GOOD = sorted((HERE / "good").glob("*.spak"))
BAD: Mapping[str, tuple[tuple[int, int, str], ...]] = {
    "01_unclosed_step": ((3, 16, "lang.syntax"),),
    "02_chat_answer": ((3, 1, "lang.fenced"),),
    "03_front_matter": ((1, 1, "lang.fenced"),),
    "04_unquoted_text": ((4, 40, "lang.syntax"), (4, 56, "lang.character")),
    "05_unbound_and_unknown": (
        (5, 35, "lang.unbound_variable"),
        (5, 51, "lang.unbound_variable"),
        (6, 12, "lang.unknown_tool"),
    ),
}
CATALOG = config.catalog()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_parses_and_compiles(path: Path) -> None:
    parsed = parse(path.read_text(encoding="utf-8"), path.name)
    found = check(parsed, CATALOG)
    assert [item for item in found if item.severity is Severity.ERROR] == []
    assert {item.code for item in found} <= {"lang.unknown_block"}
    program = compile_program(parsed, CATALOG)
    assert all(task.steps for task in program.tasks.values())


def test_there_are_nine_good_files_and_three_bad_ones_at_least() -> None:
    assert len(GOOD) >= 9 and len(BAD) >= 3
    assert sorted(BAD) == sorted(path.stem for path in (HERE / "bad").glob("*.spak"))


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_file_is_refused_with_line_and_column(name: str) -> None:
    parsed = parse((HERE / f"bad/{name}.spak").read_text(encoding="utf-8"), name)
    found = [
        (item.line, item.column, item.code)
        for item in check(parsed, CATALOG)
        if item.severity is Severity.ERROR
    ]
    assert set(BAD[name]) <= set(found), found
    with pytest.raises(SpecError):
        compile_program(parsed, CATALOG)


@pytest.mark.parametrize(
    ("kind", "fields", "name", "args"),
    [
        ("read", 'path: "a"', "read_file", {"path": "a"}),
        ("read", 'file: "a"', "read_file", {"path": "a"}),
        ("read_file", 'filename: "a" max_bytes: 5', "read_file", {"path": "a", "max_bytes": 5}),
        ("write", 'path: "a" content: "b"', "write_file", {"path": "a", "content": "b"}),
        ("write", 'file_path: "a" text: "b"', "write_file", {"path": "a", "content": "b"}),
        ("write", 'file: "a" data: "b"', "write_file", {"path": "a", "content": "b"}),
    ],
)
def test_read_and_write_are_tools_of_the_dialect(
    kind: str, fields: str, name: str, args: Mapping[str, object]
) -> None:
    made = compile_program(parse(f"task a {{ step s: tool.{kind} {{ {fields} }} }}"), CATALOG)
    step = made.tasks["a"].steps[0]
    assert (step.name, step.args) == (name, args)


def test_the_same_argument_under_two_names_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        compile_program(parse('task a { step s: tool.read { path: "a" file: "b" } }'), CATALOG)
    (found,) = [item for item in caught.value.diagnostics if item.severity is Severity.ERROR]
    assert (found.code, found.column) == ("lang.duplicate_key", 40)


def test_a_check_with_output_var_binds_both_its_metric_and_the_variable() -> None:
    made = compile_program(
        parse(
            """task a {
              step make: tool.run { cmd: "make" }
              evaluation {
                check size: tool.run { cmd: "wc a" output_var: bytes }
                check taste: llm.query { prompt: "From 1 to 10? {{bytes}}" output_var: size }
              }
              success: size < 10 and bytes != "x"
            }"""
        ),
        CATALOG,
    )
    _, first, second, *_ = made.tasks["a"].steps
    assert (first.output_var, first.metric) == ("bytes", "metric.size")
    assert (second.output_var, second.metric) == ("size", "metric.taste")
    assert second.args["prompt"] == Template(("From 1 to 10? ", Ref("bytes")))


def test_a_variable_of_a_later_check_is_unbound() -> None:
    text = """task a {
      evaluation {
        check one: llm.query { prompt: "{{later}}" }
        check two: tool.run { cmd: "ls" output_var: later }
      }
    }"""
    found = [item for item in check(parse(text), CATALOG) if item.severity is Severity.ERROR]
    assert [(item.code, item.line) for item in found] == [("lang.unbound_variable", 3)]
    assert "check two" in found[0].hint


@pytest.mark.parametrize("name", ["gemini_cli_sim", "manual"])
def test_the_simulated_command_is_a_person(name: str) -> None:
    text = f'AGENT A LEVEL 1 {{ CONFIG {{ BACKEND {name} }} START -> a TASK a {{ GOAL "x" TOOLS [read] }} }}'
    assert compile_program(parse(text), CATALOG).backend == "manual"
