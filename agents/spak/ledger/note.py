"""Signed notes and checkpoints in the forms of C2SP: signed-note, tlog-checkpoint, tlog-cosignature.

Takes and gives texts; knows Ed25519 keys by their verifier texts (`name+id+base64`, as `str(Verifier)` writes
them). It does no input or output, asks for no time, and knows nothing of runs.

    example.com/log                                  the log's name (origin)
    42                                               the number of leaves
    qINS1GRFhWHwdkUeqLEoP4yEMkTBBzxBkGwGQlVlVcs=     the root of the tree (RFC 9162), in base64

    — example.com/log 8J2...                         id of the key (4 bytes) and signature, in base64

Kinds of keys: LOG signs the text; WITNESS signs it with a time before it (a cosignature), and its signature
begins with the time in 8 bytes. Signatures of unknown keys are ignored; a wrong one of a known key is an
error.

Source: c2sp.org/signed-note, c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature (Ed25519 only).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass

from spak.errors import LedgerError

LOG, WITNESS = 1, 4
"""Kinds of keys, by the byte that the formats give them."""
MAX_BYTES = 1 << 20
MAX_SIGNATURES = 64

_NAME = re.compile(r"[^\s+\x00-\x1f\x7f]{1,255}\Z")
_SIZE = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_LINE = re.compile(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/=]+)\Z")


@dataclass(frozen=True, slots=True)
class Verifier:
    """The public key of a log or of a witness, with its name."""

    name: str
    kind: int
    public: bytes

    @property
    def id(self) -> bytes:
        """Four bytes by which a signature names its key."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{encoded(bytes([self.kind]) + self.public)}"


@dataclass(frozen=True, slots=True)
class Head:
    """What a checkpoint says: the log `origin` had `size` leaves, and their tree this root."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A text with signature lines (each with its newline), not verified yet."""

    body: str
    lines: tuple[str, ...]

    def text(self) -> str:
        """The note as it is kept and sent."""
        return self.body + "\n" + "".join(self.lines)

    def signed_by(self, key: Verifier) -> bool:
        """True if `key` signed the text. Raises: LedgerError `ledger.signature` for a wrong signature."""
        return self.signed_at(key) is not None

    def signed_at(self, key: Verifier) -> int | None:
        """When `key` signed, in seconds since 1970 (0 for a log's key); None if it did not.

        Raises: LedgerError `ledger.signature` for a wrong signature.
        """
        found = None
        for line in self.lines:
            name, raw = _signature(line)
            if name == key.name and raw[:4] == key.id:
                found = _checked(key, self.body, raw[4:])
        return found

    def head(self) -> Head:
        """What it says, if it is a checkpoint. Raises: LedgerError `ledger.checkpoint`."""
        lines = self.body.split("\n")
        root = _decoded(lines[2]) if len(lines) > 3 else None
        if root is None or len(root) != 32 or not all(lines[:-1]) or not _SIZE.match(lines[1]):
            raise _no_checkpoint("it lacks the lines of name, size and root")
        return Head(lines[0], int(lines[1]), root)


def is_name(text: str) -> bool:
    """True for what can name a log or a witness."""
    return _NAME.match(text) is not None


def verifier(text: str) -> Verifier:
    """The key that a verifier text names. Raises: LedgerError `ledger.key`."""
    name, _, rest = text.strip().partition("+")
    digits, _, material = rest.partition("+")
    raw = _decoded(material) or b""
    if is_name(name) and len(raw) == 33 and raw[0] in (LOG, WITNESS):
        key = Verifier(name, raw[0], raw[1:])
        if digits == key.id.hex():
            return key
    raise LedgerError(
        "ledger.key",
        "this is not the public key of a log or a witness",
        "it is one line, name+id+key, as `spak ledger checkpoint` prints it",
    )


def own_verifier(name: str, private: bytes) -> Verifier:
    """The public half of a log's key. Raises: LedgerError `ledger.key` for what cannot be a log's name."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not is_name(name):
        raise LedgerError(
            "ledger.key",
            f"{name!r} cannot name a log",
            "use a name such as example.com/team, without + and spaces",
        )
    public = Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    return Verifier(name, LOG, public)


def signature(text: str, name: str, private: bytes) -> str:
    """The signature line of the log `name` under a text. Raises: LedgerError `ledger.key`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = Ed25519PrivateKey.from_private_bytes(private).sign(text.encode())
    return f"\u2014 {name} {encoded(own_verifier(name, private).id + raw)}\n"


def sign(head: Head, private: bytes) -> Note:
    """The checkpoint, signed with the log's key. Raises: LedgerError `ledger.key`."""
    return Note(head.text(), (signature(head.text(), head.origin, private),))


def read(data: bytes) -> Note:
    """The note in these bytes, its signatures not verified yet. Raises: LedgerError `ledger.checkpoint`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _no_checkpoint("it is not UTF-8") from error
    body, gap, rest = text.rpartition("\n\n")
    if not gap or len(data) > MAX_BYTES or not rest.endswith("\n") or _CONTROL.search(text):
        raise _no_checkpoint("it is not a text with signature lines after an empty line")
    return Note(body + "\n", signatures(rest))


def signatures(text: str) -> tuple[str, ...]:
    """The signature lines of a text that has nothing else. Raises: LedgerError `ledger.checkpoint`."""
    lines = text.split("\n")
    if lines.pop() or not 0 < len(lines) <= MAX_SIGNATURES:
        raise _no_checkpoint(f"it has no signature line, or more than {MAX_SIGNATURES}")
    for line in lines:
        _signature(line)
    return tuple(line + "\n" for line in lines)


def trusted(data: bytes, key: Verifier, witnesses: tuple[Verifier, ...] = ()) -> tuple[Note, Head]:
    """A checkpoint that the log's key signed, and each of the witnesses.

    Raises: LedgerError `ledger.checkpoint` for other bytes, `ledger.signature` for another log, for a missing
    or for a wrong signature.
    """
    note = read(data)
    head = note.head()
    if head.origin != key.name:
        raise _unsigned(f"the checkpoint is of the log {head.origin}, the key of {key.name}")
    for one in (key, *witnesses):
        if not note.signed_by(one):
            raise _unsigned(f"the checkpoint is not signed by {one.name}")
    return note, head


def encoded(raw: bytes) -> str:
    """Bytes in the base64 of these formats."""
    return b64encode(raw).decode()


def decoded_hash(text: str) -> bytes:
    """The hash that a line holds. Raises: LedgerError `ledger.proof`."""
    raw = _decoded(text)
    if raw is None or len(raw) != 32:
        raise LedgerError("ledger.proof", "a line of the proof is not a hash", "make the proof again")
    return raw


def _checked(key: Verifier, body: str, raw: bytes) -> int:
    """The time of a signature that is right."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    moment, text = 0, body
    if key.kind == WITNESS:
        moment, raw = int.from_bytes(raw[:8], "big"), raw[8:]
        text = f"cosignature/v1\ntime {moment}\n{body}"
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(raw, text.encode())
    except (InvalidSignature, ValueError) as error:
        raise _unsigned(f"the signature of {key.name} is wrong") from error
    return moment


def _signature(line: str) -> tuple[str, bytes]:
    match = _LINE.match(line.rstrip("\n"))
    raw = _decoded(match[2]) if match else None
    if match is None or raw is None or len(raw) < 5:
        raise _no_checkpoint("a signature line cannot be read")
    return match[1], raw


def _decoded(text: str) -> bytes | None:
    try:
        raw = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return None
    return raw if encoded(raw) == text else None


def _no_checkpoint(why: str) -> LedgerError:
    return LedgerError(
        "ledger.checkpoint",
        f"this is no checkpoint: {why}",
        "take the file that `spak ledger checkpoint` wrote, or the JSON object {run, count, head}",
    )


def _unsigned(message: str) -> LedgerError:
    return LedgerError(
        "ledger.signature",
        message,
        "compare the key with the one that the log's operator gave you; trust no other",
    )
