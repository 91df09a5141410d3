"""Calls of the local backend without an engine: what ends a wait for one, what is said of one that died."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from spak.errors import SpakError
from spak.llm import http, local
from spak.llm.local import Local
from spak.llm.settings import Choice
from spak.ports import Prompt


@pytest.mark.parametrize(("timeout_s", "code"), [(60.0, "llm.cancelled"), (0.2, "llm.timeout")])
def test_a_call_that_waits_for_another_to_load_its_model_ends(
    tmp_path: Path, timeout_s: float, code: str
) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    made, cancel = Local(Choice(mode="local", model="m.gguf", folder=tmp_path)), threading.Event()
    made.check = lambda: None  # type: ignore[method-assign]
    if code == "llm.cancelled":
        cancel.set()
    started = time.monotonic()
    with local._lock, pytest.raises(SpakError) as caught:
        made.answer(Prompt("p", (), timeout_s=timeout_s), cancel=cancel)
    assert caught.value.code == code and time.monotonic() - started < 20


def test_an_engine_that_died_is_not_the_users_to_start() -> None:
    import httpx

    gone = Choice(mode="local", base_url="http://127.0.0.1:1/v1")
    trouble = http.broken(gone, httpx.ConnectError("refused"))
    assert trouble.code == "llm.unreachable" and "spak resume" in trouble.hint
