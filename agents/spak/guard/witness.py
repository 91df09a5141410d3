"""The resident guard of an agent that works outside of the walls: it answers the agent's hooks from a socket.

Takes a run of specs/guard/guest.spak and a judge; gives exit code and text of each hook. What is asked is
judged by the law of the run, and recorded with the verdict before the answer leaves; so is what the agent
says came of it. Nothing here holds the agent: its effects are witnessed, and an agent that does not ask, or
does not obey, is seen at best.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from spak import canon
from spak.cancel import Cancelled
from spak.errors import UsageError, UserError
from spak.guard.answer import FIRST, NAME
from spak.guard.hook_agents import AGENTS, HookAgent, actions
from spak.guard.session import Session
from spak.ledger.private import keep_folder
from spak.policy.actions import Action
from spak.policy.judge import Decision, denied
from spak.ports import Call, Redacting, ToolResult
from spak.tools import results
from spak.tools.outside import MOST_ACTIONS, Witnessed
from spak.tools.registry import TOOLS

MOST_EVENT = 4 << 20
"""Bytes of what a hook sends; more is denied."""
MOST_READ = 256 << 20
"""Bytes after which it is not even read to its end."""
MOST_AT_ONCE = 64
SILENCE_S = 15.0
"""Less than the hook waits (spak.guard.answer)."""
MOST_OPEN = 10_000
"""Calls of which an end is expected; of more, the earliest are forgotten."""
LOCK = "lock"
_RANK = {"allow": 0, "ask": 1, "deny": 2}
_ROW = "a person allows it by a row of the law"


class Answer(NamedTuple):
    """What a hook ends with."""

    exit: int = 0
    text: str = ""


@dataclass(slots=True)
class _Asked:
    """A call that was answered; `files` are those that it would change, as they were."""

    verdict: str
    files: Mapping[str, Any] = field(default_factory=dict)


class Witness:
    """Answers hooks, one at a time, in the order in which they come."""

    def __init__(
        self,
        session: Session,
        judge: Callable[[Action], Decision],
        project: Path,
        redactor: Redacting,
        own: Collection[str] = (),
        line: str = "",
    ) -> None:
        """`own` are absolute paths that no tool may change: the guard rests on them. `line` is shown where a
        session begins."""
        self._session, self._judge, self._redactor = session, judge, redactor
        self._project, self._own, self._line = str(project), frozenset(own), line
        self._turn = threading.Lock()
        self._open: dict[tuple[str, str, str], _Asked] = {}

    def answer(self, agent: HookAgent, kind: str, data: bytes) -> Answer:
        """The answer to one event. Never raises: what nobody understands is denied."""
        try:
            event = json.loads(data)
            if not isinstance(event, dict):
                raise ValueError
        except (ValueError, RecursionError):
            return _refused("the hook was given no JSON that can be read")
        try:
            with self._turn:
                match kind:
                    case "before":
                        return self._before(agent, event)
                    case "after":
                        self._after(agent, event)
                    case "turn":
                        self._ended(agent, event)
                    case "start":
                        return self._start(agent, event)
                return Answer(0, agent.silence)
        except UserError as error:
            return _refused(f"{error.message} [{error.code}]")
        except Cancelled:
            return _refused("the guard has stopped")

    def _before(self, agent: HookAgent, event: Mapping[str, Any]) -> Answer:
        session, call, tool = _names(event)
        args, cwd = event.get("tool_input"), event.get("cwd") or self._project
        if not isinstance(args, dict) or not isinstance(cwd, str) or not tool:
            return _refused("the hook names no tool with its arguments")
        asked = actions(tool, args, cwd, self._project)
        worst, changed = Decision("allow", "it does nothing by itself"), dict[str, Any]()
        for number, action in enumerate(asked):
            if action.tool == tool and tool in TOOLS and tool not in _SAME:
                action = Action(f"native_{tool}", action.args)
            found = self._decide(action)
            if number == 0 or _RANK[found.decision] > _RANK[worst.decision]:
                worst = found
            if action.tool in _CHANGES and isinstance(path := action.args.get("path"), str):
                changed[path] = _state(path)
        verdict, reason = self._worded(agent, worst)
        made = self._record(
            agent, "asked", session, call, tool, actions=self._shown(asked), verdict=verdict, reason=reason
        )
        if made:
            verdict, reason = "deny", made
        self._open[agent.name, session, call] = _Asked(verdict, changed if verdict == "deny" else {})
        while len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]
        if verdict == "allow":
            return Answer(0, agent.silence)
        if verdict == "ask":
            said = {
                "hookEventName": agent.before,
                "permissionDecision": "ask",
                "permissionDecisionReason": reason,
            }
            return Answer(0, json.dumps({"hookSpecificOutput": said}))
        return _refused(reason)

    def _decide(self, action: Action) -> Decision:
        path = action.args.get("path")
        if action.tool in _CHANGES and isinstance(path, str) and os.path.realpath(path) in self._own:
            return denied("guard.own_settings", "the guard rests on this file", "change it without the agent")
        return self._judge(action)

    def _worded(self, agent: HookAgent, found: Decision) -> tuple[str, str]:
        """The verdict that the agent can be given, and why. What a person should be asked is denied where the
        agent cannot ask, with what would allow it."""
        reason = found.reason
        if found.decision == "ask":
            row = str(found.asked.get("row") or "")
            reason = f"{reason}; {_ROW}{': ' + row if row else ''}"
            return ("ask" if agent.asks else "deny"), reason[:2000]
        return found.decision, reason[:2000]

    def _after(self, agent: HookAgent, event: Mapping[str, Any]) -> None:
        session, call, tool = _names(event)
        asked = self._open.pop((agent.name, session, call), None)
        if asked is None:
            what = "unasked"
        elif asked.verdict == "deny":
            what = "against"
        else:
            what = "failed" if str(event.get("hook_event_name", "")).endswith("Failure") else "done"
        self._record(agent, what, session, call, tool)

    def _ended(self, agent: HookAgent, event: Mapping[str, Any]) -> None:
        session, _, _ = _names(event)
        mine = [key for key in self._open if key[:2] == (agent.name, session)]
        for key in mine:
            asked = self._open.pop(key)
            if any(_state(path) != before for path, before in asked.files.items()):
                self._record(agent, "against", session, key[2], "")
        if mine:
            self._record(agent, "turn", session, "", "")

    def _start(self, agent: HookAgent, event: Mapping[str, Any]) -> Answer:
        if not self._line or not agent.asks:
            return Answer(0, agent.silence)
        return Answer(0, json.dumps({"systemMessage": self._line}))

    def _record(self, agent: HookAgent, event: str, session: str, call: str, tool: str, **more: str) -> str:
        """Write it down; why the law forbids that, else empty."""
        args = {"agent": agent.name, "event": event, "session": session, "id": call, "tool": tool, **more}
        args = {name: _plain(value) for name, value in args.items()}
        return self._session.propose(Witnessed.entry.name, self._redactor.value(args), _done).said

    def _shown(self, asked: list[Action]) -> str:
        """The actions for the record; a long text is only begun."""
        text = json.dumps([{"tool": one.tool, "args": one.args} for one in asked], ensure_ascii=False)
        text = self._redactor.text(_plain(text))
        return text if len(text) <= MOST_ACTIONS else text[: MOST_ACTIONS - 20] + "... (cut)"


_CHANGES = frozenset({"write_file", "delete_file"})
_SAME = frozenset({"read_file", "write_file", "list_files", "grep", "apply_patch"})
"""Names that an agent's tool and the gate's share."""


def _names(event: Mapping[str, Any]) -> tuple[str, str, str]:
    """Session, call and tool by the agent's words; without a name of the call, its content."""
    session = str(event.get("session_id") or event.get("conversation_id") or "")[:200]
    tool = event.get("tool_name")
    call = event.get("tool_use_id") or event.get("tool_call_id")
    if not call:
        call = canon.digest(json.dumps([tool, event.get("tool_input")], sort_keys=True).encode())
    return session, str(call)[:200], tool[:200] if isinstance(tool, str) else ""


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _state(path: str) -> tuple[int, ...] | None:
    """By which a change of a file is seen."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def _refused(reason: str) -> Answer:
    return Answer(2, f"spak: {reason}")


def _done(call: Call) -> ToolResult:
    return results.done("")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads, request_queue_size = True, 128
    witness: Witness

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(NAME, _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether it is answered; not while too many are."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer on one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The hook is gone; there is nobody to answer."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """One question: a line with agent and event, then what the agent gave the hook."""
        line: socket.socket = self.request
        line.settimeout(SILENCE_S)
        data, size = b"", 0
        while size < MOST_READ and (more := line.recv(1 << 16)):
            size += len(more)
            data += more if size <= MOST_EVENT else b""
        head, _, body = data.partition(b"\n")
        name, _, kind = head.decode("ascii", "replace").partition(" ")
        agent = AGENTS.get(name)
        if size > MOST_EVENT:
            found = _refused(f"the call has more than {MOST_EVENT >> 20} MiB")
        elif agent is None:
            found = _refused("the guard does not know this agent")
        else:
            found = self.server.witness.answer(agent, kind, body)
        text = found.text.encode("utf-8", "backslashreplace")
        line.sendall(FIRST + b"%d\n" % found.exit + text + b"\n")


@contextmanager
def serving(folder: Path, witness: Witness) -> Iterator[None]:
    """While entered it answers on the socket of the folder; afterwards there is none.

    Raises: UsageError `guard.busy` when another guard answers there."""
    keep_folder(folder)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = f"a guard answers the hooks of {folder.parent.parent} already"
            raise UsageError("guard.busy", what, "use that one, or stop it first") from error
        with suppress(FileNotFoundError):
            (folder / NAME).unlink()
        with chdir(folder):  # the path of a socket has room for a hundred characters
            server = _Server()
        server.witness = witness
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            (folder / NAME).unlink(missing_ok=True)
            server.shutdown()
            thread.join()
            server.server_close()
    finally:
        os.close(lock)
