"""Asking a witness to cosign a checkpoint: the client's side of c2sp.org/tlog-witness.

Takes a log, a checkpoint of it and a witness (its address and its public key); gives the note with
that witness's signature. A witness remembers the last checkpoint of each log that it cosigned, and signs
only what continues it: two histories that are shown to two people cannot both carry its signature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spak.errors import LedgerError
from spak.ledger.log import Log, consistency
from spak.ledger.note import Note, Verifier, signatures

TIMEOUT_S = 30.0
MAX_BYTES = 64 << 10
_SIZE = re.compile(r"[0-9]{1,19}\s*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Witness:
    """Where a witness takes checkpoints (the prefix before /add-checkpoint), and its public key."""

    url: str
    key: Verifier


def cosigned(log: Log, note: Note, witness: Witness, old: int) -> Note:
    """The checkpoint with the signature of a witness that has seen `old` leaves, as far as we know.

    Raises: LedgerError `ledger.forked` where the witness has seen another history; `ledger.witness` where it
    cannot be reached, does not know the log, or gives no signature that is right.
    """
    size = note.head().size
    for _ in range(2):
        status, text = _post(f"{witness.url.rstrip('/')}/add-checkpoint", consistency(log, old, note))
        if status == 200:
            return _signed(note, witness, text)
        seen = int(text) if status == 409 and _SIZE.match(text) else None
        if status == 422 or (status == 409 and (seen is None or seen == old or seen > size)):
            raise LedgerError(
                "ledger.forked",
                f"the witness {witness.key.name} has seen another history of this log"
                + (f", with {seen} leaves" if seen is not None and seen > size else ""),
                "was an old copy of the store restored? Keep it, and take back the newer store",
            )
        if seen is None:
            break
        old = seen
    raise _failed(witness, f"it answered {status}: {text.strip()[:100]}")


def _signed(note: Note, witness: Witness, text: str) -> Note:
    """The note with one line of the answer that is the witness's own and right: with all of them it could
    become a note that nobody reads."""
    try:
        answer = Note(note.body, signatures(text))
        own = tuple(line for line in answer.lines if Note(note.body, (line,)).signed_by(witness.key))
    except LedgerError as error:
        raise _failed(witness, error.message) from error
    if not own:
        raise _failed(witness, "its answer has no signature of its key")
    return Note(note.body, (*note.lines, own[0]))


def _post(url: str, body: str) -> tuple[int, str]:
    import httpx

    try:
        with httpx.stream("POST", url, content=body.encode(), timeout=TIMEOUT_S) as response:
            data = b""
            for part in response.iter_bytes():
                data += part
                if len(data) > MAX_BYTES:
                    break
            return response.status_code, data[:MAX_BYTES].decode(errors="replace")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise LedgerError(
            "ledger.witness", f"the witness at {url} was not reached: {error}", "is its address right?"
        ) from error


def _failed(witness: Witness, why: str) -> LedgerError:
    return LedgerError(
        "ledger.witness",
        f"the witness {witness.key.name} did not cosign: {why}",
        "does it know this log and its key? the next checkpoint asks it again",
    )
