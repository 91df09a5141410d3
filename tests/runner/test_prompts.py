"""Prompts and answers of a run: what a backend gets, what a bad answer does, windows, recall, repetition."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, TUNING, Look, Write, start
from law_kit import under
from spak.cancel import Cancel
from spak.errors import RunError
from spak.kernel import memory
from spak.kernel.replay import Replay, replay
from spak.lang import parse
from spak.lang.catalog import Catalog, NamedEntry
from spak.lang.schema import violations
from spak.ledger.files import FileLedgers
from spak.llm.recorded import Recorded, read
from spak.ports import Answer, Prompt, ToolResult
from spak.program import compile as compile_program
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.blobs import prompt_of
from spak.runner.genesis import genesis
from spak.tools.recall import Recall
from spak.workspace import Workspace

SPEC = """
AGENT Planner LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { steps: 400 TOKENS } MEMORY POLICY_NAME }
  SYSTEM_MODEL M { AXIOM "Look before you write." }
  START -> look
  TASK look { GOAL "Find the id." TOOLS [look, recall] RETRIES 20 NEXT { success -> write fail -> look } }
  TASK write { GOAL "Write it down." TOOLS [look, write] RETRIES 20 NEXT { success -> look fail -> write } }
}
"""


@dataclass
class Scripted:
    """A backend that answers by a function of the prompt and a counter, and keeps what it was asked."""

    script: Callable[[Prompt, int], str]
    size: int = 0
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("scripted", "a script"))
    asked: list[Prompt] = field(default_factory=list)

    def check(self) -> None: ...

    def window(self, prompt: Prompt) -> int:
        return self.size

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        self.asked.append(prompt)
        return Answer(self.script(prompt, len(self.asked)), {"input": 10, "output": 5}, "script")


def begin(
    folder: Path,
    backend: Any,
    policy: str = "FLUSH_ON_TRANSITION",
    tokens: int = 0,
    loop: bool = False,
    declared: str = "",
    look: Look | None = None,
) -> Run:
    spec = SPEC.replace("POLICY_NAME", policy).replace("TOKENS", f"tokens: {tokens}" if tokens else "")
    spec = spec.replace("success -> write", "success -> look") if loop else spec
    tools = {"look": look or Look(), "write": Write(), "recall": Recall()}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    assert compile_program(parse(spec), catalog, {}).tasks
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    permits = PERMITS + "permitted(Action) :- tool(Action, /recall).\n"
    about = {"run": "run-1"}
    body = genesis(spec, catalog, {}, place.snapshot(), 5, about, policy=declared, law=under(permits))
    return Run.create(FileLedgers(folder), "run-1", body, Host(tools=tools, backend=backend), place)


def call(tool: str, **args: Any) -> str:
    return json.dumps({"control_packet": {"tool_calls": [{"tool": tool, "args": args}]}})


def turns(prompt: Prompt, count: int) -> str:
    """Long looks that never repeat, then a write, and so on; a wrong tool would be refused."""
    if prompt.task == "look":
        return call("look", text=f"id_{count:05} " + f"word{count} " * 150)
    return call("write", path=f"f{count}.txt", text=f"id_{count:05}")


def records(run: Run, kind: Kind) -> list[Mapping[str, Any]]:
    return [record.body for record, _ in run.ledger.read() if record.kind == kind]


def whole(run: Run) -> None:
    """The ledger replays to the same commits and the same state."""
    found = replay(record for record, _ in run.ledger.read())
    assert found.difference is None
    assert found.state == run.state


def test_a_backend_gets_the_schema_of_the_tasks_tools(tmp_path: Path) -> None:
    backend = Scripted(turns)
    run = begin(tmp_path, backend)
    run.advance("semi_auto", 2)
    first, second = backend.asked
    assert (first.kind, first.task, second.task) == ("plan", "look", "write")
    assert first.schema is not None and second.schema is not None
    for schema, fits, other in ((first.schema, "look", "write"), (second.schema, "write", "recall")):
        assert violations(schema, json.loads(call(fits))) == []
        assert violations(schema, json.loads(call(other)))
    assert [item["name"] for item in first.items] == ["axioms", "goal", "tools", "format"]
    whole(run)
    run.close()


def test_within_a_task_a_prompt_begins_with_the_one_before(tmp_path: Path) -> None:
    backend = Scripted(lambda prompt, count: call("look", text=f"id_{count:05}") if count != 5 else "no")
    run = begin(tmp_path, backend, loop=True)
    run.advance("semi_auto", 12)
    assert len(backend.asked) == 12
    for before, prompt in pairwise(backend.asked):
        assert prompt.items[: before.prefix] == before.items[: before.prefix]
        changing = {item["name"] for item in prompt.items[prompt.prefix :]}
        assert changing <= {"error", "state"}
    assert [item["name"] for item in backend.asked[5].items[backend.asked[5].prefix :]] == ["error", "state"]
    whole(run)
    run.close()


@pytest.mark.parametrize("policy", ["FIFO", "SUMMARIZE", "FLUSH_ON_TRANSITION", "PRUNE_ON_CONFIRM"])
def test_prompts_are_bounded_however_long_the_run(tmp_path: Path, policy: str) -> None:
    backend = Scripted(turns)
    run = begin(tmp_path, backend, policy)
    run.advance("full_auto")
    sizes = [sum(len(item["text"]) for item in prompt.items) for prompt in backend.asked]
    assert len(sizes) > 100
    assert max(sizes) <= memory.LIMIT + memory.NAMED + memory.GIST + 2_000  # and the fixed part
    last = "\n".join(item["text"] for item in backend.asked[-1].items)
    assert ("older texts" if policy == "FIFO" else "ref://") in last
    whole(run)
    run.close()


@dataclass
class Fragile(Look):
    """Looks, but runs out of time where the text says so."""

    def run(self, call: Any) -> Any:
        done = super().run(call)
        return ToolResult("timeout") if call.args["text"] == "late" else done


def test_pruning_waits_for_an_answer_that_was_carried_out(tmp_path: Path) -> None:
    """A misfit and a tool that is rolled back confirm nothing: what both answer to is shown again."""
    answers = {4: "no", 6: call("look", text="late")}
    backend = Scripted(lambda prompt, count: answers.get(count, call("look", text=f"see id_{count:05}")))
    run = begin(tmp_path, backend, "PRUNE_ON_CONFIRM", loop=True, look=Fragile())
    run.advance("semi_auto", 8)
    shown = [
        [item["text"] for item in prompt.items if item["name"][:4] == "ref."] for prompt in backend.asked
    ]
    full = [[text for text in texts if text.startswith("see")] for texts in shown]
    named = [prompt.items[4 : prompt.prefix] for prompt in backend.asked]
    see = [f"see id_{count:05}" for count in range(9)]
    assert full == [[], [see[1]], [see[2]], [see[3]], [see[3]], [see[5]], [see[5]], [see[7]]]
    assert [len(items) for items in named] == [0, 0, 1, 2, 2, 3, 3, 4]
    for before, prompt in pairwise(backend.asked):
        assert prompt.items[: before.prefix] == before.items[: before.prefix]
    whole(run)
    run.close()


def test_a_flushed_text_is_read_back(tmp_path: Path) -> None:
    def script(prompt: Prompt, count: int) -> str:
        if count <= 8:
            return turns(prompt, count)
        return call("recall", search="id_00001") if prompt.task == "look" else turns(prompt, count)

    backend = Scripted(script)
    run = begin(tmp_path, backend)
    for _ in range(60):
        run.advance("semi_auto", 1)
        outs = [str(body.get("out", "")) for body in records(run, Kind.ACT)]
        if any(out.startswith("ref://") for out in outs):
            break
    found = next(out for out in outs if out.startswith("ref://"))
    assert "id_00001 word1 word1" in found
    run.close()


def test_a_misfit_goes_back_with_its_reason_and_three_end_the_run(tmp_path: Path) -> None:
    backend = Scripted(lambda prompt, count: "let me think")
    run = begin(tmp_path, backend)
    assert run.advance("full_auto") == "ended"
    assert run.state.status == "failed" and run.state.r7.codes == ("run.rollbacks",)
    assert len(backend.asked) == 3
    tried = records(run, Kind.ACT)
    assert [body["out"] for body in tried] == ["let me think"] * 3
    assert {body["code"] for body in tried} == {"answer.not_json"}
    assert (
        '"code":"answer.not_json"' in backend.asked[1].items[-2]["text"] + backend.asked[1].items[-1]["text"]
    )
    assert not list((tmp_path / "run-1/workspace").iterdir())
    whole(run)
    run.close()


@pytest.mark.parametrize(("declared", "code"), [("Decl done(X).\n", "answer.verb"), ("", "")])
def test_atoms_use_the_predicates_that_the_policy_declares(tmp_path: Path, declared: str, code: str) -> None:
    packet = json.loads(call("look", text="x"))
    packet["control_packet"]["mangle_updates"] = ["permitted(/look)"]
    run = begin(tmp_path, Scripted(lambda prompt, count: json.dumps(packet)), declared=declared)
    run.advance("semi_auto", 1)
    assert (run.state.r4 or {}).get("code", "") == code
    run.close()


def test_an_answer_that_was_cut_says_so(tmp_path: Path) -> None:
    class Cut(Scripted):
        def answer(self, *given: Any) -> Answer:
            return replace(super().answer(*given), finish="length")

    run = begin(tmp_path, Cut(lambda prompt, count: call("look", text="x")[:-3]))
    run.advance("semi_auto", 1)
    assert run.state.r4 is not None and run.state.r4["code"] == "answer.cut"
    run.close()


def test_a_repaired_answer_goes_on_and_nobody_else_sees_the_error(tmp_path: Path) -> None:
    backend = Scripted(lambda prompt, count: "oops" if count == 1 else turns(prompt, count))
    run = begin(tmp_path, backend)
    run.advance("semi_auto", 3)
    assert run.state.status == "running"
    assert any(item["name"] == "error" for item in backend.asked[1].items)
    assert not any(item["name"] == "error" for item in backend.asked[2].items)
    run.close()


def test_what_a_plan_says_beside_its_calls_is_recorded_and_decides_nothing(tmp_path: Path) -> None:
    said = json.loads(call("look", text="x"))
    said["surface_response"] = "I look."
    said["control_packet"] |= {
        "reasoning_trace": "hm",
        "mangle_updates": ["permitted(/everything)"],
        "memory_operations": [{"operation": "forget", "fact": "axiom(/one)"}],
    }
    plain, talking = (
        begin(tmp_path / name, Scripted(lambda prompt, count, text=text: text))  # type: ignore[misc]
        for name, text in (("a", call("look", text="x")), ("b", json.dumps(said)))
    )
    for run in (plain, talking):
        run.advance("semi_auto", 1)
    (plan,) = records(talking, Kind.PLAN)
    assert plan["surface"] == "I look." and plan["atoms"] == ["permitted(/everything)"]
    assert plan["reasoning"] == "hm" and plan["memory"][0]["operation"] == "forget"
    assert plain.state.summary == talking.state.summary
    plain.close()
    talking.close()


def test_a_prompt_over_the_window_is_compacted_and_never_cut(tmp_path: Path) -> None:
    backend = Scripted(turns, size=1_600)
    run = begin(tmp_path, backend, "SUMMARIZE")
    run.advance("semi_auto", 40)
    decided = records(run, Kind.CONTEXT)
    assert decided and {body["act"] for body in decided} == {"compact"}
    seen = [body for body in records(run, Kind.OBSERVE) if "tokens" in body]
    assert all(body["tokens"] > 1_280 and body["window"] == 1_600 for body in seen)
    assert all(body["tokenizer"].startswith("cl100k") for body in seen)
    from spak import tokens

    assert all(tokens.count(prompt.items) <= 1_280 for prompt in backend.asked)
    whole(run)
    run.close()


def test_a_prompt_that_nothing_makes_smaller_is_refused(tmp_path: Path) -> None:
    backend = Scripted(turns, size=150)
    run = begin(tmp_path, backend)
    assert run.advance("full_auto") == "ended"
    assert run.state.status == "refused" and run.state.r7.codes == ("budget.window",)
    assert "window" in run.state.r7.knob
    assert backend.asked == []
    assert records(run, Kind.CONTEXT)[-1]["act"] == "refuse"
    whole(run)
    run.close()


def test_a_budget_of_tokens_ends_the_run_before_it_is_passed(tmp_path: Path) -> None:
    backend = Scripted(turns)
    run = begin(tmp_path, backend, tokens=900)
    assert run.advance("full_auto") == "ended"
    assert run.state.r7.codes == ("budget.tokens",)
    assert run.state.r2 <= 900 and backend.asked
    acts = [body["act"] for body in records(run, Kind.CONTEXT)]
    assert acts[0] == "send" and acts[-1] == "refuse"
    whole(run)
    run.close()


def test_a_generator_has_no_prompt_to_count(tmp_path: Path) -> None:
    run = start(tmp_path, TUNING.replace("steps: 500", "steps: 500 tokens: 9"))
    run.advance("full_auto")
    assert run.state.status == "succeeded"
    assert not records(run, Kind.CONTEXT)
    assert all(record["facts"].keys() == {"texts"} for record in records(run, Kind.OBSERVE)), "no prompt"
    run.close()


def test_who_answers_leaves_no_trace_where_tokens_are_counted(tmp_path: Path) -> None:
    one = begin(tmp_path / "a", Scripted(turns), tokens=100_000)
    one.advance("semi_auto", 3)
    other = begin(tmp_path / "b", None, tokens=100_000)
    for count in range(1, 4):
        assert other.advance("stepwise") == "waiting"
        other.answer(turns(other.performer.prompt(other.pending()), count))
    other.advance("stepwise")
    contents = [
        [record.content for record, _ in run.ledger.read() if record.authority == "commit"]
        for run in (one, other)
    ]
    assert contents[0] == contents[1]
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("policy", "tokens"),
    [("FLUSH_ON_TRANSITION", 100_000), ("FLUSH_ON_TRANSITION", 900), ("FIFO", 1_500)],
    ids=["within the budget", "past the budget", "made smaller"],
)
def test_the_summary_does_not_tell_at_which_record_a_process_died(
    tmp_path: Path, policy: str, tokens: int
) -> None:
    """Cut after each record, answered by hand: the prompt is measured whoever takes the answer."""

    def walked(run: Run) -> list[str]:
        while not run.state.ended and (given := len(records(run, Kind.PLAN))) < 3:
            with suppress(RunError):  # the measurement ended the run: there is no question any more
                run.answer(turns(run.performer.prompt(run.pending()), given + 1))
            run.advance("stepwise")
        run.advance("stepwise")
        contents = [record.content for record, _ in run.ledger.read() if record.authority == "commit"]
        run.close()
        return contents

    undisturbed = begin(tmp_path / "whole", None, policy, tokens)
    undisturbed.advance("stepwise")
    expected = walked(undisturbed)
    lines = (tmp_path / "whole/run-1/trace.jsonl").read_bytes().splitlines(keepends=True)
    host = undisturbed.performer.host
    for kept in range(2, len(lines)):
        folder = tmp_path / f"cut-{kept}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / "run-1/trace.jsonl").write_bytes(b"".join(lines[:kept]))
        place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
        run = Run.open(FileLedgers(folder), "run-1", host, place)
        if run.pending().cls != "ask":
            run.advance("stepwise")
        assert walked(run) == expected, f"cut after {kept} records"


def test_a_prompt_is_made_again_exactly_as_it_was_sent(tmp_path: Path) -> None:
    backend = Scripted(turns, size=1_600)
    run = begin(tmp_path, backend, "SUMMARIZE")
    run.advance("semi_auto", 25)
    sent = {prompt.id: prompt for prompt in backend.asked}
    found = Replay()
    again = {}
    for record, _ in run.ledger.read():
        found.feed(record)
        effect = found.state.r6
        if effect is not None and effect.items and found.rules is not None:
            again[effect.id] = prompt_of(effect, run.ledger.blobs, found.rules)
    assert sent and sent.items() <= again.items()
    run.close()


def test_recorded_answers_repeat_the_run(tmp_path: Path) -> None:
    wrong = Scripted(lambda prompt, count: "oops" if count == 4 else turns(prompt, count))
    first = begin(tmp_path / "a", wrong)
    first.advance("semi_auto", 12)
    lines = [line for _, line in first.ledger.read()]
    second = begin(tmp_path / "b", Recorded(recordings=read(lines, first.ledger.blobs.get)))
    second.advance("semi_auto", 12)
    assert second.state.summary == first.state.summary
    first.close()
    second.close()


def test_how_an_answer_came_about_stands_beside_it(tmp_path: Path) -> None:
    class Known(Scripted):
        def answer(self, *given: Any) -> Answer:
            usage = {"input": 100, "output": 20, "cached": 90}
            return replace(
                super().answer(*given),
                usage=usage,
                params={"temperature": 0.5},
                finish="stop",
                latency_ms=12,
                cost_nanousd=0,
                logprobs=(-0.5,) * 5000,
                tries=2,
            )

    run = begin(tmp_path, Known(turns))
    run.advance("semi_auto", 1)
    (side,) = [record.side for record, _ in run.ledger.read() if record.kind == Kind.PLAN]
    logprobs = side["logprobs"]
    assert json.loads(run.ledger.blobs.get(logprobs["$blob"])) == [-0.5] * 5000
    assert (logprobs["tokens"], logprobs["micronats"]) == (5000, 2_500_000_000)
    assert {name: side[name] for name in side if name not in ("logprobs", "ms")} == {
        "by": "script",
        "tokens": 120,
        "usage": {"input": 100, "output": 20, "cached": 90},
        "params": {"temperature": 0.5},
        "finish": "stop",
        "latency_ms": 12,
        "tries": 2,
        "cost_nanousd": 0,
    }
    assert run.state.r2 == 120
    run.close()


def test_an_engine_that_told_no_usage_spends_by_our_own_count(tmp_path: Path) -> None:
    from spak import tokens

    class Silent(Scripted):
        def answer(self, *given: Any) -> Answer:
            return replace(super().answer(*given), complete_usage=False)

    backend = Silent(turns)
    run = begin(tmp_path, backend)
    prompt = run.performer.prompt(run.pending())
    run.advance("semi_auto", 1)
    assert run.state.r2 == tokens.count(prompt.items) + tokens.of_text(turns(prompt, 1)) > 100
    run.close()


def test_the_registers_show_the_memory_by_number(tmp_path: Path) -> None:
    from spak.kernel.state import registers

    run = begin(tmp_path, Scripted(turns))
    run.advance("semi_auto", 20)
    held = registers(run.state)["R7"]["memory"]
    assert held["fresh"] and held["references"] and held["folded"] == 0
    assert len(json.dumps(registers(run.state))) < 4_000
    run.close()


def test_a_program_without_model_plans_remembers_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, 'task t { step a: tool.look { text: "x" } step b: tool.look { text: "y" } }')
    run.advance("full_auto")
    assert run.state.r7.memory.fresh == ()
    run.close()
