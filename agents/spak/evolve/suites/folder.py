"""A suite as a folder of cases: reading it, adding to it, and what is wrong with it.

    <suite>/<case>/case.json ...    spak.evolve.suites.model
    <suite>/ledger/                 spak.evolve.suites.book

A new case is written aside and renamed, so it is there whole or not at all; two writers of one suite do not
mix. A case that is given sealed checks is written aside too and takes the place of the old one; where its
writer is killed in between, the next one puts the old case back. `problems` says everything that is wrong;
`sound` refuses a suite that has any of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from spak.canon import content_hash
from spak.errors import SuiteError, UserError
from spak.evolve.suites import sealed
from spak.evolve.suites.book import RUN, Book, Split
from spak.evolve.suites.model import FILE, NAME, Case, Check, case_hash, read_case
from spak.files.scratch import Scratch
from spak.llm.recorded import contents, read

_BEGINS_WITH = "the workspace that the case begins with"
OLD = ".old-"
"""What the name of a case's folder begins with, before its owner's, while another one takes its place."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a suite; `case` is empty where it is about the whole."""

    case: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite's folder. Made by `Suite.open`."""

    folder: Path
    cases: tuple[Case, ...]
    book: Book
    broken: tuple[Problem, ...] = ()
    """Cases that cannot be read."""

    @classmethod
    def open(cls, folder: Path, new: bool = False) -> Suite:
        """Read a suite; `new` allows a folder that does not exist yet.

        Raises: SuiteError `suite.none`, `suite.ledger`; LedgerError.
        """
        if not folder.is_dir() and not new:
            raise SuiteError(
                "suite.none", f"{folder} is not a suite", "spak suite keep RUN --suite DIR makes one"
            )
        cases, broken = [], []
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        for path in found:
            if not path.is_dir() or path.name == RUN or path.name.startswith("."):
                continue
            try:
                cases.append(read_case(path))
            except SuiteError as error:
                why = error.message.removeprefix(f"case {path.name}: ")
                broken.append(Problem(path.name, error.code, why))
        return cls(folder, tuple(cases), Book.read(folder), tuple(broken))

    @property
    def hash(self) -> str:
        """The name of all cases and their splits."""
        return content_hash([[case.name, case.hash, self.split(case)] for case in self.cases])

    def split(self, case: Case) -> Split | str:
        """The split of a case; empty where the ledger does not know it."""
        entry = self.book.entries.get(case.name)
        return "" if entry is None else entry.split

    def of(self, splits: Sequence[str]) -> tuple[Case, ...]:
        """The cases of some splits."""
        return tuple(case for case in self.cases if self.split(case) in splits)

    def problems(self) -> list[Problem]:
        """What is wrong with the files and the ledger; checks are not run."""
        found = list(self.broken)
        names: dict[str, str] = {}
        for case in self.cases:
            if case.hash in names:
                found.append(
                    Problem(case.name, "suite.duplicate", f"it is the same case as {names[case.hash]}")
                )
            names.setdefault(case.hash, case.name)
            entry = self.book.entries.get(case.name)
            if entry is None:
                found.append(Problem(case.name, "suite.unlisted", "it is not in the suite's ledger"))
            elif entry.hash != case.hash:
                found.append(
                    Problem(case.name, "suite.changed", "its files are not those that the ledger names")
                )
            if case.recording is not None and (trouble := _unreadable(case.recording)):
                found.append(Problem(case.name, "suite.recording", f"its recording: {trouble}"))
        for name in sorted(self.book.entries.keys() - {case.name for case in self.cases}):
            if not any(item.case == name for item in self.broken):
                found.append(Problem(name, "suite.missing", "the ledger names it and its folder is gone"))
        if not self.cases and not self.broken:
            found.append(Problem("", "suite.empty", "it has no case"))
        return found

    def sound(self) -> Suite:
        """This suite. Raises: SuiteError with the code of its first problem."""
        found = self.problems()
        if found:
            first = found[0]
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            place = f"case {first.case}" if first.case else str(self.folder)
            raise SuiteError(
                first.code, f"{place}: {first.message}{more}", "spak suite check DIR names them all"
            )
        return self

    def untouched(self, bench: sealed.Bench) -> list[Problem]:
        """Cases whose sealed checks pass before any run: on an empty workspace, or on the one they begin
        with; and those whose checks cannot be carried out."""
        return [problem for case in self.cases if (problem := passes_before(case, bench)) is not None]

    def add(self, case: Case, fill: Callable[[Path], None], bench: sealed.Bench | None) -> Suite:
        """The suite with one more case, whose files `fill` writes into a folder.

        Raises: SuiteError `suite.exists`, `suite.duplicate`, `suite.passes_before`, `suite.case`.
        """
        if not NAME.fullmatch(case.name) or case.name == RUN:
            raise SuiteError("suite.case", f"{case.name!r} is not a name of a case", "letters, digits, . _ -")
        if os.path.lexists(self.folder / case.name):
            raise SuiteError("suite.exists", f"the suite has a case {case.name}", "name it with --name")
        with _aside(self.folder) as aside:
            place = aside / case.name
            place.mkdir()
            fill(place)
            made = replace(case, folder=place)
            (place / FILE).write_bytes(orjson.dumps(made.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
            made = read_case(place)
            self._require_new(made, bench)
            try:
                place.rename(self.folder / case.name)
            except OSError as error:
                raise SuiteError(
                    "suite.exists", f"the suite has a case {case.name}", "name it with --name"
                ) from error
        self.book.enter([(made.name, made.hash)])
        return Suite.open(self.folder)

    def seal(
        self,
        name: str,
        checks: Sequence[Check],
        reason: str,
        fill: Callable[[Path], None],
        bench: sealed.Bench,
    ) -> Suite:
        """The suite with sealed checks for a case that has none; `fill` writes their files into its folder.
        The case keeps its split. `reason` is why the checks may pass before a run, if there is one.

        Raises: SuiteError `suite.missing`, `suite.sealed`, `suite.changed`, and as `add`.
        """
        case = next((known for known in self.cases if known.name == name), None)
        if case is None:
            raise SuiteError(
                "suite.missing", f"the suite has no case {name}", "spak suite check DIR lists them"
            )
        if case.right.sealed:
            raise SuiteError(
                "suite.sealed", f"case {name} has sealed checks", "add a case of another name with others"
            )
        entry = self.book.entries.get(name)
        if entry is None or entry.hash != case.hash:
            raise SuiteError(
                "suite.changed", f"case {name} is not what the ledger names", "spak suite check DIR --enter"
            )
        right = replace(case.right, sealed=tuple(checks), passes_before=reason)
        with _aside(self.folder) as aside:
            place = aside / name
            place.mkdir()
            sealed.copy_plain(case.folder, place)
            fill(place)
            made = replace(case, folder=place, right=right)
            (place / FILE).write_bytes(orjson.dumps(made.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
            made = read_case(place)
            self._require_new(made, bench)
            old = self.folder / f"{OLD}{os.getpid()}-{name}"
            try:
                case.folder.rename(old)
                place.rename(case.folder)
            except OSError as error:
                raise SuiteError(
                    "suite.changed", f"case {name} was changed meanwhile: {error.strerror}", "do it again"
                ) from error
            self.book.enter([(name, made.hash)])
            shutil.rmtree(old, ignore_errors=True)
        return Suite.open(self.folder)

    def _require_new(self, made: Case, bench: sealed.Bench | None) -> None:
        """Raises: SuiteError `suite.duplicate`, `suite.passes_before`, `suite.check`."""
        twin = next((known.name for known in self.cases if known.hash == made.hash), "")
        if twin:
            raise SuiteError("suite.duplicate", f"the suite has that case already: {twin}", "nothing to do")
        problem = None if bench is None else passes_before(made, bench)
        if problem is not None:
            raise SuiteError(
                problem.code, f"case {made.name}: {problem.message}", "fix the check, or give its reason"
            )

    def enter(self) -> Suite:
        """The suite with every readable case in its ledger: cases written by hand, or changed on purpose."""
        self.book.enter([(case.name, case_hash(case)) for case in self.cases])
        return Suite.open(self.folder)


def _unreadable(recording: Path) -> str:
    """Why a recording cannot answer anything; empty where it can."""
    try:
        return "" if read(contents(recording).splitlines()) else "it holds no answer"
    except UserError as error:
        return error.message


def passes_before(case: Case, bench: sealed.Bench) -> Problem | None:
    """What is wrong with a case's checks before any run: a case has to fail before it can pass. A validator
    is tried where there are no sealed checks; one that cannot measure here is left to who runs the case."""
    validator = case.right.validator
    if validator is not None and validator["name"] not in (bench.validators or {}):
        return Problem(case.name, "suite.check", f"there is no validator {validator['name']}")
    if validator is not None and not case.right.sealed and not case.right.passes_before:
        with Scratch("sealed") as empty:
            for place in (empty, case.workspace):
                if place is not None and sealed.passed(sealed.validate(case, place, bench)):
                    words = "an empty workspace" if place != case.workspace else _BEGINS_WITH
                    return Problem(case.name, "suite.passes_before", f"its validator passes on {words}")
    if not case.right.sealed:
        return None
    places = [(None, "an empty workspace"), (case.workspace, _BEGINS_WITH)]
    for place, words in places[: 1 if case.workspace is None else 2]:
        results = sealed.check(case, place, bench)
        void = next((item for item in results if item.void), None)
        if void is not None:
            return Problem(case.name, "suite.check", f"{void.name} cannot be run: {void.why}")
        if sealed.passed(results) and not case.right.passes_before:
            return Problem(case.name, "suite.passes_before", f"its sealed checks pass on {words}")
    return None


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder inside the suite that is removed afterwards; no reader takes it for a case.

    It is named after this process, so that the next writer removes what a killed one left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _put_back(folder)
    for left in folder.glob(".new-*-*"):
        owner = left.name.split("-")[1]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f".new-{os.getpid()}-", dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put_back(folder: Path) -> None:
    """Undo what a killed process began in `Suite.seal`, unless the ledger has it already."""
    for left in folder.glob(f"{OLD}*-*"):
        owner, _, name = left.name.removeprefix(OLD).partition("-")
        if not owner.isdigit() or _alive(int(owner)):
            continue
        case = folder / name
        entry = Book.read(folder).entries.get(name)
        if case.is_dir() and entry is not None and _hash(case) == entry.hash:
            shutil.rmtree(left, ignore_errors=True)
            continue
        shutil.rmtree(case, ignore_errors=True)
        left.rename(case)


def _hash(folder: Path) -> str:
    try:
        return read_case(folder).hash
    except SuiteError:
        return ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
