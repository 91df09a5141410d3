"""An agent in the sandbox: its start, its terminal, holding it still, its end.

Takes a launcher, the agent's copy and its command line; gives a process and a socket that listens inside the
sandbox, whose connections the guard accepts outside: the only way out. Decides nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spak import data
from spak.errors import UnavailableError, UsageError
from spak.guard.terminal import fitted
from spak.ports import MIB, Child, Job, Launcher, Limits, Toolchain
from spak.sandbox import procfs
from spak.sandbox.chain import PATH

GUEST = "sandbox/guest/agent_guest.py"
HOME = "/tmp/home"
"""The agent's own folder, in memory: what it keeps there is gone when it ends."""
WEEK = 7 * 86_400
STILL_S = 2.0
LEAST_MEMORY = 4096 * MIB
_BELOW = ("node_modules", "site-packages")
_PYTHON = ("lib", "lib64")
_VENV = ("pyvenv.cfg", "bin", "include", "lib", "lib64", "share")


@dataclass(slots=True)
class Agent:
    """An agent that runs."""

    child: Child
    listener: socket.socket
    """Listens on the sandbox's loopback."""
    terminal: int = -1
    """The master of its terminal, where it has one."""
    _held: bool = False

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold all of its processes still; one that was stopped already stays so."""
        held: set[int] = set()
        theirs: set[int] = set()
        until = time.monotonic() + STILL_S
        self._held = True
        try:
            while awake := list(self._awake(held)):
                for pid, state in awake:
                    theirs |= {pid} if state == "T" else set()
                    held.add(pid)
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                if time.monotonic() > until:
                    break
                time.sleep(0.0005)
            yield
        finally:
            for pid in held - theirs:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self._held = False

    def suspended(self) -> bool:
        """Whether it has stopped itself, as a program does at Ctrl+Z."""
        return not self._held and any(_state(pid) == "T" for pid in self._first()) and not self._held

    def go_on(self) -> None:
        """Wake what was suspended."""
        for pid in self._first():
            with suppress(ProcessLookupError):
                os.killpg(os.getpgid(pid), signal.SIGCONT)

    def _first(self) -> list[int]:
        """The agent itself, the oldest child of the guest."""
        return procfs.tree(self.child.pid)[1:2]

    def _awake(self, held: set[int]) -> Iterator[tuple[int, str]]:
        """Those that are not held, or run all the same: one that still ran may have woken it, and one in the
        middle of a write stops when it comes out of the kernel."""
        for pid in procfs.tree(self.child.pid)[1:]:
            state = _state(pid)
            if state not in "ZX" and (pid not in held or state not in "Tt"):
                yield pid, state

    def close(self) -> None:
        """End it, if it lives; returns when nothing of it does."""
        self.child.kill()
        self.listener.close()
        if self.terminal >= 0:
            os.close(self.terminal)


def _state(pid: int) -> str:
    """The letter of a process's state; X for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def start(
    launcher: Launcher,
    folder: Path,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    limits: Limits,
    toolchain: Toolchain,
    binds: Sequence[Path] = (),
    options: Sequence[str] = (),
    home: str = "{}",
    writable: bool = True,
    terminal: bool = False,
    heard: Callable[[int, bytes], None] | None = None,
) -> Agent:
    """Start it in that folder, with these options before its own and these files in its home (JSON: texts by
    name). In all of them the guest puts the port for `{spak-port}` and the folder for `{spak-folder}`.

    Raises: UnavailableError `guard.start`; UsageError `guard.agent`."""
    program, where = found(argv[0], binds)
    argv = (argv[0], *options, *argv[1:])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        guest = data.path(GUEST).read_text(encoding="utf-8")
        number = theirs.fileno()
        python = toolchain.programs["python"]
        kind = "tty" if terminal else "pipes"
        job = Job(
            (python, "-I", "-S", "-c", guest, str(number), kind, home, program, *argv[1:]),
            folder,
            writable=writable,
            repository=writable,
            limits=limits,
            env={"HOME": HOME, "PATH": _path(program), **env},
            binds=tuple(dict.fromkeys((*toolchain.binds, *where))),
            heard=heard,
        )
        child = launcher.start(job, (number,))
        try:
            theirs.close()
            ours.settimeout(30)
            _, passed, _, _ = socket.recv_fds(ours, 64, 2)
            if not passed:
                detail = child.wait(5).detail
                raise UnavailableError(
                    "guard.start",
                    f"the sandbox did not start: {detail or 'it ended'}",
                    "spak doctor says why",
                )
            listener = socket.socket(fileno=passed[0])
            made = Agent(child, listener, passed[1] if terminal else -1)
            if terminal:
                fitted(made.terminal)  # before it looks
            ours.sendall(b"\n")
            return made
        except BaseException:
            child.kill()
            raise


def found(name: str, binds: Sequence[Path] = ()) -> tuple[str, tuple[Path, ...]]:
    """The agent's program as it is inside, and the folders of its install that it needs there.

    Raises: UsageError `guard.agent`."""
    path = shutil.which(name)
    if path is None:
        raise UsageError(
            "guard.agent", f"there is no program {name!a}", "install the agent, or name its file"
        )
    place = Path(path).absolute()
    wanted = [*binds]
    for one in {place, place.resolve()}:
        wanted += [home for home in _installs(one) if not home.is_relative_to("/usr")]
    tops = [one for one in wanted if not any(one != other and one.is_relative_to(other) for other in wanted)]
    return str(place), tuple(sorted(set(tops)))


def _path(program: str) -> str:
    """Where its first line finds an interpreter: beside it, and node, which may be a person's own."""
    node = shutil.which("node")
    beside = [str(Path(one).absolute().parent) for one in (program, node) if one is not None]
    return ":".join(dict.fromkeys((*beside, *PATH.split(":"))))


def _installs(program: Path) -> Iterator[Path]:
    """Where a program's parts are: its environment, its package manager's folder, or the file itself. What is
    beside them is not shown: it may be a project with its secrets, or somebody's home."""
    for folder in program.parents:
        if (folder / "pyvenv.cfg").is_file():
            yield from (folder / name for name in _VENV if (folder / name).exists())
            python = (folder / "bin/python").resolve()
            yield python
            yield from (python.parents[1] / name for name in _PYTHON if (python.parents[1] / name).exists())
            return
        if folder.name in _BELOW:
            yield folder
            node = shutil.which("node")
            if node is not None:
                yield Path(node).absolute()
                yield Path(node).resolve()
            return
    yield program
