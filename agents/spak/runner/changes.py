"""What a tool changed in the workspace, taken into its root or rolled back.

`Writing` is for one call of a tool within a transaction of the workspace; `Reading` for a tool that may not
write, and does nothing. Both take the call before it starts and the body of its act after it.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from spak.errors import UserError
from spak.files import beneath
from spak.files.faults import is_fault
from spak.kernel.outcomes import CONTROL, EMPTIED
from spak.policy import control_files
from spak.ports import Blobs, Call
from spak.tools.git import nested
from spak.workspace import Workspace
from spak.workspace.tree import Node, links

WHY = 300
"""Characters of the reason that R4 and the record hold."""
MOST_LINKED = 20_000
"""Files and folders that are looked at in one step by the names that links give them."""
_HELD = ("conftest.py", "x.pth")
"""What a link to more than that is taken to give: in a project, and in an environment."""


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
    _begun: Node | None = None
    """What was there when the tool was started."""

    def started(self, call: Call) -> Call:
        """Confirms the lease: locks were waited for, and snapshots take time. Raises: LedgerError
        `ledger.lost_lease`."""
        self._call, self._begun = call, self.workspace.begun
        self.confirm()
        return call

    def take(self, body: dict[str, Any]) -> None:
        """Commit the step; R3 goes into the body, or why the step was undone: it must not have changed the
        settings of later runs, or left too much.

        Raises: RunError for a fault of the host: no tool is to blame for it.
        """
        try:
            body["r3"] = self.workspace.commit()
            touched = self.workspace.touched()
            near = nested.near(touched) if touched else []
        except UserError as error:
            if is_fault(error):
                raise
            _undo(self.workspace, body, {"outcome": "limit", "code": error.code})
            return
        code = why = ""
        if not why and (control := self._control(touched, near)):
            code, why = CONTROL, f"{control} was changed{_hint(control)}"
        if not why and (emptied := self._emptied(touched)):
            code, why = EMPTIED, f"{emptied} was emptied"
        if why:
            body["why"] = str(self.clean(why))[:WHY]
            _undo(self.workspace, body, {"outcome": "invalid", "code": code})
            return
        if self.workspace.travels:
            self.workspace.push(body["r3"], self.blobs)

    def _control(self, touched: Sequence[str], near: Sequence[str]) -> str:
        """A file that says what is run and that this call may not change; else empty."""
        call = self._call
        assert call is not None
        own = {path for path in near if nested.of_repository(self.workspace.directory, path)}
        place = self.workspace.directory
        reached = dict(_reached(place, self._begun, [path for path in touched if path not in own]))
        found = control_files.unpermitted(call.tool, call.args, reached, self._change(reached))
        return "" if found and self.may_change() else found

    def _emptied(self, touched: Sequence[str]) -> str:
        """A file of code that this call left empty; else empty."""
        call = self._call
        assert call is not None
        found = control_files.emptied(call.tool, call.args, touched, self._change({}))
        return "" if found and self.may_change() else found

    def _change(self, reached: Mapping[str, str]) -> control_files.Change:
        """`reached`: paths by the names that links give them."""
        place, workspace = self.workspace.directory, self.workspace
        return control_files.Change(
            workspace.existed,
            lambda path: not os.path.lexists(place / path),
            lambda path: workspace.before(reached.get(path, path)),
            lambda path: _own_content(place, reached.get(path, path)),
            lambda path: _size(place / path),
            lambda path: nested.holds(place, path),
        )


def _hint(control: str) -> str:
    """How a package manager may change such a file."""
    return "; run the install as a line of its own" if control_files.of_packages(control) else ""


def _own_content(place: Path, path: str) -> bytes | None:
    """What a file holds; None where a link leads to it, since its target may be written later."""
    itself = Path(os.path.realpath(place / path)) == Path(os.path.realpath(place)) / path
    return beneath.content(place, path) if itself else None


def _size(path: Path) -> int:
    return path.lstat().st_size if os.path.lexists(path) else 0


def _reached(place: Path, begun: Node | None, touched: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths, each with where it lies: as they are, and by the names that links to folders of builds and
    caches give them. A new link gives all that is in its folder; one that was there what is new in it."""
    place = Path(os.path.realpath(place))
    given: list[tuple[str, Iterator[tuple[str, str]]]] = []
    for path in touched:
        yield path, path
        found = place / path
        if found.is_symlink() and found.is_dir():
            yield f"{path}/__init__.py", f"{path}/__init__.py"
            if target := _hidden_target(place, path):
                given.append((path, _below(target, path)))
    hidden = sorted(f"{place}/{path}" for path in touched if control_files.is_hidden(path))
    for link in links(begun, control_files.is_hidden) if hidden and begun is not None else ():
        if target := _hidden_target(place, link):
            given.append((link, _new_below(f"{place}/", target, link, hidden)))
    yield from _named(given)


def _named(given: Sequence[tuple[str, Iterator[tuple[str, str]]]]) -> Iterator[tuple[str, str]]:
    """What links give, `MOST_LINKED` in all; each link that has more gives names that say what is run."""
    left = MOST_LINKED
    for link, found in given:
        for name, path in found:
            left -= 1
            if left < 0:
                yield from ((f"{link}/{held}", f"{link}/{held}") for held in _HELD)
                break
            yield name, path


def _hidden_target(place: Path, link: str) -> str:
    """Where a link to a folder leads whose files are not looked at by their names; else empty."""
    target = os.path.realpath(place / link)
    inside = os.path.relpath(target, place)
    hidden = not inside.startswith("..") and control_files.is_hidden(f"{inside}/x")
    return target if hidden and Path(target).is_dir() else ""


def _below(target: str, link: str) -> Iterator[tuple[str, str]]:
    """What is below a new link, by its name there: that was not there, whatever its folder held before."""
    for folder, _, files in os.walk(target):
        above = link + folder.removeprefix(target)
        yield above, above
        for name in files:
            yield f"{above}/{name}", f"{above}/{name}"


def _new_below(place: str, target: str, link: str, hidden: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Those of the sorted paths that a link leads to, by its name."""
    for at in range(bisect_left(hidden, f"{target}/"), len(hidden)):
        if not hidden[at].startswith(f"{target}/"):
            return
        yield link + hidden[at].removeprefix(target), hidden[at].removeprefix(place)


def _undo(workspace: Workspace, body: dict[str, Any], outcome: Mapping[str, str]) -> None:
    workspace.rollback()
    body |= outcome
    body.pop("r3", None)
    del body["exit"]
