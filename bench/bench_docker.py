"""What a step in a warm container costs: the docker launcher beside the engine's own `exec` of the same
command.

Median wall milliseconds of `python3 -I -S -c "print(6*7)"`, in turns with the floor in a container of the
same image. Ours also limits, filters, watches and cleans up. Where no engine is set up one is started for the
figures, with an image of its own, and removed; where that cannot be, the rows have no figures and say so.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.sizes import sized

ROOT = Path(__file__).resolve().parents[1]
STEPS = sized(30, 2)
ARGV = ("python3", "-I", "-S", "-c", "print(6*7)")


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    with engine():
        warm, cold, plain = measured()
    return [
        {
            "name": "docker step, warm container",
            "ours": warm,
            "floor": plain,
            "unit": "ms wall",
            "aim": "<= 1.5 of floor",
        },
        {"name": "docker step, new container", "ours": cold, "floor": plain, "unit": "ms wall", "aim": ""},
    ]


@contextmanager
def engine() -> Iterator[None]:
    """Where DOCKER_HOST names no engine and the system has none: one of its own, if this machine lets it."""
    if os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists():
        yield
        return
    script = str(ROOT / "scripts" / "docker-engine.sh")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name) / "engine"
        started = subprocess.run([script, "start", str(folder)], stdout=subprocess.PIPE, check=False)
        if started.returncode:  # it has said why
            yield
            return
        try:
            os.environ["DOCKER_HOST"] = started.stdout.decode().strip().removeprefix("DOCKER_HOST=")
            spak = str(Path(sys.executable).with_name("spak"))
            subprocess.run([spak, "sandbox", "build"], stdout=sys.stderr, check=True)
            yield
        finally:
            os.environ.pop("DOCKER_HOST", None)
            subprocess.run([script, "stop", str(folder)], check=False)


def measured() -> tuple[float | None, float | None, float | None]:
    """A step in a warm container, in a new one, and the engine's own `exec`; None without an engine."""
    from spak.errors import UnavailableError
    from spak.ports import Job
    from spak.sandbox import Docker, docker

    try:
        launcher = Docker()
    except UnavailableError as error:
        print(f"NOT MEASURED: {error.message}; {error.hint}", file=sys.stderr)
        return None, None, None
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
    return round(statistics.median(ours), 1), round(cold, 1), round(statistics.median(floor), 1)
