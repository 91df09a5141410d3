"""A run as register snapshots of AEP, before and after each operation, for trace oracles of others.

Takes records; gives one object per operation, by replay:

    {"seq", "op", "task", "step", "status", "code", "pre": {"R0"...}, "post": {"R0"...}}

The registers mean what they mean in the public implementation (docs/registers.md has its map beside ours):

    R0 id, set at BOOT    R1 steps left    R2 opaque, never read    R3 snapshot, JSON without R3 and R4
    R4 error, JSON        R5 tool          R6 OK or FAIL            R7 time of the last commit

A transaction is LOAD, VALIDATE, EXEC and COMMIT. `status` is OK, FAULT, ROLLBACK (R0, R5 and R6 are those
of the snapshot again and R4 says why) or EXHAUSTED (no step is left). The beginning and each rollback are
commits of their own, since a rollback goes back to a commit. YIELD is an extension of the budget of steps;
what was added to another budget, which AEP does not have, and what was refused is no operation. Only BOOT and
commits move R7, and it never goes back, whatever the clock does.
`code` is ours; R4 holds the public one: in capitals, without `run.`, with `_` for a dot.
Source: seed 001 and its public repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spak import canon
from spak.kernel.state import Effect, State
from spak.program import Budgets
from spak.records import Kind, Record
from spak.runner.views.turns import Turn, turns

REGISTERS = tuple(f"R{number}" for number in range(8))
SNAPSHOT = ("R0", "R1", "R2", "R5", "R6", "R7")
"""What a snapshot holds: not itself, or it would grow with each one."""

RESTORED = ("R0", "R5", "R6")
UNLIMITED = 2**53 - 1
"""R1 at BOOT of a run without a budget of steps."""


def snapshots(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The operations of a run, in order. Raises: LedgerError."""
    machine: _Machine | None = None
    for turn in turns(records):
        machine = machine or _Machine(turn.rules.program.budgets)
        yield from machine.of(turn)


def public(code: str) -> str:
    """The public form of one of our error codes: `run.watchdog_loop` is WATCHDOG_LOOP."""
    return code.removeprefix("run.").replace(".", "_").upper()


class _Machine:
    def __init__(self, budgets: Budgets) -> None:
        self.registers: dict[str, Any] = dict.fromkeys(REGISTERS, "") | {"R1": 0, "R7": 0}
        self.steps = budgets.steps or UNLIMITED
        self.saved: dict[str, Any] = {}

    def of(self, turn: Turn) -> Iterator[dict[str, Any]]:
        if turn.proposal.kind == Kind.GENESIS:
            yield self.boot(turn)
            yield self.commit(turn.proposal)
        effect = turn.done
        if effect is not None:
            yield from self.transaction(effect, turn)
        for record in turn.commits:
            if record.kind == Kind.PERMIT and record.body.get("allow") is False:
                yield self.load(record, str(record.body.get("name", "")))
                yield self.back("VALIDATE", "FAULT", record, str(record.body.get("code", "")))
            elif record.kind == Kind.EXTEND:
                yield from self.extension(record, turn.after)
            elif record.kind == Kind.END:
                yield self.exit(record, turn.after)

    def boot(self, turn: Turn) -> dict[str, Any]:
        host = turn.proposal.body.get("host") or {}
        run, name = str(host.get("run", "")), turn.rules.program.name
        return self.op("BOOT", turn.proposal, R0=run, R1=self.steps, R2=name, R6="OK", R7=turn.proposal.at)

    def extension(self, record: Record, state: State) -> Iterator[dict[str, Any]]:
        """YIELD, where steps were added."""
        if record.body.get("allow") is True and record.body.get("budget") == "steps":
            self.steps += int(record.body["by"])
            yield self.op("YIELD", record, R1=max(self.steps - state.r1.steps, 0))

    def transaction(self, effect: Effect, turn: Turn) -> Iterator[dict[str, Any]]:
        record = turn.proposal
        yield self.load(record, effect.name or effect.act)
        yield self.op("VALIDATE", record)
        left = max(self.steps - turn.after.r1.steps, 0)
        yield self.op("EXEC", record, "OK" if left else "EXHAUSTED", R1=left)
        route = turn.first(Kind.ROUTE)
        code = str(route.body.get("code", "")) if route is not None else ""
        if turn.rolled_back:
            code = code or str((turn.after.r4 or {}).get("code", ""))
            yield self.back("COMMIT", "ROLLBACK", record, code, R7=self.moved(record))
            yield self.commit(record)
            return
        failed = route is not None and route.body.get("signal") in ("fail", "timeout")
        error = self.error(record, code) if failed and code else ""
        yield self.commit(record, code, R4=error, R6="FAIL" if failed else "OK")

    def commit(self, record: Record, code: str = "", **changes: Any) -> dict[str, Any]:
        return self.op("COMMIT", record, "OK", code, **changes, R7=self.moved(record))

    def moved(self, record: Record) -> int:
        return max(int(self.registers["R7"]) + 1, record.at)

    def load(self, record: Record, name: str) -> dict[str, Any]:
        self.saved = {register: self.registers[register] for register in SNAPSHOT}
        return self.op("LOAD", record, R3=canon.dumps(self.saved).decode(), R5=name)

    def back(self, op: str, status: str, record: Record, code: str, **changes: Any) -> dict[str, Any]:
        restored = changes | {register: self.saved[register] for register in RESTORED}
        return self.op(op, record, status, code, R4=self.error(record, code), **restored)

    def exit(self, record: Record, state: State) -> dict[str, Any]:
        good = state.status == "succeeded"
        code = str((record.body.get("codes") or [""])[0])
        error = self.error(record, code) if code else self.registers["R4"]
        status = "OK" if good else "FAULT"
        return self.op("EXIT", record, status, code, R4=error, R6="OK" if good else "FAIL")

    def error(self, record: Record, code: str) -> str:
        trace = f"{record.task}/{record.step}: record {record.seq}"
        value = {"timestamp": record.at, "error_code": public(code) or "UNKNOWN", "trace": trace}
        return canon.dumps(value).decode()

    def op(
        self, op: str, record: Record, status: str = "OK", code: str = "", **changes: Any
    ) -> dict[str, Any]:
        before, self.registers = self.registers, {**self.registers, **changes}
        return {
            "seq": record.seq,
            "op": op,
            "task": record.task,
            "step": record.step,
            "status": status,
            "code": code,
            "pre": before,
            "post": self.registers,
        }
