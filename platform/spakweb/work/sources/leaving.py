"""What of a run's changes may leave, as the door has it (`spak.door`): for the page, the patch, the worker.

Takes a run; gives each changed path with its class. Known values are those of the team's secrets and of the
files of secrets that the run had. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from spak import config
from spak.door import MOST_SIGNED, Change, Class, Leaving, look
from spak.errors import LedgerError, RunError
from spak.kernel.replay import Replay
from spak.kernel.situation import NO_CHECK, blocked
from spak.repository.ignoring import new_and_ignored
from spak.runner.views.quality import judges
from spak.runner.views.run_json import by_own_tests
from spak.secrets import values as secret_values
from spak.secrets.redact import Redactor
from spak.workspace.secret_nodes import secret_files
from spak.workspace.tree import at, load
from spakweb.ground.errors import Refused
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import Run
from spakweb.work.runs import files
from spakweb.work.worker import team_secrets

MOST_ROWS = 200
"""Paths that a page shows; of those that are signed for all, as many as can be."""
_ORDER = (Class.RUNS, Class.SECRET, Class.ODD, Class.CHECKS, Class.ORDINARY, Class.IGNORED)


def of(run: Run) -> Leaving:
    """What the run changed, as the door has it. Raises: UserError, OSError, ValueError when its files
    cannot be read."""
    before, now = files.roots(run)
    return _leaving(run.key, before, now) if now else Leaving("", "", ())


def classes(run: Run) -> dict[str, Class]:
    """By path the class of each change, for those who read; of files that are not kept here none. Raises: as
    `of`."""
    store, roots = store_of(run), files.roots(run)
    known = all(root and store.knows(root) for root in roots)
    return {one.path: one.of for one in of(run).changes} if known else {}


def hides(run: Run) -> Callable[[str, bytes], bool]:
    """Whether who reads gets no file of a path and content: it is one of secrets by its contents, or holds a
    known value, under whatever name. Raises: as `of`."""
    store = store_of(run)
    known = _known(run.key, *(root for root in files.roots(run) if root and store.knows(root)))
    return lambda path, data: files.holds_secret(path, data) or known.holds(data)


def by_law(run: Run) -> Leaving:
    """The same, with why nothing of it may leave as a commit, which takes its whole ledger to tell."""
    reasons, own_tests = _said(run.key, run.count)
    found = replace(of(run), blocked=reasons)
    return found.by_own_tests() if own_tests else found


@lru_cache(maxsize=16)
def _leaving(key: str, before: str, now: str) -> Leaving:
    """Of two roots, which say what there is: nothing of it changes."""
    run = Run.objects.get(key=key)
    store = store_of(run)
    old, new = load(store, before), load(store, now)
    shown = config.settings().shown_secrets
    holds, ignored = _known(key, before, now).holds, new_and_ignored(old, new, store.read)
    return look(old, new, store.read, holds=holds, ignored=ignored.__contains__, shown=shown)


@lru_cache(maxsize=16)
def _known(key: str, *roots: str) -> Redactor:
    """What recognises the values of the team's secrets, and of the files of secrets at these roots."""
    run = Run.objects.select_related("team").get(key=key)
    store = store_of(run)
    trees = [load(store, root) for root in roots]
    kept = [(path, at(root, path)) for root in trees for path in secret_files(root)]
    values = [
        value
        for path, node in kept
        if node is not None and node.size <= secret_values.MAX_BYTES
        for value in secret_values.masked(path, store.read(node.digest))
    ]
    return Redactor(team_secrets.of_team(run.team.slug).values()).knowing(values)


@lru_cache(maxsize=256)
def _said(key: str, count: int) -> tuple[tuple[str, ...], bool]:
    """What its law says after so many records, and that nothing judged the very files that it ended with;
    and whether its check passes only with its own tests. Raises: Refused `ledger.semantics`."""
    replayed, judged = Replay(), ""
    for record, _ in DatabaseLedgers().reader(key).read():
        try:
            replayed.feed(record)
        except LedgerError as why:
            raise Refused.of(why) from why
        if judges(record):
            judged = replayed.state.r3
    replayed.finish()
    reasons = () if replayed.rules is None else blocked(replayed.rules, replayed.state)
    own_tests = by_own_tests(replayed.state)
    return (*reasons, *(() if judged == replayed.state.r3 else (NO_CHECK,))), own_tests


def must_fit(found: Leaving, signed: str = "") -> None:
    """Raises: Refused `door.*` where something of it must not leave; `signed` is the digest that a person
    approved."""
    try:
        found.require(signed)
    except RunError as why:
        raise Refused.of(why) from why


def rows(found: Leaving) -> list[Change]:
    """Its paths for a page: what would run by itself first, then what is refused."""
    ordered = sorted(found.changes, key=lambda one: (_ORDER.index(one.of), one.path))
    signed = len(found.unsigned)
    return ordered[: max(MOST_ROWS, signed if signed <= MOST_SIGNED else 0)]
