"""Sealed checks of an ordinary run: those of a case, judged as the run's last step.

Takes the folder of a case, of which its checks and their files count and nothing else; gives the runner what
it asks of the port `Sealed`. What is recorded says of each check whether it holds: neither its command nor
its output, so that nothing that reads the records learns what the checks ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spak import canon
from spak.errors import UnavailableError, UsageError
from spak.evolve.suites import sealed
from spak.evolve.suites.model import Case, read_case, tree_hash
from spak.ports import Launcher, MeasureCall, Measurement, Toolchain
from spak.runner.faults import must_work

NAME, FAILED = "sealed", "failed"


@dataclass(frozen=True, slots=True)
class CaseChecks:
    """The sealed checks of the case in a folder; `launcher` takes the place of the run's."""

    folder: Path
    launcher: Launcher | None = None

    @property
    def hash(self) -> str:
        """The name of the checks and their files as they are now. Raises: SuiteError `suite.*`."""
        return _hash(read_case(self.folder))

    def measure(self, call: MeasureCall, begun: Path) -> Measurement:
        """What the checks say of the workspace of a run that began with the files of `begun`.

        Raises: UnavailableError where one could not be carried out; SuiteError `suite.*`; Cancelled.
        """
        case = read_case(self.folder)
        launcher = self.launcher or call.launcher
        if launcher is None:
            raise UnavailableError("unavailable.sandbox", "there is no launcher", "spak doctor")
        bench = sealed.Bench(launcher, call.limits, call.toolchain or Toolchain(), cancel=call.cancel)
        wanted = sealed.Sealed(case.right.sealed, case.sealed, begun)
        results = sealed.held(wanted, call.workspace, bench, call.hides)
        if void := [item for item in results if item.void]:
            must_work(launcher)
            raise UnavailableError("unavailable.sandbox", void[0].why, "spak doctor")
        checks = (
            {"name": f"{NAME}.{number}", "ok": item.ok, **({} if item.ok else {"code": FAILED})}
            for number, item in enumerate(results, 1)
        )
        return Measurement("checked", tuple(checks))


def checks_of(folder: Path, seen: Path | None) -> CaseChecks:
    """Those of the case in a folder; `seen` is the folder that a run copies.

    Raises: SuiteError `suite.*`; UsageError `usage.sealed`.
    """
    place = folder.resolve()
    if not read_case(place).right.sealed:
        raise UsageError(
            "usage.sealed", f"the case {folder} has no sealed check", "`spak suite case` and `seal` make them"
        )
    top = None if seen is None else seen.resolve()
    if top is not None and (place.is_relative_to(top) or top.is_relative_to(place)):
        raise UsageError(
            "usage.sealed",
            f"the sealed checks in {folder} are in the folder that the run copies, so that it would see them",
            "keep them elsewhere",
        )
    return CaseChecks(place)


def _hash(case: Case) -> str:
    return canon.content_hash([[check.to_json() for check in case.right.sealed], tree_hash(case.sealed)])
