"""The files of a new case: those that a past run began with, or those that flags name.

`case_of` reads a run of this machine; `filler` a folder, an archive or a commit. Both give what writes a
case's folder, so that nothing is there until the whole case is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spak import canon
from spak.errors import SuiteError, UsageError
from spak.evolve.suites import Case, Right
from spak.evolve.suites.model import HISTORY, RECORDING, STATES, WORKSPACE
from spak.evolve.suites.sealed import copy_plain
from spak.files.scratch import Scratch
from spak.kernel.rules import Rules
from spak.repository import begun, past
from spak.repository.git import Git

GIT = "git:"
MAX_UNPACKED = 1 << 30
GIT_S = 60


def case_of(root: Path, run: str, name: str) -> tuple[Case, Callable[[Path], None]]:
    """A case that repeats a run, and what writes its files.

    Raises: SuiteError `suite.not_ended`, `suite.workspace`; LedgerError.
    """
    from spak import config
    from spak.cli import reading, recording
    from spak.ledger.files import FileLedgers
    from spak.llm import redactor
    from spak.llm.recorded import read

    seen = reading.view_of(root, run, strict=True)
    if seen.state not in STATES:
        raise SuiteError(
            "suite.not_ended", f"run {run} is {seen.state}, it did not end", f"spak resume {run}"
        )
    reader = FileLedgers(root).reader(run)
    try:
        genesis = next(iter(reader.read()))[0].body
        rules = genesis["rules"]
        answered = bool(read((line for _, line in reader.read()), reader.blobs.get))
    finally:
        reader.close()
    codes = tuple(seen.refusal["codes"]) if seen.refusal else ()
    case = Case(
        name,
        root,
        rules["inputs"],
        rules["seed"],
        Right(seen.state, codes),
        origin={
            "run": run,
            "spec": canon.digest(rules["spec"].encode()),
            "tokens": int(seen.metrics.get("tokens", 0)),
            "cost_nanousd": int(seen.metrics.get("cost_nanousd", 0)),
            "ms": int(seen.metrics.get("elapsed_ms", 0)),
        },
    )

    def fill(place: Path) -> None:
        _restore(root / run, run, rules["r3"], place / WORKSPACE)
        if count := Rules.of(genesis).program.history:
            bare = past.known(root / run / "store/git")
            _freeze(bare, count, place)
        if answered:
            found = recording.find(root, run, redactor(config.settings().llm))
            lines = b"".join(canon.dumps(item.to_json()) + b"\n" for item in found.items)
            (place / RECORDING).write_bytes(lines)

    return case, fill


def _restore(folder: Path, run: str, r3: str, target: Path) -> None:
    """The files that a run began with, from its store."""
    from spak.errors import RunError
    from spak.ledger.files import FileLedgers
    from spak.workspace import Workspace

    with Scratch("keep") as aside:
        place = Workspace(aside / "workspace", aside / "store")
        reader = FileLedgers(folder.parent).reader(run)
        try:
            place.draw_on(reader.blobs)
            place.restore(r3, folder / "store")
        except RunError as error:
            raise SuiteError(
                "suite.workspace",
                f"the files that run {run} began with are not in its store: {error.message}",
                "keep a run whose folder is complete, or add the case with --workspace",
            ) from error
        finally:
            reader.close()
        target.mkdir()
        copy_plain(aside / "workspace", target)
    if not any(target.iterdir()):
        target.rmdir()


def filler(workspace: str | None, answers: Path | None, history: int = 0) -> Callable[[Path], None]:
    """What writes the files that flags name; it raises SuiteError `suite.workspace`, UsageError."""

    def fill(place: Path) -> None:
        if workspace is not None:
            (place / WORKSPACE).mkdir()
            _unpack(workspace, place / WORKSPACE)
        if history:
            _history(workspace or "", history, place)
        if answers is not None:
            from spak.llm.recorded import contents, read

            data = contents(answers)
            if not read(data.splitlines()):
                raise UsageError("usage.input", f"{answers} holds no answer", "docs/models.md has the form")
            (place / RECORDING).write_bytes(data)

    return fill


def _history(named: str, count: int, place: Path) -> None:
    """The last commits of the repository that a case's files come from.

    Raises: UsageError `usage.arguments`; RunError `git.*`.
    """
    folder, _, ref = named.removeprefix(GIT).rpartition("@") if named.startswith(GIT) else (named, "", "HEAD")
    with Scratch("keep") as aside:
        bare = past.git(aside / "git")
        begun.follow(bare.folder, Path(folder))
        if not (bare.folder / "HEAD").exists():
            raise UsageError(
                "usage.arguments",
                "--history needs --workspace with a repository",
                "the top folder of a work tree, or git:DIR@REF with one",
            )
        head = bare.local("rev-parse", "--verify", f"{begun.BASE}^{{commit}}").decode().strip()
        if ref != "HEAD":
            users = Git(begun.git_folder(Path(folder) / ".git") or Path(folder), bare.ends, bare.most_bytes)
            head = (
                users.local("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().strip()
            )
        _freeze(bare, count, place, head)


def _freeze(bare: Git, count: int, place: Path, head: str = "") -> None:
    """Write a case's `history`, without secrets by name, by contents and by the values in its files."""
    from spak import config
    from spak.llm import redactor
    from spak.runner.secret_guard import found_in

    chosen = config.settings()
    values = found_in(place / WORKSPACE, chosen.shown_secrets)[1] if (place / WORKSPACE).is_dir() else ()
    holds = redactor(chosen.llm).knowing(values).holds
    if frozen := past.freeze(bare, count, past.recognised(holds), head):
        (place / HISTORY).write_bytes(frozen)


def _unpack(named: str, target: Path) -> None:
    if named.startswith(GIT):
        _commit(named.removeprefix(GIT), target)
        return
    source = Path(named)
    if source.is_dir():
        _copy(source, target)
    elif source.is_file():
        _archive(source, target)
    else:
        raise UsageError("usage.file", f"{source} does not exist", "a folder, an archive or git:DIR@REF")


def _copy(source: Path, target: Path) -> None:
    """What a run's copy of the folder would hold."""
    from spak import config
    from spak.workspace import Workspace

    with Scratch("keep") as aside:
        place = Workspace(aside / "workspace", aside / "store")
        place.copy_in(source, config.settings().wanted)
        copy_plain(aside / "workspace", target)


def _commit(named: str, target: Path) -> None:
    """The files of a commit of a local repository."""
    folder, _, ref = named.rpartition("@")
    if not folder or not ref or ref.startswith("-"):
        raise UsageError("usage.arguments", f"{GIT}{named} is not git:DIR@REF", "for example git:.@v1.2")
    with Scratch("keep") as aside:
        archive = aside / "commit.tar"
        done = subprocess.run(
            ["git", "-C", folder, "archive", "--format=tar", f"--output={archive}", ref],
            capture_output=True, text=True, timeout=GIT_S, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
        if done.returncode:
            raise SuiteError(
                "suite.workspace", f"git has no {ref} in {folder}: {done.stderr.strip()}", "name a ref"
            )
        _archive(archive, target)


def _archive(path: Path, target: Path) -> None:
    """Unpack a tar or zip archive; nothing in it may leave the folder or be larger than a workspace is."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                _fits(path, sum(item.file_size for item in archive.infolist()))
                for item in archive.infolist():
                    parts = Path(item.filename).parts
                    if Path(item.filename).is_absolute() or ".." in parts:
                        raise SuiteError("suite.workspace", f"{path} holds {item.filename}", "repack it")
                archive.extractall(target)
            return
        with tarfile.open(path) as archive:
            _fits(path, sum(item.size for item in archive))
            _stays(path, archive.getmembers())
            archive.extractall(target, **_FILTER)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise SuiteError(
            "suite.workspace", f"{path} cannot be unpacked: {error}", "a .tar, .tar.gz or .zip"
        ) from error


_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python before 3.11.4 has no filters of tar files: what they would refuse, `_stays` refuses."""


def _stays(path: Path, members: list[tarfile.TarInfo]) -> None:
    """Files, folders and links that stay inside, and nothing below a link."""
    links = {os.path.normpath(item.name) for item in members if item.issym()}
    for item in members:
        name = os.path.normpath(item.name)
        leads = os.path.normpath((Path(name).parent if item.issym() else Path()) / item.linkname)
        below = any(str(parent) in links for parent in Path(name).parents)
        odd = not (item.isfile() or item.isdir() or item.issym() or item.islnk())
        if odd or below or any(one.startswith(("/", "..")) for one in (name, leads)):
            raise SuiteError("suite.workspace", f"{path} holds {item.name}", "repack it")


def _fits(path: Path, size: int) -> None:
    if size > MAX_UNPACKED:
        raise SuiteError(
            "suite.workspace", f"{path} unpacks to more than {MAX_UNPACKED >> 20} MiB", "make it smaller"
        )
