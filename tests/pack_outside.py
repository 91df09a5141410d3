"""Packs, judged by tools of others alone: sigstore-models, securesystemslib, in-toto-attestation and SHA-256.

Nothing of SPAK is imported. A pack is what its first line, a Sigstore bundle, says of the bytes that follow.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode
from typing import Any


def problem(data: bytes, public: str, key_id: str) -> str:
    """What is wrong with a signed pack; empty where nothing is. Any error of a tool is a finding."""
    try:
        return _checked(data, public, key_id)
    except Exception as error:  # whatever a tool raises over a damaged file refuses it
        return f"{type(error).__name__}: {error}"


def _checked(data: bytes, public: str, key_id: str) -> str:
    from google.protobuf import json_format
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey
    from sigstore_models.bundle.v1 import Bundle

    line, rest = data[: data.index(b"\n")], data[data.index(b"\n") + 1 :]
    bundle = Bundle.from_json(line)
    if json.loads(bundle.to_json()) != json.loads(line):
        return "the bundle has more than its form"
    value: Any = json.loads(line)
    if value["verificationMaterial"]["publicKey"]["hint"] != key_id:
        return "another key is named"
    raw = urlsafe_b64decode(public + "=").hex()
    key = SSlibKey(key_id, "ed25519", "ed25519", {"public": raw})
    envelope = Envelope.from_dict(json.loads(line)["dsseEnvelope"])
    if envelope.to_dict() != value["dsseEnvelope"]:
        return "the envelope has more than its form"
    envelope.verify([key], 1)
    stated = json_format.Parse(envelope.payload, statement_pb2.Statement())
    Statement.copy_from_pb(stated).validate()
    wanted = stated.subject[0].digest["sha256"]
    return "" if hashlib.sha256(rest).hexdigest() == wanted else "the run is not the one that was signed"
