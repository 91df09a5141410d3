"""The port of launchers: a job in a sandbox, its limits, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from spak.cancel import Cancel
from spak.lang.catalog import NamedEntry

MIB = 1 << 20

Heard = Callable[[int, bytes], None]
"""Gets what a job puts out while it runs: the number of the stream (1 output, 2 errors) and bytes of it, in
order, in whatever thread reads them. It comes back at once and raises nothing; it decides nothing."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much a workspace may hold, and how much of it there was when the job began."""

    size_bytes: int
    entries: int
    held_bytes: int = 0
    held_entries: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may use at most; past it the job ends with status `limit`, `oom` or `timeout`."""

    wall_s: float = 60.0
    cpu_s: int = 60
    memory_bytes: int = 2048 * MIB
    processes: int = 128
    file_bytes: int = 64 * MIB
    output_bytes: int = MIB
    """How much of each stream is kept: half from the head, half from the tail; the rest only counted."""
    open_files: int = 256
    quota: Quota | None = None
    """Of the workspace, where the job may write in it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One command line for a launcher. The workspace is `/ws` inside, and the working directory."""

    argv: tuple[str, ...]
    workspace: Path
    writable: bool = True
    repository: bool = False
    """Whether `.git` at the top of a writable workspace may be written; else it is shown read-only."""
    masked: tuple[str, ...] = ()
    """Paths below the workspace, without links, that the job does not see: a line instead, or nothing."""
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """The working directory instead: below the workspace, without links on its way."""
    binds: tuple[Path, ...] = ()
    """Host folders or files shown read-only at the same path inside (toolchains)."""
    home: str = ""
    """The absolute path of the folder that the workspace is a copy of: the copy is found there too."""
    shown: tuple[str, ...] = ()
    """Paths below it of folders that are shown read-only in the copy, which has them empty."""
    scratch: tuple[str, ...] = ()
    """Paths below these of folders that are the copy's own, and writable."""
    stdin: bytes = b""
    inherit: tuple[int, ...] = ()
    """Descriptors that the sandboxed process keeps (the workspace lock)."""
    heard: Heard | None = None
    cancel: Cancel | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """What a job wrote: the bytes that were kept, and size and hash of all of them."""

    data: bytes = b""
    size: int = 0
    sha256: str = ""
    truncated: bool = False


Status = Literal["exited", "timeout", "oom", "limit", "launcher", "crash"]
"""exited: it ended by itself, exit code valid; limit: a resource limit ended it; launcher: it never started;
crash: it died by a signal of its own making (`exit` = 128 + signal)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended; times in milliseconds."""

    status: Status
    exit: int = 0
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    wall_ms: int = 0
    cpu_ms: int = 0
    detail: str = ""


class Child(Protocol):
    """A sandboxed process that its starter talks to and ends itself (the profiler's)."""

    pid: int
    """The candidate's own process id, seen from outside (its CPU clock can be read)."""

    def poll(self) -> int | None:
        """The exit code, None while it lives."""

    def kill(self) -> None:
        """End the whole group; returns when nothing of it lives."""

    def wait(self, timeout_s: float) -> Outcome:
        """Wait for its end, for so many seconds at most; then it is killed."""


class Launcher(Protocol):
    """Whatever starts jobs inside a sandbox."""

    entry: NamedEntry

    def probe(self) -> str:
        """Empty when a nonce came back from inside and a forbidden read failed; else why not, and a mend."""

    def run(self, job: Job) -> Outcome:
        """Run it to its end. Raises: Cancelled within a second of `job.cancel`, when nothing of it lives."""

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Child:
        """Start without waiting, with the given descriptors open inside at the same numbers."""
