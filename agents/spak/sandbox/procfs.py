"""What `/proc` says of a sandbox from outside: its processes, their memory and their CPU time.

Takes the process id of the sandbox's first process. Inside a process namespace every orphan becomes a child
of that one, so a walk over children misses none. Processes come and go during the walk; one that is gone
counts as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree uses."""

    processes: int = 0
    private_bytes: int = 0
    """Anonymous pages; those that a fork shares are counted for each process, so it is an upper bound."""
    cpu_ms: int = 0


def tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, _read(f"{task}/children").split())
        except (
            FileNotFoundError,
            ProcessLookupError,
        ):  # gone before the folder was opened, or while it was read
            continue
    return found


def namespace_leader(pid: int) -> int:
    """The first process of the nested process namespace below a process whose descendants stand in line.

    Raises: ProcessLookupError when the line ends before.
    """
    while True:
        children = tree(pid)[1:]
        if not children:
            raise ProcessLookupError(f"process {pid} has no child")
        pid = children[0]
        for line in _read(f"/proc/{pid}/status").splitlines():
            if line.startswith("NSpid:") and len(line.split()) > 2:
                return pid


def usage(pid: int) -> Usage:
    """What a process and all below it use now."""
    pids = tree(pid)
    private = ticks = 0
    for one in pids:
        pages = _read(f"/proc/{one}/statm").split()
        if len(pages) > 2:
            private += max(0, int(pages[1]) - int(pages[2]))
        fields = _read(f"/proc/{one}/stat").rpartition(")")[2].split()
        if len(fields) > 14:
            ticks += sum(map(int, fields[11:15]))
    return Usage(len(pids), private * _PAGE, int(ticks * _TICK_MS))


def proportional_bytes(pids: Iterable[int]) -> int:
    """Memory with each shared page counted once in all; dearer than `usage`, for a second look."""
    total = 0
    for pid in pids:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                total += int(line.split()[1]) * 1024
    return total


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
