"""Cancelling work: a token that is handed down to whoever waits or computes.

Whoever wants the work to stop sets the token, from any thread or a signal handler. Whoever does the work
looks at it at least every TURN_S seconds, ends what it has started, and raises Cancelled in its own thread;
nobody raises anything in another's (docs/adr/0034). What cannot look, because it waits inside a library, is
done `apart`. Takes and gives no data of a run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

_Result = TypeVar("_Result")

TURN_S = 0.1
"""The longest that anybody waits without looking at the token."""


class Cancelled(BaseException):
    """The work was cancelled before it had an outcome. No handler of ordinary errors takes it for one."""


class Cancel(Protocol):
    """What tells work to stop; `threading.Event` is one."""

    def is_set(self) -> bool:
        """Whether the work is to stop."""


class Token:
    """A Cancel without a lock, so that a signal handler may set it whatever it has interrupted."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Cancel the work; idempotent, and there is no way back."""
        self._set = True

    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._set


class AnyOf:
    """A Cancel that is set when one of several is."""

    def __init__(self, tokens: Iterable[Cancel]) -> None:
        self._tokens = tuple(tokens)

    def is_set(self) -> bool:
        """Whether one of them is."""
        return any(token.is_set() for token in self._tokens)


def check(cancel: Cancel | None) -> None:
    """Raises: Cancelled when the token is set; a missing one never is."""
    if cancel is not None and cancel.is_set():
        raise Cancelled


def sleep(seconds: float, cancel: Cancel | None) -> None:
    """Wait so long. Raises: Cancelled, at once when it is set before."""
    ends = time.monotonic() + seconds
    while True:
        check(cancel)
        left = ends - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, TURN_S))


def apart(
    work: Callable[[], _Result],
    cancel: Cancel | None,
    *,
    late: Callable[[_Result], None] = lambda result: None,
    limit_s: float | None = None,
) -> _Result:
    """The result of work that cannot look at a token, done in a thread of its own.

    Cancelled, or after `limit_s` seconds, the thread is left to itself; what it still comes to is given to
    `late`, in that thread. Raises: what the work raises; Cancelled; TimeoutError after `limit_s`.
    """
    check(cancel)
    done, guard = threading.Event(), threading.Lock()
    results: list[_Result] = []
    errors: list[BaseException] = []
    left = False

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            errors.append(error)
        else:
            with guard:
                results.append(result)
                gone = left
            if gone:
                late(result)
        finally:
            done.set()

    threading.Thread(target=run, name="spak-apart", daemon=True).start()
    ends = None if limit_s is None else time.monotonic() + limit_s
    try:
        while not done.wait(TURN_S):
            check(cancel)
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError
    except BaseException:
        with guard:
            left, came = True, bool(results)
        if came:
            late(results[0])
        raise
    if errors:
        raise errors[0]
    return results[0]
