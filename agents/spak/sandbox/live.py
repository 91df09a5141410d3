"""A sandbox that runs: limits put on it, its output taken, its end brought about and understood.

bwrap tells the first process's id and then holds it until one byte comes; in between it gets its limits, its
control group and a process descriptor, so nothing of the job has run without them, and no later use of the
id can hit a stranger. To end it, that first process is killed: the kernel then kills everything in its
process namespace before the descriptor reports the exit, whatever sessions or ignored signals it has.
"""

from __future__ import annotations

import json
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

from spak.errors import BugError
from spak.ports import Limits, Outcome, Status
from spak.sandbox import procfs, rlimits
from spak.sandbox.cgroup import Group
from spak.sandbox.streams import Collector

START_S = 20.0
"""How long bwrap may take to set up; apart from the job's own time, for machines that are busy."""

_DRAIN_S = 5.0
_CHUNK = 1 << 18
_TICK_S = 0.1
_WATCH_S = 0.02
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ)
_HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGSTOP,
             signal.SIGTTIN, signal.SIGTTOU}  # fmt: skip
_FATAL = {int(one) for one in signal.Signals if one < 32} - _HARMLESS
_EXEC_ERRORS = {b"No such file or directory": 127, b"Not a directory": 127, b"Permission denied": 126,
                b"Exec format error": 126, b"Is a directory": 126}  # fmt: skip


class StartError(Exception):
    """bwrap did not get as far as the job; the text is its own."""


class NotStarted:
    """The child of a start that failed (ports.Child): ended from the beginning, with status `launcher`."""

    pid = 0

    def __init__(self, detail: str) -> None:
        self._outcome = Outcome("launcher", 125, detail=detail)

    def poll(self) -> int:
        return self._outcome.exit

    def kill(self) -> None:
        """Nothing to end."""

    def wait(self, timeout_s: float) -> Outcome:
        return self._outcome


class Live:
    """One sandbox from its start to its end (ports.Child). `pump` must run in one thread until it returns."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        status: int,
        block: int,
        limits: Limits,
        group: Group | None,
        late: Mapping[int, tuple[int, int]],
    ) -> None:
        """`late` are the resource limits that are to be set from outside."""
        assert process.stdout is not None and process.stderr is not None
        self._process, self._status, self._limits, self._group = process, status, limits, group
        self._began = time.monotonic()
        self._out, self._err = Collector(limits.output_bytes), Collector(limits.output_bytes)
        self._cpu_ms = 0
        self._verdict: Status | None = None
        self._detail = ""
        self._outcome: Outcome | None = None
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._pidfd = -1
        try:
            self.pid = self._first_process()
            self._pidfd = os.pidfd_open(self.pid)
            self._limit(late)
            os.write(block, b"1")
        except BaseException as error:
            complaint = self._abandon()
            if isinstance(error, ProcessLookupError | BrokenPipeError | EOFError):
                raise StartError(complaint or "bwrap ended while it was setting up") from error
            raise
        finally:
            os.close(block)

    def poll(self) -> int | None:
        return None if self._outcome is None else self._outcome.exit

    def kill(self) -> None:
        """End everything inside; returns when the kernel has reaped it."""
        if not self._ended.is_set():
            self._detail = self._detail or "ended by its starter"
        self._strike()
        self._ended.wait()

    def wait(self, timeout_s: float) -> Outcome:
        """How it ended. One that still runs when the time is up is ended, with status `timeout`."""
        if not self._ended.wait(timeout_s):
            self._sentence("timeout", f"still running after the {timeout_s:g} s that its starter gave")
            self._ended.wait()
        if self._outcome is None:
            raise BugError("bug.sandbox", "the thread that watched a sandbox ended before it")
        return self._outcome

    def pump(self, stdin: bytes) -> Outcome:
        """Carry bytes and watch limits until nothing of the sandbox is left; then say how it ended."""
        try:
            self._carry(stdin)
            self._outcome = self._verdict_of(self._reap())
            return self._outcome
        except BaseException:
            self._strike()
            select.select([self._pidfd], [], [], _DRAIN_S)
            self._process.kill()
            self._process.wait()
            raise
        finally:
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
            if self._group is not None:
                self._group.close()
            with self._guard:
                os.close(self._pidfd)
                self._pidfd = -1
            os.close(self._status)
            self._ended.set()

    def _first_process(self) -> int:
        """The id that bwrap reports. Raises: EOFError when it ended before, StartError after too long."""
        text, until = b"", time.monotonic() + START_S
        while b"\n" not in text:
            ready, _, _ = select.select([self._status], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise StartError(f"bwrap did not report within {START_S:g} s")
            chunk = os.read(self._status, 4096)
            if not chunk:
                raise EOFError
            text += chunk
        return int(json.loads(text.partition(b"\n")[0])["child-pid"])

    def _limit(self, limits: Mapping[int, tuple[int, int]]) -> None:
        """Put limits and the control group on the process that waits; all that it starts inherits them."""
        rlimits.put(self.pid, limits)
        if self._group is not None:
            self._group.add(self.pid)
        with suppress(PermissionError):  # bwrap may not be ours to touch here; then it stays as it is
            Path(f"/proc/{self.pid}/oom_score_adj").write_text("1000")

    def _abandon(self) -> str:
        """Let go of a start that failed; what bwrap said about it."""
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._strike()
            self._process.kill()
            self._process.wait()
        said = self._process.stderr.read(4096) if self._process.stderr is not None else b""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._group is not None:
            self._group.close()
        for number in {self._status, self._pidfd} - {-1}:
            os.close(number)
        return (said or b"").decode(errors="replace").strip()

    def _carry(self, stdin: bytes) -> None:
        began = time.monotonic()
        deadline, tick = began + self._limits.wall_s, _WATCH_S if self._group is None else _TICK_S
        until, due = deadline, began + tick
        alive = True
        process, rest = self._process, memoryview(stdin)
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._pidfd, selectors.EVENT_READ)
            for pipe, collector in ((process.stdout, self._out), (process.stderr, self._err)):
                waiting.register(pipe, selectors.EVENT_READ, collector)  # type: ignore[arg-type]
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                waiting.register(process.stdin, selectors.EVENT_WRITE)
            while waiting.get_map():
                now = time.monotonic()
                if alive and now >= deadline:
                    self._sentence("timeout", f"still running after {self._limits.wall_s:g} s")
                if alive and now >= due:
                    self._watch()
                    due = time.monotonic() + tick
                if not alive and now >= until:
                    break
                for key, _ in waiting.select(max(0.0, min(due, deadline) - now) if alive else until - now):
                    if key.fileobj == self._pidfd:
                        waiting.unregister(self._pidfd)
                        alive, until = False, time.monotonic() + _DRAIN_S
                    elif isinstance(key.data, Collector):
                        chunk = os.read(key.fd, _CHUNK)
                        key.data.feed(chunk)
                        if not chunk:
                            waiting.unregister(key.fileobj)
                    else:
                        rest = _write(key.fd, rest)
                        if not rest:
                            waiting.unregister(key.fileobj)
                            process.stdin.close()  # type: ignore[union-attr]

    def _watch(self) -> None:
        """One look at what no resource limit sees: the whole tree's CPU time and memory."""
        limits = self._limits
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

    def _reap(self) -> int | None:
        """The exit code that bwrap reports, None when the job's program never started."""
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
        sampled = max(self._cpu_ms, int(1000 * (used.ru_utime + used.ru_stime)))
        self._cpu_ms = sampled if spent is None else spent
        os.set_blocking(self._status, False)
        text = b""
        with suppress(BlockingIOError):
            while chunk := os.read(self._status, 4096):
                text += chunk
        for line in text.splitlines():
            found = json.loads(line).get("exit-code")
            if found is not None:
                return int(found)
        return None

    def _verdict_of(self, code: int | None) -> Outcome:
        limits, status, detail, number = self._limits, self._verdict, self._detail, code
        if status is None and self._group is not None and self._group.out_of_memory():
            status, detail = "oom", f"more than {limits.memory_bytes} bytes of memory (control group)"
        if status is not None:
            number = {"timeout": 124}.get(status, 128 + signal.SIGKILL)
        elif detail and code in (None, 128 + signal.SIGKILL):
            status, number = "exited", 128 + signal.SIGKILL
        elif code is None:
            status, number, detail = self._never_started()
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
        return Outcome(status, number or 0, out, err, wall_ms, self._cpu_ms, detail)

    def _never_started(self) -> tuple[Status, int, str]:
        """bwrap says why on standard error: a program that is not there is the job's own fault."""
        text = self._err.head(4096).strip()
        if text.startswith(b"bwrap: execvp "):
            for ending, code in _EXEC_ERRORS.items():
                if text.endswith(ending):
                    return "exited", code, text.decode(errors="replace").removeprefix("bwrap: execvp ")
        return "launcher", 125, text.decode(errors="replace") or "bwrap ended before the command started"


def _write(number: int, rest: memoryview) -> memoryview:
    """Write what the pipe takes; what is left. A reader that went away wants nothing more."""
    try:
        return rest[os.write(number, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]
