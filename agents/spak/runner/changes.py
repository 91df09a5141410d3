"""What a tool changed in the workspace, taken into its root or rolled back.

`Writing` is for one call of a tool within a transaction of the workspace; `Reading` for a tool that may not
write, and does nothing. Both take the call before it starts and the body of its act after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from spak import paths
from spak.errors import UserError
from spak.files import beneath
from spak.kernel.outcomes import CONTROL, REPOSITORY, SETTINGS
from spak.policy import control_files
from spak.policy import repository as opened
from spak.ports import Blobs, Call
from spak.runner import faults
from spak.tools.git import nested, repository
from spak.workspace import Workspace

WHY = 300
"""Characters of the reason that R4 and the record hold."""


class Step(Protocol):
    """What happens to the workspace around one call of a tool."""

    def started(self, call: Call) -> Call:
        """Right before the tool is started: the call as it gets it. Raises when it must not be started."""

    def take(self, body: dict[str, Any]) -> None:
        """The tool ended by itself: add to the body of its act what became of its changes."""


class Reading:
    """A tool that may not write: there is nothing to take."""

    def started(self, call: Call) -> Call:
        """The call as it is: what only reads needs no transaction."""
        return call

    def take(self, body: dict[str, Any]) -> None:
        """Nothing changed."""


@dataclass(slots=True)
class Writing:
    """A tool that may write, within a transaction of the workspace: what is not taken is rolled back."""

    workspace: Workspace
    blobs: Blobs
    confirm: Callable[[], None]
    """Raises when the run is somebody else's now."""
    clean: Callable[[Any], Any]
    """The value without secrets."""
    may_change: Callable[[], bool] = lambda: True
    """Whether the call may change files that say what is run; asked when it did."""
    _call: Call | None = None
    _before: repository.Before | None = None

    def started(self, call: Call) -> Call:
        """Looks at the repository where the tool may change it, then confirms the lease: locks were waited
        for, and snapshots take time. Raises: LedgerError `ledger.lost_lease`."""
        opening = opened.opening(call.tool, call.args)
        if opening is not None:
            self._before = repository.before(call, opening)
        self._call = call
        self.confirm()
        return call if opening is None else replace(call, repository=True)

    def take(self, body: dict[str, Any]) -> None:
        """Commit the step; R3 goes into the body, or why the step was undone: it must not have changed the
        repository (ADR 0022) or the settings of later runs, or left too much.

        Raises: RunError for a fault of the host: no tool is to blame for it.
        """
        try:
            body["r3"] = self.workspace.commit()
            touched = self.workspace.touched()
            why = ""
            near = nested.near(touched) if touched else []
            moved = nested.moved(self.workspace.directory, near) if near else ()
            if touched and (moved or _in_git(self.workspace, touched)):
                with self.workspace.lock():
                    why = self._trouble(touched)
            if near and not why:
                why = nested.trouble(self.workspace.directory, near, self.workspace.existed)
        except UserError as error:
            if error.code in faults.OF_HOST:
                raise
            _undo(self.workspace, body, {"outcome": "limit", "code": error.code})
            return
        code = REPOSITORY
        if not why and (settings := _of_settings(self.workspace, touched)):
            code, why = SETTINGS, f"{settings} was changed"
        if not why and (control := self._control(touched, near)):
            code, why = CONTROL, f"{control} was changed"
        if why:
            body["why"] = str(self.clean(why))[:WHY]
            _undo(self.workspace, body, {"outcome": "invalid", "code": code})
            return
        if touched and all(map(repository.within, touched)):
            body["only_git"] = True
        if self.workspace.travels:
            self.workspace.push(body["r3"], self.blobs)

    def _control(self, touched: Sequence[str], near: Sequence[str]) -> str:
        """A file that says what is run and that this call may not change; else empty."""
        call = self._call
        assert call is not None
        own = {path for path in near if nested.of_repository(self.workspace.directory, path)}
        place, before = self.workspace.directory, self.workspace.before
        found = control_files.unpermitted(
            call.tool,
            call.args,
            _reached(place, (path for path in touched if path not in own)),
            self.workspace.existed,
            lambda path: not os.path.lexists(place / path),
            lambda path: control_files.same_words(before(path), _own_content(place, path), path),
            lambda path: nested.holds(place, path),
        )
        return "" if found and self.may_change() else found

    def _trouble(self, paths: Sequence[str]) -> str:
        """Why a change of `.git` must be rolled back; empty when it may be kept."""
        assert self._call is not None
        looking = replace(self._call, inherit=())
        found = repository.trouble(looking, self._before, paths, self.workspace.before)
        return str(self.clean(found))


def _own_content(place: Path, path: str) -> bytes | None:
    """What a file holds; None where a link leads to it, since its target may be written later."""
    itself = Path(os.path.realpath(place / path)) == Path(os.path.realpath(place)) / path
    return beneath.content(place, path) if itself else None


def _reached(place: Path, touched: Iterable[str]) -> Iterator[str]:
    """The paths, and what a link to a folder makes of its name: a package that Python imports."""
    for path in touched:
        yield path
        found = place / path
        if found.is_symlink() and found.is_dir():
            yield f"{path}/__init__.py"


def _in_git(workspace: Workspace, touched: Sequence[str]) -> bool:
    places = repository.places(workspace.directory)
    return any(repository.within(path, places) for path in touched)


def _of_settings(workspace: Workspace, touched: Sequence[str]) -> str:
    """A changed file of settings in a folder that is no copy: a later run would read it. Else empty."""
    if not workspace.in_place:
        return ""
    root = workspace.directory.resolve()
    linked = (root / paths.SETTINGS).resolve()
    return next((path for path in touched if _is_settings(path) or root / path == linked), "")


def _is_settings(path: str) -> bool:
    """Also as a file system without case would have it."""
    return path.rpartition("/")[2].casefold() == paths.SETTINGS


def _undo(workspace: Workspace, body: dict[str, Any], outcome: Mapping[str, str]) -> None:
    workspace.rollback()
    body |= outcome
    body.pop("r3", None)
    del body["exit"]
