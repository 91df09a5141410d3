"""The faults of a seed: which, where, for how long; and what each does to a call of the product.

`drawn(seed)` gives a plan, a list of faults by the number of points that workers have come to; a shorter plan
is a plan too, which is how a failing seed is shrunk. `Injector` carries a plan out. It decides where a
process stops, dies or is refused something, and knows nothing of runs.
"""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from simulate import calls
from simulate.baton import Killed, Process, Scheduler, Task
from simulate.threads import Here

IDLE_S = 8.0
"""For so long the server keeps a transaction of a process that says nothing (spakweb.settings)."""
LEAST, MOST = 20, 26
GAP = 75
"""Points of workers between two faults, on average."""
KINDS: dict[str, int] = {
    "freeze": 40, "crash": 12, "stall": 10, "lost": 4, "doubled": 4, "late": 4, "full": 4, "io": 4,
    "torn": 5, "cut": 6, "unanswered": 5, "partition": 12, "jump": 3, "flushed": 4,
}  # fmt: skip
"""Each with its weight. `unanswered`: a commit is done, and the connection gone before its answer came.
`flushed`: the broker forgets all messages, and those that come for some time."""
SECONDS: dict[str, tuple[tuple[float, float], ...]] = {
    "freeze": ((0.5, 8), (9, 25), (20, 45), (45, 120)),
    "stall": ((0.5, 5), (5, 20), (20, 40)),
    "crash": ((0.2, 3), (10, 40)),
    "late": ((1, 20), (20, 70)),
    "full": ((0.5, 20),), "io": ((0.5, 20),),
    "partition": ((0.001, 0.02), (0.001, 0.02), (1, 12), (16, 40)),
    "flushed": ((0.1, 5), (20, 40)),
    "jump": ((1, 30), (1800, 7200)),
}  # fmt: skip


class Fault(NamedTuple):
    """One fault. It comes at a point of a worker, the `at`th that workers come to."""

    at: int
    kind: str
    seconds: float = 0.0


def drawn(seed: int) -> list[Fault]:
    """The plan of a seed."""
    dice = random.Random(f"faults {seed}")
    names, weights = list(KINDS), list(KINDS.values())
    found, at = [], dice.randrange(20, 200)
    for _ in range(dice.randint(LEAST, MOST)):
        kind = dice.choices(names, weights)[0]
        ranges = SECONDS.get(kind)
        seconds = round(dice.uniform(*dice.choice(ranges)), 3) if ranges else 0.0
        if kind == "jump" and dice.random() < 0.5:
            seconds = -seconds
        found.append(Fault(at, kind, seconds))
        at += 1 + int(dice.expovariate(1 / GAP))
    return found


class Injector:
    """Carries a plan out."""

    def __init__(self, scheduler: Scheduler, plan: Sequence[Fault], messages: Any) -> None:
        self.scheduler, self.messages = scheduler, messages
        self._left = list(reversed(plan))
        self.seen = 0
        """Points of workers so far."""
        self.done: Counter[str] = Counter()
        self.began_at = 0.0
        """Virtual time of the last fault."""
        self.heals_at = 0.0
        """Virtual time from which on no fault is left that began."""
        self.full_until = self.failing_until = 0.0
        self._armed: dict[Process, set[str]] = {}
        self._gone: dict[int, Any] = {}
        """Connections that the server has ended."""
        self.frozen: Callable[[Process, float], None] = lambda process, seconds: None
        self.crashed: Callable[[Process, float], None] = lambda process, seconds: None
        self.calm = False
        """No fault any more: what is left is to be seen to its end."""
        scheduler.at_point, scheduler.at_end = self.at_point, self.at_end
        calls.Faulty.disk, calls.Faulty.statvfs = self.disk, self.statvfs
        calls.Faulty.sql = self.sql

    @property
    def over(self) -> bool:
        """Whether all faults came, and passed."""
        return not self._left and self.scheduler.now >= self.heals_at

    # ---- where

    def at_point(self, task: Task, kind: str, name: str) -> None:
        """Count the point, and do what is due. Raises: Killed."""
        if not task.process.worker or self.calm:
            return
        self.seen += 1
        if self._left and self._left[-1].at <= self.seen:
            self._begin(self._left.pop(), task)

    def _begin(self, fault: Fault, task: Task) -> None:
        self.done[fault.kind] += 1
        self.scheduler.log.append((task.number, f"fault {fault.kind}"))
        process, seconds = task.process, fault.seconds
        self.began_at = self.scheduler.now
        ends = self.scheduler.now + abs(seconds)
        if fault.kind != "jump":
            self.heals_at = max(self.heals_at, ends)
        match fault.kind:
            case "freeze":
                process.frozen_until = max(process.frozen_until, ends)
                self.frozen(process, seconds)
                self._server_gives_up(process, seconds)
            case "crash":
                self.crashed(process, seconds)
                process.dead = True
                raise Killed
            case "stall":
                process.stalled_until = max(process.stalled_until, ends)
                self._server_gives_up(process, seconds, task)
                self.scheduler.sleep(seconds)
            case "partition":
                process.cut_until = max(process.cut_until, ends)
                self._server_gives_up(process, seconds)
            case "full":
                self.full_until = max(self.full_until, ends)
            case "io":
                self.failing_until = max(self.failing_until, ends)
            case "jump":
                Here.jump_s += seconds
            case "lost" | "doubled" | "late":
                self.messages.next_is(fault.kind, seconds)
            case "flushed":
                self.messages.flush(ends)
            case "torn" | "cut" | "unanswered":
                self._armed.setdefault(process, set()).add(fault.kind)

    def _taken(self, kind: str, process: Process) -> bool:
        armed = self._armed.get(process)
        if not armed or kind not in armed or self.calm:
            return False
        armed.discard(kind)
        return True

    # ---- the database

    def _server_gives_up(self, process: Process, seconds: float, only: Task | None = None) -> None:
        """A transaction in which nothing is asked for so long is ended by the server."""
        if seconds <= IDLE_S:
            return

        def end() -> None:
            for raw, task in list(process.raws.values()):
                if only in (None, task) and _in_transaction(raw):
                    raw.rollback()
                    self._gone[id(raw)] = raw

        self.scheduler.later(IDLE_S, end)

    def sql(self, query: str, raw: Any) -> None:
        """Raises: sqlite3.OperationalError."""
        process = self.scheduler.process
        assert process is not None
        if not process.worker:
            return
        if process.cut_until > self.scheduler.now:
            if raw is not None:
                self._end(raw)
            raise _refused("could not reach the server")
        if raw is not None and id(raw) in self._gone:
            raise _refused("the server closed the connection")
        if self.full_until > self.scheduler.now and query[:6] in ("INSERT", "UPDATE", "COMMIT"):
            raise _refused("database or disk is full", sqlite3.SQLITE_FULL)
        if raw is not None and self._taken("cut", process):
            self._end(raw)
            raise _refused("the server closed the connection unexpectedly")
        if query == "COMMIT" and self._taken("unanswered", process):
            raw.commit()
            calls.Faulty.committed(raw)
            self._end(raw)
            raise _refused("the server closed the connection unexpectedly")

    def _end(self, raw: Any) -> None:
        if _in_transaction(raw):
            raw.rollback()
        self._gone[id(raw)] = raw

    def at_end(self, task: Task) -> None:
        """A thread is over: the server ends what it left open, and all that a dead process had."""
        alike = [one for one in self.scheduler.tasks if one.process is task.process]
        dead = task.process.dead and alike == [task]
        for raw, last in list(task.process.raws.values()):
            if last is task or dead:
                if _in_transaction(raw):
                    raw.rollback()
                if dead:
                    raw.close()
                    del task.process.raws[id(raw)]

    # ---- the disk

    def disk(self, name: str, args: tuple[Any, ...]) -> None:
        """Raises: OSError."""
        scheduler = self.scheduler
        process = scheduler.process
        assert process is not None
        if not process.worker or name not in calls.WRITES or in_job():
            return
        if self.failing_until > scheduler.now:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        takes_room = name in ("write", "pwrite", "mkdir", "fsync", "fdatasync")
        if self.full_until > scheduler.now and takes_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if name in ("write", "pwrite", "fsync") and self._taken("torn", process):
            self._tear(name, args)

    def _tear(self, name: str, args: tuple[Any, ...]) -> None:
        """Half of what was to be written is there, and the process is gone or told of a failure."""
        if name == "write":
            os.write(args[0], bytes(args[1])[: len(args[1]) // 2])
        elif name == "pwrite":
            os.pwrite(args[0], bytes(args[1])[: len(args[1]) // 2], args[2])
        process = self.scheduler.process
        assert process is not None
        if self.scheduler.random.random() < 0.5:
            self.crashed(process, 2.0)
            process.dead = True
            raise Killed
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def statvfs(self, found: Any) -> Any:
        """A full disk says so."""
        process = self.scheduler.process
        full = self.full_until > self.scheduler.now and process is not None and process.worker
        return calls.roomless(found) if full else found


def in_job() -> bool:
    """Whether the caller is the stand-in of a program: what a disk does to those, no one can know."""
    task = Here.scheduler.current
    return task is not None and getattr(task, "in_job", False)


def _in_transaction(raw: Any) -> bool:
    try:
        return bool(raw.in_transaction)
    except sqlite3.ProgrammingError:
        return False


def _refused(words: str, code: int = 0) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return error
