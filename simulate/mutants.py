"""Bugs that are planted in leases, fencing, sweep, writer and recovery, to see that a seed finds each.

A mutant is a function of the product with other words in its source, or another value of a constant. It is
planted in the process that was forked for one seed, in the code that all callers have: nothing on disk
changes. Where the words are not found exactly once the mutant no longer fits its source: an error.
"""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, NamedTuple

STORE, LEASES = "spakweb.store.ledger.store", "spakweb.store.jobs.leases"
WRITER, SQL = "spakweb.store.ledger.writer", "spakweb.store.ledger.writer_sql"
SWEEP, TASKS = "spakweb.work.jobs.queue", "spakweb.work.worker.tasks"
QUEUE, HELD = "spakweb.work.worker.queue", "spakweb.work.worker.held_run"
RUN, SPACE = "spak.runner.run", "spak.workspace.space"


class Mutant(NamedTuple):
    """A planted bug: in `where` of a module, `old` becomes `new`. `where` is a function or a constant."""

    module: str
    where: str
    old: str
    new: str


MUTANTS: dict[str, Mutant] = {
    # leases
    "a lease never ends": Mutant(LEASES, "lapsed", "| Q(lease_until__lt=now) |", "|"),
    "a lease is taken without a new fence": Mutant(STORE, "_taken", '"fence": before + 1, ', ""),
    "any process renews a lease": Mutant(SQL, "_RENEWED", "AND fence = %s", "AND %s >= 0"),
    "any process gives a lease back": Mutant(SQL, "_FREED", "AND fence = %s", "AND %s >= 0"),
    "a lease is not given back": Mutant(STORE, "DatabaseLedger.close", "batch.free = True", "pass"),
    "leases are not renewed": Mutant(
        STORE, "Leases._renew",
        "writing.writer.submit(ledger.renewal()) for", "writing.writer.submit(ledger._batch()) for",
    ),
    "a slot takes the lease of another slot": Mutant(STORE, "_take", " or ledger.row.fence != fence", ""),
    "a worker chooses what it holds": Mutant(QUEUE, "not_mine", "~Q(key__in=store.leases.held())", "Q()"),
    # fencing
    "a lost lease is confirmed": Mutant(
        WRITER, "Writer._write", "stale = batch.confirm and", "stale = False and batch.confirm and"
    ),
    "who lost the run shows it": Mutant(SQL, "_SHOWN", "AND fence = %s", "AND %s >= 0"),
    "what was not taken is shown": Mutant(SQL, "_SHOWN", "AND count >= %s", "AND %s >= 0"),
    # sweep
    "a sweep sends nothing": Mutant(SWEEP, "put_back", "table.send(row | freed)", "pass"),
    "a sweep does not see who died": Mutant(TASKS, "RUNS", "died", ""),
    "what a sweep puts back keeps its state": Mutant(
        TASKS, "_freed", "{\"state\": State.QUEUED} if row[\"state\"] == State.RUNNING else {}", "{}"
    ),
    "the lock of the sweep is kept": Mutant(TASKS, "sweep_up", "_sweeping.release()", "pass"),
    "a lost message is never sent again": Mutant(
        SWEEP, "put_back", "| Q(enqueued_at__lt=now - RESEND_AFTER) |", "|"
    ),
    # writer
    "a failed commit counts as done": Mutant(
        WRITER, "Writer._write",
        "batch.done.set_exception(\n                    LedgerError(",
        "batch.done.set_result(None) or str(\n                    LedgerError(",
    ),
    "who is lost is not told so": Mutant(WRITER, "Writer._write", "if stale or batch in lost:", "if stale:"),
    "a flush does not wait": Mutant(STORE, "DatabaseLedger.flush", "self._settle()", "pass"),
    # recovery
    "the way back is forgotten before the flush": Mutant(
        RUN, "Run.flush", "if self._unflushed:", "self.workspace.settle()\n        if self._unflushed:"
    ),
    "a half-done step is not undone": Mutant(
        SPACE, "Workspace.recover", "under_way.effect == pending_effect", "under_way.effect == \"\""
    ),
    "a rollback forgets": Mutant(
        SPACE, "Workspace.transaction",
        "self.rollback()\n            raise", "self._state = \"clean\"\n            raise",
    ),
}  # fmt: skip


def plant(name: str) -> None:
    """Raises: LookupError where the mutant does not fit the source."""
    mutant = MUTANTS[name]
    module = import_module(mutant.module)
    owner: Any = module
    *path, last = mutant.where.split(".")
    for part in path:
        owner = getattr(owner, part)
    value = inspect.getattr_static(owner, last)
    if isinstance(value, str):
        setattr(owner, last, _changed(name, value, mutant))
        return
    if hasattr(value, "_replace") or not callable(value):
        _table(owner, last, value)
        return
    function: FunctionType = inspect.unwrap(value)
    source = textwrap.dedent(inspect.getsource(function))
    made = compile(_changed(name, source, mutant), "mutant", "exec", __future__.annotations.compiler_flag)
    function.__code__ = _code(made, function.__name__)


def _table(owner: Any, last: str, value: Any) -> None:
    """The table of runs, whose sweep does not see whom somebody had and has no more."""
    from dataclasses import replace

    from django.db.models import Q

    setattr(owner, last, replace(value, died=Q(pk=None)))


def _changed(name: str, text: str, mutant: Mutant) -> str:
    old, new = mutant.old, mutant.new
    if "." in mutant.where:  # of a method, whose source was dedented
        old, new = old.replace("\n    ", "\n"), new.replace("\n    ", "\n")
    places = text.count(old)
    if places != 1:
        raise LookupError(f"{name}: {mutant.old!r} is {places} times in {mutant.module}.{mutant.where}")
    return text.replace(old, new)


def _code(made: CodeType, name: str) -> CodeType:
    for constant in made.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            with_it = _inner(constant, name)
            if with_it is not None:
                return with_it
    raise LookupError(f"no function {name} in {sys.modules[__name__].__name__}")


def _inner(made: CodeType, name: str) -> CodeType | None:
    for constant in made.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    return None
