"""A disk that fills up while a run goes on: a typed error, nothing lost; it ends once there is space.

Two kinds of full: a small file system of its own (where this process may mount one), and a limit on the size
of files, which every process can set for itself and which fails at the same calls.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli_calls import Cli, Done

SPEC = """
task Fill {
  step one: tool.run { cmd: "seq 1 9000" output_var: a }
  step two: tool.run { cmd: "seq 1 20000" output_var: b }
  step keep: tool.write_file { path: "kept.txt" content: "{{a}}{{b}}" }
  success: file_contains("kept.txt", "19999")
}
"""
SMALL_KIB = 1024


def mountable() -> bool:
    """Whether this process may mount a small file system."""
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


class Disk:
    """A runs folder on a disk of which `free` bytes are free for the next call."""

    def __init__(self, cli: Cli, root: Path, *, mounted: bool) -> None:
        self.cli = cli
        self.root = root
        self.mounted = mounted

    def call(self, *args: str, free: int | None = None) -> Done:
        filler = self.root / "filler"
        if self.mounted and free is not None:
            have = shutil.disk_usage(self.root).free
            with filler.open("wb") as file:
                file.write(bytes(max(0, have - free)))
        try:
            return self.cli(*args, "--runs-dir", str(self.root / "runs"), before=self._limit(free))
        finally:
            if free is not None:
                filler.unlink(missing_ok=True)

    def _limit(self, free: int | None) -> Callable[[], None]:
        def limit() -> None:
            if free is not None and not self.mounted:
                resource.setrlimit(resource.RLIMIT_FSIZE, (free, resource.RLIM_INFINITY))

        return limit

    @contextmanager
    def read_only(self, run: str) -> Iterator[None]:
        """The disk read-only where it is mounted; else the lease is a file that not even root may write."""
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,ro", str(self.root)], check=True)
            try:
                yield
            finally:
                subprocess.run(["mount", "-o", "remount,rw", str(self.root)], check=True)
            return
        lock = self.root / "runs" / run / "lock"
        lock.unlink()
        lock.symlink_to("/sys/devices/system/cpu/online")
        try:
            yield
        finally:
            lock.unlink()

    def runs(self) -> list[str]:
        return [
            row["run"]
            for row in self.cli("runs", "--runs-dir", str(self.root / "runs"), "--json").json["runs"]
        ]


@pytest.fixture(params=["tmpfs", "limit"] if mountable() else ["limit"])
def disk(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "fill.spak").write_text(SPEC)
    root = tmp_path / "small"
    root.mkdir()
    if request.param == "limit":
        yield Disk(cli, root, mounted=False)
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_KIB}k", "none", str(root)], check=True)
    try:
        yield Disk(cli, root, mounted=True)
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


@pytest.mark.sandbox
def test_a_full_disk_costs_no_decision(cli: Cli, disk: Disk) -> None:
    calm = cli("run", "fill.spak", "--seed", "1", "--json").json
    assert calm["state"] == "succeeded"
    stopped = 0
    for free in (0, 4_096, 16_384, 60_000, 100_000, 150_000, 250_000):
        free = max(free, 0 if disk.mounted else 16_384)  # the documents of this test are files too
        before = disk.runs()
        done = disk.call("run", "fill.spak", "--seed", "1", "--json", free=free)
        if done.code == 0:
            assert done.json["summary_hash"] == calm["summary_hash"]
            break
        assert done.code == 1, (free, done.out, done.err)
        assert done.error in ("ledger.full", "workspace.full"), (free, done.err)
        assert "spak resume" in done.json["error"]["hint"] or "free" in done.json["error"]["hint"]
        made = [run for run in disk.runs() if run not in before]
        if not made:
            assert not [path for path in (disk.root / "runs").glob("*") if path.name not in before], free
            continue
        stopped += 1
        (run,) = made
        assert disk.call("ledger", "verify", run).code == 0
        resumed = disk.call("resume", run, "--json")
        assert (resumed.code, resumed.json["state"]) == (0, "succeeded"), (free, resumed.out)
        assert resumed.json["summary_hash"] == calm["summary_hash"], free
        assert disk.call("replay", run, "--json").json["equal"] is True
        shutil.rmtree(disk.root / "runs" / run)
    assert stopped >= 1


@pytest.mark.sandbox
def test_a_full_disk_while_answering_and_exporting(cli: Cli, disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(
        'task Ask { step q: llm.query { role: "r" prompt_template: "Say." output_var: word }\n'
        '  step keep: tool.write_file { path: "word.txt" content: word } }'
    )
    run = disk.call("run", "ask.spak", "--json").json["run"]
    answer = "word " * 40_000
    (tmp_path / "answer").write_text(answer)
    full = disk.call("step", run, "--answer-file", "answer", "--json", free=20_000)
    assert (full.code, full.error) == (1, "ledger.full")
    shown = disk.call("show", run, "--json")
    assert (shown.code, shown.json["state"]) == (0, "waiting")
    done = disk.call("step", run, "--answer-file", "answer", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert (disk.root / "runs" / run / "workspace/word.txt").read_text() == answer
    output = str(disk.root / "run.jsonl")
    full = disk.call("export", run, "-o", output, "--json", free=20_000)
    assert (full.code, full.error) == (2, "usage.file")
    assert not list(disk.root.glob("run.jsonl*"))
    assert disk.call("export", run, "-o", output, "--json").code == 0
    assert disk.call("ledger", "verify", output).code == 0


@pytest.mark.sandbox
def test_a_run_folder_that_is_read_only(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(
        'task Ask { step q: llm.query { role: "r" prompt_template: "Say." output_var: word }\n'
        '  step keep: tool.write_file { path: "word.txt" content: word } }'
    )
    run = disk.call("run", "ask.spak", "--json").json["run"]
    before = (disk.root / "runs" / run / "trace.jsonl").read_bytes()
    with disk.read_only(run):
        for verb in (("resume",), ("step", "--answer", "word"), ("cancel",)):
            done = disk.call(*verb[:1], run, *verb[1:], "--json")
            assert (done.code, done.error) == (1, "ledger.readonly"), verb
            assert "--runs-dir" in done.json["error"]["hint"]
        assert disk.call("show", run, "--json").json["state"] == "waiting"
        assert disk.call("runs", "--json").json["runs"][0]["state"] == "waiting"
        assert disk.call("replay", run, "--json").json["equal"] is True
        assert disk.call("ledger", "verify", run).code == 0
        assert disk.call("export", run).code == 0
        report = disk.call("report", run, "--json")
        assert disk.mounted is False or (report.code, report.error) == (2, "usage.file")
    assert (disk.root / "runs" / run / "trace.jsonl").read_bytes() == before
    assert disk.call("step", run, "--answer", "word", "--json").json["state"] == "succeeded"
