"""Launchers: where tools and measurements run, and the table that lists them.

One module per kind; `LAUNCHERS` maps the name that a spec uses to what makes the launcher. Making one raises
UnavailableError where it is not installed; `describe` turns that into a row for `spak doctor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spak.errors import UnavailableError
from spak.ports import Launcher
from spak.sandbox.docker import Docker, GVisor
from spak.sandbox.gpu import Gpu
from spak.sandbox.restricted import Restricted

LAUNCHERS: dict[str, Callable[[], Launcher]] = {
    "restricted": Restricted,
    "docker": Docker,
    "gpu": Gpu,
    "gvisor": GVisor,
}

__all__ = ["LAUNCHERS", "Docker", "GVisor", "Gpu", "Restricted", "describe"]


def describe(names: Iterable[str] = LAUNCHERS) -> list[dict[str, str | bool]]:
    """Each launcher, whether it works here, what is in force, and the command that mends what does not."""
    return [_row(name, LAUNCHERS[name]) for name in names]


def _row(name: str, make: Callable[[], Launcher]) -> dict[str, str | bool]:
    try:
        launcher = make()
    except UnavailableError as error:
        return {"launcher": name, "ok": False, "detail": error.message, "mend": error.hint}
    fault, _, mend = launcher.probe().partition("; to fix: ")
    if fault:
        return {"launcher": name, "ok": False, "detail": fault, "mend": mend}
    about = launcher.describe() if isinstance(launcher, Restricted | Docker) else launcher.entry.summary
    return {"launcher": name, "ok": True, "detail": about, "mend": ""}
