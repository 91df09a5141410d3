"""The table of what loosens a spec: cases for each row, and a mutant of the table for each row."""

# ruff: noqa: E501  a row of the table reads best as one line

from __future__ import annotations

import pytest

from spak import config
from spak.lang import parse
from spak.lang.diff import Capability, compare
from spak.lang.diff import capability as table
from spak.lang.edit import apply, ops

CATALOG = config.catalog()

CHAIN = """
AGENT A LEVEL 4 {
  CONFIG { MODE semi_auto, SANDBOX DOCKER, BACKEND manual, HOSTS ["a.example"],
           BUDGET { steps: 50, requests: 20, request_bytes: 9 } }
  POLICY "rules.mg"
  SYSTEM_MODEL M { AXIOM "Be brief." HEURISTIC "Look twice." }
  START -> plan
  TASK plan {
    step find: tool.grep { pattern: "TODO" path: "." }
    step a: tool.read_file { path: "a.txt" }
    NEXT { success -> build, fail -> verify }
  }
  TASK build {
    GOAL "Mend it."
    TOOLS [read_file]
    PROPOSER tuner { strategy: tpe }
    NEXT { success -> mend }
  }
  TASK mend {
    step fix: llm.query { prompt: "Mend a.txt." output_var: diff }
    step put: tool.apply_patch { patch: diff protect: ["tests/", "ci/"] }
    step note: tool.write_file { path: "notes.md" content: "x" }
    step style: tool.run { cmd: "ruff" on_fail: continue timeout_s: 9 writable: false }
    NEXT { success -> verify }
  }
  TASK verify {
    RETRIES 1
    step test: tool.run { cmd: "pytest" poll: { limit: 3 } }
    step ask: llm.query { prompt: "Is it done? Answer yes or no." output_var: verdict }
    success: exit_code(test) == 0 and verdict == "yes"
    NEXT { success -> tune }
  }
  TASK tune { GOAL "Tune it." VALIDATOR PyTest { paths: ["tests/"] } }
}
"""


def delta(old: str, new: str) -> tuple[Capability, ...]:
    assert parse(old).ok and parse(new).ok
    return compare(parse(old), parse(new), CATALOG).capabilities


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


ROWS = [
    ("way", ("success -> verify }", "success -> tune }"), "after mend ends with success a run goes on to tune without verify"),
    ("way", ("    NEXT { success -> mend }\n", ""), "after build ends with success a run ends without mend, verify, tune"),
    ("way", ("START -> plan", "START -> tune"), "after START a run goes on to tune without plan, verify, mend"),
    ("way", ("NEXT { success -> tune }", "NEXT { success -> tune, fail -> tune }"), "verify ends with fail a run goes on to tune without verify"),
    ("step", ('    step find: tool.grep { pattern: "TODO" path: "." }\n', ""), "step find no longer decides in plan"),
    ("step", ('path: "." }', 'path: "." on_fail: continue }'), "step find no longer decides in plan"),
    ("prompt", ("Is it done? Answer yes or no.", "Answer yes."), "the question ask, whose answer a condition reads, is another"),
    ("prompt", ("    RETRIES 1\n", '    RETRIES 1\n    GOAL "Say yes."\n'), "the question ask"),
    ("prompt", ('HEURISTIC "Look twice."', 'HEURISTIC "Look twice." PREDICTION "It is done: yes."'), "the question ask"),
    ("evidence", ('cmd: "pytest"', 'cmd: "true"'), "a judgement goes by test in verify, which is another"),
    ("evidence", ("    step ask:", '    step lie: tool.run { cmd: "echo yes" output_var: verdict }\n    step ask:'), "goes by lie in verify"),
    ("judgement", ('    success: exit_code(test) == 0 and verdict == "yes"\n', ""), "success in verify judges less"),
    ("judgement", (' and verdict == "yes"', ""), "success in verify judges less"),
    ("judgement", ("exit_code(test) == 0", "exit_code(test) < 9"), "success in verify judges less"),
    ("validator", (' VALIDATOR PyTest { paths: ["tests/"] }', ""), "VALIDATOR in tune judges less"),
    ("protect", ('"tests/", "ci/"', '"tests/unit", "ci"'), "the spec may change tests/ in mend, which was protected"),
    ("protect", (' protect: ["tests/", "ci/"]', ""), "the spec may change ci/ in mend"),
    ("protect", ('path: "notes.md"', 'path: "tests/test_a.py"'), "the spec may change tests/test_a.py in mend"),
    ("protect", ("step note: tool.write_file", 'step more: tool.delete_file { path: "./ci/x" }\n    step note: tool.write_file'), "the spec may change ./ci/x in mend"),
    ("axiom", (' AXIOM "Be brief."', ""), "the axiom is gone: Be brief."),
    ("policy", ('  POLICY "rules.mg"\n', ""), "POLICY forbids less"),
    ("level", ("LEVEL 4", "LEVEL 5"), "LEVEL rises (4 -> 5)"),
    ("level", (" LEVEL 4", ""), "LEVEL rises"),
    ("mode", ("MODE semi_auto, ", ""), "MODE stops less often"),
    ("mode", ("MODE semi_auto", "MODE full_auto"), "MODE (semi_auto -> full_auto) stops less often"),
    ("approvals", ("SANDBOX DOCKER", "SANDBOX DOCKER, APPROVALS ask"), "what was denied may be approved by a person"),
    ("export", ('  POLICY "rules.mg"\n', '  POLICY "rules.mg"\n  EXPORT mcp\n'), "it is offered as a tool to clients"),
    ("sandbox", ("SANDBOX DOCKER", "SANDBOX RESTRICTED"), "the sandbox is weaker (DOCKER -> RESTRICTED)"),
    ("sandbox", (" writable: false", ""), "the sandbox is weaker of step style in mend"),
    ("history", ("SANDBOX DOCKER", "SANDBOX DOCKER, HISTORY 9"), "jobs see more commits of the repository (0 -> 9)"),
    ("network", ('"a.example"', '"a.example", "b.example"'), "requests may reach b.example"),
    ("tool", ("TOOLS [read_file]", "TOOLS [read_file, run]"), "the tool run may be called in build"),
    *(("budget", (old, new), "the limit") for old, new in (
        ("steps: 50", "steps: 51"), ("steps: 50", "steps: 0"), ("requests: 20", "requests: 0"),
        ("request_bytes: 9", "request_bytes: 0"), ("RETRIES 1", "RETRIES 2"), ("limit: 3", "limit: 4"),
        ("MODE semi", "RETRIES 9, MODE semi"), ("timeout_s: 9", "timeout_s: 10"), (" timeout_s: 9", ""),
    )),
    ("backend", ("BACKEND manual", "BACKEND vllm"), "another model answers (manual -> vllm)"),
    ("proposer", ("PROPOSER tuner", "PROPOSER evolve"), "another proposer plans in build (tuner -> evolve)"),
]  # fmt: skip


def widening(new: str, old: str = CHAIN) -> list[Capability]:
    return [item for item in delta(old, new) if item.widens is not False]


@pytest.mark.findings("A3", "A6", "A8", "B1")
@pytest.mark.parametrize(("kind", "edit", "says"), ROWS)
def test_each_row_of_the_table_finds_what_loosens(kind: str, edit: tuple[str, str], says: str) -> None:
    found = [item for item in widening(changed(CHAIN, edit)) if item.kind == kind]
    assert any(says in item.why for item in found), [item.why for item in found]
    assert found[0].widens is True or kind in ("backend", "proposer", "judgement", "evidence", "mode")


def test_every_row_has_a_case_that_no_other_row_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for each row: without it, a change that loosens is not found."""
    rows = table.TABLE
    for row in rows:
        monkeypatch.setattr(table, "TABLE", tuple(one for one in rows if one is not row))
        missed = [edit for kind, edit, _ in ROWS if kind == row.kind and not widening(changed(CHAIN, edit))]
        assert missed, row.kind


@pytest.mark.parametrize(
    "edit",
    [
        ("success -> verify }", "success -> check_style }"),
        ("success -> build, fail -> verify", "success -> build"),
        ("success -> tune }", "success -> tune, fail -> mend }"),
        ('HEURISTIC "Look twice."', ""),
        ('"tests/", "ci/"', '"tests", "ci/", "docs/"'),
        ('protect: ["tests/", "ci/"]', 'protect: ["."]'),
        ("requests: 20", "requests: 19"),
        ('path: "a.txt" }', 'path: "a.txt" }\n    step b: tool.read_file { path: "a.txt" }'),
        ("Mend a.txt.", "Mend a.txt with care."),
    ],
)
def test_what_takes_no_judge_away_does_not_widen(edit: tuple[str, str]) -> None:
    text = changed(CHAIN, edit)
    if "check_style" in text:
        more = 'TASK check_style { step s: tool.run { cmd: "ruff" } NEXT { success -> verify } }'
        text = text.rstrip()[:-1] + more + "\n}"
    assert [item.why for item in widening(text) if item.kind != "tool"] == []


@pytest.mark.findings("A8")
def test_a_judging_task_that_goes_with_its_edges_widens() -> None:
    start, end = CHAIN.index("  TASK verify"), CHAIN.index("  TASK tune")
    text = CHAIN[:start] + CHAIN[end:]
    text = changed(text, (", fail -> verify", ""), ("success -> verify", "success -> tune"))
    assert ("way", "after mend ends with success a run goes on to tune without verify") in [
        (item.kind, item.why) for item in widening(text)
    ]


def test_a_step_that_decides_before_the_work_is_written_judges_less() -> None:
    base = 'task t { step w: tool.write_file { path: "a" content: "b" } step c: tool.run { cmd: "pytest" } }'
    moved = 'task t { step c: tool.run { cmd: "pytest" } step w: tool.write_file { path: "a" content: "b" } }'
    assert [(item.kind, item.name) for item in widening(moved, base)] == [("step", "c")]


CHECKED = """
AGENT A LEVEL 4 {
  INPUTS { tool: string = "pytest", lint: bool = true, other: int = 1 }
  START -> t
  TASK t {
    step w: tool.write_file { path: "a" content: "{{input.other}}" }
    step test: tool.run { cmd: "{{input.tool}} -q" }
    step more: tool.read_file { path: "b" }
    evaluation { check warnings: tool.run { cmd: "ruff" } }
    success: exit_code(test) == 0 and (input.lint == false or warnings < 3)
    NEXT { success -> last }
  }
  TASK last { step run: tool.run { cmd: "pytest" } }
}
"""


@pytest.mark.findings("A3", "A8")
@pytest.mark.parametrize(
    ("edit", "kind", "name"),
    [
        (('cmd: "ruff"', 'cmd: "true"'), "evidence", "warnings"),
        (('cmd: "ruff"', 'cmd: "ruff" on_fail: continue'), "evidence", "warnings"),
        (('cmd: "pytest"', 'cmd: "true"'), "evidence", "run"),
        (('"{{input.tool}} -q"', '"true"'), "evidence", "test"),
        (("step test: tool.run {", "step test: llm.query {"), "evidence", "test"),
        (('tool: string = "pytest"', 'tool: string = "true"'), "evidence", "tool"),
        (("lint: bool = true", "lint: bool = false"), "evidence", "lint"),
        (("    step more:", '    step z: tool.write_file { path: "a" content: "b" }\n    step more:'), "step", "test"),
        (("    step more:", '    step z: tool.run { cmd: "cp a b" }\n    step more:'), "step", "test"),
    ],
)  # fmt: skip
def test_what_a_judgement_goes_by_is_not_another(edit: tuple[str, str], kind: str, name: str) -> None:
    assert (kind, name) in [(item.kind, item.name) for item in widening(changed(CHECKED, edit), CHECKED)]


ACROSS = """
AGENT A LEVEL 4 {
  START -> a
  TASK a {
    step test: tool.run { cmd: "pytest" output_var: warnings on_fail: continue }
    NEXT { success -> b }
  }
  TASK b {
    step look: tool.run { cmd: "ls" }
    success: exit_code(test) == 0 and warnings == "0"
  }
}
"""


@pytest.mark.findings("A3")
@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (('"pytest" output_var: warnings', '"true" output_var: warnings'), "test"),
        (("    step look:", '    step test: tool.run { cmd: "true" }\n    step look:'), "test"),
        (("    success:", '    evaluation { check warnings: tool.run { cmd: "echo" } }\n    success:'), "warnings"),
        (("    success:", '    evaluation { check c: tool.run { cmd: "x" output_var: warnings } }\n    success:'), "c"),
    ],
)  # fmt: skip
def test_what_takes_the_place_of_what_is_read_may_loosen(edit: tuple[str, str], name: str) -> None:
    assert ("evidence", name) in [(one.kind, one.name) for one in widening(changed(ACROSS, edit), ACROSS)]


@pytest.mark.parametrize(
    "edit",
    [
        ("other: int = 1", "other: int = 2"),
        ('path: "b"', 'path: "c"'),
        ("    step more:", '    step z: tool.read_file { path: "a" }\n    step more:'),
        ('content: "{{input.other}}"', 'content: "x"'),
    ],
)
def test_what_no_judgement_reads_may_be_another(edit: tuple[str, str]) -> None:
    assert widening(changed(CHECKED, edit), CHECKED) == []


def test_a_patch_step_under_another_name_is_held_to_the_same_protection() -> None:
    put = 'step put: tool.apply_patch { patch: diff protect: ["tests/", "ci/"] }'
    text = changed(CHAIN, (put, 'step b: tool.apply_patch { patch: "x" on_fail: stop }'))
    assert {item.name for item in widening(text) if item.kind == "protect"} == {"tests/", "ci/"}


def test_a_step_under_another_name_is_held_to_the_same_limits() -> None:
    text = changed(CHAIN, ("step style:", "step lint:"), ("timeout_s: 9", "timeout_s: 90"))
    (found,) = widening(text)
    assert found.why == "the limit timeout_s of step lint in mend is higher (9 -> 90)"
    more = 'step lint: tool.run { cmd: "mypy" timeout_s: 3000 }\n    step style:'
    assert widening(changed(CHAIN, ("step style:", more))) == [], "a new step is no higher limit"


@pytest.mark.parametrize("path", ["{{diff}}", "diff", "a/../tests/x"])
def test_a_path_that_is_put_together_may_be_a_protected_one(path: str) -> None:
    written = path if path == "diff" else f'"{path}"'
    (found,) = widening(changed(CHAIN, ('path: "notes.md"', f"path: {written}")))
    assert (found.kind, found.widens) == ("protect", None)
    assert widening(changed(CHAIN, ('path: "notes.md"', 'path: "docs/notes.md"'))) == []


def test_more_changed_ways_than_are_compared_are_not_known() -> None:
    names = range(300)
    old = "".join(f"TASK t{n} {{ GOAL 'x' NEXT {{ success -> t{n + 1} }} }} " for n in names).replace(
        "'", '"'
    )
    new = old.replace("success ->", "success -> t0, fail ->")
    head, last = "AGENT A LEVEL 1 { START -> t0 ", 'TASK t300 { GOAL "x" success: true } }'
    [found] = [item for item in delta(head + old + last, head + new + last) if item.kind == "way"]
    assert found.widens is None


@pytest.mark.findings("B1")
def test_what_a_spec_may_do_names_the_paths_that_it_protects() -> None:
    found = compare(parse(""), parse(CHAIN), CATALOG).capabilities
    assert [item.name for item in found if item.kind == "protect"] == ["tests/", "ci/"]


# ---- every typed edit --------------------------------------------------------------------------------

PREPARED = ("    step test:", '    step prep: tool.run { cmd: "make" }\n    step test:')
DANGLING = ("NEXT { success -> verify }", "NEXT { success -> verify, fail -> gone }")
BASE = changed(CHAIN, PREPARED, DANGLING)
MODE = BASE.index("semi_auto")

LOOSENING: dict[str, tuple[ops.Op, str]] = {
    "add_task": (ops.AddTask("more", source='TASK more { step s: tool.run { cmd: "x" } }'), "tool"),
    "create_missing_task": (ops.CreateMissingTask("gone"), "way"),
    "remove_task": (ops.RemoveTask("tune", edges=True), "way"),
    "add_edge": (ops.AddEdge("verify", "fail", "tune"), "way"),
    "retarget_edge": (ops.RetargetEdge("mend", "success", "tune"), "way"),
    "rename_trigger": (ops.RenameTrigger("verify", "success", "fail"), "way"),
    "remove_edge": (ops.RemoveEdge("build", "success"), "way"),
    "set_start": (ops.SetStart("tune"), "way"),
    "clear_start": (ops.ClearStart(), "way"),
    "set_level": (ops.SetLevel(5), "level"),
    "set": (ops.Set("BUDGET.steps", 0), "budget"),
    "clear": (ops.Clear("VALIDATOR", "tune"), "validator"),
    "set_condition": (ops.SetCondition("verify", "success", ""), "judgement"),
    "add_model_item": (ops.AddModelItem("prediction", "It is done: yes."), "prompt"),
    "edit_model_item": (ops.EditModelItem("axiom", 1, "Be long."), "axiom"),
    "remove_model_item": (ops.RemoveModelItem("axiom", 1), "axiom"),
    "add_step": (
        ops.AddStep("verify", "lie", "tool.run", {"cmd": "echo yes", "output_var": "verdict"}),
        "evidence",
    ),
    "remove_step": (ops.RemoveStep("plan", "find"), "step"),
    "move_step": (ops.MoveStep("verify", "test", ""), "step"),
    "set_kind": (ops.SetKind("verify", "test", "tool.nsight"), "evidence"),
    "set_field": (ops.SetField("verify", "test", "cmd", "true"), "evidence"),
    "clear_field": (ops.ClearField("mend", "put", "protect"), "protect"),
    "rewrite": (ops.Rewrite('TASK verify { GOAL "x" NEXT { success -> tune } }', "verify"), "judgement"),
    "patch": (ops.Patch((ops.Change(MODE, MODE + 9, "semi_auto", "full_auto"),)), "mode"),
}
"""By operation: one that loosens, and the row of the table that says so."""

NEVER: dict[str, ops.Op] = {
    "rename_task": ops.RenameTask("verify", "judge"),
    "rename_step": ops.RenameStep("verify", "test", "suite"),
}
"""Operations that change what things are called and nothing else."""


def rows_of(op: ops.Op) -> set[str]:
    delta = compare(parse(BASE), parse(apply(BASE, op).text), CATALOG).capabilities
    return {item.kind for item in delta if item.widens is not False}


def test_every_operation_is_joined_to_the_table() -> None:
    assert {*LOOSENING, *NEVER} == set(ops.OPS)
    for name, op in ({name: op for name, (op, _) in LOOSENING.items()} | NEVER).items():
        assert ops.NAMES[type(op)] == name


@pytest.mark.findings("A3", "A6", "A8")
@pytest.mark.parametrize("name", LOOSENING)
def test_an_operation_that_loosens_is_found(name: str) -> None:
    op, row = LOOSENING[name]
    assert row in rows_of(op)


@pytest.mark.parametrize("name", NEVER)
def test_another_name_loosens_nothing(name: str) -> None:
    assert rows_of(NEVER[name]) - {"judgement"} == set()
