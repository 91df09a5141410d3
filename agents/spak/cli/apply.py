"""`spak apply RUN`: bring what a run changed into the folder that it was copied from, or take it back.

All or nothing (spak.apply_run), and through the door (spak.door): secrets and odd things never leave, and
what may run by itself waits for a person, who confirms each such path by name at a terminal or with
`--allow-runs`. Where `[approvals]` of spak.toml names keys, that yes is signed with one of them.
`bring_home` is what `--in-place` calls at each stop of a run.
"""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.cli.apply_found import Found, say_it
from spak.errors import RunError, UsageError, UserError

if TYPE_CHECKING:
    from spak.apply_run.bring import Change, Planned
    from spak.apply_run.journal import Journal
    from spak.apply_run.user_folder import UserFolder
    from spak.door import Leaving
    from spak.kernel.rules import Rules
    from spak.kernel.state import State
    from spak.runner import View
    from spak.workspace.store import Store
    from spak.workspace.tree import Node

GOOD_FOR_MS = 600_000
"""For how long a signature is good."""


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
        say_it(found)
    return found.code


def bring_home(
    root: Path,
    name: str,
    *,
    only: Sequence[str] = (),
    allowed: Collection[str] = (),
    check: bool = False,
    ask: bool = False,
    partly: bool = False,
    at: Ended | None = None,
) -> Found:
    """Bring what a run changed into its folder; `allowed` are paths that may run by themselves, `ask` whether
    a person at the terminal is asked about the others. With `partly`, what waits for nobody is brought even
    if other changes wait. `at` is the run as its process knows it, else it is read from the ledger.

    Raises: RunError `apply.*`, `workspace.*`; UsageError `usage.arguments`, `keys.*`; LedgerError.
    """
    from spak import door
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    run = at or _ended(root, name)
    journal = Journal(root / name)
    with journal.held(), bring.opened(run.folder, modes=run.modes) as user:
        if not check:
            _recover(journal, user)
        trees = _trees(root / name, run)
        changes = bring.changes(*trees, bring.taken(journal), modes=run.modes)
        if only:
            known = bring.changes(*trees, {}, modes=run.modes)  # those that were brought before, too
            changes = _chosen(changes, only, {one.path for one in (*known, *changes)})
        leaving = _looked(trees, run, {one.path for one in changes})
        kinds = {one.path: ("ordinary", "as the run began with it") for one in changes if one.back}
        kinds |= {one.path: (str(one.of), one.reason) for one in leaving.changes}
        comes = {one.path for one in leaving.changes if one.of is not door.Class.IGNORED}
        changes = [one for one in changes if one.back or one.path in comes]
        planned = bring.plan(user, changes)
        found = Found(name, run.folder, kinds, blocked=leaving.blocked, checked=check, partly=partly)
        found.conflicts = list(planned.conflicts)
        found.planned = [(step.path, _how(planned, step)) for step in planned.writes]
        written = {path for path, _ in found.planned}
        refused = [one.path for one in leaving.refused if one.path in written]
        runs = [one.path for one in leaving.unsigned if one.path in written]
        found.held = [path for path in runs if path not in allowed] + refused
        if ask and not (check or refused or found.conflicts):
            _confirm(found)
        if partly and found.code:
            planned, runs = _ready(user, changes, found), []
        if check or (found.code and not partly):
            return found
        bring.bring(journal, user, planned, _about(name, run, leaving, runs))
    return found


def _ready(user: UserFolder, changes: Sequence[Change], found: Found) -> Planned:
    """What of these changes waits for nobody. Without what waits another path may be in the way: it waits
    too."""
    from spak.apply_run import bring

    waits = {*found.held, *dict(found.conflicts)}
    while True:
        rest = [] if found.blocked else [one for one in changes if one.path not in waits]
        planned = bring.plan(user, rest)
        if not planned.conflicts:
            found.planned = [(step.path, _how(planned, step)) for step in planned.writes]
            return planned
        found.conflicts += planned.conflicts
        waits |= dict(planned.conflicts).keys()


def bring_branch(
    root: Path, name: str, branch: str, allowed: Collection[str], *, check: bool, ask: bool
) -> Found:
    """Make the run's commits a branch, `spak/RUN` where it has no name; files, HEAD and index stay. Each path
    of the commits must be as the run ended with it, since that is what was checked; the door looks at each
    commit.

    Raises: RunError `apply.*`, `git.*`; UsageError `keys.*`; LedgerError.
    """
    from spak import door
    from spak.apply_run.journal import Journal
    from spak.files.disk import Disk
    from spak.repository import branch as branches
    from spak.repository.leaving import Begun
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
    looked = partial(door.look, **knowing(run.folder, run.modes))
    begun = Begun(git_files(load(store, run.before)), store.read)
    leaving = _by_law(branches.leaving(bare, made, looked, begun), run)
    found = Found(
        name, run.folder, {one.path: (str(one.of), one.reason) for one in leaving.changes},
        blocked=leaving.blocked, checked=check, branch=branch or f"spak/{name}",
    )  # fmt: skip
    found.planned = [(path, "changed" if blob else "deleted") for path, blob in made.changed.items()]
    refused = [one.path for one in leaving.refused]
    runs = [one.path for one in leaving.unsigned]
    found.held = [path for path in runs if path not in allowed] + refused
    if ask and not (check or refused):
        _confirm(found)
    if not (check or found.code):
        if runs or leaving.blocked:
            journal = Journal(root / name)
            with journal.held():
                journal.note(run.folder, {**_about(name, run, leaving, runs), "branch": found.branch})
        branches.give(bare, run.folder, found.branch, made)
    return found


def take_back(root: Path, name: str) -> Found:
    """Take back what was applied last. Raises: RunError `apply.nothing`, `apply.*`, `workspace.*`."""
    from spak.apply_run import bring
    from spak.apply_run.journal import Journal

    run = _ended(root, name)
    folder, journal = run.folder, Journal(root / name)
    with journal.held(), bring.opened(folder, modes=run.modes) as user:
        _recover(journal, user)
        standing = journal.standing()
        if not standing:
            raise RunError("apply.nothing", f"nothing of run {name} is applied", "spak apply RUN applies it")
        last = standing[-1]
        planned = bring.plan(user, bring.undo(journal, last))
        found = Found(name, folder, conflicts=list(planned.conflicts), undone=True)
        if not found.conflicts:
            found.planned = [(step.path, _how(planned, step)) for step in planned.writes]
            about = {"at": time.time_ns() // 1_000_000, "by": _login()}
            bring.bring(journal, user, planned, about, last.number)
    return found


@dataclass(frozen=True, slots=True)
class Ended:
    """The roots of a run's files at its beginning and now, and the folder that they came from."""

    before: str
    now: str
    folder: Path
    blocked: tuple[str, ...]
    """Why nothing of it may leave, as its law says it."""
    by_own_tests: bool
    """Whether its check passes only with what it changed of its tests."""
    modes: bool
    """Whether modes count in the folder's repository (core.fileMode)."""
    known: Mapping[str, Any] = field(default_factory=dict)
    """What `knowing` gave, where it was asked before."""
    folders: dict[str, Node] = field(default_factory=dict)
    """Lists of folders that were read, by digest."""


def _ended(root: Path, name: str) -> Ended:
    """Raises: RunError `apply.no_folder`; LedgerError."""
    from spak.cli import reading
    from spak.repository.begun import compares_modes

    folder, modes = came_from(root, name), compares_modes(root / name / "store/git")
    found = reading.replayed(root, name)
    assert found.rules is not None
    return of_run(root / name, found.rules, found.state, folder, modes)


def came_from(root: Path, name: str) -> Path:
    """The folder that a run was copied from. Raises: RunError `apply.no_folder`."""
    from spak.workspace import Copied

    copied = Copied.read(root / name)
    if copied is None:
        raise RunError(
            "apply.no_folder",
            f"run {name} was not copied from a folder that is known here",
            "take its files from the workspace in the run's folder, or start a run with --workspace DIR",
        )
    return Path(copied.source)


def of_run(run: Path, rules: Rules, state: State, folder: Path, modes: bool) -> Ended:
    """What leaves of a run in this state. Raises: LedgerError."""
    from spak.kernel.situation import NO_CHECK, blocked
    from spak.runner.views.run_json import by_own_tests

    reasons, before = blocked(rules, state), rules.r3
    if state.ended and state.r3 != before and _unjudged(run.parent, run.name, before, state.r3):
        reasons = (*reasons, NO_CHECK)
    return Ended(before, state.r3, folder, reasons, by_own_tests(state), modes)


def _unjudged(root: Path, name: str, first: str, last: str) -> bool:
    """Whether a run has checked its files, and others than those that it ended with."""
    from spak.ledger.files import FileLedgers
    from spak.runner.views.quality import judged_roots

    reader = FileLedgers(root).viewer(name)
    try:
        judged = judged_roots((record for record, _ in reader.read()), first)
    finally:
        reader.close()
    return bool(judged) and last not in judged


def _trees(run: Path, ended: Ended) -> tuple[Store, Node, Node]:
    """The files of a run at its beginning and now, with where their contents are.

    Raises: RunError `workspace.object`."""
    from spak.files.disk import Disk
    from spak.workspace.store import Store
    from spak.workspace.tree import load

    store = Store(run / "store", Disk())
    return store, load(store, ended.before, ended.folders), load(store, ended.now, ended.folders)


def _looked(trees: tuple[Store, Node, Node], ended: Ended, paths: Collection[str]) -> Leaving:
    """What changed of these paths in the run, as the door has it."""
    from spak import door
    from spak.apply_run.journal import AGAIN
    from spak.files.disk import typed
    from spak.repository.ignoring import new_and_ignored

    store, before, now = trees
    with typed("looking for what git ignores", AGAIN):
        ignored = new_and_ignored(before, now, store.read).__contains__
    found = door.look(
        before,
        now,
        store.read,
        keep=paths.__contains__,
        ignored=ignored,
        **(ended.known or knowing(ended.folder, ended.modes)),
    )
    return _by_law(found, ended)


def _by_law(found: Leaving, ended: Ended) -> Leaving:
    """The same, with what the law and the checks of the run say."""
    found = replace(found, blocked=ended.blocked)
    return found.by_own_tests() if ended.by_own_tests else found


def knowing(folder: Path, modes: bool) -> dict[str, Any]:
    """What the door has to know of a folder: known values, what is shown, whether modes and cases count."""
    from spak import config
    from spak.llm import redactor
    from spak.runner.secret_guard import found_in

    chosen = config.settings()
    return {
        "holds": redactor(chosen.llm).knowing(found_in(folder, chosen.shown_secrets)[1]).holds,
        "shown": chosen.shown_secrets,
        "modes": modes,
        "cased": _tells_cases(folder),
    }


def _tells_cases(folder: Path) -> bool:
    """Whether names that differ by the case of letters only are two names there: as of the first thing in the
    folder, or of the folders above, whose name has letters."""
    try:
        inside = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        inside = []  # whoever brings something there says why it cannot be read
    for place in (*(folder / name for name in inside), folder, *folder.parents):
        if (other := place.name.swapcase()) != place.name:
            try:
                return not os.path.samestat(place.lstat(), place.with_name(other).lstat())
            except FileNotFoundError:
                return True
            except OSError:
                continue
    return True


def _about(name: str, run: Ended, leaving: Leaving, runs: Sequence[str]) -> dict[str, Any]:
    """What the journal keeps for people: when, by whom, what was confirmed, with the signature where keys are
    named. Raises: UsageError `keys.*`."""
    about = {"at": time.time_ns() // 1_000_000, "by": _login(), "root": run.now, "runs": list(runs)}
    if leaving.blocked:
        about["blocked"] = list(leaving.blocked)
    return about | (_signed(name, leaving) if runs else {})


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
    from spak.door import one_line

    one = journal.under_way()
    if one is None:
        return
    if Path(one.folder) != user.path:
        raise RunError(
            "apply.folder", f"an apply to {one.folder} was cut off", "put that folder back, then try again"
        )
    done = bring.recover(journal, user, one)
    how = "finished" if done.finished else "taken back"
    edited = f"; left as edited since: {', '.join(map(one_line, done.edited))}" if done.edited else ""
    common.say(f"spak: an earlier apply was cut off and is {how}{edited}")


def _chosen(changes: list[Change], only: Sequence[str], known: Collection[str]) -> list[Change]:
    """The changes at or below these paths, which are of the run's (`known`). Raises: UsageError
    `usage.arguments`."""
    wanted = [given.removeprefix("./").rstrip("/") for given in only]
    for path in wanted:
        if not any(_at_or_below(one, path) for one in known):
            raise UsageError(
                "usage.arguments",
                f"the run changed nothing at {path}",
                "spak apply RUN --check lists what it did",
            )
    return [one for one in changes if any(_at_or_below(one.path, path) for path in wanted)]


def _at_or_below(one: str, path: str) -> bool:
    return one == path or one.startswith(f"{path}/")


def _how(planned: Planned, step: Any) -> str:
    if planned.merged(step):
        return "merged"
    return "deleted" if not step.left.kind else "changed" if step.found.kind else "new"


def _confirm(found: Found) -> None:
    """Ask whether files of a run whose checks failed are wanted, and about each path that waits; all are
    confirmed, or all wait."""
    from spak.door import one_line

    for reason in found.blocked:
        if not _yes(f"The run's own check says: {reason}. Apply all the same?"):
            return
    for path in found.held:
        if not _yes(f"{one_line(path)} may run by itself ({found.kinds[path][1]}). Apply it?"):
            return
    found.held, found.blocked = [], ()


def _yes(question: str) -> bool:
    return click.confirm(common.printable(question), err=True)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


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
            say_it(found)
    if problem is not None:
        common.say(f"spak: nothing was applied in place: {problem.message} [{problem.code}]")
        common.say(f"  hint: {problem.hint}")
    code = common.EXIT[seen.state]
    return code or (1 if found is None else found.code)
