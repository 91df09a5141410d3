"""Mutants of our kernel, one for each test: one replacement in one source file of a copy of the package.

Takes the package as it is installed; gives a copy with the mutant, and the variables with which a process of
our runtime imports that. A mutant is caught when its test fails and every other test passes: a test that
fails for every mistake shows nothing. A mutant whose text is gone is an error, since the table follows the
code.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spak import data
from spak.errors import BugError

SHIPPED = ("specs/policy", "sandbox")
"""The data that a runtime reads."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake in our kernel, and the number of the test that has to fail."""

    number: int
    name: str
    file: str
    old: str
    new: str


MUTANTS: Sequence[Mutant] = (
    Mutant(
        1,
        "no loop is ever found",
        "kernel/route.py",
        "found = watchdog.loop(window, size, limit) if limit else None",
        "found = None",
    ),
    Mutant(
        2,
        "what a killed process left half done stays",
        "runner/run.py",
        "                made._recover(restore)\n",
        "",
    ),
    Mutant(
        3,
        "R4 keeps what was received to itself",
        "kernel/fit.py",
        '{**error, **expected, "payload": bounded(payload)}',
        "error",
    ),
    Mutant(
        4,
        "the write-ahead record names no effect",
        "workspace/space.py",
        'self._store.begin(effect.encode() + b"\\n" + self._way_back[1])',
        'self._store.begin(b"later\\n" + self._way_back[1])',
    ),
    Mutant(
        5,
        "tasks share a workspace",
        "workspace/space.py",
        "self.directory, self._place = Path(directory), str(directory)",
        "self.directory = directory.parents[1] / 'shared'; self._place = str(self.directory)",
    ),
    Mutant(
        6,
        "a prompt is sent whatever it takes",
        "kernel/recollect.py",
        "budget - spent if budget else None",
        "None",
    ),
    Mutant(
        7,
        "idempotent tools are watched like others",
        "kernel/route.py",
        "entry is not None and entry.idempotent)",
        "False)",
    ),
    Mutant(
        8,
        "a rollback leaves the rights of files as they are",
        "workspace/apply.py",
        "        if self._exact:\n            return wanted.mode",
        "        if False:\n            return wanted.mode",
    ),
    Mutant(
        9,
        "bytes of one hash are not compared",
        "workspace/store.py",
        "if known != data and self.digest(known) == digest:",
        "if False:",
    ),
    Mutant(
        10,
        "a lease is waited for without end",
        "ledger/lease.py",
        "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(fd, fcntl.LOCK_EX)",
    ),
    Mutant(
        11,
        "the clock is in the summary",
        "kernel/seal.py",
        "fold(state.r7.summary, content)",
        "fold(state.r7.summary, content + str(at))",
    ),
)


def environment(mutant: Mutant, folder: Path) -> Mapping[str, str]:
    """A copy of the package with the mutant, in an empty folder, and the variables that have it imported.

    Raises: BugError `bug.mutant`, where the text that is replaced is not there exactly once.
    """
    copy_package(folder)
    replace_line(folder / "spak" / mutant.file, mutant.old, mutant.new)
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def copy_package(folder: Path) -> None:
    """A copy of the package, with the data that a run needs. What is changed in it is written anew, since its
    files are links where the file system has them."""
    package = Path(data.__file__).resolve().parent
    shutil.copytree(package, folder / "spak", copy_function=link, ignore=shutil.ignore_patterns("_data"))
    for name in SHIPPED:
        shutil.copytree(data.path(name), folder / "spak/_data" / name, copy_function=link)


def replace_line(path: Path, old: str, new: str) -> None:
    """Replace a text that is in a file once. What is a link to another file is written anew.

    Raises: BugError `bug.mutant`.
    """
    text = path.read_text(encoding="utf-8")
    if (count := text.count(old)) != 1:
        raise BugError("bug.mutant", f"{path.name} has the text of a mutant {count} times")
    path.unlink()
    path.write_text(text.replace(old, new), encoding="utf-8")


def link(source: str, to: str) -> None:
    """A hard link where the file system can, else a copy."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)
