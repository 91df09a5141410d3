"""Our kernel as a runtime that the kit judges: its protocol on standard input and output.

Takes one command a line (docs/aep.md, AEP-K0) and does it with the real parts: the program is compiled from a
spec, the kernel decides, the ledger and the workspace are files below the folder that the kit names, tools
are the kit's command lines in the sandbox of this machine. The model is the kit: a question goes out as a
line, the answer comes back as one. It judges nothing and knows no case.

Run as `python -m spak.compliance.ours`; the kit starts it so, and a mutant of it the same way.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spak import config
from spak.cancel import Cancel
from spak.errors import SpakError
from spak.kernel.replay import Replay
from spak.kernel.state import State, registers
from spak.lang import parse
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry
from spak.ledger.files import FileLedgers
from spak.ledger.scan import TRACE
from spak.policy.law import Law
from spak.ports import Answer, Call, Launcher, Prompt, ToolResult
from spak.program import compile as compile_program
from spak.records import Kind
from spak.runner import Host, Run
from spak.runner.genesis import constitution, genesis
from spak.runner.views.aep import public
from spak.tools import inside, results
from spak.workspace import Workspace

SPEC = """
AGENT Compliance LEVEL 5 {
  CONFIG { MODE full_auto BUDGET { %s } }
  START -> work
  TASK work { GOAL %s TOOLS [%s] RETRIES 90 NEXT { success -> work, fail -> over } }
  TASK over { GOAL "It is over." }
}
"""
"""A tool that says it is over ends with an exit code of its own, which is the way out of the loop."""
OVER = 1
CODES = {
    "budget.tokens": "CONTEXT_BUDGET",
    "budget.window": "CONTEXT_BUDGET",
    "budget.steps": "STEP_BUDGET",
    "ledger.busy": "LOCK_TIMEOUT",
    "ledger.collision": "HASH_COLLISION",
    "workspace.collision": "HASH_COLLISION",
    "workspace.busy": "LOCK_TIMEOUT",
}
"""Our codes by the names of the specification; for the others `public` gives it."""
SEED = 7


def send(line: Mapping[str, Any]) -> None:
    """Write one line to the kit."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def received() -> dict[str, Any] | None:
    """The next line of the kit; None when there is no more."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


@dataclass(slots=True)
class Tool:
    """A tool of a case: a command line in the sandbox, with the arguments in its places."""

    entry: ToolEntry
    argv: tuple[str, ...]
    limit_s: float

    def run(self, call: Call) -> ToolResult:
        """Start it."""
        return results.guarded(self._run, call)

    def _run(self, call: Call) -> ToolResult:
        words = [str(call.args[word[1:-1]]) if word.startswith("{") else word for word in self.argv]
        return results.of_outcome(inside.run(call, words, timeout_s=self.limit_s))


class Blind:
    """A hash of contents for which the second of two words is the first."""

    def __init__(self, words: Sequence[str]) -> None:
        self._first, self._second = (word.encode() for word in words)
        self._data = b""

    def update(self, data: bytes) -> None:
        """Take more bytes."""
        self._data += data

    def digest(self) -> bytes:
        """The hash of all of them."""
        return hashlib.sha256(self._data.replace(self._second, self._first)).digest()


class Kit:
    """The model: the kit at the other end."""

    entry = NamedEntry("kit", "the compliance kit answers")

    def __init__(self) -> None:
        """`shown` gives the registers at the time of a question."""
        self.shown: Callable[[], Mapping[str, Any]] = dict

    def check(self) -> None:
        """It is there: it started this process."""

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        """What the kit answers; where it is gone, so is this process."""
        send({"ask": {"prompt": prompt.text, "registers": self.shown()}})
        reply = received()
        if reply is None:
            sys.exit(0)
        return Answer(reply["answer"], reply["usage"], "kit")


@dataclass(slots=True)
class Ours:
    """What commands share: the sandbox of this machine."""

    launcher: Launcher

    def do(self, command: Mapping[str, Any]) -> None:
        """One command of the kit, with all that it leads to."""
        try:
            if command["do"] == "account":
                send({"account": account(Path(command["state"]), command["task"])})
            else:
                self.work(command)
        except SpakError as error:
            send({"end": {"state": "failed", "code": named(error.code), "message": error.message}})

    def work(self, command: Mapping[str, Any]) -> None:
        """Begin or resume a task and go on to its end."""
        state, task = Path(command["state"]), str(command["task"])
        tools = {name: made(name, about) for name, about in command["tools"].items()}
        words = command.get("blind")
        hashing: Any = partial(Blind, words) if words else hashlib.sha256
        wait_s = command["limits"]["lock_s"]
        place = Workspace(state / task / "workspace", state / task / "store", wait_s=wait_s, hashing=hashing)
        kit = Kit()
        host = Host(tools=tools, backend=kit, launcher=self.launcher, toolchain=config.toolchain())
        ledgers = FileLedgers(state)
        if command["do"] == "begin":
            place.copy_in(Path(command["folder"]))
            run = Run.create(ledgers, task, first(command, tools, place.snapshot()), host, place)
        else:
            run = Run.open(ledgers, task, host, place)
        kit.shown = lambda: registers(run.state, run.rules.program.budgets)
        try:
            log = state / task / TRACE
            send({"begun": {"workspace": str(place.directory), "log": str(log)}})
            run.advance("full_auto")
            state_now = run.state
            found = account(state, task)
        finally:
            run.close()
        send({"end": {**ended(state_now), "registers": kit.shown(), **found}})


def made(name: str, about: Mapping[str, Any]) -> Tool:
    """The tool that the kit describes."""
    entry = ToolEntry(name, 1, about["summary"], about["schema"], idempotent=about.get("idempotent", False))
    return Tool(entry, tuple(about["argv"]), about.get("limit_s", 60.0))


def first(command: Mapping[str, Any], tools: Mapping[str, Tool], root: str) -> dict[str, Any]:
    """The body of the first record: the spec of the case, its tools, and a law that permits these."""
    limits = command["limits"]
    # A turn is a plan and the tool that it chose: two steps of ours for one of the kit's.
    budget = {
        "steps": 2 * limits["steps"],
        "tokens": limits["tokens"],
        "watchdog": limits["watchdog"],
        "rollbacks": limits["rollbacks"],
    }
    words = " ".join(f"{name}: {value}" for name, value in budget.items())
    spec = SPEC % (words, json.dumps(command["goal"]), ", ".join(tools))
    catalog = Catalog(tools={name: tool.entry for name, tool in tools.items()})
    compile_program(parse(spec), catalog, {})
    permits = "".join(f"permitted(Action) :- tool(Action, /{name}).\n" for name in tools)
    law = Law(constitution(), {"kit.mg": permits})
    return genesis(spec, catalog, {}, root, SEED, {"run": command["task"]}, law=law)


def ended(state: State) -> dict[str, Any]:
    """How a run ended, in the words of the specification."""
    code = state.r7.codes[0] if state.r7.codes else ""
    return {"state": state.status, "code": named(code), "knob": state.r7.knob, "message": code}


def named(code: str) -> str:
    """A code of ours by the name that the specification has for it."""
    return CODES.get(code) or public(code)


def account(state: Path, task: str) -> dict[str, Any]:
    """What the log alone says of a task: its summary, its figures, the transaction that is under way."""
    replay, calls, line = Replay(), 0, -1
    under_way: Mapping[str, Any] = {}
    reader = FileLedgers(state).reader(task)
    try:
        for record, _ in reader.read():
            replay.feed(record)
            if record.kind == Kind.PERMIT and record.body.get("act") == "tool":
                calls, line, under_way = calls + 1, record.seq, record.body
    finally:
        reader.close()
    replay.finish()
    found, pending = replay.state, None
    image = Workspace(state / task / "workspace", state / task / "store").pending()
    if found.r6 is not None and image is not None and image.effect == found.r6.id:
        pending = {"tool": under_way.get("name"), "args": under_way.get("args"), "line": line}
    asks = sum(count for count, _, _ in found.r7.usage.values())
    figures = {"asks": asks, "calls": calls, "tokens": found.r2}
    return {"summary": found.summary, "figures": figures, "pending": pending}


def main() -> None:
    """Do the kit's commands until there are no more."""
    runtime = Ours(config.box(config.settings()))
    while (command := received()) is not None:
        runtime.do(command)


if __name__ == "__main__":
    main()
