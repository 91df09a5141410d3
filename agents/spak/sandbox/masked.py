"""A launcher whose jobs in one workspace do not see its secret files.

Takes a launcher, the workspace and the paths to mask; is a launcher. Jobs in other folders are as they were;
in the workspace `.git` is the scratch repository, which they may write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spak.ports import Child, Job, Launcher, Outcome


class Masked:
    """A launcher whose jobs do not see some files of the workspace."""

    def __init__(self, inner: Launcher, workspace: Path, paths: Sequence[str]) -> None:
        self.entry = inner.entry
        self._inner, self._workspace, self._paths = inner, workspace.resolve(), tuple(paths)

    def probe(self) -> str:
        return self._inner.probe()

    def run(self, job: Job) -> Outcome:
        return self._inner.run(self._with_masks(job))

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        return self._inner.start(self._with_masks(job), pass_fds, seccomp_extra)

    def _with_masks(self, job: Job) -> Job:
        folder = job.workspace.resolve()
        if folder == self._workspace:
            return replace(job, masked=(*job.masked, *self._paths), repository=True)
        if self._workspace in folder.parents:
            top = f"{folder.relative_to(self._workspace)}/"
            below = [path.removeprefix(top) for path in self._paths if path.startswith(top)]
            return replace(job, masked=(*job.masked, *below))
        return job
