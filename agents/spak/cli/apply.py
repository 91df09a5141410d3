"""`spak apply RUN`: bring what a run changed into the folder that it was copied from, or take it back.

All or nothing (spak.apply_run), and through the door (spak.door): secrets and odd things never leave, and what may run
by itself waits for a person, who confirms each such path by name at a terminal or with `--allow-runs`. Where
`[approvals]` of spak.toml names keys, that yes is signed with one of them. `bring_home` is what `--in-place` calls at
each stop of a run.
"""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import RunError, UsageError

if TYPE_CHECKING:
    from spak.apply_run.bring import Change, Planned
    from spak.apply_run.journal import Journal
    from spak.apply_run.user_folder import UserFolder

HELD = 4
"""The exit code where something waits for a person, as of a run that waits."""
_REFUSED = ("secret", "odd")


@dataclass(slots=True)
class Found:
    """What an apply did or would do; `kind` of each path is its class at the door."""

    run: str
    folder: Path
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Class and reason by path."""
    applied: list[tuple[str, str]] = field(default_factory=list)
    """Paths that were written, and how: new, changed, merged or deleted."""
    held: list[str] = field(default_factory=list)
    """Paths that wait for a person, or are refused; nothing was written then."""
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    checked: bool = False
    undone: bool = False

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self.conflicts else HELD if self.held else 0

    def to_json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "applied": [{"path": path, "class": self.kinds.get(path, ("",))[0]} for path, _ in self.applied],
            "held": [{"path": path, "class": kind, "reason": why} for path, (kind, why) in self._held()],
            "conflicts": [path for path, _ in self.conflicts],
        }

    def _held(self) -> list[tuple[str, tuple[str, str]]]:
        return [(path, self.kinds[path]) for path in self.held]


@click.command()
@click.argument("run", default="latest")
@click.option("--check", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--only", multiple=True, metavar="PATH", help="This file or folder alone; repeat for more.")
@click.option("--allow-runs", multiple=True, metavar="PATH", help="Confirm a path that may run by itself.")
@click.option("--undo", is_flag=True, help="Take back what was applied last.")
@common.runs_option
@common.json_option
def command(
    run: str,
    check: bool,
    only: tuple[str, ...],
    allow_runs: tuple[str, ...],
    undo: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Bring what RUN changed into the folder that it was copied from."""
    root, name = common.find_run(run, runs_dir)
    if undo and (only or allow_runs or check):
        raise UsageError("usage.arguments", "--undo takes no other option", "it takes back all of the last")
    if undo:
        found = take_back(root, name)
    else:
        ask = sys.stdin.isatty() and not as_json
        found = bring_home(root, name, only=only, allowed=allow_runs, check=check, ask=ask)
    if as_json:
        common.emit(found.to_json())
    else:
        _say(found)
    return found.code


def bring_home(
    root: Path,
    name: str,
    *,
    only: Sequence[str] = (),
    allowed: Collection[str] = (),
    check: bool = False,
    ask: bool = False,
) -> Found:
    """Bring what a run changed into its folder; `allowed` are paths that may run by themselves, `ask` whether a
    person at the terminal is asked about the others.

    Raises: RunError `apply.*`, `workspace.*`; UsageError `usage.path`, `keys.*`; LedgerError.
    """
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    before, now, folder = _ends(root, name)
    journal = Journal(root / name)
    with journal.held(), bring.opened(folder) as user:
        if not check:
            _recover(journal, user)
        changes = bring.changes(root / name, before, now, bring.taken(journal))
        changes = _chosen(changes, only)
        found = Found(name, folder, _kinds(root / name, before, now), checked=check)
        planned = bring.plan(user, changes)
        found.conflicts = list(planned.conflicts)
        found.applied = [(step.path, _how(planned, step)) for step in planned.writes]
        open_ = [path for path, _ in found.applied if found.kinds[path][0] not in ("ordinary", "checks")]
        found.held = [path for path in open_ if found.kinds[path][0] in _REFUSED or path not in allowed]
        if ask and not check and not found.conflicts:
            _confirm(found)
        if check or found.conflicts or found.held:
            return found
        about = {"at": time.time_ns() // 1_000_000, "by": _login(), "root": now, "runs": sorted(open_)}
        if open_:
            about |= _signed(root, name, open_, planned)
        bring.bring(journal, user, planned, about)
    return found


def take_back(root: Path, name: str) -> Found:
    """Take back what was applied last. Raises: RunError `apply.nothing`, `apply.*`, `workspace.*`."""
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    _, _, folder = _ends(root, name)
    journal = Journal(root / name)
    with journal.held(), bring.opened(folder) as user:
        _recover(journal, user)
        standing = journal.standing()
        if not standing:
            raise RunError("apply.nothing", f"nothing of run {name} is applied", "spak apply RUN applies it")
        last = standing[-1]
        planned = bring.plan(user, bring.undo(journal, last))
        found = Found(name, folder, conflicts=list(planned.conflicts), undone=True)
        if not found.conflicts:
            found.applied = [(step.path, _how(planned, step)) for step in planned.writes]
            about = {"at": time.time_ns() // 1_000_000, "by": _login()}
            bring.bring(journal, user, planned, about, last.number)
    return found


def _ends(root: Path, name: str) -> tuple[str, str, Path]:
    """The roots of a run's files at its beginning and now, and the folder that they came from.

    Raises: RunError `apply.no_folder`; LedgerError.
    """
    from spak.cli import reading
    from spak.ledger.files import FileLedgers

    first = FileLedgers(root).genesis(name).body
    about = first["host"]
    folder = str(about.get("folder") or about.get("in_place") or "")
    if not folder:
        raise RunError(
            "apply.no_folder",
            f"run {name} was not copied from a folder that is known here",
            "take its files from the workspace in the run's folder, or start a run with --workspace DIR",
        )
    return str(first["rules"]["r3"]), str(reading.view_of(root, name).registers["R3"]), Path(folder)


def _recover(journal: Journal, user: UserFolder) -> None:
    """Finish or take back what a killed process left, and say so."""
    from spak.apply_run import bring

    one = journal.under_way()
    if one is None:
        return
    if Path(one.folder) != user.path:
        raise RunError(
            "apply.folder", f"an apply to {one.folder} was cut off", "put that folder back, then try again"
        )
    done = bring.recover(journal, user, one)
    how = "finished" if done.finished else "taken back"
    edited = f"; left as edited since: {', '.join(done.edited)}" if done.edited else ""
    common.say(f"spak: an earlier apply was cut off and is {how}{edited}")


def _chosen(changes: list[Change], only: Sequence[str]) -> list[Change]:
    """The changes at or below these paths. Raises: UsageError `usage.path`."""
    if not only:
        return changes
    found = []
    for given in only:
        path = given.removeprefix("./").rstrip("/")
        below = [one for one in changes if one.path == path or one.path.startswith(f"{path}/")]
        if not below:
            raise UsageError(
                "usage.path", f"the run changed nothing at {given}", "spak apply RUN --check lists what it did"
            )
        found += [one for one in below if one not in found]
    return found


def _how(planned: Planned, step: Any) -> str:
    if planned.merged(step):
        return "merged"
    return "deleted" if not step.left.kind else "changed" if step.found.kind else "new"


def _confirm(found: Found) -> None:
    """Ask about each path that waits; all are confirmed or all wait."""
    if any(found.kinds[path][0] in _REFUSED for path in found.held):
        return
    for path in found.held:
        why = found.kinds[path][1]
        if not click.confirm(common.printable(f"{path} may run by itself ({why}). Apply it?"), err=True):
            return
    found.held = []


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _say(found: Found) -> None:
    """What was done for people: what runs by itself first, then the rest, then what to do next."""
    from spak.runner.views.report import plural

    say = common.say
    for path in found.held:
        kind, why = found.kinds[path]
        say(f"  {'refused' if kind in _REFUSED else 'waits'}  {path}: {kind}, {why}")
    for path, why in found.conflicts:
        say(f"  conflict  {path}: {why}")
    stopped = bool(found.held or found.conflicts)
    for path, how in found.applied:
        if path not in found.held:
            kind = found.kinds.get(path, ("", ""))[0]
            common.out(f"  {how}  {path}" + (f"  ({kind})" if kind not in ("", "ordinary") else ""))
    count = plural(len(found.applied), "file")
    if found.conflicts:
        say(f"spak: {found.folder} moved on, nothing was written [apply.conflict]")
        say(f"next: spak apply {found.run} --only PATH, or merge by hand")
    elif found.held:
        refused = any(found.kinds[path][0] in _REFUSED for path in found.held)
        say(f"spak: nothing was written, {plural(len(found.held), 'path')} must not leave as they are [apply.held]")
        more = "".join(f" --allow-runs {path}" for path in found.held)
        say(f"next: spak apply {found.run}{' --only PATH' if refused else more}")
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
    assert stopped == bool(found.code)
