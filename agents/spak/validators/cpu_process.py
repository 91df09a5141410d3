"""One sandboxed process with a candidate in it, and the window: one timed call whose output is taken.

Takes a launcher, a folder with driver and candidate, a problem and cases; gives Windows (nanoseconds of CPU
and the outputs as they were copied) or raises Violation with a stable code. A window's order is the point:

    1. wait until the child rests, and read its clock (t0)
    2. write the inputs, fill outputs and scratch with NaN, signal go
    3. wait for its "done", which is only a hint
    4. copy the output
    5. wait until the child rests, read its clock (t1), and remove the inputs

Any code that knew the inputs and made the copied output ran between t0 and t1. The clock is the process's CPU
clock, all threads, read from outside. A running process's clock is stale by up to a tick (4 ms were seen as
0 ns), hence the rest: state `S`, and twice the same clock. What a child does between two windows is seen as
the difference between t1 and the next t0.

Where a candidate may use several threads, CPU time would not show that two cores are done sooner than one: a
window's time is then the wall's, from go until all threads rest, which comes before the copy. That no thread
worked after it is seen by the CPU clock, which has to be the same after the copy.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.cancel import Cancel, check
from spak.ports import Child, Job, Launcher, Limits
from spak.validators.cpu_arena import Arena, places, size_for
from spak.validators.cpu_candidate import SEAL, Candidate, meaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spak.validators.problems import Case, Problem
    from spak.validators.problems.prototype import Role

GUARD_BYTES = 4096
FILL = 0xFF
"""What scratch, guards and outputs of floats hold before a call: NaN. Integers get random bytes."""
SHIFTS = 4096
"""The candidate's stack is moved by less than this, drawn for each call."""
READY, DONE = b"R", b"D"

START_WALL_S = 20.0
CALL_CPU_NS = 2_000_000_000
CALL_WALL_S = 30.0
WARM_CPU_NS = 60_000_000_000
WARM_WALL_S = 120.0
"""Limits of starting and of the calls in which a candidate compiles itself."""
REST_CPU_NS = 2_000_000
REST_WALL_S = 0.05
REST_HARD_WALL_S = 2.0
IDLE_NS = 200_000
POLL_MS = 100
YIELD_S = 20e-6


class Violation(Exception):
    """What ends an evaluation: a stable code for the verdict, and a detail that decides nothing."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.side = ""
        """Whose: empty for the candidate's own, or the name of a rival."""


@dataclass(frozen=True, slots=True)
class Window:
    """One timed call: nanoseconds of CPU and the outputs as they were copied, by name."""

    ns: int
    outputs: Mapping[str, NDArray[Any]]
    inputs_kept: bool
    """The inputs were the same bytes afterwards."""
    inside: bool
    """Nothing was written around the outputs; in a watched call, anywhere else in their arena."""


class Process:
    """A started candidate; `call` may be used until it raises, `close` always."""

    def __init__(
        self,
        launcher: Launcher,
        folder: Path,
        candidate: Candidate,
        problem: Problem,
        inputs: Arena,
        limits: Limits,
        deadline: float,
        cancel: Cancel | None = None,
        threads: int = 1,
    ) -> None:
        """`inputs` is `inputs_for(problem)`, for all processes of an evaluation. With more than one of
        `threads` a window's time is the wall's."""
        self._wall = threads > 1
        self._others: list[int] = []
        self._rested_ns = 0
        """By the wall's clock, when the child was first seen to rest."""
        self._deadline, self._cancel = deadline, cancel
        self._problem, self._candidate = problem, candidate
        self._inputs = inputs
        out = (*_sizes(problem, "output"), *_sizes(problem, "scratch"))
        self._outputs = Arena(size_for(out), sealed=False)
        self._blank = True
        """Whether the arena of outputs holds nothing but FILL."""
        go_in, self._go = os.pipe2(os.O_CLOEXEC)
        self._done, done_out = os.pipe2(os.O_CLOEXEC)
        theirs = (self._inputs.fd, self._outputs.fd, go_in, done_out)
        self._child: Child | None = None
        self._stat = -1
        self._last = 0
        try:
            job = Job(
                candidate.argv(theirs, problem.prototype), folder, writable=False, limits=limits,
                env=candidate.env, binds=candidate.binds, cancel=cancel,
            )  # fmt: skip
            self._child = launcher.start(job, pass_fds=theirs)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(go_in)
            os.close(done_out)
            self._outputs.close()
        try:
            self._start(self._child)
        except BaseException:
            self.close()
            raise

    def seal(self) -> None:
        """End the time in which a candidate compiles itself: its second filter. Raises: Violation."""
        prototype = self._problem.prototype
        pointers = [item for item in prototype.parameters if item.role != "scalar"]
        slots = [bytes(8)] * len(prototype.parameters)
        self._say_go(self._candidate.message(slots, SEAL, [()] * len(pointers)))
        self._await(READY, CALL_WALL_S, CALL_CPU_NS)
        self._last = self._rest()

    def call(
        self,
        random: np.random.Generator,
        case: Case,
        warm: bool = False,
        watched: bool = False,
        begin: Mapping[str, NDArray[Any]] | None = None,
    ) -> Window:
        """One window on fresh inputs at fresh places; `warm` for one that may compile. The outputs hold
        `begin` before it, or nothing that anybody could take for an answer.

        A `watched` call is no sample of time. All of the arena of outputs is compared, and half of such calls
        have blocks at the edges of the arenas, next to pages that end the process when they are touched.

        The inputs are removed afterwards: the other side of the couple gets the same ones, and may start,
        which is not timed, before its window.

        Raises: Violation, Cancelled.
        """
        prototype = self._problem.prototype
        edge = watched and bool(random.integers(2))
        sent = self._blocks(random, self._inputs, "input", case.n, edge)
        made = self._blocks(random, self._outputs, "output scratch", case.n, edge)
        at = {name: offset for name, (offset, _) in (sent | made).items()}
        shift = 16 * int(random.integers(SHIFTS // 16))
        slots = [
            prototype.slot(item, case.scalars.get(item.name, at.get(item.name, 0)))
            for item in prototype.parameters
        ]
        fills = {
            item.name: None
            if item.floating
            else random.integers(256, size=made[item.name][1].size - 2 * GUARD_BYTES, dtype="u1")
            for item in prototype.of("output")
        }

        start = self._rest()
        if start - self._last > IDLE_NS:
            raise Violation("idle_work", f"{start - self._last} ns of CPU between two calls")
        for name, (_, view) in sent.items():
            view[:] = _bytes(case.inputs[name])
        if not self._blank:
            for view in [self._outputs.bytes] if watched else [view for _, view in made.values()]:
                view.fill(FILL)
        fills |= {name: _bytes(held) for name, held in (begin or {}).items()}
        for name, fill in fills.items():
            if fill is not None:
                made[name][1][GUARD_BYTES:-GUARD_BYTES] = fill
        shapes = self._problem.shapes(case.n)
        pointers = [shapes[item.name] for item in prototype.parameters if item.role != "scalar"]
        if self._wall and (early := self._rest() - start):
            raise Violation("idle_work", f"{early} ns of CPU before go, when the inputs were there")
        began = time.monotonic_ns()
        self._say_go(self._candidate.message(slots, shift, pointers))
        self._await(DONE, WARM_WALL_S if warm else CALL_WALL_S, WARM_CPU_NS if warm else CALL_CPU_NS)
        rested = self._rest() if self._wall else 0
        took = self._rested_ns - began
        copied = {item.name: made[item.name][1].copy() for item in prototype.of("output")}
        self._last = self._rest()
        if self._wall and self._last != rested:
            raise Violation("did_not_rest", f"{self._last - rested} ns of CPU after all threads rested")
        if _readable(self._done, 0):
            raise Violation("early_signal", "it said done more than once for one call")
        kept = all(bool((view == _bytes(case.inputs[name])).all()) for name, (_, view) in sent.items())
        for _, view in sent.values():
            view.fill(FILL)
        self._blank = watched and self._nothing_beside([view for _, view in made.values()])
        return Window(
            ns=took if self._wall else self._last - start,
            outputs={
                item.name: copied[item.name][GUARD_BYTES:-GUARD_BYTES]
                .view(item.type)
                .reshape(case.outputs[item.name].shape)
                for item in prototype.of("output")
            },
            inputs_kept=kept,
            inside=(self._blank or not watched)
            and all(
                bool((block[:GUARD_BYTES] == FILL).all() and (block[-GUARD_BYTES:] == FILL).all())
                for block in copied.values()
            ),
        )

    def _nothing_beside(self, blocks: list[NDArray[np.uint8]]) -> bool:
        """Blank the blocks of outputs and scratch; whether their whole arena is blank then."""
        import numpy as np

        for block in blocks:
            block.fill(FILL)
        return bool(np.bitwise_and.reduce(self._outputs.bytes.view(np.uint64)) == 2**64 - 1)

    def _blocks(
        self, random: np.random.Generator, arena: Arena, roles: str, n: int, edge: bool
    ) -> dict[str, tuple[int, NDArray[np.uint8]]]:
        """Where a pointer leads in the arena, and its block with the guards, by name; places are drawn."""
        items = [item for item in self._problem.prototype.parameters if item.role in roles.split()]
        guards = [GUARD_BYTES if item.role == "output" else 0 for item in items]
        sizes = [
            self._problem.bytes_of(n, item) + 2 * guard for item, guard in zip(items, guards, strict=True)
        ]
        found = places(random, sizes, arena.size, edge) if items else []
        return {
            item.name: (at + guard, arena.bytes[at : at + size])
            for item, guard, at, size in zip(items, guards, found, sizes, strict=True)
        }

    def close(self) -> None:
        """End the child and everything of it; idempotent."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait(5.0)
        for name in ("_go", "_done", "_stat"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd >= 0:
                os.close(fd)
        while self._others:
            os.close(self._others.pop())

    def _start(self, child: Child) -> None:
        self._clock_id = (~child.pid << 3) | 2
        try:
            self._stat = os.open(f"/proc/{child.pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._death() from None
        if self._candidate.warms:
            self._await(READY, WARM_WALL_S, WARM_CPU_NS)
        else:
            self._await(READY, START_WALL_S, CALL_CPU_NS)
        if self._wall:  # the filters let no more be made
            for task in Path(f"/proc/{child.pid}/task").iterdir():
                self._others.append(os.open(task / "stat", os.O_RDONLY | os.O_CLOEXEC))
        self._last = self._rest()

    def _say_go(self, message: bytes) -> None:
        try:
            os.write(self._go, message)
        except BrokenPipeError:
            raise self._death() from None

    def _await(self, word: bytes, wall_s: float, cpu_ns: int) -> None:
        """Wait for one byte from the child. Raises: Violation when it dies or a limit passes; Cancelled."""
        began, cpu = time.monotonic(), self._clock()
        until = min(began + wall_s, self._deadline)
        while not _readable(self._done, POLL_MS):
            check(self._cancel)
            if time.monotonic() > until:
                raise Violation("timeout", f"no answer in {time.monotonic() - began:.1f} s")
            if self._clock() - cpu > cpu_ns:
                raise Violation("timeout", f"more than {cpu_ns // 1_000_000} ms of CPU in one call")
        got = os.read(self._done, 1)
        if not got:
            raise self._death()
        if got != word:
            raise Violation("early_signal", f"it said {got!r} where {word!r} was due")

    def _rest(self) -> int:
        """The child's clock once it rests. Raises: Violation `did_not_rest`.

        A child that waits for a core is not at rest, but does not work either: what counts against it is CPU
        used after its "done", or a time so long that no machine is that busy.
        """
        began, first, seen = time.monotonic(), self._clock(), -1
        while True:
            check(self._cancel)
            at = time.monotonic_ns()
            resting, now = self._state() == b"S", self._clock()
            if resting and now == seen:
                return now
            if resting:
                seen, self._rested_ns = now, at
            else:
                seen = -1
            if not resting:
                time.sleep(YIELD_S)  # woken on the child's core, the parent would keep it from resting
            waited = time.monotonic() - began
            if waited > REST_HARD_WALL_S or (waited > REST_WALL_S and now - first > REST_CPU_NS):
                raise Violation("did_not_rest", f"still working {now - first} ns after it said done")

    def _clock(self) -> int:
        try:
            return time.clock_gettime_ns(self._clock_id)
        except OSError:
            raise self._death() from None

    def _state(self) -> bytes:
        try:
            line = os.pread(self._stat, 512, 0)
        except ProcessLookupError:
            raise self._death() from None
        state = line[line.rindex(b")") + 2 :][:1]
        if state in (b"Z", b"X"):
            raise self._death()
        return next((other for other in map(_state_of, self._others) if other != b"S"), state)

    def _death(self) -> Violation:
        """Why there is no child any more."""
        if self._child is None:
            return Violation("died", "it was ended")
        outcome = self._child.wait(5.0)
        stderr = outcome.stderr.data.decode("utf-8", "replace").strip()[-300:]
        known = meaning(outcome.exit) if outcome.status in ("exited", "crash") else None
        if known is not None:
            code, words = known
            return Violation(code, stderr or words)
        if outcome.status == "launcher":
            return Violation("launcher", outcome.detail or stderr or "the sandbox did not start")
        return Violation("died", f"{outcome.status}, exit {outcome.exit}. {stderr or outcome.detail}".strip())


def inputs_for(problem: Problem) -> Arena:
    """An arena for the inputs of the problem's largest calls, read by candidates and written by none."""
    return Arena(size_for(_sizes(problem, "input")), sealed=True)


def _sizes(problem: Problem, role: Role) -> list[int]:
    """Bytes of the blocks of a role in the largest call; an output has a guard on both sides."""
    guards = 2 * GUARD_BYTES if role == "output" else 0
    return [problem.bytes_of(problem.most, item) + guards for item in problem.prototype.of(role)]


def _state_of(stat: int) -> bytes:
    """The state of a thread; one that ended rests."""
    try:
        line = os.pread(stat, 512, 0)
    except ProcessLookupError:
        return b"S"
    return line[line.rindex(b")") + 2 :][:1]


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array that is contiguous."""
    return array.reshape(-1).view("u1")


def _readable(fd: int, wait_ms: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(wait_ms))


__all__ = ["Process", "Violation", "Window", "inputs_for"]
