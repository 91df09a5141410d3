"""A sandbox that runs: limits put on it, its output taken, its end brought about and understood.

The job does not begin before all is in force. Inside, a shell writes a line and waits for one, and only then
becomes the job. When its line comes, every process of bwrap's has asked the kernel to be killed with its
parent, and the first process of the namespace is found: it and the shell get their limits and their control
group, and a process descriptor is kept, so that no later use of the id can hit a stranger. A starter that is
killed on the way leaves nothing behind: the shell has nobody to write to, or its line never comes. (bwrap's
own --block-fd goes on when the other end closes; a report on --json-status-fd falls between bwrap's asking
to die with its parent and its letting the child go on: killed there, it left a child that waits for ever.)

To end it, the first process is killed: the kernel then kills everything in its process namespace before the
descriptor reports the exit, whatever sessions or ignored signals it has.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spak.cancel import TURN_S, Cancel, Cancelled, check
from spak.errors import BugError
from spak.ports import Heard, Limits, Outcome, Status
from spak.sandbox import orphans, procfs, rlimits
from spak.sandbox.awake import Awake
from spak.sandbox.cgroup import Group
from spak.sandbox.quota import DiskWatch
from spak.sandbox.streams import Collector

START_S = 60.0
"""How long bwrap may take to set up; apart from the job's own time, for machines that are busy."""

_DRAIN_S = 5.0
_WARM_S = 0.004
_CHUNK = 1 << 18
_TICK_S = 0.1
_WATCH_S = 0.02
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ)
_HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGSTOP,
             signal.SIGTTIN, signal.SIGTTOU}  # fmt: skip
_FATAL = {int(one) for one in signal.Signals if one < 32} - _HARMLESS


class StartError(Exception):
    """bwrap did not get as far as the job; the text is its own."""


class NotStarted:
    """The child of a start that failed (ports.Child): ended from the beginning, with status `launcher`."""

    pid = 0

    def __init__(self, detail: str) -> None:
        self._outcome = Outcome("launcher", 125, detail=detail)

    def poll(self) -> int:
        """The exit code of the start that failed."""
        return self._outcome.exit

    def kill(self) -> None:
        """Nothing to end."""

    def wait(self, timeout_s: float) -> Outcome:
        """The outcome, at once."""
        return self._outcome


class Live:
    """One sandbox from its start to its end (ports.Child). `pump` must run in one thread until it returns."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        limits: Limits,
        group: Group | None,
        late: Mapping[int, tuple[int, int]],
        heard: Heard | None = None,
        cancel: Cancel | None = None,
        workspace: Path | None = None,
    ) -> None:
        """`late` are the resource limits that are to be set from outside; `cancel` ends its start alone;
        `workspace` is what the limits' quota is of."""
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._process, self._limits, self._group = process, limits, group
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._began = time.monotonic()
        self._out, self._err = (Collector(limits.output_bytes, number, heard) for number in (1, 2))
        self._cpu_ms = 0
        self._verdict: Status | None = None
        self._detail = ""
        self._outcome: Outcome | None = None
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._pidfd = -1
        self._disk: DiskWatch | None = None
        if workspace is not None and limits.quota is not None:
            self._disk = DiskWatch(workspace, limits.quota, lambda: procfs.tree(self.pid))
        orphans.adopt()
        try:
            self._await_shell(cancel)
            self.pid = procfs.namespace_leader(process.pid)
            self._pidfd = os.pidfd_open(self.pid)
            self._limit(late)
            os.write(self._stdin.fileno(), b"\n")
        except BaseException as error:
            complaint = self._abandon(0.0 if isinstance(error, Cancelled) else 1.0)
            if isinstance(error, ProcessLookupError | BrokenPipeError | EOFError):
                raise StartError(complaint or "bwrap ended while it was setting up") from error
            raise

    def poll(self) -> int | None:
        """The exit code, None while it lives."""
        return None if self._outcome is None else self._outcome.exit

    def kill(self) -> None:
        """End everything inside; returns when the kernel has reaped it."""
        if not self._ended.is_set():
            self._detail = self._detail or "ended by its starter"
        self._strike()
        self._ended.wait()

    def wait(self, timeout_s: float) -> Outcome:
        """How it ended. One that still runs when the time is up is ended, with status `timeout`."""
        clock = Awake()
        while not self._ended.wait(max(0.0, min(TURN_S, timeout_s - clock.now()))):
            if clock.now() >= timeout_s:
                self._sentence("timeout", f"still running after the {timeout_s:g} s that its starter gave")
                break
        return self.result()

    def result(self, cancel: Cancel | None = None) -> Outcome:
        """How it ended, however long that takes. Raises: Cancelled; it still runs then."""
        while not self._ended.wait(TURN_S):
            check(cancel)
        if self._outcome is None:
            raise BugError("bug.sandbox", "the thread that watched a sandbox ended before it")
        return self._outcome

    def pump(self, stdin: bytes, cancel: Cancel | None = None) -> Outcome:
        """Carry bytes and watch limits until nothing of the sandbox is left; then say how it ended.

        Raises: Cancelled, when nothing of it is left.
        """
        try:
            self._carry(stdin, cancel)
            self._outcome = self._verdict_of(self._reap())
            return self._outcome
        except BaseException:
            self._strike()
            select.select([self._pidfd], [], [], _DRAIN_S)
            self._process.kill()
            self._process.wait()
            orphans.reap(self.pid)
            raise
        finally:
            self._close()
            self._ended.set()

    def _await_shell(self, cancel: Cancel | None) -> None:
        """Wait for the shell's line. Raises: EOFError when bwrap ended before, StartError after too long,
        Cancelled.

        A move into a control group makes the kernel wait about 10 ms, unless another one has just been made.
        So bwrap itself is moved while it works, and moved again, until the processes that count can follow
        at once.
        """
        until, step = time.monotonic() + START_S, TURN_S if self._group is None else _WARM_S
        if self._group is not None:
            self._group.add(self._process.pid)
        while not select.select([self._stdout], [], [], step)[0]:
            check(cancel)
            if time.monotonic() > until:
                raise StartError(f"the sandbox was not up after {START_S:g} s")
            if self._group is not None:
                self._group.add(self._process.pid)
        if not os.read(self._stdout.fileno(), 1):
            raise EOFError

    def _limit(self, late: Mapping[int, tuple[int, int]]) -> None:
        """Put limits and the control group on what is there; all that it starts inherits them."""
        for pid in procfs.tree(self.pid):
            rlimits.put(pid, late)
            if self._group is not None:
                self._group.add(pid)
            with suppress(PermissionError):  # bwrap's may not be ours to touch here; then it stays as it is
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")

    def _abandon(self, patience_s: float) -> str:
        """Let go of a start that failed, and of all that it has started; what bwrap said about it."""
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            down = procfs.tree(self._process.pid)
            for pid in reversed(down):  # from the inside: without its parent, bwrap's child waits for ever
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            for pid in down[1:]:
                orphans.reap(pid)
        if self._pidfd >= 0:
            orphans.reap(self.pid)
        stderr = self._stderr.read(4096)
        self._close()
        return stderr.decode(errors="replace").strip()

    def _close(self) -> None:
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        if self._group is not None:
            self._group.close()
        with self._guard:
            if self._pidfd >= 0:
                os.close(self._pidfd)
            self._pidfd = -1
        orphans.release()

    def _carry(self, stdin: bytes, cancel: Cancel | None) -> None:
        """What happened is looked at before the clock: a job that ended while this process was stopped has
        ended in time."""
        clock, tick = Awake(), _WATCH_S if self._group is None else _TICK_S
        deadline, until, due = self._limits.wall_s, 0.0, tick
        alive = True
        rest = memoryview(stdin)
        os.set_blocking(self._stdin.fileno(), False)
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._pidfd, selectors.EVENT_READ)
            waiting.register(self._stdout, selectors.EVENT_READ, self._out)
            waiting.register(self._stderr, selectors.EVENT_READ, self._err)
            waiting.register(self._stdin, selectors.EVENT_WRITE)
            while waiting.get_map():
                check(cancel)
                left = (min(due, deadline) if alive else until) - clock.now()
                for key, _ in waiting.select(max(0.0, min(left, TURN_S))):
                    if key.fileobj == self._pidfd:
                        waiting.unregister(self._pidfd)
                        alive, until = False, clock.now() + _DRAIN_S
                    elif isinstance(key.data, Collector):
                        chunk = os.read(key.fd, _CHUNK)
                        key.data.feed(chunk)
                        if not chunk:
                            waiting.unregister(key.fileobj)
                    else:
                        rest = _write(key.fd, rest)
                        if not rest:
                            waiting.unregister(key.fileobj)
                            self._stdin.close()
                now = clock.now()
                if not alive and now >= until:
                    break
                if alive and now >= deadline:
                    self._sentence("timeout", f"still running after {self._limits.wall_s:g} s")
                    deadline = now + _DRAIN_S  # strike again, should it still be there then
                if alive and now >= due:
                    self._watch()
                    due = clock.now() + tick

    def _watch(self) -> None:
        """One look at what no resource limit sees: the whole tree's CPU time and memory, and the disk."""
        limits = self._limits
        if self._disk is not None and (why := self._disk.over()):
            self._sentence("limit", why)
        if self._group is not None and self._group.out_of_memory():
            self._sentence("oom", f"more than {limits.memory_bytes} bytes of memory (control group)")
        usage = procfs.usage(self.pid)
        self._cpu_ms = max(self._cpu_ms, usage.cpu_ms)
        if self._cpu_ms > 1000 * limits.cpu_s:
            self._sentence("limit", f"more than {limits.cpu_s} s of CPU time")
        if self._group is None and usage.private_bytes > limits.memory_bytes:
            real = procfs.proportional_bytes(procfs.tree(self.pid))
            if real > limits.memory_bytes:
                self._sentence("oom", f"{real} bytes of memory, limit {limits.memory_bytes} (watched)")

    def _sentence(self, status: Status, detail: str) -> None:
        if self._verdict is None:
            self._verdict, self._detail = status, detail
        self._strike()

    def _strike(self) -> None:
        with self._guard, suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _reap(self) -> int:
        """The exit code of bwrap, which is the job's; negative when a signal ended bwrap itself."""
        wall = time.monotonic() + _DRAIN_S
        while True:
            pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > wall:
                self._process.kill()
            time.sleep(0.0005)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        spent = self._group.cpu_ms() if self._group is not None else None
        used = orphans.reap(self.pid) or used
        reaped = int(1000 * (used.ru_utime + used.ru_stime))
        self._cpu_ms = max(self._cpu_ms, reaped) if spent is None else spent
        return self._process.returncode

    def _verdict_of(self, code: int) -> Outcome:
        limits, status, detail, number = self._limits, self._verdict, self._detail, code
        if status is None and self._group is not None and self._group.out_of_memory():
            status, detail = "oom", f"more than {limits.memory_bytes} bytes of memory (control group)"
        if status is not None:
            number = {"timeout": 124}.get(status, 128 + signal.SIGKILL)
        elif detail and code == 128 + signal.SIGKILL:
            status, number = "exited", 128 + signal.SIGKILL
        elif code < 0:
            status, number, detail = "crash", 128 - code, "bwrap itself was ended from outside"
        elif code - 128 in _LIMIT_SIGNALS:
            status, detail = "limit", f"ended by {signal.Signals(code - 128).name}"
        elif code - 128 == signal.SIGKILL and self._cpu_ms >= 1000 * limits.cpu_s:
            status, detail = "limit", f"more than {limits.cpu_s} s of CPU time"
        elif code - 128 in _FATAL:
            status, detail = "crash", f"ended by {signal.Signals(code - 128).name}"
        else:
            status = "exited"
        wall_ms = int(1000 * (time.monotonic() - self._began))
        out, err = self._out.stream(), self._err.stream()
        return Outcome(status, number, out, err, wall_ms, self._cpu_ms, detail)


def _write(number: int, rest: memoryview) -> memoryview:
    """Write what the pipe takes; what is left. A reader that went away wants nothing more."""
    try:
        return rest[os.write(number, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]
