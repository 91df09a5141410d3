"""What viewers say of a whole run that its state does not hold, folded as the records pass.

Feed it every record of a run in order. `kept` is JSON whose size does not grow with the run: a snapshot holds
it, so that a viewer of a long run reads only the records after the snapshot. It decides nothing; `spak
replay` compares what a snapshot has of it with the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spak.records import Kind, Record
from spak.runner.views import own_tests
from spak.runner.views.quality import Quality, judges
from spak.runner.views.witnessed import WITNESSED

EVIDENCE = ("bound_ns", "bound_ppm", "flops_peak")
"""Metrics of a measurement that a report shows, the newest of each."""


@dataclass(slots=True)
class Tally:
    """Feed it every record of the run in order."""

    apart: dict[str, Any] = field(default_factory=dict)
    """What spak.runner.views.own_tests keeps."""
    checked: bool = False
    """Whether anything checked the result (spak.runner.views.quality)."""
    evidence: dict[str, Any] = field(default_factory=dict)
    quality: Quality = field(default_factory=Quality)
    stops: bool = False
    """Whether a fork stops among its records: at an approval, which a person has to give again, or at what
    somebody asked for from outside, which nothing awaits."""
    witnesses: bool = False
    """Whether it witnessed calls: how they ended grows with the run and is read again
    (spak.runner.views.witnessed)."""

    @classmethod
    def take_up(cls, kept: Mapping[str, Any]) -> Tally:
        """From what `kept` gave. Raises: KeyError, TypeError when that is something else."""
        made, usual = cls(**{**kept, "quality": Quality(**kept["quality"])}), cls().kept()
        if any(type(value) is not type(usual[name]) for name, value in kept.items()):
            raise TypeError("a tally of other types")
        return made

    def kept(self) -> dict[str, Any]:
        """What a snapshot holds: all of it."""
        return asdict(self)

    def feed(self, record: Record) -> None:
        """Take the next record."""
        self.quality.feed(record)
        match record.kind:
            case Kind.APPROVAL | Kind.CONTROL:
                self.stops = True
            case Kind.PERMIT:
                self.witnesses = self.witnesses or record.body.get("name") == WITNESSED
            case Kind.GENESIS:
                own_tests.feed(self.apart, record)
            case Kind.ACT:
                own_tests.feed(self.apart, record)
                self.checked = self.checked or judges(record)
                metrics = record.body.get("metrics")
                if isinstance(metrics, dict):
                    self.evidence |= {name: metrics[name] for name in EVIDENCE if name in metrics}
