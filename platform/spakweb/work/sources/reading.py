"""Reading the code of a source: a worker fetches its usual ref and makes the model for the page *Code*.

People ask for it; the same commit is read once. Nothing is checked out and nothing of the repository runs:
its files go through what a zip of a person's goes through, links are not followed, and parsing has its own
limits (spak.world). What fails is written to the job, and the page shows it.
"""

from __future__ import annotations

import tempfile
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models.signals import post_delete
from django.dispatch import receiver

from spak.errors import RunError, UsageError
from spak.files.scratch import Scratch
from spak.secrets import which
from spak.workspace.unpack import unpack
from spak.world import scan
from spak.world.index import update
from spak.world.store import Store
from spakweb.ground import access, clock
from spakweb.store.jobs.models import Job
from spakweb.store.ledger import uploads
from spakweb.store.sources import code_index, fetching, refs
from spakweb.store.sources.freeze import AWAY, AWAY_WAITS, git_of
from spakweb.store.sources.git import Git
from spakweb.store.sources.models import Source
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs.hold import Hold, Lost
from spakweb.work.jobs.kinds import Again, Kind

READ = "sources.read"
"""The kind of job that reads one."""
MOST_BYTES = 48 << 20
"""Of source files: the facts of more would need gigabytes of a worker's memory."""


def ask(user: Any, source: Source) -> None:
    """Have the code read. Raises: PermissionDenied, Http404."""
    access.require(user, "source.view", source)
    jobs.want(READ, source.pk, source.team_id)


def pushed(source: Source, ref: str) -> bool:
    """A ref was moved: have the code read where that ref was read before; gives whether it was."""
    if not source.code or source.code_ref != ref:
        return False
    jobs.want(READ, source.pk, source.team_id)
    return True


def job_of(source: Source) -> Job | None:
    """What became of the last reading, or that one is under way."""
    return Job.objects.filter(kind=READ, key=str(source.pk)).first()


def act(hold: Hold) -> dict[str, Any] | None:
    """Read a source. Raises: Again, Lost, RunError `git.*`, Refused, UsageError `upload.*`, `world.*`."""
    source = Source.objects.select_related("team").filter(pk=int(hold.key)).first()
    if source is None:
        return None
    try:
        found, key = _read(source, hold)
    except RunError as error:
        if error.code == AWAY and hold.tries < len(AWAY_WAITS):
            raise Again(f"{error.code}: {error.message}") from error
        raise
    try:
        with hold.writing():
            done = {"code": key, "code_ref": found.ref, "code_commit": found.commit, "code_at": clock.now()}
            Source.objects.filter(pk=source.pk).update(**done)
    except Lost:
        if key != source.code:
            code_index.remove(key)
        raise
    if key != source.code:
        code_index.remove(source.code)
    code_index.tidy()
    return {"commit": found.commit}


def _read(source: Source, hold: Hold) -> tuple[fetching.Found, str]:
    """The commit that the usual ref is at, and the key of its reading."""
    with Scratch("code") as folder:
        git = git_of(source, folder / "git", hold.keep)
        wanted = [refs.usual(source.patterns)]
        found = fetching.find(git, wanted)
        if found.commit == source.code_commit and is_whole(code_index.of_source(source)):
            return found, source.code
        found = fetching.fetch(git, wanted, found)
        files = folder / "files"
        files.mkdir()
        _lay_out(source, git, found.commit, files)
        return found, code_index.keep(lambda made: index(files, made))


def is_whole(folder: Path | None) -> bool:
    """Whether a reading is there, of this version, and undamaged."""
    try:
        with code_index.opened(folder) as model:
            sound = model is not None and model.store.rows("PRAGMA quick_check(1)") == [("ok",)]
            return sound and folder is not None and code_index.has_texts(folder)
    except UsageError:
        return False


def _lay_out(source: Source, git: Git, commit: str, files: Path) -> None:
    with tempfile.TemporaryFile(dir=git.folder) as archive:
        options = {"submodules": source.submodules, "lfs": source.lfs}
        fetching.pack(git, commit, archive, uploads.limits(), **options)
        archive.seek(0)
        unpack(archive, files, uploads.limits())


def index(files: Path, made: Path) -> None:
    """Write the index of a folder, and the texts that pages may show. Raises: UsageError `world.*`."""
    known = list(scan.files(files))
    require_small(sum(item.stamp[0] for item in known))
    store = Store(made / code_index.INDEX)
    try:
        update(store, files)
    finally:
        store.close()
    with zipfile.ZipFile(made / code_index.FILES, "w", zipfile.ZIP_DEFLATED) as archive:
        for item in known:
            data, reason = scan.read(files, item)
            if not reason and not which.secret(item.path):
                archive.writestr(item.path, data)


def require_small(size_bytes: int) -> None:
    """Raises: UsageError `world.too_large`."""
    if size_bytes > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise UsageError(
            "world.too_large", f"the folder has more than {most} of source files", "use spak world"
        )


@receiver(post_delete, sender=Source, dispatch_uid="sources.code_deleted")
def _deleted(instance: Source, **ignored: Any) -> None:
    jobs.drop(READ, instance.pk)
    code_index.remove(instance.code)


KIND = Kind(
    name=READ, title="Code to read", act=act, waits=AWAY_WAITS,
    longest=timedelta(minutes=5, seconds=2 * settings.SOURCE_S),
)  # fmt: skip
