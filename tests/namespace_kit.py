"""A process on a host of its own: with its own network, name, process ids and mounts, by Linux namespaces.

`forked(name, work, hidden)` is `os.fork` for that; `Hosted` says how the process is. What the kernel keeps
for all (files that both see, their locks, users) is what hosts on one disk would share; `hidden` folders are
empty there. Where namespaces may not be made (`needed`) a test is skipped, and fails in CI.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from needs import absent

NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, NEWUTS, NEWIPC, NEWPID and NEWNET."""
_PRIVATE = 1 << 18 | 1 << 14
"""MS_PRIVATE | MS_REC."""
COMMAND = ("unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "hostname", "spak-host")


@lru_cache(maxsize=1)
def refusal() -> str:
    """Why no namespaces can be made here; empty where they can."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


def needed() -> None:
    """Skips where there are none; in CI there must be."""
    if why := refusal():
        absent(f"namespaces cannot be made here (root, or a container that may): {why}")


class Hosted:
    """A forked process, alone or behind two that keep its namespaces; `pid` is what this one waits for."""

    def __init__(self, pid: int, behind: int) -> None:
        self.pid = pid
        self.worker = pid
        for _ in range(behind):
            self.worker = _child_of(self.worker)

    def state(self) -> str:
        """`stopped`, `runs`, or `ended CODE`."""
        found, status = os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)
        if found and not os.WIFSTOPPED(status):
            return f"ended {os.waitstatus_to_exitcode(status)}"
        if found or (self.worker != self.pid and _letter(self.worker) == "T"):
            return "stopped"
        return "runs"

    def go_on(self) -> None:
        """Wake it."""
        os.kill(self.worker, signal.SIGCONT)

    def kill(self) -> None:
        """End it, with the processes that it is behind."""
        os.kill(self.worker, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def forked(work: Callable[[], None], name: str = "", hidden: Sequence[Path] = ()) -> Hosted:
    """A child that does the work and ends with 0; with a name on a host of that name, where `hidden` folders
    are empty."""
    pid = os.fork()
    if pid:
        return Hosted(pid, 2 if name else 0)
    code = 1
    try:
        if name:
            _enter(name, hidden)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _enter(name: str, hidden: Sequence[Path]) -> None:
    """Behind two processes: one outside that makes the namespaces, and the first one inside. A first process
    cannot be stopped from inside, so it does nothing but wait."""
    libc = ctypes.CDLL(None, use_errno=True)

    def must(done: int) -> None:
        if done != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def mount(source: bytes, where: Path, kind: bytes, flags: int = 0) -> None:
        must(libc.mount(source, str(where).encode(), kind, ctypes.c_ulong(flags), None))

    must(libc.unshare(NEW))
    _stay_in_front()
    mount(b"none", Path("/"), b"", _PRIVATE)
    mount(b"proc", Path("/proc"), b"proc")
    for folder in hidden:
        mount(b"tmpfs", folder, b"tmpfs")
    socket.sethostname(name)
    _stay_in_front()


def _stay_in_front() -> None:
    """Go on in a child; this process only waits for it and ends as it does."""
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os._exit(code if code >= 0 else 128 - code)


def _child_of(pid: int) -> int:
    """The only child of a process that is about to have one; its own id where it ended before."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    while True:
        try:
            if found := listed.read_text().split():
                return int(found[0])
        except OSError:
            return pid
        if _letter(pid) in ("Z", ""):
            return pid
        time.sleep(0.002)


def _letter(pid: int) -> str:
    """The letter of a process's state; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
