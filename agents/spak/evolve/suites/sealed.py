"""Sealed checks: what a run left is copied, the case's sealed files are put over it, and commands judge it.

Takes the folder that a run left and a launcher; gives one Result a command. A run of a case is judged after
it ended (`judge`), another run as its last step (`at_the_end`). The copy is made after all that an agent
does and lies elsewhere, so none can read the checks or change them. Sealed files replace what is in their
place, links on the way included; no link of the run leads to one. Files that steer a test runner
(conftest.py, pytest.ini, ...) count only where the case brought them: what a run added or changed of them is
taken out of the copy. So are compiled modules, and what a run added where a check's own modules are looked
for and that Python would import in place of its library, an installed package that the check runs with or a
sealed module, or that says which plug-ins are installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spak.cancel import Cancel, Token
from spak.evolve.suites import apart
from spak.evolve.suites.installed import installed
from spak.evolve.suites.model import Case, Check, walk
from spak.files import beneath
from spak.files.scratch import HIDDEN, Scratch
from spak.ports import Job, Launcher, Limits, MeasureCall, Outcome, Toolchain, Validator
from spak.runner.faults import must_have_room, must_have_started

STEERING = frozenset(
    {
        *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg"),
        *("pyproject.toml", "sitecustomize.py", "usercustomize.py", "noxfile.py", ".coveragerc"),
        *("ruff.toml", ".ruff.toml", ".npmrc", ".rspec", ".cargo"),
    }
)
"""Files, and folders of such, that change how tests are run, wherever they lie."""
MODULES = sys.stdlib_module_names | {
    *("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "py", "pygments", "tomli", "exceptiongroup"),
    *("sitecustomize", "usercustomize"),
}
"""What a check means by these names is never a file that a run added next to it. Nor is it by the names of
installed packages that it runs with (spak.evolve.suites.installed)."""
IMPORTED = frozenset({".py", ".pyc", ".so", ".pyd"})
"""Endings of files that Python imports."""
INSTALLED = (".dist-info", ".egg-info", ".egg")
"""Endings of what tells Python that a package is installed, and pytest which plug-ins to load."""
HOME = "/dev/shm"
"""Of a check: a folder that is empty when it begins, so that no settings of the run are found there."""
SHOWN = 2_000
"""Bytes of a failed check's output that a report shows."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one check ended. `void` says that it could not be carried out: no launcher, no device."""

    name: str
    ok: bool
    why: str = ""
    void: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """What checks run with: the launcher, its limits, and the programs they may start."""

    launcher: Launcher
    limits: Limits = field(default_factory=Limits)
    toolchain: Toolchain = field(default_factory=Toolchain)
    validators: Mapping[str, Validator] | None = None
    cancel: Cancel | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """The checks, the files that only they see, and those that the run began with, each as a folder."""

    checks: tuple[Check, ...]
    files: Path | None
    given: Path | None


def nothing(path: str) -> bool:
    """No path."""
    return False


def check(case: Case, left: Path | None, bench: Bench) -> list[Result]:
    """The case's sealed checks on the folder that a run left; None is an empty workspace."""
    return held(Sealed(case.right.sealed, case.sealed, case.workspace), left, bench)


def held(
    sealed: Sealed, left: Path | None, bench: Bench, leaves_out: Callable[[str], bool] = nothing
) -> list[Result]:
    """Whether the checks hold for the folder that a run left, but for the paths that are left out."""
    if not sealed.checks:
        return []
    gone: list[str] = []
    with Scratch("sealed") as folder:
        place = folder / "ws"
        place.mkdir()
        if left is not None:
            copy_plain(left, place, leaves_out)
            _without_steering(place, sealed, bench)
        work = folder / "work"
        work.mkdir()
        copy_plain(place, work)
        if sealed.files is not None:
            put_over(sealed.files, place)
            gone = _without_links(place, sealed.files, sealed.given)
        results = [_run(item, place, work, bench) for item in sealed.checks]
    if not gone:
        return results
    note = f"taken out, since these links lead to what is not the work: {', '.join(gone)[:SHOWN]}"
    return [item if item.ok else replace(item, why=f"{note}; {item.why}") for item in results]


def validate(case: Case, left: Path, bench: Bench) -> list[Result]:
    """The case's validator on a copy of what a run left."""
    wanted = case.right.validator
    if wanted is None:
        return []
    validator = (bench.validators or {}).get(wanted["name"])
    if validator is None:
        return [Result(wanted["name"], False, "no such validator", void=True)]
    with Scratch("sealed") as folder:
        place = folder / "ws"
        place.mkdir()
        copy_plain(left, place)
        found = validator.measure(
            MeasureCall(
                id=case.hash,
                validator=wanted["name"],
                options=wanted.get("options", {}),
                workspace=place,
                launcher=bench.launcher,
                limits=bench.limits,
                toolchain=bench.toolchain,
                seed=case.seed,
                problems=_problem(case, wanted.get("options", {})),
            )
        )
    if found.status in ("void", "unavailable"):
        return [Result(wanted["name"], False, found.status, void=True)]
    bad = [str(item.get("name")) for item in found.checks if item.get("ok") is not True]
    ok = found.status in ("measured", "checked") and bool(found.checks) and not bad
    return [Result(wanted["name"], ok, "" if ok else ", ".join(bad) or found.status)]


def _problem(case: Case, options: Mapping[str, Any]) -> dict[str, str]:
    """The text of the problem's file that the options name, from the case's sealed folder: by name."""
    name = options.get("problem")
    if case.sealed is None or not isinstance(name, str) or not name.endswith(".py"):
        return {}
    data = beneath.content(case.sealed, name)
    return {} if data is None else {name: data.decode("utf-8", "replace")}


def files(case: Case, left: Path) -> list[Result]:
    """The files that the case expects, by their content."""
    made = []
    for name, wanted in sorted(case.right.files.items()):
        path = left / name
        regular = path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(left.resolve())
        found = hashlib.sha256(path.read_bytes()).hexdigest() if regular else None
        exists = os.path.lexists(path)
        ok = (found == wanted) if wanted is not None else not exists
        made.append(Result(f"file {name}", ok, "" if ok else "differs" if exists else "does not exist"))
    return made


def copy_plain(source: Path, target: Path, leaves_out: Callable[[str], bool] = nothing) -> None:
    """Copy files, folders and links (as links); sockets, pipes and devices are left out, and what is told."""
    for place, folders, _ in os.walk(source):
        folders[:] = [
            name for name in folders if not leaves_out((Path(place) / name).relative_to(source).as_posix())
        ]
        for name in folders:
            path = Path(place) / name
            if not path.is_symlink():
                (target / path.relative_to(source)).mkdir(exist_ok=True)
    for path, found in walk(source):
        goal = target / path.relative_to(source)
        if not goal.parent.is_dir() or leaves_out(path.relative_to(source).as_posix()):
            continue
        if stat.S_ISLNK(found.st_mode):
            goal.symlink_to(path.readlink())
        elif stat.S_ISREG(found.st_mode):
            shutil.copyfile(path, goal)
            goal.chmod(0o755 if found.st_mode & 0o100 else 0o644)


def put_over(source: Path, target: Path) -> None:
    """Copy a folder's files over another's; nothing is ever written through a link of the other."""
    for path, found in walk(source):
        if not stat.S_ISREG(found.st_mode):
            continue
        parts = path.relative_to(source).parts
        place = target
        for part in parts[:-1]:
            place = place / part
            if place.is_symlink() or not place.is_dir():
                place.unlink(missing_ok=True)
                place.mkdir()
        goal = place / parts[-1]
        if goal.is_dir() and not goal.is_symlink():
            shutil.rmtree(goal)
        else:
            goal.unlink(missing_ok=True)
        shutil.copyfile(path, goal)
        goal.chmod(0o755 if found.st_mode & 0o100 else 0o644)


def _without_steering(place: Path, wanted: Sealed, bench: Bench) -> None:
    """The copy with files that steer checks as the run began with them: others are taken out."""
    given, sealed = wanted.given, wanted.files
    names = [] if sealed is None else [path.relative_to(sealed) for path, _ in walk(sealed)]
    places = {Path(), *(folder for name in names for folder in name.parents)}
    modules = {_module(name) for name in names if name.suffix == ".py"}
    left = [(path, path.relative_to(place)) for path, _ in walk(place)]
    added = {name for _, name in left if given is None or not os.path.lexists(given / name)}
    imported = {_module(name) for path, name in left if name in added and _is_imported(path, name)}
    unknown = {module.name for module in imported - modules if module.parent in places} - MODULES
    used = MODULES | installed(unknown, wanted.checks, sealed, bench.launcher, bench.limits, bench.toolchain)
    for path, name in left:
        if (
            not STEERING.isdisjoint(name.parts)
            or "__pycache__" in name.parts
            or (name in added and _is_in_the_way(path, name, places, modules, used))
        ):
            path.unlink()
    if given is None:
        return
    for path, found in walk(given):
        goal = place / path.relative_to(given)
        plain = goal.parent.is_dir() and goal.parent.resolve() == place.resolve() / goal.parent.relative_to(
            place
        )
        steers = not STEERING.isdisjoint(path.relative_to(given).parts)
        if steers and stat.S_ISREG(found.st_mode) and plain:
            shutil.copyfile(path, goal)


def _without_links(place: Path, sealed: Path, given: Path | None) -> list[str]:
    """Take out the links of a run that lead to a sealed file, to a folder that holds one, or out of the
    workspace to where the sandbox differs from here; gives their names. Links of the case stay."""
    names = [path.relative_to(sealed) for path, _ in walk(sealed)]
    reserved = {place / part for name in names for part in (name, *name.parents)}
    found = []
    for path, info in walk(place):
        name = path.relative_to(place)
        if not stat.S_ISLNK(info.st_mode) or (given is not None and _is_same_link(path, given / name)):
            continue
        goal = Path(os.path.realpath(path))
        if goal in reserved or not (goal.is_relative_to(place) or _is_of_the_system(goal)):
            found.append(name)
    for name in found:
        (place / name).unlink()
    return list(map(str, found))


def _is_same_link(path: Path, other: Path) -> bool:
    return other.is_symlink() and other.readlink() == path.readlink()


def _is_of_the_system(goal: Path) -> bool:
    """Whether a path means the same inside of a sandbox as here."""
    return goal.exists() and not any(goal.is_relative_to(own) for own in HIDDEN)


def _is_imported(path: Path, name: Path) -> bool:
    """Whether Python may import a file, or the folder that it is a link to."""
    return name.suffix in IMPORTED or (not name.suffix and path.is_symlink())


def _is_in_the_way(path: Path, name: Path, places: Set[Path], modules: Set[Path], used: Set[str]) -> bool:
    """Whether Python would import a file, or the folder or link that it is, for one of the check's `modules`
    or of those `used`, or pytest would, since it is of a folder of tests; or take it for an installed
    package."""
    if any(part.parent in places and part.name.endswith(INSTALLED) for part in (name, *name.parents)):
        return True
    if not _is_imported(path, name):
        return False
    module = _module(name)
    if module == name.parent and (not name.parts[:-1] or (module in places and _is_of_tests(module))):
        return True
    return module in modules or (module.parent in places and module.name in used)


def _module(name: Path) -> Path:
    """The module that a file is, by its path: its folder for `__init__`."""
    first = name.name.partition(".")[0]
    return name.parent if first == "__init__" else name.parent / first


def _is_of_tests(folder: Path) -> bool:
    return not {"test", "tests"}.isdisjoint(folder.parts)


def _run(item: Check, place: Path, work: Path, bench: Bench) -> Result:
    """One check; `work` is what it may run apart from the sealed files (spak.evolve.suites.apart)."""
    name = " ".join(item.cmd)
    env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}

    def job(words: Sequence[str], folder: Path) -> Job:
        argv = (bench.toolchain.programs.get(words[0], words[0]), *words[1:]) if words else ()
        limits = replace(bench.limits, wall_s=item.timeout_s)
        binds = bench.toolchain.binds
        return Job(argv=argv, workspace=folder, limits=limits, binds=binds, env=env, cancel=bench.cancel)

    def start(words: tuple[str, ...], given: bytes, over: Token) -> Outcome:
        with Scratch("work") as empty:
            copy_plain(work, empty)
            return bench.launcher.run(replace(job(words, empty), stdin=given, cancel=over))

    python = bench.toolchain.programs.get("python", "/usr/bin/python3")
    with Scratch("work") as folder, apart.offered(folder, python, start) as program:
        shown = replace(job(item.cmd, place), env={**env, "HOME": HOME, "SPAK_WORK": str(program)})
        outcome = bench.launcher.run(replace(shown, binds=(*shown.binds, folder)))
    if outcome.status == "launcher":
        must_have_started(outcome.detail)
        return Result(name, False, outcome.detail or "the sandbox did not start", void=True)
    text = outcome.stdout.data.decode("utf-8", "replace")
    if outcome.status != "exited" or outcome.exit != item.exit:
        ended = f"exit {outcome.exit}" if outcome.status == "exited" else outcome.status
        must_have_room(place)
        tail = (text + outcome.stderr.data.decode("utf-8", "replace"))[-SHOWN:]
        return Result(name, False, f"{ended}, expected exit {item.exit}: {tail.strip()}".rstrip(": "))
    if item.output not in text:
        return Result(name, False, f"exit {item.exit} without {item.output!r} in its output")
    return Result(name, True)


def passed(results: Sequence[Result]) -> bool:
    """Whether there are checks and all of them hold."""
    return bool(results) and all(item.ok for item in results)


def to_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The results as reports have them."""
    return [{"name": item.name, "ok": item.ok, "why": item.why, "void": item.void} for item in results]
