"""What was brought from a run into a folder, and what is under way: `applied` next to the run.

    applied/pack       contents before and after, and the bringing that is under way (spak.workspace.store)
    applied/done.json  the bringings that ended, in order
    applied/lock       held by the process that brings

A bringing is durable before the first file is touched, with every content that it takes away or puts. So
the next process finishes it or takes it back. It touches no file of the folder itself.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from spak import canon
from spak.apply_run.three_way import Side
from spak.apply_run.user_folder import NOTHING, Thing
from spak.errors import RunError
from spak.files.disk import Disk, typed
from spak.ledger.private import make_folder
from spak.workspace.store import Store

FOLDER = "applied"
AGAIN = "free some space, or make the folder and the run's folder writable; then run `spak apply` again"
"""What a person does about a disk that refuses: nothing is half done, or the next one finishes it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One path: what the run had and has, what the folder had and has then."""

    path: str
    base: Thing
    wanted: Thing
    found: Thing
    left: Thing


@dataclass(frozen=True, slots=True)
class Bringing:
    """What was brought at once; a branch has no steps. `undoes` is the number of the one that it takes back,
    else 0."""

    number: int
    folder: str
    steps: tuple[Step, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    """For people: when, by whom, which root, what was confirmed."""
    undoes: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Bringing:
        """From what `to_json` gave."""
        names = ("base", "wanted", "found", "left")
        steps = (Step(row["path"], *(Thing(**row[name]) for name in names)) for row in kept["steps"])
        return cls(kept["number"], kept["folder"], tuple(steps), kept["about"], kept["undoes"])


class Journal:
    """The journal of one run; `held` is a context in which only this process writes it."""

    def __init__(self, run: Path, disk: Disk | None = None) -> None:
        self._folder = run / FOLDER
        self._disk = disk or Disk()
        self._store = Store(self._folder, self._disk)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises: RunError `apply.busy`, `workspace.*` where the run's folder cannot be written."""
        with typed("opening the journal of what is applied", AGAIN):
            if not self._folder.is_dir():
                make_folder(self._folder)
            fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            hold(fd, str(self._folder))
            with typed("opening the journal of what is applied", AGAIN):
                self._store.look(write=True)
            yield
        finally:
            os.close(fd)

    def done(self) -> list[Bringing]:
        """Those that ended, in order. Raises: RunError `apply.journal`."""
        try:
            kept = json.loads((self._folder / "done.json").read_bytes())
            return [Bringing.of_json(item) for item in kept]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise RunError(
                "apply.journal",
                f"what was applied cannot be read: {self._folder / 'done.json'}",
                "put it back from a copy, or compare the folder with the run by hand and remove it",
            ) from error

    def standing(self) -> list[Bringing]:
        """Those that ended and were not taken back."""
        found = self.done()
        gone = {item.undoes for item in found}
        return [item for item in found if item.steps and not item.undoes and item.number not in gone]

    def under_way(self) -> Bringing | None:
        """The one that began and did not end."""
        self._store.look()
        record = self._store.begun()
        return None if record is None else Bringing.of_json(json.loads(record))

    def content(self, thing: Thing) -> Side:
        """A thing with its bytes. Raises: RunError `workspace.object`."""
        return (thing, self._store.read(thing.digest)) if thing.kind else (NOTHING, b"")

    def begin(self, one: Bringing, contents: Sequence[Side]) -> None:
        """It is durable after this, with all contents."""
        for thing, data in contents:
            if thing.kind in ("f", "l"):
                self._store.put(thing.digest, data)
        self._store.begin(json.dumps(one.to_json()).encode())

    def end(self, one: Bringing, *, kept: bool = True) -> None:
        """It ended; `kept` is false where all of it was taken back."""
        found = self.done()
        if kept and one.number not in {item.number for item in found}:
            self._write([*found, one])
        self._store.settle()

    def note(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Keep what a person confirmed that changes no file of the folder: a branch."""
        with typed("writing the journal of what is applied"):
            self._write([*self.done(), self.numbered(Bringing(0, str(folder), (), about))])

    def numbered(self, one: Bringing) -> Bringing:
        """The bringing with the next number."""
        return replace(one, number=max((item.number for item in self.done()), default=0) + 1)

    def _write(self, found: Sequence[Bringing]) -> None:
        data = json.dumps([item.to_json() for item in found]).encode()
        with self._disk.folder(str(self._folder)) as at:
            name = f".done.{canon.digest(data)[:8]}"
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=at)
            try:
                self._disk.write(fd, data)
                self._disk.fsync(fd)
            finally:
                os.close(fd)
            self._disk.rename(name, "done.json", at)
            self._disk.fsync(at)


def hold(fd: int, what: str) -> None:
    """Lock an open file or folder for this process. Raises: RunError `apply.busy`."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(
            "apply.busy", f"another process applies changes here ({what})", "wait until it has ended"
        ) from error
