"""A log of runs: what each had at each checkpoint, as leaves of one Merkle tree that only grows.

Takes a `Log` (the leaves of a store, kept in it), the lines of runs and the log's private key; gives leaves,
signed checkpoints and proofs. Stores are `spak.ledger.file_log` and the platform's. It asks nobody for a
cosignature and publishes nothing: that is `spak.ledger.publish`.

The log itself is in the store, so that whoever can rewrite the store can rewrite it too. What finds that is a
checkpoint outside: the log of a store must still begin with the tree that the checkpoint names (`continues`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from spak import canon
from spak.errors import LedgerError
from spak.ledger import merkle
from spak.ledger.chain import next_previous
from spak.ledger.note import Head, Note, sign
from spak.ledger.proofs import Leaf, consistency_text, inclusion_text


class Log(Protocol):
    """Leaves, by the hashes of perfect subtrees over them (`merkle.Node`)."""

    @property
    def size(self) -> int:
        """The number of leaves."""

    def node(self, level: int, index: int) -> bytes:
        """The hash of a perfect subtree."""


def leaf_of(run: str, lines: Iterable[bytes], before: Leaf | None = None) -> Leaf:
    """What a run has now, of its exact lines; a last line without its newline is left out.

    Raises: LedgerError `ledger.rewritten` where it does not begin as the log says that it was `before`.
    """
    tree, last = merkle.Frontier(), b""
    for line in lines:
        if not line.endswith(b"\n"):
            break
        tree.append(line)
        last = line
        if before is not None and tree.size == before.count:
            found = (next_previous(line, canon.ZERO), tree.root())
            if found != (before.head, before.root):
                raise _rewritten(run, f"its first {before.count} records are not those of the log")
    if before is not None and tree.size < before.count:
        raise _rewritten(run, f"{tree.size} records are left of {before.count}")
    return Leaf(run, tree.size, next_previous(last, canon.ZERO), tree.root())


def continues(log: Log, head: Head) -> bool:
    """True if the log still begins with the tree of an earlier checkpoint."""
    return head.size <= log.size and merkle.root(head.size, log.node) == head.root


def holds(log: Log, index: int, leaf: Leaf, head: Head) -> bool:
    """True if the log proves that the leaf is in this checkpoint."""
    if head.size > log.size:
        return False
    path = merkle.inclusion(index, head.size, log.node)
    return merkle.check_inclusion(merkle.leaf_hash(leaf.text()), index, head.size, path, head.root)


def checkpoint(log: Log, origin: str, private: bytes, earlier: Iterable[Head] = ()) -> Note:
    """The log of now, signed.

    Raises: LedgerError `ledger.forked` where it does not continue an earlier checkpoint: a log never signs
    two histories; `ledger.key`.
    """
    for head in earlier:
        if head.size > log.size:
            raise _forked(f"the log has {log.size} leaves, the last checkpoint {head.size}")
        if not continues(log, head):
            raise _forked(f"its first {head.size} leaves are not those of the last checkpoint")
    return sign(Head(origin, log.size, merkle.root(log.size, log.node)), private)


def consistency(log: Log, old: int, note: Note) -> str:
    """The proof that a checkpoint of this log continues the one of `old` leaves. Raises: LedgerError
    `ledger.proof` where it does not have so many, `ledger.forked` where the log is shorter than it."""
    size = note.head().size
    if old > size:
        raise LedgerError(
            "ledger.proof",
            f"the earlier checkpoint has {old} leaves, the later one {size}",
            "name the older of the two checkpoints",
        )
    if size > log.size:
        raise LedgerError(
            "ledger.forked",
            f"the log has {log.size} leaves, its last checkpoint {size}",
            "was an old copy of the store restored? Keep both; take back the newer store",
        )
    return consistency_text(old, merkle.consistency(old, size, log.node), note.text())


def inclusion(
    log: Log, index: int, leaf: Leaf, note: Note, lines: Iterable[bytes] = (), seq: int | None = None
) -> str:
    """The proof that leaf `index`, and of its run record `seq`, is in a checkpoint of this log.

    `lines` are those of the run, from the first on. Raises: LedgerError `ledger.not_covered` where the
    checkpoint does not cover the record; `ledger.rewritten` where the run is not the leaf's.
    """
    path = merkle.inclusion(index, note.head().size, log.node)
    record = None
    if seq is not None:
        if leaf.root is None or not 0 <= seq < leaf.count:
            kind = "the run was erased" if leaf.root is None else f"it has {leaf.count} records of the run"
            raise LedgerError(
                "ledger.not_covered",
                f"the checkpoint does not cover record {seq} of {leaf.run}: {kind}",
                "write a new checkpoint and prove it then: spak ledger checkpoint",
            )
        found = [line for _, line in zip(range(leaf.count), lines, strict=False)]
        tree = merkle.Tree(found)
        if tree.size < leaf.count or merkle.root(leaf.count, tree.node) != leaf.root:
            raise _rewritten(leaf.run, f"its first {leaf.count} records are not those of the log")
        record = (seq, found[seq], merkle.inclusion(seq, leaf.count, tree.node))
    return inclusion_text(leaf, index, path, note.text(), record)


def _rewritten(run: str, why: str) -> LedgerError:
    return LedgerError(
        "ledger.rewritten",
        f"run {run} is not what the log says: {why}",
        "keep the store as evidence; `spak ledger verify --all --checkpoint FILE` lists all that differs",
    )


def _forked(why: str) -> LedgerError:
    return LedgerError(
        "ledger.forked",
        f"nothing was signed: {why}",
        "was an old copy of the store restored, or the log changed? Keep both; take back the newer store",
    )
