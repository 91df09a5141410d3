"""The files of a run that begins from a source: fetched by its worker, once, and kept as an upload.

Takes the row of a run without records; gives it its files, and what the first record says of them. A worker
that dies leaves nothing behind; one that takes the run up after the files are kept begins with these. The
same commit of the same source is fetched once. While it goes on, the run is this worker's, and a person may
cancel it.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from spak.errors import RunError, UserError
from spak.evolve.suites.model import HISTORY
from spak.files.scratch import Scratch
from spak.repository import past
from spak.repository.commits import Secret
from spakweb.ground import clock
from spakweb.ground.audit.actions import record
from spakweb.store.jobs.leases import LEASE_S
from spakweb.store.jobs.pauses import doubling
from spakweb.store.ledger import packs, store, uploads
from spakweb.store.runs.models import Run, Upload
from spakweb.store.sources import credentials, fetching
from spakweb.store.sources.addresses import pinned, read
from spakweb.store.sources.git import Git, Remote
from spakweb.store.sources.models import RunSource, Source
from spakweb.store.sources.refs import allowed

LOOK_S = 1.0
AWAY, AWAY_WAITS = "git.unreachable", doubling(5, 5)
"""A repository whose server cannot be reached is asked again after each of these pauses."""
FETCH = "fetch-"
"""What the name of a folder begins with in which something is fetched."""

log = logging.getLogger(__name__)


def files_of(row: Run, scratch: Path, history: int, secret: Secret) -> dict[str, Any]:
    """What the first record says of where the files came from; empty for a run without a source. The row has
    its files afterwards, and the last `history` commits without what is `secret`. `scratch` is a folder of
    this run alone, for what is fetched.

    Raises: RunError `git.*`, Refused `git.*` and `upload.*`.
    """
    begun = RunSource.objects.select_related("source__team").filter(run=row).first()
    if begun is None:
        return {}
    if not begun.commit:
        _frozen(row, begun, scratch, history, secret)
    return as_recorded(begun)


def as_recorded(begun: RunSource) -> dict[str, str]:
    """Name, address, ref and commit, as records and programs have them."""
    return {"name": begun.name, "url": begun.url, "ref": begun.ref, "commit": begun.commit}


def git_of(source: Source, folder: Path, wanted: Callable[[], bool]) -> Git:
    """git in a new folder, for that source. Raises: RunError `git.*`, Refused `git.url`."""
    address = read(source.url)
    secret = credentials.unseal(source.sealed)
    remote = Remote(address, pinned(address), source.user, secret, source.host_keys)
    made = Git(folder, time.monotonic() + settings.SOURCE_S, settings.RUN_FILES_BYTES, wanted, of=remote)
    made.begin()
    return made


class Going:
    """Whether a run is still wanted, asked once a second; each time its slot is held for longer."""

    def __init__(self, row: Run) -> None:
        self.row, self.asked = row, time.monotonic()

    def wanted(self) -> bool:
        """False when somebody cancelled it."""
        if time.monotonic() - self.asked < LOOK_S:
            return True
        self.asked = time.monotonic()
        rows = Run.objects.filter(pk=self.row.pk)
        rows.filter(holder=store.leases.choosing).update(lease_until=clock.now() + timedelta(seconds=LEASE_S))
        return rows.values_list("wanted", flat=True).first() != "cancel"


def _frozen(row: Run, begun: RunSource, scratch: Path, history: int, secret: Secret) -> None:
    source = begun.source
    if source is None:
        raise RunError(
            "git.source_gone", f"the source {begun.name} was removed", "start the run from another"
        )
    refs = allowed(begun.ref, source.patterns)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=FETCH) as folder:
        git = git_of(source, Path(folder) / "git", Going(row).wanted)
        try:
            found, upload = _brought(row, source, git, refs, begun.wanted, history)
            key = _past(git, found.commit, history, secret) if history else ""
        except UserError as error:
            log.info("run %s: source %s: %s", row.key, source.name, error.code)
            raise
    with transaction.atomic():
        begun.ref, begun.commit = found.ref, found.commit
        begun.save(update_fields=["ref", "commit"])
        Run.objects.filter(pk=row.pk, count=0).update(files=upload, history=key)
        record(
            row.made_by, "source.fetched", source.name, source.team, after=upload.root,
            run=row.key, ref=found.ref, commit=found.commit,
        )  # fmt: skip
    row.files, row.history = upload, key


def _brought(
    row: Run, source: Source, git: Git, refs: list[str], wanted: str, history: int
) -> tuple[fetching.Found, Upload]:
    """The files at the first of these refs that there is: those that an earlier run had, or fetched now."""
    found = fetching.find(git, refs, wanted)
    known = RunSource.objects.filter(source=source, commit=found.commit, run__files__isnull=False)
    earlier = known.select_related("run__files").first()
    if earlier is not None and not history:
        return found, earlier.run.files
    found = fetching.fetch(git, refs, found, wanted, max(1, history))
    with tempfile.TemporaryFile(dir=git.folder) as archive:
        options = {"submodules": source.submodules, "lfs": source.lfs}
        fetching.pack(git, found.commit, archive, uploads.limits(), **options)
        size = archive.tell()
        archive.seek(0)
        name = f"{source.name} at {found.ref.split('/', 2)[-1]}"
        upload, _ = uploads.keep(row.made_by, source.team, name, archive, size)
    return found, upload


def _past(git: Git, commit: str, count: int, secret: Secret) -> str:
    """The key of the pack with the last commits, kept. Raises: RunError `git.*`; OSError."""
    with Scratch("past") as held:
        folder = held / "past"
        folder.mkdir()
        (folder / HISTORY).write_bytes(past.freeze(git, count, secret, commit))
        return packs.put(folder)
