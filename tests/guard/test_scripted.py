"""The model that agents are tried with: chat completions, whole and streamed."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from spak.guard.scripted import Scripted, ToolCall
from spak.guard.talk import answered

TOOLS = [{"type": "function", "function": {"name": "bash"}}]


def ask(model: Scripted, **more: Any) -> str:
    asked = {"model": "m", "messages": [{"role": "user", "content": "go on"}], **more}
    request = urllib.request.Request(
        f"{model.env['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(asked).encode(),
        {"authorization": f"Bearer {model.key}"},
    )
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def test_a_chat_gets_one_call_after_another_and_then_the_end() -> None:
    calls = [ToolCall("bash", {"command": "ls"}), ToolCall("bash", lambda said: {"command": said})]
    with Scripted(calls).serving() as model:
        titled = json.loads(ask(model))
        whole, streamed, ended = (ask(model, tools=TOOLS, stream=stream) for stream in (False, True, False))
    assert titled["choices"][0]["message"]["content"] == "Done.", "it offered no tool, so it has no turn"
    assert json.loads(whole)["choices"][0]["finish_reason"] == "tool_calls"
    assert streamed.endswith("data: [DONE]\n\n")
    said = [answered(whole)[0], answered(streamed)[0]]
    assert all("bash" in one.text for one in said)
    assert "ls" in said[0].text and "go on" in said[1].text
    assert json.loads(ended)["choices"][0]["finish_reason"] == "stop"
    assert (len(model.results), set(model.keys)) == (3, {model.key})
