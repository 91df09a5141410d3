"""How soon a run goes on whose worker was killed, on a real clock: `manage.py up`, SQLite, embedded broker.

The worker gets SIGKILL in the middle of a tool, and each time the queue holds an empty and a half-written
file, as a killed writer or a full disk left them before. The time is from the kill to the run's next record,
which includes the start of a process. Used by bench_platform.py.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from bench.sizes import sized

KILLS = sized(3, 1)
AIM_S = 5.0


def recovery() -> dict[str, float]:
    """Seconds: the slowest of KILLS recoveries, and the mean."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from up_kit import Platform

    platform = Platform(Path(os.environ["SPAK_WEB_DATA"]))
    queue = platform.data / "queue" / "q-default"
    try:
        took = []
        for number in range(KILLS):
            platform.reaches(platform.count + 4)
            queue.mkdir(parents=True, exist_ok=True)
            (queue / f"0_{number}_empty.msg").write_bytes(b"")
            (queue / f"0_{number}_half.msg").write_bytes(b'{"body": "W10=", "prop')
            before, killed = platform.count, time.monotonic()
            os.kill(platform.child("worker.process"), signal.SIGKILL)
            platform.reaches(before + 1)
            took.append(time.monotonic() - killed)
        platform.ends()
        left = len(list((platform.data / "queue" / "unreadable").iterdir()))
        assert left == 2 * KILLS, f"{left} unreadable files were set aside"
    finally:
        platform.up.stop()
    return {"slowest": max(took), "mean": sum(took) / len(took)}
