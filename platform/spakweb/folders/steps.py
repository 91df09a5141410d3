"""One sync of a folder by a worker: fetch the branch, take what changed there, send what changed here.

Nothing is half done: each file is one transaction, and what goes out is one commit. When a worker dies
another continues, and finds by the texts what was done already. A repository that is unavailable is retried,
and so is a sync that meets a fault of the host; other errors are shown on the source's page, and the next
push or *Sync now* retries. In the transaction of each file, and before and after what goes out, the worker
makes sure that the folder is still its own: one that froze meanwhile keeps nothing.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404

from spak.errors import RunError, UserError
from spak.files.scratch import Scratch
from spakweb import access, clock
from spakweb.audit.actions import record
from spakweb.folders import giving, reading, taking
from spakweb.folders.models import Folder, FolderFile
from spakweb.folders.queue import Hold, Lost, free, send
from spakweb.folders.taking import QUIET, Line
from spakweb.host_faults import is_fault, typed
from spakweb.runs.leases import renewing, until
from spakweb.sources import fetching, refs
from spakweb.sources.freeze import AWAY, TRIES, git_of, waits
from spakweb.sources.git import Git
from spakweb.worker.retry_policy import HOST_PAUSE

RETRIED = (AWAY, "git.branch_taken", "git.moved", "folder.late")
"""What may go well a little later."""

log = logging.getLogger(__name__)


def sync(pk: int) -> None:
    """Sync a folder that is to be synced, unless another worker holds it."""
    now = clock.now()
    if not free().filter(pk=pk).update(claimed_at=now, lease_until=until(now)):
        return
    folder = Folder.objects.select_related("source__team", "person").get(pk=pk)
    hold = Hold(pk, now)
    asked, error = folder.wanted_at, None
    done: dict[str, Any] = {}
    try:
        access.require(folder.person, "source.manage", folder.source)
        access.require(folder.person, "spec.edit", folder.team)
        with renewing(hold.keep, str(folder)):
            done, error = _synced(folder, hold)
    except Lost:
        return
    except UserError as why:
        error = why
    except (OSError, RuntimeError, MemoryError) as why:
        if not is_fault(why):
            raise
        error = typed(why)
    except (PermissionDenied, Http404):
        words = f"{folder.person} may not sync folders of the team any more. Syncing is off."
        done = {"state": Folder.State.FAILED, "error": words, "active": False}
    if error is not None and is_fault(error):  # for as long as it takes
        log.warning("folder %s: %s", folder.pk, error.message)
        done |= {"not_before": clock.now() + HOST_PAUSE}
        asked = None
    elif error is not None and error.code in RETRIED and folder.tries < TRIES:
        done |= {"tries": folder.tries + 1, "not_before": clock.now() + waits(folder.tries)}
        asked = None  # it stays wanted
    elif error is not None:
        done |= {"state": Folder.State.FAILED, "error": f"{error.code}: {error.message}"[:300]}
    _finish(folder, done, hold.at, asked)


def _finish(folder: Folder, done: dict[str, Any], claimed: datetime, asked: datetime | None) -> None:
    """Write the result and release the folder; `asked` is None where it is to be retried."""
    whole = {"done_at": clock.now(), "tries": 0, "not_before": None} if asked is not None else {}
    with transaction.atomic():
        mine = Folder.objects.filter(pk=folder.pk, claimed_at=claimed)
        if not mine.update(claimed_at=None, **{**whole, **done}):
            return
        if asked is not None and not Folder.objects.filter(pk=folder.pk, wanted_at=asked).update(
            wanted_at=None
        ):
            transaction.on_commit(partial(send, folder.pk))  # somebody asked again meanwhile
        if done.get("error") and done["error"] != folder.error:
            record(
                folder.person,
                "source.folder_failed",
                folder.source.name,
                folder.team,
                why=done["error"][:200],
            )
        counts = Counter(line["what"] for line in done.get("result", ()))
        if any(counts[what] for what in (*QUIET, "patch", "conflict")):
            about = {"commit": done["commit"], "ref": folder.branch, **counts}
            record(folder.person, "source.folder_synced", folder.source.name, folder.team, **about)


def _synced(folder: Folder, hold: Hold) -> tuple[dict[str, Any], UserError | None]:
    """What the row says afterwards, and what went wrong once the texts had come in.

    Raises: RunError, Refused, PermissionDenied, Http404, Lost.
    """
    source = folder.source
    error: UserError | None = None
    [branch] = refs.allowed(folder.branch, source.patterns)
    with Scratch("fetch") as place:
        git = git_of(source, place / "git", lambda: True)
        found = fetching.fetch(git, [branch], fetching.find(git, [branch]))
        commit = reading.commit_of(git, found.commit)
        files = reading.files_of(git, found.commit, folder.path)
        taken = taking.take(folder, commit, files, hold)
        done: dict[str, Any] = {"commit": found.commit, "error": ""}
        lines = taken.lines
        try:
            git.ends = time.monotonic() + settings.SOURCE_S  # the files took time of their own
            rows, blocked = _placed(git, folder, found.commit, taken.give)
            lines += blocked
            if folder.out == Folder.Out.PULL:
                for row in rows:
                    hold.renew()
                    git.ends = time.monotonic() + settings.SOURCE_S
                    lines.append(_proposed(git, folder, found.commit, row, hold))
                    done["pull_url"] = row.pull_url or folder.pull_url
            elif rows:
                hold.renew()
                done["commit"] = giving.give(git, folder, found.commit, rows)
                hold.renew()
                with transaction.atomic():
                    lines += [_sent(done["commit"], row) for row in rows]
                    hold.confirm()
        except UserError as why:
            error = why
    look = any(line.what not in QUIET for line in lines)
    done["state"] = Folder.State.LOOK if look else Folder.State.SAME
    done["result"] = [line.to_json() for line in lines]
    return done, error


def _placed(
    git: Git, folder: Folder, upon: str, rows: list[FolderFile]
) -> tuple[list[FolderFile], list[Line]]:
    """Those that can go out, and a line for each that cannot. Raises: RunError `git.*`."""
    free_rows, lines = [], []
    for row in rows:
        why = giving.in_the_way(git, upon, giving.whole(folder, row))
        if why is None:
            free_rows.append(row)
        else:
            lines.append(Line(row.path, "wrong", f"{why.code}: {why.message}", row.spec.slug))
    return free_rows, lines


def _sent(commit: str, row: FolderFile) -> Line:
    head = row.spec.head
    assert head is not None
    row.there, row.base, row.seen, row.sent, row.patch = head.content_hash, head, head, "", None
    row.save(update_fields=["there", "base", "seen", "sent", "patch"])
    words = f"Version {head.number} went out as commit {commit[:12]}."
    return Line(row.path, "sent", words, row.spec.slug)


def _proposed(git: Git, folder: Folder, upon: str, row: FolderFile, hold: Hold) -> Line:
    """Raises: RunError, Refused, Lost."""
    head = row.spec.head
    assert head is not None
    try:
        giving.propose(git, folder, upon, row, hold)
    except RunError as why:
        if why.code != giving.CHANGED:
            raise
        words = f"Version {head.number} waits: {why.code}: {why.message}. {why.hint}."
        return Line(row.path, "wrong", words, row.spec.slug, row.pull_url)
    with transaction.atomic():
        row.seen, row.sent = head, head.content_hash
        row.save(update_fields=["seen", "sent", "pull_url"])
        hold.confirm()
    words = f"Version {head.number} is in a pull request."
    return Line(row.path, "sent", words, row.spec.slug, row.pull_url)
