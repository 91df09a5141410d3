"""What a step in a warm container costs: the docker launcher beside the engine's own `exec` of the same
command.

Median wall milliseconds of `python3 -I -S -c "print(6*7)"`, in turns with the floor in a container of the
same image. Ours also limits, filters, watches and cleans up. Without an engine or an image it says so and
has no rows.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = 30
ARGV = ("python3", "-I", "-S", "-c", "print(6*7)")


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    from spak.errors import UnavailableError
    from spak.ports import Job
    from spak.sandbox import Docker, docker

    try:
        launcher = Docker()
    except UnavailableError as error:
        print(f"NOT MEASURED: {error.message}; {error.hint}", file=sys.stderr)
        return []
    ours, floor = [], []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        job = Job(ARGV, Path(folder))
        began = time.perf_counter()
        launcher.run(job)
        cold = 1000 * (time.perf_counter() - began)
        client = launcher._client
        body = {"Image": docker.IMAGE, "OpenStdin": True, "HostConfig": {"NetworkMode": "none"}}
        number = client.create_container_from_config(body, None)["Id"]
        client.start(number)
        try:
            for _ in range(STEPS):
                began = time.perf_counter()
                made = client.exec_create(number, list(ARGV))
                assert client.exec_start(made["Id"]) == b"42\n"
                assert client.exec_inspect(made["Id"])["ExitCode"] == 0
                floor.append(1000 * (time.perf_counter() - began))
                began = time.perf_counter()
                assert launcher.run(job).stdout.data == b"42\n"
                ours.append(1000 * (time.perf_counter() - began))
        finally:
            client.remove_container(number, force=True)
            docker.leave()
    plain = round(statistics.median(floor), 1)
    return [
        {
            "name": "docker step, warm container",
            "ours": round(statistics.median(ours), 1),
            "floor": plain,
            "unit": "ms wall",
            "aim": "<= 1.5 of floor",
        },
        {
            "name": "docker step, new container",
            "ours": round(cold, 1),
            "floor": plain,
            "unit": "ms wall",
            "aim": "",
        },
    ]
