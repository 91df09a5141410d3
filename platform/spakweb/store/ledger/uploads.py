"""Files that people bring for runs, in Django's storage: one zip each, under the upload's key.

`keep` takes one for a team, `opened` reads it, `drop` removes those that no run and no spec needs. What
is in a zip is looked through when it comes (spak.workspace.unpack) and again when a workspace is filled.
"""

from __future__ import annotations

import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import ProtectedError

from spak.errors import RunError, UsageError
from spak.workspace.unpack import Contents, Limits, below, entries, look, too_large
from spakweb.ground import clock
from spakweb.ground.audit.actions import record
from spakweb.ground.database.lock_wait import short_lock_wait
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.ground.unsafe_text import visible
from spakweb.store.ledger import stored_files
from spakweb.store.runs.models import Upload

TOO_MUCH = ("upload.size", "upload.files")
FOLDER, CASES, SUFFIX = "uploads", "cases", ".zip"
PIECE = 1 << 20
UNUSED = timedelta(days=1)
"""How long files are there that no run was started with."""


def limits() -> Limits:
    """How many files, and bytes of them, a run may start with; links that stay inside are taken."""
    return Limits(files=settings.RUN_FILES, size_bytes=settings.RUN_FILES_BYTES, links=True)


def keep(
    user: Any, team: Team, name: str, archive: BinaryIO, size: int, *, strip: bool = False
) -> tuple[Upload, Contents]:
    """Take a zip for a team, whose rights the caller has asked about; the same files again are the same
    upload. With `strip` a single folder around all of them is left out.

    Raises: Refused `upload.*`.
    """
    most = limits()
    try:
        if size > most.size_bytes:
            raise too_large(most)
        found = look(archive, most, strip=strip)
    except UsageError as why:
        raise Refused(why.code, why.message, why.hint, 413 if why.code in TOO_MUCH else 400) from why
    now, called = clock.now(), visible(name)[:120].strip() or "files"
    with short_lock_wait():
        if Upload.objects.filter(team=team, root=found.root).update(made_at=now, name=called):
            return Upload.objects.get(team=team, root=found.root), found
    key = secrets.token_urlsafe(16)
    store(key, archive)
    with transaction.atomic():
        upload, new = Upload.objects.get_or_create(
            team=team, root=found.root,
            defaults={"key": key, "name": called, "folder": found.folder, "files": len(found.items),
                      "size": found.size, "made_by": user, "made_at": now},
        )  # fmt: skip
        if new:
            record(user, "files.uploaded", called, team, after=found.root, files=len(found.items))
    if not new:  # two brought the same at once
        remove(key)
    return upload, found


def store(key: str, archive: BinaryIO) -> None:
    """Keep a zip under a key that is not taken, durably. Raises: OSError."""
    archive.seek(0)
    stored_files.keep(_name(key), iter(lambda: archive.read(PIECE), b""))


@contextmanager
def opened(upload: Upload) -> Iterator[Any]:
    """The zip. Raises: RunError `upload.changed` when it is gone."""
    try:
        file = default_storage.open(_name(upload.key))
    except FileNotFoundError as error:
        raise RunError(
            "upload.changed", "the stored files of the run are gone", "upload them again"
        ) from error
    with file:
        yield file


def names(upload: Upload) -> list[tuple[str, int]]:
    """Path and size of each file, in order."""
    with opened(upload) as file, zipfile.ZipFile(file) as archive:
        listed = [info for info in entries(archive) if not info.is_dir()]
    found = [(below(info.filename, upload.folder), info.file_size) for info in listed]
    return sorted(item for item in found if item[0])


def drop(most: int) -> int:
    """Remove up to so many uploads that no run, no case and no spec has, and files that a process left that
    was killed before it wrote their row; gives how many."""
    old = Upload.objects.filter(runs=None, keeps=None, cases=None, made_at__lt=clock.now() - UNUSED)
    done = 0
    for pk, key in old.order_by("made_at").values_list("pk", "key")[:most]:
        try:
            with transaction.atomic():
                gone, _ = Upload.objects.filter(pk=pk).delete()
        except ProtectedError:  # a run was started with it just now
            continue
        if gone:
            remove(key)
            done += 1
    for folder in (FOLDER, CASES):
        stored_files.tidy(folder)
    old_ones = {name.removesuffix(SUFFIX) for name in stored_files.old(FOLDER)}
    for key in sorted(old_ones - set(Upload.objects.values_list("key", flat=True)))[:most]:
        remove(key)
    return done


def remove(key: str) -> None:
    """The zip alone; its row is gone, or never was."""
    default_storage.delete(_name(key))


def _name(key: str) -> str:
    return f"{FOLDER}/{key}{SUFFIX}"
