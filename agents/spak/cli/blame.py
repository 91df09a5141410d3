"""`spak blame FILE`: who gave each field of a spec its value, when, why, and on which evidence.

The origins come from a history that was downloaded from the platform, which is verified first, or from the
commits of the git repository that holds FILE. Reads only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.evolve.spec_history import Version

COMMITS = 500
"""Commits of the file that are looked at, the newest."""
WAIT_S = 60
CLIP = 60
ENTRY = re.compile("\0([0-9a-f]+)\1(.*?)\1(.*?)\1(.*?)\1\0\n(.*?)\0", re.DOTALL)
"""A commit as `git log -z` writes it in the format below, and the file's name then."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from. `name` is a version, a commit, or "not saved yet"."""

    name: str
    text: str
    by: str = ""
    at: str = ""
    why: str = ""
    approved: tuple[str, ...] = ()
    evidence: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The document of one origin."""
        return {
            "name": self.name,
            "by": self.by,
            "at": self.at,
            "why": self.why,
            "approved": list(self.approved),
            "evidence": list(self.evidence),
        }


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--history", type=click.Path(path_type=Path), metavar="FILE", help="A history from the platform."
)
@click.option("--key", metavar="ID", help="Refuse a history that is signed with another key.")
@click.option("--task", help="Only the fields of this task.")
@common.json_option
def command(file: Path, history: Path | None, key: str | None, task: str | None, as_json: bool) -> int:
    """Show who gave each field of FILE its value, when and why. Exit 1 if the history does not verify."""
    from spak.cli.fmt import read
    from spak.lang.diff import fields

    text = read(file).decode("utf-8", "replace")
    wrong: Sequence[str] = ()
    if history is not None:
        origins, wrong, signer = _from_history(history, key)
    else:
        if key is not None:
            raise UsageError("usage.arguments", "--key is about a history", "name one with --history")
        origins, signer = _from_git(file), ""
    if not origins or origins[-1].text != text:
        origins = [*origins, Origin("not saved yet", text)]
    found = fields([one.text for one in origins])
    if task is not None:
        found = [one for one in found if one.path.split("/")[:2] == ["tasks", task]]
        if not found:
            raise UsageError("usage.arguments", f"{file} has no task {task!r}", "spak graph lists them")
    if as_json:
        rows = [
            {"path": one.path, "value": one.value, "origin": origins[one.origin].to_json()} for one in found
        ]
        common.emit({"file": str(file), "key": signer or None, "wrong": list(wrong), "fields": rows})
    else:
        width = max((len(one.path) for one in found), default=0)
        for one in found:
            common.out(f"{one.path.ljust(width)}  {line(origins[one.origin])}")
        for words in wrong:
            common.say(f"the history does not hold: {words}")
        if signer and not wrong:
            common.say(f"the history holds; its merges are signed with key {signer}")
    return 1 if wrong else 0


def line(origin: Origin) -> str:
    """An origin for people."""
    parts = [origin.name, origin.by, origin.at[:10], origin.why[:CLIP]]
    if origin.approved:
        parts.append(f"approved by {', '.join(origin.approved)}")
    return "  ".join([*filter(None, parts), *(f"[{one}]" for one in origin.evidence)])


def _from_history(path: Path, trusted: str | None) -> tuple[list[Origin], Sequence[str], str]:
    from spak.cli.fmt import read
    from spak.evolve import spec_history
    from spak.policy.approval import key_id

    found = spec_history.read(read(path).decode("utf-8", "replace"))
    signer = key_id(found.key)
    if trusted is not None and trusted != signer:
        raise UsageError(
            "usage.arguments",
            f"{path} is signed with key {signer}, not {trusted}",
            "get it from the platform",
        )
    return [_of_version(one) for one in found.versions], found.wrong, signer


def _of_version(one: Version) -> Origin:
    at, merge = datetime.fromtimestamp(one.at / 1000, UTC).isoformat(timespec="seconds"), one.merge
    name = f"version {one.number}"
    if merge is None:
        return Origin(name, one.text, one.by, at, one.why)
    campaign = merge.get("campaign")
    return Origin(
        name,
        one.text,
        f"campaign {campaign}" if campaign else str(merge.get("proposer", one.by)),
        at,
        f"patch {merge.get('patch')}: {merge.get('title', '')}",
        tuple(str(who.get("by")) for who in merge.get("approved", ())),
        tuple(f"{check.get('name')}: {check.get('state')}" for check in merge.get("checks", ())),
    )


def _from_git(file: Path) -> list[Origin]:
    """The texts of FILE in the commits that changed it, oldest first. Raises: UsageError `usage.history`."""
    folder = file.resolve().parent
    form = "--format=%x00%h%x01%an%x01%aI%x01%s%x01"
    log = _git(
        folder, "log", f"--max-count={COMMITS}", "--follow", "--name-only", "-z", form, "--", file.name
    )
    found = [
        Origin(f"commit {commit}", _git(folder, "cat-file", "blob", f"{commit}:{name}"), by, at, why)
        for commit, by, at, why, name in ENTRY.findall(log)[::-1]
    ]
    if not found:
        raise UsageError("usage.history", f"no commit has {file}", "commit it, or name a --history")
    return found


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("usage.history", "git did not answer", "name a --history") from error
    if done.returncode:
        raise UsageError(
            "usage.history", "the file is not in a git repository", "name a --history, or commit the file"
        )
    return done.stdout.decode("utf-8", "replace")
