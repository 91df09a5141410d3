"""The same recorded answers under each MEMORY policy: what the prompts hold, and what they only name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from host_kit import PERMITS, Write
from law_kit import under
from spak import tokens
from spak.kernel.replay import replay
from spak.lang.catalog import Catalog, ToolEntry
from spak.ledger.files import FileLedgers
from spak.llm.recorded import Recorded, read
from spak.ports import Answer, Call, Prompt, ToolResult
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.workspace import Workspace

ANSWERS = Path(__file__).parent / "recorded/pages.jsonl"
"""Reads pages 1 to 4, then writes."""

SPEC = """
AGENT Reader LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { steps: 100 } MEMORY POLICY_NAME }
  START -> read
  TASK read {
    GOAL "Read the pages."
    TOOLS [page]
    step one: llm.plan {}
    step two: llm.plan {}
    step three: llm.plan {}
    step four: llm.plan {}
    NEXT { success -> tell }
  }
  TASK tell { GOAL "Write down what they say." TOOLS [write] }
}
"""
POLICIES = ("FIFO", "SUMMARIZE", "FLUSH_ON_TRANSITION", "PRUNE_ON_CONFIRM")
PAGE = 14_500


@dataclass
class Page:
    """A pure tool: a page of so many bytes, every one with another text."""

    entry: ClassVar = ToolEntry(
        "page", 1, "a page", {"type": "object"}, "pure", writes=False, sandboxed=False
    )
    size: int = PAGE

    def run(self, call: Call) -> ToolResult:
        text = page(call.args["number"], self.size)
        return ToolResult("exited", 0, text.encode(), len(text), key={"number": call.args["number"]})


def page(number: int, size: int = PAGE) -> str:
    lines = [f"title of page_{number}", *[f"page {number} line {n} says nothing" for n in range(size // 20)]]
    return "\n".join(lines)[: size - 12] + f"\nlast_{number:06}"


@dataclass
class Asked:
    """The recorded answers, and the prompts that they were given to."""

    size: int = 0
    prompts: list[Prompt] = field(default_factory=list)
    recorded: Recorded = field(
        default_factory=lambda: Recorded(recordings=read(ANSWERS.read_bytes().splitlines()))
    )

    @property
    def entry(self) -> Any:
        return self.recorded.entry

    def check(self) -> None: ...

    def window(self, prompt: Prompt) -> int:
        return self.size

    def answer(self, prompt: Prompt, *given: Any) -> Answer:
        self.prompts.append(prompt)
        return self.recorded.answer(prompt, *given)


def prompts(folder: Path, policy: str, page_size: int = PAGE, window: int = 0) -> tuple[list[str], list[Any]]:
    """The memory in each prompt of the recorded run, as sent, and its decisions on counted prompts."""
    tools = {"page": Page(page_size), "write": Write()}
    spec, catalog = SPEC.replace("POLICY_NAME", policy), Catalog({name: t.entry for name, t in tools.items()})
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    permits = PERMITS + "permitted(Action) :- tool(Action, /page).\n"
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(permits))
    backend = Asked(window)
    host = Host(tools=tools, backend=backend)
    run = Run.create(FileLedgers(folder), "run-1", body, host, place)
    run.advance("full_auto")
    assert run.state.status == "succeeded"
    assert (folder / "run-1/workspace/told.txt").read_text() == "total_4711"
    records = [record for record, _ in run.ledger.read()]
    again = replay(records)
    assert again.difference is None and again.state == run.state
    run.close()
    if window:
        assert all(tokens.count(prompt.items) <= window * 4 // 5 for prompt in backend.prompts)
    decided = [record.body["act"] for record in records if record.kind == Kind.CONTEXT]
    return [_memory(prompt.items) for prompt in backend.prompts], decided


def _memory(items: tuple[Mapping[str, Any], ...]) -> str:
    """The results and references of a prompt, one after another."""
    return "\n".join(
        item["text"]
        for item in items
        if item["role"] == "user" and item["name"].startswith(("ref.", "memory."))
    )


FOLDED = "2 older texts, up to ref://4: recall lists, searches and reads them"
"""A page is read by every second permit: page N is ref://2N."""
GISTS = f"ref://2 page {PAGE}B: page_1 last_000001\nref://4 page {PAGE}B: page_2 last_000002"


def summary(number: int) -> str:
    first, second, *middle, before, last = page(number).splitlines()
    shown = (first, second, f"... {len(middle)} lines ...", before, last)
    return f"ref://{2 * number} page {PAGE}B: \n" + "\n".join(f"  {line}" for line in shown)


SUMMARIES = f"{summary(1)}\n{summary(2)}"


@pytest.mark.parametrize(
    ("policy", "fourth", "fifth"),
    [
        ("FIFO", (FOLDED, page(3)), (FOLDED, page(3), page(4))),
        ("SUMMARIZE", (SUMMARIES, page(3)), (SUMMARIES, page(3), page(4))),
        (
            "FLUSH_ON_TRANSITION",
            (GISTS, page(3)),
            (GISTS, f"ref://6 page {PAGE}B: page_3 last_000003", page(4)),
        ),
    ],
)
def test_the_same_answers_make_other_prompts_under_each_policy(
    tmp_path: Path, policy: str, fourth: tuple[str, ...], fifth: tuple[str, ...]
) -> None:
    """Two pages fit the memory, three do not; the fifth prompt is another task's."""
    found, decided = prompts(tmp_path, policy)
    assert found == ["", page(1), f"{page(1)}\n{page(2)}", "\n".join(fourth), "\n".join(fifth)]
    assert decided == []


def test_confirmed_pages_are_references_in_the_prompt_after_the_one_that_showed_them(tmp_path: Path) -> None:
    found, decided = prompts(tmp_path, "PRUNE_ON_CONFIRM")
    names = [f"ref://{2 * n} page {PAGE}B: page_{n} last_{n:06}" for n in range(1, 5)]
    assert found == ["", page(1), *["\n".join([*names[: n - 1], page(n)]) for n in range(2, 5)]]
    assert decided == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_text_longer_than_a_record_is_shown_in_the_next_prompt(tmp_path: Path, policy: str) -> None:
    found, _ = prompts(tmp_path, policy, page_size=40_000)
    for number, text in enumerate(found[1:], 1):
        assert text.endswith(page(number, 40_000))
        assert page(number - 1, 40_000) not in text


@pytest.mark.parametrize("policy", POLICIES)
def test_a_text_that_no_prompt_has_room_for_is_a_reference(tmp_path: Path, policy: str) -> None:
    found, _ = prompts(tmp_path, policy, page_size=100_000)
    assert found[1] == "ref://2 page 100000B: page_1"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_window_for_one_page_shows_the_one_just_read(tmp_path: Path, policy: str) -> None:
    found, decided = prompts(tmp_path, policy, window=8_000)
    assert [[n for n in range(1, 5) if page(n) in text] for text in found] == [[], [1], [2], [3], [4]]
    assert set(decided) == (set() if policy == "PRUNE_ON_CONFIRM" else {"compact"}) and len(decided) <= 3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_window_for_no_page_shows_references(tmp_path: Path, policy: str) -> None:
    found, decided = prompts(tmp_path, policy, window=2_000)
    assert not any(page(n) in text for n in range(1, 5) for text in found)
    assert set(decided) == {"compact"} and len(decided) <= 8
    assert ("older texts" if policy == "FIFO" else "ref://2 page") in found[1]
