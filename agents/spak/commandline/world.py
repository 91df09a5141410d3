"""What may be asked about the files of a workspace before an action.

A `Seen` is an observation of one path, made outside of the pure core by somebody who looked
(`spak.tools.observe.paths`); here it is only data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

TOO_MANY = "\0"
"""A placeholder for the matches of a pattern that could not be looked at."""

HOLDS_SECRET = "it holds a secret"
"""The note on a file whose contents say so."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a path leads when every link on its way is followed."""

    place: Literal["inside", "outside", "refused"]
    path: str
    """Below the workspace with links resolved, `.` for the workspace itself; of others, as asked."""
    kind: Literal["file", "folder", "missing", "other"] = "missing"
    links: int = 1
    """Names that the file has; more than one is a hard link."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Eyes:
    """What can be asked about the workspace."""

    look: Callable[[str], Seen]
    """Where one path leads, relative to the workspace."""
    spread: Callable[[str], tuple[str, ...]] = field(default=lambda _: (TOO_MANY,))
    """The paths that a glob matches, relative to the workspace; TOO_MANY where that is not certain, and where
    nobody looks."""
    below: Callable[[str], tuple[tuple[str, str], ...]] = field(default=lambda _: (), kw_only=True)
    """The secrets and the links below a folder, relative to the workspace, each with `file` or `link`;
    TOO_MANY among them where not all could be looked at. Without it nobody looked."""
