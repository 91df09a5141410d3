"""Reading a run without its lease: its view, its records, the prompts it sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak import canon
from spak.cli.artifacts import with_artifacts
from spak.costs import cost_of
from spak.errors import UsageError
from spak.kernel.replay import Replay
from spak.kernel.state import State
from spak.ledger.files import FileLedgers
from spak.policy.history.monitors import monitors
from spak.ports import Ledger
from spak.records import Kind, Record
from spak.runner import View, view
from spak.runner.blobs import prompt_of
from spak.runner.repeats import OtherPrompts
from spak.runner.resume import look
from spak.runner.views import causes, own_tests, refusals, witnessed
from spak.runner.views.as_recorded import Reading
from spak.runner.views.tally import Tally

MAX_LISTED = 20


def records_of(root: Path, run: str) -> Iterator[Record]:
    """The records of a run in order."""
    reader = FileLedgers(root).reader(run)
    try:
        for record, _ in reader.read():
            yield record
    finally:
        reader.close()


def replayed(root: Path, run: str) -> Replay:
    """The state of a run and its rules as its ledger has them now."""
    reader = FileLedgers(root).viewer(run)
    try:
        if (taken := look(reader)) is not None:
            return taken.replay
        found = Replay()
        for record, _ in reader.read():
            found.feed(record)
        return found
    finally:
        reader.close()


def view_of(root: Path, run: str, strict: bool = False) -> View:
    """The view of a run as its ledger has it now; it may be moving. From its last snapshot on, so that it
    costs the same at any length. A `strict` one is not of a run that this kernel does not replay: it is for
    who goes on with what the run says. Raises: LedgerError."""
    reader = FileLedgers(root).viewer(run)
    try:
        if (taken := look(reader)) is not None:
            found, tally, others = taken.replay, taken.tally, taken.history.others
        else:
            found, tally, others = Replay() if strict else Reading(), Tally(), OtherPrompts()
            for record, _ in reader.read():
                found.feed(record)
                tally.feed(record)
                others.feed(record)
        effect = found.state.r6
        waits = (
            not found.state.ended and effect is not None and effect.cls == "ask" and effect.act != "approve"
        )
        prompt = None
        if waits and effect is not None and found.rules is not None:
            prompt = prompt_of(effect, reader.blobs, found.rules)
        stop = "" if is_held(root / run) else "paused"
        budgets = None if found.rules is None else found.rules.program.budgets
        cause, rests_on = why(reader, found.state)
        seen = view(run, found.state, reader.head, reader.count, stop, prompt, budgets, cause, rests_on)
        seen = replace(seen, recorded=others.to_json(), monitors=_monitors(found), checked=tally.checked)
        seen = replace(seen, by_own_tests=own_tests.known(tally.apart), witnessed=_witnessed(reader, tally))
        return seen if found.rules is None else with_artifacts(seen, root / run, found.rules.r3)
    finally:
        reader.close()


def why(ledger: Ledger, state: State) -> tuple[str, tuple[dict[str, Any], ...]]:
    """Why a run ended that did not succeed and the records that this rests on, from its newest records;
    nothing of any other."""
    if not state.ended or state.status == "succeeded":
        return "", ()
    newest = [record for record, _ in ledger.read(max(ledger.count - causes.TAIL, 0))]
    cause = causes.sentence(newest)
    return cause, refusals.evidence(newest, cause)


def _witnessed(ledger: Ledger, tally: Tally) -> dict[str, int] | None:
    calls: dict[Any, Any] = {}
    for record, _ in ledger.read() if tally.witnesses else ():
        witnessed.feed(calls, record)
    return witnessed.known(calls)


def _monitors(found: Replay) -> tuple[dict[str, Any], ...]:
    if found.rules is None or not found.rules.gate.folds:
        return ()
    gate = found.rules.gate
    return tuple(item.to_json() for item in monitors(gate.policy, found.state.r7.history))


def is_held(folder: Path) -> bool:
    """Whether a process holds the run's lease now; taking it to find out would refuse somebody else."""
    try:
        found = (folder / "lock").stat()
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(line.split()[1] == "FLOCK" and place in line.split() for line in locks)


def prompt_at(root: Path, run: str, seq: int) -> str:
    """The prompt that a permit sent, made again from the records before it.

    Raises: UsageError `usage.record` when that record asked nothing.
    """
    reader = FileLedgers(root).reader(run)
    asked: list[int] = []
    try:
        found = Replay()
        for record, _ in reader.read():
            found.feed(record)
            effect = found.state.r6
            if effect is not None and effect.items and effect.id == record.content:
                assert found.rules is not None
                if record.seq == seq:
                    return prompt_of(effect, reader.blobs, found.rules).text
                asked.append(record.seq)
    finally:
        reader.close()
    hint = f"these did: {', '.join(map(str, asked))}" if asked else "no record of this run did"
    raise UsageError("usage.record", f"record {seq} of run {run} asked nothing", hint)


def calls_of(root: Path, run: str) -> list[dict[str, Any]]:
    """The answers of models in a run, in order, with what each took as far as the engine said it."""
    found = []
    for record in records_of(root, run):
        side = record.side or {}
        cost = cost_of(side)
        if record.authority == "proposal" and cost.answers:
            about = {name: side[name] for name in ("cost_nanousd", "latency_ms", "tries") if name in side}
            place = {"seq": record.seq, "task": record.task, "step": record.step, "by": side.get("by", "")}
            found.append({**place, **side.get("usage", {}), "tokens": cost.tokens, **about})
    return found


def guarded_lines(root: Path, run: str) -> list[str]:
    """What the agent of a guarded session did, for a terminal; nothing of another run."""
    from spak.runner.views import guarded

    labels = FileLedgers(root).genesis(run).body.get("host", {}).get("labels") or {}
    return guarded.lines(records_of(root, run)) if "agent" in labels else []


def proof_at(root: Path, run: str, seq: int) -> tuple[dict[str, Any], str]:
    """The decision that a permit records, with its proof or why-not, as JSON and as text: derived again.

    The same of a route that the law derived. Raises: UsageError `usage.record` when no policy decided it.
    """
    found = Replay()
    decided: list[int] = []
    for record in records_of(root, run):
        found.feed(record)
        judged = found.judged.get(record.content) if record.kind in (Kind.PERMIT, Kind.ROUTE) else None
        if judged is None or found.rules is None:
            continue
        if record.seq == seq:
            gate = found.rules.gate
            about = {"run": run, "seq": seq, "task": record.task, "step": record.step, "policy": gate.hash}
            told = (
                ("act", "name", "allow", "code")
                if record.kind == Kind.PERMIT
                else ("signal", "by", "to", "code")
            )
            decision = {name: record.body.get(name, "") for name in told}
            shown = {
                **about,
                **decision,
                "args": record.body.get("args"),
                **canon.loads(gate.explanation(judged)),
            }
            return shown, gate.text(judged)
        if len(decided) < MAX_LISTED:
            decided.append(record.seq)
    listed = ", ".join(map(str, decided))
    hint = f"these are: {listed}" if listed else "it decided nothing yet"
    raise UsageError("usage.record", f"record {seq} of run {run} is not a permit of a policy", hint)
