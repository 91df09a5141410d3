"""A control group for one sandbox: a memory limit that kills, the kernel's own count of kills, CPU time.

Works with version 1 (a memory and a cpuacct hierarchy) and version 2 (one tree), wherever a folder below
this process's own group can be made. Where none can, `create` gives None and the caller watches instead.
Groups are made below the own one, so limits from outside go on counting.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_numbers = itertools.count(1)
_PREFIX = "spak-"


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Folders below which groups can be made; `version` 0 when there is no memory controller to use."""

    version: int = 0
    memory: Path | None = None
    cpu: Path | None = None


class Group:
    """One sandbox's group, until `close`."""

    def __init__(self, version: int, memory: Path, cpu: Path | None) -> None:
        self._version, self._memory, self._cpu = version, memory, cpu

    def add(self, pid: int) -> None:
        """Move a process in; what it forks from now on is in too."""
        for folder in dict.fromkeys((self._memory, self._cpu)):
            if folder is not None:
                (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the group for want of memory."""
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        return _field(self._memory / name, "oom_kill") > 0

    def cpu_ms(self) -> int | None:
        """CPU milliseconds of all its processes; None where they are not counted."""
        if self._cpu is None:
            return None
        if self._version == 1:
            return int((self._cpu / "cpuacct.usage").read_text()) // 1_000_000
        return _field(self._cpu / "cpu.stat", "usage_usec") // 1000

    def close(self) -> None:
        """Remove the group. One that the kernel still holds for a moment is left to a later `create`."""
        for folder in dict.fromkeys((self._memory, self._cpu)):
            if folder is not None:
                _remove(folder)


def create(memory_bytes: int) -> Group | None:
    """A new group with that limit, or None where groups cannot be made."""
    return _create(hierarchies(), memory_bytes)


@lru_cache
def hierarchies() -> Hierarchies:
    """What this process may use, found once; groups that dead processes left behind are removed."""
    own = Path("/proc/self/cgroup")
    if not own.exists():
        return Hierarchies()
    places = find(Path("/proc/self/mountinfo").read_text(), own.read_text())
    for folder in dict.fromkeys((places.memory, places.cpu)):
        if folder is not None:
            _sweep(folder)
    return places if places.memory is not None and _moves(places) else Hierarchies()


def find(mountinfo: str, own: str) -> Hierarchies:
    """The hierarchies that those two files of /proc describe and that take a new group."""
    groups = {name: path for _, names, path in (line.split(":", 2) for line in own.splitlines())
              for name in names.split(",")}  # fmt: skip
    found: dict[str, Path] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            path = groups.get(name)
            if path is not None and (name or kind == "cgroup2"):
                inside = os.path.relpath(path, root) if path.startswith(root) else "."
                found.setdefault(name, Path(point, inside))
    if "memory" in found and _takes_groups(found["memory"]):
        cpu = found.get("cpuacct")
        return Hierarchies(1, found["memory"], cpu if cpu and _takes_groups(cpu) else None)
    for folder in (found[""], found[""].parent) if "" in found else ():
        if _delegates_memory(folder):
            return Hierarchies(2, folder, folder)
    return Hierarchies()


def _create(places: Hierarchies, memory_bytes: int) -> Group | None:
    if places.memory is None:
        return None
    name = f"{_mine()}{os.getpid()}-{next(_numbers)}"
    memory, cpu = places.memory / name, places.cpu / name if places.cpu else None
    group = Group(places.version, memory, cpu)
    try:
        for folder in dict.fromkeys((memory, cpu)):
            if folder is not None:
                folder.mkdir()
        if places.version == 1:
            (memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
            _write_if_there(memory / "memory.memsw.limit_in_bytes", str(memory_bytes))
        else:
            (memory / "memory.max").write_text(str(memory_bytes))
            _write_if_there(memory / "memory.swap.max", "0")
            _write_if_there(memory / "memory.oom.group", "1")
    except OSError:
        group.close()
        return None
    return group


def _takes_groups(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


def _delegates_memory(folder: Path) -> bool:
    """Whether children of the folder get the memory controller, after asking for it."""
    control = folder / "cgroup.subtree_control"
    try:
        if "memory" not in control.read_text().split():
            control.write_text("+memory")
        return "memory" in control.read_text().split() and _takes_groups(folder)
    except OSError:
        return False


def _moves(places: Hierarchies) -> bool:
    """Whether a process can be moved there, tried with a harmless one: a folder to write in is not enough."""
    group = _create(places, 1 << 30)
    if group is None:
        return False
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={}) as waiting:
        try:
            group.add(waiting.pid)
        except OSError:
            return False
        finally:
            waiting.communicate()
            group.close()
    return True


def _mine() -> str:
    """How names of groups begin here: process ids mean something only within their namespace."""
    return f"{_PREFIX}{Path('/proc/self/ns/pid').stat().st_ino}-"


def _sweep(folder: Path) -> None:
    for left in folder.glob(f"{_mine()}*-*"):
        owner = left.name.removeprefix(_mine()).partition("-")[0]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            _remove(left, tries=1)


def _remove(folder: Path, tries: int = 20) -> None:
    for _ in range(tries):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.001)
        else:
            return


def _write_if_there(path: Path, text: str) -> None:
    if path.exists():
        path.write_text(text)


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
