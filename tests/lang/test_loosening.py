"""The table of what loosens a spec: cases for each row, and a mutant of the table for each row."""

# ruff: noqa: E501  a row of the table reads best as one line

from __future__ import annotations

import pytest

from spak import config
from spak.lang import parse
from spak.lang.diff import Capability, compare
from spak.lang.diff import capability as table

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
    ("judgement", ('    success: exit_code(test) == 0 and verdict == "yes"\n', ""), "success in verify judges less"),
    ("judgement", (' and verdict == "yes"', ""), "success in verify judges less"),
    ("judgement", ("exit_code(test) == 0", "exit_code(test) < 9"), "success in verify judges less"),
    ("validator", (' VALIDATOR PyTest { paths: ["tests/"] }', ""), "VALIDATOR in tune judges less"),
    ("protect", ('"tests/", "ci/"', '"tests/unit", "ci"'), "patches may change tests/ in mend, which was protected"),
    ("protect", (' protect: ["tests/", "ci/"]', ""), "patches may change ci/ in mend"),
    ("axiom", (' AXIOM "Be brief."', ""), "the axiom is gone: Be brief."),
    ("policy", ('  POLICY "rules.mg"\n', ""), "POLICY forbids less"),
    ("level", ("LEVEL 4", "LEVEL 5"), "LEVEL rises (4 -> 5)"),
    ("mode", ("MODE semi_auto", "MODE full_auto"), "MODE (semi_auto -> full_auto) stops less often"),
    ("approvals", ("SANDBOX DOCKER", "SANDBOX DOCKER, APPROVALS ask"), "what was denied may be approved by a person"),
    ("sandbox", ("SANDBOX DOCKER", "SANDBOX RESTRICTED"), "the sandbox is weaker (DOCKER -> RESTRICTED)"),
    ("network", ('"a.example"', '"a.example", "b.example"'), "requests may reach b.example"),
    ("tool", ("TOOLS [read_file]", "TOOLS [read_file, run]"), "the tool run may be called in build"),
    *(("budget", (old, new), "the limit") for old, new in (
        ("steps: 50", "steps: 51"), ("steps: 50", "steps: 0"), ("requests: 20", "requests: 0"),
        ("request_bytes: 9", "request_bytes: 0"), ("RETRIES 1", "RETRIES 2"), ("limit: 3", "limit: 4"),
        ("MODE semi", "RETRIES 9, MODE semi"),
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
    assert found[0].widens is True or kind in ("backend", "proposer", "judgement")


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


def test_a_patch_step_under_another_name_is_held_to_the_same_protection() -> None:
    put = 'step put: tool.apply_patch { patch: diff protect: ["tests/", "ci/"] }'
    text = changed(CHAIN, (put, 'step b: tool.apply_patch { patch: "x" on_fail: stop }'))
    assert {item.name for item in widening(text) if item.kind == "protect"} == {"tests/", "ci/"}


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
