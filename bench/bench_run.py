"""Durable steps and replay: what kernel, runner and ledger cost together, beside two floors of the same run.

Loops of N tool steps whose tools answer 100 random bytes: no sandbox, a real ledger and a real workspace on
disk. `write` makes each step durable by itself though it writes nothing, `change` gives one file of 1 KB a
new content each time, `pure` lets steps share an fsync. Floors: 400 bytes appended and fdatasynced, and one
row inserted and committed in SQLite (WAL, FULL). Figures: CPU milliseconds per step over the larger floor,
ledger fsyncs per step (workspace fsyncs apart), bytes per step at 100 and 5,000 steps, resident memory,
replayed records a second, under the shipped law beside those before ADR 0138 (bench/RESULTS.md, its machine);
and what the walls around a workspace add to a step, run by turns with and without them
(bench.step_walls). The runs are judged by one rule that permits everything; the last ones again by the
shipped constitution.
"""

from __future__ import annotations

import inspect
import os
import secrets
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.sizes import sized
from spak.cancel import Cancel
from spak.kernel import gate, rules
from spak.kernel.replay import Replay, replay
from spak.lang import parse
from spak.lang.catalog import Catalog, ToolEntry
from spak.ledger.files import FileLedgers
from spak.policy.law import Law
from spak.ports import Call, ToolResult
from spak.program import compile as compile_program
from spak.runner import Host, Run
from spak.runner.genesis import constitution, genesis
from spak.workspace import Workspace

FEW, MANY, MOST = sized(100, 10), sized(1000, 30), sized(5000, 60)
"""Steps of the runs."""
LAWS = sized(5, 1)
"""Pairs of runs that tell what the law costs."""
ANY = {"type": "object"}
SPEC = """
AGENT Bench LEVEL 5 {{
  CONFIG {{ BUDGET {{ steps: {steps} elapsed_s: 100000 }} }}
  START -> first
  TASK first {{ step a: tool.{tool} {{ text: "a" }} NEXT {{ success -> t }} }}
  TASK t {{ step a: tool.{tool} {{ text: "{text}" }} NEXT {{ success -> t }} }}
}}
"""


class Answer:
    """A tool that does nothing but answer 100 random bytes; its class says how durable the step must be."""

    def __init__(self, name: str, effect: Any) -> None:
        self.entry = ToolEntry(name, 1, "answers", ANY, effect, sandboxed=False)

    def run(self, call: Call) -> ToolResult:
        text = secrets.token_hex(50)
        return ToolResult("exited", 0, text.encode(), len(text), key={"text": text})


class Write(Answer):
    """As Answer, and each call gives one small file of the workspace another content."""

    def run(self, call: Call) -> ToolResult:
        result = super().run(call)
        (call.workspace / "kernel.c").write_bytes(result.output * 10)
        return result


TOOLS = {
    "pure": Answer("pure", "pure"),
    "write": Answer("write", "effect"),
    "change": Write("change", "effect"),
}


class _Timed(Workspace):
    """A workspace that adds up the CPU time of its transactions, in the kernel too."""

    spent_ns = 0

    def begin(self, effect: str, cancel: Cancel | None = None) -> str:
        started = time.process_time_ns()
        root = super().begin(effect, cancel)
        self.spent_ns += time.process_time_ns() - started
        return root

    def commit(self) -> str:
        started = time.process_time_ns()
        root = super().commit()
        self.spent_ns += time.process_time_ns() - started
        return root

    def settle(self) -> None:
        started = time.process_time_ns()
        super().settle()
        self.spent_ns += time.process_time_ns() - started


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    folder = Path(tempfile.mkdtemp(prefix="spak-bench-", dir=Path.cwd()))
    try:
        return _rows(folder)
    finally:
        shutil.rmtree(folder)


def _rows(folder: Path) -> list[dict[str, Any]]:
    append_ms, sqlite_ms = _append_floor(folder), _sqlite_floor(folder)
    floor = max(append_ms, sqlite_ms)
    small, effect, large = (
        run(folder, "write", FEW),
        run(folder, "write", MANY),
        run(folder, "write", MOST),
    )
    change = run(folder, "change", MANY)
    short, shared = run(folder, "pure", FEW), run(folder, "pure", MOST)
    judged = run(folder, "write", MANY, law=None)
    tasks = {steps: _task(folder, steps) for steps in sized((20, 100, 400), (20,))}
    walls = [row for tool in ("write", "change") for row in _walls_rows(folder, tool)]
    same, fresh = _law_ms(folder, "a"), _law_ms(folder, "{{last_tool_output}}")
    return [
        _row("durable step: CPU over the floor", effect["cpu_ms"] - floor, floor, "ms", "<= 0.5"),
        _row("durable step: CPU in all", effect["cpu_ms"], floor, "ms", ""),
        _row("durable step: CPU, shipped constitution over none", same, effect["cpu_ms"], "ms", "<= 0.3"),
        _row("the same, arguments that differ at each step", fresh, effect["cpu_ms"], "ms", "<= 0.3"),
        _row("floor: SQLite WAL FULL insert", sqlite_ms, sqlite_ms, "ms CPU", ""),
        _row("floor: append + fdatasync", append_ms, append_ms, "ms CPU", ""),
        _row("durable step: ledger fsyncs", effect["fsyncs"], 1.0, "per step", "<= 1.1"),
        _row("durable step: workspace fsyncs", effect["workspace_fsyncs"], 0.0, "per step", ""),
        _row("step that changes a file: CPU over the floor", change["cpu_ms"] - floor, floor, "ms", ""),
        _row(
            "step that changes a file: CPU of the workspace",
            change["workspace_ms"],
            append_ms,
            "ms",
            "",
        ),
        _row(
            "step that changes a file: workspace fsyncs",
            change["workspace_fsyncs"],
            0.0,
            "per step",
            "<= 2.1",
        ),
        *walls,
        _row("pure step, sharing: ledger fsyncs", shared["fsyncs"], 1.0, "per step", "<= 0.1"),
        _row("pure step, sharing: CPU", shared["cpu_ms"], floor, "ms", ""),
        _row(
            f"durable step: bytes at {MOST:,} steps", large["bytes"], small["bytes"], "B per step", "<= 1024"
        ),
        _row(f"pure step: bytes at {MOST:,} steps", shared["bytes"], short["bytes"], "B per step", "<= 1024"),
        _row(
            f"CPU per step, {MOST:,} over {FEW} steps",
            large["cpu_ms"] / small["cpu_ms"],
            1.0,
            "ratio",
            "<= 1.25",
        ),
        _row(f"memory grown from {FEW} to {MOST:,} steps", shared["grown_mib"], 0.0, "MiB", "<= 4"),
        _row("replay", shared["replayed"], 20000, "records/s", ">= 20000"),
        _row("replay, shipped constitution", judged["replayed"], 34300, "records/s", ">= 2 of floor"),
        *(
            _row(f"the same, a task of {steps} different steps", found, 20000, "records/s", "")
            for steps, found in tasks.items()
        ),
    ]


def _walls_rows(folder: Path, tool: str) -> list[dict[str, Any]]:
    """What fences, masks and the like cost a step that is durable, beside the same step without them."""
    from bench import step_walls

    what = {"write": "durable step", "change": "step that changes a file"}[tool]
    found = step_walls.calls(tool)
    names = [f"{what}: system calls, walls over none", f"{what}: waits for the disk, walls over none"]
    ratio, least, most = step_walls.cpu(folder, tool)
    title = f"{what}: CPU, walls over none ({least:.3f} to {most:.3f})"
    rows = [_row(title, ratio, 1.0, "ratio", "<= 1.03")]
    if found is None:
        return rows + [{"name": name, "ours": None, "floor": 0, "unit": "", "aim": ""} for name in names]
    return [
        *rows,
        _row(names[0], found[True][0], found[False][0], "per step", ""),
        _row(names[1], found[True][1], found[False][1], "per step", "<= 1 of floor"),
    ]


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}


NO_LAW = Law(
    {"none.mg": "Decl act(Action, Act) bound [/name, /name].\npermitted(Action) :- act(Action, _).\n"}
)
OWN = "permitted(Action) :- tool(Action, /write).\n"


def _law_ms(folder: Path, argument: str) -> float:
    """What the shipped constitution costs a step: the median of LAWS pairs of runs, one after the other."""
    found = []
    for turn in range(LAWS):
        pair = [
            run(folder, "write", sized(300, 20), law, argument, f"-{len(argument)}-{turn}")
            for law in (NO_LAW, None)
        ]
        found.append(pair[1]["cpu_ms"] - pair[0]["cpu_ms"])
    return sorted(found)[LAWS // 2]


def run(
    folder: Path,
    tool: str,
    steps: int,
    law: Law | None = NO_LAW,
    argument: str = "a",
    mark: str = "",
) -> dict[str, float]:
    """One run of `steps` steps, measured. Without `law`: under the shipped constitution."""
    name = f"{tool}-{steps}{mark}" + ("" if law else "-judged")
    text = SPEC.format(steps=steps, tool=tool, text=argument)
    catalog = Catalog(tools={key: item.entry for key, item in TOOLS.items()})
    place = _Timed(folder / name / "workspace", folder / name / "store")
    compile_program(parse(text), catalog, {})
    made = Law(constitution(), {"own.mg": OWN}) if law is None else law
    body = genesis(text, catalog, {}, place.snapshot(), 1, {"run": name}, law=made)
    run = Run.create(FileLedgers(folder), name, body, Host(tools=TOOLS), place)
    fsyncs, workspace_fsyncs, memory = run.ledger.fsyncs, place.fsyncs, _resident()  # type: ignore[attr-defined]
    started = time.process_time()
    run.advance("full_auto")
    cpu = time.process_time() - started
    grown = _resident() - memory
    assert run.state.r1.steps == steps, run.state.r7.codes
    found = {
        "cpu_ms": 1000 * cpu / steps,
        "fsyncs": (run.ledger.fsyncs - fsyncs) / steps,  # type: ignore[attr-defined]
        "workspace_ms": place.spent_ns / steps / 1e6,
        "workspace_fsyncs": (place.fsyncs - workspace_fsyncs) / steps,
        "bytes": (folder / name / "trace.jsonl").stat().st_size / steps,
        "grown_mib": grown,
    }
    run.close()
    reader = FileLedgers(folder).reader(name)
    started = time.process_time()
    replayed = replay(record for record, _ in reader.read())
    found["replayed"] = replayed.records / (time.process_time() - started)
    assert replayed.difference is None
    return found


def _task(folder: Path, count: int) -> float:
    """Records a second of the replay of one task with so many steps, each taken once, under the shipped law;
    its first record, which holds the spec, is not counted, and it begins with nothing kept. The best
    of as many replays as 2,000 steps take."""
    name = f"task-{count}"
    steps = "\n".join(f'step s{place}: tool.write {{ text: "a{place}" }}' for place in range(count))
    text = f"AGENT Bench LEVEL 5 {{ START -> t TASK t {{ {steps} }} }}"
    catalog = Catalog(tools={key: item.entry for key, item in TOOLS.items()})
    place = Workspace(folder / name / "workspace", folder / name / "store")
    law = Law(constitution(), {"own.mg": OWN})
    body = genesis(text, catalog, {}, place.snapshot(), 1, {"run": name}, law=law)
    run = Run.create(FileLedgers(folder), name, body, Host(tools=TOOLS), place)
    run.advance("full_auto")
    assert run.state.status == "succeeded", run.state.r7.codes
    run.close()
    records = [record for record, _ in FileLedgers(folder).reader(name).read()]
    spent = []
    for _ in range(sized(2_000, 40) // count):
        found = Replay()
        with (
            patch.object(rules, "_compiled", inspect.unwrap(rules._compiled)),
            patch.object(gate, "_gate", inspect.unwrap(gate._gate)),
        ):
            found.feed(records[0])
        started = time.process_time()
        for record in records[1:]:
            found.feed(record)
        spent.append(time.process_time() - started)
        assert found.difference is None
    return (len(records) - 1) / min(spent)


def _append_floor(folder: Path, count: int = 500) -> float:
    fd = os.open(folder / "floor", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    started = time.process_time()
    for _ in range(count):
        os.write(fd, secrets.token_bytes(400))
        os.fdatasync(fd)
    spent = time.process_time() - started
    os.close(fd)
    return 1000 * spent / count


def _sqlite_floor(folder: Path, count: int = 500) -> float:
    base = sqlite3.connect(folder / "floor.db", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE r (run TEXT, seq INTEGER, line BLOB, PRIMARY KEY (run, seq))")
    started = time.process_time()
    for seq in range(count):
        base.execute("INSERT INTO r VALUES ('r', ?, ?)", (seq, secrets.token_bytes(400)))
    spent = time.process_time() - started
    base.close()
    return 1000 * spent / count


def _resident() -> float:
    """Resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0
