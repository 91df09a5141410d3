"""A case: what a run is given, and what counts as right. `case.json` in the case's folder, and its hash.

    case.json        {"case": 1, "inputs": {...}, "seed": n, "tags": [...], "right": {...}, "origin": {...}}
    workspace/       the files that a run begins with; none means an empty workspace
    history          the commits that `HISTORY n` of a spec brings (spak.repository.past)
    recording.jsonl  answers of a model, given to every run of the case in order
    sealed/          files that are put over what a run left, before its sealed checks

    right  {"state": "succeeded", "codes": ["run.watchdog"], "files": {"out.txt": "<sha256>" | null},
            "validator": {"name": "PyTest", "options": {...}},
            "sealed": [{"cmd": ["python", "check.py"], "exit": 0, "output": "4 passed"}],
            "passes_before": "why the checks may pass before any run"}

The hash names all that decides: not the name, the tags or the origin. It reads folders and runs nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spak import canon
from spak.errors import SuiteError, UserError
from spak.inputs import read_at_most

FILE, WORKSPACE, RECORDING, SEALED = "case.json", "workspace", "recording.jsonl", "sealed"
HISTORY = "history"
VERSION = 1
"""Version of case.json; raise it when an older reader would misread the file."""
MAX_CASE = 4 << 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
TOOK = ("tokens", "cost_nanousd", "ms")
STATES = ("succeeded", "failed", "refused", "cancelled")

_MEMBERS = {"case", "inputs", "seed", "tags", "right", "origin", "semantics"}
_RIGHT = {"state", "codes", "files", "validator", "sealed", "passes_before"}
_CHECK = {"cmd", "exit", "output", "timeout_s"}


@dataclass(frozen=True, slots=True)
class Check:
    """A sealed check: a command that has to end with `exit` and to print `output` somewhere."""

    cmd: tuple[str, ...]
    exit: int = 0
    output: str = ""
    timeout_s: float = 60.0

    def to_json(self) -> dict[str, Any]:
        """The check as a case's file has it."""
        return {"cmd": list(self.cmd), "exit": self.exit, "output": self.output, "timeout_s": self.timeout_s}


@dataclass(frozen=True, slots=True)
class Right:
    """What a passing run looks like: its end state, and whatever else is named."""

    state: str = "succeeded"
    codes: tuple[str, ...] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)
    """SHA-256 (hex) of each file that has to be there at the end; None: it must not exist."""
    validator: Mapping[str, Any] | None = None
    sealed: tuple[Check, ...] = ()
    passes_before: str = ""
    """Why the sealed checks may pass on a workspace that no run has touched."""

    @property
    def runs_checks(self) -> bool:
        """Whether judging starts programs, and so needs a sealed.Bench."""
        return self.validator is not None or bool(self.sealed)

    def to_json(self) -> dict[str, Any]:
        """What a right end is, as a case's file has it."""
        found: dict[str, Any] = {"state": self.state}
        if self.codes:
            found["codes"] = list(self.codes)
        if self.files:
            found["files"] = dict(self.files)
        if self.validator is not None:
            found["validator"] = dict(self.validator)
        if self.sealed:
            found["sealed"] = [check.to_json() for check in self.sealed]
        if self.passes_before:
            found["passes_before"] = self.passes_before
        return found


@dataclass(frozen=True, slots=True)
class Case:
    """A case by its name; `folder` holds its files and `hash` names its content."""

    name: str
    folder: Path
    inputs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    right: Right = Right()
    tags: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    semantics: int = 0
    """A number that files of earlier spak hold beside a recording: a part of the hash and nothing more."""
    hash: str = ""

    @property
    def took(self) -> Mapping[str, int] | None:
        """Tokens, cost and time of the run that it was kept from; None where the origin, which is for people,
        does not say."""
        found = {name: self.origin.get(name) for name in TOOK}
        known = {name: value for name, value in found.items() if type(value) is int and value >= 0}
        return known if len(known) == len(TOOK) else None

    @property
    def recording(self) -> Path | None:
        """The file of recorded answers, if the case has one."""
        path = self.folder / RECORDING
        return path if path.is_file() else None

    @property
    def history(self) -> Path | None:
        """The file of frozen commits, if the case has one."""
        path = self.folder / HISTORY
        return path if path.is_file() else None

    @property
    def workspace(self) -> Path | None:
        """The folder of files that a run starts with, if the case has one."""
        path = self.folder / WORKSPACE
        return path if path.is_dir() else None

    @property
    def sealed(self) -> Path | None:
        """The folder of sealed checks, if the case has one."""
        path = self.folder / SEALED
        return path if path.is_dir() else None

    def to_json(self) -> dict[str, Any]:
        """The content of case.json."""
        found: dict[str, Any] = {
            "case": VERSION,
            "inputs": dict(self.inputs),
            "seed": self.seed,
            "tags": list(self.tags),
            "right": self.right.to_json(),
            "origin": dict(self.origin),
        }
        return {**found, "semantics": self.semantics} if self.semantics else found


def read_case(folder: Path) -> Case:
    """The case in a folder, with its hash. Raises: SuiteError `suite.case`, `suite.missing`."""
    if not NAME.fullmatch(folder.name):
        raise _wrong(folder, "its name holds other signs than letters, digits, `.`, `_` and `-`")
    path = folder / FILE
    try:
        data = read_at_most(path, MAX_CASE)
    except OSError as error:
        raise SuiteError(
            "suite.missing", f"{path} cannot be read: {error.strerror}", "put it back, or remove the case"
        ) from error
    try:
        value = canon.loads(data) if data is not None else None
    except UserError as error:
        raise _wrong(folder, error.message) from error
    if not isinstance(value, dict) or value.get("case") != VERSION:
        raise _wrong(folder, f'it is not JSON object with "case": {VERSION}')
    made = _case(folder, value)
    return Case(
        made.name, folder, made.inputs, made.seed, made.right, made.tags, made.origin, made.semantics,
        case_hash(made),
    )  # fmt: skip


def case_hash(case: Case) -> str:
    """The name of everything that decides in a case. Raises: SuiteError `suite.missing`."""
    parts: list[Any] = [] if case.history is None else [_file_hash(case.history)]
    return canon.content_hash(
        [
            VERSION,
            dict(case.inputs),
            case.seed,
            case.right.to_json(),
            case.semantics,
            tree_hash(case.workspace),
            tree_hash(case.sealed),
            "" if case.recording is None else _file_hash(case.recording),
            *parts,
        ]
    )


def tree_hash(folder: Path | None) -> str:
    """A hash of the files in a folder: paths, contents, execute bits and link targets. Empty folders count
    for nothing, since version control drops them. Raises: SuiteError `suite.missing`."""
    if folder is None:
        return canon.content_hash([])
    listed = []
    for path, found in walk(folder):
        name = path.relative_to(folder).as_posix()
        if stat.S_ISLNK(found.st_mode):
            listed.append([name, "l", str(path.readlink())])
        elif stat.S_ISREG(found.st_mode):
            listed.append([name, "x" if found.st_mode & 0o100 else "f", _file_hash(path)])
    return canon.content_hash(sorted(listed))


def walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything below a folder but folders, links not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in sorted([*names, *linked]):
            path = Path(place) / name
            yield path, path.lstat()


def _file_hash(path: Path) -> str:
    hashing = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                hashing.update(chunk)
    except OSError as error:
        raise SuiteError(
            "suite.missing", f"{path} cannot be read: {error.strerror}", "check its rights"
        ) from error
    return hashing.hexdigest()


def _case(folder: Path, value: Mapping[str, Any]) -> Case:
    _known(folder, "case.json", value, _MEMBERS)
    seed, inputs, tags = value.get("seed", 0), value.get("inputs", {}), value.get("tags", [])
    origin, semantics = value.get("origin", {}), value.get("semantics", 0)
    if type(seed) is not int or not 0 <= seed < 2**53:
        raise _wrong(folder, "seed is not a number from 0 to 2^53 - 1")
    if type(semantics) is not int or semantics < 0:
        raise _wrong(folder, "semantics is not a number")
    if not isinstance(inputs, dict) or not isinstance(origin, dict):
        raise _wrong(folder, "inputs or origin is not an object")
    if not isinstance(tags, list) or not all(isinstance(item, str) for item in tags):
        raise _wrong(folder, "tags is not a list of texts")
    right = _right(folder, value.get("right", {}))
    if (folder / SEALED).is_dir() and not right.sealed:
        raise _wrong(folder, "it has a folder sealed and no command in right.sealed")
    return Case(folder.name, folder, inputs, seed, right, tuple(tags), origin, semantics)


def _right(folder: Path, value: Any) -> Right:
    if not isinstance(value, dict):
        raise _wrong(folder, "right is not an object")
    _known(folder, "right", value, _RIGHT)
    state, codes, files = value.get("state", "succeeded"), value.get("codes", []), value.get("files", {})
    if state not in STATES:
        raise _wrong(folder, f"right.state is none of {', '.join(STATES)}")
    if not isinstance(codes, list) or not all(isinstance(item, str) for item in codes):
        raise _wrong(folder, "right.codes is not a list of texts")
    if not isinstance(files, dict) or not all(
        item is None or isinstance(item, str) for item in files.values()
    ):
        raise _wrong(folder, "right.files is not an object of hashes")
    validator = value.get("validator")
    if validator is not None and (
        not isinstance(validator, dict) or not isinstance(validator.get("name"), str)
    ):
        raise _wrong(folder, 'right.validator is no {"name", "options"}')
    sealed = value.get("sealed", [])
    if not isinstance(sealed, list):
        raise _wrong(folder, "right.sealed is not a list")
    why = value.get("passes_before", "")
    if not isinstance(why, str):
        raise _wrong(folder, "right.passes_before is not text")
    return Right(state, tuple(codes), files, validator, tuple(_check(folder, item) for item in sealed), why)


def _check(folder: Path, value: Any) -> Check:
    if not isinstance(value, dict):
        raise _wrong(folder, "a sealed check is not an object")
    _known(folder, "right.sealed", value, _CHECK)
    cmd, code = value.get("cmd"), value.get("exit", 0)
    output, limit = value.get("output", ""), value.get("timeout_s", 60.0)
    if not isinstance(cmd, list) or not cmd or not all(isinstance(item, str) and item for item in cmd):
        raise _wrong(folder, "a sealed check has no cmd, a list of texts")
    if type(code) is not int or not isinstance(output, str):
        raise _wrong(folder, "a sealed check's exit is not a number or its output is not text")
    if type(limit) not in (int, float) or not 0 < limit <= 86_400:
        raise _wrong(folder, "a sealed check's timeout_s is not a number of seconds up to a day")
    return Check(tuple(cmd), code, output, float(limit))


def _known(folder: Path, where: str, value: Mapping[str, Any], known: set[str]) -> None:
    more = sorted(value.keys() - known)
    if more:
        raise _wrong(folder, f"{where} has an unknown member {more[0]!r}")


def _wrong(folder: Path, why: str) -> SuiteError:
    return SuiteError("suite.case", f"case {folder.name}: {why}", "docs/evaluate.md has the format of a case")
