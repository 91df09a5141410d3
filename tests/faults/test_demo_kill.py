"""The main job, shortened, killed at every record: with measurements from a table the summary stays the same.

The table is recorded first, by running the spec for real: compiler, sandbox and clock. The walk then serves
the same measurements by the content of the source, and writes a stand-in for each compiled file.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli_kit import EXAMPLES
from fault_points import FaultPoints
from spak import canon, config
from spak.kernel.replay import replay
from spak.lang import parse
from spak.ledger.files import FileLedgers
from spak.ports import Call, MeasureCall, Measurement, ToolResult
from spak.program import compile as compile_program
from spak.runner import Host, Run
from spak.runner.genesis import genesis
from spak.workspace import Workspace
from tuner_kit import shortened

SEED = 3
Table = dict[str, Measurement]


class Recording:
    """A validator that keeps what another one measured, by the content of the source."""

    def __init__(self, real: Any, table: Table) -> None:
        self.entry, self.real, self.table = real.entry, real, table

    def measure(self, call: MeasureCall) -> Measurement:
        self.table[_key(call)] = found = self.real.measure(call)
        return found


class Recorded:
    """A validator that answers from the table."""

    def __init__(self, entry: Any, table: Table) -> None:
        self.entry, self.table = entry, table

    def measure(self, call: MeasureCall) -> Measurement:
        return self.table[_key(call)]


class Copied:
    """Stands for the compiler: the same outcome as the real one had, and a file of the source's content."""

    def __init__(self, real: Any, failed: set[str] | None = None) -> None:
        self.entry, self.real, self.failed = real.entry, real, failed if failed is not None else set()

    def run(self, call: Call) -> ToolResult:
        source = (call.workspace / str(call.args["source"])).read_bytes()
        if canon.digest(source) in self.failed:
            return ToolResult("exited", 1, b"error", 5, key={"exit": 1})
        (call.workspace / str(call.args["output"])).write_bytes(b"compiled " + source)
        return ToolResult("exited", 0, b"", 0, key={"exit": 0})


class Watched(Copied):
    """The real compiler; remembers what it refused."""

    def run(self, call: Call) -> ToolResult:
        found: ToolResult = self.real.run(call)
        if found.exit:
            self.failed.add(canon.digest((call.workspace / str(call.args["source"])).read_bytes()))
        return found


def _key(call: MeasureCall) -> str:
    source = (call.workspace / str(call.options["source"])).read_bytes()
    return f"{call.options.get('role', 'candidate')}/{canon.digest(source)}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Host, int, str]:
    """The spec, a host that answers from the table, and the records and summary of an undisturbed run."""
    folder = tmp_path_factory.mktemp("recorded")
    spec = shortened(folder, 4)
    text = spec.read_text(encoding="utf-8")
    program = compile_program(parse(text), config.catalog(), {})
    real = config.host(config.settings(folder, {}), program)
    table: Table = {}
    watched = Watched(real.tools["cc"])
    profiler = real.validators["CpuProfiler"]
    first = _start(
        folder / "real",
        text,
        replace(
            real, tools={**real.tools, "cc": watched}, validators={"CpuProfiler": Recording(profiler, table)}
        ),
    )
    first.advance("full_auto")
    assert first.state.status == "succeeded"
    first.close()
    served = replace(
        real,
        tools={**real.tools, "cc": Copied(real.tools["cc"], watched.failed)},
        validators={"CpuProfiler": Recorded(profiler.entry, table)},
    )
    calm = _start(folder / "calm", text, served)
    calm.advance("full_auto")
    assert calm.state.status == "succeeded"
    calm.close()
    return spec, served, calm.ledger.count, calm.state.summary


def _start(folder: Path, text: str, host: Host) -> Run:
    place = Workspace(folder / "run" / "workspace", folder / "run" / "store")
    place.copy_in(EXAMPLES / "attention_tuner")
    full = config.catalog()
    program = compile_program(parse(text), full, {})
    body = genesis(text, config.used(full, program), {}, place.snapshot(), SEED, {"run": "run"})
    return Run.create(FileLedgers(folder), "run", body, host, place)


def _reopen(folder: Path, host: Host) -> Run:
    return Run.open(
        FileLedgers(folder), "run", host, Workspace(folder / "run/workspace", folder / "run/store")
    )


@pytest.mark.sandbox
@pytest.mark.timeout(1500)  # a tuned kernel is compiled and measured after each kill
def test_kill_at_every_record_of_the_shortened_demo(
    recorded: tuple[Path, Host, int, str], tmp_path: Path, fault_points: FaultPoints
) -> None:
    spec, host, count, summary = recorded
    text = spec.read_text(encoding="utf-8")
    assert count > 40
    for at in range(1, count):
        folder = tmp_path / str(at)
        child = os.fork()
        if child == 0:
            try:
                run = _start(folder, text, host)
                run.listeners.append(_dies_at(at))
                run.advance("full_auto")
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, at
        run = _reopen(folder, host)
        run.advance("full_auto")
        assert run.state.summary == summary, at
        assert run.workspace.snapshot() == run.state.r3, at
        assert replay(record for record, _ in run.ledger.read()).difference is None, at
        run.close()
        fault_points["killed"] += 1


def _dies_at(at: int) -> Any:
    def listen(record: Any, state: Any) -> None:
        if record.seq >= at:
            os.kill(os.getpid(), signal.SIGKILL)

    return listen
