"""One call of a model from outside: its time limit, its cancellation, its retries, its text as it comes.

`ask` runs one attempt after another in an event loop of a thread of its own and waits in the calling thread,
so that a call ends within a second when it is cancelled or interrupted, whatever the other side does: the
attempt is cancelled there, which closes its connection. Backends give an attempt (a coroutine function) and
say by `Trouble` whether another one may help. Nothing here knows a wire format.
"""

from __future__ import annotations

import asyncio
import queue
import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import nan
from typing import Any

from spak.cancel import Cancel
from spak.errors import RunError, UnavailableError
from spak.llm.settings import Choice
from spak.ports import Answer, Finish, Prompt

POLL_S = 0.05
BACKOFF_S = 0.5
MOST_BACKOFF_S = 20.0
MOST_RETRY_AFTER_S = 60.0
"""A server that asks for a longer pause than this is asked again after this."""
MAX_NAME = 200
"""Characters of a model's name."""
MAX_BYTES = 8 << 20
"""The longest reply, as bytes on the wire; what is longer is no answer."""

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses of HTTP below 500 after which a request is sent again: too early, too often (429), in conflict."""

Put = Callable[[str], None]


def is_retried(status: int) -> bool:
    """Whether a request that was answered with this status is sent again."""
    return status in RETRIED or status >= 500


def pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that Retry-After asks for, as a number or a date; None when it says nothing readable."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None


class Trouble(Exception):
    """An attempt that failed: a code, a sentence, a hint, and whether to try again (after `wait_s`)."""

    def __init__(
        self, code: str, message: str, hint: str = "", retry: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retry = retry
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine gave: the whole text and what it said about it."""

    text: str
    finish: Finish = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    logprobs: tuple[float, ...] | None = None


Attempt = Callable[[Put], Awaitable[Reply]]


def ask(
    attempt: Attempt,
    prompt: Prompt,
    choice: Choice,
    params: Mapping[str, Any],
    on_text: Callable[[str], None] | None = None,
    cancel: Cancel | None = None,
) -> Answer:
    """The answer of the first attempt that works.

    Raises: UnavailableError with the last attempt's code, or `llm.timeout`; RunError `llm.cancelled`.
    """
    limit_s = prompt.timeout_s or choice.timeout_s
    started = time.monotonic()
    reply, tries = _wait(attempt, choice.retries, limit_s, on_text, cancel)
    return Answer(
        text=well_formed(reply.text),
        usage=reply.usage,
        model=_name(reply.model) or prompt.model or choice.model,
        params=params,
        finish=reply.finish,
        latency_ms=int((time.monotonic() - started) * 1000),
        logprobs=reply.logprobs,
        tries=tries,
    )


def well_formed(text: str) -> str:
    """The text with halves of surrogate pairs joined or replaced: no record could hold them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _name(model: str) -> str:
    """A model's name as an engine says it: one short printable line."""
    return "".join(letter if letter.isprintable() else "?" for letter in model[:MAX_NAME])


def logprobs(listed: Any) -> list[float]:
    """The numbers in a list of `{"logprob": number}`; what is none there, or too large, is NaN: not known."""
    items = listed if isinstance(listed, list) else []
    return [_number(item.get("logprob")) for item in items if isinstance(item, dict)]


def _number(value: Any) -> float:
    fits = type(value) in (int, float) and abs(value) < 1 << 40
    return float(value) if fits else nan


def tokens(**counts: Any) -> Mapping[str, int]:
    """Those counts that an engine really gave; a JSON value of another kind, or beyond reason, is none."""
    return {
        name: value
        for name, value in counts.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    }


def _wait(
    attempt: Attempt,
    retries: int,
    limit_s: float,
    on_text: Callable[[str], None] | None,
    cancel: Cancel | None,
) -> tuple[Reply, int]:
    """Start the attempts in a thread, hand on what they say, end them when it is time."""
    pieces: queue.SimpleQueue[str | _End] = queue.SimpleQueue()
    worker = _Worker(attempt, retries, limit_s, pieces)
    worker.start()
    deadline = time.monotonic() + limit_s
    try:
        while True:
            if cancel is not None and cancel.is_set():
                raise RunError(
                    "llm.cancelled", "the call of the model was cancelled", "spak resume continues it"
                )
            if time.monotonic() >= deadline:
                raise UnavailableError(
                    "llm.timeout",
                    f"no complete answer within {limit_s:g} s",
                    "raise [llm] timeout_s, or ask for less",
                )
            try:
                item = pieces.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if isinstance(item, _End):
                return item.result()
            if on_text is not None:
                on_text(item)
    finally:
        worker.stop()


@dataclass(frozen=True, slots=True)
class _End:
    """How the attempts ended."""

    reply: Reply | None = None
    tries: int = 0
    error: BaseException | None = None

    def result(self) -> tuple[Reply, int]:
        if self.reply is not None:
            return self.reply, self.tries
        error = self.error
        if isinstance(error, Trouble):
            tried = f", tried {self.tries} times" if self.tries > 1 else ""
            raise UnavailableError(error.code, f"{error.message}{tried}", error.hint) from None
        assert error is not None
        raise error


class _Worker:
    """The thread with the event loop that the attempts run in."""

    def __init__(
        self, attempt: Attempt, retries: int, limit_s: float, pieces: queue.SimpleQueue[str | _End]
    ) -> None:
        self._attempt = attempt
        self._retries = retries
        self._limit_s = limit_s
        self._pieces = pieces
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="spak-llm", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Cancel what still runs; does not wait for what cannot be cancelled, such as a name look-up."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop has ended and is closed
            pass
        self._thread.join(0.8)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._task = self._loop.create_task(self._attempts())
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _attempts(self) -> None:
        tries, end, spoke = 0, time.monotonic() + self._limit_s, False

        def put(text: str) -> None:
            nonlocal spoke
            if text:
                spoke = True
                self._pieces.put(well_formed(text))

        while True:
            tries += 1
            try:
                reply = await self._attempt(put)
            except Trouble as trouble:
                pause = self._pause(trouble, tries)
                if pause is None or time.monotonic() + pause >= end:
                    self._pieces.put(_End(tries=tries, error=trouble))
                    return
            except BaseException as error:
                self._pieces.put(_End(tries=tries, error=error))
                if isinstance(error, asyncio.CancelledError):
                    raise
                return
            else:
                self._pieces.put(_End(reply, tries))
                return
            await asyncio.sleep(pause)
            if spoke:
                self._pieces.put("")
                spoke = False

    def _pause(self, trouble: Trouble, tries: int) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        if not trouble.retry or tries > self._retries:
            return None
        if trouble.wait_s is not None:
            return min(trouble.wait_s, MOST_RETRY_AFTER_S)
        most: float = min(BACKOFF_S * 2 ** min(tries - 1, 10), MOST_BACKOFF_S)
        return most * random.uniform(0.5, 1.0)
