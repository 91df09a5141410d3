"""Names: where they are given and used, renames that keep the meaning, symbols, folds, colours."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from lang_catalog import CATALOG
from spak.lang import check, parse
from spak.lang.diagnostics import apply_fix
from spak.lang.features import (
    View,
    definition,
    folds,
    marks,
    occurrences,
    prepare_rename,
    references,
    rename,
    symbols,
)

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "specs" / "examples").glob("*.spak"))

TEXT = '''// The names of this file.
// They are all used more than once.
AGENT Words LEVEL 5 {
  INPUTS { path: string = "a.c" }
  SYSTEM_MODEL World { AXIOM "Be still." HEURISTIC "Look again." WHEN fail }
  START -> build

  TASK build {
    GOAL "Make {{input.path}}."
    step ask: llm.query {
      prompt_template: """
        \U0001d54f {{axiom.1}} {{ patch }}
      """
      output_var: patch
    }
    step mend: tool.apply_patch { patch: patch }
    step test: tool.run { cmd: "pytest {{input.path}}" }
    evaluation { check size: tool.run { cmd: "wc {{patch}}" } }
    success: exit_code(test) == 0 and size < 3 and metric(size) < 4
    NEXT { success -> done, fail -> build }
  }

  TASK done {
    TOOLS [cc, nvcc]
    step ask: tool.cc { source: input.path flags: ["{{exit_code.test}}", "{{metric.size}}"] }
  }
}
'''  # fmt: skip


@pytest.fixture(scope="module")
def view() -> View:
    return View(parse(TEXT), CATALOG)


def words(view: View, places: object) -> list[str]:
    return [view.text[item.start : item.end] for item in places]  # type: ignore[attr-defined]


def test_the_text_of_these_tests_is_right() -> None:
    assert [item.message for item in check(parse(TEXT), CATALOG) if item.severity == "error"] == []


@pytest.mark.parametrize(
    ("before", "name", "uses"),
    [
        ("START -> ", "build", 3),
        ("TASK ", "done", 2),
        ("output_var: ", "patch", 4),
        ("patch: ", "patch", 4),
        ("INPUTS { ", "path", 4),
        ("check ", "size", 4),
        ("exit_code(", "test", 3),
        ("step ", "mend", 1),
    ],
)
def test_a_name_is_found_wherever_it_is_used(view: View, before: str, name: str, uses: int) -> None:
    offset = TEXT.index(before + name) + len(before)
    for place in (offset, offset + len(name)):
        found = references(view, place)
        assert words(view, found) == [name] * uses
        assert set(references(view, place, declaration=False)) == set(found) - set(definition(view, place))
    assert words(view, definition(view, offset)) == [name]


def test_a_definition_is_where_the_name_is_given(view: View) -> None:
    place = definition(view, TEXT.index("done, fail"))[0]
    assert TEXT[: place.start].endswith("TASK ")
    place = definition(view, TEXT.index("{{ patch }}") + 4)[0]
    assert TEXT[: place.start].endswith("output_var: ")
    axiom = definition(view, TEXT.index("axiom.1") + 2)
    assert words(view, axiom) == ['AXIOM "Be still."']
    assert definition(view, TEXT.index("GOAL")) == ()


def test_an_alias_of_a_tool_is_the_same_tool(view: View) -> None:
    assert words(view, references(view, TEXT.index("nvcc"))) == ["cc", "nvcc", "cc"]
    assert definition(view, TEXT.index("nvcc")) == ()


def test_steps_of_two_tasks_with_one_name_are_two(view: View) -> None:
    assert len(references(view, TEXT.index("ask: llm"))) == 1
    assert len(references(view, TEXT.index("ask: tool"))) == 1


@pytest.mark.parametrize(
    ("where", "new"),
    [
        ("build\n", "make"),
        ("build\n", "next"),
        ("done {", "the-end"),
        ("patch\n", "answer"),
        ("path: string", "file"),
        ("size: tool", "bytes"),
        ("test: tool", "suite"),
    ],
)
def test_a_rename_changes_every_use_and_nothing_else(view: View, where: str, new: str) -> None:
    offset = TEXT.index(where)
    place = prepare_rename(view, offset)
    assert place is not None
    found = rename(view, offset, new)
    assert found.problem == ""
    after = apply_fix(TEXT, found.edits)
    assert [item.message for item in check(parse(after), CATALOG) if item.severity == "error"] == []
    old = TEXT[place.start : place.end]
    moved = sum(len(new) - len(old) for start, _, _ in found.edits if start < place.start)
    back = rename(View(parse(after), CATALOG), place.start + moved, old)
    assert apply_fix(after, back.edits) == TEXT


@pytest.mark.parametrize(
    ("where", "new", "problem"),
    [
        ("build\n", "done", "already"),
        ("build\n", "a b", "not a name"),
        ("build\n", "a.b", "not a name"),
        ("build\n", "bäu", "not a name"),
        ("build\n", "", "not a name"),
        ("patch\n", "goal", "a meaning of its own"),
        ("patch\n", "true", "a meaning of its own"),
        ("mend:", "test", "already"),
        ("mend:", "size", "already"),
        ("cc, nvcc", "gcc", "not a name that"),
        ("GOAL", "x", "not a name that"),
        ("AGENT", "x", "not a name that"),
    ],
)
def test_a_rename_that_can_not_be_says_why(view: View, where: str, new: str, problem: str) -> None:
    found = rename(view, TEXT.index(where), new)
    assert found.edits == ()
    assert problem in found.problem


def test_a_rename_that_would_capture_a_plain_word_is_refused() -> None:
    text = (
        'task a { step s: llm.query { prompt: "x" output_var: one }'
        " step t: tool.cc { source: one flags: [fast] } }"
    )
    found = rename(View(parse(text), CATALOG), text.index("one"), "fast")
    assert found.edits == ()
    assert "change what the spec means" in found.problem


def test_names_of_a_broken_text_are_those_that_parsed() -> None:
    text = "AGENT A LEVEL 1 { START -> a TASK a { TOOLS [cc NEXT { success -> b } } TASK b { TOOLS [cc] } }"
    view = View(parse(text), CATALOG)
    assert [item.name for item in occurrences(view) if item.kind == "task" and item.defines] == ["a", "b"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_names_of_the_examples_stand_where_they_say(path: Path) -> None:
    text = path.read_text()
    view = View(parse(text), CATALOG)
    for item in occurrences(view):
        if item.kind == "tool":
            assert view.catalog.tool(text[item.start : item.end]) is None or item.name
        elif item.kind not in ("axiom", "heuristic", "prediction"):
            assert text[item.start : item.end] == item.name


# ---- structure -----------------------------------------------------------------------------------------


def test_symbols_are_the_parts_of_the_file(view: View) -> None:
    (agent,) = symbols(view)
    assert (agent.name, agent.kind, agent.detail) == ("Words", "agent", "LEVEL 5")
    assert [(item.name, item.kind) for item in agent.children] == [
        ("INPUTS", "inputs"),
        ("World", "model"),
        ("build", "task"),
        ("done", "task"),
    ]
    inputs, world, build, _ = agent.children
    assert [item.name for item in inputs.children] == ["path"]
    assert [item.name for item in world.children] == ["axiom 1", "heuristic 1"]
    assert [item.name for item in build.children] == ["ask", "mend", "test", "size"]
    for item in (agent, *agent.children, *build.children):
        assert item.start <= item.name_start <= item.name_end <= item.end
        assert TEXT[item.name_start : item.name_end] in (item.name, "SYSTEM_MODEL", "INPUTS")


def test_symbols_of_a_broken_text_have_sane_ranges() -> None:
    for text in ("TASK", "AGENT { TASK { step : } }", "AGENT A LEVEL 1 { TASK a {"):
        for item in symbols(View(parse(text), CATALOG)):
            assert item.start <= item.name_start <= item.name_end <= item.end


def test_folds_are_brackets_texts_and_comments(view: View) -> None:
    found = {
        (TEXT.count("\n", 0, item.start), TEXT.count("\n", 0, item.end), item.kind) for item in folds(view)
    }
    assert (0, 1, "comment") in found
    assert (2, 26, "region") in found
    assert (9, 14, "region") in found
    assert (10, 12, "region") in found
    assert not any(first == last for first, last, _ in found)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_colours_cover_every_comment_text_and_number_once(path: Path) -> None:
    text = path.read_text()
    found = marks(View(parse(text), CATALOG))
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert all(item.start < item.end for item in found)
    comments = [text[item.start : item.end] for item in found if item.kind == "comment"]
    assert all(item.startswith(("//", "#")) for item in comments)
    assert len(comments) == sum("//" in line and "`//" not in line for line in text.splitlines())


def test_a_word_has_the_colour_of_its_place() -> None:
    text = (
        'task next { step task: tool.run { cmd: "a {{x}} b" output_var: x } success: not file_exists("a") }'
    )
    kinds = [(text[item.start : item.end], item.kind) for item in marks(View(parse(text), CATALOG))]
    assert kinds == [
        ("task", "keyword"),
        ("next", "function"),
        ("step", "keyword"),
        ("task", "method"),
        ("tool.", "type"),
        ("run", "type"),
        ("cmd", "property"),
        ('"a {{', "string"),
        ("x", "variable"),
        ('}} b"', "string"),
        ("output_var", "property"),
        ("x", "variable"),
        ("success", "keyword"),
        ("not", "keyword"),
        ("file_exists", "function"),
        ('"a"', "string"),
    ]
