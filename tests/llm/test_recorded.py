"""Recorded answers: to their own prompt, in their order, or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from spak.errors import SpakError, UsageError
from spak.kernel.packet import Form, Misfit, parse
from spak.llm.recorded import Recorded, Recording, prompt_hash, read
from spak.llm.settings import Choice
from spak.ports import Answer, Prompt

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "kernel-1" / "build_feature.jsonl"


def prompt(text: str, id: str = "p") -> Prompt:
    return Prompt(id, ({"role": "user", "name": "prompt", "text": text},))


def line(text: str, **others: Any) -> bytes:
    return json.dumps({"text": text, **others}).encode()


@dataclass
class Asked:
    """A run that asks a recording: each prompt says what the run was given before."""

    backend: Recorded
    given: list[Mapping[str, Any]] = field(default_factory=list)

    def answer(self, asked: Prompt, *others: Any, **named: Any) -> Answer:
        found = self.backend.answer(replace(asked, given=tuple(self.given)), *others, **named)
        self.given.append(found.recorded)
        return found


def recorded(*recordings: Recording, strict: bool = True, name: str = "") -> Asked:
    return Asked(Recorded(Choice(mode="recorded", strict=strict), recordings, name))


ONE = Recording("one", of=prompt_hash(prompt("first")), model="m", usage={"input": 3})
TWO = Recording("two", of="effect-2")


def test_an_answer_goes_to_its_own_prompt_by_hash_or_by_effect() -> None:
    made = recorded(ONE, TWO)
    pieces: list[str] = []
    second = made.answer(prompt("anything", "effect-2"), pieces.append)
    first = made.answer(prompt("first"))
    assert (second.text, first.text, pieces) == ("two", "one", ["two"])
    assert (first.model, first.usage) == ("m", {"input": 3})
    with pytest.raises(SpakError) as caught:
        made.answer(prompt("first"))
    assert caught.value.code == "llm.exhausted"


def test_another_prompt_is_an_error_or_is_said() -> None:
    with pytest.raises(SpakError) as caught:
        recorded(ONE, TWO).answer(prompt("another"))
    assert caught.value.code == "llm.another_prompt" and caught.value.exit_code == 1
    answer = recorded(ONE, TWO, strict=False).answer(prompt("another"))
    assert (answer.text, answer.model) == ("one", "m (recorded, another prompt)")


def test_answers_without_a_prompt_go_in_order() -> None:
    made = recorded(Recording("a"), Recording("b"))
    assert [made.answer(prompt("x")).text, made.answer(prompt("x")).text] == ["a", "b"]


def test_a_run_that_is_taken_up_again_gets_the_next_answer() -> None:
    lines = Recording("a"), Recording("b"), Recording("c")
    first = recorded(*lines, name="x.jsonl")
    assert [first.answer(prompt("x")).text for _ in range(2)] == ["a", "b"]
    again = Asked(recorded(*lines, name="x.jsonl").backend, list(first.given))
    assert again.answer(prompt("x")).text == "c"
    longer = Asked(recorded(*lines, Recording("d"), name="x.jsonl").backend, list(again.given))
    assert longer.answer(prompt("x")).text == "d"
    another = Asked(recorded(*lines, name="y.jsonl").backend, list(again.given))
    assert another.answer(prompt("x")).text == "a"


def test_an_answer_that_was_given_but_never_recorded_is_given_again() -> None:
    made = recorded(Recording("a"), Recording("b")).backend
    assert [made.answer(prompt("x")).text for _ in range(2)] == ["a", "a"]


@pytest.mark.parametrize("lines", [(), (Recording("A"), Recording("b")), (Recording("a", of="e"),)])
def test_a_recording_that_changed_meanwhile_is_refused(lines: tuple[Recording, ...]) -> None:
    first = recorded(Recording("a"), Recording("b"), name="x")
    first.answer(prompt("x"))
    changed = Asked(recorded(*lines, name="x").backend, list(first.given))
    with pytest.raises(SpakError) as caught:
        changed.answer(prompt("x"))
    assert caught.value.code == "llm.another_recording" and "answer 1" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("place", "fits"),
    [
        ({}, True),
        ({"task": "Build", "step": "s1", "role": "coder"}, True),
        ({"task": "Test"}, False),
        ({"step": "s2"}, False),
        ({"role": "judge"}, False),
    ],
)
@pytest.mark.parametrize("of", ["", "another-effect"])
def test_an_answer_to_another_step_is_refused(place: dict[str, str], fits: bool, of: str) -> None:
    asked = replace(prompt("x"), task="Build", step="s1", role="coder")
    made = recorded(Recording("a", of=of, **place), strict=False)  # type: ignore[arg-type]
    if fits:
        assert made.answer(asked).text == "a"
        return
    with pytest.raises(SpakError) as caught:
        made.answer(asked)
    assert caught.value.code == "llm.another_question"
    assert (
        next(iter(place.values())) in caught.value.message and "step s1 of TASK Build" in caught.value.message
    )


def test_a_recording_is_written_and_read_back_whole() -> None:
    whole = Recording("a\n", "e", "m", {"input": 3}, "length", "Build", "s1", "coder")
    for item in (whole, Recording("b")):
        assert read([json.dumps(item.to_json()).encode()]) == [item]


def test_the_hash_is_of_what_is_asked_and_of_nothing_else() -> None:
    first = prompt("x")
    assert prompt_hash(first) == prompt_hash(Prompt("q", first.items, "coder", "plan", max_tokens=3))
    assert prompt_hash(first) != prompt_hash(prompt("y"))
    assert prompt_hash(first) != prompt_hash(Prompt("p", first.items, schema={"type": "object"}))


def test_an_exported_run_gives_its_answers() -> None:
    (found,) = read(GOLDEN.read_bytes().splitlines())
    assert found.of == "ThTni-ciMgmgl1W0rUe7yyXUkAcW7Wfp0qEVYxPARN4"
    assert found.text.startswith("--- a/slug.py") and found.model == "person"
    answer = recorded(found).answer(prompt("whatever the spec asks", found.of))
    assert answer.text == found.text


def test_plans_and_long_values_come_back_whole() -> None:
    text = "long " * 30_000
    head = {"authority": "proposal", "seq": 1, "side": {"model": "m", "usage": {"input": 5, "output": "x"}}}
    lines = [
        {
            **head,
            "kind": "act",
            "body": {"of": "e1", "outcome": "answered", "out": {"$blob": "B", "size": 9}},
        },
        {
            **head,
            "kind": "plan",
            "body": {"of": "e2", "by": "model", "candidates": [{"tool": "run", "args": {}}]},
        },
        {**head, "kind": "plan", "body": {"of": "e3", "by": "tuner", "candidates": []}},
        {**head, "authority": "commit", "kind": "permit", "body": {"act": "ask"}},
        {"blobs": 1, "count": 4, "footer": 1, "head": "h", "run": "r"},
    ]
    data = [json.dumps(item).encode() for item in lines]
    first, second = read(data, {"B": text.encode()}.__getitem__)
    assert (first.text, first.of, first.model, first.usage) == (text, "e1", "m", {"input": 5})
    assert json.loads(second.text) == {"control_packet": {"tool_calls": [{"tool": "run", "args": {}}]}}
    with pytest.raises(UsageError, match="lacks a long value"):
        read(data)


def test_a_plan_is_given_again_with_all_that_was_read_in_it() -> None:
    said: dict[str, Any] = {
        "control_packet": {
            "reasoning_trace": "line 12",
            "tool_calls": [{"tool": "look", "args": {"text": "x"}, "score": 3}],
            "mangle_updates": ["seen(/a)"],
            "memory_operations": [{"operation": "forget", "fact": "error(/net)"}],
            "self_correction": {"trigger": "fail", "hypothesis": "the wrong file"},
        },
        "surface_response": "I look.",
    }
    form = Form({"look": {"type": "object"}}, ("fail",))
    first = parse(json.dumps(said), form)
    assert not isinstance(first, Misfit)
    body: dict[str, Any] = {"of": "e", "by": "model", "reasoning": "line 12", "surface": first.surface}
    body |= {"atoms": first.atoms, "memory": first.memory, "correction": first.correction}
    body |= {"candidates": said["control_packet"]["tool_calls"]}
    record = {"authority": "proposal", "kind": "plan", "seq": 1, "body": body, "side": {"by": "m"}}
    (again,) = read([json.dumps(record).encode()])
    assert parse(again.text, form) == first


def test_an_answer_that_was_cut_is_cut_again() -> None:
    side = {"by": "m", "finish": "length"}
    body = {"of": "e", "outcome": "malformed", "out": "{", "code": "answer.cut"}
    record = {"authority": "proposal", "kind": "act", "seq": 1, "body": body, "side": side}
    found = read([json.dumps(record).encode(), line("x", finish="length"), line("y", finish=["stop"])])
    made = recorded(*found)
    assert made.answer(prompt("?", "e")).finish == "length"
    assert [made.answer(prompt("?")).finish for _ in range(2)] == ["length", ""]


@pytest.mark.parametrize("data", [b"{", b"3", b"\xff", b'{"blob": "x", "data": 3}'])
def test_what_is_no_recording_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        read([line("a"), data])
    assert caught.value.code == "usage.input" and "line 2" in caught.value.message and caught.value.hint


def test_the_configured_file_is_read_and_looked_for_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_bytes(b"\n".join([line("a"), b"", line("b", model="m")]))
    made = Recorded(Choice(mode="recorded", recording="answers.jsonl", folder=tmp_path))
    made.check()
    assert made.answer(prompt("x")).text == "a"
    (tmp_path / "empty.jsonl").write_bytes(b"\n")
    for name in ("", "gone.jsonl", "empty.jsonl"):
        with pytest.raises(SpakError) as caught:
            Recorded(Choice(mode="recorded", recording=name, folder=tmp_path)).check()
        assert (caught.value.code, caught.value.exit_code) == ("llm.recorded", 7)


def test_a_cancelled_question_keeps_its_answer() -> None:
    made, cancel = recorded(Recording("a")), threading.Event()
    cancel.set()
    with pytest.raises(SpakError) as caught:
        made.answer(prompt("x"), cancel=cancel)
    assert caught.value.code == "llm.cancelled"
    assert made.answer(prompt("x")).text == "a"
