"""A spec's own ledger: who merged what, on whose approval and which evidence; tags that moved.

Each record is canonical JSON that names the hash of the record before it, and is signed with the platform's
key (store/runs/signing.py). `append` writes one inside the transaction of what it reports; `verify` reads a
spec's records again and says what is wrong with them; `export` makes a file that is verified elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.dispatch import receiver
from django.utils import timezone

from spak import canon
from spak.evolve import spec_history
from spak.policy import approval
from spakweb.store.reviews.models import HistoryRecord
from spakweb.store.runs.signing import private_key
from spakweb.store.specs.models import Spec
from spakweb.work.specs.actions import PROMOTED, tag_moved


def _key() -> tuple[Ed25519PrivateKey, str]:
    key = Ed25519PrivateKey.from_private_bytes(private_key())
    return key, approval.key_id(approval.encoded(key.public_key().public_bytes_raw()))


def append(spec: Spec, what: str, body: Mapping[str, Any]) -> HistoryRecord:
    """The next record; the caller holds the row of the spec."""
    last = spec.history.order_by("-number").first()
    number, previous = (last.number + 1, last.hash) if last else (1, canon.ZERO)
    line = canon.dumps(
        {
            "previous": previous,
            "number": number,
            "at": int(timezone.now().timestamp() * 1000),
            "what": what,
            "body": dict(body),
        }
    )
    digest, (key, name) = canon.digest(line), _key()
    signature = approval.encoded(key.sign(digest.encode()))
    return HistoryRecord.objects.create(
        spec=spec, number=number, line=line, hash=digest, signature=signature, key=name
    )


@receiver(tag_moved, dispatch_uid="reviews.history")
def of_tag(sender: Any, user: Any, tag: Any, old: Any, gone: bool = False, **ignored: Any) -> None:
    """A tag that moves by rules (`specs.actions.PROMOTED`) has a record; others are events of the team."""
    if tag.name in PROMOTED:
        body = {
            "tag": tag.name,
            "version": None if gone else tag.version.number,
            "before": old.number if old else None,
            "text": "" if gone else tag.version.content_hash,
            "by": user.get_username(),
        }
        append(tag.spec, "tag", body)


def read(record: HistoryRecord) -> dict[str, Any]:
    """What a record of the history holds, as the JSON object of its line."""
    return dict(canon.loads(bytes(record.line)))


def verify(spec: Spec) -> list[str]:
    """What is wrong with the records, in words; empty when chain and signatures hold."""
    return spec_history.verify(_records(spec), _public())[1]


def export(spec: Spec) -> str:
    """Versions and records as one file, which `spak blame --history` verifies and reads."""
    versions = [
        spec_history.Version(
            one.number,
            one.text,
            one.author.get_username(),
            int(one.made_at.timestamp() * 1000),
            one.message,
            one.provenance if one.provenance.get("patch") else None,
        )
        for one in spec.versions.select_related("author").order_by("number")
    ]
    rows = spec_history.lines(spec.name, _public(), versions, _records(spec))
    return "".join(f"{row}\n" for row in rows)


def _records(spec: Spec) -> list[spec_history.Record]:
    return [
        spec_history.Record(bytes(one.line).decode("utf-8", "replace"), one.hash, one.signature)
        for one in spec.history.order_by("number")
    ]


def _public() -> str:
    return approval.encoded(_key()[0].public_key().public_bytes_raw())
