"""One baton for many threads, and a clock that nobody waits for.

Every simulated thread is a real one, but only the one that has the baton runs. It is handed on at points: the
calls of the disk, the database, locks and clocks that the product makes (simulate.calls, simulate.threads).
Who gets it next, and where, comes from one seed. Virtual time goes on by a moment at each point, and jumps to
the next deadline where everybody waits. Takes a seed; gives the same order for the same seed. It knows no
product and no fault: `at_point` is what decides on those.
"""

from __future__ import annotations

import random
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

STEP_S = 0.0002
"""Virtual seconds that a point takes."""
STUCK_S = 120.0
"""So many real seconds without a point are an error: something waits outside of the simulation."""
SWITCH = 24
"""The baton is handed on after so many points on average."""
MOST_S = 7200.0
"""No seed takes longer, in virtual time."""


class Killed(BaseException):
    """The process of this thread was killed. No handler of ordinary errors takes it for one, and nothing that
    is done while it passes reaches the disk or the database."""


class Stuck(Exception):
    """Nobody can go on, or somebody went on for too long."""


class Process:
    """Threads that live, freeze and die together, and what a process of the product has of its own."""

    def __init__(self, name: str, *, worker: bool = False, host: str = "") -> None:
        self.name, self.worker, self.host = name, worker, host
        self.dead = False
        self.frozen_until = 0.0
        self.cut_until = 0.0
        """It reaches no database and no broker before."""
        self.stalled_until = 0.0
        """One of its threads does not go on before."""
        self.skew_s = 0.0
        self.own: dict[Any, Any] = {}
        """Its copies of what modules of the product hold one of."""
        self.raws: dict[int, tuple[Any, Task]] = {}
        """Its connections to the database, each with the thread that used it last."""


class Task:
    """One simulated thread."""

    def __init__(self, number: int, name: str, process: Process, work: Callable[[], object]) -> None:
        self.number, self.name, self.process, self.work = number, name, process, work
        self.go = threading.Lock()
        self.go.acquire()
        self.ready: Callable[[], bool] | None = None
        self.until: float | None = None
        self.waits = False
        self.ended = False
        self.ident = 0
        self.error: BaseException | None = None
        self.busy_s = 20.0
        self.in_job = False
        """It stands for a program in a sandbox now."""


class Scheduler:
    """Tasks, their turn and their time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"turns {seed}")
        self.now = 0.0
        self.points = 0
        self.log: list[tuple[int, str]] = []
        """The trace: who came to which point, in order."""
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.ident = 0
        self.at_point: Callable[[Task, str, str], None] = lambda task, kind, name: None
        self.at_end: Callable[[Task], None] = lambda task: None
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self._switch_at = 1
        self._numbers = 0
        self._over = threading.Event()
        self.failure: BaseException | None = None
        self._main = False

    # ---- asked by whoever wants to know where it is

    def mine(self) -> bool:
        """Whether the caller is a simulated thread."""
        return threading.get_ident() == self.ident

    @property
    def process(self) -> Process | None:
        """That of the thread which has the baton."""
        return self.current.process if self.current is not None else None

    # ---- tasks

    def spawn(self, name: str, process: Process, work: Callable[[], object]) -> Task:
        """A thread that begins when it gets the baton."""
        self._numbers += 1
        task = Task(self._numbers, name, process, work)
        self.tasks.append(task)
        threading.Thread(target=self._body, args=(task,), name=name, daemon=True).start()
        return task

    def _body(self, task: Task) -> None:
        task.go.acquire()
        task.ident = self.ident = threading.get_ident()
        try:
            if not task.process.dead:
                task.work()
        except Killed:
            pass
        except BaseException as error:  # a thread of the product that dies says so; the others go on
            task.error = error
            if task.process.worker is False:
                self.failure = self.failure or error
        task.ended = True
        try:
            self.at_end(task)
        except BaseException as error:
            self.failure = self.failure or error
        self.tasks.remove(task)
        self._hand_on(None)

    def run(self) -> None:
        """Until no task is left. Raises: what a task that is no worker raised; Stuck."""
        self._hand_on(None)
        seen = -1
        while not self._over.wait(STUCK_S):
            if seen == self.points:
                raise Stuck(f"no point for {STUCK_S:.0f} s: {self._stacks()}")
            seen = self.points
        if self.failure is not None:
            raise self.failure

    def stop(self, failure: BaseException | None = None) -> None:
        """End the simulation now; the threads that are left are never run again."""
        self.failure = self.failure or failure
        for task in self.tasks:
            task.process.dead = True

    def kill(self, process: Process) -> None:
        """The process dies: its threads unwind, and write nothing more. The caller goes on, unless it is one
        of them."""
        process.dead = True
        if self.current is not None and self.current.process is process:
            raise Killed
        if any(task.process is process for task in self.tasks):
            self._turn()

    # ---- waiting

    def point(self, kind: str, name: str) -> None:
        """A call of the product's that could take time: faults and other threads have their turn here.

        Raises: Killed, and what `at_point` raises.
        """
        task = self.current
        assert task is not None
        if task.process.dead:
            raise Killed
        self.points += 1
        self.now += STEP_S
        self.log.append((task.number, name))
        self.at_point(task, kind, name)
        if self.points >= self._switch_at:
            self._switch_at = self.points + 1 + int(self.random.expovariate(1 / SWITCH))
            self._turn()
        elif task.process.frozen_until > self.now:
            self._turn()

    def wait(self, ready: Callable[[], bool] | None, timeout: float | None = None) -> bool:
        """Until `ready`, or for so many virtual seconds; whether it is ready. Raises: Killed."""
        task = self.current
        assert task is not None
        if task.process.dead:
            raise Killed
        self.log.append((task.number, "wait"))
        task.ready, task.waits = ready, True
        task.until = None if timeout is None else self.now + max(timeout, 0.0)
        self._turn()
        task.ready, task.until, task.waits = None, None, False
        return ready is None or ready()

    def sleep(self, seconds: float) -> None:
        """Raises: Killed."""
        self.wait(lambda: False, seconds)

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Call something at a virtual time, in whatever thread has the baton; it must come to no point."""
        self._numbers += 1
        self.timers.append((self.now + seconds, self._numbers, do))

    def _turn(self) -> None:
        """Give the baton to whoever is next, and come back when it is here again."""
        task = self.current
        assert task is not None
        if not self._hand_on(task):
            task.go.acquire()
            self.ident = task.ident
        if task.process.dead:
            raise Killed

    def _hand_on(self, task: Task | None) -> bool:
        """True when the task itself goes on."""
        try:
            chosen = self._next()
        except BaseException as error:
            self.failure = self.failure or error
            for one in self.tasks:
                one.process.dead = True
            chosen = self.tasks[0] if self.tasks else None
        if chosen is None:
            self.current, self.ident = None, 0
            self._over.set()
            return False
        if chosen is task:
            return True
        self.current, self.ident = chosen, 0
        chosen.go.release()
        return False

    def _next(self) -> Task | None:
        for task in self.tasks:
            if task.process.dead:
                return task  # it unwinds before anybody else goes on
        while self.tasks:
            if self.timers and min(self.timers)[0] <= self.now:
                due = min(self.timers, key=lambda timer: timer[:2])
                self.timers.remove(due)
                due[2]()
                continue
            now = self.now
            can = [
                task
                for task in self.tasks
                if task.process.frozen_until <= now
                and (
                    not task.waits
                    or (task.until is not None and task.until <= now)
                    or (task.ready is not None and task.ready())
                )
            ]
            if can:
                return can[0] if len(can) == 1 else can[self.random.randrange(len(can))]
            self._advance()
        return None

    def _advance(self) -> None:
        """Nobody can go on now: to the next moment at which somebody may."""
        times = [timer[0] for timer in self.timers]
        for task in self.tasks:
            frozen = task.process.frozen_until
            if task.until is not None:
                times.append(max(task.until, frozen))
            elif frozen > self.now:
                times.append(frozen)
        if not times:
            raise Stuck(f"everybody waits for ever: {[task.name for task in self.tasks]} {self._stacks()}")
        self.now = max(self.now, min(times))
        if self.now > MOST_S:
            raise Stuck(f"not over after {MOST_S:.0f} virtual seconds: {[t.name for t in self.tasks]}")

    def _stacks(self) -> str:
        frames = sys._current_frames()
        found = []
        for task in self.tasks:
            frame = frames.get(task.ident)
            if frame is not None:
                found.append(f"{task.name}:\n{''.join(traceback.format_stack(frame)[-8:])}")
        return "\n".join(found)
