"""The process that runs a problem's file: a sandbox of its own, requests and answers over two pipes.

Takes a launcher and the file's text; gives for each request one line of JSON and the bytes of arrays, both of
bounded length. Nothing in it is trusted: `problem` checks what the arrays are. The process has no network,
may start no further process, and sees neither the workspace nor a candidate.

`renew` lets a sandbox serve a further evaluation: its first process, which has loaded Python and numpy and
nothing of the problem, forks a process that reads the file again (sandbox/guest/problem_guest.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak import data
from spak.cancel import Cancel, check
from spak.ports import Child, Job, Launcher, Limits, Toolchain
from spak.validators.problems.fault import ProblemFault

HEAD_BYTES = 64 << 10
DATA_BYTES = 512 << 20
"""Of one answer; a reference in float64 takes eight bytes a number, whatever the output's type."""
START_S = 60.0
ANSWER_S = 30.0
CLOSED = b'{"id": 0, "ok": true}'
FINISH_S = 5.0
"""How long the process of an evaluation may take to end; the sandbox goes with it otherwise."""
POLL_MS = 100
FILE = "problem_file.py"
GUEST = "sandbox/guest/problem_guest.py"
WIDTHS = {"float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8}
_PIPE_BYTES = 1 << 20


class Session:
    """A started problem; `ask` may be used until it raises, `close` always.

    `limits` are those of an evaluation; the sandbox itself may live for `life_s` seconds if that is more.
    """

    def __init__(
        self,
        launcher: Launcher,
        toolchain: Toolchain,
        folder: Path,
        text: str,
        limits: Limits,
        cancel: Cancel | None = None,
        answer_s: float = ANSWER_S,
        start_s: float = START_S,
        life_s: float = 0.0,
    ) -> None:
        self._cancel, self._answer_s, self._start_s = cancel, answer_s, start_s
        self._count = 0
        self._asking = False
        self.folder = folder
        self._child: Child | None = None
        python = toolchain.programs.get("python", "")
        if not python:
            raise ProblemFault("problem.python", "the toolchain has no python to run the problem with")
        folder.mkdir()
        folder.chmod(0o755)
        (folder / "guest.py").write_bytes(data.path(GUEST).read_bytes())
        (folder / "guest.py").chmod(0o444)
        self._write(text)
        theirs, self._requests = os.pipe2(os.O_CLOEXEC)
        self._answers, answers = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a smaller pipe is only slower
            fcntl.fcntl(answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        argv = (
            *(python, "-I", "-B", "/ws/guest.py", str(theirs), str(answers)),
            *(f"/ws/{FILE}", str(limits.cpu_s)),
        )
        env = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        job = Job(
            argv=argv, workspace=folder, writable=False, limits=_living(limits, life_s), env=env,
            binds=toolchain.binds, cancel=cancel,
        )  # fmt: skip
        try:
            self._child = launcher.start(job, pass_fds=(theirs, answers))
        except BaseException:
            self.close()
            raise
        finally:
            os.close(theirs)
            os.close(answers)

    def ask(self, do: str, **more: Any) -> tuple[dict[str, Any], bytes]:
        """The answer's line, and the bytes of its arrays. Raises: ProblemFault; Cancelled."""
        self._count += 1
        self._asking = True
        until = time.monotonic() + self._answer_s + (self._start_s if self._count == 1 else 0)
        try:
            os.write(self._requests, json.dumps({"id": self._count, "do": do, **more}).encode() + b"\n")
        except BrokenPipeError:
            raise self._death() from None
        head, rest = self._line(until)
        try:
            answer = json.loads(head)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != self._count:
            raise ProblemFault("problem.answer", "it wrote something else than an answer to the pipe")
        if answer.get("ok") is not True:
            code = answer.get("code")
            known = code in ("problem.invalid", "problem.shape")
            raise ProblemFault(str(code) if known else "problem.failed", str(answer.get("detail", ""))[:2000])
        data = self._bytes(rest, _announced(answer.get("arrays", [])), until)
        self._asking = False
        return answer, data

    def finish(self) -> bool:
        """End the evaluation's process; whether the sandbox may serve another one. Never raises.

        It may not after a fault or a request that was cancelled.
        """
        if self._asking or self._child is None:
            return False
        self._cancel = None
        try:
            os.write(self._requests, b'{"id": 0, "do": "close"}\n')
            head, rest = self._line(time.monotonic() + FINISH_S)
        except (OSError, ProblemFault):
            return False
        return (head, rest) == (CLOSED, b"")

    def renew(self, text: str, cancel: Cancel | None, answer_s: float) -> None:
        """Begin an evaluation of a file in a sandbox that has served others."""
        self._cancel, self._answer_s = cancel, answer_s
        self._write(text)

    def lives(self) -> bool:
        """Whether the sandbox has not ended."""
        return self._child is not None and self._child.poll() is None

    def spent_ms(self) -> int:
        """CPU time of the sandbox and of the evaluations' processes that have ended; 0 when it is gone."""
        try:
            stat = Path(f"/proc/{self._child.pid}/stat").read_text() if self._child is not None else ""
        except OSError:
            return 0
        ticks = stat.rpartition(")")[2].split()[11:15]
        return 1000 * sum(map(int, ticks)) // os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the process; idempotent."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait(5.0)
        for name in ("_requests", "_answers"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd >= 0:
                os.close(fd)

    def _write(self, text: str) -> None:
        file = self.folder / FILE
        file.unlink(missing_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o444)

    def _line(self, until: float) -> tuple[bytes, bytes]:
        seen = b""
        while b"\n" not in seen:
            if len(seen) > HEAD_BYTES:
                raise ProblemFault("problem.answer", f"a line of more than {HEAD_BYTES} bytes")
            seen += self._piece(until, HEAD_BYTES)
        head, _, rest = seen.partition(b"\n")
        return head, rest

    def _bytes(self, rest: bytes, size: int, until: float) -> bytes:
        parts, left = [rest], size - len(rest)
        while left > 0:
            parts.append(self._piece(until, min(left, _PIPE_BYTES)))
            left -= len(parts[-1])
        if left < 0:
            raise ProblemFault("problem.answer", "more bytes than were announced")
        return b"".join(parts)

    def _piece(self, until: float, size: int) -> bytes:
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        while not poll.poll(POLL_MS):
            check(self._cancel)
            if time.monotonic() > until:
                raise ProblemFault("problem.timeout", f"no answer in {self._answer_s:g} s")
        piece = os.read(self._answers, size)
        if not piece:
            raise self._death()
        return piece

    def _death(self) -> ProblemFault:
        if self._child is None:
            return ProblemFault("problem.died", "it was ended")
        outcome = self._child.wait(5.0)
        words = outcome.stderr.data.decode("utf-8", "replace").strip().splitlines()
        detail = words[-1][:400] if words else outcome.detail
        if outcome.status == "launcher":
            return ProblemFault("problem.launcher", detail or "the sandbox did not start")
        return ProblemFault("problem.died", f"{outcome.status}, exit {outcome.exit}. {detail}".strip())


def _living(limits: Limits, life_s: float) -> Limits:
    """Limits of the sandbox: an evaluation's, but for time, which its guest limits for each evaluation."""
    if not life_s:
        return limits
    return replace(limits, wall_s=max(life_s, limits.wall_s), cpu_s=max(int(life_s), limits.cpu_s))


def _announced(arrays: Any) -> int:
    """Bytes of the arrays that an answer's line lists. Raises: ProblemFault `problem.answer`."""
    total = 0
    try:
        for _, kind, shape in arrays:
            if not all(type(side) is int and side >= 0 for side in shape):
                raise ValueError
            total += WIDTHS[kind] * math.prod(shape)
    except KeyError as error:
        raise ProblemFault(
            "problem.shape", f"an array of type {error}; the prototype's types are needed"
        ) from error
    except (TypeError, ValueError) as error:
        raise ProblemFault("problem.answer", "a list of arrays that makes no sense") from error
    if total > DATA_BYTES:
        raise ProblemFault("problem.too_large", f"an answer of {total} bytes; at most {DATA_BYTES}")
    return total


@contextlib.contextmanager
def opened(
    launcher: Launcher,
    toolchain: Toolchain | None,
    folder: Path,
    text: str,
    limits: Limits,
    cancel: Cancel | None = None,
    answer_s: float = ANSWER_S,
    start_s: float = START_S,
) -> Iterator[Session]:
    """A session for as long as the block lasts; the first answer may take `start_s` more than `answer_s`.

    Raises: ProblemFault.
    """
    session = Session(launcher, toolchain or Toolchain(), folder, text, limits, cancel, answer_s, start_s)
    try:
        yield session
    finally:
        session.close()
