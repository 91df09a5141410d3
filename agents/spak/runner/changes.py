"""What a tool changed in the workspace, taken into its root or rolled back.

`Writing` is for one call of a tool within a transaction of the workspace; `Reading` for a tool that may not
write, and does nothing. Both take the call before it starts and the body of its act after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from spak.datalog.externals import Request
from spak.datalog.values import Value
from spak.door import look as leaving
from spak.errors import UserError
from spak.files.disk import Disk
from spak.files.faults import is_fault
from spak.kernel.outcomes import CHANGES
from spak.kernel.permit import Asks
from spak.paths import CODE
from spak.ports import Blobs, Call, Look
from spak.runner.secret_guard import SecretGuard
from spak.tools.observe.predicates import answers
from spak.workspace import Workspace
from spak.workspace.tree import Node

STARTED = "started"
"""In the store of a workspace: the effects of which it was written that they began."""
WHY = 300
"""Characters of the reason that R4 and the record hold."""


def first(store: Path, effect: str) -> bool:
    """Write into the store of a workspace that a call begins, durably; False where it is written already.

    For tools whose work no rollback takes back: after a crash nobody knows whether it was done.
    """
    disk = Disk()
    with disk.folder(str(store)) as top:
        with suppress(FileExistsError):
            disk.mkdir(STARTED, top)
        with disk.folder(STARTED, top) as at:
            try:
                file = disk.create(effect, at)
            except FileExistsError:
                return False
            try:
                disk.fsync(file)
            finally:
                os.close(file)
            disk.fsync(at)
        disk.fsync(top)
    return True


class Step(Protocol):
    """What happens to the workspace around one call of a tool."""

    def started(self, call: Call) -> Call:
        """Right before the tool is started: the call as it gets it. Raises when it must not be started."""

    def take(self, body: dict[str, Any]) -> None:
        """The tool ended by itself: add to the body of its act what became of its changes."""


class Reading:
    """A tool that may not write: there is nothing to take."""

    def started(self, call: Call) -> Call:
        """The call, without a transaction: it only reads."""
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
    guard: SecretGuard
    law: Callable[[Sequence[tuple[str, str]], Asks], str] | None = None
    """Why the law forbids what the call has changed, paths with their classes; asked before that is kept, and
    None where the law does not ask. What it asks of the world is answered as it was before the call."""

    def started(self, call: Call) -> Call:
        """Confirms the lease: locks were waited for, and snapshots take time. Raises: LedgerError
        `ledger.lost_lease`."""
        self.confirm()
        return replace(call, first=partial(first, self.workspace.store, call.id))

    def take(self, body: dict[str, Any]) -> None:
        """Commit the step; R3 goes into the body, or why the step was undone: it must not leave too much, nor
        change what the law forbids.

        Raises: RunError for a fault of the host: no tool is to blame for it.
        """
        try:
            body["r3"] = self.workspace.commit()
        except UserError as error:
            if is_fault(error):
                raise
            _undo(self.workspace, body, {"outcome": "limit", "code": error.code})
            return
        if why := self._forbidden():
            body["why"] = str(self.guard.clean(why))[:WHY]
            _undo(self.workspace, body, {"outcome": "invalid", "code": CHANGES})
            return
        if self.workspace.travels:
            self.workspace.push(body["r3"], self.blobs)

    def _forbidden(self) -> str:
        """Why the law forbids what the step changed; empty where it does not."""
        step = self.workspace.step
        if self.law is None or step is None:
            return ""
        shown = self.guard.host.shown_secrets
        found = leaving(*step, self.workspace.content, holds=self.guard.holds, shown=shown)
        return self.law([(one.path, str(one.of)) for one in found.changes], self._before(*step))

    def _before(self, before: Node, now: Node) -> Asks:
        """Answers questions about the files before the step, in a checkout that the first question makes."""
        workspace, own = self.workspace, self.guard.host.predicates
        look: list[Look] = []

        def asks(request: Request) -> list[tuple[Value, ...]]:
            if not look:
                workspace.checkout.hold(before.digest, now.digest, lambda change: False)
                look.append(Look(workspace.checkout.folder, None, workspace.directory.parent / CODE))
            return answers([request], look[0], own)[0]

        return asks


def _undo(workspace: Workspace, body: dict[str, Any], outcome: Mapping[str, str]) -> None:
    workspace.rollback()
    body |= outcome
    body.pop("r3", None)
    del body["exit"]
