"""One checkpoint of a log: signed, cosigned by the witnesses, written to the places.

Takes a log that has the leaves that are due, its private key, the last checkpoint of the store, witnesses and
places; gives the checkpoint and what went wrong on the way. The steps:

1. The last checkpoint of each place and that of the store are read. The log must continue each of them that
   its own key signed: a store that was put back to an old copy, with its log, signs nothing
   (`ledger.forked`).
2. The log of now is signed, and each witness is asked. One that is away costs its signature only.
3. The checkpoint is written to each place. One that fails keeps none of the others from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spak.errors import LedgerError
from spak.ledger.log import Log, checkpoint
from spak.ledger.note import Note, own_verifier, read
from spak.ledger.places import Place, shown
from spak.ledger.witness import Witness, cosigned


@dataclass(frozen=True, slots=True)
class Published:
    """A checkpoint, the public key that verifies it, where it was written, and what went wrong."""

    note: Note
    key: str
    places: tuple[str, ...]
    witnesses: tuple[str, ...]
    problems: tuple[str, ...]


def publish(
    log: Log,
    origin: str,
    private: bytes,
    last: Note | None,
    witnesses: Sequence[Witness] = (),
    places: Sequence[Place] = (),
) -> Published:
    """Sign, have it cosigned, write it. Raises: LedgerError `ledger.forked`, `ledger.key`."""
    key, problems = own_verifier(origin, private), []
    if last is not None and last.head().origin != origin:
        last = None  # a log under another name begins anew
    earlier, open_places = ([] if last is None else [last]), []
    for place in places:
        try:
            data = place.latest()
            note = None if data is None else read(data)
            if note is not None and not note.signed_by(key):
                raise LedgerError(
                    "ledger.place",
                    f"the last checkpoint in {shown(place.text)} is not signed with this key",
                    "give a log with another key another name, or another place",
                )
        except LedgerError as error:
            problems.append(error.message)
            continue
        open_places.append(place)
        earlier += [] if note is None else [note]
    made = checkpoint(log, origin, private, [note.head() for note in earlier])
    cosigners = []
    for witness in witnesses:
        try:
            made = cosigned(log, made, witness, 0 if last is None else last.head().size)
            cosigners.append(witness.key.name)
        except LedgerError as error:
            if error.code == "ledger.forked":
                raise
            problems.append(error.message)
    written = []
    for place in open_places:
        try:
            place.write(made)
            written.append(shown(place.text))
        except LedgerError as error:
            problems.append(error.message)
    return Published(made, str(key), tuple(written), tuple(cosigners), tuple(problems))
