"""What a change of the law permits: recorded actions judged under two laws, and every act with two facts.

1,000 actions of one run of one tool are judged under the law of the run and under one with folds, in CPU
time; the figure for 10,000 is ten times that. Runs that read and write files take about four times as long.
Every act with up to two facts is judged under the shipped law, without and with `spak:flow`, in CPU time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_run import OWN, SPEC, TOOLS
from bench.sizes import sized
from spak.evolve.abstract_actions import compare
from spak.evolve.permitted import Side, changes
from spak.lang import parse
from spak.lang.catalog import Catalog
from spak.ledger.files import FileLedgers
from spak.policy.law import Law, compiled
from spak.program import compile as compile_program
from spak.runner import Host, Run
from spak.runner.genesis import constitution, genesis
from spak.workspace import Workspace

LAWS = Path(__file__).resolve().parents[1] / "specs/laws"
ACTIONS = sized(1_000, 50)
"""Recorded actions."""


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    folder = Path(tempfile.mkdtemp(prefix="spak-bench-", dir=Path.cwd()))
    try:
        recorded = _recorded(folder)
    finally:
        shutil.rmtree(folder)
    return [
        _row("policy diff of 10,000 recorded actions, from 1,000", 10 * recorded, "s CPU", "< 30"),
        _row("every act with up to two facts, the shipped law and spak:flow", _enumerated(), "s CPU", "< 60"),
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


def _enumerated() -> float:
    old, new = (compiled(_law(*names), "", {}) for names in ((), ("flow.mg",)))
    started = time.process_time()
    found = compare(old, new)
    assert found.judged and not found.newly("permitted"), found
    return time.process_time() - started


def _row(name: str, ours: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": None, "unit": unit, "aim": aim}
