"""A crowd that watches one run over two web processes (platform_crowd.py): from commit to receipt.

Everything is on this machine: the web processes, Redis, the database and the clients share its cores.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.bench_platform import absent, part, row, server
from bench.platform_crowd import CROWD, PROCESSES


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    name = f"{CROWD:,} streams (SSE, sockets) over {PROCESSES} web processes"
    with (
        tempfile.TemporaryDirectory(prefix="spak-bench-") as data,
        server("Redis", Path(data) / "redis") as on,
    ):
        if not on:
            return [absent("Redis", name, "< 300")]
        found = part("crowd", Path(data) / "crowd", SPAK_WEB_REDIS_URL=on.url)
    return [
        row(f"{name}: commit to receipt, p50", found["p50"], 0, "ms", "< 300"),
        row(f"{name}: commit to receipt, p95", found["p95"], 0, "ms", ""),
        row(f"{name}: records not received", found["lost"], 0, "records", "<= 0"),
        row(f"{name}: streams with a record twice or out of order", found["wrong"], 0, "streams", "<= 0"),
        row("CPU of the web processes for each record that a stream gets", found["us"], 0, "us", ""),
        row("CPU of the clients for the same", found["client_us"], 0, "us", ""),
        row("memory of a web process, at most", found["held"] / 2**20, 0, "MiB", ""),
    ]
