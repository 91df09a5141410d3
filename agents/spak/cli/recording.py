"""The recording that a run is answered from (`--from`): found when it is named, kept in the run's folder.

Takes what a flag names: a run, an exported run or a file of answers. Its answers go into `recording.json` of
the run that they answer, so that a later `spak step` or `spak resume` goes on with them whatever has become
of their source. Which of them were given already is in the run's ledger.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spak import canon
from spak.cli import common
from spak.errors import SpakError, UnavailableError
from spak.ledger.files import FileLedgers
from spak.ledger.private import open_file
from spak.llm import Redactor
from spak.llm.recorded import Recorded, Recording, contents, read
from spak.llm.settings import Choice

FILE = "recording.json"


@dataclass(frozen=True, slots=True)
class Answers:
    """A recording by its name."""

    name: str
    items: tuple[Recording, ...]

    def backend(self) -> Recorded:
        """The backend that gives them. A prompt may show a time, so one that differs gets the next answer."""
        return Recorded(Choice(mode="recorded", strict=False), self.items, self.name)

    def keep(self, folder: Path) -> None:
        """Write them into the folder of a run, durably, in the place of what is there."""
        aside = folder / (FILE + ".new")
        data = canon.dumps({"name": self.name, "answers": [item.to_json() for item in self.items]})
        with open_file(aside, "wb") as file:
            file.write(data + b"\n")
            file.flush()
            os.fsync(file.fileno())
        aside.replace(folder / FILE)


def find(root: Path, named: str, without: Redactor) -> Answers:
    """The answers of a run, by its id or folder, or of a file, in order and without secrets.

    Raises: UsageError `usage.run` and `usage.input`, UnavailableError `llm.recorded`, LedgerError.
    """
    if Path(named).is_file():
        name, found = Path(named).name, read(contents(Path(named)).splitlines())
    else:
        folder, name = common.find_run(named, root)
        reader = FileLedgers(folder).reader(name)
        try:
            found = read((line for _, line in reader.read()), reader.blobs.get)
        finally:
            reader.close()
    lines = without.value([item.to_json() for item in found])
    made = Answers(without.text(name), tuple(read(map(canon.dumps, lines))))
    made.backend().check()
    return made


def kept(folder: Path) -> Answers | None:
    """What `keep` wrote; None when the run was never answered from a named recording.

    Raises: UnavailableError `llm.recorded`.
    """
    path = folder / FILE
    if not os.path.lexists(path):
        return None
    try:
        value = canon.loads(contents(path))
        return Answers(str(value["name"]), tuple(read(map(canon.dumps, value["answers"]))))
    except (SpakError, KeyError, TypeError) as error:
        raise UnavailableError(
            "llm.recorded", f"{path} cannot be read", "name the recording again: spak resume RUN --from RUN2"
        ) from error
