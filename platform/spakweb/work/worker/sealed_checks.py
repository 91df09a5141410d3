"""The sealed checks of a run on a worker: those of a case of the team, or those that the settings name.

Takes the row of a run; gives the runner what it asks of the port `Sealed`. The files of a case are unpacked
for each question and are nowhere else on a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spak import config
from spak.evolve.suites.at_the_end import CaseChecks, checks_of
from spak.files.scratch import Scratch
from spak.ports import MeasureCall, Measurement, Sealed
from spakweb.store.ledger import packs
from spakweb.store.runs.models import Run


@dataclass(frozen=True, slots=True)
class PackChecks:
    """The sealed checks of a case that was brought, by its key."""

    key: str

    @property
    def hash(self) -> str:
        """The name of the checks and their files. Raises: RunError `upload.changed`."""
        with _unpacked(self.key) as folder:
            return CaseChecks(folder).hash

    def measure(self, call: MeasureCall, begun: Path) -> Measurement:
        """What the checks say (`spak.evolve.suites.at_the_end`)."""
        with _unpacked(self.key) as folder:
            return CaseChecks(folder).measure(call, begun)


def sealed_of(row: Run) -> Sealed | None:
    """The checks of a run; one that measures a spec has none but those of its case, after its end.

    Raises: SuiteError `suite.*`, UsageError `usage.sealed` where the settings name what is none.
    """
    if row.sealed:
        return PackChecks(row.sealed)
    named = config.settings().sealed
    return None if named is None or row.trial else checks_of(named, None)


@contextmanager
def _unpacked(key: str) -> Iterator[Path]:
    with Scratch("case") as held:
        folder = held / "case"
        folder.mkdir()
        packs.fill(key, folder)
        yield folder
