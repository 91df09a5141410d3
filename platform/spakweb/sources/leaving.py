"""What of a run's changes may leave, as the door has it (`spak.door`): for the page, the patch, the worker.

Takes a run; gives each changed path with its class. Known values are those of the team's secrets and of the
files of secrets that the run had. It sends nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from spak import config
from spak.door import Change, Class, Leaving, look
from spak.errors import RunError
from spak.kernel.replay import Replay
from spak.kernel.situation import NO_CHECK, blocked
from spak.repository.ignoring import new_and_ignored
from spak.runner.views.quality import judges
from spak.runner.views.run_json import by_own_tests
from spak.secrets import values as secret_values
from spak.secrets.redact import Redactor
from spak.workspace.tree import at, load, secret_files
from spakweb.errors import Refused
from spakweb.ledger.store import DatabaseLedgers
from spakweb.ledger.workspaces import store_of
from spakweb.runs import files
from spakweb.runs.models import Run
from spakweb.worker import team_secrets

MOST_ROWS = 200
"""Paths that a page shows."""
_ORDER = (Class.RUNS, Class.SECRET, Class.ODD, Class.CHECKS, Class.ORDINARY, Class.IGNORED)


def of(run: Run) -> Leaving:
    """What the run changed, as the door has it. Raises: UserError, OSError, ValueError when its files
    cannot be read."""
    before, now = files.roots(run)
    return _leaving(run.key, before, now) if now else Leaving("", "", ())


def by_law(run: Run) -> Leaving:
    """The same, with why nothing of it may leave as a commit, which takes its whole ledger to tell."""
    reasons, own_tests = _said(run.key, run.count)
    found = replace(of(run), blocked=reasons)
    return found.by_own_tests() if own_tests else found


@lru_cache(maxsize=16)
def _leaving(key: str, before: str, now: str) -> Leaving:
    """Of two roots, which say what there is: nothing of it changes."""
    run = Run.objects.select_related("team").get(key=key)
    store = store_of(run)
    old, new = load(store, before), load(store, now)
    known = Redactor(team_secrets.of_team(run.team.slug).values())
    kept = [(path, at(root, path)) for root in (old, new) for path in secret_files(root)]
    values = [
        value
        for path, node in kept
        if node is not None and node.size <= secret_values.MAX_BYTES
        for value in secret_values.masked(path, store.read(node.digest))
    ]
    shown = config.settings().shown_secrets
    holds, ignored = known.knowing(values).holds, new_and_ignored(old, new, store.read)
    return look(old, new, store.read, holds=holds, ignored=ignored.__contains__, shown=shown)


@lru_cache(maxsize=256)
def _said(key: str, count: int) -> tuple[tuple[str, ...], bool]:
    """What its law says after so many records, and that nothing judged the very files that it ended with;
    and whether its check passes with its own tests alone."""
    replayed, judged = Replay(), ""
    for record, _ in DatabaseLedgers().reader(key).read():
        replayed.feed(record)
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
        raise Refused(why.code, f"{why.message[0].upper()}{why.message[1:]}.", why.hint, 409) from why


def rows(found: Leaving) -> list[Change]:
    """Its paths for a page: what would run by itself first, then what is refused."""
    return sorted(found.changes, key=lambda one: (_ORDER.index(one.of), one.path))[:MOST_ROWS]
