"""Rows of one predicate with an index for each set of columns that some rule looks up."""

from __future__ import annotations

from typing import Any

from spak.datalog.values import Row

Buckets = dict[Any, dict[Row, None]]


class Relation:
    """`rows` is what holds; `base` what was asserted; `fixed` what the policy's own text states."""

    __slots__ = ("_indexes", "base", "fixed", "rows")

    def __init__(self) -> None:
        self.rows: dict[Row, None] = {}
        self.base: dict[Row, None] = {}
        self.fixed: dict[Row, None] = {}
        self._indexes: dict[tuple[int, ...], Buckets] = {}

    def index(self, columns: tuple[int, ...]) -> Buckets:
        """Rows by the values at these columns: a bare value for one column, else a tuple."""
        found = self._indexes.get(columns)
        if found is None:
            found = self._indexes[columns] = {}
            for row in self.rows:
                _put(found, columns, row)
        return found

    def add(self, row: Row) -> None:
        """Add a row; idempotent."""
        if row not in self.rows:
            self.rows[row] = None
            for columns, buckets in self._indexes.items():
                _put(buckets, columns, row)

    def remove(self, row: Row) -> None:
        """Remove a row, if it is there."""
        if row in self.rows:
            del self.rows[row]
            for columns, buckets in self._indexes.items():
                key = row[columns[0]] if len(columns) == 1 else tuple(row[column] for column in columns)
                bucket = buckets[key]
                del bucket[row]
                if not bucket:
                    del buckets[key]

    def clear(self) -> None:
        """Remove all rows; indexes stay."""
        self.rows.clear()
        for buckets in self._indexes.values():
            buckets.clear()

    def is_given(self, row: Row) -> bool:
        """Whether a row was asserted, and does not only follow from rules."""
        return row in self.base or row in self.fixed


def _put(buckets: Buckets, columns: tuple[int, ...], row: Row) -> None:
    key = row[columns[0]] if len(columns) == 1 else tuple(row[column] for column in columns)
    bucket = buckets.get(key)
    if bucket is None:
        buckets[key] = {row: None}
    else:
        bucket[row] = None
