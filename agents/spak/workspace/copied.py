"""What a run's copy is a copy of: a file next to it, for the launcher, for hints, and to bring changes home.

Takes the folder and what was brought of it; gives the line that a person reads first, and the hint for a tool
that asked for what was left out. It is of this machine, in no ledger and in no export.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from spak.workspace.brought import Brought

FILE = "copied.json"
MOST_LEFT_OUT = 10_000
"""Paths that are kept in mind."""
_NAMED = 3
"""So many paths are named in a line."""
_MOST_TEXT = 1 << 16
"""Characters of an output in which a path is looked for."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy: the absolute path of the folder, and as `Brought` has them the folders that are shown or are
    the copy's own, and what was left out."""

    source: str
    files: int
    shown: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Path, brought: Brought, files: int) -> Copied:
        """The record of a copy with so many files."""
        left = brought.left_out[:MOST_LEFT_OUT]
        return cls(str(source.resolve()), files, brought.shown, brought.scratch, left)

    @property
    def line(self) -> str:
        """How many files were brought, shown and left out."""
        parts = [f"{self.files:,} {'file' if self.files == 1 else 'files'} copied from {self.source}"]
        if self.shown:
            parts.append(f"{_some(self.shown)} shown read-only")
        if self.left_out:
            parts.append(f"{len(self.left_out):,} ignored left out ({_some(self.left_out)})")
        return "; ".join(parts)

    def hint(self, texts: Iterable[str]) -> str:
        """What helps where one of the texts names a path that was left out; empty where none does."""
        words: set[str] = set()
        for text in texts:
            words.update(re.split(r"[\s\"'`:;,()\[\]=<>]+", text[:_MOST_TEXT]))
        named = {f"/{word.strip('/')}/" for word in words if word.strip("/.")}
        for path in self.left_out:
            if any(f"/{path}/" in word for word in named):
                return (
                    f"{path} is ignored by git and not in the run's copy: "
                    f'`bring = ["{path}"]` in spak.toml\'s [workspace] brings it'
                )
        return ""

    def write(self, folder: Path) -> None:
        """Keep it in the run's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Copied | None:
        """That of a run's folder; None where its workspace is not a copy of a local folder."""
        try:
            found = json.loads((folder / FILE).read_text(encoding="utf-8"))
            lists = {name: tuple(map(str, found[name])) for name in ("shown", "scratch", "left_out")}
            return cls(str(found["source"]), int(found["files"]), **lists)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(path.encode("utf-8", "replace").decode() for path in paths[:_NAMED]) + more
