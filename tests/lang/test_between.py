"""The edits between two specs: applied to the one they give the other, whatever differs."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edited_spec_kit import COMPARED as SPEC
from spak.errors import EditRefused
from spak.lang import parse
from spak.lang.diff import compare
from spak.lang.edit import apply, apply_all, from_json, ops, ops_from_json, read, to_json
from spak.lang.edit.between import between
from spec_gen import some_op, spec_text

EXAMPLES = int(os.environ.get("SPAK_FUZZ_EXAMPLES", "12"))
SHIPPED = sorted((Path(__file__).resolve().parents[2] / "specs").rglob("*.spak"))


def made(old: str, new: str) -> tuple[ops.Op, ...]:
    """The edits, which give the other spec, as data too."""
    one, two = parse(old), parse(new)
    found = between(one, two)
    text = apply_all(old, found).text if found else old
    assert parse(text).spec.hash == two.spec.hash
    assert compare(parse(text), two).equal
    assert ops_from_json([to_json(op) for op in found]) == found
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(("\n", "\r\n")))
@pytest.mark.findings("A3")
def test_the_edits_between_any_two_specs_make_the_other(draw: random.Random, newline: str) -> None:
    made(spec_text(draw, 0.05), spec_text(draw, 0.05, newline))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_the_edits_between_a_spec_and_what_became_of_it(draw: random.Random, count: int) -> None:
    old = new = spec_text(draw, 0.05)
    for _ in range(count):
        try:
            new = apply(new, some_op(draw, parse(new).spec)).text
        except EditRefused:
            continue
    made(old, new)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_specs_that_were_changed(path: Path) -> None:
    draw, old = random.Random(path.name), path.read_text(encoding="utf-8")
    for _ in range(3):
        try:
            new = apply(old, some_op(draw, parse(old).spec)).text
        except EditRefused:
            continue
        made(old, new)


@pytest.mark.parametrize(
    ("edit", "kinds"),
    [
        ('set-field second say text="another"', ["SetField"]),
        ("clear-field first tidy on_fail", ["ClearField"]),
        ("set-kind first tidy tool.nvcc", ["SetKind"]),
        ("add-step first more tool.run cmd=ls", ["AddStep"]),
        ("add-check first more tool.run cmd=ls", ["AddStep"]),
        ("remove-step first tidy", ["RemoveStep"]),
        ("move-step first tidy after=", ["MoveStep"]),
        ("rename-step first tidy clean", ["RenameStep"]),
        ("set-success first 'lint < 9'", ["SetCondition"]),
        ("set-success first ''", ["SetCondition"]),
        ("add-task new goal=new", ["AddTask"]),
        ("rename-task second report", ["RenameTask"]),
        ("set-level 4", ["SetLevel"]),
        ("set-start second", ["SetStart"]),
        ("clear-start", ["ClearStart"]),
        ("add-edge third fail first", ["AddEdge"]),
        ("retarget-edge first fail third", ["RetargetEdge"]),
        ("remove-edge first fail", ["RemoveEdge"]),
        ("add-axiom more", ["AddModelItem"]),
        ("add-prediction more", ["AddModelItem"]),
        ("edit-axiom 2 'No file outside of src is changed.'", ["EditModelItem"]),
        ("set-goal first x", ["Set"]),
        ("clear first VALIDATOR", ["Clear"]),
        ("set-budget steps 80", ["Set"]),
        ("clear INPUTS.n", ["Clear"]),
        ("set INPUTS.more int", ["Set"]),
    ],
)
def test_each_difference_has_the_edit_that_a_person_would_make(edit: str, kinds: list[str]) -> None:
    new = apply_all(SPEC, read([edit])).text
    assert [type(op).__name__ for op in made(SPEC, new)] == kinds


def test_what_no_smaller_edit_makes_is_written_anew() -> None:
    order = parse('task a { GOAL "x" RETRIES 1 }').text
    assert [to_json(op) for op in made(order, 'task a { RETRIES 1 GOAL "x" }')] == [
        {"op": "rewrite", "source": 'task a { RETRIES 1 GOAL "x" }', "task": "a"}
    ]
    assert made("AGENT A LEVEL 1 { }", "AGENT B LEVEL 1 { }") == (ops.Rewrite("AGENT B LEVEL 1 { }"),)
    assert made(order, order + "\n\n") == ()


@pytest.mark.parametrize(
    ("op", "hint"),
    [
        ({"op": "rewrite", "source": "task b { }", "task": "a"}, "rename_task"),
        ({"op": "rewrite", "source": "task a {", "task": "a"}, ""),
        ({"op": "rewrite", "source": "task a {"}, "spak check"),
    ],
)
def test_what_cannot_be_written_anew_is_refused(op: dict[str, str], hint: str) -> None:
    with pytest.raises(EditRefused) as found:
        apply("task a { }", from_json(op))
    assert found.value.code == "edit.value" and hint in found.value.hint
