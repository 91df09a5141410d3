"""Three invalid answers in a row on one tool end the run; nothing on disk is different."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Look, Write
from law_kit import under
from spak.cancel import Cancel
from spak.kernel.replay import replay
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry
from spak.ledger.files import FileLedgers
from spak.ports import Answer, Prompt, Tool
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.workspace import Workspace

SPEC = """
AGENT Planner LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { LIMITS } }
  START -> work
  TASK work { GOAL "Write." TOOLS [write, look] RETRIES COUNT NEXT { success -> work } }
}
"""
LAW = 'forbidden(Action) :- argument(Action, "path", "law.txt").\n'
ONE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


class Typed(Write):
    entry = ToolEntry("write", 1, "writes", ONE, "effect", sandboxed=False)


def call(tool: str, **args: Any) -> str:
    return json.dumps({"control_packet": {"tool_calls": [{"tool": tool, "args": args}]}})


INVALID = {
    "unreadable": ("I would write it.", "answer.not_json"),
    "misshapen": ('{"control_packet": {"tool_calls": []}}', "schema.min_items"),
    "outside": (call("launch", path="a"), "policy.not_in_tools"),
    "misfit": (call("write", text="no path"), "schema.required"),
    "reference": (call("look", text={"$blob": "0" * 64}), "answer.name"),
    "denied": (call("write", path="law.txt", text="x"), "policy.forbidden"),
}
GOOD = call("look", text="a")


@dataclass
class Says:
    said: Iterator[str]
    asked: list[Prompt] = field(default_factory=list)
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("says", "a script"))

    def check(self) -> None: ...

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        self.asked.append(prompt)
        return Answer(next(self.said), {"input": 10, "output": 5}, "script")


def finished(folder: Path, said: list[str], tries: int = 9, limits: str = "steps: 90") -> tuple[Run, Says]:
    """A run with these answers, ended; it replays, and its files are as they were."""
    tools: dict[str, Tool] = {"look": Look(), "write": Typed()}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    place.directory.mkdir(parents=True, exist_ok=True)
    (place.directory / "kept.txt").write_text("as it was", encoding="utf-8")
    spec = SPEC.replace("LIMITS", limits).replace("COUNT", str(tries))
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(PERMITS + LAW))
    backend = Says(iter(said))
    run = Run.create(FileLedgers(folder), "run-1", body, Host(tools=tools, backend=backend), place)
    assert run.advance("full_auto") == "ended"
    found = replay(record for record, _ in run.ledger.read())
    assert found.difference is None and found.state == run.state
    assert [path.name for path in place.directory.iterdir()] == ["kept.txt"]
    run.close()
    return run, backend


def codes(run: Run) -> list[str]:
    """Why each answer was not taken."""
    routes = (record.body for record, _ in run.ledger.read() if record.kind == Kind.ROUTE)
    return [body["code"] for body in routes if body["signal"] == "fail"]


@pytest.mark.parametrize("kind", INVALID)
def test_three_in_a_row_on_one_tool_end_the_run(tmp_path: Path, kind: str) -> None:
    said, code = INVALID[kind]
    run, backend = finished(tmp_path, [said] * 3)
    assert (run.state.status, run.state.r7.codes) == ("failed", ("run.rollbacks",))
    assert len(backend.asked) == 3 and codes(run) == [code] * 3
    assert run.state.r4 is not None and run.state.r4["code"] == code
    for prompt in backend.asked[1:]:
        (told,) = [item["text"] for item in prompt.items if item["name"] == "error"]
        assert code in told, "the reason goes back with the next question"


@pytest.mark.parametrize("kinds", [*permutations(INVALID, 3)][::13], ids="-".join)
def test_three_reasons_on_three_tools_are_no_three_in_a_row(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    names = {"unreadable": "", "misshapen": "", "outside": "launch", "misfit": "write", "denied": "write"}
    alike = len({names.get(kind, kind) for kind in kinds}) == 1
    run, _ = finished(tmp_path, [INVALID[kind][0] for kind in kinds] * 2, tries=4)
    assert run.state.r7.codes == (("run.rollbacks",) if alike else ("budget.retries",))
    assert codes(run)[:3] == [INVALID[kind][1] for kind in kinds]


def test_a_good_answer_in_between_begins_a_new_count(tmp_path: Path) -> None:
    bad, _ = INVALID["misfit"]
    run, backend = finished(tmp_path, [bad, bad, GOOD, bad, bad, GOOD, bad, bad, bad])
    assert run.state.r7.codes == ("run.rollbacks",) and len(backend.asked) == 9


@pytest.mark.parametrize(
    ("tries", "limits", "asked", "state", "code"),
    [
        (1, "steps: 90", 2, "refused", "budget.retries"),
        (0, "steps: 90", 1, "refused", "budget.retries"),
        (9, "rollbacks: 5", 5, "failed", "run.rollbacks"),
        (9, "rollbacks: 1", 1, "failed", "run.rollbacks"),
        (9, "steps: 2", 2, "refused", "budget.steps"),
    ],
)
def test_the_spec_says_how_often_it_is_asked_again(
    tmp_path: Path, tries: int, limits: str, asked: int, state: str, code: str
) -> None:
    run, backend = finished(tmp_path, [INVALID["denied"][0]] * 6, tries, limits)
    assert (run.state.status, run.state.r7.codes) == (state, (code,))
    assert len(backend.asked) == asked
    assert bool(run.state.r7.knob) == (code != "run.rollbacks"), "no limit that is raised mends an answer"
