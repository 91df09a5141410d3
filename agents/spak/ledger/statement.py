"""What a VerificationPack states of a run that ended: an in-toto Statement v1, made from its export alone.

Takes the lines of an exported run one by one; gives the statement, and how another statement differs. It
derives no decision again: that is replay's.

A signed statement is a Sigstore bundle that holds a DSSE envelope. A bundle is written in one way: a value
that differs from it in anything is refused, so that no byte goes unchecked. docs/packs.md has the forms.
Source: seed 003, sections 3 and 11; in-toto Statement v1; DSSE 1.0.2; Sigstore bundle 0.3 (protobuf-specs).
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spak import canon
from spak.errors import UserError
from spak.kernel.seal import fold, opening
from spak.policy import approval
from spak.records import Authority, Kind, Record

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:spak:verification-pack:1"
"""The form of the predicate; another number when an older reader would misread it."""

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"

_OPENINGS = (b'{"_type":', b'{"dsseEnvelope":')


def is_header(line: bytes) -> bool:
    """True for the line with which a pack begins: a statement, or a bundle that holds one."""
    return line.startswith(_OPENINGS)


def code_of(record: Record) -> tuple[str, ...]:
    """The hash of the code that decides from this record on, where the record names it."""
    about = record.body.get("host") if record.kind == Kind.GENESIS else record.body
    if record.kind not in (Kind.GENESIS, Kind.RESUME) or not isinstance(about, dict):
        return ()
    code = about.get("kernel_code")
    return (code,) if isinstance(code, str) else ()


class Signed(NamedTuple):
    """What a bundle holds; nothing of it is verified yet."""

    payload: bytes
    key_id: str
    signature: bytes

    def is_of(self, public: str) -> bool:
        """Whether the key (base64url) signed it."""
        text = approval.encoded(self.signature)
        return self.key_id == approval.key_id(public) and approval.is_signed(public, text, pae(self.payload))


def pae(payload: bytes) -> bytes:
    """The bytes that are signed: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def signed_by(payload: bytes, private: bytes) -> dict[str, Any]:
    """The bundle of a payload, signed with a raw private key of 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private)
    public = approval.encoded(key.public_key().public_bytes_raw())
    return _bundle(Signed(payload, approval.key_id(public), key.sign(pae(payload))))


def read_bundle(value: Any) -> Signed | None:
    """What a bundle holds, or None for a value that is not exactly one."""
    try:
        envelope = value["dsseEnvelope"]
        found = envelope["signatures"][0]
        signed = Signed(
            b64decode(envelope["payload"], validate=True),
            str(found["keyid"]),
            b64decode(found["sig"], validate=True),
        )
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return signed if _bundle(signed) == value else None


class Header:
    """The first line of a pack. `statement` is None when the line is not one in canonical form."""

    def __init__(self, line: bytes) -> None:
        self.statement: Mapping[str, Any] | None = None
        self.signed: Signed | None = None
        value = _canonical(line.removesuffix(b"\n")) if line.endswith(b"\n") else None
        if value is not None and "_type" not in value:
            self.signed = read_bundle(value)
            value = None if self.signed is None else _canonical(self.signed.payload)
        if value is not None and value.get("predicateType") == PREDICATE:
            self.statement = value

    @property
    def log(self) -> str | None:
        """The proof that a log has the run, with the log's checkpoint (spak.ledger.proofs), or None."""
        predicate = (self.statement or {}).get("predicate")
        log = predicate.get("log") if isinstance(predicate, dict) else None
        return log if isinstance(log, str) else None


class Facts:
    """What the lines of an export say of their run; feed it every line, and every record."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._records = 0
        self._head = canon.ZERO
        self._summary = ""
        self._rules: Mapping[str, Any] = {}
        self._run = ""
        self._end: Mapping[str, Any] | None = None
        self._code: dict[str, None] = {}

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._end is not None

    @property
    def code(self) -> tuple[str, ...]:
        """The hashes of the kernels that decided it (`spak.data.kernel_code`), as far as it names them."""
        return tuple(self._code)

    def line(self, line: bytes) -> None:
        """Take the next line, whatever it holds."""
        self._hash.update(line)

    def record(self, record: Record) -> None:
        """Take the record of the line."""
        self._records += 1
        self._head = record.hash
        if record.kind == Kind.GENESIS:
            rules, about = record.body.get("rules"), record.body.get("host")
            self._rules = rules if isinstance(rules, dict) else {}
            self._summary = opening(self._rules.get("kernel", 0), self._rules)
            self._run = about.get("run", "") if isinstance(about, dict) else ""
        elif record.authority == Authority.COMMIT:
            self._summary = fold(self._summary, record.content)
            if record.kind == Kind.END:
                self._end = record.body
        self._code |= dict.fromkeys(code_of(record))

    def statement(self, log: str | None = None) -> dict[str, Any]:
        """The statement of the export whose lines these were; `log` is the proof that a log has the run."""
        end = self._end or {}
        best = end.get("best")
        files = best.get("files") if isinstance(best, dict) else None
        made = dict(sorted(files.items())) if isinstance(files, dict) else {}
        policy = self._rules.get("policy")
        predicate = {
            "artifacts": [{"blob": digest, "name": f"best.{role}"} for role, digest in made.items()],
            "files": {"after": end.get("r3", ""), "before": self._rules.get("r3", "")},
            "genesis": {
                "policy": policy.get("hash", "") if isinstance(policy, dict) else "",
                "rules": canon.content_hash(self._rules),
                "seed": self._rules.get("seed", 0),
                "spec": canon.digest(str(self._rules.get("spec", "")).encode()),
            },
            "kernel": {"code": list(self._code), "semantics": self._rules.get("kernel", 0)},
            "ledger": {"head": self._head, "records": self._records},
            "replay": ["spak verify-pack FILE", "spak import FILE", f"spak replay {self._run}"],
            "run": self._run,
            "state": end.get("state", ""),
            "summary": self._summary,
            **({} if log is None else {"log": log}),
        }
        exported = {"digest": {"sha256": self._hash.hexdigest()}, "name": f"{self._run}.jsonl"}
        found = [
            {"digest": {"sha256": _hex(digest)}, "name": f"best.{role}"} for role, digest in made.items()
        ]
        return {
            "_type": STATEMENT,
            "predicate": predicate,
            "predicateType": PREDICATE,
            "subject": [exported, *found],
        }


def differences(stated: Any, found: Any, path: str = "") -> Iterator[str]:
    """The members, by their paths, in which a statement is not what the ledger says."""
    if isinstance(stated, dict) and isinstance(found, dict):
        for name in sorted({*stated, *found}):
            yield from differences(stated.get(name), found.get(name), f"{path}.{name}" if path else name)
    elif stated != found or type(stated) is not type(found):
        yield path


def _canonical(text: bytes) -> dict[str, Any] | None:
    try:
        value = canon.loads(text)
        return value if isinstance(value, dict) and canon.dumps(value) == text else None
    except UserError:
        return None


def _hex(digest: Any) -> str:
    raw = approval.decoded(digest, 32) if isinstance(digest, str) else None
    return "" if raw is None else raw.hex()


def _bundle(signed: Signed) -> dict[str, Any]:
    signature = {"keyid": signed.key_id, "sig": b64encode(signed.signature).decode()}
    return {
        "dsseEnvelope": {
            "payload": b64encode(signed.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [signature],
        },
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": signed.key_id}, "tlogEntries": []},
    }
