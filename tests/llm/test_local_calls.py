"""Calls of the local backend without an engine: what ends a wait for one, what is said of one that died."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from llm_stub import TEXT, Stub
from spak.errors import SpakError
from spak.llm import http, local
from spak.llm.local import Local
from spak.llm.settings import Choice
from spak.ports import Prompt
from spak.secrets.secret import Secret


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Local:
    """The backend, with a file for a model and its package taken for installed."""
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(Local, "check", lambda self: None)
    monkeypatch.setattr(local, "_held", {})
    return Local(Choice(mode="local", model="m.gguf", folder=tmp_path, retries=0))


@pytest.mark.parametrize(("timeout_s", "code"), [(1000.0, "llm.cancelled"), (0.2, "llm.timeout")])
def test_a_call_that_waits_for_another_to_load_its_model_ends(
    made: Local, timeout_s: float, code: str
) -> None:
    cancel = threading.Event()
    if code == "llm.cancelled":
        cancel.set()
    with local._lock, pytest.raises(SpakError) as caught:
        made.answer(Prompt("p", (), timeout_s=timeout_s), cancel=cancel)
    assert caught.value.code == code


def test_an_engine_that_died_is_not_the_users_to_start() -> None:
    import httpx

    gone = Choice(mode="local", base_url="http://127.0.0.1:1/v1")
    trouble = http.broken(gone, httpx.ConnectError("refused"))
    assert trouble.code == "llm.unreachable" and "spak resume" in trouble.hint


@pytest.mark.parametrize("deaths", [1, 2])
def test_an_engine_that_dies_in_an_answer_is_started_again_once(
    made: Local, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    started: list[str] = []

    def start(*_: object) -> local._Served:
        started.append(words[len(started)])
        alive = started[-1] == "ok"
        process = subprocess.Popen(["sleep", "60"] if alive else ["true"], stdin=subprocess.PIPE)
        if not alive:
            process.wait()
        return local._Served(process, stub.url, Secret("key-of-the-child"))

    words = ["cut"] * deaths + ["ok"]
    monkeypatch.setattr(local, "_start", start)
    pieces: list[str] = []
    with Stub() as stub:
        stub.script = list(words)
        try:
            if deaths == 1:
                assert made.answer(Prompt("p", ()), pieces.append).text == TEXT
                assert pieces.count("") == 1 and "".join(pieces[pieces.index("") :]) == TEXT
            else:
                with pytest.raises(SpakError) as caught:
                    made.answer(Prompt("p", ()), pieces.append)
                assert caught.value.code == "llm.cut"
        finally:
            local.close_all()
    assert len(started) == 2
