"""What a person may say to a session that runs: what waits, an approval, an answer, take changes back.

Takes a session and one request as JSON; gives its answer. It decides nothing: an approval is verified by the
kernel, and what is taken back is judged as any change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.errors import RunError, UsageError
from spak.guard.session import Session
from spak.records import Authority
from spak.tools.outside import MOST_QUESTION


def answers(session: Session, request: Mapping[str, Any]) -> dict[str, Any]:
    """Raises: UserError, where it is not done."""
    match request:
        case {"do": "asks"}:
            return session.people.waiting()
        case {"do": "approve", "body": Mapping() as body}:
            session.people.decided(body)
            return {}
        case {"do": "answer", "question": str(question), "text": str(text)} if len(text) <= MOST_QUESTION:
            session.people.answered(question, text)
            return {}
        case {"do": "back", "record": int(record)}:
            paths = session.take_back(root_at(session, record))
            return {"paths": paths[:1000], "changed": len(paths), **session.home()}
    raise UsageError("guard.request", "the session knows no such request", "spak guard --help lists them")


def root_at(session: Session, record: int) -> str:
    """The root of the files after that record. Raises: RunError `guard.no_record`."""
    found, last = "", -1
    for one, _ in session.run.ledger.read():
        if one.seq > record:
            break
        last = one.seq
        if one.seq == 0:
            found = str(one.body["rules"]["r3"])
        elif one.authority == Authority.COMMIT and isinstance(one.body.get("r3"), str):
            found = one.body["r3"]
    if last != record:
        raise RunError("guard.no_record", f"the run has no record {record}", "spak show RUN lists them")
    return found
