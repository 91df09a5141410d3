"""The semantic difference: things followed through renames and moves, and what the agent may do more."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edited_spec_kit import COMPARED as SPEC
from lang_catalog import CATALOG
from spak.errors import EditRefused
from spak.lang import parse
from spak.lang.diff import Difference, compare, show
from spak.lang.edit import apply, apply_all, ops, read
from spak.lang.format import format_text
from spec_gen import some_op, spec_text, specs


def after(*words: str, text: str = SPEC) -> Difference:
    return compare(parse(text), parse(apply_all(text, read(words)).text), CATALOG)


def changes(found: Difference) -> list[tuple[str, str]]:
    return [(item.op, item.path) for item in found.changes]


# ---- laws ----------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(specs())
def test_a_spec_equals_itself_and_its_other_layouts(text):
    parsed = parse(text)
    same = compare(parsed, parsed)
    assert (same.equal, same.formatting_only, same.changes) == (True, False, ())
    made = format_text(text).text
    other = compare(parsed, parse(made))
    assert other.equal
    assert other.formatting_only == (made != text)


def judge(text: str, op: ops.Op) -> None:
    try:
        done = apply(text, op).text
    except EditRefused:
        return
    left, right = parse(text), parse(done)
    found = compare(left, right, CATALOG)
    assert found.equal == (left.spec.hash == right.spec.hash)
    assert bool(found.changes) != found.equal
    back = compare(right, left, CATALOG)
    assert len(back.changes) > 0 or found.equal
    json.dumps(found.to_json())
    assert show(found)


@settings(max_examples=250, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_difference_is_told_exactly_when_the_meaning_differs(draw):
    text = spec_text(draw, 0.05)
    judge(text, some_op(draw, parse(text).spec))


@settings(max_examples=60, deadline=None)
@given(specs(), specs())
def test_any_two_specs_can_be_compared(left, right):
    found = compare(parse(left), parse(right), CATALOG)
    assert found.equal == (parse(left).spec.hash == parse(right).spec.hash)
    json.dumps(found.to_json())
    show(found)


@pytest.mark.slow
@pytest.mark.fuzz
def test_thousands_of_edits_are_told():
    draw = random.Random(23)
    for _ in range(4000):
        text = spec_text(draw, 0.1)
        judge(text, some_op(draw, parse(text).spec))


# ---- each edit is told as itself -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["add-task new"], [("add", "tasks/new")]),
        (["remove-task third"], [("remove", "tasks/third")]),
        (["rename-task second report"], [("rename", "tasks/report")]),
        (["rename-task first begin"], [("rename", "tasks/begin")]),
        (["rename-task third end"], [("rename", "tasks/end")]),
        (
            ["rename-task second report", "set-goal report x"],
            [("rename", "tasks/report"), ("change", "tasks/report/GOAL")],
        ),
        (["add-edge third fail first"], [("add", "tasks/third/NEXT/fail")]),
        (["retarget-edge first fail third"], [("change", "tasks/first/NEXT/fail")]),
        (["remove-edge first fail"], [("remove", "tasks/first/NEXT/fail")]),
        (
            ["rename-trigger first fail timeout"],
            [("remove", "tasks/first/NEXT/fail"), ("add", "tasks/first/NEXT/timeout")],
        ),
        (["set-start second"], [("change", "START")]),
        (["clear-start"], [("remove", "START")]),
        (["set-level 4"], [("change", "LEVEL")]),
        (["set-goal first x"], [("change", "tasks/first/GOAL")]),
        (["set-rule first patience 4"], [("add", "tasks/first/RULE/patience")]),
        (["set first VALIDATOR.warmup 3"], [("add", "tasks/first/VALIDATOR/warmup")]),
        (
            ["set-validator first PyTest"],
            [("change", "tasks/first/VALIDATOR"), ("remove", "tasks/first/VALIDATOR/binary")],
        ),
        (["set-budget steps 91"], [("change", "CONFIG/BUDGET/steps")]),
        (["set INPUTS.n 'int = 6'"], [("change", "INPUTS/n")]),
        (["add-axiom 'Something else.'"], [("add", "SYSTEM_MODEL/axiom/3")]),
        (["edit-axiom 1 'Outputs stay within 1e-3 of the reference.'"], [("change", "SYSTEM_MODEL/axiom/1")]),
        (["remove-axiom 1"], [("remove", "SYSTEM_MODEL/axiom/1")]),
        (["edit-heuristic 1 when=timeout"], [("change", "SYSTEM_MODEL/heuristic/1")]),
        (
            ["remove-axiom 2", "add-axiom 'No file outside of src is written.' at=1"],
            [("reorder", "SYSTEM_MODEL/axiom")],
        ),
        (["add-step first more tool.run cmd=ls"], [("add", "tasks/first/steps/more")]),
        (["remove-step first tidy"], [("remove", "tasks/first/steps/tidy")]),
        (["move-step first tidy after="], [("move", "tasks/first/steps/tidy")]),
        (["rename-step first build compile"], [("rename", "tasks/first/steps/compile")]),
        (["rename-step first lint style"], [("rename", "tasks/first/checks/style")]),
        (["set-field first look cmd=pwd"], [("change", "tasks/first/steps/look/cmd")]),
        (["set-field first look cmd:=fix"], [("change", "tasks/first/steps/look/cmd")]),
        (["clear-field first tidy on_fail"], [("remove", "tasks/first/steps/tidy/on_fail")]),
        (["set-kind first look tool.cc"], [("change", "tasks/first/steps/look/kind")]),
        (["set-success first 'lint < 3'"], [("change", "tasks/first/success")]),
        (["set-invariant first 'file_exists(\"x\")'"], [("add", "tasks/first/invariant")]),
        (["add-check first speed tool.run cmd=x"], [("add", "tasks/first/checks/speed")]),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else "",
)  # fmt: skip
def test_an_edit_is_told_as_what_it_did(words, expected):
    assert changes(after(*words)) == expected


def test_a_moved_task_and_parts_in_another_order():
    first, second, third = SPEC.index("  TASK first"), SPEC.index("  TASK second"), SPEC.index("  TASK third")
    moved = SPEC[:first] + SPEC[second:third] + SPEC[first:second] + SPEC[third:]
    assert [item.op for item in compare(parse(SPEC), parse(moved)).changes] == ["move"]
    swapped = SPEC.replace("success -> second, fail -> first", "fail -> first, success -> second")
    assert changes(compare(parse(SPEC), parse(swapped))) == [("reorder", "tasks/first")]
    split = SPEC.replace("success -> second, fail", "success -> second } NEXT { fail")
    assert changes(compare(parse(SPEC), parse(split))) == [("reorder", "")]


def test_values_are_shown_as_they_are_meant():
    by_path = {
        item.path: item for item in after("set-field first look cmd:=fix", "set-tools first cc").changes
    }
    assert by_path["tasks/first/steps/look/cmd"].after == {"$name": "fix"}
    assert by_path["tasks/first/TOOLS"].before == ["cc", "run"]
    (condition,) = after("set-success first 'not (lint > 3 or lint < 1) and true'").changes
    assert condition.before == "exit_code(build) == 0 and lint < 3"
    assert condition.after == "not (lint > 3 or lint < 1) and true"


def test_a_chain_of_renamed_tasks_is_followed():
    words = ["rename-task first one", "rename-task second two", "rename-task third three"]
    found = after(*words)
    assert found.renames == {"first": "one", "second": "two", "third": "three"}
    assert [item.op for item in found.changes] == ["rename"] * 3


def test_a_task_that_holds_something_else_is_another_one():
    found = after(
        "remove-task third", "add-task other goal='Quite different.'", "retarget-edge second success other"
    )
    assert ("remove", "tasks/third") in changes(found)
    assert ("add", "tasks/other") in changes(found)
    assert found.renames == {}


# ---- capabilities --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("set-tools second read_file,write_file", [("tool", "gained", "write_file", True)] * 2),
        (
            "set-tools second nsight",
            [("tool", "changed", "read_file", False), ("tool", "gained", "read_ast", True)] * 2,
        ),
        ("set-level 4", [("level", "changed", "LEVEL", False)]),
        ("set-mode full_auto", [("mode", "changed", "MODE", True)]),
        ("set-mode stepwise", [("mode", "changed", "MODE", False)]),
        ("set-sandbox RESTRICTED", [("sandbox", "changed", "SANDBOX", True)]),
        ("set-sandbox GVISOR", [("sandbox", "changed", "SANDBOX", False)]),
        ("set-budget steps 0", [("budget", "changed", "steps", True)]),
        ("set-budget steps 80", [("budget", "changed", "steps", False)]),
        ("set-budget window 3", [("budget", "changed", "window", True)]),
        ("clear CONFIG.BUDGET.steps", [("budget", "changed", "steps", True)]),
        ("set-retries first 9", [("budget", "changed", "RETRIES", True)]),
        ("set-budget first evaluations 100", [("budget", "changed", "evaluations", True)]),
        ("clear first VALIDATOR", [("validator", "lost", "VALIDATOR", True)]),
        ("set first VALIDATOR.warmup 1", [("validator", "changed", "VALIDATOR", None)]),
        (
            "set-validator second PyTest",
            [("validator", "gained", "VALIDATOR", False), ("step", "lost", "say", None)],
        ),
        ("set-success first ''", [("judgement", "lost", "success", True)]),
        ("set-success first 'lint < 9'", [("judgement", "changed", "success", None)]),
        ("remove-step first lint", [("judgement", "lost", "check lint", True)]),
        ("remove-axiom 2", [("axiom", "lost", "No file outside of src is written.", True)]),
        ("add-axiom more", [("axiom", "gained", "more", False)]),
        ("set POLICY rules.mg", [("policy", "gained", "POLICY", False)]),
        ("set-backend manual", [("backend", "gained", "BACKEND", None)]),
        ("set-goal first x", []),
        ("rename-task second report", []),
    ],
)  # fmt: skip
def test_what_the_agent_may_do_more(words, expected):
    found = after(words)
    told = [(item.kind, item.change, item.name, item.widens) for item in found.capabilities]
    assert sorted(told, key=str) == sorted(expected, key=str)
    assert len([item for item in found.flags if item.flag == "widens"]) == len([x for x in told if x[3]])


def test_an_alias_is_the_tool_itself_and_a_network_tool_says_so():
    found = after("set-tools first nvcc,run")
    assert [item.kind for item in found.capabilities] == []
    found = after("add-step third get tool.http_request url=x")
    assert {(item.kind, item.name) for item in found.capabilities} == {
        ("network", "http_request"),
        ("tool", "http_request"),
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("clear INPUTS.n", "gone"),
        ("set INPUTS.n 'string = \"x\"'", "wants string"),
        ("set INPUTS.n int", "no default any more"),
        ('set INPUTS.kind \'enum("a") = "a"\'', "fewer choices"),
        ("set INPUTS.more int", "new input without"),
    ],
)
def test_what_breaks_a_command_that_started_the_old_spec(words, why):
    (flag,) = [item for item in after(words).flags if item.flag == "breaking"]
    assert why in flag.why


# ---- people and limits ---------------------------------------------------------------------------------


def test_the_text_for_people():
    assert show(after("set-goal first x", "set-tools second read_file,run", "clear INPUTS.n")) == (
        '- INPUTS/n: "int = 5"\n'
        '~ tasks/first/GOAL: "Compile it." -> "x"\n'
        '~ tasks/second/TOOLS: ["read_file"] -> ["read_file", "run"]\n'
        "\ncapabilities:\n"
        "  ! tool run in tasks/second gained\n"
        "\nbreaking:\n"
        "  INPUTS/n: the input is gone\n"
    )
    assert show(compare(parse(SPEC), parse(SPEC))) == "equal: the same text\n"
    assert show(compare(parse(SPEC), parse(SPEC + "\n"))) == "equal: formatting only\n"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("", "x 1 " * 60_000),
        ("x 1 " * 60_000, "x 2 " * 60_000),
        ("task a {} " * 20_000, "task b {} " * 20_000),
        (
            "".join(f"task a{n} {{}} " for n in range(9_000)),
            "".join(f"task b{n} {{}} " for n in range(9_000)),
        ),
        (
            "".join(f"task a{n} {{ GOAL 1 }} " for n in range(9_000)),
            "".join(f"task b{n} {{ GOAL 1 }} " for n in range(9_000)),
        ),
        (
            "system_model {" + "".join(f'axiom "a{n} x"' for n in range(15_000)) + "}",
            "system_model {" + "".join(f'axiom "b{n} x"' for n in range(15_000)) + "}",
        ),
        (
            "task a {" + "".join(f"step a{n}: tool.x " for n in range(12_000)) + "}",
            "task a {" + "".join(f"step a{n}: tool.x " for n in reversed(range(12_000))) + "}",
        ),
        (
            "task a {"
            + "".join(f"step a{n}: tool.t{n} {{ x: exit_code.a{n} }} " for n in range(5_000))
            + "}",
            "task a {"
            + "".join(f"step b{n}: tool.t{n} {{ x: exit_code.b{n} }} " for n in range(5_000))
            + "}",
        ),
    ],
    ids=range(8),
)
def test_large_odd_specs_are_no_hang(left, right):
    one, two = parse(left), parse(right)
    assert one.ok
    assert two.ok
    began = time.process_time()
    assert not compare(one, two).equal
    assert time.process_time() - began < 100


def test_a_host_more_widens_and_one_less_does_not() -> None:
    more = SPEC.replace("SANDBOX DOCKER,", 'SANDBOX DOCKER, HOSTS ["Docs.example"],')
    for old, new, change in ((SPEC, more, "gained"), (more, SPEC, "lost")):
        [found] = compare(parse(old), parse(new), CATALOG).capabilities
        assert (found.kind, found.name, found.change) == ("network", "docs.example", change)
        assert bool(found.widens) is (change == "gained")
