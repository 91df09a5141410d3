"""Recorded runs of other agents, read from files into one shape.

Takes a folder or a file: OpenAI messages in a list of runs with `traj` (tau-bench), `.traj` files with
`history` (SWE-agent), and `.jsonl` files of our own (one run a line, `{name, messages}`). Gives Trajectories
of Messages. What is in the files was written by others: it is counted, never obeyed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: str


@dataclass(frozen=True, slots=True)
class Message:
    """`given` is what stands before the task (a demonstration); `tool` answers the call before it."""

    role: str
    text: str
    """As a full history would resend it, calls included."""
    said: str = ""
    """An assistant's words to a person; its reasoning beside a call is not in here."""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    name: str
    messages: tuple[Message, ...]

    @property
    def turns(self) -> int:
        return sum(message.role == "assistant" for message in self.messages)


def read(place: Path) -> dict[str, list[Trajectory]]:
    """The sets of trajectories under a place, by the name of their folder, in the order of file names."""
    found: dict[str, list[Trajectory]] = {}
    for path in sorted(place.rglob("*") if place.is_dir() else [place]):
        if path.suffix in (".json", ".traj", ".jsonl"):
            runs = [run for run in _file(path) if run.turns >= 3]
            found.setdefault(path.parent.name, []).extend(runs)
    return {name: runs for name, runs in found.items() if runs}


def _file(path: Path) -> Iterator[Trajectory]:
    if path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            run = json.loads(line)
            yield Trajectory(run["name"], tuple(map(_openai, run["messages"])))
        return
    value = json.loads(path.read_text())
    if path.suffix == ".traj":
        yield Trajectory(path.stem, tuple(_swe(value["history"])))
        return
    for run in value:
        yield Trajectory(f"{path.stem}/{run['task_id']}.{run['trial']}", tuple(map(_openai, run["traj"])))


def _openai(message: Mapping[str, Any]) -> Message:
    text = message.get("content") or ""
    calls = _calls(message)
    written = "".join(f"{call.name}{call.args}" for call in calls)
    return Message(message["role"], text + written, "" if calls else text, calls)


def _swe(history: list[Mapping[str, Any]]) -> Iterator[Message]:
    """An action is a call of the program it begins with, and the observation after it is its result."""
    acted = False
    for message in history:
        role, text, calls = message["role"], message["content"], _calls(message)
        if role == "assistant":
            action = message.get("action") or ""
            written = "".join(f"{call.name}{call.args}" for call in calls)
            if not calls and action:
                name, _, args = action.strip().partition(" ")
                calls = (Call(name.partition("\n")[0], args),)
            acted = bool(calls)
            yield Message(role, text + written, "" if calls else text, calls)
        else:
            yield Message("tool" if acted and role == "user" else role, text)
            acted = False


def _calls(message: Mapping[str, Any]) -> tuple[Call, ...]:
    found = []
    for call in message.get("tool_calls") or ():
        args = call["function"]["arguments"]
        found.append(Call(call["function"]["name"], args if isinstance(args, str) else json.dumps(args)))
    return tuple(found)
