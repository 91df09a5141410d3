"""The `gemini` command as a backend, with scripts in its place: what it says, and what is left of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from process_kit import WAIT_S, happens, until
from sandbox_kit import living
from spak.errors import SpakError
from spak.llm import retry
from spak.llm.gemini_cli import GeminiCli
from spak.llm.settings import Choice
from spak.ports import Prompt

PROMPT = Prompt(
    "p", ({"role": "system", "name": "a", "text": "be brief"}, {"role": "user", "name": "b", "text": "hi"})
)
INIT = {"type": "init", "session_id": "s", "model": "gemini-x"}
ECHO = {"type": "message", "role": "user", "content": "be brief hi"}
END = {"type": "result", "status": "success", "stats": {"input_tokens": 9, "output_tokens": 2, "cached": 4}}

Make = Callable[..., GeminiCli]


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def printing(*events: Any) -> str:
    return "".join(f"printf '%s\\n' '{json.dumps(event)}'\n" for event in events)


@pytest.fixture
def gemini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.02)

    def make(script: str, **changes: Any) -> GeminiCli:
        command = tmp_path / "gemini"
        command.write_text(f"#!/bin/sh\n{script}")
        command.chmod(0o755)
        limits: dict[str, Any] = {"timeout_s": 60, "silence_s": 30, "retries": 1} | changes
        return GeminiCli(Choice(mode="gemini_cli", command="./gemini", folder=tmp_path, **limits))

    return make


def test_it_gets_the_prompt_and_no_tools_and_its_answer_comes_in_pieces(gemini: Make, tmp_path: Path) -> None:
    record = (
        f'cat > {tmp_path}/asked; echo "$@" > {tmp_path}/argv; cat .gemini/settings.json > {tmp_path}/set\n'
    )
    made = gemini(
        record + "echo Loaded cached credentials.\n" + printing(INIT, ECHO, said("hel"), said("lo"), END)
    )
    made.check()
    pieces: list[str] = []
    answer = made.answer(PROMPT, pieces.append)
    assert (answer.text, pieces) == ("hello", ["hel", "lo"])
    assert (answer.model, answer.usage) == ("gemini-x", {"input": 9, "output": 2, "cached": 4})
    assert answer.logprobs is None
    assert (tmp_path / "asked").read_text() == "be brief\n\nhi"
    assert (tmp_path / "argv").read_text() == "--output-format stream-json\n"
    assert json.loads((tmp_path / "set").read_text())["tools"] == {"core": []}


def test_the_model_is_one_argument_whatever_it_holds(gemini: Make, tmp_path: Path) -> None:
    made = gemini(
        f'printf "%s|" "$@" > {tmp_path}/argv\n' + printing(INIT, END), model="a b; touch owned $(id)"
    )
    made.answer(PROMPT)
    assert (tmp_path / "argv").read_text() == "--output-format|stream-json|--model|a b; touch owned $(id)|"


FAULTS: dict[str, tuple[str, str]] = {
    "logged out": ("echo 'please log in' >&2; exit 41", "llm.no_key"),
    "wrong model": ("echo 'no such model' >&2; exit 42", "llm.rejected"),
    "too many turns": ("exit 53", "llm.rejected"),
    "failed": ("echo boom >&2; exit 1", "llm.server"),
    "killed": ("kill -9 $$", "llm.server"),
    "no result": (printing(INIT, said("half")), "llm.cut"),
    "bad result": (printing(INIT, {**END, "status": "error"}), "llm.cut"),
    "nothing": ("exit 0", "llm.cut"),
    "garbage": ("printf '\\377\\376{{{\\n'", "llm.cut"),
    "another shape": (printing({**said(""), "content": ["x"]}), "llm.protocol"),
    "too much": ("yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "llm.too_large"),
    "silence": ("sleep 60", "llm.timeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_code(gemini: Make, fault: str) -> None:
    script, code = FAULTS[fault]
    with pytest.raises(SpakError) as caught:
        gemini(script, silence_s=0.5).answer(PROMPT)
    assert (caught.value.code, caught.value.exit_code) == (code, 7)


def test_a_passing_fault_is_survived(gemini: Make, tmp_path: Path) -> None:
    flag = tmp_path / "second"
    script = f"if [ -e {flag} ]; then\n{printing(INIT, said('ok'), END)}else touch {flag}; exit 1; fi\n"
    answer = gemini(script).answer(PROMPT)
    assert (answer.text, answer.tries) == ("ok", 2)


@pytest.mark.parametrize("ends", ["cancelled", "timed out"])
def test_nothing_of_its_group_is_left(gemini: Make, tmp_path: Path, ends: str) -> None:
    files = [tmp_path / name for name in ("child", "self")]
    child, itself = files
    script = f"touch {itself}; tail -f {itself} & echo $! > {child}; echo $$ > {itself}; wait"

    def begun() -> bool:
        return all(file.exists() and file.read_text().endswith("\n") for file in files)

    cancel = threading.Event()
    if ends == "cancelled":
        threading.Thread(target=lambda: happens(begun) and cancel.set()).start()
    for timeout_s in (WAIT_S,) if ends == "cancelled" else (0.6, 5, 60):
        made = gemini(script, timeout_s=timeout_s, silence_s=WAIT_S, retries=0)
        with pytest.raises(SpakError) as caught:
            made.answer(PROMPT, cancel=cancel)
        assert caught.value.code == ("llm.cancelled" if ends == "cancelled" else "llm.timeout")
        if begun():  # else the machine is so busy that the time was up before
            break
    until(lambda: not living(str(tmp_path)), "some of it is still there")  # another may have its number


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    made = GeminiCli(Choice(mode="gemini_cli", command="no-such-command", folder=tmp_path))
    for ask in (made.check, lambda: made.answer(PROMPT)):
        with pytest.raises(SpakError) as caught:
            ask()
        assert (caught.value.code, caught.value.exit_code) == ("llm.unreachable", 7) and caught.value.hint
