"""Taking a run in hand: begin one that has no records, or take up its lease, its state and its workspace.

Takes the row of a run; gives a Runner that holds its lease, with what this worker has to go on with. A run
that is only to be cancelled is taken with nothing, where it could not go on. It advances nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from spak.begin import lacking
from spak.errors import LedgerError, RunError, UserError
from spak.files.faults import is_fault
from spak.kernel.rules import Rules
from spak.program import Program
from spak.runner import Host
from spak.runner import Run as Runner
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.ledger.workspaces import folder_of, workspace_of
from spakweb.store.runs.models import Run
from spakweb.store.sources.freeze import FETCH
from spakweb.store.specs.facts import ours
from spakweb.work.worker import retry_policy
from spakweb.work.worker.beginning import begin, copied_on, draw_from_parents, host_of, thaw

NOTHING = Host()
"""Of a run that is only taken up to be stopped, where it could not go on."""

log = logging.getLogger(__name__)


def take(row: Run) -> Runner:
    """The runner of a run: a new one, or one that goes on from the ledger. Raises: LedgerError."""
    if not row.count:
        with _alone(row):
            return begin(row, DatabaseLedgers(known=row), workspace_of(row.key))
    store = DatabaseLedgers()
    first = next(iter(store.reader(row.key).read()))[0]
    host = _host(row, Rules.of(first.body).program, first.body.get("host") or {})
    place = workspace_of(row.key)
    draw_from_parents(row, place)
    thaw(row, place)
    try:
        runner = Runner.open(store, row.key, host, place)
    except RunError as error:  # its files are damaged
        if row.wanted != "cancel" or error.code == "workspace.busy" or is_fault(error):
            raise  # a disk that fails for now is no damage: the step that was under way is undone first
        return Runner.open(store, row.key, NOTHING, place, to_cancel=True)
    if runner.discarded is not None:
        log.warning("%s", runner.discarded.message)
    return runner if row.parent is None else copied_on(row, row.parent, runner)


def _host(row: Run, program: Program, about: Mapping[str, Any]) -> Host:
    """What is there to go on with; none of it is needed to stop a run. Raises: UnavailableError, RunError."""
    try:
        if error := lacking(about, ours()):
            raise error
        return host_of(row, program)
    except UserError:
        if not row.wanted:
            raise
        return NOTHING


@contextlib.contextmanager
def _alone(row: Run) -> Iterator[None]:
    """Before a run has a lease, only one on this host fills its workspace, and from nothing.

    Raises: RunError `workspace.busy`; LedgerError `ledger.busy` when it has begun.
    """
    key, folder = row.key, folder_of(row.key)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "begin.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"run {key} is begun by another worker of this host"
            raise RunError("workspace.busy", message, "wait for it, or end it if it was stopped") from error
        if not retry_policy.in_hand(row):
            raise LedgerError("ledger.busy", f"run {key} was begun by another runner", "")
        left = [folder / "workspace", folder / "store", *folder.glob(f"{FETCH}*")]
        for path in left:  # of one that died while it filled them
            if path.exists():
                shutil.rmtree(path)
        yield
