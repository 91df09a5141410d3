"""A problem's sandbox, kept from one evaluation of a run to the next.

Starting Python and numpy costs more CPU time than the references of a hopeless candidate. So the sandbox of
an evaluation is kept, one at a time; the next evaluation gets a new process in it, which reads the problem's
file again (`Session.renew`). Each evaluation asks twice for one case, so that answers which depend on earlier
ones are found, and `KeptSandbox` compares it with what earlier evaluations were given.

The owner calls `close` when the run is left; a sandbox also ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spak.cancel import Cancel
from spak.ports import Launcher, Limits, Toolchain
from spak.validators.problems.problem import Problem
from spak.validators.problems.session import ANSWER_S, Session

LIFE_S = 24 * 3600.0
"""The longest that a sandbox lives; a run that lasts longer starts another one."""


class KeptSandbox:
    """At most one idle sandbox; several evaluations at once have one each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: tuple[object, Session] | None = None
        self._closed = 0
        self._seen: dict[str, str] = {}
        """The digest of the steady case by the hash of a problem's text."""

    @contextlib.contextmanager
    def opened(
        self,
        launcher: Launcher,
        toolchain: Toolchain,
        folder: Path,
        text: str,
        limits: Limits,
        cancel: Cancel | None = None,
        answer_s: float = ANSWER_S,
    ) -> Iterator[Session]:
        """A session for as long as the block lasts; `folder` is where a new sandbox puts its files.

        Raises: ProblemFault.
        """
        key = (type(launcher), toolchain.programs.get("python"), toolchain.binds, replace(limits, wall_s=0.0))
        closed = self._closed
        session = self._taken(key)
        if session is None:
            place = Path(tempfile.mkdtemp(prefix="problem-", dir=folder))
            session = Session(
                launcher, toolchain, place / "ws", text, limits, cancel, answer_s, life_s=LIFE_S
            )
        else:
            session.renew(text, cancel, answer_s)
        try:
            yield session
        finally:
            if not (session.finish() and self._given_back(key, session, closed)):
                end(session)

    def steady(self, problem: Problem, text: str) -> None:
        """Raises: ProblemFault `problem.changes` when one seed gives something else a second time, in this
        evaluation or in an earlier one."""
        name = hashlib.sha256(text.encode()).hexdigest()
        self._seen[name] = problem.steady(self._seen.get(name, ""))

    def spent_ms(self) -> int:
        """CPU time of the idle sandbox so far, its evaluations' included."""
        with self._lock:
            return self._idle[1].spent_ms() if self._idle is not None else 0

    def close(self) -> None:
        """End what is kept; what is in use ends with its evaluation."""
        with self._lock:
            self._closed += 1
            idle, self._idle = self._idle, None
        if idle is not None:
            end(idle[1])

    def _taken(self, key: object) -> Session | None:
        with self._lock:
            idle, self._idle = self._idle, None
        if idle is None:
            return None
        if idle[0] == key and idle[1].lives():
            return idle[1]
        end(idle[1])
        return None

    def _given_back(self, key: object, session: Session, closed: int) -> bool:
        with self._lock:
            if self._idle is not None or self._closed != closed:
                return False
            self._idle = (key, session)
            return True


def end(session: Session) -> None:
    """End a sandbox and remove its files."""
    session.close()
    shutil.rmtree(session.folder.parent, ignore_errors=True)


__all__ = ["LIFE_S", "KeptSandbox"]
