"""Engines and models that are out to cheat: absurd usage, prices at the edge, references that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Look
from law_kit import under
from spak import canon
from spak.cancel import Cancel
from spak.costs.prices import Price, Prices
from spak.kernel.packet import Form, Misfit, parse
from spak.kernel.replay import replay
from spak.lang.catalog import Catalog, NamedEntry
from spak.ledger.files import FileLedgers
from spak.llm.retry import tokens
from spak.ports import Answer, Call, Prompt, Tool, ToolResult
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret
from spak.tools.recall import Recall
from spak.workspace import Workspace

KEY = "canary-5f1d0c77e0b94a"
SPEC = """
AGENT Planner LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { steps: 40 MONEY } }
  START -> work
  TASK work { GOAL "Look." TOOLS [look, recall] RETRIES 9 NEXT { success -> work fail -> work } }
}
"""
MOST = (1 << 40) - 1
ZERO = Price(0, 0, 0, 0)
DEAR = Price(10**12, 10**12, 10**12, 10**12)


def call(tool: str, **args: Any) -> str:
    return json.dumps({"control_packet": {"tool_calls": [{"tool": tool, "args": args}]}})


@dataclass
class Priced:
    """Answers in order, the last one again and again; the usage and the price are the test's."""

    script: list[str]
    usage: Mapping[str, int]
    price: Price = ZERO
    asked: int = 0
    entry: NamedEntry = field(default_factory=lambda: NamedEntry("priced", "a script"))

    def check(self) -> None: ...

    def bound(self, prompt: Prompt, input_tokens: int) -> int | None:
        return Prices({"m": self.price}).bound("m", input_tokens, 100)

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        said = self.script[min(self.asked, len(self.script) - 1)]
        self.asked += 1
        cost = Prices({"m": self.price}).cost("m", self.usage)
        return Answer(said.replace("COUNT", str(self.asked)), self.usage, "m", cost_nanousd=cost)


class Leaks(Look):
    """Says the key, at length, and leaves it in a file."""

    entry = Look.entry

    def run(self, call: Call) -> ToolResult:
        (call.workspace / "left.txt").write_text(KEY, encoding="utf-8")
        text = f"{KEY} " + "word " * 5_000 + KEY
        return ToolResult("exited", 0, text.encode(), len(text), key={"text": KEY})


def ended(folder: Path, backend: Priced, money: int = 0, look: Tool | None = None) -> tuple[Run, list[Any]]:
    """A run of the backend's answers to its end, and its records; it replays."""
    tools: dict[str, Tool] = {"look": look or Look(), "recall": Recall()}
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    spec = SPEC.replace("MONEY", f"cost: {money}" if money else "")
    permits = PERMITS + "permitted(Action) :- tool(Action, /recall).\n"
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(permits))
    host = Host(tools=tools, backend=backend, redactor=Redactor([Secret(KEY)]))
    run = Run.create(FileLedgers(folder), "run-1", body, host, place)
    assert run.advance("full_auto") == "ended"
    records = [record for record, _ in run.ledger.read()]
    found = replay(iter(records))
    assert found.difference is None and found.state == run.state
    run.close()
    return run, records


@pytest.mark.parametrize(
    ("usage", "price", "money", "asked", "code"),
    [
        ({}, ZERO, 1, 20, "budget.steps"),  # what is free is never too dear, and needs no usage
        ({"input": MOST, "output": MOST}, ZERO, 1, 20, "budget.steps"),
        ({"input": MOST, "output": MOST}, DEAR, 10**12, 1, "budget.cost"),
        ({"input": 0, "output": 0}, DEAR, 2**53 - 1, 20, "budget.steps"),
        ({}, DEAR, 10**8, 0, "budget.cost"),  # one call may cost more than all there is
    ],
)
def test_money_at_the_edge(
    tmp_path: Path, usage: dict[str, int], price: Price, money: int, asked: int, code: str
) -> None:
    backend = Priced([call("look", text="COUNT")], usage, price)
    run, _ = ended(tmp_path, backend, money)
    assert (run.state.r7.codes, backend.asked) == ((code,), asked)
    assert canon.dumps({"cost": run.state.r7.cost})


def test_usage_beyond_reason_is_no_usage_and_no_cost_is_too_long_for_a_record() -> None:
    assert tokens(input=1 << 40, output=MOST, cached=-1, cache_write=True) == {"output": MOST}
    table = Prices({"m": DEAR})
    cost, bound = table.cost("m", {"input": MOST, "output": MOST}), table.bound("m", MOST, 10_000_000)
    assert cost == bound == 10**15 and canon.dumps([cost, bound])


REAL = "ref://1 look 9B: of_another_run"
MIMICS = (
    {"$blob": "0" * 64},
    {"$text": ["a", {"$blob": "0" * 64}]},
    {"text": {"deep": [{"$blob": "0" * 64}]}},
    {"\uff04blob": "0" * 64},
)


@pytest.mark.parametrize("args", MIMICS, ids=str)
def test_a_reference_that_only_the_runner_makes_is_no_argument(args: dict[str, Any]) -> None:
    found = parse(call("look", **args), Form({"look": {"type": "object"}}), calls=False)
    assert isinstance(found, Misfit) and found.code == "answer.name"


def test_a_reference_in_a_text_is_text_and_recall_reads_this_run_alone(tmp_path: Path) -> None:
    script = [
        call("look", text=REAL),
        call("look", text=json.dumps({"$blob": "0" * 64})),
        call("recall", ref=2),
        call("recall", ref=999),
        call("recall", search="of_another_run"),
        "no",
    ]
    _, records = ended(tmp_path, Priced(script, {"input": 1, "output": 1}))
    acts = [record.body for record in records if record.kind == Kind.ACT and "exit" in record.body]
    assert acts[0]["out"] == REAL and acts[1]["out"] == json.dumps({"$blob": "0" * 64})
    assert acts[2]["out"] == REAL, "ref://2 is what the second permit gave: the text that mimics another"
    assert acts[3]["exit"] != 0 and "ref://999" in acts[3]["out"]
    assert {line.partition(" at ")[0] for line in acts[4]["out"].splitlines()} == {"ref://2", "ref://6"}


def test_where_a_key_that_a_tool_says_may_be(tmp_path: Path) -> None:
    """Nothing that is recorded holds it; what stays is the tool's own file."""
    ended(tmp_path, Priced([call("look", text="x"), "no"], {"input": 1, "output": 1}), look=Leaks())
    holding = [p for p in tmp_path.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert [path.name for path in holding] == ["left.txt"]
    assert list((tmp_path / "run-1/blobs").rglob("*")), "the output was long enough for a blob"
