"""A run's changes into the folder that it was copied from, all or nothing; and back.

`plan` says what each path becomes, and changes nothing. `bring` does it, `undo` takes the last one back by
the same rules, `recover` finishes or takes back what a killed process left. A conflict writes nothing. What
a path may do outside of the run is asked before (spak.door), and not here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spak.apply_run.journal import AGAIN, Bringing, Journal, Step, hold
from spak.apply_run.three_way import Conflict, Side, joined
from spak.apply_run.user_folder import NOTHING, OTHER, Thing, UserFolder
from spak.door import one_line
from spak.errors import RunError
from spak.files.disk import typed
from spak.workspace.store import Store
from spak.workspace.tree import Node, at, differences


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs in the run: what the folder was given of it last, and what the run has."""

    path: str
    base: Side
    wanted: Side
    back: bool = False
    """Whether it is again as the run began with it, which is no change that the door sees."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What bringing changes would do."""

    steps: tuple[Step, ...]
    conflicts: tuple[tuple[str, str], ...]
    """Paths, and why they cannot be brought."""
    contents: tuple[Side, ...]

    @property
    def writes(self) -> tuple[Step, ...]:
        """The paths that are not so already."""
        return tuple(step for step in self.steps if step.found != step.left)

    def merged(self, step: Step) -> bool:
        """Whether both sides changed it, and it was merged."""
        return step.left not in (step.found, step.wanted)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a bringing that was cut off."""

    finished: bool
    edited: tuple[str, ...]
    """Paths that somebody changed meanwhile and that were left unchanged."""


def changes(
    store: Store, before: Node, now: Node, taken: Mapping[str, Thing], *, modes: bool = True
) -> list[Change]:
    """What differs between two trees of a run, over what was `taken` of it before; without `modes` no file
    counts as executable.

    Raises: RunError `workspace.object`.
    """
    found = []
    for path in sorted({*differences(before, now), *taken}):
        begun, wanted = _thing(at(before, path), modes), _thing(at(now, path), modes)
        base = taken.get(path, begun)
        if base != wanted:
            found.append(Change(path, _side(store, base), _side(store, wanted), wanted == begun))
    return found


def taken(journal: Journal) -> dict[str, Thing]:
    """By path what the run had when it was brought last."""
    return {step.path: step.wanted for one in journal.standing() for step in one.steps}


def plan(folder: UserFolder, wanted: Iterable[Change]) -> Planned:
    """What becomes of each path. Raises: RunError `workspace.*` where the folder cannot be read."""
    steps, conflicts, contents = [], [], []
    wanted = list(wanted)
    goes = {one.path for one in wanted if not one.wanted[0].kind}
    for one in wanted:
        with typed(f"reading {one.path!a}", AGAIN):
            found = _seen(folder, one.path, goes)
        try:
            left = joined(one.base, one.wanted, found)
        except Conflict as error:
            conflicts.append((one.path, error.why))
            continue
        steps.append(Step(one.path, one.base[0], one.wanted[0], found[0], left[0]))
        contents += [found, left]
    return Planned(tuple(steps), tuple(conflicts), tuple(contents))


def bring(
    journal: Journal, folder: UserFolder, planned: Planned, about: Mapping[str, Any], undoes: int = 0
) -> Bringing | None:
    """Do what was planned, durably; None where nothing is to be done. The journal is held.

    Raises: RunError `apply.conflict`, `workspace.*`; nothing is changed then.
    """
    if planned.conflicts:
        raise conflict(planned.conflicts)
    if not planned.steps:
        return None
    one = journal.numbered(Bringing(0, str(folder.path), planned.steps, about, undoes))
    with typed("writing the journal of what is applied", AGAIN):
        journal.begin(one, planned.contents)
    try:
        with typed("applying the changes", AGAIN):
            _put(journal, folder, [(step, step.found, step.left) for step in planned.writes])
    except BaseException:
        with typed("taking the changes back", AGAIN):  # what fails here is left to `recover`
            for step in planned.writes:
                folder.tidy(step.path)
            _put(journal, folder, [(step, step.left, step.found) for step in planned.writes], back=True)
            journal.end(one, kept=False)
        raise
    with typed("writing the journal of what is applied", AGAIN):
        journal.end(one)
    return one


def undo(journal: Journal, one: Bringing) -> list[Change]:
    """The changes that take a bringing back."""
    return [
        Change(step.path, journal.content(step.left), journal.content(step.found))
        for step in one.steps
        if step.found != step.left
    ]


def recover(journal: Journal, folder: UserFolder, one: Bringing) -> Recovered:
    """Finish a bringing that was cut off, or take it back where somebody edited one of its files since. The
    journal is held. Raises: RunError `workspace.*`, and it is still under way."""
    with typed("finishing what was applied before", AGAIN):
        goes = _going(one.steps)
        now = {step.path: _seen(folder, step.path, goes)[0] for step in one.steps}
        for step in one.steps:
            folder.tidy(step.path)
        edited = [step.path for step in one.steps if now[step.path] not in (step.found, step.left)]
        ways = [
            (step, step.left, step.found) if edited else (step, step.found, step.left) for step in one.steps
        ]
        _put(journal, folder, ways, back=True)
        journal.end(one, kept=not edited)
    return Recovered(not edited, tuple(edited))


@contextmanager
def opened(path: Path, *, modes: bool = True) -> Iterator[UserFolder]:
    """The folder, locked for this process; without `modes` those of its files stay.

    Raises: RunError `apply.folder`, `apply.busy`."""
    try:
        folder = UserFolder(path, modes=modes)
        folder.__enter__()
    except OSError as error:
        raise RunError(
            "apply.folder",
            f"{path}: {error.strerror}",
            "the folder that the run was copied from must be there; put it back, or export the files",
        ) from error
    try:
        hold(folder.fd, str(path))
        yield folder
    finally:
        folder.__exit__()


def conflict(found: Iterable[tuple[str, str]]) -> RunError:
    """The error of changes that cannot be brought."""
    rows = list(found)
    paths = "".join(f"\n  {one_line(path)}: {why}" for path, why in rows[:20])
    more = f"\n  and {len(rows) - 20} more" if len(rows) > 20 else ""
    return RunError(
        "apply.conflict",
        f"the folder moved on, nothing was written:{paths}{more}",
        "take the rest with --only PATH, or all of it onto a branch with --branch NAME and merge there",
    )


def _put(
    journal: Journal, folder: UserFolder, moves: Sequence[tuple[Step, Thing, Thing]], *, back: bool = False
) -> None:
    """Replace the first of two things by the second where it is there. Somebody may have edited a path since
    it was looked at (a person was asked, this process was stopped): that is a conflict; where all goes `back`
    the path is left."""
    goes = _going(step for step, _, _ in moves)
    # what is taken away goes first: a folder may replace a file
    for step, old, new in sorted(moves, key=lambda move: bool(move[2].kind)):
        if _seen(folder, step.path, goes)[0] == old:
            folder.put(step.path, *journal.content(new))
        elif not back:
            raise conflict([(step.path, "it was edited while the changes were applied")])
    folder.sync()


def _going(steps: Iterable[Step]) -> frozenset[str]:
    """The paths with nothing before or after."""
    return frozenset(step.path for step in steps if not (step.found.kind and step.left.kind))


def _seen(folder: UserFolder, path: str, goes: Collection[str]) -> Side:
    """What is at a path; nothing where what is in its way is removed too: a file where a
    folder will be, or the other way."""
    found = folder.read(path)
    if found[0] != OTHER:
        return found
    above = (path[:at] for at, sign in enumerate(path) if sign == "/")
    way = any(one in goes for one in above) or any(one.startswith(f"{path}/") for one in goes)
    return (NOTHING, b"") if way else found


def _thing(node: Node | None, modes: bool) -> Thing:
    if node is None or node.kind == "d":
        return NOTHING
    executable = modes and node.kind == "f" and bool(node.mode & 0o100)
    return Thing("f" if node.kind == "f" else "l" if node.kind == "l" else "other", node.digest, executable)


def _side(store: Store, thing: Thing) -> Side:
    return thing, store.read(thing.digest) if thing.kind in ("f", "l") else b""
