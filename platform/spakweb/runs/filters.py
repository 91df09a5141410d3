"""What people filter lists of runs and of records by; all of it stands in the address.

Takes a query string, gives a queryset and what the page needs to show the filter again. Odd values are left
out, never an error: an address may be old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Func, Q, QuerySet, Value
from django.db.models.fields import BinaryField, IntegerField
from django.http import QueryDict

from spak import canon
from spak.records import Kind
from spakweb.runs.models import Run, RunRecord, State

PAGE = 100
MOST_TEXT = 100


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Of the list of runs."""

    state: str = ""
    spec: str = ""
    version: str = ""
    label: str = ""
    text: str = ""
    mine: bool = False

    @classmethod
    def of(cls, query: QueryDict) -> RunFilter:
        state, version = query.get("state", ""), query.get("version", "")
        return cls(
            state if state in State.values else "",
            clean(query.get("spec", "")),
            version if version.isascii() and version.isdigit() and len(version) < 10 else "",
            clean(query.get("label", "")),
            clean(query.get("q", "")),
            query.get("mine") == "1",
        )

    def apply(self, rows: QuerySet[Run], user: Any) -> QuerySet[Run]:
        if self.state:
            rows = rows.filter(state=self.state)
        if self.spec:
            rows = rows.filter(version__spec__slug=self.spec)
        if self.version:
            rows = rows.filter(version__number=int(self.version))
        if self.label:
            rows = rows.filter(pk__in=_with_label(rows, self.label))
        if self.text:
            rows = rows.filter(name__icontains=self.text) | rows.filter(key__icontains=self.text)
        return rows.filter(made_by=user) if self.mine else rows

    @property
    def query(self) -> str:
        """The filter as an address has it."""
        found = {"state": self.state, "spec": self.spec, "version": self.version, "label": self.label}
        found["q"] = self.text
        shown = [(key, value) for key, value in found.items() if value]
        return urlencode(shown + ([("mine", "1")] if self.mine else []))

    @property
    def on(self) -> bool:
        return bool(self.query)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Of the records of a run: newest first, a page is what comes before `before`."""

    task: str = ""
    kind: str = ""
    authority: str = ""
    text: str = ""
    before: int | None = None

    @classmethod
    def of(cls, query: QueryDict) -> RecordFilter:
        kind, authority, before = (query.get(name, "") for name in ("kind", "authority", "before"))
        return cls(
            clean(query.get("task", "")),
            kind if kind in set(Kind) else "",
            authority if authority in ("proposal", "commit") else "",
            clean(query.get("q", "")),
            int(before) if before.isascii() and before.isdigit() and len(before) < 10 else None,
        )

    def apply(self, run: Run) -> QuerySet[RunRecord]:
        rows = RunRecord.objects.filter(run=run)
        for name in ("task", "kind", "authority"):
            if value := getattr(self, name):
                rows = rows.filter(**{name: value})
        if self.text:
            wanted = {self.text.encode(), canon.dumps(self.text)[1:-1]}  # as typed, and as JSON has it
            places = {f"found_{place}": within("line", text) for place, text in enumerate(sorted(wanted))}
            hit = Q()
            for name in places:
                hit |= Q(**{f"{name}__gt": 0})
            rows = rows.alias(**places).filter(hit)
        if self.before is not None:
            rows = rows.filter(seq__lt=self.before)
        return rows.order_by("-seq")

    @property
    def query(self) -> str:
        """The filter as an address has it, without the page."""
        found = {"task": self.task, "kind": self.kind, "authority": self.authority, "q": self.text}
        return urlencode([(key, value) for key, value in found.items() if value])

    @property
    def on(self) -> bool:
        return bool(self.query)


class Within(Func):
    """Where bytes stand in bytes, counted from 1; 0 when they do not."""

    function = "INSTR"
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        swapped = self.copy()
        swapped.set_source_expressions(list(reversed(self.get_source_expressions())))
        return swapped.as_sql(
            compiler, connection, template="POSITION(%(expressions)s)", arg_joiner=" IN ", **more
        )


def within(column: str, text: bytes) -> Within:
    return Within(column, Value(text, BinaryField()))


def clean(text: str) -> str:
    return text.replace("\0", "")[:MOST_TEXT].strip()


def _with_label(rows: QuerySet[Run], label: str) -> list[int]:
    """Read here, since SQLite cannot ask what a list of JSON contains."""
    return [pk for pk, labels in rows.values_list("pk", "labels") if label in labels]
