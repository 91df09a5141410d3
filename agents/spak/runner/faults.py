"""Faults of the host, which are no outcome of a tool: nothing is recorded, and the effect stays pending.

Takes what is there after an effect that failed; raises when the host may be to blame. It decides nothing
about the run. What such a fault is `spak.files.faults` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from spak.cancel import Cancel, sleep
from spak.errors import RunError, UnavailableError
from spak.files.disk import has_room, short_of
from spak.files.faults import FULL, is_fault, named, starting
from spak.ports import Launcher, Measurement, ToolResult

_Result = TypeVar("_Result")

REPEATS, PAUSE_S = 3, 0.5
"""So often a step is done again that says that a disk is full while the host's has room, and after how long.
One that says it each time has a small disk of its own, and that is its outcome."""


TRIED_S = 60.0
"""For so long a launcher that worked is not tried again before a run begins: each try starts a sandbox."""

_worked: dict[object, float] = {}
"""When each kind of launcher was tried and worked, by what tried it."""


class NamesFull(Exception):
    """A step said that a disk is full, and there is room by now."""


def done(work: Callable[[bool], _Result], cancel: Cancel | None) -> _Result:
    """The result of a step, which is done again while it raises NamesFull; `work` is told when it may not
    any more."""
    for _ in range(REPEATS):
        try:
            return work(False)
        except NamesFull:
            sleep(PAUSE_S, cancel)
    return work(True)


def look(
    launcher: Launcher | None, sandboxed: bool, result: ToolResult, folder: Path, last: bool = True
) -> None:
    """After a tool. Raises: UnavailableError `unavailable.sandbox`, `unavailable.host`, RunError
    `workspace.full`; NamesFull unless it is the `last` time."""
    if result.status == "exited" and not result.exit:
        return
    text = result.output.decode("utf-8", "replace") if sandboxed else ""
    if sandboxed and result.status in ("launcher", "crash"):
        if result.status == "launcher":
            must_have_started(text)
        must_work(launcher)
    messages = _lines(result.diagnostics, "message") if sandboxed else ""
    must_have_room(folder, text + messages, last)


def look_at_measurement(seen: Measurement, folder: Path, last: bool = True) -> None:
    """After a validator. Raises: RunError `workspace.full`, UnavailableError `unavailable.host`; NamesFull
    unless it is the `last` time."""
    bad = [check for check in seen.checks if not check.get("ok")]
    if not bad and seen.status not in ("void", "unavailable", "timeout"):
        return
    must_have_started(_lines(bad, "detail", code="launcher"))
    must_have_room(folder, _lines(bad, "detail") + _lines(seen.diagnostics, "message"), last)


def must_work(launcher: Launcher | None) -> None:
    """Raises: UnavailableError `unavailable.sandbox`, `unavailable.host` where it cannot start anything."""
    if launcher is not None and (error := fault_of(launcher)):
        raise error


def fault_before(launcher: Launcher) -> UnavailableError | None:
    """Why a launcher does not work, before a run begins. If a job then does not start, `look` tries again."""
    tried, now = (type(launcher), type(launcher).probe), time.monotonic()
    if now - _worked.get(tried, -TRIED_S) < TRIED_S:
        return None
    if (error := fault_of(launcher)) is None:
        _worked[tried] = now
    return error


def fault_of(launcher: Launcher) -> UnavailableError | None:
    """Why a launcher does not work here; a lack of something that it met is no verdict on it."""
    name = launcher.entry.name
    try:
        why = launcher.probe()
    except (OSError, RuntimeError, MemoryError) as error:
        if not is_fault(error):
            raise
        why_not = getattr(error, "strerror", "") or type(error).__name__
        return short_of(f"the launcher {name} was not tried: {why_not}")
    if lacking := starting(why):
        return short_of(f"the launcher {name} did not start: {lacking}")
    return (
        UnavailableError("unavailable.sandbox", f"the launcher {name} does not work here", why)
        if why
        else None
    )


def must_have_started(text: str) -> None:
    """What a sandbox that did not start said of it. Raises: UnavailableError `unavailable.host`."""
    if lacking := starting(text):
        raise short_of(f"the sandbox did not start: {lacking}")


def must_have_room(folder: Path, text: str = "", last: bool = True) -> None:
    """What failed while the disk is full may have failed for that.

    Raises: RunError `workspace.full`; NamesFull unless it is the `last` time.
    """
    if not has_room(folder):
        raise RunError(
            "workspace.full",
            "a step failed while the disk is full",
            "free some space and continue with `spak resume`; the step is done again",
        )
    if not last and named(text, FULL):
        raise NamesFull


def _lines(items: Iterable[Mapping[str, Any]], name: str, code: str = "") -> str:
    return "".join(f"\n{item.get(name, '')}" for item in items if not code or item.get("code") == code)
