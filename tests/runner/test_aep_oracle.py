"""`spak export --as aep` before the invariants of the public AEP project, KMC-001 to KMC-004.

The checks are written here from the published description (AEP-0008 and what its trace oracle looks at); no
code of that project is used, since it has no licence. A trace reaches them in that project's form: `op` is
the opcode, registers are texts, ROLLBACK is status FAIL with `rollback`, EXHAUSTED its public error code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, Look
from law_kit import under
from spak.errors import RunError
from spak.lang.catalog import Catalog
from spak.ledger.chain import is_record_line
from spak.ledger.files import FileLedgers
from spak.records import decode
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.runner.views.aep import snapshots
from spak.workspace import Workspace

GOLDEN = Path(__file__).parents[1] / "golden"
LEDGERS = sorted(GOLDEN.glob("kernel-*/*.jsonl"))
KINDS = {
    "succeeds": "hello",
    "ends badly": "watchdog",
    "asks": "build_feature",
    "rolls back": "undone",
    "uses its steps up": "budget",
}
"""A run of each kind, among the ledgers of tests/golden."""
USED_UP = "AEP_ERR_WATCHDOG_EXHAUSTION"
Event = dict[str, Any]


def trace(path: Path) -> list[Event]:
    """A run in the form of the public traces."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [public(line) for line in snapshots(decode(line) for line in lines if is_record_line(line))]


def public(line: Mapping[str, Any]) -> Event:
    result: dict[str, Any] = {"status": "OK" if line["status"] == "OK" else "FAIL"}
    if line["status"] == "ROLLBACK":
        result["rollback"] = True
    if line["status"] == "EXHAUSTED":
        result["error_code"] = USED_UP
    before, after = ({name: str(value) for name, value in line[key].items()} for key in ("pre", "post"))
    return {"opcode": line["op"], "result": result, "pre": before, "post": after}


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


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_every_kind_of_run_keeps_the_public_invariants(path: Path) -> None:
    assert Oracle().verdict(trace(path)) == ""


def test_the_five_kinds_are_among_them() -> None:
    found = {kind: trace(GOLDEN / f"kernel-1/{name}.jsonl") for kind, name in KINDS.items()}
    rolled = {kind for kind, events in found.items() if any(e["result"].get("rollback") for e in events)}
    used = {kind for kind, events in found.items() if any(e["result"].get("error_code") for e in events)}
    good = {kind for kind, events in found.items() if events[-1]["result"]["status"] == "OK"}
    assert rolled == {"rolls back"} and used == {"uses its steps up"} and good == {"succeeds", "asks"}
    assert b'"act":"ask"' in (GOLDEN / "kernel-1/build_feature.jsonl").read_bytes()


def test_a_run_whose_steps_were_extended_keeps_them_too(tmp_path: Path) -> None:
    steps = "\n".join(f'step s{n}: tool.look {{ text: "{n}" }}' for n in range(9))
    config = "CONFIG { BUDGET { steps: 4 extend_percent: 100 } }"
    run = begun(tmp_path, f"AGENT A LEVEL 2 {{ {config} START -> t TASK t {{ {steps} }} }}")
    with pytest.raises(RunError, match="above what may still be added"):
        run.extend("steps", 5)
    run.extend("steps", 2)
    run.extend("steps", 1)
    run.advance("full_auto")
    events = [public(line) for line in snapshots(record for record, _ in run.ledger.read())]
    run.close()
    given = [(event["pre"]["R1"], event["post"]["R1"]) for event in events if event["opcode"] == "YIELD"]
    assert given == [("4", "6"), ("6", "7")]
    assert [event["result"].get("error_code") for event in events if event["opcode"] == "EXEC"] == [
        *[None] * 6,
        USED_UP,
    ]
    assert Oracle().verdict(events) == ""


def begun(folder: Path, spec: str) -> Run:
    """A run of plain looks that is about to do its first step."""
    tools = {"look": Look()}
    place = Workspace(folder / "run-1/workspace", folder / "run-1/store")
    catalog = Catalog(tools={"look": Look.entry})
    body = genesis(spec, catalog, {}, place.snapshot(), 5, {"run": "run-1"}, law=under(PERMITS))
    return Run.create(FileLedgers(folder), "run-1", body, Host(tools=tools), place)


def _on(opcode: str, register: str, value: str) -> Callable[[list[Event]], None]:
    def change(events: list[Event]) -> None:
        event = next(event for event in events[2:] if event["opcode"] == opcode)
        event["post"] = {**event["post"], register: value}

    return change


def _at_rollback(register: str, value: str) -> Callable[[list[Event]], None]:
    def change(events: list[Event]) -> None:
        event = next(event for event in events if event["result"].get("rollback"))
        event["post"] = {**event["post"], register: value or event["pre"][register]}

    return change


def _yield(events: list[Event]) -> None:
    events.insert(3, {**events[3], "opcode": "YIELD", "pre": events[3]["post"]})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_yield, "KMC-001"),
        (_on("COMMIT", "R1", "0"), "KMC-001"),
        (_on("COMMIT", "R7", "1"), "KMC-002"),
        (_on("EXEC", "R7", "1"), "KMC-002"),
        (_at_rollback("R7", ""), "KMC-002"),
        (_at_rollback("R5", "another"), "KMC-003"),
        (_at_rollback("R4", "no JSON"), "KMC-003"),
        (_on("COMMIT", "R2", ""), "KMC-004"),
    ],
)
def test_the_oracle_finds_what_is_wrong(change: Callable[[list[Event]], None], code: str) -> None:
    events = trace(GOLDEN / "kernel-1/undone.jsonl")
    assert Oracle().verdict(events) == ""
    change(events)
    assert code in Oracle().verdict(events)
