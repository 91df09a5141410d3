"""Proofs about a log of runs as texts: a record of a run is in a checkpoint; one checkpoint follows another.

Takes leaves, paths and checkpoints, gives texts, and verifies such texts with public keys and nothing else.
It reads no store: `spak.ledger.log` makes the proofs.

**Leaves.** Leaf i of a log is one canonical JSON object, without a newline:

    {"count":12,"head":"<chain>","leaf":1,"root":"<base64>","run":"<id>"}     the run had 12 records
    {"count":12,"erased":true,"head":"<chain>","leaf":1,"run":"<id>"}         the run was erased (tombstone)

`head` is the chain's hash after `count` records. `root` is the root of the Merkle tree (RFC 9162) whose leaf
i is the exact line of record i, newline included. Of several leaves of one run the last counts.

**Proof of inclusion**, after c2sp.org/tlog-proof; `extra` is the base64 of a JSON object:

    c2sp.org/tlog-proof@v1
    extra <base64 of {"leaf":"<text of the leaf>","record":{"line":"<line>","path":["<base64>"],"seq":3}}>
    index 41
    <base64 of a hash, from the leaf's sibling upwards, one a line>

    <the checkpoint, a signed note>

`record` is absent where the whole run is proved. To verify: check the checkpoint's signature; SHA-256(0x00 +
leaf text) at `index` leads by the path to the checkpoint's root; SHA-256(0x00 + line) at `seq` leads by
`record.path` to the leaf's `root`, in a tree of the leaf's `count`.

**Proof of consistency**, the body of an `add-checkpoint` request of c2sp.org/tlog-witness:

    old 40
    <base64 of a hash, one a line>

    <the newer checkpoint>
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Any

from spak import canon
from spak.errors import LedgerError, UserError
from spak.ledger import merkle
from spak.ledger.note import Head, Verifier, decoded_hash, encoded, trusted

FIRST = "c2sp.org/tlog-proof@v1"
LEAF = 1
"""Version of the leaves; raise it when an older reader would misread them."""
MAX_PATH = 63

_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A run in a log: it had `count` records; `root` is None for a tombstone."""

    run: str
    count: int
    head: str
    root: bytes | None

    def text(self) -> bytes:
        """The data of the leaf in the log's tree."""
        members = {"count": self.count, "head": self.head, "leaf": LEAF, "run": self.run}
        more = {"erased": True} if self.root is None else {"root": encoded(self.root)}
        return canon.dumps({**members, **more})


@dataclass(frozen=True, slots=True)
class Proved:
    """What a proof of inclusion proves: the leaf, and of the run a record's line at `seq` if it has one."""

    head: Head
    leaf: Leaf
    index: int
    seq: int | None = None
    line: bytes = b""


def read_leaf(data: bytes) -> Leaf:
    """The leaf that these bytes are. Raises: LedgerError `ledger.proof`."""
    try:
        value = canon.loads(data)
        leaf = Leaf(value["run"], value["count"], value["head"], None)
        if "erased" not in value:
            leaf = Leaf(leaf.run, leaf.count, leaf.head, decoded_hash(value["root"]))
        if type(leaf.count) is int and leaf.count > 0 and leaf.text() == data:
            return leaf
    except (UserError, KeyError, TypeError, AttributeError) as error:
        raise _wrong("the leaf cannot be read") from error
    raise _wrong("the leaf cannot be read")


def inclusion_text(
    leaf: Leaf,
    index: int,
    path: list[bytes],
    checkpoint: str,
    record: tuple[int, bytes, list[bytes]] | None = None,
) -> str:
    """The proof of a leaf, and of a record (its seq, its exact line, its path) in the leaf's run."""
    extra: dict[str, Any] = {"leaf": leaf.text().decode()}
    if record is not None:
        seq, line, inner = record
        extra["record"] = {"seq": seq, "line": line.decode(), "path": [encoded(one) for one in inner]}
    hashes = "".join(f"{encoded(one)}\n" for one in path)
    return f"{FIRST}\nextra {encoded(canon.dumps(extra))}\nindex {index}\n{hashes}\n{checkpoint}"


def check_inclusion(text: str, key: Verifier, witnesses: tuple[Verifier, ...] = ()) -> Proved:
    """What the text proves to those who trust these keys.

    Raises: LedgerError `ledger.proof`, and `ledger.checkpoint` and `ledger.signature` of `note.trusted`.
    """
    front, _, checkpoint = text.partition("\n\n")
    lines = front.split("\n")
    if len(lines) < 3 or lines[0] != FIRST or not lines[1].startswith("extra ") or lines[2][:6] != "index ":
        raise _wrong("its first lines are not those of a proof")
    extra, index = _extra(lines[1][6:]), _number(lines[2][6:])
    _, head = trusted(checkpoint.encode(), key, witnesses)
    leaf = read_leaf(extra["leaf"].encode())
    hashed = merkle.leaf_hash(leaf.text())
    if not merkle.check_inclusion(hashed, index, head.size, _path(lines[3:]), head.root):
        raise _wrong("the run is not in this checkpoint")
    record = extra.get("record")
    if record is None:
        return Proved(head, leaf, index)
    seq, line, path = record["seq"], record["line"].encode(), _path(record["path"])
    inner = merkle.leaf_hash(line)
    if leaf.root is None or not merkle.check_inclusion(inner, seq, leaf.count, path, leaf.root):
        raise _wrong(f"the line is not record {seq} of the run")
    return Proved(head, leaf, index, seq, line)


def claimed(text: str) -> Leaf:
    """The leaf that a proof is about, not verified to be in a log. Raises: LedgerError `ledger.proof`."""
    line = text.split("\n", 2)[1:2]
    if not text.startswith(f"{FIRST}\nextra ") or not line:
        raise _wrong("its first lines are not those of a proof")
    return read_leaf(_extra(line[0][6:])["leaf"].encode())


def consistency_text(old: int, path: list[bytes], checkpoint: str) -> str:
    """The proof that a checkpoint of `old` leaves is the beginning of this one."""
    return f"old {old}\n" + "".join(f"{encoded(one)}\n" for one in path) + "\n" + checkpoint


def check_consistency(text: str, earlier: Head, key: Verifier, witnesses: tuple[Verifier, ...] = ()) -> Head:
    """The newer checkpoint, which continues the `earlier` one. Raises as `check_inclusion`."""
    front, _, checkpoint = text.partition("\n\n")
    first, *hashes = front.split("\n")
    if first[:4] != "old " or _number(first[4:]) != earlier.size:
        raise _wrong(f"it does not begin at the earlier checkpoint's {earlier.size} leaves")
    _, head = trusted(checkpoint.encode(), key, witnesses)
    path = _path(hashes)
    if earlier.origin != head.origin or not merkle.check_consistency(
        earlier.size, head.size, earlier.root, head.root, path
    ):
        raise _wrong("the newer checkpoint does not continue the earlier one: two histories were signed")
    return head


def _extra(text: str) -> dict[str, Any]:
    try:
        value = canon.loads(b64decode(text, validate=True))
    except (Base64Error, ValueError, UserError) as error:
        raise _wrong("its extra line cannot be read") from error
    if not isinstance(value, dict) or not isinstance(value.get("leaf"), str):
        raise _wrong("its extra line names no leaf")
    if not value.keys() <= {"leaf", "record"}:
        raise _wrong("its extra line has other members than leaf and record")
    record = value.get("record")
    shape = {"seq": int, "line": str, "path": list}
    if record is not None and not (
        isinstance(record, dict) and all(type(record.get(name)) is kind for name, kind in shape.items())
    ):
        raise _wrong("its extra line has no whole record")
    return value


def _path(lines: list[Any]) -> list[bytes]:
    if len(lines) > MAX_PATH or not all(isinstance(line, str) for line in lines):
        raise _wrong(f"it has more than {MAX_PATH} hashes, or others than text")
    return [decoded_hash(line) for line in lines]


def _number(text: str) -> int:
    if not _NUMBER.match(text):
        raise _wrong(f"{text[:20]!r} is not a number")
    return int(text)


def _wrong(why: str) -> LedgerError:
    return LedgerError(
        "ledger.proof",
        f"the proof proves nothing: {why}",
        "make it again where the run is: spak ledger prove",
    )
