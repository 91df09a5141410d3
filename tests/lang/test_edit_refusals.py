"""Edits that are refused, and findings that an edit mends."""

from __future__ import annotations

import pytest

from edited_spec_kit import SPEC
from lang_catalog import CATALOG, SEED_000, unescaped
from spak.errors import EditRefused, SpecError
from spak.lang import check, parse
from spak.lang.diagnostics import apply_fix
from spak.lang.edit import apply, apply_all, operation, ops, ops_from_json, read, to_json
from spak.lang.imports import resolve


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
        ("add-step a s9 run", "edit.value", "not a kind of step"),
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
