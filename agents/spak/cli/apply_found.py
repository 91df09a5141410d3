"""What an apply did or would do (`spak apply`), as its JSON document and for people.

Takes the paths with their classes at the door and what became of each; gives the exit code, the document and
the lines that are printed. It changes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spak.cli import common

HELD = 4
"""The exit code where something waits for a person, as of a run that waits."""


@dataclass(slots=True)
class Found:
    """What an apply did or would do; `kind` of each path is its class at the door."""

    run: str
    folder: Path
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Class and reason by path."""
    planned: list[tuple[str, str]] = field(default_factory=list)
    """Paths that are written unless something is held, and how: new, changed, merged or deleted."""
    held: list[str] = field(default_factory=list)
    """Paths that wait for a person, or are refused; nothing was written then."""
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    blocked: tuple[str, ...] = ()
    """Why the law lets nothing leave: a check of the run failed."""
    checked: bool = False
    undone: bool = False
    branch: str = ""
    """The branch that the commits became, where they did."""
    partly: bool = False
    """Whether what waits for nobody is written even if other paths wait."""

    @property
    def applied(self) -> list[tuple[str, str]]:
        """The paths that were written; with `checked` those that would be, once nothing else waits."""
        if self.code and not (self.checked or self.partly):
            return []
        return [one for one in self.planned if one[0] not in self.held]

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self.conflicts else HELD if self.held or self.blocked else 0

    def to_json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "applied": [{"path": path, "class": self.kind(path)[0]} for path, _ in self.applied],
            "held": [
                {"path": path, "class": kind, "reason": why}
                for path, (kind, why) in ((path, self.kind(path)) for path in self.held)
            ],
            "conflicts": [path for path, _ in self.conflicts],
            "blocked": list(self.blocked),
            **({"branch": self.branch} if self.branch else {}),
        }

    def kind(self, path: str) -> tuple[str, str]:
        """Class and reason of a path, empty for one that the door was not asked about."""
        return self.kinds.get(path, ("", ""))


def say_what_waits(found: Found) -> None:
    """What is not written and why, for people."""
    from spak.door import one_line

    for reason in found.blocked:
        common.say(f"  the law of the run says: {reason}")
    for path in found.held:
        kind, why = found.kind(path)
        common.say(f"  {'waits' if kind == 'runs' else 'refused'}  {one_line(path)}: {kind}, {why}")
    for path, why in found.conflicts:
        common.say(f"  conflict  {one_line(path)}: {why}")


def say_it(found: Found) -> None:
    """What was done for people: what waits, then the rest, then what to do next."""
    from spak.door import one_line
    from spak.runner.views.report import plural

    say = common.say
    say_what_waits(found)
    shown = found.planned if found.checked else found.applied
    for path, how in sorted(shown, key=lambda one: found.kind(one[0])[0] != "runs"):
        kind, _ = found.kind(path)
        common.out(f"  {how}  {one_line(path)}" + (f"  ({kind})" if kind not in ("", "ordinary") else ""))
    count = plural(len(found.applied), "file")
    if found.conflicts:
        say(f"spak: {found.folder} moved on, nothing was written [apply.conflict]")
        if found.undone:
            say("next: put these lines back as they were applied, or edit the file by hand")
        else:
            say(f"next: spak apply {found.run} --only PATH brings the rest")
    elif found.code:
        say("spak: nothing was written")
        say(f"next: {_next(found)}")
    elif found.branch:
        verb = "would be" if found.checked else "is"
        say(f"{found.branch} in {found.folder} {verb} the run's last commit; {count} differ")
    elif found.checked:
        say(f"{count} would be written in {found.folder}")
        say(f"next: spak apply {found.run}")
    elif not found.applied:
        say(f"{found.folder} has all that run {found.run} changed")
    elif found.undone:
        say(f"{count} taken back in {found.folder}")
        say(f"next: spak apply {found.run}")
    else:
        say(f"{count} written in {found.folder}")
        say(f"next: spak apply {found.run} --undo takes them back")


def _next(found: Found) -> str:
    """What a person does about what is held."""
    if found.blocked:
        return f"fix what the check reports, or take the files anyway at a terminal: spak apply {found.run}"
    if any(found.kinds[path][0] != "runs" for path in found.held):
        return (
            f"take what is refused out in another run, or leave it here: spak apply {found.run} --only PATH"
        )
    branch = f" --branch {shlex.quote(found.branch)}" if found.branch else ""
    return f"spak apply {found.run}{branch}" + "".join(
        f" --allow-runs {shlex.quote(path)}" for path in found.held
    )
