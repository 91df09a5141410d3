"""Each backend against each fault on the wire: what comes back, how often it tried, what it says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from llm_stub import MODEL, TEXT, Stub
from process_kit import WAIT_S, happens
from spak.errors import RunError, SpakError, UnavailableError
from spak.llm import BACKENDS, messages, retry
from spak.llm.anthropic_ import Anthropic
from spak.llm.ollama import Ollama
from spak.llm.openai_compatible import OpenAICompatible
from spak.llm.settings import Choice
from spak.ports import Prompt
from spak.secrets.secret import Secret

KINDS = {"ollama": Ollama, "openai_compatible": OpenAICompatible, "anthropic": Anthropic}
KEY = "sk-canary-0123456789abcdef"
ITEMS = (
    {"role": "system", "name": "axioms", "text": "be brief"},
    {"role": "user", "name": "goal", "text": "mend the test"},
    {"role": "user", "name": "prompt", "text": "what now?"},
)
PROMPT = Prompt("p1", ITEMS, "coder", prefix=2)

FAULTS: dict[str, tuple[str, int]] = {
    "garbage": ("llm.protocol", 1),
    "half_json": ("llm.protocol", 1),
    "shape": ("llm.protocol", 1),
    "utf8": ("llm.protocol", 1),
    "content_type": ("llm.protocol", 1),
    "big": ("llm.too_large", 1),
    "drip": ("llm.timeout", 1),
    "done_open": ("llm.timeout", 1),
    "silent": ("llm.timeout", 1),
    "cut": ("llm.cut", 3),
    "no_done": ("llm.cut", 3),
    "empty": ("llm.cut", 3),
    "429": ("llm.rate_limited", 3),
    "429_bare": ("llm.rate_limited", 3),
    "500": ("llm.server", 3),
    "503": ("llm.server", 3),
    "529": ("llm.server", 3),
    "400": ("llm.rejected", 1),
    "401": ("llm.key_refused", 1),
    "404": ("llm.unknown_model", 1),
    "window": ("llm.window", 1),
    "redirect": ("llm.redirect", 1),
}
"""Fault to the code that it ends with, and how often the wire is tried with two retries."""

SHORT = {"timeout_s": 2.0, "silence_s": 0.7}
"""Limits for what ends at them; everything else has time, on a busy machine too."""

ANTHROPIC_READS: dict[str, tuple[str, int]] = {
    # The SDK skips what is no event, so that nothing is left of such a stream but its end.
    "garbage": ("llm.cut", 3),
}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.02)


def backend(kind: str, stub: Stub, **changes: Any) -> Any:
    base = stub.url + ("/v1" if kind == "openai_compatible" else "")
    limits = {"timeout_s": 20.0, "connect_s": 5.0, "silence_s": 10.0, "retries": 2} | changes
    return KINDS[kind](Choice(mode=kind, model=MODEL, base_url=base, secret=Secret(KEY), **limits))


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_comes_with_all_that_the_engine_says(kind: str, stub: Stub) -> None:
    pieces: list[str] = []
    answer = backend(kind, stub, logprobs=True, params={"temperature": 0}).answer(PROMPT, pieces.append)
    assert answer.text == TEXT
    assert "".join(pieces) == TEXT and len([piece for piece in pieces if piece]) == 3
    assert (answer.model, answer.finish, answer.tries) == (MODEL, "stop", 1)
    assert answer.params == {"temperature": 0, "max_tokens": 4096}
    assert {"input": 11, "output": 7}.items() <= answer.usage.items()
    assert answer.usage.get("cached") == (None if kind == "ollama" else 4)
    assert answer.logprobs == (None if kind == "anthropic" else (-0.5, -0.5, -0.5))
    assert 0 <= answer.latency_ms < 20_000


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_ends_with_its_code_after_its_tries(kind: str, fault: str, stub: Stub) -> None:
    code, tries = (ANTHROPIC_READS if kind == "anthropic" else {}).get(fault, FAULTS[fault])
    stub.script = [fault]
    with Stub() as other:
        stub.elsewhere = other.url
        with pytest.raises(UnavailableError) as caught:
            backend(kind, stub, **(SHORT if code == "llm.timeout" else {})).answer(PROMPT)
        assert other.requests == []
    assert (caught.value.code, len(stub.requests)) == (code, tries)
    assert caught.value.exit_code == 7
    assert KEY not in str(caught.value) and "canary" not in repr(caught.value)


@pytest.mark.parametrize("fault", ["429", "429_bare", "500", "503", "529", "cut", "no_done", "empty"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_passing_fault_is_survived_and_counted(kind: str, fault: str, stub: Stub) -> None:
    stub.script = [fault, "ok"]
    pieces: list[str] = []
    started = time.monotonic()
    answer = backend(kind, stub).answer(PROMPT, pieces.append)
    assert (answer.text, answer.tries) == (TEXT, 2)
    if fault == "429":
        assert time.monotonic() - started >= 0.3, "Retry-After is honoured"
    if fault in ("cut", "no_done"):
        assert "".join(pieces[pieces.index("") :]) == TEXT, "an empty piece says that the text begins again"


@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_longer_than_the_call_may_take_ends_it_at_once(kind: str, stub: Stub) -> None:
    stub.script = ["429_long"]
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="come back tomorrow") as caught:
        backend(kind, stub).answer(PROMPT)
    assert caught.value.code == "llm.rate_limited"
    assert time.monotonic() - started < retry.MOST_RETRY_AFTER_S == 60


@pytest.mark.parametrize("kind", KINDS)
def test_missing_usage_is_absent_and_never_zero(kind: str, stub: Stub) -> None:
    stub.script = ["no_usage"]
    answer = backend(kind, stub).answer(PROMPT)
    assert answer.text == TEXT
    assert 0 not in answer.usage.values()
    if kind != "anthropic":  # whose first event counts already
        assert answer.usage == {}


@pytest.mark.parametrize("word", ["silent", "done_open", "drip", "429"])
@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_ends_a_call_and_hangs_up(kind: str, word: str, stub: Stub) -> None:
    stub.script = [word]
    cancel = threading.Event()
    threading.Thread(target=lambda: happens(lambda: stub.requests) and cancel.set()).start()
    with pytest.raises(RunError) as caught:
        backend(kind, stub, timeout_s=1000, silence_s=1000, retries=1000).answer(PROMPT, cancel=cancel)
    assert caught.value.code == "llm.cancelled"
    if word == "drip":
        assert stub.hung_up.wait(WAIT_S), "the connection is closed, so that the engine stops"


@pytest.mark.parametrize("kind", KINDS)
def test_what_shows_the_text_may_fail_and_the_call_ends(kind: str, stub: Stub) -> None:
    class Stop(BaseException):
        pass

    def show(piece: str) -> None:
        raise Stop

    stub.script = ["drip"]
    with pytest.raises(Stop):
        backend(kind, stub).answer(PROMPT, show)
    assert stub.hung_up.wait(WAIT_S)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_there_is_unreachable(kind: str, stub: Stub) -> None:
    made = backend(kind, stub, retries=0)
    stub.__exit__()
    for ask in (made.check, lambda: made.answer(PROMPT)):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert caught.value.code == "llm.unreachable" and caught.value.hint
    stub.__init__()  # type: ignore[misc]
    stub.__enter__()


@pytest.mark.parametrize("kind", KINDS)
def test_check_finds_the_model_or_says_how_to_get_it(kind: str, stub: Stub) -> None:
    backend(kind, stub).check()
    assert MODEL in backend(kind, stub).listed()
    with pytest.raises(UnavailableError) as caught:
        KINDS[kind](Choice(mode=kind, model="nope", base_url=backend(kind, stub).choice.base_url)).check()
    assert caught.value.code == "llm.unknown_model"
    assert caught.value.hint == "ollama pull nope" or "spak models" in caught.value.hint
    with pytest.raises(UnavailableError) as caught:
        KINDS[kind](Choice(mode=kind, base_url=backend(kind, stub).choice.base_url)).check()
    assert caught.value.code == "llm.no_model"


SCHEMA = {
    "type": "object",
    "properties": {"tool": {"enum": ["run"]}, "note": {"type": "string", "maxLength": 20}},
    "required": ["tool", "note"],
}


def test_the_schema_goes_where_each_engine_looks_for_it(stub: Stub) -> None:
    prompt = Prompt("p1", ITEMS, schema=SCHEMA, max_tokens=50, params={"seed": 7})
    for kind in KINDS:
        backend(kind, stub).answer(prompt)
    ollama, openai, anthropic = stub.bodies()
    closed = {**SCHEMA, "additionalProperties": False}
    assert ollama["format"] == closed and ollama["truncate"] is False
    assert ollama["options"] == {"seed": 7, "num_predict": 50}
    form = openai["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["schema"] == closed
    assert form["json_schema"]["strict"] is True and openai["seed"] == 7 and openai["max_tokens"] == 50
    told = anthropic["output_config"]["format"]
    assert told["type"] == "json_schema" and told["schema"]["additionalProperties"] is False
    assert told["schema"]["properties"]["tool"] == {"enum": ["run"]}
    assert "seed" not in anthropic
    stub.requests.clear()
    for kind in KINDS:
        backend(kind, stub, structured=False).answer(prompt)
    for body in stub.bodies():
        assert not {"format", "response_format", "output_config"} & set(body)


FREE = {"type": "object", "properties": {"args": {"type": "object"}}, "required": ["args"]}
CLOSED: list[tuple[Any, bool, bool]] = [
    (SCHEMA, True, True),
    ({**SCHEMA, "required": ["tool"]}, True, False),
    (FREE, False, False),
    ({"type": "object", "properties": {"any": {}}, "required": ["any"]}, False, False),
    ({"anyOf": [SCHEMA, {"type": "null"}]}, True, True),
    ({"oneOf": [SCHEMA, {"type": "null"}]}, True, False),
    ({"type": "array", "items": FREE}, False, False),
    ({"type": "array", "items": {"type": "string"}}, True, True),
    ({"type": ["object", "null"]}, False, False),
    ({"$ref": "#/$defs/a", "$defs": {"a": FREE}}, False, False),
    ({"type": "object", "properties": {"enum": {"type": "string"}}, "required": ["enum"]}, True, True),
]


@pytest.mark.parametrize(("schema", "closed", "every"), CLOSED)
def test_which_schemas_the_stricter_dialects_can_hold(schema: Any, closed: bool, every: bool) -> None:
    mask = messages.masked(schema)
    assert (messages.closed(mask), messages.closed(mask, every=True)) == (closed, every)


def test_a_free_object_is_not_turned_into_an_empty_one(stub: Stub) -> None:
    for kind in ("openai_compatible", "anthropic"):
        backend(kind, stub).answer(Prompt("p1", ITEMS, schema=FREE))
    openai, anthropic = stub.bodies()
    assert openai["response_format"]["json_schema"]["strict"] is False
    assert openai["response_format"]["json_schema"]["schema"]["properties"]["args"] == {"type": "object"}
    assert "output_config" not in anthropic


def test_items_become_messages_and_the_stable_ones_end_with_a_cache_breakpoint(stub: Stub) -> None:
    for kind in KINDS:
        backend(kind, stub).answer(PROMPT)
    ollama, openai, anthropic = stub.bodies()
    talk = [{"role": "system", "content": "be brief"}]
    talk += [{"role": "user", "content": "mend the test\n\nwhat now?"}]
    assert ollama["messages"] == openai["messages"] == talk
    assert anthropic["system"] == [{"type": "text", "text": "be brief"}]
    blocks = anthropic["messages"][0]["content"]
    assert [block["text"] for block in blocks] == ["mend the test", "what now?"]
    assert blocks[0]["cache_control"] == {"type": "ephemeral"} and "cache_control" not in blocks[1]
    assert json.dumps(anthropic).count("cache_control") == 1


def test_the_key_goes_in_its_header_and_shows_nowhere_else(stub: Stub) -> None:
    for kind in KINDS:
        made = backend(kind, stub)
        made.answer(PROMPT)
        assert KEY not in repr(made.choice) and KEY not in str(vars(made))
    for _, path, headers, body in stub.requests:
        assert headers["authorization"] == f"Bearer {KEY}"
        assert "canary" not in path + body.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_does_not_go_unencrypted_to_another_machine(kind: str) -> None:
    chosen = Choice(mode=kind, model="m", base_url="http://models.example", secret=Secret(KEY))
    with pytest.raises(SpakError) as caught:
        KINDS[kind](chosen).answer(PROMPT)
    assert caught.value.code == "llm.insecure" and caught.value.exit_code == 7


def test_a_key_in_the_path_of_an_address_is_not_shown() -> None:
    url = f"http://127.0.0.1:1/{KEY}/v1"
    with pytest.raises(UnavailableError) as caught:
        OpenAICompatible(Choice(mode="openai_compatible", model="m", base_url=url, retries=0)).answer(PROMPT)
    assert "127.0.0.1:1/[redacted:openai]" in caught.value.message and KEY not in caught.value.message


@pytest.mark.parametrize("kind", ["openai_compatible", "anthropic"])
def test_no_key_says_which_variable_to_set(kind: str) -> None:
    made: Any = BACKENDS[kind]()
    for ask in (made.check, lambda: made.answer(PROMPT)):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert caught.value.code == "llm.no_key" and "_API_KEY=" in caught.value.hint
