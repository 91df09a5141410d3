"""The model of code: what an index costs, how fast it answers, and its links beside jedi's.

The tree is this repository's own sources, copied without what is not tracked. CPU seconds are those of the
process and of the parser that it starts; the middle of ROUNDS where a figure is short. `impact` is asked of
symbols drawn at random, with the places that name them and could not be followed: by a process that answered
before, and by one that did not; and by the first with all such places in reach, as answers have them. Then
trees that are not as they were (`bench.impact_states`): does every answer say what it covers?
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import impact_states
from bench.sizes import sized
from spak.world.ask import Model
from spak.world.index import update
from spak.world.store import Store

ROOT = Path(__file__).resolve().parents[1]
ROUNDS, QUESTIONS, STATES = sized(5, 1), sized(500, 20), sized(108, 4)
EDITED = "agents/spak/canon.py"


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        root, store = Path(folder) / "code", Store(Path(folder) / "code.sqlite")
        _copied(root)
        floor = _cpu(lambda: _read(root))
        cold = _cpu(lambda: update(store, root))
        time.sleep(2.1)  # a file that is younger than this when it is read is read again
        update(store, root)
        same = statistics.median(_cpu(lambda: update(store, root)) for _ in range(ROUNDS))
        added = statistics.median(_edited(store, root, _ADDED.format(number)) for number in range(ROUNDS))
        signs = [_resigned(store, root, number) for number in range(ROUNDS)]
        model = Model(store, root)
        symbols = model.symbols()
        first = [_asked(Model(store, root), symbols, seed) for seed in range(QUESTIONS)]
        later = [_asked(model, symbols, seed) for seed in range(QUESTIONS)]
        whole = [_asked(model, symbols, seed, whole=True) for seed in range(QUESTIONS)]
        files, edges = (store.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("file", "link"))
        store.close()
    resigned, linked = statistics.median(cpu for cpu, _ in signs), signs[0][1]
    return [
        _row(f"cold index, {files} files, {edges} edges", cold, floor, "CPU-s", "<= 8"),
        _row("nothing changed", same * 1000, None, "CPU-ms", "<= 50"),
        _row("one function added to a file", added * 1000, None, "CPU-ms", "<= 100"),
        _row(f"one signature that {linked} files look at", resigned * 1000, None, "CPU-ms", ""),
        _row(f"impact query, p95, {len(symbols)} symbols", _p95(later), None, "CPU-ms", "<= 2"),
        _row("impact query with all that is unresolved in reach, p95", _p95(whole), None, "CPU-ms", ""),
        _row("impact query, the first of a process, p95", _p95(first), None, "CPU-ms", ""),
        *_states(),
    ]


def _states() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "spakweb.settings", "SPAK_WEB_DATA": folder}
        import django

        django.setup()
        return impact_states.rows(STATES)


def _copied(root: Path) -> None:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [name for name in names.decode().split("\0") if name.endswith(".py")]
    for name in sized(
        paths, [path for path in paths if path.startswith("agents/spak/world/") or path == EDITED]
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)


def _read(root: Path) -> int:
    """The floor: Python compiles the same files to syntax trees."""
    import ast

    return sum(len(ast.parse(path.read_bytes()).body) for path in root.rglob("*.py"))


_ADDED = "\n\ndef added_{0}() -> int:\n    return {0}\n"


def _edited(store: Store, root: Path, more: str) -> float:
    """More text in a module that many others import."""
    path = root / EDITED
    path.write_text(path.read_text() + more)
    return _cpu(lambda: update(store, root))


def _resigned(store: Store, root: Path, number: int) -> tuple[float, int]:
    """One more parameter of a function that many others call; the files that are linked again."""
    path = root / EDITED
    path.write_text(path.read_text().replace("def dumps(", f"def dumps(_{number}, ", 1))
    linked: list[int] = []
    return _cpu(lambda: linked.append(update(store, root).linked)), linked[0]


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)] * 1000


def _asked(model: Model, symbols: list[Any], seed: int, whole: bool = False) -> float:
    symbol = random.Random(seed).choice(symbols)

    def ask() -> None:
        reach = model.impact([symbol])
        if whole:
            model.unknown([symbol], reach)
        else:
            model.unresolved([symbol.qual.rpartition(".")[2]])

    return _cpu(ask)


def _cpu(call: Callable[[], object]) -> float:
    before = _spent()
    call()
    return _spent() - before


def _spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    shown = None if floor is None else round(floor, 2)
    return {"name": f"world: {name}", "ours": round(ours, 2), "floor": shown, "unit": unit, "aim": aim}
