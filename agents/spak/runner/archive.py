"""The texts that a run's prompts may name as `ref://N`, read from its ledger for the tool `recall`.

N is the attempt of the effect that the text answers. The ledger is read anew for each call: a call is rare,
and an index beside the ledger would have to agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spak import canon
from spak.ports import Kept, Ledger
from spak.records import Kind, Record
from spak.runner.blobs import expand

_GIVEN = ("exited", "answered")


class LedgerArchive:
    """The texts of a run, read from its ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def refs(self) -> Sequence[Kept]:
        """Every result and answer, oldest first."""
        return [
            Kept(record.attempt, names.get(record.attempt, record.step), _size(record.body.get("out", "")))
            for record, names in self._answers()
        ]

    def text(self, ref: int) -> str | None:
        """The whole text of an effect; None where there is none of that number."""
        for record, _ in self._answers():
            if record.attempt == ref:
                return str(expand(record.body.get("out", ""), self._ledger.blobs))
        return None

    def _answers(self) -> Iterator[tuple[Record, dict[int, str]]]:
        names: dict[int, str] = {}
        for record, _ in self._ledger.read():
            if record.kind == Kind.PERMIT:
                names[record.attempt] = str(record.body.get("name", record.step))
            elif record.kind == Kind.ACT and "out" in record.body and record.body.get("outcome") in _GIVEN:
                yield record, names


def _size(value: Any) -> int:
    if isinstance(value, dict):
        size = value.get("size", 0)
        return size if type(size) is int else 0
    return len(value.encode()) if isinstance(value, str) else len(canon.dumps(value))
