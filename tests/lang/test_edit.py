"""Edits: small patches that keep comments and layout, and inverses that give the same bytes back."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lang_catalog import CATALOG, SEED_000, unescaped
from spak.errors import EditRefused, SpecError
from spak.lang import check, parse
from spak.lang.diagnostics import apply_fix
from spak.lang.edit import OPS, apply, apply_all, from_json, operation, ops, ops_from_json, read, to_json
from spak.lang.format import comments
from spak.lang.imports import resolve
from spec_gen import some_op, spec_text

EXAMPLES = Path(__file__).resolve().parents[2] / "specs/examples"
LOSES = (
    *(ops.RemoveTask, ops.RemoveStep, ops.RemoveEdge, ops.RemoveModelItem, ops.Clear, ops.ClearField),
    *(ops.ClearStart, ops.Set, ops.SetField, ops.SetCondition, ops.SetLevel, ops.EditModelItem),
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


# ---- layout --------------------------------------------------------------------------------------------

SPEC = """\
// head

AGENT A LEVEL 5 {
  CONFIG { MODE full_auto, BUDGET { steps: 9 } }

  SYSTEM_MODEL M {
    AXIOM "one" // first
    HEURISTIC "h" WHEN fail
  }

  START -> a

  // about a
  TASK a {
    GOAL "x"
    TOOLS [cc]
    VALIDATOR CpuProfiler { binary: "k.so" }
    step s1: tool.run { cmd: "ls" } // list
    step s2: tool.cc { source: "{{exit_code.s1}}.c" }
    success: exit_code(s1) == 0
    NEXT {
      success -> b, // on
      fail -> a
    }
  }

  TASK b { GOAL "y" } // tail
}
"""

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


# ---- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("add-task a", "edit.exists", "already"),
        ("add-task 'a b'", "edit.name", "can not name"),
        ("add-task a.b", "edit.name", "can not name"),
        ("add-task c after=zz", "edit.unknown", "no task 'zz'"),
        ("create-missing-task c", "edit.not_missing", "nothing leads"),
        ("remove-task zz", "edit.unknown", "no task 'zz'"),
        ("rename-task a b", "edit.exists", "already"),
        ("rename-task zz b", "edit.unknown", "no task"),
        ("add-edge a success b", "edit.exists", "leads to 'b' already"),
        ("add-edge a 'x y' b", "edit.name", "trigger"),
        ("remove-edge a sucess", "edit.unknown", "no edge"),
        ("rename-trigger a fail success", "edit.exists", "already"),
        ("set-start zz", "edit.unknown", "no task"),
        ("set-level 6", "edit.value", "1 to 5"),
        ("set-level x", "edit.arguments", "whole number"),
        ("set a GAOL x", "edit.key", "no setting"),
        ("set a MEMORY FIFO", "edit.key", "no setting"),
        ("set GOAL x", "edit.key", "no setting"),
        ("set a GOAL.x y", "edit.key", "no setting"),
        ("set-memory LIFO", "edit.value", "MEMORY can not be"),
        ("set-retries a many", "edit.value", "RETRIES wants"),
        ("set-retries a -1", "edit.value", "RETRIES wants"),
        ("set b VALIDATOR.warmup 3", "edit.unknown", "no VALIDATOR"),
        ("clear b TOOLS", "edit.unknown", "has no TOOLS"),
        ("set-rule a pace 3", "edit.key", "no setting"),
        ("edit-axiom 2 x", "edit.unknown", "no axiom 2"),
        ("add-axiom x at=9", "edit.value", "number 9"),
        ("add-step a s1 tool.run", "edit.exists", "already"),
        ("add-step a s9 run", "edit.value", "no kind of step"),
        ("add-step a s9 tool.run cmd:='[1'", "edit.value", "spec's writing"),
        ("add-step a s9 tool.run cmd", "edit.arguments", "key=text"),
        ("move-step a s1 after=s9", "edit.unknown", "no step 's9'"),
        ("rename-step a s1 s2", "edit.exists", "already"),
        ("clear-field a s1 sourc", "edit.unknown", "no field"),
        ("set-success a 'x } y'", "edit.value", "not one"),
        ("set-success b ''", "edit.unknown", "no success"),
        ("fly away", "edit.unknown_op", "fly"),
        ("add-tsak b", "edit.unknown_op", "add-tsak"),
        ("rename-task a", "edit.arguments", "other arguments"),
        ("set-goal a 'x", "edit.arguments", "quotes"),
    ],
)
def test_what_can_not_be_done_is_refused_with_a_code(words, code, said):
    with pytest.raises(EditRefused) as caught:
        apply_all(SPEC, read([words]))
    assert caught.value.code == code
    assert said in caught.value.message


@pytest.mark.parametrize(
    "value",
    [
        3,
        None,
        {},
        {"op": 1},
        {"op": "fly"},
        {"op": "add_task"},
        {"op": "add_task", "name": 3},
        {"op": "add_task", "name": "x", "color": "red"},
        {"op": "add_task", "name": "x", "after": 3},
        {"op": "remove_task", "name": "x", "edges": "yes"},
        {"op": "add_step", "task": "a", "name": "x", "fields": []},
        {"op": "patch"},
        {"op": "patch", "changes": [3]},
        {"op": "patch", "changes": [{"start": 0, "end": 0, "old": "", "new": 3}]},
        {"op": "patch", "changes": [], "means": [3]},
    ],
)
def test_json_that_is_no_operation_is_refused(value):
    with pytest.raises(EditRefused):
        ops_from_json(value)


@pytest.mark.parametrize(
    "op",
    [
        ops.SetField("a", "s1", "cmd", {"$name": "x y"}),
        ops.SetField("a", "s1", "cmd", {"$name": 3}),
        ops.SetField("a", "s1", "cmd", {"$source": "1 } x {"}),
        ops.SetField("a", "s1", "cmd", {"$other": "x"}),
        ops.SetField("a", "s1", "cmd", {"k": {1, 2}}),
        ops.SetField("a", "s1", "cmd", "a\0b"),
        ops.SetField("a", "s1", "cmd", float("nan")),
        ops.SetField("a", "s1", "cmd", 2**60),
        ops.SetField("a", "s1", "a b", 1),
        ops.Set("TOOLS", 3, "a"),
        ops.Set("TOOLS", ["a b"], "a"),
        ops.Set("RULE", {"pace": 3}, "a"),
        ops.Set("VALIDATOR", {"name": "x", "else": 3}, "a"),
        ops.Set("INPUTS.n", {"type": 3}),
        ops.Set("", "x"),
        ops.Set("CONFIG.BUDGET.steps.more.and.more", 3),
        ops.AddTask("c", source="TASK d {}"),
        ops.AddTask("c", source="TASK c {} TASK d {}"),
        ops.AddTask("c", source="TASK c {"),
        ops.AddStep("a", "x", source="step y: tool.run"),
        ops.AddStep("a", "x", source="} TASK y {"),
        ops.AddModelItem("law", "x"),
        ops.AddModelItem("axiom", "x", when="fail"),
        ops.Patch((ops.Change(0, 1, "x", ""),)),
        ops.Patch((ops.Change(0, 2, "//", ""), ops.Change(1, 2, "/", ""))),
        ops.Patch((ops.Change(5, 9_999, SPEC[5:], ""),)),
        ops.Patch((ops.Change(-3, -1, "", ""),)),
    ],
    ids=lambda op: to_json(op)["op"] if not isinstance(op, ops.SetField) else "set_field",
)
def test_values_that_no_spec_can_hold_are_refused(op):
    with pytest.raises(EditRefused):
        apply(SPEC, op)


def test_deep_values_are_refused():
    deep: object = 1
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(EditRefused, match="deeper"):
        apply(SPEC, ops.SetField("a", "s1", "cmd", deep))


def test_a_broken_text_is_not_edited():
    with pytest.raises(SpecError) as caught:
        apply("task a {", ops.AddTask("b"))
    assert caught.value.code == "lang.invalid"
    assert caught.value.diagnostics


def test_a_list_of_edits_is_all_or_nothing_and_names_the_one_that_failed():
    with pytest.raises(EditRefused, match="operation 2"):
        apply_all(SPEC, read(["add-task c", "add-task c"]))


def test_a_step_that_two_tasks_have_is_not_renamed_where_a_third_reads_it():
    one = 'task a { step s: tool.run { cmd: "x" } }\n'
    text = one + one.replace("task a", "task b") + 'task c { step t: tool.run { cmd: "{{exit_code.s}}" } }\n'
    with pytest.raises(EditRefused) as caught:
        apply(text, ops.RenameStep("a", "s", "new"))
    assert caught.value.code == "edit.ambiguous"
    alone = one + 'task c { step t: tool.run { cmd: "{{exit_code.s}} \\{{exit_code.s}}" } }\n'
    done = apply(alone, ops.RenameStep("a", "s", "new")).text
    assert '"{{exit_code.new}} \\{{exit_code.s}}"' in done


def test_a_check_is_renamed_with_its_metric():
    text = (
        "task a {\n  evaluation { check speed: tool.run { cmd: 1 } }\n"
        '  success: speed < 3 and metric(speed) > 1 and file_contains("x", "{{metric.speed}} speed")\n}\n'
    )
    done = apply(text, ops.RenameStep("a", "speed", "ms")).text
    assert done == text.replace("speed", "ms").replace("}} ms", "}} speed")


# ---- what check finds ----------------------------------------------------------------------------------


def mended(text: str) -> list[tuple[str, str]]:
    """Each finding with an operation that takes it away, as (code, op)."""
    made = []
    for found in check(parse(text), CATALOG):
        op = operation(found, parse(text))
        if op is None:
            continue
        after = apply(text, op).text
        left = [item for item in check(parse(after), CATALOG) if item.code == found.code]
        before = [item for item in check(parse(text), CATALOG) if item.code == found.code]
        assert len(left) < len(before), (found, op)
        made.append((found.code, to_json(op)["op"]))
    return made


def test_the_error_of_seed_000_is_mended_by_an_operation():
    text = unescaped(SEED_000)
    assert ("lang.unknown_task", "create_missing_task") in mended(text)
    done = apply(text, ops.CreateMissingTask("finalize")).text
    assert not [item for item in check(parse(done), CATALOG) if item.severity == "error"]


def test_findings_that_an_operation_mends():
    text = """
AGENT A {
  TASK first {
    GOAL "x"
    TOOLS [cc]
    step s: tool.run { cmd: "ls" }
    NEXT { success -> frist, sucess -> first, never -> first, fail -> lost }
  }
}
"""
    assert set(mended(text)) == {
        ("lang.no_start", "set_start"),
        ("lang.no_level", "set_level"),
        ("lang.unknown_task", "retarget_edge"),
        ("lang.unknown_task", "create_missing_task"),
        ("lang.dead_trigger", "remove_edge"),
        ("lang.unbounded_loop", "set"),
    } | {item for item in mended(text) if item[1] == "rename_trigger"}


LEADS = "TASK a { TOOLS [read_file] NEXT { success -> finish } }"


@pytest.mark.parametrize(
    "text",
    [
        f"AGENT A LEVEL 1 {{\n\tSTART -> a\n\n\t{LEADS}\n}}\n".replace("NEXT", "\n\t\tNEXT"),
        f"AGENT A LEVEL 1 {{\r\n    START -> a\r\n    {LEADS}\r\n}}\r\n",
        f"AGENT A LEVEL 1 {{ START -> a {LEADS} }}",
        f"AGENT A LEVEL 1 {{\n  START -> a\n  {LEADS}  // one\n  RETRIES 2\n}}",
        LEADS.lower().replace("tools", 'GOAL "x" TOOLS'),
    ],
)
def test_the_fix_of_a_missing_task_is_what_the_operation_does(text):
    (found,) = (item for item in check(parse(text), CATALOG) if item.code == "lang.unknown_task")
    assert apply_fix(text, found.fix) == apply(text, ops.CreateMissingTask("finish")).text


@pytest.mark.parametrize(
    "text",
    [
        f'AGENT A LEVEL 1 {{\n  IMPORT "m.spak"\n  START -> a\n  {LEADS}\n}}\n',
        f'AGENT A LEVEL 1 {{ IMPORT "m.spak" START -> a {LEADS}}}',
        f'IMPORT "m.spak"\n{LEADS}',
        f'{LEADS}\nIMPORT "m.spak"',
    ],
)
def test_the_fix_of_a_missing_task_stays_out_of_imported_files(text):
    shared = b'SYSTEM_MODEL M { AXIOM "x" }\nTASK b { TOOLS [read_file] }\nTASK c { TOOLS [read_file] }\n'

    def missing(text):
        whole = resolve(parse(text, "x.spak"), {"m.spak": shared}.get).parsed
        return [item for item in check(whole, CATALOG) if item.code == "lang.unknown_task"]

    text = text.replace("success ->", "fail -> b, success ->")
    (found,) = missing(text)
    mended = apply_fix(text, found.fix)
    assert missing(mended) == []
    assert [task.name for task in parse(mended).spec.tasks()] == ["a", "finish"]


def test_no_task_is_proposed_for_a_name_that_none_can_have():
    text = LEADS.replace("finish", "f" * 201)
    (found,) = (item for item in check(parse(text), CATALOG) if item.code == "lang.unknown_task")
    assert found.fix is None
