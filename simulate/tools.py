"""What runs do in the simulation: a launcher without a sandbox, and a model that says one word.

`tool.run` is the product's; its jobs are done here, in place, and the world remembers which. `mark W` adds a
word to a file of the workspace: done twice without a rollback it stands there twice. `send W` is an effect on
the outside, under the effect's id; `once W` is one that may be done at most once; `break W` leaves half of
something and fails; `due W N` ends well at the Nth try. Each takes a moment of virtual time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulate.threads import Here, mine, process
from spak.cancel import check
from spak.lang.catalog import NamedEntry
from spak.ports import Answer, Call, Job, Outcome, Prompt, Stream, ToolResult


@dataclass(slots=True)
class Outside:
    """What the world saw of one run."""

    sent: list[tuple[str, str, str]] = field(default_factory=list)
    """Word, effect id, process."""
    once: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    stale: str = ""
    """An effect that a worker began although it had lost the run before it asked."""
    marks: list[tuple[str, str, str]] = field(default_factory=list)


class World:
    """What all runs of a seed did, by their keys."""

    runs: dict[str, Outside] = {}  # noqa: RUF012
    calls: dict[int, Call] = {}  # noqa: RUF012
    confirmed: dict[int, float] = {}  # noqa: RUF012
    """When a thread asked last whether its lease is held, in virtual seconds."""
    lost_at: dict[tuple[str, str], float] = {}  # noqa: RUF012
    """When a process lost a run to another one."""
    asked = 0
    effect_begins: Callable[[str, str, Sequence[str]], None] = staticmethod(lambda key, effect, words: None)
    """Called with run, effect and words before each."""

    @classmethod
    def forget(cls) -> None:
        """Of the seed before."""
        cls.runs, cls.calls, cls.asked = {}, {}, 0
        cls.confirmed, cls.lost_at = {}, {}

    @classmethod
    def begins(cls, key: str) -> None:
        """An effect begins: note it where the worker asked for its lease after it had lost it."""
        task = Here.scheduler.current
        assert task is not None
        lost = cls.lost_at.get((key, task.process.name))
        if lost is not None and lost < cls.confirmed.get(task.number, 0.0):
            found = f"{task.process.name} lost the run at {lost:.2f} s, asked later, and began an effect"
            cls.runs[key].stale = found


class Launcher:
    """Does jobs in place of a sandbox."""

    entry = NamedEntry("restricted", "no sandbox: jobs are done in place")

    def probe(self) -> str:
        return ""

    def run(self, job: Job) -> Outcome:
        scheduler = Here.scheduler
        task = scheduler.current
        assert task is not None
        kind, word, *rest = job.argv
        kind = kind.rpartition("/")[2]
        key = job.workspace.parent.name
        seen = World.runs.setdefault(key, Outside())
        World.begins(key)
        World.effect_begins(key, World.calls[task.number].id, [kind, *job.argv[1:]])
        scheduler.point("job", "begin")
        check(job.cancel)
        slow = 12 if scheduler.random.random() < 0.1 else 1  # some take long enough for somebody to stop them
        took = round(0.01 + slow * scheduler.random.expovariate(4), 3)
        task.in_job = kind != "once"
        try:
            _DOES[kind](seen, World.calls[task.number], job.workspace, word)
        finally:
            task.in_job = False
        scheduler.sleep(took)
        code = _code(seen, kind, word, rest)
        check(job.cancel)
        scheduler.point("job", "end")
        said = f"{kind} {word}\n".encode()
        return Outcome("exited", code, Stream(said, len(said)), Stream(), wall_ms=int(took * 1000))

    def start(self, job: Job, pass_fds: Sequence[int] = (), seccomp_extra: bytes = b"") -> Any:
        raise AssertionError("nothing here starts a job without waiting")


def _mark(seen: Outside, call: Call, place: Path, word: str) -> None:
    seen.marks.append((word, call.id, process().name))
    file = place / "log"
    before = file.read_text() if file.exists() else ""
    with file.open("w") as opened:
        opened.write(f"{before}{word}\n")


def _send(seen: Outside, call: Call, place: Path, word: str) -> None:
    seen.sent.append((word, call.id, process().name))


def _once(seen: Outside, call: Call, place: Path, word: str) -> None:
    if call.first():
        seen.once[f"{word} on {place.parents[2]}"] += 1  # the note that it began lies in the run's folder


def _break(seen: Outside, call: Call, place: Path, word: str) -> None:
    (place / "half").write_text(word)
    folder = place / "sub"
    if not folder.exists():
        folder.mkdir()
    (folder / word).write_text(word)


def _due(seen: Outside, call: Call, place: Path, word: str) -> None:
    seen.tries[call.id] += 1


def _code(seen: Outside, kind: str, word: str, rest: Sequence[str]) -> int:
    if kind == "break":
        return 1
    if kind == "due":
        return 0 if len(seen.tries) >= int(rest[0]) else 1
    return 0


_DOES: dict[str, Callable[[Outside, Call, Path, str], None]] = {
    "mark": _mark, "send": _send, "once": _once, "break": _break, "due": _due,
}  # fmt: skip


class Noting:
    """`tool.run` of the product; the launcher knows of which call its job is."""

    def __init__(self, real: Any) -> None:
        self._real, self.entry = real, real.entry

    def run(self, call: Call) -> ToolResult:
        task = Here.scheduler.current if mine() else None
        if task is not None:
            World.calls[task.number] = call
        found: ToolResult = self._real.run(call)
        return found


class Model:
    """A backend that answers every question with one word, after a moment."""

    entry = NamedEntry("scripted", "answers with one word")

    def check(self) -> None: ...

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Any = None
    ) -> Answer | None:
        World.asked += 1
        Here.scheduler.sleep(round(0.2 + Here.scheduler.random.expovariate(1), 3))
        check(cancel)
        return Answer("hello", {"input": 10, "output": 1}, model="scripted")


def install() -> None:
    """Once, before the first spec is read."""
    from spak import config, sandbox, tools
    from spak.runner import Own
    from spak.runner.repositories import Repositories
    from spakweb.store.ledger.store import DatabaseLedger
    from spakweb.store.specs import facts

    real = DatabaseLedger.confirm

    def confirm(self: DatabaseLedger) -> None:
        if mine() and Here.scheduler.current is not None:
            World.confirmed[Here.scheduler.current.number] = Here.scheduler.now
        real(self)

    DatabaseLedger.confirm = confirm  # type: ignore[method-assign]

    config.versions = dict
    Repositories.before_job = lambda self: None  # type: ignore[method-assign]  # git is a program of its own
    Repositories.after_job = lambda self: ""  # type: ignore[method-assign]
    sandbox.LAUNCHERS = {"restricted": Launcher}
    tools.TOOLS = {**tools.TOOLS, "run": Noting(tools.TOOLS["run"])}
    facts.SHIPPED = Own(backends={"scripted": Model()}, marks={"backend scripted": "1"})
    os.environ["PATH"] = "/usr/bin:/bin"
