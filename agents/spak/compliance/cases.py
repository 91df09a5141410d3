"""The tests as data: `specs/compliance/NN-name.yaml`, and the tools that they share.

Takes the shipped files; gives Cases in order. A case has a clause (`holds`), which docs/aep.md repeats word
for word, and parts; a part says what the task begins with, what the model answers, what is arranged
meanwhile (`kind`), and what is expected. It plays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from spak import data

FOLDER = "specs/compliance"
LIMITS: Mapping[str, int] = {"watchdog": 3, "steps": 1000, "tokens": 0, "rollbacks": 3, "lock_s": 10}
"""What a task may use up where its part says nothing; 0 tokens are no limit."""
OVER: Mapping[str, Any] = {"tool": "over", "args": {}}


@dataclass(frozen=True, slots=True)
class Part:
    """One task, or several at once, and what is expected of them."""

    name: str
    expect: Mapping[str, Any]
    kind: str = "task"
    """What is arranged: a name of `play.PLAYS`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Of the folder that the task begins from; each text is one line."""
    answers: Sequence[Mapping[str, Any] | str] = ()
    """Of the model, in order; then it says that the task is over."""
    times: int = 1
    """How often they are given."""
    again: bool = False
    """Whether they are given without end."""
    limits: Mapping[str, int] = field(default_factory=dict)
    blind: Sequence[str] = ()
    """Two words between which the runtime's hash of contents sees no difference."""
    seen: str = ""
    """The file that shows that the tool has begun."""
    argv_again: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The command lines of tools after the runtime was killed."""
    logged: str = ""
    """The word that the log holds by then."""
    another: Mapping[str, Any] | None = None
    """The last answer of the run that differs."""
    tasks: int = 1
    trees: int = 0
    random: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One of the eleven."""

    number: int
    title: str
    seed: str
    """The line of the source."""
    holds: str
    parts: Sequence[Part]

    @property
    def id(self) -> str:
        """The number of its clause in docs/aep.md."""
        return f"AEP-K{self.number}"


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in order."""
    files = sorted(data.path(FOLDER).glob("[0-9][0-9]-*.yaml"))
    found = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return tuple(Case(**{**case, "parts": tuple(Part(**part) for part in case["parts"])}) for case in found)


@cache
def tools() -> Mapping[str, Mapping[str, Any]]:
    """The tools that every task has, by name."""
    found = yaml.safe_load((data.path(FOLDER) / "tools.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
