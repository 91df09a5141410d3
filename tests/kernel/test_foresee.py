"""`check` reports what the policy will deny, and no more: cases as data, held against the kernel."""

from __future__ import annotations

import pytest

from law_kit import under
from spak import canon, config
from spak.kernel import foresee as module
from spak.kernel.foresee import MOST, foresee
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

CATALOG = config.catalog()


def found(text: str, law: str = "") -> tuple[Diagnostic, ...]:
    whole = resolve(parse(text), lambda path: None)
    made = examine(whole.parsed.spec, CATALOG)
    assert made.report.errors == 0, made.report.found
    return foresee(made, whole, under(law))


def agent(step: str, config: str = "", policy: str = "") -> str:
    return f"AGENT A LEVEL 2 {{ CONFIG {{ {config} }} {policy} START -> a TASK a {{ {step} }} }}"


DENIED = {
    'step s: tool.run { cmd: "curl http://example.org" }': "curl is not for the command line",
    'step s: tool.run { cmd: "sudo ls" }': "sudo is not for the command line",
    'step s: tool.run { cmd: "git push" }': "sends commits to another machine",
    'VALIDATOR Command { cmd: "sudo true" }': "sudo is not for the command line",
    'evaluation { check n: tool.run { cmd: "ssh host" } } success: n == 1': "ssh",
}

NOT_TOLD = {
    "permitted": 'step s: tool.run { cmd: "ls" }',
    "a path, which the run looks at": 'step s: tool.run { cmd: "cat ../x" }',
    "a host, which the run looks up": 'step s: tool.http_request { url: "https://example.org/" }',
    "a variable": 'step s: llm.query { prompt: "?" output_var: c } step t: tool.run { cmd: c }',
    "an input": 'step t: tool.run { cmd: "{{input.c}} x" }',
    "what a check would change": 'step t: tool.git_commit { message: "x" }',
    "the same by another door": 'step t: tool.run { cmd: "git commit -m x" }',
    "a plan": "TOOLS [run]",
}


@pytest.mark.parametrize("step", DENIED)
def test_an_action_that_every_run_denies_is_told(step: str) -> None:
    (one,) = found(agent(step))
    assert (one.severity, one.code) == ("warning", "lang.denied")
    assert DENIED[step] in one.message


@pytest.mark.parametrize("step", [step for step in DENIED if step.startswith("step")])
def test_a_run_denies_what_was_told(step: str) -> None:
    assert first_decision(agent(step)).startswith("policy.")


def test_a_run_permits_what_was_not() -> None:
    assert first_decision(agent(NOT_TOLD["permitted"])) == ""


def first_decision(text: str) -> str:
    """The code with which the first action of a run is refused; empty where it is permitted."""
    program = compile_program(parse(text), CATALOG, {})
    body = genesis(text, config.used(CATALOG, program), {}, canon.ZERO, 1, {"run": "r"})
    record = Record(Kind.GENESIS, Authority.PROPOSAL, body)
    stepped = step(Rules.of(body), State(), record)
    permit = next(commit for commit in stepped.commits if commit.kind == Kind.PERMIT)
    return "" if permit.body["allow"] is True else str(permit.body["code"])


@pytest.mark.parametrize("what", NOT_TOLD)
def test_what_rests_on_more_than_the_spec_is_left_to_the_run(what: str) -> None:
    text = agent(NOT_TOLD[what]).replace("START", "INPUTS { c: string } START")
    assert found(text) == ()


def test_the_operators_law_is_asked() -> None:
    step = 'step s: tool.run { cmd: "git push" }'
    assert [item.code for item in found(agent(step))] == ["lang.denied"]
    assert found(agent(step), "permitted(A) :- tool(A, /run).") == ()


def test_a_policy_that_speaks_of_the_past_is_left_to_the_run() -> None:
    policy = 'POLICY """forbidden(A) :- tool(A, /run), checks_ran("PyTest", /fail)."""'
    assert found(agent('step s: tool.run { cmd: "sudo ls" }', policy=policy)) == ()


def test_what_an_approval_would_permit_waits_for_it() -> None:
    codes = {
        asked: [(item.severity, item.code) for item in found(agent(GIT_PUSH, f"APPROVALS {asked}"))]
        for asked in ("deny", "ask")
    }
    assert codes == {"deny": [("warning", "lang.denied")], "ask": [("info", "lang.needs_approval")]}


GIT_PUSH = 'step s: tool.run { cmd: "git push" }'


def test_the_place_is_the_command() -> None:
    text = agent('step s: tool.run { cmd: "sudo ls" }')
    (one,) = found(text)
    assert text[one.start : one.end] == '"sudo ls"'


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


def test_nothing_is_foreseen_of_a_spec_with_errors() -> None:
    whole = resolve(
        parse('task a { step s: tool.run { cmd: "sudo ls" } step t: tool.x { } }'), lambda p: None
    )
    made = examine(whole.parsed.spec, CATALOG)
    assert foresee(made, whole, under()) == ()
