"""The probes of probes.toml in a container, under each runtime that the engine has.

As for the restricted launcher: void unless every must-pass probe passed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sandbox_kit
from sandbox_kit import PROBES, score
from spak.errors import UnavailableError
from spak.ports import Job, Limits
from spak.sandbox import Docker, GVisor

pytestmark = pytest.mark.sandbox

UNDER_GVISOR = {
    # What gVisor's own kernel answers otherwise, and why that is no way out (Debian's runsc of 2022):
    "no new privileges",  # has no such line in /proc/self/status
    "only three descriptors",  # cannot list /proc/self/fd
    "make a device",  # makes a node that no driver of the host stands behind
    "file systems in user space",  # has a /dev/fuse of its own
}


@pytest.fixture
def workspace() -> Iterator[Path]:
    sandbox_kit.docker_ready()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def failed(launcher: Docker, workspace: Path, probes: list[dict[str, Any]]) -> list[str]:
    with sandbox_kit.words() as words:
        words["workspace"] = str(workspace)
        return score(launcher, workspace, probes, words)


def test_all_probes_in_a_container(workspace: Path) -> None:
    assert failed(Docker(), workspace, PROBES) == []


def gvisor() -> GVisor:
    try:
        return GVisor()
    except UnavailableError as error:
        pytest.skip(f"NOT TESTED under gVisor: {error.message}; {error.hint}")


def test_all_probes_under_gvisor(workspace: Path) -> None:
    assert failed(gvisor(), workspace, [one for one in PROBES if one["name"] not in UNDER_GVISOR]) == []


def test_too_much_memory_under_gvisor_is_known_at_once(workspace: Path) -> None:
    """All of the sandbox is killed then; the engine leaves the job's stream open, and may not say why."""
    fill = ("/bin/sh", "-c", "head -c 100000000 /dev/zero | tail -c 100000000 > /dev/null")
    limits = Limits(wall_s=100, memory_bytes=64 << 20)
    outcome = gvisor().run(Job(fill, workspace, limits=limits))
    assert outcome.status in ("oom", "crash") and outcome.exit == 137 and outcome.wall_ms < 50_000
