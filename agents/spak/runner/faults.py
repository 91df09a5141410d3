"""Faults of the host, which are no outcome of a tool: nothing is recorded, and the effect stays pending.

Takes what is there after an effect that failed; raises when the host may be to blame. It decides nothing
about the run.
"""

from __future__ import annotations

from pathlib import Path

from spak.errors import RunError, UnavailableError
from spak.files.disk import has_room
from spak.ports import Launcher, Measurement, ToolResult

OF_HOST = frozenset({"workspace.full", "workspace.io", "workspace.readonly"})
"""Errors of a commit for which no tool is to blame."""


def look(launcher: Launcher | None, sandboxed: bool, result: ToolResult, folder: Path) -> None:
    """After a tool. Raises: UnavailableError `unavailable.sandbox`, RunError `workspace.full`."""
    if sandboxed and result.status in ("launcher", "crash"):
        must_work(launcher)
    if result.status != "exited" or result.exit:
        _must_have_room(folder)


def look_at_measurement(seen: Measurement, folder: Path) -> None:
    """After a validator. Raises: RunError `workspace.full`."""
    if seen.status in ("void", "unavailable", "timeout") or not all(check.get("ok") for check in seen.checks):
        _must_have_room(folder)


def must_work(launcher: Launcher | None) -> None:
    """Raises: UnavailableError `unavailable.sandbox` where it cannot start anything."""
    if launcher is not None and (why := launcher.probe()):
        raise UnavailableError(
            "unavailable.sandbox", f"the launcher {launcher.entry.name} does not work any more: {why}"
        )


def _must_have_room(folder: Path) -> None:
    """What failed while the disk is full may have failed for that."""
    if not has_room(folder):
        raise RunError(
            "workspace.full",
            "a step failed while the disk is full",
            "free some space and continue with `spak resume`; the step is done again",
        )
