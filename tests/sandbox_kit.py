"""The probes of tests/sandbox/probes.toml for any launcher, and an engine for the tests of containers.

`words()` sets up what the attacks look for; `score` says which probes did not end as they must.
`docker_ready()` gives an engine with our image, or skips; where SPAK_TEST_ENGINE says that one was started
it fails instead.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from spak.errors import UnavailableError
from spak.ports import MIB, Limits, Outcome

HERE = Path(__file__).parent / "sandbox"
PROBES: list[dict[str, Any]] = tomllib.loads((HERE / "probes.toml").read_text())["probe"]
LIMITS = Limits(wall_s=20, processes=32, file_bytes=16 * MIB, memory_bytes=256 * MIB)
TOOLCHAIN = (Path(sys.prefix), Path(sys.base_prefix))
SECRET = "a-token-of-the-launching-process"


@contextmanager
def words() -> Iterator[dict[str, str]]:
    """What the attacks look for, all of it there on the host."""
    with (
        tempfile.NamedTemporaryFile("w") as host_file,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        host_file.write(SECRET)
        host_file.flush()
        Path(host_file.name).chmod(0o644)
        name = f"spak-probe-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        os.environ["SPAK_PROBE_SECRET"] = SECRET
        top = TOOLCHAIN[1].parts
        yield {
            "host_file": host_file.name,
            "host_pid": str(os.getpid()),
            "port": str(listener.getsockname()[1]),
            "abstract": name,
            "secret": SECRET,
            "toolchain_top": top[2] if top[1] in ("root", "home") else "none",
        }
        del os.environ["SPAK_PROBE_SECRET"]


def argv(probe: dict[str, Any], words: dict[str, str]) -> tuple[str, ...]:
    text = probe.get("sh") or (HERE / "probe_prelude.py").read_text() + probe["python"]
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return ("/bin/sh", "-c", text) if "sh" in probe else (sys.executable, "-I", "-c", text)


def score(run: Callable[[dict[str, Any]], Outcome], probes: list[dict[str, Any]]) -> list[str]:
    """The probes that did not end as they must; only the must-pass ones when one of those failed."""

    def bad(probe: dict[str, Any]) -> str:
        outcome = run(probe)
        ok = outcome.exit == 0 if probe["must"] == "pass" else 0 < outcome.exit < 126
        said = (outcome.stdout.data + outcome.stderr.data).decode(errors="replace").strip()[-300:]
        return "" if ok and outcome.status == "exited" else f"{probe['name']}: {outcome.status} {said}"

    void = [text for probe in probes if probe["must"] == "pass" and (text := bad(probe))]
    return void or [text for probe in probes if probe["must"] == "fail" and (text := bad(probe))]


@lru_cache
def _ready() -> str:
    """Empty when an engine has our image; built here if it has an engine and no image. Else why not."""
    from spak.sandbox import Docker

    with Path(tempfile.gettempdir(), f"spak-test-image-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            Docker()
        except UnavailableError as error:
            if "spak sandbox build" not in error.hint:
                return f"{error.message}; to mend: {error.hint}"
            from spak.sandbox import images

            images.build("host")
    return ""


def docker_ready() -> None:
    """Call it in a fixture of what needs an engine."""
    why = _ready()
    if why and os.environ.get("SPAK_TEST_ENGINE"):
        pytest.fail(f"an engine was started for the tests, and it does not work: {why}")
    if why:
        pytest.skip(f"NOT TESTED in containers: {why} (scripts/docker-engine.sh start)")
