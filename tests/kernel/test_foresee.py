"""`check` reports what the policy will deny, and no more: cases as data, held against the kernel."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from law_kit import under
from spak import canon, config
from spak.kernel import foresee as module
from spak.kernel.foresee import MOST, SOMEBODY, Keys, foresee
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.step import step
from spak.lang import parse
from spak.lang.check import examine
from spak.lang.diagnostics import Diagnostic
from spak.lang.imports import resolve
from spak.program import compile as compile_program
from spak.records import Authority, Kind, Record
from spak.runner.genesis import genesis
from spak.runner.observe import observe

CATALOG = config.catalog()


def found(
    text: str, law: str = "", errors: bool = False, approvers: Keys | None = None
) -> tuple[Diagnostic, ...]:
    whole = resolve(parse(text), lambda path: None)
    made = examine(whole.parsed.spec, CATALOG)
    assert bool(made.report.errors or made.spec.source.problems) is errors, made.report.found
    return foresee(made, whole, under(law), approvers)


def agent(step: str, config: str = "", policy: str = "") -> str:
    return f"AGENT A LEVEL 2 {{ CONFIG {{ {config} }} {policy} START -> a TASK a {{ {step} }} }}"


DENIED = {
    'evaluation { check n: tool.read_file { path: "../x" } } success: n == 1': "outside of the workspace",
    'step s: tool.run { cmd: "ls" verdict_file: "/etc/x" }': "outside of the workspace",
    'step s: tool.run { cmd: "ls" verdict_file: ".git/HEAD" }': "git's own",
    'step s: tool.run { cmd: "ls" working_dir: "../.." }': "outside of the workspace",
    'step s: tool.read_file { path: "../x" }': "outside of the workspace",
    'step s: tool.read_file { path: "/etc/passwd" }': "outside of the workspace",
    'step s: tool.read_file { path: "/ws/../x" }': "outside of the workspace",
    'step s: tool.write_file { path: ".git/hooks/x" content: "x" }': "git's own",
}

LEFT_BY_LINKS = (
    'step s: tool.read_file { path: "a/../../x" }',
    'step s: tool.read_file { path: "/home/me/project/x" }',
    'step s: tool.read_file { path: ".env" }',
    'step s: tool.read_file { path: ".git/../../x" }',
    'step s: tool.run { cmd: "ls" working_dir: "sub/.." }',
    'step s: tool.read_file { path: "/ws/a" }',
    'step s: tool.write_file { path: "Makefile" content: "x" }',
)

NOT_TOLD = {
    "permitted": 'step s: tool.run { cmd: "ls" }',
    "a line, which the sandbox holds": 'step s: tool.run { cmd: "rm -rf /" }',
    "a path, which the run looks at": 'step s: tool.read_file { path: "a/../../x" }',
    "a host, which the run looks up": 'step s: tool.http_request { url: "https://example.org/" }',
    "a variable": 'step s: llm.query { prompt: "?" output_var: c } step t: tool.run { cmd: c }',
    "an input": 'step t: tool.run { cmd: "{{input.c}} x" }',
    "what a check would change": 'step t: tool.git_commit { message: "x" } VALIDATOR PyTest',
    "a commit that leaves no run": 'step t: tool.run { cmd: "git commit -m x" }',
    "a plan": "TOOLS [run]",
}


@pytest.mark.parametrize("step", DENIED)
def test_an_action_that_every_run_denies_is_told(step: str) -> None:
    (one,) = found(agent(step))
    assert (one.severity, one.code) == ("warning", "lang.denied")
    assert DENIED[step] in one.message


@pytest.mark.parametrize(
    ("step", "helps"),
    [
        ('step s: tool.write_file { path: ".git/hooks/x" content: "x" }', True),  # denied: no rule permits it
        (
            'step s: tool.read_file { path: "../x" }',
            False,
        ),  # forbidden, which wins over any rule that permits
        ('step s: tool.git_commit { message: "x" }', False),
    ],
)
def test_a_law_that_would_permit_it_is_advised_only_where_one_can(step: str, helps: bool) -> None:
    (one,) = found(agent(step))
    assert ("policy.denied" in one.message) is helps
    assert ("the operator's law" in one.hint) is helps and one.hint.startswith("do it another way")


@pytest.mark.parametrize("step", ['tool.git_commit { message: "x" }'])
@pytest.mark.parametrize("judge", ["", 'VALIDATOR Judge { artifact: "a" rubric: "b" }'])
def test_a_commit_in_a_spec_that_has_no_check_is_told(step: str, judge: str) -> None:
    """An opinion is no check for the barrier; a check of another task may come before."""
    (one,) = found(agent(f"step s: {step} {judge}"))
    assert (one.severity, one.code) == ("warning", "lang.denied")
    assert ("Judge gave an opinion, which is no check" if judge else "no check ran") in one.message
    other = (
        f'AGENT A LEVEL 2 {{ START -> a TASK a {{ step s: {step} }} TASK b {{ GOAL "b" VALIDATOR PyTest }} }}'
    )
    assert found(other) == ()


def test_a_commit_beside_a_validator_with_an_error_is_left_to_the_run() -> None:
    text = (
        agent('step s: tool.git_commit { message: "x" }').removesuffix("}") + "TASK b { VALIDATOR PyTst } }"
    )
    assert found(text, errors=True) == ()


@pytest.mark.parametrize("step", [step for step in DENIED if step.startswith("step")])
def test_a_run_denies_what_was_told(step: str, tmp_path: Path) -> None:
    assert first_decision(agent(step), tmp_path).startswith("policy.")


def test_a_run_permits_what_was_not(tmp_path: Path) -> None:
    assert first_decision(agent(NOT_TOLD["permitted"]), tmp_path) == ""


def first_decision(text: str, workspace: Path) -> str:
    """The code with which the first action of a run is refused; empty where it is permitted."""
    program = compile_program(parse(text), CATALOG, {})
    body = genesis(text, config.used(CATALOG, program), {}, canon.ZERO, 1, {"run": "r"})
    rules = Rules.of(body)
    stepped = step(rules, State(), Record(Kind.GENESIS, Authority.PROPOSAL, body))
    while stepped.effects and stepped.effects[0].act == "observe":
        effect = stepped.effects[0]
        seen = {"of": effect.id, "facts": observe(effect.args["questions"], workspace)}
        seen = canon.loads(canon.dumps(seen))
        stepped = step(rules, stepped.state, Record(Kind.OBSERVE, Authority.PROPOSAL, seen))
    permit = next(commit for commit in stepped.commits if commit.kind == Kind.PERMIT)
    return "" if permit.body["allow"] is True else str(permit.body["code"])


@pytest.mark.parametrize("what", NOT_TOLD)
def test_what_rests_on_more_than_the_spec_is_left_to_the_run(what: str) -> None:
    text = agent(NOT_TOLD[what]).replace("START", "INPUTS { c: string } START")
    assert found(text) == ()


@pytest.mark.parametrize("step", LEFT_BY_LINKS)
def test_a_path_that_links_could_lead_elsewhere_is_left_to_the_run(step: str) -> None:
    assert found(agent(step)) == ()


def test_the_operators_law_is_asked() -> None:
    assert [item.code for item in found(agent(HOOK))] == ["lang.denied"]
    assert found(agent(HOOK), "permitted(A) :- tool(A, /write_file).") == ()


def test_a_policy_that_speaks_of_the_past_is_left_to_the_run() -> None:
    policy = 'POLICY """forbidden(A) :- tool(A, /run), checks_ran("PyTest", /fail)."""'
    assert found(agent(HOOK, policy=policy)) == ()


def test_what_an_approval_would_permit_waits_for_it() -> None:
    codes = {
        asked: [(item.severity, item.code) for item in found(agent(HOOK, f"APPROVALS {asked}"))]
        for asked in ("deny", "ask")
    }
    assert codes == {"deny": [("warning", "lang.denied")], "ask": [("info", "lang.needs_approval")]}


HOOK = 'step s: tool.write_file { path: ".git/hooks/x" content: "x" }'


@pytest.mark.findings("D6")
def test_what_nobody_can_approve_is_said() -> None:
    text = agent(HOOK, "APPROVALS ask")
    (nobody,) = found(text, approvers=())
    assert (nobody.severity, nobody.code) == ("warning", "lang.needs_approval")
    assert "nobody can give" in nobody.message and "[[approvals.keys]]" in nobody.hint
    (asked,) = found(text, approvers=SOMEBODY[:1])
    assert asked.severity == "info"


@pytest.mark.findings("D10")
def test_what_cannot_be_read_is_said_once_and_no_law_permits_it() -> None:
    (one,) = found(agent('step s: tool.apply_patch { patch: "x" }'))
    assert one.message.count("patch.empty") == 1 and "law" not in one.hint


PLACES = {
    'tool.run { cmd: "ls" working_dir: "../.." }': '"../.."',
    'tool.read_file { path: "../x" }': '"../x"',
    'tool.write_file { content: "x" path: ".git/./config" }': '".git/./config"',
}


@pytest.mark.parametrize("step", PLACES)
def test_the_place_is_the_argument_that_is_denied(step: str) -> None:
    text = agent(f"step s: {step}")
    (one,) = found(text)
    assert text[one.start : one.end] == PLACES[step]


def test_equal_commands_are_judged_once_and_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    judge = module._judge
    monkeypatch.setattr(module, "_judge", lambda *args: (asked.append(args), judge(*args))[1])

    def tasks(command: str) -> str:
        rows = (
            f'TASK t{n} {{ step s: tool.run {{ cmd: "{command.format(n)}" }} NEXT {{ fail -> t{n + 1} }} }}'
            for n in range(MOST + 50)
        )
        last = f'TASK t{MOST + 50} {{ step s: tool.run {{ cmd: "ls" }} }}'
        return f"AGENT A LEVEL 2 {{ START -> t0 {' '.join(rows)} {last} }}"

    found(tasks("make"))
    assert len(asked) == 2
    asked.clear()
    found(tasks("echo {}"))
    assert len(asked) == MOST


ABOVE = 'step s: tool.read_file { path: "../x" }'

BESIDE = {
    "an unknown tool": f"task a {{ {ABOVE} step t: tool.x {{ }} }}",
    "an unknown variable": f'task a {{ {ABOVE} step t: llm.query {{ prompt: "{{{{nothing}}}}" }} }}',
    "an unknown task": f"AGENT A LEVEL 2 {{ START -> b TASK a {{ {ABOVE} NEXT {{ fail -> c }} }} }}",
    "no START": f"AGENT A LEVEL 2 {{ TASK a {{ {ABOVE} }} }}",
    "a setting": f"AGENT A LEVEL 2 {{ CONFIG {{ RETRYS 3 }} START -> a TASK a {{ {ABOVE} }} }}",
    "a brace": f"AGENT A LEVEL 2 {{ START -> a TASK a {{ {ABOVE} TASK b {{ GOAL }} }}",
    "a validator": f"AGENT A LEVEL 2 {{ START -> a TASK a {{ {ABOVE} VALIDATOR Nothing }} }}",
}

TASK = f"START -> a TASK a {{ {ABOVE} }}"

CONCERNED = {
    "the step": 'task a { step s: tool.read_file { path: "../x" pth: "x" } }',
    "the policy": f'AGENT A LEVEL 2 {{ POLCY """permitted(A) :- tool(A, /read_file).""" {TASK} }}',
    "an axiom": f'AGENT A LEVEL 2 {{ SYSTEM_MODEL m {{ AXIM "x" }} START -> a TASK a {{ {ABOVE} }} }}',
    "a lost policy": f'AGENT A LEVEL 2 {{ START -> a TASK a {{ {ABOVE} NEXT -> ) POLICY """x""" }} }}',
    "a lost variable": "task a { step q: llm.qury { prompt: output_var: c } step s: tool.run { cmd: c } }",
    "an import": f'AGENT A LEVEL 2 {{ IMPORT "no.spak" START -> a TASK a {{ {ABOVE} }} }}',
    "its hosts": (
        "AGENT A LEVEL 2 { CONFIG { HOSTS: 3 } START -> a "
        'TASK a { step s: tool.http_request { url: "https://localhost/" } } }'
    ),
}


@pytest.mark.parametrize("what", BESIDE)
def test_an_error_elsewhere_does_not_hide_what_will_be_denied(what: str) -> None:
    assert [item.code for item in found(BESIDE[what], errors=True)] == ["lang.denied"]


@pytest.mark.parametrize("what", CONCERNED)
def test_nothing_is_foreseen_of_a_part_that_an_error_concerns(what: str) -> None:
    assert found(CONCERNED[what], errors=True) == ()


NAMES = ("a", "b", "build", "sub", "sub/c", ".git", ".env", "Makefile", "/etc/x", "/ws/a", "..", ".", "../x")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_denied_before_the_run_is_denied_in_every_workspace(seed: int, tmp_path: Path) -> None:
    """Random file tools over random links; git's folder alone is none."""
    chance = random.Random(seed)
    root = tmp_path / "w"
    (root / ".git").mkdir(parents=True)
    (root / "sub").mkdir()
    for name in ("a", "b", "build", "sub/c", ".env", "Makefile"):
        kind = chance.choice(("link", "file", "folder", "none"))
        if kind == "link":
            target = chance.choice(("/etc", "..", ".", "sub", "a", "build/x", ".git", "../w/b"))
            (root / name).symlink_to(target)
        elif kind == "file":
            (root / name).write_text("x")
        elif kind == "folder":
            (root / name).mkdir()
    denied = 0
    for _ in range(40):
        paths = ["/".join(chance.choices(NAMES, k=chance.choice((1, 1, 2))))]
        proposed = chance.choice((("read_file", {"path": paths[0]}), ("write_file", {"path": paths[0]})))
        name, value = next(iter(proposed[1].items()))
        more = ' content: "x"' if proposed[0] == "write_file" else ""
        text = agent(f'step s: tool.{proposed[0]} {{ {name}: "{value}"{more} }}')
        if found(text):
            denied += 1
            assert first_decision(text, root).startswith("policy."), text
    assert denied > 3


def test_a_run_refuses_the_empty_task_that_was_reported() -> None:
    text = "task a {}"
    whole = resolve(parse(text), lambda path: None)
    (found,) = examine(whole.parsed.spec, CATALOG).report.found
    assert (found.severity, found.code) == ("warning", "lang.empty_task")
    assert found.fix == ((8, 8, ' GOAL "a" '),)
    program = compile_program(parse(text), CATALOG, {})
    body = genesis(text, config.used(CATALOG, program), {}, canon.ZERO, 1, {"run": "r"})
    ended = step(Rules.of(body), State(), Record(Kind.GENESIS, Authority.PROPOSAL, body))
    assert ended.state.r7.codes == ("run.empty_task",)
