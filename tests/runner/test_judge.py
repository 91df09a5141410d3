"""The Judge in runs: asked through the run's model, recorded as a proposal, never enough for a commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Write
from law_kit import under
from spak.errors import UnavailableError
from spak.kernel.replay import replay
from spak.lang import parse
from spak.lang.catalog import Catalog, NamedEntry
from spak.ledger.files import FileLedgers
from spak.llm import LlmSettings, redactor
from spak.llm.recorded import Recorded, read
from spak.ports import Answer, Call, Prompt, ToolResult
from spak.program import compile as compile_program
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.runner.views.run_json import refusal
from spak.validators.compliance import Compliance
from spak.validators.judge import VERDICT, Judge
from spak.workspace import Workspace

SPEC = """
AGENT Judged LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { steps: 40 LIMITS } }
  START -> w
  TASK w { step w: tool.write { path: "a.txt" text: "CONTENT" } NEXT { success -> look } }
  TASK look { VALIDATOR Judge { artifact: "a.txt" rubric: "It greets." } NEXT { success -> NEXT fail -> no } }
  TASK check { VALIDATOR Compliance { artifact: "a.txt" axioms: AXIOMS } NEXT { success -> commit } }
  TASK commit { step c: tool.git_commit { message: "Say hello" } }
  TASK no { step n: tool.write { path: "no.txt" text: "no" } }
}
"""
AXIOMS = '[{ text: "greets", check: "contains", args: { text: "hello" } }]'
YES, NO = '{"pass": true, "reasons": ["hello"]}', '{"pass": false, "reasons": ["no greeting", "too short"]}'


class Commit:
    """A stand-in for git_commit, under its name, so that the constitution's barrier judges it."""

    def __init__(self) -> None:
        from spak.tools import TOOLS

        self.entry = TOOLS["git_commit"].entry
        self.calls = 0

    def run(self, call: Call) -> ToolResult:
        self.calls += 1
        return ToolResult("exited", 0, b"committed", 9)


@dataclass
class Model:
    script: Callable[[int], str | None]
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("model", "a script"))
    asked: list[Prompt] = field(default_factory=list)

    def check(self) -> None: ...

    def answer(self, prompt: Prompt, *given: Any) -> Answer | None:
        self.asked.append(prompt)
        text = self.script(len(self.asked))
        return None if text is None else Answer(text, {"input": 30, "output": 10}, "m-1")


def begin(
    folder: Path,
    backend: Any,
    target: str = "commit",
    content: str = "hello",
    limits: str = "",
    axioms: str = AXIOMS,
    given: str = "",
    start: str = "w",
) -> tuple[Run, Commit]:
    spec = SPEC.replace("-> NEXT", f"-> {target}").replace("CONTENT", content).replace("LIMITS", limits)
    spec = spec.replace("AXIOMS", axioms).replace("START -> w", f"START -> {start}")
    commit = Commit()
    tools = {"write": Write(), "git_commit": commit}
    validators = {"Judge": Judge(), "Compliance": Compliance()}
    catalog = Catalog(
        {name: tool.entry for name, tool in tools.items()},
        {name: item.entry for name, item in validators.items()},
    )
    assert compile_program(parse(spec), catalog, {}).tasks
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    if given:
        place.directory.mkdir(parents=True, exist_ok=True)
        (place.directory / "a.txt").write_text(given)
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(PERMITS))
    host = Host(tools=tools, validators=validators, backend=backend, redactor=redactor(LlmSettings()))
    return Run.create(FileLedgers(folder), "run-1", body, host, place), commit


def measured(run: Run) -> list[Any]:
    return [record for record, _ in run.ledger.read() if record.kind == Kind.ACT and "status" in record.body]


def test_a_verdict_is_a_proposal_that_replays(tmp_path: Path) -> None:
    model = Model(lambda count: YES)
    run, _ = begin(tmp_path, model, target="no")
    run.advance("full_auto")
    assert run.state.status == "succeeded"
    (prompt,) = model.asked
    assert (prompt.role, prompt.task, prompt.schema) == ("judge", "look", VERDICT)
    assert [item["name"] for item in prompt.items] == ["format", "rubric", "artifact"]
    assert prompt.items[1]["text"] == "It greets." and prompt.items[2]["text"] == "a.txt:\nhello"
    (record,) = measured(run)
    assert record.authority == "proposal" and record.body["evidence"] == {"judge_answer": YES}
    assert record.body["checks"] == [{"name": "judge", "ok": True, "code": ""}]
    assert record.side["by"] == "m-1" and record.side["tokens"] == 40 and run.state.r2 == 40
    again = replay(record for record, _ in run.ledger.read())
    assert again.difference is None and again.state == run.state
    run.close()


def test_a_failed_verdict_is_routed_and_its_reasons_are_shown(tmp_path: Path) -> None:
    run, _ = begin(tmp_path, Model(lambda count: NO))
    run.advance("full_auto")
    (record,) = measured(run)
    assert record.body["checks"][0]["code"] == "judge.failed"
    assert record.body["diagnostics"][0]["message"] == "no greeting; too short"
    assert (tmp_path / "run-1/workspace/no.txt").exists()
    run.close()


def test_an_opinion_alone_commits_nothing(tmp_path: Path) -> None:
    run, commit = begin(tmp_path, Model(lambda count: YES))
    run.advance("full_auto")
    assert commit.calls == 0
    assert run.state.status == "refused" and run.state.r7.codes[0].startswith("policy.")
    run.close()


@pytest.mark.parametrize(
    ("axioms", "signal"),
    [
        (AXIOMS, "success"),
        ('[{ text: "greets", check: "judge", args: { rubric: "It greets." } }]', "fail"),
    ],
)
def test_beside_a_check_it_commits(tmp_path: Path, axioms: str, signal: str) -> None:
    """An axiom with CHECK judge is unchecked by Compliance, so that it is no check either."""
    run, _ = begin(tmp_path, Model(lambda count: YES), target="check", axioms=axioms)
    run.advance("full_auto")
    judge, compliance = measured(run)
    assert judge.body["checks"][0]["ok"] is True
    assert compliance.body["checks"][0]["ok"] is (signal == "success")
    assert {name: found for name, _, found in run.state.r7.checks} == {
        "Compliance": signal,
        "Judge": "success",
    }
    run.close()


def test_an_answer_that_is_no_verdict_is_void_and_asked_for_again(tmp_path: Path) -> None:
    model = Model(lambda count: "It passes!" if count == 1 else YES)
    run, _ = begin(tmp_path, model, target="no")
    run.advance("full_auto")
    assert [record.body["status"] for record in measured(run)] == ["void", "checked"]
    assert run.state.status == "succeeded"
    run.close()


def test_three_answers_that_are_no_verdicts_end_the_run(tmp_path: Path) -> None:
    model = Model(lambda count: '{"pass": true}')
    run, _ = begin(tmp_path, model, target="no")
    run.advance("full_auto")
    assert len(model.asked) == 3 and run.state.status == "failed"
    assert run.state.r7.codes == ("validator.void",)
    shown = (refusal(run.state) or {})["knob"]
    assert shown == "a quieter machine, or fix what the measurement reports"
    run.close()


@pytest.mark.parametrize("backend", [None, Model(lambda count: None)])
def test_without_a_model_the_question_stays_open(tmp_path: Path, backend: Any) -> None:
    run, _ = begin(tmp_path, backend)
    with pytest.raises(UnavailableError) as caught:
        run.advance("full_auto")
    assert caught.value.code == "unavailable.judge"
    assert measured(run) == [] and run.pending().act == "validate"
    run.close()


def test_a_recorded_verdict_repeats_the_run(tmp_path: Path) -> None:
    first, _ = begin(tmp_path / "a", Model(lambda count: NO))
    first.advance("full_auto")
    lines = [line for _, line in first.ledger.read()]
    second, _ = begin(tmp_path / "b", Recorded(recordings=read(lines, first.ledger.blobs.get)))
    second.advance("full_auto")
    assert second.state.summary == first.state.summary
    first.close()
    second.close()


def test_no_secret_of_the_artifact_reaches_the_model(tmp_path: Path) -> None:
    key = "AKIA" + "Q" * 16
    model = Model(lambda count: json.dumps({"pass": True, "reasons": [f"it holds {key}"]}))
    run, _ = begin(tmp_path, model, target="no", given=f"hello {key}", start="look")
    run.advance("full_auto")
    assert run.state.status == "succeeded"
    assert all(key not in item["text"] for item in model.asked[-1].items)
    assert key not in json.dumps(measured(run)[-1].body)
    run.close()


@pytest.mark.parametrize(
    ("artifact", "code"), [("gone.txt", "unreadable"), ("folder", "unreadable"), ("big.txt", "too_large")]
)
def test_what_cannot_be_read_is_asked_nobody(tmp_path: Path, artifact: str, code: str) -> None:
    from spak.ports import MeasureCall

    (tmp_path / "folder").mkdir()
    (tmp_path / "big.txt").write_bytes(b"x" * (256 * 1024 + 1))
    call = MeasureCall("c", "Judge", {"artifact": artifact, "rubric": "x"}, tmp_path, None)
    found = Judge().measure(call)
    assert (found.status, found.checks[0]["ok"], found.checks[0]["code"]) == ("checked", False, code)
