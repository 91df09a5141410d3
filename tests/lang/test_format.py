"""The formatter: the same meaning, the same comments, the same text the second time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings

from lang_catalog import SEED_000, SEED_002, unescaped
from spak.lang import parse
from spak.lang.format import WIDTH, comments, format_text
from spec_gen import spec_text, specs

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "specs").rglob("*.spak"))


def formatted(text: str) -> str:
    made = format_text(text)
    assert made.ok, made.diagnostics
    return made.text


def keeps_the_laws(text: str) -> None:
    before = parse(text)
    assert before.ok, before.diagnostics
    made = formatted(text)
    after = parse(made)
    assert after.spec.hash == before.spec.hash
    assert comments(after) == comments(before)
    assert formatted(made) == made
    assert not made.startswith("\n")
    assert made == "" or (made.endswith("\n") and not made.endswith("\n\n"))


@settings(max_examples=250, deadline=None)
@given(specs())
def test_a_formatted_spec_means_the_same_and_keeps_its_comments(text):
    keeps_the_laws(text)


@settings(max_examples=60, deadline=None)
@given(specs("\r\n"))
def test_line_ends_of_other_systems_stay(text):
    keeps_the_laws(text)
    made = formatted(text)
    assert made.count("\r\n") == (made.count("\n") if "\n" in text else 0)
    assert "\r" not in formatted(text.replace("\r\n", "\n"))


@pytest.mark.slow
@pytest.mark.fuzz
def test_thousands_of_specs_keep_the_laws():
    draw = random.Random(3)
    for _ in range(2500):
        keeps_the_laws(spec_text(draw, draw.choice((0.0, 0.2, 0.6))))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_formatted(path):
    text = path.read_text()
    assert formatted(text) == text


@pytest.mark.parametrize("text", [SEED_002, unescaped(SEED_000)])
def test_the_seeds_keep_the_laws(text):
    keeps_the_laws(text)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("", ""),
        ("  \n\n", ""),
        ("\n\n// only\n\n\n# comments", "// only\n\n# comments\n"),
        ("\ufefftask a {}", "task a {}\n"),
        ("task a{}", "task a {}\n"),
        ("task a { // why\n}", "task a { // why\n}\n"),
        ("task a {\n// why\n\n}", "task a {\n  // why\n}\n"),
        ('task a{goal"x"tools[b,c,]}', 'task a { goal "x" tools [b, c] }\n'),
        ('task a { goal "x"\n}', 'task a { goal "x" }\n'),
        ('task a {\n goal "x" }', 'task a {\n  goal "x"\n}\n'),
        ("task a { NEXT { b->c d->e } }", "task a { NEXT { b -> c, d -> e } }\n"),
        (
            "task a {\nNEXT { \nb->c // one\n, d->e, // two\n} }",
            "task a {\n  NEXT {\n    b -> c, // one\n    d -> e // two\n  }\n}\n",
        ),
        ("AGENT A { START x }", "AGENT A {\n  START -> x\n}\n"),
        ("AGENT A LEVEL 2 { START : x, }", "AGENT A LEVEL 2 {\n  START -> x\n}\n"),
        ("x {a:1,b=2 c 3}", "x { a: 1, b = 2, c 3 }\n"),
        ("x {\na:1,b=2 c 3}", "x {\n  a: 1\n  b = 2\n  c 3\n}\n"),
        ("task a { success : f( 1,2 ) and(b or not c ) }", "task a { success: f(1, 2) and (b or not c) }\n"),
        (
            "task a {\n success:\n f(1)\n and g(2)\n h(3) }",
            "task a {\n  success:\n    f(1)\n    and g(2)\n    h(3)\n}\n",
        ),
        (
            'system_model m { axiom: "a", check: 1\nheuristic "b" when fail }',
            'system_model m {\n  axiom: "a",\n  check: 1\n  heuristic "b" when fail\n}\n',
        ),
        ("k [1, // one\n2]", "k [\n  1, // one\n  2\n]\n"),
        ("k f(1, // one\n2)", "k f(\n  1, // one\n  2\n)\n"),
        ("k // why\n : // not\n 1", "k // why\n  : // not\n  1\n"),
        ("k 1\n\n\n\nl 2\n// c\n\n\n// d\nm 3", "k 1\n\nl 2\n// c\n\n// d\nm 3\n"),
        ('k """\n\tone\n  """\nl 1', 'k """\n\tone\n  """\nl 1\n'),
        ('k { p: """\n  x\n""" }', 'k {\n  p: """\n  x\n"""\n}\n'),
        ("GOAL\nTOOLS\nx 1", "GOAL\n  TOOLS\nx 1\n"),
    ],
)
def test_layout(given_text, expected):
    assert formatted(given_text) == expected
    assert formatted(expected) == expected


def test_opened_tasks_stand_apart():
    text = "agent a {start b config{x 1} task b{\n}// of c\ntask c{\ngoal 1}task d{}task e{}\nx 1}"
    assert formatted(text) == (
        "agent a {\n  start -> b\n  config { x 1 }\n  task b {} // of c\n\n  task c {\n    goal 1\n  }\n\n"
        "  task d {}\n  task e {}\n  x 1\n}\n"
    )


def test_a_block_without_room_is_opened_from_the_outside_in():
    long = ", ".join(f'"{"x" * 20}{n}"' for n in range(6))
    made = formatted(f"task a {{ step s: tool.cc {{ source: 1, flags: [{long}] }} }}")
    assert made.startswith('task a {\n  step s: tool.cc {\n    source: 1\n    flags: [\n      "x')
    assert max(map(len, made.splitlines())) <= WIDTH


def test_a_chain_without_room_breaks_before_its_operators():
    condition = " and ".join(f'file_exists("{"x" * 30}{n}")' for n in range(4))
    made = formatted(f"task a {{ success: {condition} }}")
    assert made.count("\n    and file_exists") == 3


@pytest.mark.parametrize(
    "text", ["task a {", "task a { x: \0 }", "task a { x: 1.2.3 }", "}" * 50, "x" * 300_000]
)
def test_a_broken_text_is_not_touched(text):
    made = format_text(text)
    assert not made.ok
    assert made.text == text
    assert made.diagnostics


def test_bytes_that_are_no_text_are_told():
    assert not format_text(b"task a { x: \xff }").ok


def test_layout_may_not_make_a_spec_too_large():
    text = "x {" * 60 + " ".join(f"a{n} 1" for n in range(20_000)) + "}" * 60
    made = format_text(text)
    assert [item.code for item in made.diagnostics] == ["lang.too_large"]
    assert made.text == text
