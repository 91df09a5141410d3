"""Answers of models: what the schema lets through, what a text is read as, what hostile text gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernel_kit
from kernel_kit import CATALOG, program
from spak.kernel import packet as packets
from spak.kernel.packet import Answer, Form, Message, Misfit, Reasoning, ToolCall, form, parse
from spak.lang.schema import check_schema, violations
from spak.program import Heuristic, Task

TASK = Task("T", "mend it", ("write", "look"), edges={"fail": "T", "success": "U"})
PROGRAM = program(TASK, heuristics=(Heuristic("look first", "tool.exit"),))
FORM = form(PROGRAM, TASK, CATALOG)
CALL = {"tool": "write", "args": {"text": "x"}}


def packet(**control: Any) -> dict[str, Any]:
    return {"control_packet": {"tool_calls": [CALL], **control}}


def test_the_schema_is_in_the_dialect_and_closed_everywhere() -> None:
    schema = FORM.schema()
    check_schema(schema)
    stack: list[Any] = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            if item.get("type") == "object":
                assert item["additionalProperties"] is False or isinstance(
                    item["additionalProperties"], Mapping
                )
            if item.get("type") == "string":
                assert item["maxLength"] > 0
            stack += item.values()
        elif isinstance(item, list):
            stack += item


def test_the_enums_come_from_the_program() -> None:
    assert violations(FORM.schema(), packet()) == []
    assert violations(FORM.schema(), {"control_packet": {"tool_calls": [{"tool": "rm", "args": {}}]}})
    assert FORM.triggers == ("fail", "success", "tool.exit")
    good = packet(self_correction={"trigger": "fail", "hypothesis": "a missing file"})
    assert violations(FORM.schema(), good) == []
    bad = packet(self_correction={"trigger": "boredom", "hypothesis": "x"})
    assert violations(FORM.schema(), bad)


def test_a_full_packet_is_read_into_items() -> None:
    text = json.dumps(
        {
            **packet(
                reasoning_trace="it is short",
                mangle_updates=["task_status(/mend, /complete)."],
                memory_operations=[{"operation": "forget", "fact": "error(/net)"}],
            ),
            "surface_response": "I mended it.",
        }
    )
    found = parse(text, FORM)
    assert isinstance(found, Answer)
    assert found.items == (
        Reasoning("it is short"),
        ToolCall("write", {"text": "x"}),
        Message("I mended it."),
    )
    assert found.atoms == ("task_status(/mend, /complete).",)
    assert found.memory == ({"operation": "forget", "fact": "error(/net)"},)
    assert found.surface == "I mended it."


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CALL),
        json.dumps({"candidates": [CALL]}),
        json.dumps(packet()),
        "```json\n" + json.dumps(CALL, indent=1) + "\n```",
        "\n  ```\n" + json.dumps(CALL) + "\n```\n",
    ],
)
def test_shorter_forms_are_the_same_packet(text: str) -> None:
    assert parse(text, FORM) == Answer((ToolCall("write", {"text": "x"}),))


HOSTILE: list[tuple[str, str]] = [
    ("", "answer.empty"),
    (" \n", "answer.empty"),
    ("let me think about that", "answer.not_json"),
    ('{"tool": "write", "args": {"te', "answer.not_json"),
    (json.dumps(CALL) + " I hope that helps", "answer.trailing"),
    (json.dumps(CALL) + json.dumps(CALL), "answer.trailing"),
    ("Sure:\n```\n{}\n```\nor\n```json\n" + json.dumps(CALL) + "\n```", "answer.not_json"),
    ("\ufeff\ufeff" + json.dumps(CALL), "answer.bom"),
    ("<think>" + json.dumps(CALL), "answer.empty"),
    ("```x\n" * 50_000, "answer.not_json"),
    ('{"tool": "look", "tool": "write", "args": {"text": "x"}}', "answer.duplicate"),
    ('{"tool": "write", "args": {"text": "x", "text": "y"}}', "answer.duplicate"),
    ('{"tool": "write", "args": {"text": NaN}}', "answer.number"),
    ('{"tool": "write", "args": {"text": -Infinity}}', "answer.number"),
    ('{"tool": "write", "args": {"text": 1e999}}', "answer.number"),
    ('{"tool": "write", "args": {"text": ' + "9" * 5000 + "}}", "answer.number"),
    ('{"tool": "write", "args": {"text": 9007199254740993}}', "answer.number"),
    ('{"tool": "write", "args": {"text": "\\ud800"}}', "answer.characters"),
    ("[" * 200_000, "answer.too_deep"),
    ('{"a":' * 40_000, "answer.too_deep"),
    ("x" * 10_000_000, "answer.too_long"),
    ('\\"' * 130_000, "answer.not_json"),
    ('{"' + '\\"' * 120_000, "answer.not_json"),
    ("```\n" * 60_000, "answer.not_json"),
    ("null", "schema.type"),
    ("[1]", "schema.type"),
    ("{}", "schema.required"),
    ('{"tool": "rm", "args": {}}', "policy.not_in_tools"),
    ('{"tool": "write", "args": {}}', "schema.required"),
    ('{"tool": "write", "args": {"text": 3}}', "schema.type"),
    ('{"tool": "write", "args": {"text": "x", "more": 1}}', "schema.unknown_member"),
    ('{"tool": "write", "args": {"text": {"$blob": "x"}}}', "answer.name"),
    (json.dumps({**packet(), "extra": 1}), "schema.unknown_member"),
    (json.dumps(packet(tool_calls=[])), "schema.min_items"),
    (json.dumps(packet(tool_calls=[CALL] * 9)), "schema.max_items"),
    (json.dumps(packet(mangle_updates=["a(X)"])), "answer.atom"),
    (json.dumps(packet(mangle_updates=["a(/x) :- b(/y)."])), "answer.atom"),
    (json.dumps(packet(mangle_updates=["("])), "answer.atom"),
    (json.dumps(packet(mangle_updates=["a" * 401])), "schema.max_length"),
    (json.dumps(packet(memory_operations=[{"operation": "obey", "fact": "x"}])), "schema.enum"),
]


@pytest.mark.parametrize(
    "text",
    [
        "Sure:\n```json\n{}\n```\nI hope that helps.",
        "\ufeff{}",
        "<think>\nI could {{ or ```\n</think>\n\n```\n{}\n```",
        "We write x.\n</think>{}",
    ],
)
def test_what_a_writer_put_around_an_answer_is_taken_off(text: str) -> None:
    found = parse(text.replace("{}", json.dumps(CALL)), FORM)
    assert isinstance(found, Answer) and [call.tool for call in found.calls] == [CALL["tool"]]
    thinking = [item.text for item in found.items if isinstance(item, Reasoning)]
    assert bool(thinking) is ("</think>" in text)


@pytest.mark.parametrize(("text", "code"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_does_not_fit_has_a_code_and_a_bounded_reason(text: str, code: str) -> None:
    found = parse(text, FORM)
    assert isinstance(found, Misfit)
    assert found.code == code
    assert len(json.dumps(found.to_json())) < 2000


def test_a_verb_outside_the_list_is_refused() -> None:
    narrow = Form(FORM.tools, FORM.triggers, ("task_status",))
    text = json.dumps(packet(mangle_updates=["permitted(/rm)"]))
    found = parse(text, narrow)
    assert isinstance(found, Misfit) and found.code == "answer.verb"
    assert isinstance(parse(text, FORM), Answer)


def test_calls_can_be_left_to_select() -> None:
    found = parse('{"tool": "rm", "args": {"now": true}}', FORM, calls=False)
    assert isinstance(found, Answer)
    assert found.calls == (ToolCall("rm", {"now": True}),)


def test_the_surface_never_counts() -> None:
    text = json.dumps({**packet(), "surface_response": json.dumps({"tool": "rm", "args": {}})})
    found = parse(text, FORM)
    assert isinstance(found, Answer)
    assert [call.tool for call in found.calls] == ["write"]


@given(st.text(max_size=200))
def test_any_text_is_an_answer_or_a_misfit(text: str) -> None:
    assert isinstance(parse(text, FORM), Answer | Misfit)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["tool", "args", "text", "candidates", "control_packet", "tool_calls", "$blob"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_json_comes_only_tools_of_the_task_get_through(value: Any) -> None:
    found = parse(json.dumps(value), FORM)
    if isinstance(found, Answer):
        assert found.calls
        for call in found.calls:
            assert call.tool in TASK.tools
            assert not violations(kernel_kit.TEXT, call.args)


@given(
    st.lists(
        st.builds(
            lambda tool, text: {"tool": tool, "args": {"text": text}},
            st.sampled_from(TASK.tools),
            st.text(max_size=50),
        ),
        min_size=1,
        max_size=packets.CALLS,
    ),
    st.text(max_size=50),
)
def test_what_fits_the_schema_is_read_back(calls: list[Any], said: str) -> None:
    value = {"control_packet": {"tool_calls": calls}, "surface_response": said}
    assert violations(FORM.schema(), value) == []
    found = parse(json.dumps(value), FORM)
    assert isinstance(found, Answer)
    assert [{"tool": call.tool, "args": call.args} for call in found.calls] == calls
    assert found.surface == said
