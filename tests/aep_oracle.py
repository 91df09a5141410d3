"""The public AEP project's invariants KMC-001 to KMC-004, over `spak export --as aep` of runs of all kinds.

The checks are written here from the published description (AEP-0008 and what its trace oracle looks at); no
code of that project is used, since it has no licence. A trace reaches them in that project's form: `op` is
the opcode, registers are texts, ROLLBACK is status FAIL with `rollback`, EXHAUSTED its public error code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spak.ledger.files import FileLedgers
from spak.records import Record
from spak.runner.views.aep import snapshots

USED_UP = "AEP_ERR_WATCHDOG_EXHAUSTION"
Event = dict[str, Any]


def trace(records: Iterable[Record]) -> list[Event]:
    """A run in the form of the public traces."""
    return [public(line) for line in snapshots(records)]


def verdict(records: Iterable[Record]) -> str:
    """The first invariant that a run breaks, with why; empty for none."""
    events = trace(records)
    assert [events[0]["opcode"], events[-1]["opcode"]] == ["BOOT", "EXIT"]
    return Oracle().verdict(events)


def public(line: Mapping[str, Any]) -> Event:
    result: dict[str, Any] = {"status": "OK" if line["status"] == "OK" else "FAIL"}
    if line["status"] == "ROLLBACK":
        result["rollback"] = True
    if line["status"] == "EXHAUSTED":
        result["error_code"] = USED_UP
    before, after = ({name: str(value) for name, value in line[key].items()} for key in ("pre", "post"))
    return {"opcode": line["op"], "result": result, "pre": before, "post": after}


def of_run(runs: Path, name: str) -> str:
    """The verdict on a run in a folder of runs."""
    reader = FileLedgers(runs).reader(name)
    try:
        return verdict(record for record, _ in reader.read())
    finally:
        reader.close()


class Oracle:
    """Watches events one by one and keeps what it knows itself: steps, the last time, the last commit."""

    def __init__(self) -> None:
        self.steps: int | None = None
        self.time = ""
        self.committed: Mapping[str, str] | None = None

    def verdict(self, events: list[Event]) -> str:
        """The first invariant that is broken, with why; empty for none."""
        for number, event in enumerate(events):
            if why := self.watched(event) or self.timed(event) or self.restored(event) or self.opaque(event):
                return f"{why} ({number}, {event['opcode']})"
            self.time = event["post"]["R7"]
        return ""

    def watched(self, event: Event) -> str:
        """KMC-001: only EXEC uses a step up, and only YIELD gives more."""
        opcode, before, after = event["opcode"], int(event["pre"]["R1"]), int(event["post"]["R1"])
        if opcode == "YIELD" and after <= before:
            return "KMC-001 YIELD gives no step"
        if opcode == "EXEC" and self.steps is not None and event["result"].get("error_code") != USED_UP:
            self.steps -= 1
            if self.steps < 0:
                return "KMC-001 steps are used up and nobody says so"
        if opcode in ("BOOT", "YIELD", "COMMIT"):
            self.steps = after
        return ""

    def timed(self, event: Event) -> str:
        """KMC-002: R7 never goes back, and every commit moves it on. Texts are compared, as there."""
        after = event["post"]["R7"]
        if not after[:1].isdigit() or event["opcode"] == "BOOT":
            return ""
        if event["opcode"] == "COMMIT":
            return "KMC-002 a commit does not move R7" if after <= event["pre"]["R7"] else ""
        return "KMC-002 R7 goes back" if after < self.time else ""

    def restored(self, event: Event) -> str:
        """KMC-003: a rollback leads back to the last commit and says in R4 why; it uses that commit up."""
        if event["opcode"] != "COMMIT":
            return ""
        if event["result"]["status"] == "OK":
            self.committed = event["post"]
            return ""
        if not event["result"].get("rollback"):
            return ""
        known, self.committed = self.committed, None
        if known is None:
            return "KMC-003 nothing was committed before the rollback"
        if any(event["post"][name] != known[name] for name in ("R0", "R5", "R6")):
            return "KMC-003 registers are not those of the last commit"
        try:
            error = json.loads(event["post"]["R4"])
        except ValueError:
            error = None
        return "" if isinstance(error, dict) and "error_code" in error else "KMC-003 R4 does not say why"

    def opaque(self, event: Event) -> str:
        """KMC-004: R2 stays, and nothing of it was carried out."""
        gone = event["opcode"] != "BOOT" and event["pre"]["R2"] and not event["post"]["R2"]
        ran = event["result"].get("executed_r2") or event["result"].get("r2_executed")
        return "KMC-004 R2 is cleared or carried out" if gone or ran else ""
