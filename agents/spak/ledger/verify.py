"""Is this ledger what was written, whole and in order?

Takes exact lines, from a run folder or an exported file, and perhaps a checkpoint kept elsewhere; gives a
Report with every problem found. Lines are judged as they come, so that a ledger of any length takes little
memory. It re-derives no decision: that is `spak replay`.

Codes of problems: those of `spak.ledger.chain`, and `form` (a line is not in canonical form), `torn_tail`
(a last line that was never finished: a warning in a run folder, where the next open cuts it), `footer`
(missing, partial, or not in agreement with the lines), `blob` (missing, damaged, or nobody's), `checkpoint`
(the ledger is shorter than a checkpoint says, or another one), `header` (what precedes the records of a pack
is no statement), `statement` (it is not of these lines), `too_many` (the list stops here).
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from spak import canon
from spak.errors import LedgerError, UserError
from spak.inputs import open_input
from spak.ledger.chain import Problem, check_line, named_blobs, next_previous
from spak.ledger.statement import Facts, Header, differences, is_header
from spak.ports import Blobs
from spak.records import Record

FOOTER = 1
"""Version of the exported file's layout; raise it when an older reader would misread it."""

WARNINGS = frozenset({"torn_tail"})
_MANY = 100


@dataclass(frozen=True, slots=True)
class Report:
    """`records` whole records end at `head`; `ok` means that no problem is more than a warning."""

    ok: bool
    records: int
    head: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What somebody outside the store remembers: after `count` records the head of `run` was `head`."""

    run: str
    count: int
    head: str
    earlier: Mapping[int, str] = field(default_factory=dict, hash=False)
    """Other heads that were seen, by the number of records."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The last line of an exported file."""

    run: str
    count: int
    head: str
    blobs: int

    def line(self) -> bytes:
        """The last line of an export."""
        members = {"blobs": self.blobs, "count": self.count, "head": self.head, "run": self.run}
        return canon.dumps({**members, "footer": FOOTER}) + b"\n"


def verify(
    lines: Iterable[bytes],
    *,
    exported: bool,
    checkpoint: Checkpoint | None = None,
    blobs: Blobs | None = None,
    start: int = 0,
    head: str = canon.ZERO,
) -> Report:
    """Check chain, order, canonical form and completeness of `lines` (each with its newline).

    `blobs` are those of a run folder: every blob that a record names is then looked up and checked too. The
    first line is record `start`, and the one before it has the hash `head`.
    """
    walk = Walk(exported=exported, checkpoint=checkpoint, blobs=blobs)
    walk.count, walk.head = start, head
    for line in lines:
        walk.feed(line)
    return walk.report()


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file. Raises: LedgerError `ledger.checkpoint` when there is none."""
    hint = (
        'a checkpoint is one JSON object {"run","count","head"}, as `spak ledger verify --json` prints them'
    )
    try:
        with open_input(path) as file:
            value = canon.loads(file.read())
    except (OSError, UserError) as error:
        raise LedgerError(
            "ledger.checkpoint", f"no checkpoint can be read from {path}: {error}", hint
        ) from error
    found = value if isinstance(value, dict) else {}
    run, count, head = found.get("run"), found.get("count"), found.get("head")
    if not (isinstance(run, str) and type(count) is int and count > 0 and isinstance(head, str)):
        raise LedgerError("ledger.checkpoint", f"{path} is not a checkpoint", hint)
    return Checkpoint(run, count, head)


class Walk:
    """One pass over the lines of a ledger; `feed` each line, then ask for the `report`."""

    def __init__(
        self, *, exported: bool, checkpoint: Checkpoint | None = None, blobs: Blobs | None = None
    ) -> None:
        self.run = ""
        self.count = 0
        self.head = canon.ZERO
        self.problems: list[Problem] = []
        self.blob = b""
        self.record: Record | None = None
        """That of the last line, where it is the one that belongs there."""
        self.header: Header | None = None
        """What precedes the records, where the file is a pack."""
        self.facts: Facts | None = None
        self.checkpoint = checkpoint
        self._exported = exported
        self._store = blobs
        self._named: dict[str, int] = {}
        self._blobs = 0
        self._last_blob = ""
        self._footer: Footer | None = None
        self._torn = False

    def feed(self, line: bytes) -> Literal["header", "record", "blob", "footer"]:
        """Judge the next line; gives what it was taken for."""
        self.record = None
        if self._exported and self.count == 0 and self.header is None and is_header(line):
            self.header, self.facts = Header(line), Facts()
            return "header"
        if self.facts is not None:
            self.facts.line(line)
        if self._torn or self._footer is not None:
            self._wrong("order", "a line after the end")
        if self._exported and line.startswith(b'{"blob":'):
            self._feed_blob(line)
            return "blob"
        if self._exported and line.startswith(b'{"blobs":'):
            self._feed_footer(line)
            return "footer"
        self._feed_record(line)
        return "record"

    def report(self) -> Report:
        """What was found, after the last line."""
        if self.count == 0:
            self._wrong("genesis", "there is no genesis: no complete record")
        if self._exported and self._footer is None:
            self._wrong("footer", "the footer is missing or partial: the file was cut")
        if self._exported:
            for digest, seq in self._named.items():
                self._wrong("blob", f"blob {digest} is missing", seq)
        self._check_checkpoint_reached()
        if self.header is not None and self.facts is not None:
            self._check_statement(self.header, self.facts)
        ok = all(problem.code in WARNINGS for problem in self.problems)
        return Report(ok, self.count, self.head, tuple(self.problems))

    def _feed_record(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            self._torn = True
            if not self._exported:
                self._wrong(
                    "torn_tail", f"the last line was never finished ({len(line)} bytes); open cuts it"
                )
            return
        if self._blobs:
            self._wrong("order", "a record after the first blob")
        record, problem = check_line(line, self.count, self.head)
        if problem is not None:
            self._add(problem)
        elif canon.dumps(canon.loads(line)) + b"\n" != line:
            self._wrong("form", "the line is not in canonical form")
        else:
            self.record = record
            if self.facts is not None and record is not None:
                self.facts.record(record)
        if record is not None:
            self._see(record, line)
        self.head = next_previous(line, canon.digest(line))
        self.count += 1
        self._check_checkpoint_head()

    def _see(self, record: Record, line: bytes) -> None:
        host = record.body.get("host") if self.count == 0 else None
        if isinstance(host, dict) and isinstance(host.get("run"), str):
            self.run = host["run"]
            if self.checkpoint is not None and self.checkpoint.run != self.run:
                self._wrong(
                    "checkpoint", f"the checkpoint is of run {self.checkpoint.run}, not of {self.run}"
                )
        for digest in named_blobs(line):
            if self._store is not None:
                self._check_stored(self._store, digest)
            elif self._exported:
                self._named.setdefault(digest, self.count)

    def _check_stored(self, store: Blobs, digest: str) -> None:
        try:
            store.get(digest)
        except LedgerError as error:
            self._wrong("blob", error.message)

    def _feed_blob(self, line: bytes) -> None:
        value = _object(line, {"blob": str, "data": str})
        if value is None:
            self._wrong("blob", "a blob's line cannot be read")
            return
        try:
            self.blob = b64decode(value["data"], validate=True)
        except (Base64Error, ValueError):
            self._wrong("blob", f"blob {value['blob']} is not base64")
            return
        if canon.digest(self.blob) != value["blob"]:
            self._wrong("blob", f"blob {value['blob']} does not match its name")
        if value["blob"] <= self._last_blob:
            self._wrong("order", f"blob {value['blob']} is out of order")
        self._last_blob = value["blob"]
        self._named.pop(value["blob"], None)
        self._blobs += 1

    def _feed_footer(self, line: bytes) -> None:
        shape = {"blobs": int, "count": int, "footer": int, "head": str, "run": str}
        value = _object(line, shape)
        if value is None:
            return  # partial: the report says so
        self._footer = footer = Footer(value["run"], value["count"], value["head"], value["blobs"])
        self.run = self.run or footer.run
        if value["footer"] != FOOTER:
            self._wrong("footer", f"layout {value['footer']} is unknown; this version writes layout {FOOTER}")
        if (footer.count, footer.head) != (self.count, self.head):
            self._wrong(
                "footer", f"the footer names {footer.count} records, here are {self.count}, or another head"
            )
        if footer.blobs != self._blobs:
            self._wrong("footer", f"the footer names {footer.blobs} blobs, here are {self._blobs}")
        if footer.run != self.run:
            self._wrong("footer", f"the footer is of run {footer.run}, the genesis of {self.run}")

    def _check_checkpoint_head(self) -> None:
        wanted = self.checkpoint
        if wanted is None:
            return
        heads = {wanted.earlier.get(self.count, self.head), self.head}
        if self.count == wanted.count:
            heads.add(wanted.head)
        if len(heads) > 1:
            message = f"after {self.count} records the head is not the checkpoint's"
            self._wrong("checkpoint", message, self.count - 1)

    def _check_checkpoint_reached(self) -> None:
        wanted = self.checkpoint
        if wanted is not None and self.count < wanted.count:
            self._wrong(
                "checkpoint", f"{self.count} records are left of at least {wanted.count}: the end was cut"
            )

    def _check_statement(self, header: Header, facts: Facts) -> None:
        if header.statement is None:
            self._wrong("header", "the first line is no statement of a pack in canonical form", 0)
            return
        wanted = facts.statement(header.log)
        if canon.dumps(header.statement) != canon.dumps(wanted):
            names = list(differences(header.statement, wanted))
            self._wrong("statement", f"the ledger says otherwise of {', '.join(names) or 'a type'}")

    def _wrong(self, code: str, message: str, seq: int | None = None) -> None:
        self._add(Problem(self.count if seq is None else seq, code, message))

    def _add(self, problem: Problem) -> None:
        if len(self.problems) < _MANY:
            self.problems.append(problem)
        elif len(self.problems) == _MANY:
            self.problems.append(Problem(problem.seq, "too_many", "there are more; the list stops here"))


def _object(line: bytes, shape: dict[str, type]) -> dict[str, Any] | None:
    """The object of a whole canonical line with exactly these members, or None."""
    try:
        value = canon.loads(line)
        canonical = canon.dumps(value) + b"\n" == line
    except UserError:
        return None
    if not canonical or not isinstance(value, dict) or value.keys() != shape.keys():
        return None
    return value if all(type(value[name]) is kind for name, kind in shape.items()) else None
