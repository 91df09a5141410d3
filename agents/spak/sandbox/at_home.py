"""A launcher whose jobs find a workspace also at the path of the folder that it is a copy of.

Takes a launcher, the workspace with other folders of its files, and the copy's record; is a launcher.
Absolute paths, editable installs and first lines of scripts that name the user's folder lead to the copy
so, and the folders that are only shown have their places in it. Jobs in other folders are unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from spak.ports import Child, Job, Launcher, Outcome


class AtHome:
    """A launcher whose jobs see what the copy left outside and shows."""

    def __init__(
        self,
        inner: Launcher,
        workspaces: Sequence[Path] | None,
        home: str,
        shown: Sequence[str] = (),
        scratch: Sequence[str] = (),
        masked: Sequence[str] = (),
    ) -> None:
        """`masked` are the files of secrets in what is shown, its sockets and its pipes; without `workspaces`
        every job has its folder there."""
        self.entry = inner.entry
        self._inner, self._home = inner, home
        self._workspaces = None if workspaces is None else tuple(place.resolve() for place in workspaces)
        self._shown, self._scratch, self._masked = tuple(shown), tuple(scratch), tuple(masked)

    def probe(self) -> str:
        return self._inner.probe()

    def run(self, job: Job) -> Outcome:
        return self._inner.run(self._placed(job))

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        return self._inner.start(self._placed(job), pass_fds, seccomp_extra)

    def _placed(self, job: Job) -> Job:
        if self._workspaces is not None and job.workspace.resolve() not in self._workspaces:
            return job
        masked = (*job.masked, *self._masked)
        return replace(job, home=self._home, shown=self._shown, scratch=self._scratch, masked=masked)


def specials(home: str, top: str) -> Iterator[str]:
    """Sockets, pipes and devices in a folder that is shown, by their paths below `home`: a read-only mount
    keeps nobody from talking to whoever listens there."""
    with suppress(OSError), os.scandir(f"{home}/{top}") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from specials(home, f"{top}/{entry.name}")
            elif not (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
                yield f"{top}/{entry.name}"
