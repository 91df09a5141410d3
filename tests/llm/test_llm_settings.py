"""`[llm]`: what is read, what is refused, who answers for which role and task, and where keys go."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spak import config
from spak.cancel import Cancel
from spak.costs.prices import load
from spak.errors import UnavailableError, UsageError
from spak.lang.catalog import NamedEntry
from spak.llm import open_backend, redactor
from spak.llm.choose import Chooser
from spak.llm.messages import sampling
from spak.llm.settings import KEYS, RANGES, Choice, LlmSettings, read
from spak.ports import Answer, Prompt
from spak.secrets.secret import Secret

KEY = "canary-key-0123456789"
SET: dict[str, Any] = {
    "mode": "ollama",
    "model": "small",
    "temperature": 0.5,
    "timeout_s": 7,
    "roles": {
        "coder": {"model": "big"},
        "reviewer": {"mode": "anthropic", "model": "claude-haiku-4-5", "key_env": "MY_KEY"},
    },
    "tasks": {"finalize": {"temperature": 0}, "publish": {"mode": "openai_compatible", "model": "gpt-4o"}},
}

CHOICES: list[tuple[dict[str, Any], tuple[str, str, dict[str, Any]]]] = [
    ({}, ("ollama", "small", {"temperature": 0.5})),
    ({"role": "coder"}, ("ollama", "big", {"temperature": 0.5})),
    ({"role": "reviewer"}, ("anthropic", "claude-haiku-4-5", {})),
    ({"task": "finalize"}, ("ollama", "small", {"temperature": 0})),
    ({"task": "finalize", "role": "coder"}, ("ollama", "big", {"temperature": 0})),
    ({"task": "finalize", "role": "reviewer"}, ("anthropic", "claude-haiku-4-5", {})),
    ({"task": "publish", "role": "reviewer"}, ("openai_compatible", "gpt-4o", {})),
    ({"mode": "local"}, ("local", "", {})),
    ({"mode": "local", "role": "coder"}, ("local", "", {})),
    ({"mode": "local", "role": "reviewer"}, ("anthropic", "claude-haiku-4-5", {})),
    ({"mode": "local", "role": "reviewer", "forced": True}, ("local", "", {})),
    ({"mode": "anthropic", "role": "reviewer", "forced": True}, ("anthropic", "claude-haiku-4-5", {})),
]


@pytest.mark.parametrize(("asked", "wanted"), CHOICES)
def test_a_task_goes_before_a_role_and_a_role_before_the_rest(
    asked: dict[str, Any], wanted: tuple[str, str, dict[str, Any]]
) -> None:
    found = read(SET, None, {"MY_KEY": KEY}).choice(**asked)
    assert (found.mode, found.model, found.params) == wanted
    assert found.timeout_s == 7, "limits are kept whoever answers"


def test_the_simulated_command_is_a_person_everywhere() -> None:
    table = {"mode": "gemini_cli_sim", "roles": {"judge": {"mode": "gemini_cli_sim"}}}
    found = read({"mode": "ollama", "roles": table["roles"]})
    assert found.choice("", "", "judge").mode == "manual"
    assert read(table).base.mode == "manual"
    assert read(table).backends() == ("manual",)


def test_settings_without_a_mode_belong_to_whoever_is_named() -> None:
    whole = read({"model": "m", "roles": {"coder": {"model": "n"}}})
    assert whole.choice("ollama").model == "m"
    assert whole.choice("ollama", role="coder").model == "n"
    assert whole.choice("ollama", role="coder", forced=True).mode == "ollama"


def test_every_backend_that_is_named_is_known() -> None:
    assert read(SET).backends() == ("ollama", "anthropic", "openai_compatible")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"modell": "x"}, "unknown key modell"),
    ({"api_key": KEY}, "unknown key api_key"),
    ({"model": 3}, "model can not be 3"),
    ({"retries": True}, "retries can not be True"),
    ({"retries": -1}, "retries can not be -1"),
    ({"timeout_s": 0}, "timeout_s can not be 0"),
    ({"timeout_s": float("nan")}, "timeout_s can not be nan"),
    ({"logprobs": 1}, "logprobs can not be 1"),
    ({"base_url": "ftp://x"}, "base_url is not an address"),
    ({"base_url": "http://"}, "base_url is not an address"),
    ({"base_url": f"https://u:{KEY}@x/"}, "base_url is not an address"),
    ({"base_url": "http://[::1"}, "base_url is not an address"),
    ({"base_url": "http://x:99999"}, "base_url is not an address"),
    ({"base_url": "http://x/?k=1"}, "base_url is not an address"),
    ({"key_env": f"sk-{KEY}"}, "key_env is not the name of a variable"),
    ({"roles": {"coder": {"key_env": f"sk-{KEY}"}}}, "key_env is not the name of a variable"),
    ({"roles": 3}, "is not a table"),
    ({"roles": {"coder": 3}}, "is not a table"),
    ({"tasks": {"t": {"x": 1}}}, "unknown key x in [llm.tasks.t]"),
    ({"tasks": {"t": {"prices": "p"}}}, "llm.tasks.t"),
]


@pytest.mark.parametrize(("values", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_wrong_is_named_and_no_secret_of_it(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(values)
    assert caught.value.code == "usage.config" and said in caught.value.message
    assert KEY not in str(caught.value)


@pytest.mark.findings("S5.11")
@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"mode": "gemini_cli", "command": ["gemini", "-y"]}, 'a text, such as command = "gemini"'),
        ({"model": 3}, 'a text, such as model = "..."'),
        ({"strict": "yes"}, "true or false"),
        ({"retries": 1.5}, "a whole number"),
        ({"timeout_s": "9"}, "a number"),
    ],
)
def test_a_value_of_another_type_is_told_what_is_wanted(values: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(values)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("values", "longest"),
    [
        ({}, 4096),
        ({"mode": "local"}, 819),
        ({"mode": "local", "window": 1000}, 200),
        ({"mode": "ollama", "window": 100_000}, 4096),
        ({"mode": "local", "max_tokens": 3000}, 3000),
    ],
)
def test_an_answer_has_a_longest_length_that_fits_the_window(values: dict[str, Any], longest: int) -> None:
    chosen = read(values).choice()
    assert chosen.longest == longest
    assert sampling(Prompt("p", ()), chosen) == {"max_tokens": longest}


def test_every_range_is_of_a_known_key() -> None:
    assert set(RANGES) < set(KEYS)


def test_the_file_and_the_environment_reach_the_settings(tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text(
        '[llm]\nmode = "ollama"\nmodel = "a"\n[llm.roles.coder]\nmodel = "b"\n'
    )
    found = config.settings(tmp_path, {"SPAK_LLM_MODEL": "c"})
    assert (found.backend, found.llm.base.model) == ("ollama", "c")
    assert found.llm.choice(role="coder").model == "b"
    (tmp_path / "spak.toml").write_text("llm = 3\n")
    with pytest.raises(UsageError, match="not a table"):
        config.settings(tmp_path, {})


# ---- keys ----------------------------------------------------------------------------------------------


def key_file(folder: Path, text: bytes = KEY.encode() + b"\n", mode: int = 0o600) -> Path:
    path = folder / "secret.key"
    path.write_bytes(text)
    path.chmod(mode)
    return path


def test_a_key_comes_from_a_variable_or_a_file(tmp_path: Path) -> None:
    named = read({"mode": "anthropic", "key_env": "MY_KEY"}, None, {"MY_KEY": KEY})
    key_file(tmp_path)
    filed = read({"mode": "anthropic", "key_file": "secret.key"}, tmp_path, {})
    usual = read({"mode": "anthropic"}, None, {"ANTHROPIC_API_KEY": KEY})
    for whole in (named, filed, usual):
        held = whole.choice().secret
        assert held is not None and held.reveal() == KEY
        assert KEY not in repr(whole) + repr(whole.choice()) + str(held) + f"{held!r:s}"
        assert KEY in {secret.reveal() for secret in whole.secrets()}
        assert redactor(whole).text(f"a {KEY} b") == "a [redacted:key] b"
    with pytest.raises(TypeError):
        pickle.dumps(held)


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "anthropic", "base_url": "https://elsewhere.example"},
        {"mode": "openai_compatible", "base_url": "http://127.0.0.1:1/v1"},
        {"mode": "ollama"},
        {"mode": "ollama", "roles": {"": {"base_url": "http://127.0.0.1:2"}}},
    ],
)
def test_the_usual_variable_goes_to_the_makers_address_only(values: dict[str, Any]) -> None:
    held = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    assert read(values, None, held).choice().secret is None


def test_a_key_does_not_go_along_to_another_address() -> None:
    role = {"mode": "openai_compatible", "base_url": "https://b.example/v1"}
    whole = read(
        {"mode": "openai_compatible", "base_url": "https://a.example/v1", "key_env": "MY_KEY"}
        | {"roles": {"coder": role, "same": {"model": "x"}, "other": {"mode": "anthropic"}}},
        None,
        {"MY_KEY": KEY},
    )
    assert whole.choice(role="coder").secret is None
    assert whole.choice(role="other").secret is None and whole.choice(role="other").base_url == ""
    assert whole.choice(role="same").secret == whole.choice().secret == Secret(KEY)


BAD_FILES: list[tuple[bytes, int, str]] = [
    (KEY.encode(), 0o644, "others may read"),
    (KEY.encode(), 0o640, "others may read"),
    (b"", 0o600, "does not hold one key"),
    (b"two words", 0o600, "does not hold one key"),
    (b"two\nlines", 0o600, "does not hold one key"),
    (b"\xff\xfe", 0o600, "cannot be read"),
    (b"x" * 9000, 0o600, "does not hold one key"),
]


@pytest.mark.parametrize(("text", "mode", "said"), BAD_FILES)
def test_a_bad_key_file_is_refused_without_showing_it(
    tmp_path: Path, text: bytes, mode: int, said: str
) -> None:
    whole = read({"mode": "anthropic", "key_file": str(key_file(tmp_path, text, mode))})
    for ask in (whole.choice, whole.secrets):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert caught.value.code == "llm.key_file" and said in caught.value.message
        assert caught.value.__cause__ is None and KEY not in str(caught.value)


def test_a_key_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("gone", "sk-ant-api03-canary0123456789"):  # the second is a key in the wrong place
        with pytest.raises(UnavailableError) as caught:
            read({"mode": "anthropic", "key_file": name}, tmp_path).choice()
        assert caught.value.code == "llm.key_file" and caught.value.hint
        assert "canary" not in caught.value.message


# ---- who answers ---------------------------------------------------------------------------------------


class Fake:
    """A backend that says what it was chosen by."""

    entry = NamedEntry("fake", "for tests")

    def __init__(self, choice: Choice | None) -> None:
        self.choice = choice or Choice()
        self.closed = False

    def check(self) -> None:
        if self.choice.model == "gone":
            raise UnavailableError("llm.unknown_model", "gone")

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        usage = {"input": 1000, "output": 10, "cached": 400}
        return Answer(f"{self.choice.mode}/{self.choice.model}", usage, f"{self.choice.model}-20260101")

    def close(self) -> None:
        self.closed = True


def chooser(values: dict[str, Any], mode: str = "", forced: bool = False) -> Chooser:
    table = dict.fromkeys(("ollama", "anthropic", "openai_compatible"), Fake)
    whole = read(values)
    return Chooser(mode or whole.base.mode, whole, table, load(), forced)


def ask(role: str = "", task: str = "") -> Prompt:
    return Prompt("p", (), role, task=task)


def test_each_prompt_goes_to_its_backend_and_has_its_price() -> None:
    made = chooser(SET)
    plain, review, publish = (
        made.answer(ask()),
        made.answer(ask("reviewer")),
        made.answer(ask(task="publish")),
    )
    assert plain is not None and review is not None and publish is not None
    assert (plain.text, plain.cost_nanousd) == ("ollama/small", 0)
    assert (review.text, review.cost_nanousd) == ("anthropic/claude-haiku-4-5", 600_000 + 40_000 + 50_000)
    # A dated name that the table does not list costs what the name that was asked for costs.
    assert publish.cost_nanousd == 600 * 2500 + 400 * 1250 + 10 * 10_000
    assert made.bound(ask("reviewer"), 1000) == 1000 * 1250 + 4096 * 5000
    assert made.bound(ask(), 1000) == 0
    unknown = chooser({"mode": "anthropic", "model": "no-such"})
    found = unknown.answer(ask())
    assert found is not None and found.cost_nanousd is None and unknown.bound(ask(), 1) is None


@pytest.mark.parametrize("usage", [{}, {"output": 2}, {"input": 2}], ids=str)
def test_an_engine_that_says_no_usage_has_not_told_it(
    monkeypatch: pytest.MonkeyPatch, usage: dict[str, int]
) -> None:
    """What was not said stays absent, and the runner knows that it has to count."""
    said = Answer("seven eight", usage, "m")
    monkeypatch.setattr(Fake, "answer", lambda *_: said)
    found = chooser(SET).answer(ask())
    assert found is not None and found.usage == usage and not found.complete_usage
    monkeypatch.setattr(Fake, "answer", lambda *_: replace(said, usage={"input": 5, "output": 1}))
    whole = chooser(SET).answer(ask())
    assert whole is not None and whole.complete_usage


def test_all_that_is_named_is_checked_before_a_run() -> None:
    chooser(SET).check()
    with pytest.raises(UnavailableError, match="gone"):
        chooser({**SET, "tasks": {"t": {"model": "gone"}}}).check()
    with pytest.raises(UnavailableError) as caught:
        chooser({**SET, "roles": {"r": {"mode": "nowhere"}}}).check()
    assert caught.value.code == "unavailable.backend"
    chooser({**SET, "roles": {"r": {"mode": "anthropic", "model": "gone"}}}, "ollama", True).check()


def test_a_chooser_gives_back_what_its_backends_hold() -> None:
    made = chooser(SET)
    made.answer(ask())
    held = [backend for _, backend in made._made]
    made.close()
    assert held and all(backend.closed for backend in held if isinstance(backend, Fake))


def test_a_person_answers_later() -> None:
    made = open_backend("manual", LlmSettings())
    made.check()
    assert made.answer(ask()) is None and made.entry.name == "manual"
    assert replace(made.choice(ask()), folder=Path()).mode == "manual"
