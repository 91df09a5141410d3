"""`spak guard --follow`: what a session keeps comes home while it goes on, by the door of `spak apply`.

Takes a session's run; hears of each transaction and, in a thread of its own, brings what waits for nobody
into the folder. What waits for a person stays, and is shown. It keeps nothing: `spak.apply_run.journal` knows
what came, so that a resumed session or `spak apply` goes on after a guard that was killed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.cli import common
from spak.cli.apply_found import Found, say_what_waits
from spak.errors import RunError, UserError

if TYPE_CHECKING:
    from spak.cli.session import Session as Held
    from spak.kernel.state import State
    from spak.records import Record
    from spak.workspace.tree import Node

BUSY_S, BUSY_TRIES = 0.5, 20
"""How long it waits for another process that applies changes, and how often."""
MOST_FOLDERS = 20_000
"""Lists of folders that are kept from turn to turn."""


class Home:
    """Of one session."""

    def __init__(self, held: Held) -> None:
        from spak.cli import apply
        from spak.repository.begun import compares_modes

        self._run, self._place = held.run, held.folder
        self._folder = apply.came_from(held.folder.parent, held.folder.name)
        self._modes = compares_modes(held.folder / "store/git")
        self._state = held.run.state
        self._queue: queue.SimpleQueue[tuple[State | None, threading.Event]] = queue.SimpleQueue()
        """States of the run whose files are to be brought, in order; None ends it."""
        self._brought: dict[str, str] = {}
        """By path the class of what came home."""
        self._found = Found(held.folder.name, self._folder, partly=True)
        self._problem: UserError | None = None
        self._known: Mapping[str, Any] = {}
        """What the door has to know of the folder, of when the session began: what the agent has of it is as
        old."""
        self._folders: dict[str, Node] = {}
        """Lists of folders that were read: most are the same in each turn."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._ask(self._state)  # what a guard that was killed did not bring
        held.run.listeners.append(self._news)
        self._thread.start()

    def now(self) -> dict[str, Any]:
        """What the run has by now is brought; gives the folder, and the paths that are not as in the run."""
        done = self._ask(self._state)
        while self._thread.is_alive() and not done.wait(BUSY_S):
            pass
        found = self.said()["apply"]
        waits = [one["path"] for one in found["held"]] + found["conflicts"]
        error = {"error": found["error"]} if "error" in found else {}
        return {"home": {"folder": found["folder"], "waits": waits, **error}}

    def finish(self) -> None:
        """The same at the end of the session; nothing is brought afterwards."""
        self._ask(self._state)
        self._ask(None)
        self._thread.join()

    @property
    def waits(self) -> bool:
        """Whether not all of it came home."""
        return self._problem is not None or self._found.code != 0

    def said(self) -> dict[str, Any]:
        """What came home, and what waits, as `spak apply --json` has it."""
        applied = [{"path": path, "class": of} for path, of in self._brought.items()]
        found = self._found.to_json() | {"applied": applied}
        if (problem := self._problem) is not None:
            found["error"] = {"code": problem.code, "message": problem.message}
        return {"apply": found}

    def say(self) -> None:
        """For people: how much came home, and what waits."""
        from spak.runner.views.report import plural

        say_what_waits(self._found)
        common.say(f"spak: {plural(len(self._brought), 'file')} written in {self._folder} meanwhile")
        if self._problem is not None:
            common.say(f"spak: not all came home: {self._problem.message} [{self._problem.code}]")

    def _news(self, record: Record, state: State) -> None:
        before, self._state = self._state, state
        if before.r3 != state.r3:
            self._ask(state)

    def _ask(self, state: State | None) -> threading.Event:
        done = threading.Event()
        self._queue.put((state, done))
        return done

    def _work(self) -> None:
        state: State | None = self._state
        while state is not None:
            state, done = self._queue.get()
            try:
                if state is not None:
                    self._bring(state)
            except Exception as error:  # the thread goes on: the next turn is tried again
                what = f"changes could not be brought home: {error!r}"
                self._problem = RunError("guard.home", what, "spak apply brings them")
            finally:
                done.set()

    def _bring(self, state: State) -> None:
        """Bring what waits for nobody; while another process applies changes, wait for it."""
        from spak.apply_run.journal import AGAIN
        from spak.cli import apply
        from spak.files.disk import typed

        for _ in range(BUSY_TRIES):
            try:
                with typed("reading the folder", AGAIN):
                    self._known = self._known or apply.knowing(self._folder, self._modes)
                at = apply.of_run(self._place, self._run.rules, state, self._folder, self._modes)
                at = replace(at, known=self._known, folders=self._folders)
                self._found = apply.bring_home(self._place.parent, self._place.name, partly=True, at=at)
            except UserError as error:
                self._problem = error
                if error.code != "apply.busy":
                    return
                time.sleep(BUSY_S)
            else:
                self._problem = None
                if len(self._folders) > MOST_FOLDERS:
                    self._folders.clear()
                self._brought |= {path: self._found.kind(path)[0] for path, _ in self._found.applied}
                return


@contextmanager
def following(held: Held, *, quiet: bool) -> Iterator[Home | None]:
    """While entered, what the session keeps comes home, if that was asked for; afterwards all has that will.
    `quiet`: nothing is said."""
    home = Home(held) if held.in_place else None
    try:
        yield home
    finally:
        if home is not None:
            home.finish()
            if not quiet:
                home.say()


@dataclass(frozen=True, slots=True)
class Rest:
    """What a run that brings its changes home has not brought; or why nobody can say."""

    found: Found | None = None
    problem: UserError | None = None

    def to_json(self) -> dict[str, Any]:
        """As `spak apply --check --json` has it, or the error."""
        if self.found is not None:
            return self.found.to_json()
        return (
            {}
            if self.problem is None
            else {"error": {"code": self.problem.code, "message": self.problem.message}}
        )

    def say(self) -> None:
        """For people; nothing where all is home."""
        from spak.runner.views.report import plural

        if self.problem is not None:
            common.say(f"  home: {self.problem.message} [{self.problem.code}]")
        if self.found is not None:
            say_what_waits(self.found)
            if count := len(self.found.applied):
                common.say(f"  {plural(count, 'file')} not written yet: spak apply {self.found.run}")


def rest(root: Path, name: str) -> Rest | None:
    """That of a run; None for one that brings nothing home by itself. Raises: LedgerError."""
    from spak.cli import apply
    from spak.ledger.files import FileLedgers

    if not FileLedgers(root).genesis(name).body.get("host", {}).get("in_place"):
        return None
    try:
        return Rest(apply.bring_home(root, name, check=True, partly=True))
    except UserError as error:
        return None if error.code == "apply.no_folder" else Rest(problem=error)
