"""Edits: small patches that keep comments and layout, and inverses that give the same bytes back."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edited_spec_kit import SPEC
from spak.errors import EditRefused
from spak.lang import parse
from spak.lang.edit import OPS, apply, apply_all, from_json, ops, read, to_json
from spak.lang.format import comments
from spec_gen import some_op, spec_text

EXAMPLES = Path(__file__).resolve().parents[2] / "specs/examples"
LOSES = (
    *(ops.RemoveTask, ops.RemoveStep, ops.RemoveEdge, ops.RemoveModelItem, ops.Clear, ops.ClearField),
    *(ops.ClearStart, ops.Set, ops.SetField, ops.SetCondition, ops.SetLevel, ops.EditModelItem, ops.Rewrite),
)
"""What may take comments along: those of the thing that goes."""


def keeps_the_laws(text: str, op: ops.Op) -> bool:
    """False when the operation was refused."""
    before = parse(text)
    assert before.ok
    assert from_json(json.loads(json.dumps(to_json(op)))) == op
    try:
        done = apply(before, op)
    except EditRefused as error:
        assert error.code.startswith("edit.")
        return False
    after = parse(done.text)
    assert after.ok, after.diagnostics
    back = apply(done.text, done.inverse)
    assert back.text == text
    assert apply(text, back.inverse).text == done.text
    assert from_json(json.loads(json.dumps(to_json(done.inverse)))) == done.inverse
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        assert "\n" not in done.text.replace("\r\n", "")
    if not isinstance(op, LOSES):
        assert not Counter(comments(before)) - Counter(comments(after))
    undo = done.inverse.means
    if undo and isinstance(op, (ops.AddTask, ops.AddStep, ops.AddEdge, ops.AddModelItem, ops.RenameTask)):
        assert parse(apply_all(done.text, undo).text).spec.hash == before.spec.hash
    return True


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from((0.0, 0.05, 0.3)), st.sampled_from(("\n", "\r\n")))
def test_an_edit_parses_and_its_inverse_gives_the_same_bytes(draw, noise, newline):
    text = spec_text(draw, noise, newline)
    keeps_the_laws(text, some_op(draw, parse(text).spec))


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_list_of_edits_has_one_patch_and_one_inverse(draw):
    text = current = spec_text(draw, 0.1)
    done: list[ops.Op] = []
    for _ in range(6):
        op = some_op(draw, parse(current).spec)
        try:
            current = apply(current, op).text
        except EditRefused:
            continue
        done.append(op)
    edited = apply_all(text, done)
    assert edited.text == current
    assert apply(edited.text, edited.inverse).text == text
    spliced = text
    for start, end, new in reversed(edited.patches):
        spliced = spliced[:start] + new + spliced[end:]
    assert spliced == current


@pytest.mark.slow
@pytest.mark.fuzz
def test_thousands_of_edits_keep_the_laws():
    draw = random.Random(11)
    done = 0
    for _ in range(5_000):
        text = spec_text(draw, draw.choice((0.0, 0.05, 0.2, 0.5)), draw.choice(("\n", "\r\n")))
        done += keeps_the_laws(text, some_op(draw, parse(text).spec))
    assert done > 1500


CASES = {
    "add-task c": ('GOAL "y" } // tail\n', 'GOAL "y" } // tail\n\n  TASK c {\n    GOAL "c"\n  }\n'),
    "add-task c after=": (
        "  // about a\n",
        '  TASK c {\n    GOAL "c"\n  }\n\n  // about a\n',
    ),
    "remove-task b": ('\n  TASK b { GOAL "y" } // tail\n', ""),
    "rename-task b z": (("success -> b", "success -> z"), ("TASK b", "TASK z")),
    "rename-task a z": (("START -> a", "START -> z"), ("TASK a", "TASK z"), ("fail -> a", "fail -> z")),
    "add-edge a timeout b": ("fail -> a\n", "fail -> a,\n      timeout -> b\n"),
    "add-edge a timeout b at=0": ("      success ->", "      timeout -> b,\n      success ->"),
    "add-edge b fail a": ('GOAL "y" }', 'GOAL "y" NEXT { fail -> a } }'),
    "retarget-edge a fail b": ("fail -> a", "fail -> b"),
    "rename-trigger a fail timeout": ("fail -> a", "timeout -> a"),
    "remove-edge a fail": ("success -> b, // on\n      fail -> a\n", "success -> b // on\n"),
    "remove-edge a success": ("      success -> b, // on\n", ""),
    "set-start b": ("START -> a", "START -> b"),
    "clear-start": ("  START -> a\n\n", ""),
    "set-level 4": ("LEVEL 5", "LEVEL 4"),
    "set-level 0": (" LEVEL 5", ""),
    'set-goal a "two words"': ('GOAL "x"', 'GOAL "two words"'),
    "set-tools a cc,run": ("[cc]", "[cc, run]"),
    "set-tools b run": ('GOAL "y" }', 'GOAL "y" TOOLS [run] }'),
    "set-validator a none": ('CpuProfiler { binary: "k.so" }', "none"),
    "set-validator b PyTest paths:=[x]": ('GOAL "y" }', 'GOAL "y" VALIDATOR PyTest { paths: [x] } }'),
    "set a VALIDATOR.warmup 3": ('"k.so" }', '"k.so", warmup: 3 }'),
    "clear a VALIDATOR.binary": (' { binary: "k.so" }', ""),
    "set-rule a patience 4": ('"k.so" }\n', '"k.so" }\n    RULE { patience: 4 }\n'),
    "set-retries a 2": ('"k.so" }\n', '"k.so" }\n    RETRIES 2\n'),
    "set-proposer a tuner strategy=tpe": ('"k.so" }\n', '"k.so" }\n    PROPOSER tuner { strategy: "tpe" }\n'),
    "set-budget a evaluations 9": ('"k.so" }\n', '"k.so" }\n    BUDGET { evaluations: 9 }\n'),
    "set-budget elapsed_s 60": ("steps: 9", "steps: 9, elapsed_s: 60"),
    "clear CONFIG.BUDGET.steps": (", BUDGET { steps: 9 }", ""),
    "set-memory fifo": ("{ MODE", "{ MEMORY FIFO, MODE"),
    "set-sandbox DOCKER": ("{ MODE", "{ SANDBOX DOCKER, MODE"),
    "set-mode stepwise": ("MODE full_auto", "MODE stepwise"),
    "set-backend manual": ("full_auto,", "full_auto, BACKEND manual,"),
    "set INPUTS.n 'int = 5'": ("9 } }\n", "9 } }\n  INPUTS { n: int = 5 }\n"),
    "set a SPACE.tile '[8, 16]'": ('"k.so" }\n', '"k.so" }\n    SPACE { tile: [8, 16] }\n'),
    "add-axiom two": ("// first\n", '// first\n    AXIOM "two"\n'),
    "add-axiom zero at=1": ('    AXIOM "one"', '    AXIOM "zero"\n    AXIOM "one"'),
    "edit-axiom 1 uno": ('"one"', '"uno"'),
    "remove-axiom 1": ('    AXIOM "one" // first\n', ""),
    "add-heuristic g when=timeout": ("WHEN fail\n", 'WHEN fail\n    HEURISTIC "g" WHEN timeout\n'),
    "edit-heuristic 1 when=": (" WHEN fail", ""),
    "add-prediction p": ("WHEN fail\n", 'WHEN fail\n    PREDICTION "p"\n'),
    "add-step a s0 tool.run cmd=pwd after=": (
        "    step s1",
        '    step s0: tool.run { cmd: "pwd" }\n    step s1',
    ),
    "add-step a s3 llm.query prompt='see {{last_tool_output}}' output_var:=out": (
        '.c" }\n',
        '.c" }\n    step s3: llm.query { prompt: "see {{last_tool_output}}", output_var: out }\n',
    ),
    "move-step a s1": (
        ('    step s1: tool.run { cmd: "ls" } // list\n', ""),
        ('.c" }\n', '.c" }\n    step s1: tool.run { cmd: "ls" } // list\n'),
    ),
    "move-step a s2 after=": (
        ('    step s2: tool.cc { source: "{{exit_code.s1}}.c" }\n', ""),
        ("    step s1", '    step s2: tool.cc { source: "{{exit_code.s1}}.c" }\n    step s1'),
    ),
    "remove-step a s1": ('    step s1: tool.run { cmd: "ls" } // list\n', ""),
    "rename-step a s1 first": (
        ("step s1", "step first"),
        ("{{exit_code.s1}}", "{{exit_code.first}}"),
        ("exit_code(s1)", "exit_code(first)"),
    ),
    "set-kind a s1 tool.cc": ("tool.run", "tool.cc"),
    "set-field a s1 cmd=pwd": ('cmd: "ls"', 'cmd: "pwd"'),
    "set-field a s1 on_fail=continue": ('cmd: "ls"', 'cmd: "ls", on_fail: continue'),
    "set-field a s1 'poll:={every_s: 2, limit: 9}'": (
        'cmd: "ls"',
        'cmd: "ls", poll: {every_s: 2, limit: 9}',
    ),
    "set-field a s2 flags:=[x]": ('.c" }', '.c", flags: [x] }'),
    "rewrite 'task b { GOAL \"z\" }' b": ('TASK b { GOAL "y" }', 'task b { GOAL "z" }'),
    "clear-field a s1 cmd": ('{ cmd: "ls" }', "{ }"),
    "add-check a speed tool.run cmd=./b": (
        '.c" }\n',
        '.c" }\n    evaluation {\n      check speed: tool.run { cmd: "./b" }\n    }\n',
    ),
    "set-success a 'exit_code(s2) == 0'": ("exit_code(s1) == 0", "exit_code(s2) == 0"),
    "set-success a ''": ("    success: exit_code(s1) == 0\n", ""),
    "set-invariant a 'not file_exists(\"x\")'": (
        "(s1) == 0\n",
        '(s1) == 0\n    invariant: not file_exists("x")\n',
    ),
}


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize("style", ["plain", "crlf", "tabs"])
def test_a_patch_is_as_small_as_it_can_be(words, style):
    pairs = CASES[words]
    pairs = pairs if isinstance(pairs[0], tuple) else (pairs,)
    expected = SPEC
    for old, new in pairs:
        assert expected.count(old) == 1, old
        expected = expected.replace(old, new)
    as_style = {
        "plain": lambda text: text,
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "tabs": lambda text: text.replace("  ", "\t"),
    }[style]
    done = apply_all(as_style(SPEC), read([words]))
    assert done.text == as_style(expected)
    assert apply(done.text, done.inverse).text == as_style(SPEC)


def test_every_operation_has_a_case_or_a_test_of_its_own():
    used = {type(read([words])[0]) for words in CASES}
    assert {OPS[name] for name in OPS} - used == {ops.CreateMissingTask, ops.Patch}


def test_several_operations_on_one_line():
    words = ["rename-task", "b", "end", ",", "add-task late goal='x y'", "add-edge", "a", "timeout", "late"]
    done = apply_all(SPEC, read(words))
    assert "success -> end" in done.text
    assert 'GOAL "x y"' in done.text
    assert "timeout -> late" in done.text
    assert apply(done.text, done.inverse).text == SPEC


def test_a_removed_task_takes_the_edges_to_it_along():
    done = apply_all(SPEC, read(["remove-task b edges=yes"]))
    assert "-> b" not in done.text
    assert apply(done.text, done.inverse).text == SPEC
    again = apply_all(done.text, done.inverse.means)
    assert parse(again.text).spec.hash != parse(done.text).spec.hash
    assert "success -> b" in again.text


def test_settings_of_a_file_of_bare_tasks_go_to_its_top():
    text = (EXAMPLES / "hello.spak").read_text()
    done = apply(text, ops.Set("MEMORY", "FIFO"))
    assert done.text == text.replace("\ntask Hello", "\nCONFIG { MEMORY FIFO }\n\ntask Hello")


def test_a_text_of_several_lines_stands_in_triple_quotes():
    done = apply(SPEC, ops.SetField("a", "s1", "cmd", "one\n  two\n\nthree"))
    assert 'cmd: """\n        one\n          two\n\n        three"""' in done.text
    assert 'cmd: "one\\n\\"\\"\\"two"' in apply(SPEC, ops.SetField("a", "s1", "cmd", 'one\n"""two')).text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_comes_back_as_it_was(value):
    try:
        done = apply(SPEC, ops.SetField("a", "s1", "cmd", value))
    except EditRefused as error:
        assert "\0" in value or not value.isprintable()
        assert error.code == "edit.value"
        return
    step = next(
        item for item in next(parse(done.text).spec.tasks()).items if getattr(item, "name", "") == "s1"
    )
    assert step.body.entries[0].value.value == value
