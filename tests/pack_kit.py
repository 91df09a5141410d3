"""Packs for tests and benchmarks: of every golden run, signed, in a log, and tampered with."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spak.ledger import MemoryLedgers, import_, merkle, pack, proofs
from spak.ledger.note import Head, Verifier, own_verifier, sign
from spak.policy import approval

GOLDEN = sorted((Path(__file__).resolve().parent / "golden" / "kernel-1").glob("*.jsonl"))
PRIVATE = bytes(range(32))
PUBLIC = approval.encoded(Ed25519PrivateKey.from_private_bytes(PRIVATE).public_key().public_bytes_raw())
LOG = own_verifier("example.com/log", PRIVATE)


def packed(file: Path, private: bytes | None = PRIVATE, log: str | None = None) -> bytes:
    """The pack of an exported run."""
    ledgers, out = MemoryLedgers(), io.BytesIO()
    with file.open("rb") as stream:
        run = import_(stream, ledgers)
    pack.write(ledgers.reader(run), out, private, log)
    return out.getvalue()


def logged(file: Path, erased: bool = False, count: int | None = None) -> tuple[str, Verifier]:
    """The proof that a log of three runs has this one (its first `count` records), and the log's key."""
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if line.startswith(b'{"#":')]
    run, lines = json.loads(lines[0])["body"]["host"]["run"], lines[:count]
    root = None if erased else merkle.root(len(lines), merkle.Tree(lines).node)
    leaf = proofs.Leaf(run, len(lines), json.loads(lines[-1])["#"], root)
    others = [proofs.Leaf(f"other-{n}", 3, "A" * 43, bytes(32)) for n in range(2)]
    tree = merkle.Tree([others[0].text(), leaf.text(), others[1].text()])
    note = sign(Head(LOG.name, 3, merkle.root(3, tree.node)), PRIVATE)
    return proofs.inclusion_text(leaf, 1, merkle.inclusion(1, 3, tree.node), note.text()), LOG


def packs() -> Iterator[tuple[str, bytes]]:
    """More than 100 packs, by name: of each golden run unsigned, signed, and with proofs of a log."""
    for file in GOLDEN:
        proof = logged(file)[0]
        yield f"{file.stem}-plain", packed(file, None)
        yield f"{file.stem}-signed", packed(file)
        yield f"{file.stem}-logged", packed(file, None, proof)
        yield f"{file.stem}-both", packed(file, log=proof)
        yield f"{file.stem}-part", packed(file, log=logged(file, count=3)[0])


def tampered(data: bytes, chance: random.Random) -> bytes:
    """The pack with one change in it: of a byte, or of the lines."""
    lines = data.splitlines(keepends=True)
    kind = chance.choice(("flip", "flip", "header", "drop", "swap", "double", "cut", "insert"))
    at = chance.randrange(len(lines))
    if kind == "flip":
        place = chance.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    if kind == "header":
        place = chance.randrange(len(lines[0]))
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(7)]) + data[place + 1 :]
    if kind == "cut":
        return data[: chance.randrange(len(data))]
    if kind == "insert":
        place = chance.randrange(len(data))
        return data[:place] + bytes([chance.randrange(32, 127)]) + data[place:]
    if kind == "drop":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    else:
        other = (at + 1) % len(lines)
        lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)
