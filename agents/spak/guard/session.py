"""One guarded session: what the agent proposes reaches the run, and what became of it reaches the agent.

Takes a run of specs/guard/guest.spak and a second workspace, the agent's copy, in which a step is always open
while the agent works (`Served` has none). `turn` ends that step: where something changed the run takes it
over as one transaction (`contained`), or the copy is taken back to before, exactly. Proposals come from the
threads of the proxy, one at a time; the run is advanced by one thread, which waits in the proposer `outside`
for the next.

`call` does one of our tools for the agent: judged, a transaction of the run, and its copy follows. A person's
answers come from elsewhere, whenever they come (spak.guard.control): an approval counts for the next proposal
of the same action, so that nobody waits in the meantime.

It starts no process and speaks no protocol.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from spak.cancel import TURN_S, Cancelled, Token, check
from spak.errors import RunError, UserError
from spak.files.walk import printable
from spak.guard.people import LATER, People
from spak.kernel.state import State
from spak.policy import approval
from spak.ports import Call, Candidate, PlanRequest, Search, ToolResult
from spak.proposers.outside import Outside
from spak.records import Kind, Record
from spak.runner import Run
from spak.tools import results
from spak.tools.outside import MOST_PATHS, OWN
from spak.workspace import Workspace
from spak.workspace.watch import Watch

ENDED = "guard.ended"
STEP = "turn"
"""The name of the step that is open in the agent's copy."""
MOST_NOTES = 50


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
    code: str = ""
    """The code of that."""
    act: Mapping[str, Any] = field(default_factory=dict)
    """What was recorded of its call."""
    action: str = ""
    """Its name for approvals (spak.policy.approval), where the law wants one."""

    @property
    def verdict(self) -> str:
        """What happened: `denied`, `waiting` for a person, `failed` or `done`."""
        if self.said:
            return "waiting" if self.code == LATER else "failed" if self.act else "denied"
        return "done" if self.act.get("exit", 0) == 0 else "failed"


class Session:
    """The proposer of a session, and its tools. `frozen` holds the agent's processes still; `patience` is how
    many seconds a call waits for a person before it says that one is asked."""

    def __init__(self, run: Run, copy: Workspace) -> None:
        self.run, self.copy = run, copy
        self.frozen: Callable[[], AbstractContextManager[None]] = nullcontext
        self.patience = 20.0
        self.people = People()
        self.home: Callable[[], dict[str, Any]] = dict
        """Brings what the run has into the folder, where the session follows; gives what came of it."""
        self.copy_root = ""
        """What the agent's copy was when it began its turn."""
        self._watch = Watch(copy.directory)
        copy.watch()
        run.workspace.watch()
        self.notes: list[str] = []
        """What the agent is to be told with its next request."""
        self.closing: list[Callable[[], None]] = []
        """What ends before the session does, while it still records."""
        self._waiting: queue.SimpleQueue[Proposal | None] = queue.SimpleQueue()
        self._now: Proposal | None = None
        self._turn = threading.Lock()
        self.talk = threading.Lock()
        """Held from a request to the model to the end of its answer, and while one of our tools is done: an
        agent is not held still while an answer streams to it."""
        self.gone = Token()
        """Set once the agent has ended: nobody waits for an answer any more."""
        self._owed = False
        """Whether changes wait for a sweep: the last one may have failed."""
        self._over: UserError | None = None
        self._act: Mapping[str, Any] = {}
        """What was recorded of the call of the proposal of now."""
        run.listeners.append(self._hear)
        host = run.performer.host
        outside = Outside(self.next)
        tools = [kind(self.work) for kind in OWN]
        run.performer.host = replace(
            host,
            proposers={**host.proposers, outside.entry.name: outside},
            tools={**host.tools, **{tool.entry.name: tool for tool in tools}},
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
        self._over = error or _stopped()
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
            self._act = record.body

    def _settle(self) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        now.act, self._act = self._act, {}
        if now.act.get("outcome") != "exited":
            r4 = self.run.state.r4 or {}
            now.said = str(now.act.get("why") or "") or why(r4)
            now.code = str(r4.get("code", ""))
        now.done.set()

    def decide(self) -> bool:
        """The run waits for a person: it goes on with the answer that there is by now, or without one.
        Whether it waited for an approval."""
        effect = self.run.state.r6
        if self.run.state.ended or effect is None or effect.act != "approve":
            return False
        if self._now is not None:
            self._now.action = approval.action_hash(effect.name, effect.args["args"])
        self.run.approve(self.people.answer_to(effect))
        return True

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

    def call(self, tool: str, args: Mapping[str, Any]) -> Proposal:
        """Do one of our tools for the agent. Afterwards its copy is what the run has.

        Raises: RunError `guard.stopped`, `workspace.*`."""
        made = self._called(tool, args)
        waits = made.code == LATER and self.people.heard(made.action, self.patience)
        if waits or (tool == "ask_person" and self.people.replied(args.get("question"), self.patience)):
            made = self._called(tool, args)
        return made

    def _called(self, tool: str, args: Mapping[str, Any]) -> Proposal:
        entry = self.run.rules.catalog.tool(tool)
        writes = entry is not None and entry.effect == "effect" and entry.writes
        with self.talk, self._turn, self.frozen() if writes else nullcontext():
            self._swept()
            made = self.propose(tool, args, self.people.asked)
            if self.copy_root != self.run.state.r3:
                self._followed()
        return made

    def take_back(self, root: str) -> list[str]:
        """Make the files of the run and of the agent's copy what they were under an earlier root; gives the
        paths that changed. Raises: RunError `guard.denied`, `guard.stopped`, `workspace.*`."""
        with self.talk, self._turn, self.frozen():
            self._swept()
            paths: list[str] = []

            def hold(call: Call) -> ToolResult:
                paths.extend(printable(path) for path in self.run.workspace.hold(root))
                return results.done(f"{len(paths)} taken back: {_listed(paths)}\n", root=root)

            made = self.propose("contained", {"root": root, "changes": 0, "paths": []}, hold)
            if made.said:
                raise RunError("guard.denied", f"that is not taken back: {made.said}", "the law says so")
            self._followed()
            self.notes.append(f"A person took changes back ({_listed(paths)}); look at the files again.")
        return paths

    def turn(self) -> None:
        """What the agent changed since the last one becomes a transaction, or is taken back; afterwards its
        copy is what the run has. Raises: RunError."""
        with self._turn:
            self._swept()

    def _swept(self) -> None:
        if self.gone.is_set():  # a call that was under way: the last transaction is over, or comes now
            raise _stopped()
        self._owed = self._watch.changed() or self._owed
        if self._owed:
            with self.frozen():
                self._sweep()
                self._watch.changed()  # what came until they stood still, and what we did
            self._owed = False

    def note(self, text: str) -> None:
        """Something that the agent is to be told, once, and not without end."""
        if text not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(text)

    def told(self) -> list[str]:
        """What the agent has not been told yet; it is taken as told."""
        notes, self.notes = self.notes, []
        return notes

    def end(self) -> None:
        """The agent is gone: the last transaction, and the end of the session."""
        self.gone.set()
        for close in self.closing:
            close()
        with self._turn:
            try:
                if self._over is None:
                    self._sweep(again=False)
                    self._waiting.put(None)
            except UserError:
                self.copy.rollback()  # what cannot be kept, as it is too large, does not stay on the disk
                raise
            finally:
                self._watch.close()
                self.copy.watch(False)

    def begin(self) -> None:
        """The agent may begin."""
        self.copy_root = self.copy.begin(STEP)

    def _followed(self) -> None:
        """The agent's copy follows; where it cannot, the session stops before it takes that for changes."""
        try:
            self._follow()
        except UserError as error:
            self.stopped(error)
            raise
        self._watch.changed()

    def _follow(self) -> None:
        """The agent's copy becomes what the run has."""
        self.copy.bring(self.run.workspace)
        found = self.copy.commit()
        self.copy.settle()
        self.copy_root = self.copy.begin(STEP)
        if found != self.run.state.r3:
            raise _apart()

    def _sweep(self, *, again: bool = True) -> None:
        root = self.copy.commit(whole=not again)
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
            if kept and self.run.state.r3 != root:
                self.stopped(_apart())
                raise _apart()
        if kept:
            self.copy.settle()
        else:
            self.copy.rollback()
        if again:
            self.copy_root = self.copy.begin(STEP)

    def _take_over(self, call: Call) -> ToolResult:
        self.run.workspace.bring(self.copy)
        paths = [printable(path) for path in self.copy.touched()]
        return results.done(f"{len(paths)} changed: {_listed(paths)}\n", root=str(call.args["root"]))


class Served(Session):
    """A session of an agent that has only our tools, or only hooks: no copy of its own."""

    def __init__(self, run: Run) -> None:
        super().__init__(run, run.workspace)
        self._watch.close()

    def begin(self) -> None:
        """The agent may begin."""

    def end(self) -> None:
        """The agent is gone. May be called by a handler of a signal, where nothing is to be closed."""
        self.gone.set()
        for close in self.closing:
            close()
        self._waiting.put(None)

    def _swept(self) -> None:
        """Nothing changes but by our tools."""

    def _follow(self) -> None:
        """There is nothing to follow."""


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


def _stopped() -> RunError:
    return RunError("guard.stopped", "the session has stopped", "spak resume does not go on")


def _apart() -> RunError:
    return RunError("guard.copy", "the agent's copy is not what the run has", "spak guard --resume goes on")


def why(r4: Mapping[str, Any]) -> str:
    """Why a proposal was not kept, as the agent is told it: the code, and what would make it allowed."""
    said = [str(r4.get(name)) for name in ("code", "message", "why", "hint") if r4.get(name)]
    return "; ".join(said)[:2000] or "it was not permitted"


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
