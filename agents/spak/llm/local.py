"""A GGUF model on this machine through xllamacpp, in a child process that serves it; masks by the schema.

The model is a file (`model = "path/to/model.gguf"`) or one that `spak models pull-local` fetched (its name,
or nothing). The child is started at the first call and shared by all calls of this process with the same
file, window and threads; it ends with this process, and one that dies in a call is started again, once. One
thread by default: beside busy work two are slower than one. Log-probabilities are recorded unless
`logprobs = false`.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from spak.cancel import Cancel
from spak.errors import RunError, UnavailableError
from spak.inputs import open_input
from spak.lang.catalog import NamedEntry
from spak.llm.openai_compatible import OpenAICompatible
from spak.llm.pull import DEFAULT, PULLABLE, held
from spak.llm.settings import LOCAL_WINDOW, Choice
from spak.ports import Answer, Prompt
from spak.secrets.secret import Secret

POLL_S = 0.05


class Local:
    """A model file on this machine, in a server process of our own."""

    entry = NamedEntry("local", "a GGUF model on this machine, through xllamacpp")

    def __init__(self, choice: Choice | None = None) -> None:
        self.choice = choice or Choice(mode="local")

    def check(self) -> None:
        """Raises: UnavailableError `llm.extra`, `llm.no_weights`, `llm.weights`."""
        if find_spec("xllamacpp") is None:
            raise UnavailableError(
                "llm.extra",
                "the package xllamacpp is not installed",
                "pip install 'spak[local]', or make setup in a clone",
            )
        self._file("")

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        self.check()
        path, name = self._file(prompt.model)
        limit_s = prompt.timeout_s or self.choice.timeout_s
        started = time.monotonic()
        key = _Key(path, name, self.choice.window or LOCAL_WINDOW, self.choice.threads or 1)
        deadline = started + limit_s
        served = _served(key, deadline, cancel)
        try:
            answer = self._asked(served, prompt, name, deadline, on_text, cancel)
        except UnavailableError:
            if _lives(served.process):
                raise
            if on_text is not None:
                on_text("")  # the engine has died: what it said is void
            answer = self._asked(_served(key, deadline, cancel), prompt, name, deadline, on_text, cancel)
        return replace(answer, latency_ms=int((time.monotonic() - started) * 1000))

    def _asked(
        self,
        served: _Served,
        prompt: Prompt,
        name: str,
        deadline: float,
        on_text: Callable[[str], None] | None,
        cancel: Cancel | None,
    ) -> Answer:
        inner = OpenAICompatible(
            replace(
                self.choice,
                base_url=f"{served.url}/v1",
                secret=served.secret,
                key_env="",
                key_file="",
                model=name,
                logprobs=self.choice.logprobs is not False,
            )
        )
        left = max(0.1, deadline - time.monotonic())
        return inner.answer(replace(prompt, model=name, timeout_s=left), on_text, cancel)

    def close(self) -> None:
        """Ends nothing: the child serves all of this process and ends with it (`close_all`)."""

    def _file(self, model: str) -> tuple[Path, str]:
        """The model's file and the name it answers to, which is never a path."""
        name = model or self.choice.model or DEFAULT
        path = held(self.choice.cache, name) if name in PULLABLE else self.choice.path(name)
        try:
            with open_input(path) as file:
                magic = file.read(4)
        except OSError as error:
            mend = "spak models pull-local" if name in PULLABLE else "[llm] model names a .gguf file"
            raise UnavailableError(
                "llm.no_weights", f"the model {name} is not installed: {error.strerror}", mend
            ) from None
        if magic != b"GGUF":
            raise UnavailableError("llm.weights", f"{path} is not a GGUF file", "fetch it again")
        return path, name if name in PULLABLE else path.stem


@dataclass(frozen=True, slots=True)
class _Key:
    path: Path
    name: str
    window: int
    threads: int


@dataclass(frozen=True, slots=True)
class _Served:
    process: subprocess.Popen[bytes]
    url: str
    secret: Secret


_held: dict[_Key, _Served] = {}
_lock = threading.Lock()


def close_all() -> None:
    """End every child that this process started."""
    with _lock:
        for served in _held.values():
            _end(served.process)
        _held.clear()


atexit.register(close_all)


def _served(key: _Key, deadline: float, cancel: Cancel | None) -> _Served:
    """The child that serves a model, started if there is none that lives.

    Raises: UnavailableError `llm.unreachable`, `llm.timeout`; RunError `llm.cancelled`.
    """
    while not _lock.acquire(timeout=POLL_S):  # another call may be loading a model
        _must_go_on(key, deadline, cancel)
    try:
        found = _held.get(key)
        if found is not None and found.process.poll() is None:
            return found
        if found is not None:
            _end(found.process)
        _held[key] = _start(key, deadline, cancel)
        return _held[key]
    finally:
        _lock.release()


def _must_go_on(key: _Key, deadline: float, cancel: Cancel | None) -> None:
    """Raises: UnavailableError `llm.timeout`; RunError `llm.cancelled`."""
    if cancel is not None and cancel.is_set():
        raise RunError("llm.cancelled", "the call of the model was cancelled", "spak resume continues it")
    if time.monotonic() > deadline:
        raise UnavailableError("llm.timeout", f"{key.name} was not loaded in time", "raise [llm] timeout_s")


def _start(key: _Key, deadline: float, cancel: Cancel | None) -> _Served:
    token = secrets.token_urlsafe(24)
    argv = [sys.executable, "-m", "spak.llm.local_server"]
    argv += [str(key.path), str(key.window), str(key.threads), key.name]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(token.encode() + b"\n")
        process.stdin.flush()
        url = _url(process, key, deadline, cancel)
    except BaseException:
        _end(process)
        raise
    return _Served(process, url, Secret(token))


def _url(process: subprocess.Popen[bytes], key: _Key, deadline: float, cancel: Cancel | None) -> str:
    """What the child prints when its model is loaded; anything else it prints is the engine's talk."""
    assert process.stdout is not None
    descriptor, seen = process.stdout.fileno(), b""
    while True:
        _must_go_on(key, deadline, cancel)
        if not select.select([descriptor], [], [], POLL_S)[0]:
            continue
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            raise UnavailableError(
                "llm.unreachable",
                f"the engine could not load {key.name} with a window of {key.window} tokens",
                "is the file complete, and is there enough memory? [llm] window makes it smaller",
            )
        seen += chunk
        *lines, seen = seen.split(b"\n")
        for line in lines:
            if line.startswith(b'{"url"'):
                return str(json.loads(line)["url"])


def _lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether it goes on; one whose connections have just closed gets a moment to end."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
