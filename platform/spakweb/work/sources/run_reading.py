"""Reading the code of a run's workspace, as it is when a worker comes to it; for the page Code of the run.

Takes what the run's records name: source files are laid out from the store of its workspace, which nobody
writes here, and files of secrets are left out. What was read is a part of the run's folder, and is erased
with the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spak.errors import RunError, UserError
from spak.files.scratch import Scratch
from spak.world import scan
from spak.world.languages import indexed_as
from spakweb.ground import access
from spakweb.store.jobs.models import Job
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs.models import Run
from spakweb.store.sources import code_index
from spakweb.work.jobs import queue as jobs
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Kind
from spakweb.work.runs import files
from spakweb.work.sources.reading import index, is_whole, require_small

READ = "runs.code"
"""The kind of job that reads one."""
MARKER = "pyvenv.cfg"
"""The file by which a folder of installed packages is known."""


def ask(user: Any, run: Run) -> None:
    """Have the code read. Raises: PermissionDenied, Http404."""
    access.require(user, "run.view", run)
    jobs.want(READ, run.key, run.team_id)


def job_of(run: Run) -> Job | None:
    """What became of the last reading, or that one is under way."""
    return Job.objects.filter(kind=READ, key=run.key).first()


def has_files(run: Run) -> bool:
    """Whether the run has a workspace that can be read."""
    root = files.roots(run)[1]
    return bool(root) and store_of(run).knows(root)


def folder_of(run: Run, job: Job | None) -> tuple[Path | None, int]:
    """Where the last reading is, None where there is none, and how many source files have changed since."""
    known = job.result if job is not None else {}
    try:
        changed = files.changed_since(run, known["root"]) if known.get("root") else None
    except (UserError, OSError, ValueError):  # the next reading says what it is
        changed = None
    if changed is None:
        return None, 0
    stale = sum(1 for path in changed if indexed_as(path.rpartition("/")[2]))
    return code_index.of_run(run, known["root"], known["blob"]), stale


def act(hold: Hold) -> dict[str, Any] | None:
    """Read a run's workspace. Raises: RunError `workspace.*`, UsageError `world.*`, LedgerError, Lost."""
    run = Run.objects.filter(key=hold.key, deleted_at=None).first()
    root = files.roots(run)[1] if run is not None else ""
    if run is None or not root:
        return None
    result = hold.row.result
    if result.get("root") == root and is_whole(code_index.of_run(run, root, result["blob"])):
        return result
    with Scratch("code") as folder:
        _lay_out(run, folder)
        if not hold.keep():
            raise RunError("workspace.busy", "another worker reads the code of this run", "wait for it")
        blob = code_index.keep_of_run(run, root, lambda made: index(folder, made))
    return {"root": root, "blob": blob, "error": ""}


def _lay_out(run: Run, folder: Path) -> None:
    """The source files of a run, those too large to be parsed by their size only."""
    found = [one for one in files.files_of(run) if one.readable and _counts(one.path)]
    require_small(sum(one.size for one in found))
    for one in found:
        place = folder / one.path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            if one.size > scan.MAX_FILE_BYTES:
                file.truncate(one.size)
            else:
                file.write(files.content(run, one))


def _counts(path: str) -> bool:
    *folders, name = path.split("/")
    return bool(indexed_as(name) or name == MARKER) and {"", ".", ".."}.isdisjoint(folders)


KIND = Kind(name=READ, title="Code of runs to read", act=act)
