"""Redis, PostgreSQL and Celery workers as processes, on two hosts that share no disk. The faults of such an
installation are in tests/faults/test_web_hosts.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit import BEGIN, START, Hosts, done, hosts

pytestmark = pytest.mark.timeout(240)

STEPS = """\
task Steps {
  step one: tool.write_file { path: "one.txt" content: "1" }
  step two: tool.write_file { path: "two.txt" content: "2" }
  step look: tool.read_file { path: "one.txt" }
  success: file_exists("two.txt")
}
"""
AGAIN = """
from spakweb.store.runs.models import Run
from spakweb.work.worker.queue import send
for _ in range(4):
    for key in Run.objects.values_list("key", flat=True):
        send(key)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with (
        tempfile.TemporaryDirectory(prefix="spak-hosts-") as name,
        hosts(Path(name), tmp_path_factory) as made,
    ):
        yield made


def test_runs_go_over_two_hosts_each_told_of_five_times(two: Hosts) -> None:
    said = two.shell(BEGIN, START.format(name="steps", text=STEPS, many=4, queue="default"), AGAIN)
    keys = [line.split()[1] for line in said.splitlines() if line.startswith("KEY ")]
    for host in ("a", "b"):
        two.worker(host)
    for key in keys:
        assert done(two.ends(key)) == 3
    two.wait(lambda: len(two.query("SELECT 1 FROM fleet_runner WHERE process <> ''")) == 2, "no heartbeats")
    assert {name for (name,) in two.query("SELECT name FROM fleet_runner")} == {"a", "b"}
    ran = {path.parent.parent.name for path in two.folder.glob("[ab]/runs/*")}
    assert ran and not (two.folder / "web" / "runs").exists()
