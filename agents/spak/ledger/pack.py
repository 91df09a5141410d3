"""A VerificationPack: an exported run with a statement of it in front, enough to check and replay it.

    the statement, or a Sigstore bundle in which a key signed it            one line
    the exported run, byte for byte (spak.ledger.export)

Takes a ledger and writes the pack; takes the lines of a pack and gives a Verdict. The statement follows from
the export: the same run has the same statement, whoever derives it. `PACK` in a run's folder is the statement
that was written when the run ended.

Codes of problems: those of `spak.ledger.verify`, and `signature` (missing, or not of the key that was asked
for), `proof` (the log that was asked for has not these records), `replay` (a commit does not follow from the
proposals), `semantics` (this version cannot replay it).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spak import canon
from spak.data import kernel_code
from spak.errors import LedgerError, UsageError, UserError
from spak.kernel.replay import Replay
from spak.ledger import merkle, proofs
from spak.ledger.chain import Problem
from spak.ledger.export import Lines, export
from spak.ledger.note import Verifier
from spak.ledger.private import open_file
from spak.ledger.proofs import Leaf
from spak.ledger.statement import Facts, Header, signed_by
from spak.ledger.verify import Checkpoint, Footer, Report, Walk
from spak.policy import approval
from spak.ports import Ledger

PACK = "pack.json"
"""The statement of a run that ended, in its folder."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found; `notes` say what was not checked or differs without being wrong."""

    report: Report
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    header: Header | None
    facts: Facts | None
    replayed: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The verdict as `spak verify-pack --json` prints it."""
        header, facts = self.header, self.facts
        about = {} if facts is None else facts.statement()["predicate"]
        signed = header.signed if header else None
        return {
            "ok": self.ok,
            "run": about.get("run", ""),
            "state": about.get("state", ""),
            "records": self.report.records,
            "head": self.report.head,
            "summary_hash": about.get("summary", ""),
            "key": signed.key_id if signed else None,
            "replayed": self.replayed,
            "kernel_code": {"recorded": list(facts.code) if facts else [], "here": kernel_code()},
            "problems": [item.to_json() for item in self.problems],
            "notes": [{"code": item.code, "message": item.message} for item in self.notes],
        }


@dataclass(frozen=True, slots=True)
class Keys:
    """Whom a reader trusts: the signer of the statement (base64url), a log, and its witnesses."""

    signer: str | None = None
    log: Verifier | None = None
    witnesses: tuple[Verifier, ...] = ()


NO_KEYS = Keys()


def statement_of(ledger: Ledger, log: str | None = None) -> dict[str, Any]:
    """The statement of a run that ended.

    Raises: UsageError `usage.not_ended`; LedgerError as `export`.
    """
    facts = Facts()
    export(ledger, _Sink(facts), facts.record)
    if not facts.ended:
        raise UsageError(
            "usage.not_ended",
            f"run {ledger.run} has not ended: there is nothing to state of it yet",
            "`spak resume` continues it; `spak export` without a statement takes it as it is",
        )
    return facts.statement(log)


def write(ledger: Ledger, stream: Lines, private: bytes | None = None, log: str | None = None) -> Footer:
    """Write the pack of a run, signed where there is a raw private key.

    Raises: as `statement_of`.
    """
    statement = statement_of(ledger, log)
    signed = statement if private is None else signed_by(canon.dumps(statement), private)
    stream.write(canon.dumps(signed) + b"\n")
    return export(ledger, stream)


def keep(ledger: Ledger, folder: Path) -> None:
    """The statement of a run that ended, as a file in its folder; one that is there is left alone, and what
    cannot be written is left out."""
    path, aside = folder / PACK, folder / f".{PACK}.new"
    if path.exists():
        return
    try:
        with open_file(aside, "wb") as file:
            file.write(canon.dumps(statement_of(ledger)) + b"\n")
        aside.replace(path)
    except (OSError, UserError):
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def verify_pack(lines: Iterable[bytes], keys: Keys = NO_KEYS, *, replayed: bool = True) -> Verdict:
    """Check the lines of a pack: chain, form, footer and blobs, that the statement is of these lines, the
    signature and the proof where there are keys for them, and by a replay that each commit follows.
    """
    walk, again, logged = Walk(exported=True), _Again(replayed), _Logged(keys)
    for line in lines:
        if walk.feed(line) == "header" and walk.header is not None:
            logged.open(walk.header, walk)
        elif walk.record is not None:
            logged.line(line)
        again.feed(walk)
    report = walk.report()
    again.finish()
    signature, notes = _signature(walk.header, keys.signer)
    notes += logged.finish(report.records)
    headless = [] if walk.header else [Problem(0, "header", "the file does not begin with a statement")]
    problems = (*headless, *report.problems, *again.problems, *signature, *logged.problems)
    if not again.going:
        notes.append(Problem(0, "not_replayed", "the decisions were not derived again"))
    notes += other_kernel(() if walk.facts is None else walk.facts.code)
    return Verdict(report, problems, tuple(notes), walk.header, walk.facts, again.going)


class _Logged:
    """The proof that a log has the run, with the records that it is about."""

    def __init__(self, keys: Keys) -> None:
        self.problems: list[Problem] = []
        self._keys = keys
        self._leaf: Leaf | None = None
        self._tree = merkle.Frontier()

    def open(self, header: Header, walk: Walk) -> None:
        """The walk then looks whether the records lead to the chain's head in the leaf."""
        if header.log is None:
            return
        try:
            self._leaf = leaf = proofs.claimed(header.log)
            walk.checkpoint = Checkpoint(leaf.run, leaf.count, leaf.head)
            if self._keys.log is not None:
                proofs.check_inclusion(header.log, self._keys.log, self._keys.witnesses)
        except LedgerError as error:
            self.problems.append(Problem(0, "proof", error.message))

    def line(self, line: bytes) -> None:
        if self._leaf is not None and self._tree.size < self._leaf.count:
            self._tree.append(line)

    def finish(self, records: int) -> list[Problem]:
        """Notes; what is wrong is in `problems`. `records` is the number of records of the pack."""
        leaf = self._leaf
        if leaf is None:
            if self._keys.log is not None and not self.problems:
                self.problems.append(Problem(0, "proof", "the pack has no proof that a log has the run"))
            return []
        if leaf.root is None:
            self.problems.append(Problem(0, "proof", f"the log says that run {leaf.run} was erased"))
        elif leaf.count == self._tree.size and leaf.root != self._tree.root():
            self.problems.append(Problem(0, "proof", "the log has other records of the run"))
        elif self._keys.log and self._keys.signer is None and leaf.count < records:
            said = f"the log has only the first {leaf.count} of {records} records, and nobody signed the rest"
            self.problems.append(Problem(0, "proof", said))
        return [] if self._keys.log else [Problem(0, "not_verified", "the log's checkpoint was not verified")]


class _Again:
    """The replay of a pack's records, up to the first problem of its lines."""

    def __init__(self, going: bool) -> None:
        self.going = going
        self.problems: list[Problem] = []
        self._replay = Replay()

    def feed(self, walk: Walk) -> None:
        self.going = self.going and not walk.problems
        if not self.going or walk.record is None:
            return
        try:
            self._replay.feed(walk.record)
        except UserError as error:
            code = "semantics" if error.code == "ledger.semantics" else "replay"
            self.problems.append(Problem(walk.record.seq, code, error.message))
            self.going = False

    def finish(self) -> None:
        if not self.going:
            return
        self._replay.finish()
        if self._replay.difference is not None:
            seq = self._replay.difference.seq
            self.problems.append(Problem(seq, "replay", f"record {seq} does not follow from the proposals"))


def _signature(header: Header | None, public: str | None) -> tuple[list[Problem], list[Problem]]:
    """Problems and notes about who signed."""
    signed = None if header is None else header.signed
    if public is not None and (signed is None or not signed.is_of(public)):
        what = (
            "nobody signed the statement"
            if signed is None
            else f"key {signed.key_id} is another, or it changed"
        )
        return [Problem(0, "signature", f"it is not signed by key {approval.key_id(public)}: {what}")], []
    if public is None and signed is not None:
        return [], [Problem(0, "not_verified", f"the signature of key {signed.key_id} was not verified")]
    if signed is None:
        return [], [Problem(0, "unsigned", "nobody signed the statement")]
    return [], []


def other_kernel(code: Collection[str]) -> list[Problem]:
    """A note where other code decided a run than the code that runs here."""
    if not code:
        return [Problem(0, "kernel_unknown", "the records do not name the code that decided")]
    if set(code) == {kernel_code()}:
        return []
    return [
        Problem(0, "kernel_differs", f"kernel code {', '.join(code)} decided it, this is {kernel_code()}")
    ]


class _Sink:
    """Hashes what is exported."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def write(self, data: bytes, /) -> None:
        self._facts.line(data)
