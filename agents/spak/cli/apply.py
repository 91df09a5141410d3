"""`spak apply RUN`: bring what a run changed into the folder that it was copied from, or take it back.

All or nothing (spak.apply_run), and through the door (spak.door): secrets and odd things never leave, and
what may run by itself waits for a person, who confirms each such path by name at a terminal or with
`--allow-runs`. Where `[approvals]` of spak.toml names keys, that yes is signed with one of them.
`bring_home` is what `--in-place` calls at each stop of a run.
"""

from __future__ import annotations

import getpass
import shlex
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import RunError, UsageError, UserError

if TYPE_CHECKING:
    from spak.apply_run.bring import Change, Planned
    from spak.apply_run.journal import Journal
    from spak.apply_run.user_folder import UserFolder
    from spak.door import Leaving
    from spak.runner import View

HELD = 4
"""The exit code where something waits for a person, as of a run that waits."""
GOOD_FOR_MS = 600_000
"""For how long a signature is good."""


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
    blocked: tuple[str, ...] = ()
    """Why the law lets nothing leave: a check of the run failed."""
    checked: bool = False
    undone: bool = False
    branch: str = ""
    """The branch that the commits became, where they did."""

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self.conflicts else HELD if self.held or self.blocked else 0

    def to_json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "applied": [{"path": path, "class": self._kind(path)[0]} for path, _ in self.applied],
            "held": [
                {"path": path, "class": kind, "reason": why}
                for path, (kind, why) in ((path, self._kind(path)) for path in self.held)
            ],
            "conflicts": [path for path, _ in self.conflicts],
            "blocked": list(self.blocked),
            **({"branch": self.branch} if self.branch else {}),
        }

    def _kind(self, path: str) -> tuple[str, str]:
        return self.kinds.get(path, ("", ""))


@click.command()
@click.argument("run", default="latest")
@click.option("--check", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--only", multiple=True, metavar="PATH", help="This file or folder alone; repeat for more.")
@click.option("--allow-runs", multiple=True, metavar="PATH", help="Confirm a path that may run by itself.")
@click.option(
    "--branch",
    is_flag=False,
    flag_value="",
    metavar="NAME",
    help="Make the run's commits a branch (spak/RUN) and leave the files.",
)
@click.option("--undo", is_flag=True, help="Take back what was applied last.")
@common.runs_option
@common.json_option
def command(
    run: str,
    check: bool,
    only: tuple[str, ...],
    allow_runs: tuple[str, ...],
    branch: str | None,
    undo: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Bring what RUN changed into the folder that it was copied from."""
    root, name = common.find_run(run, runs_dir)
    if undo and (only or allow_runs or check or branch is not None):
        raise UsageError("usage.arguments", "--undo takes no other option", "it takes back all of the last")
    if branch is not None and only:
        raise UsageError("usage.arguments", "--branch takes whole commits", "leave out --only")
    if undo:
        found = take_back(root, name)
    else:
        ask = sys.stdin.isatty() and not as_json
        if branch is not None:
            found = bring_branch(root, name, branch, allow_runs, check=check, ask=ask)
        else:
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
    """Bring what a run changed into its folder; `allowed` are paths that may run by themselves, `ask` whether
    a person at the terminal is asked about the others.

    Raises: RunError `apply.*`, `workspace.*`; UsageError `usage.arguments`, `keys.*`; LedgerError.
    """
    from spak import door
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    run = _ended(root, name)
    journal = Journal(root / name)
    with journal.held(), bring.opened(run.folder) as user:
        if not check:
            _recover(journal, user)
        changes = _chosen(bring.changes(root / name, run.before, run.now, bring.taken(journal)), only)
        leaving = _looked(root / name, run).only({one.path for one in changes}.__contains__)
        kinds = {one.path: (str(one.of), one.reason) for one in leaving.changes}
        comes = {one.path for one in leaving.changes if one.of is not door.Class.IGNORED}
        planned = bring.plan(user, [one for one in changes if one.path in comes])
        found = Found(name, run.folder, kinds, blocked=leaving.blocked, checked=check)
        found.conflicts = list(planned.conflicts)
        found.applied = [(step.path, _how(planned, step)) for step in planned.writes]
        written = {path for path, _ in found.applied}
        refused = [one.path for one in leaving.refused if one.path in written]
        runs = [one.path for one in leaving.unsigned if one.path in written]
        found.held = refused + [path for path in runs if path not in allowed]
        if ask and not (check or refused or found.conflicts):
            _confirm(found)
        if check or found.code:
            return found
        about = {"at": time.time_ns() // 1_000_000, "by": _login(), "root": run.now, "runs": runs}
        if runs:
            about |= _signed(name, leaving)
        bring.bring(journal, user, planned, about)
    return found


def bring_branch(
    root: Path, name: str, branch: str, allowed: Collection[str], *, check: bool, ask: bool
) -> Found:
    """Make the run's commits a branch, `spak/RUN` where it has no name; files, HEAD and index stay. Each path
    of the commits must be as the run ended with it, since that is what the door looks at.

    Raises: RunError `apply.*`, `git.*`; LedgerError.
    """
    from spak.files.disk import Disk
    from spak.repository import branch as branches
    from spak.workspace.git_files import git_files
    from spak.workspace.store import Store
    from spak.workspace.tree import load

    run = _ended(root, name)
    bare = root / name / "store/git"
    made = branches.commits(bare)
    store = Store(root / name / "store", Disk())
    now = git_files(load(store, run.now))
    for path in made.changed:
        if made.lacks(path, store.read(now[path].digest) if path in now else None):
            raise RunError(
                "apply.branch_behind",
                f"the run changed {path!a} after its last commit",
                "let the run commit as its last step, or apply the files without --branch",
            )
    leaving = _looked(root / name, run).only(made.changed.__contains__)
    found = Found(
        name, run.folder, {one.path: (str(one.of), one.reason) for one in leaving.changes},
        blocked=leaving.blocked, checked=check, branch=branch or f"spak/{name}",
    )  # fmt: skip
    found.applied = [(path, "changed" if blob else "deleted") for path, blob in made.changed.items()]
    found.held = [one.path for one in leaving.refused]
    runs = [one.path for one in leaving.unsigned if one.path not in allowed]
    if ask and not (check or found.held):
        found.held = runs
        _confirm(found)
    else:
        found.held += runs
    if not (check or found.code):
        branches.give(bare, run.folder, found.branch, made)
    return found


def take_back(root: Path, name: str) -> Found:
    """Take back what was applied last. Raises: RunError `apply.nothing`, `apply.*`, `workspace.*`."""
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    folder = _ended(root, name).folder
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


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a run stands: the roots of its files at its beginning and now, and the folder they came from."""

    before: str
    now: str
    folder: Path
    blocked: tuple[str, ...]
    """Why nothing of it may leave, as its law says it."""
    by_own_tests: bool
    """Whether its check passes with what it changed of its tests alone."""


def _ended(root: Path, name: str) -> Ended:
    """Raises: RunError `apply.no_folder`; LedgerError."""
    from spak.cli import reading
    from spak.kernel.situation import blocked
    from spak.runner.views.run_json import by_own_tests
    from spak.workspace import Copied

    copied = Copied.read(root / name)
    if copied is None:
        raise RunError(
            "apply.no_folder",
            f"run {name} was not copied from a folder that is known here",
            "take its files from the workspace in the run's folder, or start a run with --workspace DIR",
        )
    found = reading.replayed(root, name)
    assert found.rules is not None
    return Ended(
        found.rules.r3,
        found.state.r3,
        Path(copied.source),
        blocked(found.rules, found.state),
        by_own_tests(found.state),
    )


def _looked(run: Path, ended: Ended) -> Leaving:
    """What changed in the run, as the door has it."""
    from spak import config, door
    from spak.files.disk import Disk
    from spak.llm import redactor
    from spak.repository.commits import compares_modes
    from spak.repository.ignoring import new_and_ignored
    from spak.runner.secret_guard import found_in
    from spak.workspace.git_files import GitPlaces
    from spak.workspace.store import Store
    from spak.workspace.tree import load

    chosen = config.settings()
    known = redactor(chosen.llm).knowing(found_in(ended.folder, chosen.shown_secrets)[1])
    store = Store(run / "store", Disk())
    before, now = load(store, ended.before), load(store, ended.now)
    found = door.look(
        before,
        now,
        store.read,
        holds=known.holds,
        ignored=new_and_ignored(before, now, store.read).__contains__,
        modes=compares_modes(GitPlaces(store, ended.folder, None).repository),
        cased=_tells_cases(ended.folder),
        shown=chosen.shown_secrets,
        blocked=ended.blocked,
    )
    return found.by_own_tests() if ended.by_own_tests else found


def _tells_cases(folder: Path) -> bool:
    """Whether names that differ by the case of letters only are two names there."""
    other = folder.with_name(folder.name.swapcase())
    return other == folder or not other.exists() or not other.samefile(folder)


def _signed(name: str, leaving: Leaving) -> dict[str, Any]:
    """The signature of a person for what may run by itself, where keys are named: over the base, the root and
    each path with its class. Raises: UsageError `keys.*`."""
    from spak import config
    from spak.cli import keys
    from spak.policy import approval

    approvers = config.settings().approvers
    if not approvers:
        return {}
    key = keys.chosen(None, approval.publics(approvers))
    expires = time.time_ns() // 1_000_000 + GOOD_FOR_MS
    action = approval.action_hash("apply", {"digest": leaving.digest})
    common.say(f"signed with the key {key.name}")
    return {
        "digest": leaving.digest,
        "approval": approval.make(
            key.private,
            action=action,
            of=leaving.digest,
            run=name,
            step="apply",
            expires=expires,
            decision=approval.APPROVE,
        ),
    }


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
    """The changes at or below these paths. Raises: UsageError `usage.arguments`."""
    if not only:
        return changes
    found = []
    for given in only:
        path = given.removeprefix("./").rstrip("/")
        below = [one for one in changes if one.path == path or one.path.startswith(f"{path}/")]
        if not below:
            raise UsageError(
                "usage.arguments",
                f"the run changed nothing at {given}",
                "spak apply RUN --check lists what it did",
            )
        found += [one for one in below if one not in found]
    return found


def _how(planned: Planned, step: Any) -> str:
    if planned.merged(step):
        return "merged"
    return "deleted" if not step.left.kind else "changed" if step.found.kind else "new"


def _confirm(found: Found) -> None:
    """Ask whether files of a run whose checks failed are wanted, and about each path that waits; all are
    confirmed, or all wait."""
    for reason in found.blocked:
        if not _yes(f"The run's own check says: {reason}. Apply all the same?"):
            return
    for path in found.held:
        if not _yes(f"{path} may run by itself ({found.kinds[path][1]}). Apply it?"):
            return
    found.held, found.blocked = [], ()


def _yes(question: str) -> bool:
    return click.confirm(common.printable(question), err=True)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _say(found: Found) -> None:
    """What was done for people: what waits, then the rest, then what to do next."""
    from spak.runner.views.report import plural

    say = common.say
    for reason in found.blocked:
        say(f"  the law of the run says: {reason}")
    for path in found.held:
        kind, why = found.kinds[path]
        say(f"  {'waits' if kind == 'runs' else 'refused'}  {path}: {kind}, {why}")
    for path, why in found.conflicts:
        say(f"  conflict  {path}: {why}")
    for path, how in found.applied if found.checked or not found.code else ():
        kind = found.kinds.get(path, ("", ""))[0]
        common.out(f"  {how}  {path}" + (f"  ({kind})" if kind not in ("", "ordinary") else ""))
    count = plural(len(found.applied), "file")
    if found.conflicts:
        say(f"spak: {found.folder} moved on, nothing was written [apply.conflict]")
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


def at_stop(folder: Path, seen: View, as_json: bool, show: Callable[[View, bool], int]) -> int:
    """Show a run with `--in-place` that stopped, and bring home what it changed; of one that failed, was
    refused or was cancelled nothing comes. The exit code is the run's, or why nothing came."""
    if seen.state in ("failed", "refused", "cancelled"):
        code = show(seen, as_json)
        common.say(f"spak: nothing was applied in place; spak apply {seen.run} brings what the run changed")
        return code
    problem: UserError | None = None
    found: Found | None = None
    try:
        found = bring_home(folder.parent, folder.name, ask=sys.stdin.isatty() and not as_json)
    except UserError as error:
        problem = error
    if as_json:
        said = {} if problem is None else {"error": {"code": problem.code, "message": problem.message}}
        common.emit({**seen.to_json(), "apply": said if found is None else found.to_json()})
    else:
        show(seen, as_json)
        if found is not None:
            _say(found)
    if problem is not None:
        common.say(f"spak: nothing was applied in place: {problem.message} [{problem.code}]")
        common.say(f"  hint: {problem.hint}")
    code = common.EXIT[seen.state]
    return code or (1 if found is None else found.code)
