"""What people filter lists of runs and of records by; all of it stands in the address.

Takes a query string, gives a queryset and what the page needs to show the filter again. Odd values are left
out, never an error: an address may be old.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import Func, Q, QuerySet, Value
from django.db.models.fields import BinaryField, BooleanField, IntegerField
from django.http import QueryDict

from spak import canon
from spak.records import KINDS
from spakweb.ground import clock
from spakweb.ground.errors import Refused
from spakweb.ground.text import as_number
from spakweb.ground.unsafe_text import visible
from spakweb.store.jobs.leases import free, silent_since
from spakweb.store.runs.models import GOES_ON, Run, RunRecord, State

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
    deleted: bool = False
    """What is left of those that were deleted, and no others."""
    trials: str = ""
    """"1" for runs of experiments and campaigns alone, "0" for all others; empty: as `apart` says."""
    guarded: str = ""
    """"1" for guarded sessions alone, "0" for all other runs."""

    @classmethod
    def of(cls, query: QueryDict) -> RunFilter:
        """The filter of a query; what makes no sense in it is left out."""
        state, version = query.get("state", ""), query.get("version", "")
        return cls(
            state if state in (*State.values, "unchecked", "own-tests") else "",
            word(query.get("spec", "")),
            version if as_number(version) is not None else "",
            word(query.get("label", "")),
            word(query.get("q", "")),
            query.get("mine") == "1",
            query.get("deleted") == "1",
            *(query[name] if query.get(name) in ("0", "1") else "" for name in ("trials", "guarded")),
        )

    @classmethod
    def strict(cls, query: QueryDict, but: tuple[str, ...]) -> RunFilter:
        """The filter of a program, which would take all runs for those that it meant: an empty value is none,
        what makes no sense is refused by its name, and a text that no run can have finds none. Raises:
        Refused `web.run_filter`."""
        texts = {"spec": query.get("spec", ""), "label": query.get("label", ""), "text": query.get("q", "")}
        found = replace(cls.of(query), **texts)
        empty = {
            (name, "")
            for name in ("state", "spec", "version", "label", "q", "trials", "guarded", "mine", "deleted")
        }
        given = {(key, value) for key, value in query.items() if key not in but} - empty
        if odd := sorted(key for key, _ in given - set(parse_qsl(found.query))):
            raise Refused(
                "web.run_filter", f"The filters cannot be used: {', '.join(odd)[:100]}.",
                "They are state, spec, version, label, q, trials and guarded=0 or 1, mine=1 and deleted=1.",
            )  # fmt: skip
        return found

    def apply(self, rows: QuerySet[Run], user: Any, *, apart: bool = True) -> QuerySet[Run]:
        """The runs that fit; `apart` leaves out those of experiments and campaigns unless asked for."""
        rows = rows.filter(deleted_at__isnull=not self.deleted)
        if self.trials == "1":
            rows = rows.exclude(trial="")
        elif self.trials == "0" or apart:
            rows = rows.filter(trial="")
        if self.guarded:
            rows = rows.filter(agent="") if self.guarded == "0" else rows.exclude(agent="")
        if self.state:
            rows = rows.filter(_shown_in(self.state))
        if self.spec:
            rows = rows.filter(version__spec__slug=self.spec)
        if self.version:
            rows = rows.filter(version__number=int(self.version))
        if self.label:
            rows = with_label(rows, self.label)
        if self.text:
            rows = rows.filter(Q(name__icontains=self.text) | Q(key__icontains=self.text))
        return rows.filter(made_by=user) if self.mine else rows

    @property
    def query(self) -> str:
        """The filter as an address has it."""
        found = {"state": self.state, "spec": self.spec, "version": self.version, "label": self.label}
        found |= {"q": self.text, "trials": self.trials, "guarded": self.guarded}
        shown = [(key, value) for key, value in found.items() if value]
        flags = [(name, "1") for name in ("mine", "deleted") if getattr(self, name)]
        return urlencode(shown + flags)

    @property
    def on(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.query)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Of the records of a run: newest first, a page is what comes before `before`."""

    task: str = ""
    kind: str = ""
    authority: str = ""
    level: str = ""
    """"wrong" for what was denied, failed or refused; empty for all."""
    text: str = ""
    before: int | None = None

    @classmethod
    def of(cls, query: QueryDict) -> RecordFilter:
        """The filter of a query; what makes no sense in it is left out."""
        kind, authority, before = (query.get(name, "") for name in ("kind", "authority", "before"))
        return cls(
            clean(query.get("task", "")),
            kind if kind in KINDS else "",
            authority if authority in ("proposal", "commit") else "",
            "wrong" if query.get("level") == "wrong" else "",
            clean(query.get("q", "")),
            as_number(before),
        )

    def apply(self, run: Run) -> QuerySet[RunRecord]:
        """The records of a run that fit."""
        rows = RunRecord.objects.filter(run=run)
        for name in ("task", "kind", "authority"):
            if value := getattr(self, name):
                rows = rows.filter(**{name: value})
        if self.text:
            wanted = {self.text.encode(), canon.dumps(self.text)[1:-1]}  # as typed, and as JSON has it
            rows = _holding(rows, "text", wanted)
        if self.level:
            badly = {"exit": within("line", EXIT), "well": within("line", WELL)}
            exited = Q(exit__gt=0, well=0)
            rows = _holding(rows.alias(**badly), "level", WRONG, exited)
        if self.before is not None:
            rows = rows.filter(seq__lt=self.before)
        return rows.order_by("-seq")

    @property
    def query(self) -> str:
        """The filter as an address has it, without the page."""
        found = {"task": self.task, "kind": self.kind, "authority": self.authority, "level": self.level}
        found["q"] = self.text
        return urlencode([(key, value) for key, value in found.items() if value])

    @property
    def on(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.query)


WRONG = tuple(
    f'"{name}":{value}'.encode()
    for name, value in (
        ("allow", "false"), ("signal", '"fail"'), ("signal", '"timeout"'), ("status", '"fail"'),
        ("state", '"failed"'), ("state", '"refused"'), ("outcome", '"crash"'), ("outcome", '"invalid"'),
        ("outcome", '"limit"'), ("outcome", '"malformed"'), ("outcome", '"timeout"'),
    )
)  # fmt: skip
"""What the line of a record holds that says that something went wrong. In a text quotes are escaped, so that
no text can look like one."""
EXIT, WELL = b'"exit":', b'"exit":0'


def went_wrong(line: bytes) -> bool:
    """Whether a record's line says that something failed."""
    return any(mark in line for mark in WRONG) or (EXIT in line and WELL not in line)


def _holding(
    rows: QuerySet[RunRecord], name: str, texts: Iterable[bytes], hit: Q | None = None
) -> QuerySet[RunRecord]:
    """Those whose line holds one of the texts, or that `hit` fits."""
    places = {f"{name}_{place}": within("line", text) for place, text in enumerate(sorted(texts))}
    hit = hit or Q()
    for place in places:
        hit |= Q(**{f"{place}__gt": 0})
    return rows.alias(**places).filter(hit)


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
    """The condition that a column's bytes hold some bytes."""
    return Within(column, Value(text, BinaryField()))


def clean(text: str) -> str:
    """A text of a query, without null characters and cut."""
    return text.replace("\0", "")[:MOST_TEXT].strip()


def word(text: str) -> str:
    """What a name, a label or an id is asked for by."""
    return visible(text)[:MOST_TEXT]


def _shown_in(state: str) -> Q:
    """Runs that are shown in a state: what nobody holds does not run, but is queued, and a guarded session
    that reports no more is paused."""
    now = clock.now()
    gone = Q(state=State.RUNNING, agent="") & free(now)
    silent = Q(state__in=GOES_ON, heard_at__lt=silent_since(now))
    match state:
        case State.RUNNING:
            return Q(state=State.RUNNING) & ~gone & ~silent
        case State.WAITING:
            return Q(state=State.WAITING) & ~silent
        case State.PAUSED:
            return Q(state=State.PAUSED) | silent
        case State.QUEUED:
            return Q(state=State.QUEUED) | gone
        case State.SUCCEEDED:
            checked = Q(summary__checks__isnull=True) | Q(summary__checks__gt=0)
            checked |= ~Q(agent="")
            return Q(state=State.SUCCEEDED, summary__by_own_tests__0__isnull=True) & checked
        case "unchecked":
            return _UNCHECKED
        case "own-tests":
            return Q(state=State.SUCCEEDED, summary__by_own_tests__0__isnull=False)
        case _:
            return Q(state=state)


_UNCHECKED = Q(state=State.SUCCEEDED, summary__checks=0, agent="")


def with_label(rows: QuerySet[Run], label: str) -> QuerySet[Run]:
    """The runs that have a label."""
    return rows.filter(Among(Value(label), "labels"))


class Among(Func):
    """Whether a text is one of a list of JSON."""

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        (text, first), (column, second) = map(compiler.compile, self.get_source_expressions())
        return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = {text})", (*second, *first)

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        (text, first), (column, second) = map(compiler.compile, self.get_source_expressions())
        return f"{column} ? {text}", (*second, *first)
