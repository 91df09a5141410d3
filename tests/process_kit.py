"""Processes that tests start, and waiting for what they do.

A test waits for a condition, not for a time. `WAIT_S` is far more than anything takes on a slow and busy
machine: only a test that fails waits so long. `start` is `subprocess.Popen` in a session of its own, so that
Ctrl+C in the terminal reaches pytest alone. A test that leaves one running fails, and its whole process group
is killed; the hooks at the end do that.

Children have the default signal handlers, also when pytest itself was started with signals ignored (`nohup`,
`command &` in a script, some CI): see `handle_ignored_signals`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import pytest

import warm_kit
from warm_kit import Forked

WAIT_S = 240.0
STOPS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)

started: list[subprocess.Popen[Any] | Forked] = []
"""In order, ended ones too."""
of_fixtures: list[subprocess.Popen[Any] | Forked] = []
"""Those that a fixture ends."""


def handle_ignored_signals() -> None:
    """Replace "ignored" by a handler that does nothing.

    This process goes on ignoring the signal, but a program that it starts does not: `exec` keeps ignored
    signals ignored and resets handled ones to the default.
    """
    for number in STOPS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _nothing)


def _nothing(*ignored: object) -> None:
    pass


def start(
    command: Sequence[str],
    *,
    instead_of: subprocess.Popen[Any] | None = None,
    of_fixture: bool = False,
    **options: Any,
) -> subprocess.Popen[Any]:
    """A child that is ended with the test.

    `instead_of` one of a fixture it is that fixture's too; `of_fixture` leaves it to the fixture to end it.
    """
    return _kept(subprocess.Popen(command, start_new_session=True, **options), instead_of, of_fixture)


def start_warm(
    args: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    output: IO[Any],
    instead_of: Any = None,
    of_fixture: bool = False,
) -> Forked:
    """`python ARGS` as `start` has it, forked from the warm process: no input, all its words in a file."""
    return _kept(warm_kit.begin(args, cwd=cwd, env=env, output=output), instead_of, of_fixture)


Process = TypeVar("Process", subprocess.Popen[Any], Forked)


def _kept(process: Process, instead_of: Any, of_fixture: bool) -> Process:
    if of_fixture:
        of_fixtures.append(process)
    elif instead_of in started:
        started[started.index(instead_of)] = process
    else:
        started.append(process)
    return process


def end_since(count: int) -> list[str]:
    """Kill what was started after the first `count` processes and still runs; its command lines."""
    left = [process for process in started[count:] if process.poll() is None]
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for process in started[count:]:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
    return [" ".join(map(str, process.args)) for process in left]


def happens(seen: Callable[[], object], within_s: float = WAIT_S) -> bool:
    """Whether it is seen in time."""
    ends = time.monotonic() + within_s
    while not seen():
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def until(seen: Callable[[], object], words: Callable[[], object] | str = "it did not happen") -> None:
    """Wait until it is seen. Raises: AssertionError with the words when it is not."""
    assert happens(seen), words() if callable(words) else words


# ---- hooks of pytest


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("dist", "no") == "no":  # runs tests itself, as each worker of pytest-xdist does
        handle_ignored_signals()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """What fixtures have started before, they end themselves."""
    count = len(started)
    try:
        yield
    except BaseException:
        end_since(count)
        raise
    left = end_since(count)
    assert not left, f"the test left running: {left}"


def pytest_sessionfinish() -> None:
    started.extend(of_fixtures)
    end_since(0)
