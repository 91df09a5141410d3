"""The host's git in a bare repository of ours, on contents that nobody trusts.

Takes a folder; gives a `Git` whose `local` runs one command there. Nothing of the caller's environment, of
the machine's settings or of a user's repository decides what git does: no hook, filter, helper, prompt or
protocol. There is no work tree, except that `look` names one for commands that read its `.gitignore` and
`.gitattributes` and nothing else of it. Time, memory, CPU and sizes of files are bounded; a command that is
broken off leaves no process. What goes wrong is a RunError `git.*`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from resource import (
    RLIM_INFINITY,
    RLIMIT_CORE,
    RLIMIT_CPU,
    RLIMIT_DATA,
    RLIMIT_FSIZE,
    RLIMIT_NOFILE,
    getrlimit,
)
from tempfile import TemporaryFile
from typing import IO, Any

from spak.errors import RunError

TURN_S = 0.05
MAX_STDERR = 2000
"""Bytes of what git says at its end that are looked at."""
MEMORY, OPEN_FILES = 1 << 30, 256
PATH = "/usr/local/bin:/usr/bin:/bin"
WRAPPER, LIMITER = "timeout", "prlimit"
FULL = ("No space left", "Disk quota exceeded", "Out of diskspace")
_FSIZE, _CPU = 128 + signal.SIGXFSZ, 128 + signal.SIGXCPU
_NOT_FOUND = 127
"""How the programs that bound a command end where it is not there."""
_LATE = frozenset({124, _CPU, 128 + signal.SIGKILL})

SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "fastimport.unpackLimit": "1",  # one pack, whose size is bounded as that of a file
}
"""Above all that a machine or a repository could set."""


@dataclass(slots=True)
class Git:
    """git in one folder, until `ends` (time.monotonic) and as long as `wanted` says so."""

    folder: Path
    ends: float
    most_bytes: int
    wanted: Callable[[], bool] = lambda: True
    owner: tuple[int, int] | None = None
    """The user and the group that git runs as, where it is not ours: the files that it makes are theirs."""

    def begin(self) -> None:
        """Make the bare repository."""
        self.folder.mkdir(parents=True, mode=0o700)
        self.local("init", "--quiet", "--bare", "--template=", ".")

    def local(
        self, *words: str, given: IO[bytes] | bytes | None = None, most: int = 0, accepted: Sequence[int] = ()
    ) -> bytes:
        """What a command of the own repository prints, which reads `given`; exits in `accepted` are good too.
        Raises: RunError `git.*`."""
        with _readable(given) as file:
            return self._run(words, self.environment(), file, most or self.most_bytes, accepted)

    def look(self, work: Path, *words: str, given: bytes, accepted: Sequence[int] = ()) -> bytes:
        """The same, of a command that reads files of `work` that say what is ignored and how files are
        stored. Raises: RunError `git.*`."""
        with _readable(given) as file:
            env = {**self.environment(), "GIT_WORK_TREE": str(work.absolute())}
            return self._run(words, env, file, self.most_bytes, accepted, work)

    def pipe(self, *words: str, given: IO[bytes]) -> subprocess.Popen[bytes]:
        """A command of the own repository whose output is read while it comes; the caller ends it."""
        return subprocess.Popen(
            self._line(words, self.most_bytes), env=self.environment(), cwd=self.folder, stdin=given,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def left_s(self) -> float:
        """Seconds until the time is over. Raises: RunError `git.timeout`."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def settings(self) -> dict[str, str]:
        """The settings of each command."""
        return dict(SETTINGS)

    def environment(self) -> dict[str, str]:
        """The whole environment of a command."""
        place = str(self.folder.absolute())
        found = {
            "PATH": PATH, "HOME": place, "LC_ALL": "C", "TZ": "UTC", "GIT_DIR": place,
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": "none",
        }  # fmt: skip
        return found | configured(self.settings())

    def _line(self, words: Sequence[str], most: int) -> list[str]:
        seconds = max(1, int(self.left_s()) + 1)
        limits = [f"--{name}={_allowed(number, wanted)}" for name, number, wanted in (
            ("fsize", RLIMIT_FSIZE, most), ("data", RLIMIT_DATA, MEMORY), ("cpu", RLIMIT_CPU, seconds),
            ("core", RLIMIT_CORE, 0), ("nofile", RLIMIT_NOFILE, OPEN_FILES),
        )]  # fmt: skip
        bounded = [WRAPPER, "-k", "1", str(seconds), LIMITER, *limits, "--"] if _bounds() else []
        return [*bounded, "git", *words]

    def _run(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        given: IO[bytes] | None,
        most: int,
        accepted: Sequence[int] = (),
        place: Path | None = None,
    ) -> bytes:
        with TemporaryFile() as stdout, TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(
                    self._line(words, most), env=dict(env), cwd=place or self.folder,
                    stdin=given or subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
                    **self._as_owner(),
                )  # fmt: skip
            except FileNotFoundError as error:
                raise self._missing() from error
            try:
                self._until_done(process)
            finally:
                end(process)
            if process.returncode and process.returncode not in accepted:
                stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - MAX_STDERR))
                raise self._failed(words, process.returncode, stderr.read().decode(errors="replace"))
            if stderr.seek(0, os.SEEK_END):
                stderr.seek(0)
                self.warned(os.fsdecode(stderr.read(MAX_STDERR)))
            stdout.seek(0)
            return stdout.read()

    def warned(self, text: str) -> None:
        """Look at what a command that did not fail has said beside its output."""

    def _as_owner(self) -> dict[str, Any]:
        if self.owner is None:
            return {}
        return {"user": self.owner[0], "group": self.owner[1], "extra_groups": []}

    def _until_done(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                process.wait(TURN_S)
            except subprocess.TimeoutExpired:
                self.left_s()
                if not self.wanted():
                    raise RunError("git.cancelled", "the run was cancelled while git worked", "") from None
            else:
                return

    def _failed(self, words: Sequence[str], status: int, stderr: str) -> RunError:
        """What an exit means, with git's words."""
        status = status if status >= 0 else 128 - status
        if status in _LATE:
            return self._late()
        if status == _NOT_FOUND:
            return self._missing()
        if found := self._meant(status == _FSIZE, stderr):
            return found
        lines = [line for line in stderr.splitlines() if line.startswith(("fatal:", "error:"))] or [""]
        said = "".join(sign for sign in lines[-1][:160] if " " <= sign <= "~")
        return RunError(
            "git.failed",
            f"git ended with {status}: {self._shown(said) or 'it said nothing'}",
            "does git do it by hand?",
        )

    def _meant(self, cut: bool, stderr: str) -> RunError | None:
        """An error of ours for what git printed; `cut` where a file became larger than allowed."""
        if any(words in stderr for words in FULL):
            return RunError("workspace.full", "the disk is full", "free some space and continue")
        if cut or "File too large" in stderr or "out of memory" in stderr:
            return RunError("git.huge", "the files are larger than git may write", "leave large files out")
        return None

    def _shown(self, said: str) -> str:
        """What of git's words may be shown."""
        return said

    def _late(self) -> RunError:
        return RunError("git.timeout", "git took longer than it is given", "is the disk busy? try again")

    def _missing(self) -> RunError:
        return RunError("git.missing", "there is no git that can be started", "install git")


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Variables that set these above every file of git's."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """The command and all that it started, gone."""
    if process.stdout is not None:
        process.stdout.close()
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def _allowed(number: int, wanted: int) -> int:
    """A limit that is not above the one that we have, which may not be raised."""
    most = getrlimit(number)[1]
    return wanted if most == RLIM_INFINITY else min(wanted, most)


@cache
def _bounds() -> bool:
    """Whether the programs that bound a command are here (on Linux they are)."""
    return all(shutil.which(name, path=PATH) for name in (WRAPPER, LIMITER))


@contextmanager
def _readable(given: IO[bytes] | bytes | None) -> Iterator[IO[bytes] | None]:
    if not isinstance(given, bytes):
        yield given
        return
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file
