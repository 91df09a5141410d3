"""LangGraph and DBOS with the work of bench_peers: 200 workflows of 20 durable steps, 32 threads.

    .venv-peers/bin/python bench/platform_peers.py langgraph|dbos FOLDER [POSTGRESQL-ADDRESS]

Imports nothing of ours. A step answers 100 random characters. LangGraph: one thread id per workflow, constant
state, durability=sync. DBOS: its defaults. Prints steps a second as JSON, from the beginning of the first
workflow to the end of the last, after one that is not counted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

RUNS, STEPS, THREADS = 200, 20, 32


def langgraph(folder: Path, address: str) -> float:
    from langgraph.graph import END, START, StateGraph  # type: ignore[attr-defined]

    graph: Any = StateGraph(dict)
    graph.add_node("step", lambda state: {"n": state["n"] + 1, "text": os.urandom(50).hex()})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if state["n"] >= STEPS else "step")
    if address:
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        more = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool = ConnectionPool(address, min_size=THREADS, max_size=THREADS, kwargs=more)
        saver: Any = PostgresSaver(pool)
    else:
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = SqliteSaver(sqlite3.connect(folder / "graph.sqlite3", check_same_thread=False))
    saver.setup()
    app = graph.compile(checkpointer=saver)

    def one(number: int) -> None:
        options = {"configurable": {"thread_id": str(number)}, "recursion_limit": 2 * STEPS + 5}
        assert app.invoke({"n": 0}, options, durability="sync")["n"] == STEPS

    return _timed(one)


def dbos(folder: Path, address: str) -> float:
    from dbos import DBOS

    DBOS(
        config={
            "name": "bench",
            "system_database_url": address or f"sqlite:///{folder / 'dbos.sqlite3'}",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def step(number: int) -> str:
        return os.urandom(50).hex()

    @DBOS.workflow()
    def work() -> int:
        return sum(bool(step(number)) for number in range(STEPS))

    DBOS.launch()
    try:
        return _timed(lambda number: _same(work(), STEPS))
    finally:
        DBOS.destroy()


def _same(found: int, expected: int) -> None:
    assert found == expected


def _timed(one: Callable[[int], None]) -> float:
    with ThreadPoolExecutor(THREADS) as pool:
        one(-1)
        began = time.perf_counter()
        list(pool.map(one, range(RUNS)))
        return RUNS * STEPS / (time.perf_counter() - began)


if __name__ == "__main__":
    which = {"langgraph": langgraph, "dbos": dbos}[sys.argv[1]]
    print(json.dumps({"steps_per_s": which(Path(sys.argv[2]), "".join(sys.argv[3:]))}))
