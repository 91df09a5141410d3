"""The kinds of jobs, by name. A kind is declared where its work is done; settings.JOBS lists them by path.

`Kind.act(hold)` does the work of one key. It is idempotent: it derives what to do from its own rows, and
writes them within `hold.writing()`, so that a worker that lost the job keeps nothing. It returns a dict, the
last result, with `error` where the kind has written down that it failed; or None where what the key names is
gone. It raises `Again` to be tried later; any other UserError fails the job. Faults of the host are tried
again for as long as they take, without counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from spakweb.store.jobs.pauses import doubling
from spakweb.work.jobs.hold import Hold


def decided(key: str) -> bool:
    """`reopen` of kinds whose own rows say for good what became of a job that failed."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of job."""

    name: str
    title: str
    """What the page *Work* calls it."""
    act: Callable[[Hold], dict[str, Any] | None]
    find: Callable[[], Iterable[tuple[str, int]]] = tuple
    """Keys, each with its team, of work that other tables say is to be done; asked by each sweep."""
    failed: Callable[[str, str], None] = lambda key, error: None
    """Writes to the kind's own rows that the job of the key failed, in the transaction that says so."""
    reopen: Callable[[str], bool] = lambda key: True
    """Puts the kind's own rows back, so that a failed job can be tried again; False where they say for good
    what became of it."""
    waits: Sequence[float] = doubling(10, 5)
    """Seconds before each further try; after the last one the job has failed."""
    longest: timedelta = timedelta(minutes=10)
    """A worker that needs longer loses the job to another."""
    every: timedelta = timedelta(0)
    """What `find` names again right after it was done rests for so long."""
    prompt: bool = False
    """Whether workers ask `find` twice a second, and not with each sweep alone."""


class Again(Exception):
    """Raised by an action: the job is to be tried later."""

    def __init__(self, error: str = "", wait_s: float | None = None, *, counts: bool = True) -> None:
        """After `wait_s`, or the kind's next pause; `counts`: it has failed after the last pause."""
        super().__init__(error)
        self.error, self.wait_s, self.counts = error, wait_s, counts


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name, in the order of settings.JOBS."""
    found: list[Kind] = [import_string(path) for path in settings.JOBS]
    return {kind.name: kind for kind in found}
