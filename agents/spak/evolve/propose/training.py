"""What a proposer may read: traces of runs that belong to no gate or sealed case. Others are withheld.

A run says in its first record which case it was of; the run that a case was kept from is of that case too.
Asking for a withheld run is a violation: it is refused (`outer.split`), and what the campaign returns lists
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spak.errors import OuterError
from spak.records import Record


@dataclass(slots=True)
class Training:
    """The runs by name; `splits` names each case's split."""

    splits: Mapping[str, str]
    withheld: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    _open: dict[str, Sequence[Record]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        runs: Iterable[tuple[str, Sequence[Record]]],
        splits: Mapping[str, str],
        cases_of: Callable[[str, Sequence[Record]], Iterable[str]] = lambda name, records: labelled(records),
    ) -> Training:
        """The runs of cases that are open for training; those of any other case are left out."""
        made = cls(splits)
        for name, records in runs:
            if any(splits.get(case, "sealed") != "train" for case in cases_of(name, records)):
                made.withheld.add(name)
            else:
                made._open[name] = records
        return made

    def names(self) -> list[str]:
        """The names of the runs, sorted."""
        return sorted(self._open)

    def records(self, run: str) -> Sequence[Record]:
        """Raises: OuterError `outer.split` for a run of another split, `outer.empty` for one that is none."""
        if run in self.withheld:
            self.violations.append(run)
            raise OuterError(
                "outer.split", f"run {run} is not of the training split", "read what names() lists"
            )
        if run not in self._open:
            raise OuterError("outer.empty", f"there is no run {run}", "read what names() lists")
        return self._open[run]


def labelled(records: Sequence[Record]) -> tuple[str, ...]:
    """The case that a run's first record names, if it names one."""
    labels = records[0].body.get("host", {}).get("labels", {}) if records else {}
    return (str(labels["case"]),) if isinstance(labels, dict) and labels.get("case") else ()
