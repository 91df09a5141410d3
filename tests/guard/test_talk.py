"""What an agent and its model said, from both formats, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spak.guard.talk import AGENT, PERSON, TOOL, Said, answered, asked


def stream(*values: Any) -> str:
    return "".join(f"event: x\ndata: {json.dumps(value)}\n\n" for value in values)


LS = '{"command": "ls"}'
CALL = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
ANSWERS = {
    "anthropic": json.dumps({"content": [{"type": "text", "text": "Look."}, CALL]}),
    "anthropic, streamed": stream(
        {"type": "message_start", "message": {"model": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Lo"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok."}},
        {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"command": '}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"ls"}'}},
    ),
    "chat": json.dumps(
        {"choices": [{"message": {
            "content": "Look.", "tool_calls": [{"function": {"name": "Bash", "arguments": LS}}],
        }}]}
    ),
    "chat, streamed": stream(
        {"choices": [{"delta": {"content": "Look."}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": "Bash", "arguments": ""}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": LS}}]}}]},
    ),
    "responses, streamed": stream(
        {"type": "response.output_text.delta", "delta": "Lo"},
        {"type": "response.completed", "response": {"output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "Look."}]},
            {"type": "function_call", "name": "Bash", "arguments": LS},
        ]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ANSWERS)
def test_an_answer_is_its_words_and_its_calls(form: str) -> None:
    assert answered(ANSWERS[form]) == [Said(AGENT, "Look."), Said(AGENT, "Bash: ls")]


def test_of_a_request_what_came_after_the_model() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Mend it."},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "text", "text": "cart.py"}]},
            {"type": "text", "text": "Go on."}, {"type": "image", "source": {}},
        ]},
    ]  # fmt: skip
    found = [Said(TOOL, "cart.py"), Said(PERSON, "Go on."), Said(PERSON, "[image]")]
    assert asked(json.dumps({"messages": messages})) == found
    assert asked(json.dumps({"messages": messages[:2]})) == [Said(PERSON, "Mend it.")]
    later = [{"type": "function_call", "name": "x"}, {"type": "function_call_output", "output": "done"}]
    assert asked(json.dumps({"input": later})) == [Said(TOOL, "done")]
    assert asked(json.dumps({"input": "Mend it."})) == [Said(PERSON, "Mend it.")]


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[1]", '"x"', '{"messages": 3}',
     '{"messages": [null, 3, {"role": "user", "content": 7}]}',
     '{"content": [3, {"type": "text"}]}', '{"choices": [{"message": null}, 4]}', "data: {\n", "[" * 9999,
     stream({"delta": 3}, {"choices": [{"delta": {"tool_calls": [{"function": None}]}}]})],
)  # fmt: skip
def test_other_forms_are_no_error(text: str) -> None:
    assert all(isinstance(one.text, str) for one in (*asked(text), *answered(text)))
