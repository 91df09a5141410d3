"""Actions as they are asked for, and what was seen of the files that they name.

Takes one JSON line; gives an Action or a typed refusal. A `Seen` is an observation of one path, made outside
of the pure core by somebody who looked (`spak.tools.observe.paths`); here it is only data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spak.commandline.world import TOO_MANY, Eyes, Seen
from spak.errors import UsageError

MAX_LINE = 4 << 20
__all__ = ["TOO_MANY", "Action", "Id", "Seen", "World", "id_of", "read_action"]


Id = str | int | float | None
"""What a line calls itself; the answer says the same."""


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a tool that is to be judged."""

    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PatchSeen:
    """What was read in a patch that is too long for a record."""

    code: str = ""
    """Why it would not be applied, with its message; empty where it would."""
    message: str = ""
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Secrets that it names."""
    secret: str = ""
    """The kind of a secret whose value seems to be in it."""


@dataclass(frozen=True, slots=True)
class TextSeen:
    """What was read in a text that is too long for a record."""

    size: int
    """Its bytes."""
    names: tuple[str, ...] = ()
    """Secrets that it names."""
    secret: str = ""
    """The kind of a secret whose value seems to be in it."""


@dataclass(frozen=True, slots=True)
class World(Eyes):
    """What the judge may know besides the action."""

    read: Callable[[str], bytes | None] | None = None
    """The content of a file, for a patch; without it a patch is judged by its paths."""
    hosts: frozenset[str] = field(default_factory=frozenset)
    resolve: Callable[[str], tuple[str, ...]] | None = None
    """The addresses of a host's name, none where it has none; without it nobody looked."""
    patched: Callable[[Mapping[str, Any]], PatchSeen | None] | None = None
    """What is in a patch that is given by reference; None where nobody has read it yet."""
    whole: Callable[[Mapping[str, Any]], TextSeen | None] | None = None
    """What is in a text that is given by reference; None where nobody has read it yet. Without it a reference
    is an object like any other."""
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the entry of each tool says that its arguments are, for tools that are described by that."""


def read_action(line: str) -> tuple[Id, Action]:
    """The id, as it was given, and the action of one JSON line.

    Raises: UsageError `gate.line` with what the line should be.
    """
    if len(line) > MAX_LINE:
        raise _bad(f"a line of more than {MAX_LINE} characters")
    try:
        found = _parse(line)
    except (ValueError, RecursionError) as error:
        raise _bad("the line is not JSON") from error
    if not isinstance(found, dict):
        raise _bad("the line is not a JSON object")
    tool, args = found.get("tool"), found.get("args")
    if not isinstance(tool, str) or not isinstance(args, dict):
        raise _bad("`tool` is not a string or `args` is not an object")
    return _id(found), Action(tool, args)


def id_of(line: str) -> Id:
    """The id of a line that is no action, as far as there is one: whoever asked must know what was denied."""
    try:
        return _id(json.loads(line[:MAX_LINE], parse_constant=_finite, parse_float=_finite))
    except (ValueError, RecursionError):
        return ""


def _id(found: object) -> Id:
    name = found.get("id", "") if isinstance(found, dict) else ""
    return name if name is None or isinstance(name, (str, int, float)) else json.dumps(name)


def _parse(line: str) -> object:
    """The JSON of a line; what readers may take in two ways (a name given twice) is none."""
    return json.loads(line, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_once)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number of JSON")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name that is given twice")
    return found


def _bad(message: str) -> UsageError:
    return UsageError("gate.line", message, 'give {"id": ..., "tool": ..., "args": {...}} on one line')
