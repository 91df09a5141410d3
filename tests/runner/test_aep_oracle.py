"""`spak export --as aep` before the invariants of the public AEP project (aep_oracle), for all kinds of runs.

Guarded sessions and repairs are in guard/test_session.py and cli/test_repair_verb.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aep_oracle import USED_UP, Event, Oracle, trace, verdict
from host_kit import PERMITS, Look, reopen, start
from law_kit import under
from spak.errors import RunError
from spak.lang.catalog import Catalog
from spak.ledger.chain import is_record_line
from spak.ledger.files import FileLedgers
from spak.records import decode
from spak.runner import Host, Run
from spak.runner.genesis import genesis
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


def lines(path: Path) -> list[Event]:
    """A golden run in the form of the public traces."""
    found = path.read_bytes().splitlines(keepends=True)
    return trace(decode(line) for line in found if is_record_line(line))


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_every_kind_of_run_keeps_the_public_invariants(path: Path) -> None:
    assert Oracle().verdict(lines(path)) == ""


def test_the_five_kinds_are_among_them() -> None:
    found = {kind: lines(GOLDEN / f"kernel-1/{name}.jsonl") for kind, name in KINDS.items()}
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
    events = trace(record for record, _ in run.ledger.read())
    run.close()
    given = [(event["pre"]["R1"], event["post"]["R1"]) for event in events if event["opcode"] == "YIELD"]
    assert given == [("4", "6"), ("6", "7")]
    assert [event["result"].get("error_code") for event in events if event["opcode"] == "EXEC"] == [
        *[None] * 6,
        USED_UP,
    ]
    assert Oracle().verdict(events) == ""


TWO = """
task Two {
  step a: tool.write { path: "a.txt" text: "a" }
  step q: llm.query { role: "coder" prompt: "Go on?" output_var: said }
  step b: tool.write { path: "b.txt" text: said }
}
"""


def cancelled(folder: Path) -> Run:
    run = start(folder, TWO)
    run.advance("stepwise")
    run.cancel()
    return run


def taken_up(folder: Path) -> Run:
    """Its process dies in the middle of a tool, and another one goes on."""
    run = start(folder, TWO)
    run.workspace.begin(run.pending().id)
    (run.workspace.directory / "half.txt").write_text("half")
    run.ledger.close()
    run = reopen(folder)
    run.advance("stepwise")
    run.answer("yes")
    run.advance("stepwise")
    assert not (run.workspace.directory / "half.txt").exists()
    return run


def denied(folder: Path) -> Run:
    run = start(folder, TWO, law="permitted(Action) :- tool(Action, /look).")
    run.advance("stepwise")
    return run


def failing(folder: Path) -> Run:
    """A tool that is killed at every try."""
    spec = 'task Fails { step w: tool.write { path: "a.txt" text: "a" status: "crash" } }'
    run = start(folder, spec)
    run.advance("stepwise")
    return run


@pytest.mark.parametrize(
    ("make", "state"),
    [(cancelled, "cancelled"), (taken_up, "succeeded"), (denied, "refused"), (failing, "failed")],
)
def test_runs_that_something_happened_to_keep_them(
    tmp_path: Path, make: Callable[[Path], Run], state: str
) -> None:
    run = make(tmp_path)
    assert run.state.status == state
    assert verdict(record for record, _ in run.ledger.read()) == ""
    run.close()


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
    events = lines(GOLDEN / "kernel-1/undone.jsonl")
    assert Oracle().verdict(events) == ""
    change(events)
    assert code in Oracle().verdict(events)
