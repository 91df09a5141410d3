"""The record: one line of the ledger, its hash, and the word list of kinds and authorities.

Takes members of a record and the hash of the line before; gives the exact line and back. It does not
decide anything and keeps no file.

    {"#":hash,"at":ms,"attempt":n,"authority":..,"body":{..},"kind":..,"seq":n,"side":{..},"step":..,"task":..}\n

`hash = H(previous hash + the line from its 52nd byte)`: `"#"` sorts first, so that a fixed slice checks the
chain without writing the line again. `at` is Unix time in milliseconds. Empty members are left out.
`content = H([kind, authority, task, step, attempt, body])` names a commit wherever it stands; `side` (ms,
tokens, references to proofs) decides nothing and is in the chain only. Source: DESIGN.md section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from spak import canon
from spak.errors import LedgerError, UserError

FORMAT = 1
"""Version of the line's layout; raise it when a reader of the old layout would misread a line."""

HASH_FIELD = 51
"""Bytes of `{"#":"<43 characters>",` with which every line opens."""

_MEND = "`spak ledger verify` names the damaged record; take the run from a copy or an export"


class Authority:
    """Who a record comes from: the outside, the kernel, or the runner.

    Plain texts, as in `Kind`: a step compares them a hundred times, and a member of an Enum costs three
    times as much to look up and to compare.
    """

    PROPOSAL: Final = "proposal"
    COMMIT: Final = "commit"
    HOST: Final = "host"


class Kind:
    """What a record is about."""

    GENESIS: Final = "genesis"
    OBSERVE: Final = "observe"
    PLAN: Final = "plan"
    ACT: Final = "act"
    APPROVAL: Final = "approval"
    CONTROL: Final = "control"
    PERMIT: Final = "permit"
    INJECT: Final = "inject"
    CONTEXT: Final = "context"
    EXTEND: Final = "extend"
    SELECT: Final = "select"
    ROUTE: Final = "route"
    END: Final = "end"
    LEASE: Final = "lease"
    RESUME: Final = "resume"
    REDELIVER: Final = "redeliver"
    ROLLBACK: Final = "rollback"
    MODE: Final = "mode"
    LATE: Final = "late"


AUTHORITIES: frozenset[str] = frozenset({Authority.PROPOSAL, Authority.COMMIT, Authority.HOST})
KINDS: frozenset[str] = frozenset(value for name, value in vars(Kind).items() if name.isupper())


class Record(NamedTuple):
    """A record as `step` and the stores see it; `hash` is empty until a ledger has written it.

    A tuple, since a step makes ten of them, and a frozen dataclass is made five times as slowly.
    """

    kind: str
    authority: str
    body: Mapping[str, Any]
    task: str = ""
    step: str = ""
    attempt: int = 0
    seq: int = -1
    at: int = 0
    side: Mapping[str, Any] = MappingProxyType({})
    hash: str = ""
    text: bytes = b""
    """The canonical bytes of `body`, if they were made before it is written; empty in one out of a ledger."""

    @property
    def content(self) -> str:
        """The hash of what it decides, without clock and place in the ledger."""
        return content_of(self.kind, self.authority, self.task, self.step, self.attempt, self.body)


def content_of(kind: str, authority: str, task: str, step: str, attempt: int, body: Mapping[str, Any]) -> str:
    """The name of a commit: its decision, without place, clock or side notes."""
    return content_of_text(kind, authority, task, step, attempt, canon.dumps(body))


def content_of_text(kind: str, authority: str, task: str, step: str, attempt: int, text: bytes) -> str:
    """The same, from the canonical bytes of its body."""
    return canon.digest(b"%b%d,%b]" % (_place(kind, authority, task, step), attempt, text))


@lru_cache(4096)
def _place(*names: str) -> bytes:
    """The beginning of a list of these texts, which repeat from record to record."""
    return canon.dumps(names)[:-1] + b","


_quoted = lru_cache(4096)(canon.dumps)


def place(record: Record, seq: int, previous: str) -> tuple[Record, bytes]:
    """The record at its place in a chain, with seq and hash, and its exact line, newline included.

    `previous` is the hash of the line before, `canon.ZERO` for the first.
    """
    at, attempt, side = record.at, record.attempt, record.side
    rest = b'%b%b"authority":%b,"body":%b,"kind":%b,"seq":%d%b%b%b}' % (
        b'"at":%d,' % at if at else b"",
        b'"attempt":%d,' % attempt if attempt else b"",
        _quoted(record.authority),
        record.text or canon.dumps(record.body),
        _quoted(record.kind),
        seq,
        b',"side":%b' % canon.dumps(side) if side else b"",
        b',"step":%b' % _quoted(record.step) if record.step else b"",
        b',"task":%b' % _quoted(record.task) if record.task else b"",
    )
    chain = canon.digest(previous.encode() + rest)
    line = b'{"#":"%b",%b\n' % (chain.encode(), rest)
    return Record(*record[:6], seq, *record[7:9], chain), line


def chain_hash(line: bytes, previous: str) -> str:
    """What the `#` of a line must be, given the hash of the line before it."""
    return canon.digest(previous.encode() + line.rstrip(b"\n")[HASH_FIELD:])


def decode(line: bytes) -> Record:
    """The record of a line. Raises: LedgerError `ledger.line` when the line is not a record."""
    try:
        value = canon.loads(line)
    except UserError as error:
        raise LedgerError("ledger.line", f"not a record: {error.message}", _MEND) from error
    if type(value) is not dict:
        raise LedgerError("ledger.line", f"not a record but a JSON {type(value).__name__}", _MEND)
    try:
        record = Record(
            value["kind"],
            value["authority"],
            value["body"],
            value.get("task", ""),
            value.get("step", ""),
            value.get("attempt", 0),
            value["seq"],
            value.get("at", 0),
            value.get("side", {}),
            value["#"],
        )
    except KeyError as error:
        raise LedgerError("ledger.line", f"not a record: member {error} is missing", _MEND) from error
    wrong = _wrong_member(record)
    if wrong:
        raise LedgerError("ledger.line", f"not a record: member {wrong!r} is of the wrong type", _MEND)
    return record


def _wrong_member(record: Record) -> str:
    kind, authority, body, task, step, attempt, seq, at, side, chain = record[:10]
    if (
        type(kind) is type(authority) is type(task) is type(step) is type(chain) is str
        and type(seq) is type(attempt) is type(at) is int
        and type(body) is type(side) is dict
        and seq >= 0
        and attempt >= 0
    ):
        return ""
    wanted = {"seq": (seq, int), "attempt": (attempt, int), "at": (at, int), "body": (body, dict)}
    wanted |= {"side": (side, dict), "kind": (kind, str), "authority": (authority, str)}
    wanted |= {"task": (task, str), "step": (step, str), "#": (chain, str)}
    for name, (value, kind_of) in wanted.items():
        if type(value) is not kind_of:
            return name
    return "seq" if seq < 0 else "attempt"
