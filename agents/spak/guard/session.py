"""One guarded session: what the agent proposes reaches the run, and what became of it reaches the agent.

Takes a run of specs/guard/guest.spak and a second workspace, the agent's copy, in which a step is always open
while the agent works. `turn` ends that step: where something changed the run takes it over as one transaction
(`contained`), or the copy is taken back to before, exactly. Proposals come from the threads of the proxy, one
at a time; the run is advanced by one thread, which waits in the proposer `outside` for the next.

It starts no process and speaks no protocol.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from spak.cancel import TURN_S, Cancelled, check
from spak.errors import RunError, UserError
from spak.files.walk import printable
from spak.guard.watch import Watch
from spak.kernel.state import State
from spak.ports import Call, Candidate, PlanRequest, Search, ToolResult
from spak.proposers.outside import Outside
from spak.records import Kind, Record
from spak.runner import Run
from spak.tools import results
from spak.tools.outside import MOST_PATHS, Contained, ModelRequest
from spak.workspace import Workspace

ENDED = "guard.ended"
STEP = "turn"
"""The name of the step that is open in the agent's copy."""


@dataclass(slots=True, eq=False)
class Proposal:
    """One call that the agent proposes; `work` does it, once it is permitted."""

    tool: str
    args: Mapping[str, Any]
    work: Callable[[Call], ToolResult]
    done: threading.Event = field(default_factory=threading.Event)
    ran: bool = False
    said: str = ""
    """Why it was denied or undone; empty where it was kept."""


class Session:
    """The proposer of a session, and its tools. `frozen` holds the agent's processes still."""

    def __init__(self, run: Run, copy: Workspace) -> None:
        self.run, self.copy = run, copy
        self.frozen: Callable[[], AbstractContextManager[None]] = nullcontext
        self._watch = Watch(copy.directory)
        self.notes: list[str] = []
        """What the agent is to be told with its next request."""
        self._waiting: queue.SimpleQueue[Proposal | None] = queue.SimpleQueue()
        self._now: Proposal | None = None
        self._turn = threading.Lock()
        self._owed = False
        """Whether changes wait for a sweep: the last one may have failed."""
        self._over: UserError | None = None
        self._kept, self._why = False, ""
        """Whether the call of the proposal of now was done and stays; else why not, where its record says."""
        run.listeners.append(self._hear)
        host = run.performer.host
        outside, contained, asked = _Outside(self), _Contained(self), _ModelRequest(self)
        run.performer.host = replace(
            host,
            proposers={**host.proposers, outside.entry.name: outside},
            tools={**host.tools, contained.entry.name: contained, asked.entry.name: asked},
        )

    # ---- for the thread that advances the run ----------------------------------------------------------

    def next(self, request: PlanRequest) -> list[Candidate] | Search:
        """The next proposal; the one before is over, and whoever made it goes on.

        Raises: Cancelled; UserError when the session has stopped."""
        self._settle()
        while True:
            check(request.cancel)
            if self._over is not None:
                raise self._over
            try:
                found = self._waiting.get(timeout=TURN_S)
            except queue.Empty:
                continue
            if found is None:
                return Search((), refusal={"code": ENDED, "message": "the agent has ended", "hint": ""})
            self._now = found
            return [Candidate(found.tool, found.args)]

    def work(self, call: Call) -> ToolResult:
        """Do what was proposed."""
        now = self._now
        if now is None:
            return results.failed("guard.no_session", "nothing was proposed")
        now.ran = True
        return now.work(call)

    def stopped(self, error: UserError | None = None) -> None:
        """The run does not go on: nothing is done any more, and everybody who waits learns it."""
        self._over = error or RunError(
            "guard.stopped", "the session has stopped", "spak resume does not go on"
        )
        self._settle()
        while True:
            try:
                found = self._waiting.get_nowait()
            except queue.Empty:
                return
            if found is not None:
                found.done.set()

    def _hear(self, record: Record, state: State) -> None:
        if record.kind == Kind.ACT and "outcome" in record.body:
            self._kept = record.body["outcome"] == "exited"
            self._why = str(record.body.get("why", ""))

    def _settle(self) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        if not (now.ran and self._kept):
            now.said = self._why or why(self.run.state.r4 or {})
        self._kept, self._why = False, ""
        now.done.set()

    # ---- for the threads of the proxy ------------------------------------------------------------------

    def propose(self, tool: str, args: Mapping[str, Any], work: Callable[[Call], ToolResult]) -> Proposal:
        """Propose a call and wait until it is decided and done. Raises: RunError `guard.stopped`."""
        made = Proposal(tool, args, work)
        if self._over is None:
            self._waiting.put(made)
        while not made.done.wait(TURN_S):
            if self._over is not None:
                break
        if self._over is not None:
            raise self._over
        return made

    def turn(self) -> None:
        """What the agent changed since the last one becomes a transaction, or is taken back; afterwards its
        copy is what the run has. Raises: RunError."""
        with self._turn:
            self._owed = self._watch.changed() or self._owed
            if self._owed:
                with self.frozen():
                    self._sweep()
                    self._watch.changed()  # what came until they stood still, and what we did
                self._owed = False

    def told(self) -> list[str]:
        """What the agent has not been told yet; it is taken as told."""
        notes, self.notes = self.notes, []
        return notes

    def end(self) -> None:
        """The agent is gone: the last transaction, and the end of the session."""
        with self._turn:
            if self._over is None:
                self._sweep(again=False)
                self._waiting.put(None)
            self._watch.close()

    def begin(self) -> None:
        """The agent may begin."""
        self.copy.begin(STEP)

    def _sweep(self, *, again: bool = True) -> None:
        root = self.copy.commit()
        kept = root == self.run.state.r3
        if not kept:
            paths = [printable(path) for path in self.copy.touched()]
            args = {
                "root": root,
                "changes": len(paths),
                "paths": [path[:5000] for path in paths[:MOST_PATHS]],
            }
            found = self.propose("contained", args, self._take_over)
            if found.said:
                self.notes.append(f"Your last changes ({_listed(paths)}) were taken back: {found.said}")
            kept = not found.said
        if kept:
            self.copy.settle()
        else:
            self.copy.rollback()
        if again:
            self.copy.begin(STEP)

    def _take_over(self, call: Call) -> ToolResult:
        self.run.workspace.bring(self.copy)
        paths = [printable(path) for path in self.copy.touched()]
        return results.done(f"{len(paths)} changed: {_listed(paths)}\n", root=str(call.args["root"]))


@contextmanager
def advancing(session: Session) -> Iterator[None]:
    """Around the thread that advances the run: however it stops, nobody waits for it in vain."""
    try:
        yield
    except UserError as error:
        session.stopped(error)
        raise
    except Cancelled:
        pass
    finally:
        session.stopped()


def why(r4: Mapping[str, Any]) -> str:
    """Why a proposal was not kept, as the agent is told it: the code, and what would make it allowed."""
    said = [str(r4.get(name)) for name in ("code", "message", "why", "hint") if r4.get(name)]
    return "; ".join(said)[:2000] or "it was not permitted"


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


class _Outside(Outside):
    def __init__(self, session: Session) -> None:
        self._session = session

    def propose(self, request: PlanRequest) -> list[Candidate] | Search:
        return self._session.next(request)


class _Contained(Contained):
    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, call: Call) -> ToolResult:
        return self._session.work(call)


class _ModelRequest(ModelRequest):
    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, call: Call) -> ToolResult:
        return self._session.work(call)
