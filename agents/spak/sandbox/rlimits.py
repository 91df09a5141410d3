"""Resource limits of a job, and the two ways to put them on it.

Root without CAP_SYS_RESOURCE (the usual container) may lower its own limits but not set another user's, so
for root they go on the command line, before the drop. An ordinary user's process limit counts everything
that the user runs, so there it must be set inside the new user namespace: on the first process, while it
still waits.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping

from spak.ports import Limits

_OVERHEAD = 3
"""Processes of bwrap's own that count under the same user: the monitor, the first process, one in passing."""
_DATA_FACTOR = 4

_OPTIONS = {
    resource.RLIMIT_CPU: "cpu",
    resource.RLIMIT_NPROC: "nproc",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_CORE: "core",
    resource.RLIMIT_DATA: "data",
}


def wanted(limits: Limits, *, watched: bool) -> dict[int, tuple[int, int]]:
    """Soft and hard value by resource.

    `watched`: no control group limits memory. Then writable private memory gets a wide limit, so that one
    quick process cannot outrun the watcher; address space gets none, for runtimes reserve far more than
    they use.
    """
    found = {
        resource.RLIMIT_CPU: (limits.cpu_s, limits.cpu_s + 1),
        resource.RLIMIT_NPROC: (limits.processes + _OVERHEAD,) * 2,
        resource.RLIMIT_FSIZE: (limits.file_bytes,) * 2,
        resource.RLIMIT_NOFILE: (limits.open_files,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if watched:
        found[resource.RLIMIT_DATA] = (_DATA_FACTOR * limits.memory_bytes,) * 2
    return {kind: _at_most(resource.getrlimit(kind)[1], pair) for kind, pair in found.items()}


def options(limits: Mapping[int, tuple[int, int]]) -> list[str]:
    """The limits as options of prlimit(1)."""
    return [f"--{_OPTIONS[kind]}={soft}:{hard}" for kind, (soft, hard) in limits.items()]


def put(pid: int, limits: Mapping[int, tuple[int, int]]) -> None:
    """Set limits of a process, none above its hard limit."""
    for kind, pair in limits.items():
        resource.prlimit(pid, kind, _at_most(resource.prlimit(pid, kind)[1], pair))


def _at_most(hard: int, pair: tuple[int, int]) -> tuple[int, int]:
    """The pair, no higher than the hard limit that is in force already."""
    return pair if hard == resource.RLIM_INFINITY else (min(pair[0], hard), min(pair[1], hard))
