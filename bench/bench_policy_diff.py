"""What a change of the law permits: recorded actions judged under two laws, and the question to a solver.

1,000 actions of one run of one tool are judged under the law of the run and under one with folds, in CPU
time; the figure for 10,000 is ten times that. Runs that read and write files take about four times as long.
The solver is asked about the shipped law with `spak:flow` added and up to four facts, in time that passes,
its process included; the floor is judging every act with two facts one by one.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_run import OWN, SPEC, TOOLS
from bench.sizes import sized
from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.ledger.files import FileLedgers
from spak.outer.abstract_actions import compare
from spak.outer.permitted import Side, changes
from spak.outer.solver import Answer, ask
from spak.policy.law import Law, compiled
from spak.program import compile as compile_program
from spak.runner import Host, Run
from spak.runner.genesis import constitution, genesis
from spak.workspace import Workspace

LAWS = Path(__file__).resolve().parents[1] / "specs/laws"
ACTIONS, FACTS = sized(1_000, 50), sized(4, 1)
"""Recorded actions, and facts that the solver combines."""


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    folder = Path(tempfile.mkdtemp(prefix="spak-bench-", dir=Path.cwd()))
    try:
        recorded = _recorded(folder)
    finally:
        shutil.rmtree(folder)
    solved, enumerated = _solved()
    return [
        _row("policy diff of 10,000 recorded actions, from 1,000", 10 * recorded, None, "s CPU", "< 30"),
        _row(f"solver: shipped law, up to {FACTS} facts, nothing new", solved, enumerated, "s", "< 60"),
    ]


def _law(*names: str) -> Law:
    return Law(constitution(), {"own.mg": OWN, **{name: (LAWS / name).read_text() for name in names}})


def _recorded(folder: Path) -> float:
    text = SPEC.format(steps=ACTIONS, tool="write", text="a")
    catalog = Catalog(tools={key: item.entry for key, item in TOOLS.items()})
    place = Workspace(folder / "run" / "workspace", folder / "run" / "store")
    compile_program(parse(text), catalog, {})
    body = genesis(text, catalog, {}, place.snapshot(), 1, {"run": "run"}, law=_law())
    run = Run.create(FileLedgers(folder), "run", body, Host(tools=TOOLS), place)
    run.advance("full_auto")
    run.close()
    records = [record for record, _ in FileLedgers(folder).reader("run").read()]
    more = ("read_before_overwrite.mg", "money_per_day.mg")
    started = time.process_time()
    found = changes("run", records, Side("old", _law()), Side("new", _law(*more)))
    spent = time.process_time() - started
    assert found.judged >= ACTIONS and not found.found and not found.unknown, found
    return spent * ACTIONS / found.judged


def _solved() -> tuple[float, float]:
    old, new = (compiled(_law(*names), "", {}) for names in ((), ("flow.mg",)))
    started = time.monotonic()
    found = ask(old, new, FACTS, 600)
    spent = time.monotonic() - started
    assert found.answer == Answer.NOTHING_NEW, found
    started = time.monotonic()
    compare(old, new)
    return spent, time.monotonic() - started


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": floor, "unit": unit, "aim": aim}
