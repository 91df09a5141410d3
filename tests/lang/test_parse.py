"""The parser: both dialects, keywords as names, values, places, encodings, limits."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lang_catalog import CATALOG, SEED_000, SEED_002, unescaped
from spak.lang import ast, check, parse, render
from spak.lang.diagnostics import apply_fix
from spak.lang.parser.generate import KEYWORDS, TABLES, encode, generate, grammar_hash


def only_task(text: str) -> ast.Task:
    parsed = parse(text)
    assert parsed.diagnostics == ()
    (task,) = parsed.spec.tasks()
    return task


def value(text: str) -> ast.Value:
    (entry,) = only_task(f"task a {{ key: {text} }}").items
    assert isinstance(entry, ast.Entry)
    return entry.value


# ---- the tables ----------------------------------------------------------------------------------------


def test_tables_are_fresh():
    assert json.loads(TABLES.read_text())["grammar"] == grammar_hash(), (
        "run python -m spak.lang.parser.generate"
    )


def test_grammar_has_no_conflict_and_the_tables_are_made_from_it():
    """Lark in strict mode (with interegular) refuses conflicts and colliding terminals."""
    assert TABLES.read_text() == encode(generate())


def test_lark_is_not_loaded_at_run_time():
    code = (
        "import sys, spak.lang, spak.program; spak.lang.parse('task a {}'); assert 'lark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- the seeds -----------------------------------------------------------------------------------------


def test_the_example_of_seed_000_has_one_error_with_a_fix():
    text = unescaped(SEED_000)
    errors = [item for item in check(parse(text), CATALOG) if item.severity == "error"]
    assert [(item.code, item.line) for item in errors] == [("lang.unknown_task", 40)]
    mended = apply_fix(text, errors[0].fix)
    assert "TASK finalize {" in mended
    assert not any(item.severity == "error" for item in check(parse(mended), CATALOG))


def test_the_example_of_seed_000_as_escaped_is_one_finding_with_a_fix():
    (found,) = parse(SEED_000).diagnostics
    assert found.code == "lang.markdown_escape"
    assert apply_fix(SEED_000, found.fix) == unescaped(SEED_000)


def test_the_example_of_seed_002_parses_as_written():
    task = only_task(SEED_002)
    assert check(parse(SEED_002), CATALOG) == ()
    assert [item.kind for item in task.items if isinstance(item, ast.Step)] == [
        "tool.run",
        "llm.query",
        "tool.apply_patch",
    ]
    prompt = task.items[1].body.entries[1].value
    assert prompt.value == "Fix failing tests:\n{{last_tool_output}}"


# ---- words ---------------------------------------------------------------------------------------------

PLACES = (
    "task {0} {{ step s: tool.run {{ cmd: 1 }} }}",
    "task a {{ step {0}: tool.run {{ cmd: 1 }} }}",
    "task a {{ step s: tool.run {{ {0}: 1 }} }}",
    "task a {{ step s: tool.run {{ {0} 1, {0} = 2 }} }}",
    "task a {{ step s: tool.run {{ output_var: {0} }} }}",
    "task a {{ NEXT {{ {0} -> {0} {0} -> b, }} }}",
    "task a {{ TOOLS [{0}, {0},] }}",
    "AGENT {0} LEVEL 1 {{ START -> {0} TASK {0} {{ }} }}",
    'AGENT a {{ START {0} SYSTEM_MODEL {0} {{ HEURISTIC "x" WHEN {0} }} }}',
    "task a {{ VALIDATOR {0} {{ {0}: {{ {0}: [{0}] }} }} }}",
    "task a {{ evaluation {{ check {0}: tool.run {{ }} }} }}",
    "task a {{ success: {0}({0}) == {0} }}",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", [*KEYWORDS, *(word.lower() for word in KEYWORDS), "true", "None", "a-b.c_1"])
def test_keywords_are_names_where_they_can_begin_nothing(place, word):
    if word.lower() == "not" and "success" in place:
        return  # `not` begins a condition
    assert parse(place.format(word)).diagnostics == ()


def test_keywords_are_case_insensitive_and_commas_are_optional():
    one = parse('agent A level 2 { start -> a, task a { goal "x", next { success -> a, } } }')
    two = parse('AGENT A LEVEL 2 {\n  START -> a # c\n  TASK a { GOAL "x" NEXT { success -> a } }\n}\n')
    assert one.diagnostics == two.diagnostics == ()
    assert one.spec.hash == two.spec.hash
    assert (
        one.spec.hash
        != parse('AGENT A LEVEL 2 { START -> a TASK a { GOAL "y" NEXT { success -> a } } }').spec.hash
    )


# ---- values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a\\n\\t\\"\\\\\\u{e9}"', 'a\n\t"\\é'),
        ('""', ""),
        ('"""x"""', "x"),
        ('"""\n    one\n      "two"\n    """', 'one\n  "two"\n'),
        ('"""a\\""" b\\n"""', 'a""" b\\n'),
        ('"""\r\n  a\r\n  b"""', "a\nb"),
        ('"// # not a comment"', "// # not a comment"),
        ("12", 12),
        ("-3", -3),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("1e-4", 1e-4),
        ("9007199254740991", 2**53 - 1),
        ("plain-word.x", "plain-word.x"),
    ],
)
def test_scalars(text, expected):
    assert value(text).value == expected


def test_containers():
    found = value('{ a: [1, "b", c,], "d e": { }, f g { h: 1 }, i: range(1, 2) }')
    shape = ast.without_spans(found, False)
    assert shape == [
        "MapValue",
        [
            ["Entry", "a", ["ListValue", [["Number", 1], ["Text", "b"], ["Name", "c"]]], None],
            ["Entry", "d e", ["MapValue", []], None],
            ["Entry", "f", ["Tagged", "g", ["MapValue", [["Entry", "h", ["Number", 1], None]]]], None],
            ["Entry", "i", ["Call", "range", [["Number", 1], ["Number", 2]]], None],
        ],
    ]


def test_conditions_have_the_usual_precedence():
    task = only_task("task a { success: not a() or b == 1 and (c < 2 or d) }")
    shape = ast.without_spans(task.items[0].condition, False)
    assert shape[:2] == ["Logic", "or"]
    assert [item[0] for item in shape[2]] == ["Negation", "Logic"]
    assert shape[2][1][2][1][:2] == ["Logic", "or"]


# ---- places --------------------------------------------------------------------------------------------


def test_every_node_knows_its_tokens():
    text = 'task a {\n  step s: tool.run { cmd: "x" } // end\n  TOOLS [run,]\n}\n'
    parsed = parse(text)
    source = parsed.spec.source

    def cut(node):
        start, end = source.offsets(node.start, node.end)
        return text[start:end]

    step, tools = next(parsed.spec.tasks()).items
    assert cut(step) == 'step s: tool.run { cmd: "x" }'
    assert cut(step.body.entries[0]) == 'cmd: "x"'
    assert cut(tools) == "TOOLS [run,]"
    assert (source.line(step.start), source.line(tools.start)) == (2, 3)


@settings(max_examples=150, deadline=None)
@given(st.text("{}[]()ab \n\t,:\"#/->=.0é\\'", max_size=60))
def test_tokens_and_gaps_give_back_every_byte(text):
    tokens = parse(text).tokens
    assert tokens.starts == sorted(tokens.starts)
    assert all(start <= end for start, end in zip(tokens.starts, tokens.ends, strict=True))
    assert all(end <= after for end, after in zip(tokens.ends, tokens.starts[1:], strict=False))


def test_render_shows_file_line_caret_and_hint():
    text = 'task a {\n\tstep s: tool.runn { cmd: "ls" }\n}\n'
    (found,) = check(parse(text), CATALOG)
    assert render(found, text, "x.spak") == (
        "x.spak:2:10: error: unknown tool 'runn' [lang.unknown_tool]\n"
        '    2 | \tstep s: tool.runn { cmd: "ls" }\n'
        "      | \t        ^^^^^^^^^\n"
        "      = hint: did you mean 'run'?"
    )


def test_a_long_line_is_shown_in_part_and_control_characters_as_pictures():
    text = 'task a { step s: tool.run { cmd: "' + "x" * 400 + '\x1b[31m" bad } }'
    found = parse(text).diagnostics[0]
    shown = render(found, text, "x").split("\n")
    assert max(map(len, shown[1:3])) < 180
    assert "\x1b" not in "".join(shown)


# ---- encodings and limits ------------------------------------------------------------------------------

PLAIN = 'task a {\n  step s: tool.run { cmd: "ls" }\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("  ", "\t"),
        PLAIN.encode(),
        ("\ufeff" + PLAIN).encode(),
    ],
)
def test_byte_order_mark_crlf_tabs_and_bytes_mean_nothing(text):
    parsed = parse(text)
    assert parsed.diagnostics == ()
    assert parsed.spec.hash == parse(PLAIN).spec.hash


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("task a {\n  x: \0 }", "lang.character", 2, 6),
        (b"task a {\n  x: \xff }", "lang.encoding", 2, 6),
        ("task a {\n  x: \ud800 }", "lang.encoding", 2, 6),
        ("task a { x: " + "[" * 70, "lang.too_deep", 1, 76),
        ("task a { success: " + "not " * 9 + "b }", "lang.too_deep", 1, 51),
        ("x" * 300_000, "lang.too_large", 1, 1),
        ("é" * 140_000, "lang.too_large", 1, 1),
        (b" " * 10_000_000, "lang.too_large", 1, 1),
    ],
)
def test_texts_that_are_no_specs(text, code, line, column):
    (found,) = parse(text).diagnostics
    assert (found.code, found.line, found.column) == (code, line, column)


def test_more_than_2000_tasks_are_refused():
    text = "".join(f'task t{n} {{ step s: tool.run {{ cmd: "ls" }} }}\n' for n in range(2001))
    assert "lang.too_many_tasks" in {item.code for item in check(parse(text), CATALOG)}
