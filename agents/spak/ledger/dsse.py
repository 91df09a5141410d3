"""A payload signed by one Ed25519 key, as a Sigstore bundle that holds a DSSE envelope.

Takes bytes and a raw private key; gives the bundle as a JSON value, and the payload of a bundle back. A
bundle is written in one way: a value that differs from it in anything is refused, so that no byte of it goes
unchecked. Source: DSSE 1.0.2 (secure-systems-lab/dsse), Sigstore bundle 0.3 (protobuf-specs).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from spak.policy import approval

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"


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


def sign(payload: bytes, private: bytes) -> dict[str, Any]:
    """The bundle of a payload, signed with a raw private key of 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private)
    public = approval.encoded(key.public_key().public_bytes_raw())
    return _bundle(Signed(payload, approval.key_id(public), key.sign(pae(payload))))


def read(value: Any) -> Signed | None:
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


def _bundle(signed: Signed) -> dict[str, Any]:
    signature = {"keyid": signed.key_id, "sig": b64encode(signed.signature).decode()}
    return {
        "dsseEnvelope": {
            "payload": b64encode(signed.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [signature],
        },
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": signed.key_id}},
    }
