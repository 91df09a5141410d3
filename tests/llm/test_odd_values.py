"""Replies of the right form with values that no engine should send: an error or an answer, never a crash."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from llm_stub import MODEL, WIRES, Stub, sse
from spak.errors import UnavailableError
from spak.llm.anthropic_ import Anthropic
from spak.llm.ollama import Ollama
from spak.llm.openai_compatible import OpenAICompatible
from spak.llm.settings import Choice
from spak.ports import Answer, Prompt
from spak.secrets.secret import Secret

KINDS: dict[str, Any] = {"ollama": Ollama, "openai_compatible": OpenAICompatible, "anthropic": Anthropic}
KEY = "canary-5f1d0c77e0b94a"
HUGE = 10**400
SAYS_KEY = f"\x1b[2J your key {KEY}\nis wrong"


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub() as made:
        made.script = ["raw"]
        yield made


def asked(stub: Stub, kind: str, raw: bytes) -> Answer | UnavailableError:
    stub.raw = raw
    choice = Choice(mode=kind, model=MODEL, base_url=stub.url, secret=Secret(KEY), timeout_s=20, retries=0)
    try:
        answer: Answer = KINDS[kind](choice).answer(
            Prompt("p", ({"role": "user", "name": "x", "text": "hi"},))
        )
    except UnavailableError as error:
        return error
    return answer


def ollama(**more: Any) -> bytes:
    said = {"model": MODEL, "message": {"role": "assistant", "content": "hi"}, "done": True}
    return json.dumps({**said, **more}).encode() + b"\n"


def openai(value: Any = "stop", logprob: Any = 0, **more: Any) -> bytes:
    choice = {"delta": {"content": "hi"}, "finish_reason": value}
    return sse({"choices": [{**choice, "logprobs": {"content": [{"logprob": logprob}]}}], **more})


def anthropic(text: Any) -> bytes:
    wire = WIRES["anthropic"]
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return wire.head() + sse(delta, "content_block_delta") + wire.tail()


def logprobs(value: Any) -> tuple[tuple[str, bytes], ...]:
    return ("ollama", ollama(logprobs=[{"logprob": value}])), ("openai_compatible", openai(logprob=value))


@pytest.mark.parametrize("ended", [["stop"], {"a": 1}, 3, True])
@pytest.mark.parametrize("kind", ["ollama", "openai_compatible"])
def test_an_end_of_another_kind_is_no_known_end(stub: Stub, kind: str, ended: Any) -> None:
    found = asked(stub, kind, ollama(done_reason=ended) if kind == "ollama" else openai(ended))
    assert isinstance(found, Answer) and (found.text, found.finish) == ("hi", "")


@pytest.mark.parametrize("value", [HUGE, 1e400, math.nan, True, "x", None, [0]], ids=lambda v: str(v)[:5])
def test_a_log_probability_that_is_no_number_is_not_known(stub: Stub, value: Any) -> None:
    for kind, raw in logprobs(value):
        found = asked(stub, kind, raw)
        assert isinstance(found, Answer) and found.logprobs is not None
        assert math.isnan(found.logprobs[0])


@pytest.mark.parametrize("text", [None, 0, [], {}, ["x"]], ids=str)
def test_a_text_that_is_none_is_another_shape(stub: Stub, text: Any) -> None:
    found = asked(stub, "anthropic", anthropic(text))
    assert isinstance(found, UnavailableError) and found.code == "llm.protocol"


@pytest.mark.parametrize("name", ["m" * 100_000, "a\x1b[2J\nb", "\ud800", ["m"]], ids=lambda v: str(v)[:2])
def test_the_name_of_a_model_is_a_short_line(stub: Stub, name: Any) -> None:
    for kind, raw in (("ollama", ollama(model=name)), ("openai_compatible", openai(model=name))):
        found = asked(stub, kind, raw)
        assert isinstance(found, Answer) and 0 < len(found.model) <= 200 and found.model.isprintable()


@pytest.mark.parametrize(
    "error", [SAYS_KEY, {"message": SAYS_KEY}, {"x": [SAYS_KEY]}, 7], ids=lambda v: str(v)[:3]
)
@pytest.mark.parametrize("kind", ["ollama", "openai_compatible"])
def test_an_error_in_the_stream_shows_no_key_and_steers_no_terminal(
    stub: Stub, kind: str, error: Any
) -> None:
    value = {"error": error}
    found = asked(stub, kind, sse(value) if kind == "openai_compatible" else json.dumps(value).encode())
    assert isinstance(found, UnavailableError) and found.code == "llm.server"
    assert found.message.isprintable() and KEY not in found.message and found.hint
