"""One sync of a folder by a worker: fetch the branch, take what changed there, send what changed here.

Nothing is half done: each file is one transaction, and what goes out is one commit. When a worker dies
another continues, and finds by the texts what was done already. A repository that is unavailable is retried,
and so is a sync that meets a fault of the host; other errors are shown on the source's page, and the next
push or *Sync now* retries. In the transaction of each file, and before and after what goes out, the worker
makes sure that the folder is still its own: one that froze meanwhile keeps nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404

from spak.errors import RunError, UserError
from spak.files.scratch import Scratch
from spakweb.ground import access, clock
from spakweb.ground.audit.actions import record
from spakweb.ground.host_faults import is_fault
from spakweb.store.folders.models import Folder, FolderFile
from spakweb.store.sources import fetching, refs
from spakweb.store.sources.freeze import AWAY, AWAY_WAITS, git_of
from spakweb.store.sources.git import Git
from spakweb.work.folders import giving, reading, taking
from spakweb.work.folders.queue import LONGEST, SYNC, renew
from spakweb.work.folders.taking import QUIET, Line
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind

RETRIED = (AWAY, "git.branch_taken", "git.moved", "folder.late")
"""What may go well a little later."""


def act(hold: Hold) -> dict[str, Any] | None:
    """Sync a folder. Raises: Again, Lost, faults of the host."""
    rows = Folder.objects.select_related("source__team", "person")
    folder = rows.filter(pk=int(hold.key), active=True).first()
    if folder is None:
        return None
    error: Exception | None = None
    done: dict[str, Any] = {}
    try:
        access.require(folder.person, "source.manage", folder.source)
        access.require(folder.person, "spec.edit", folder.team)
        done, error = _synced(folder, hold)
    except UserError as why:
        error = why
    except (PermissionDenied, Http404):
        words = f"{folder.person} may not sync folders of the team any more. Syncing is off."
        done = {"state": Folder.State.FAILED, "error": words, "active": False}
    if error is not None and is_fault(error):  # for as long as it takes
        _finish(folder, done, hold)
        raise error
    if isinstance(error, UserError):
        words = f"{error.code}: {error.message}"
        if error.code in RETRIED and hold.tries < len(AWAY_WAITS):
            _finish(folder, done, hold)
            raise Again(words)
        done |= {"state": Folder.State.FAILED, "error": words[:300]}
    _finish(folder, done | {"done_at": clock.now()}, hold)
    return {"state": str(done.get("state", "")), "error": str(done.get("error", ""))}


def _finish(folder: Folder, done: dict[str, Any], hold: Hold) -> None:
    """Write the result. Raises: Lost."""
    with hold.writing():
        if done:
            Folder.objects.filter(pk=folder.pk).update(**done)
        if done.get("error") and done["error"] != folder.error:
            _record_failed(folder, done["error"])
        counts = Counter(line["what"] for line in done.get("result", ()))
        if any(counts[what] for what in (*QUIET, "patch", "conflict")):
            about = {"commit": done["commit"], "ref": folder.branch, **counts}
            record(folder.person, "source.folder_synced", folder.source.name, folder.team, **about)


def failed(key: str, error: str) -> None:
    """The workers that synced the folder died, one after the other."""
    folder = Folder.objects.select_related("source__team", "person").filter(pk=int(key)).first()
    if folder is not None:
        about = {"state": Folder.State.FAILED, "error": error[:300], "done_at": clock.now()}
        Folder.objects.filter(pk=folder.pk).update(**about)
        _record_failed(folder, error)


def _record_failed(folder: Folder, why: str) -> None:
    record(folder.person, "source.folder_failed", folder.source.name, folder.team, why=why[:200])


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
                    renew(hold)
                    git.ends = time.monotonic() + settings.SOURCE_S
                    lines.append(_proposed(git, folder, found.commit, row, hold))
                    done["pull_url"] = row.pull_url or folder.pull_url
            elif rows:
                renew(hold)
                done["commit"] = giving.give(git, folder, found.commit, rows)
                renew(hold)
                with hold.writing():
                    lines += [_sent(done["commit"], row) for row in rows]
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
    with hold.writing():
        row.seen, row.sent = head, head.content_hash
        row.save(update_fields=["seen", "sent", "pull_url"])
    words = f"Version {head.number} is in a pull request."
    return Line(row.path, "sent", words, row.spec.slug, row.pull_url)


KIND = Kind(
    name=SYNC, title="Folders to sync", act=act, failed=failed, waits=AWAY_WAITS,
    longest=LONGEST + timedelta(seconds=2 * settings.SOURCE_S),
)  # fmt: skip
