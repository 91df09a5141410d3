"""Growth: what taking up a run costs after 1,000 and after 100,000 records, and how large a snapshot is.

The ledgers are generated: a real kernel under the shipped constitution is asked question after question, and
its records are written in one go; its workspace's store holds what it would if each third record had been a
step that changed a file. Each run is as a process leaves it that is killed just before it would keep
its next snapshot, so that the most there is to replay is replayed: 999 records of the long run, all of the
short one. `spak resume` is measured as a process, its start included; a worker as the call that takes a
waiting run in hand and gives it back. CPU seconds, the middle of ROUNDS; `whole` is the same without the
snapshot.

    python -m bench.bench_growth worker FOLDER     the part that needs Django, in a process of its own
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bench.bench_platform import ROOT, _environment, row, team_of_bench
from bench.sizes import sized
from spak import canon
from spak.begin import plan
from spak.files.disk import Disk
from spak.kernel.rules import Rules
from spak.kernel.snapshot import Snapshot, pack
from spak.kernel.state import State
from spak.kernel.step import step
from spak.lang import parse
from spak.lang.imports import resolve
from spak.ledger import snapshots
from spak.records import Authority, Kind, Record, place
from spak.runner.resume import beside, new_history
from spak.runner.views.tally import Tally
from spak.workspace import Workspace
from spak.workspace.store import Store

SHORT, LONG, ROUNDS = 1_000, sized(100_000, 2_000), sized(3, 1)
COMMAND = """
import atexit, pathlib, sys
held = pathlib.Path("/proc/self/status")
atexit.register(lambda: print(held.read_text().split("VmHWM:")[1].split()[0], file=sys.stderr))
from spak.cli import main
main()
"""
"""A command that says at its end how many kB it held at most: what `wait4` says has those of this process."""
VERBS = ("resume", "show", "report", "fork")
SPEC = """
AGENT Long LEVEL 5 {
  CONFIG { MODE stepwise BUDGET { steps: 1000000 elapsed_s: 1000000 } }
  START -> t
  TASK t { step q: llm.query { prompt: "Go on." output_var: x } NEXT { success -> t } }
}
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A generated ledger; its snapshot is of the first `kept` records, which are `size` bytes."""

    name: str
    records: list[Record]
    lines: list[bytes]
    snapshot: Snapshot | None
    size: int


def made(name: str, count: int, root: str) -> Made:
    """A run of `count` records that waits for an answer, left just before its next snapshot."""
    whole = resolve(parse(SPEC, "long.spak"), {}.get)
    body = plan(whole, {}, mode="stepwise", backend="manual").genesis(name, root, 1, spec="long.spak")
    rules, state = Rules.of(body), State()
    history, tally, head = new_history(rules), Tally(), canon.ZERO
    records, lines = list[Record](), list[bytes]()
    snapshot, size = None, 0
    for proposal in _proposals(body):
        proposal = (
            proposal if state.r6 is None else proposal._replace(body={**proposal.body, "of": state.r6.id})
        )
        stepped = step(rules, state, proposal)
        state = stepped.state
        for given in (proposal, *stepped.commits):
            record, line = place(given, len(records), head)
            head = record.hash
            records.append(record)
            lines.append(line)
            history.feed(record)
            tally.feed(record)
        if snapshot is None and SHORT < count <= len(records) + SHORT:
            data = pack(rules, len(records), head, state, beside(history, tally))
            snapshot, size = Snapshot(len(records), head, data), sum(map(len, lines))
        if len(records) >= count:
            return Made(name, records, lines, snapshot, size)
    raise AssertionError("not reached")


def _proposals(body: dict[str, Any]) -> Iterator[Record]:
    now = time.time_ns() // 1_000_000
    yield Record(Kind.GENESIS, Authority.PROPOSAL, body, at=now)
    number = 0
    while True:
        number += 1
        answer = {"outcome": "answered", "out": f"{canon.digest(str(number).encode())} {number}"}
        yield Record(
            Kind.ACT, Authority.PROPOSAL, answer, "t", "q", number, at=now + number, side={"by": "x"}
        )


class _Quick(Disk):
    def fdatasync(self, fd: int) -> None:
        """Nothing: how the store was made is not measured."""


def _fill(folder: Path, steps: int) -> None:
    """The store of a run of so many steps, each of which changed a file."""
    store = Store(folder, _Quick())
    store.look(write=True)
    for number in range(steps):
        for data in (f"file {number}".encode(), f"folder {number}".encode()):
            store.put(canon.digest(data), data)
        store.begin(b"effect" * 30)
        store.settle()
        if number % (SHORT // 3) == 0:
            store.keep_index()


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        local = {count: _local(folder, count) for count in (SHORT, LONG)}
        done = subprocess.run(
            [sys.executable, "-m", "bench.bench_growth", "worker"],
            check=True, stdout=subprocess.PIPE, cwd=ROOT, env=_environment(folder / "data", {}),
        )  # fmt: skip
        worker: dict[str, dict[str, float]] = json.loads(done.stdout.decode().strip().splitlines()[-1])
        size = local[LONG]["resume"]["bytes"]
        verbs = (_verb_rows(verb, local[SHORT][verb], local[LONG][verb]) for verb in VERBS)
        return [*chain.from_iterable(verbs),
                *_rows("a worker, SQLite: taking up a run", worker[str(SHORT)], worker[str(LONG)]),
                row(f"snapshot of the run of {LONG:,} records", size, 0, "B", "")]  # fmt: skip


def _verb_rows(verb: str, short: dict[str, float], long: dict[str, float]) -> list[dict[str, Any]]:
    who = f"`spak {verb}`"
    title = f"{who} of {LONG:,} records"
    memory = long["bytes_held"] / short["bytes_held"]
    return [
        *_rows(who, short, long),
        row(f"{title}, over one of {SHORT:,}: peak memory", memory, 1.0, "ratio", "<= 1.1"),
        row(f"{title}: peak memory", long["bytes_held"] / 2**20, short["bytes_held"] / 2**20, "MiB", ""),
    ]


def _rows(who: str, short: dict[str, float], long: dict[str, float]) -> list[dict[str, Any]]:
    title = f"{who} of {LONG:,} records"
    return [
        row(f"{title}, over one of {SHORT:,}", long["cpu"] / short["cpu"], 1.0, "ratio", "<= 1.5"),
        row(title, long["cpu"], short["cpu"], "s CPU", ""),
        row(f"{title}, without its snapshot", long["whole"], short["cpu"], "s CPU", ""),
    ]


def _local(folder: Path, count: int) -> dict[str, dict[str, float]]:
    """By verb: what it costs on a run folder of so many records."""
    name = f"run-{count}"
    where = folder / "runs" / name
    root = Workspace(where / "workspace", where / "store").snapshot()
    _fill(where / "store", count // 3)
    found = made(name, count, root)
    size = 0 if found.snapshot is None else len(found.snapshot.data)
    measured = {}
    for verb in VERBS:
        spent = [_done(verb, folder, where, found) for _ in range(ROUNDS)]
        whole = spent if found.snapshot is None else [_done(verb, folder, where, found, without=True)]
        measured[verb] = {
            "cpu": statistics.median(cpu for cpu, _ in spent),
            "whole": statistics.median(cpu for cpu, _ in whole),
            "bytes_held": statistics.median(held for _, held in spent),
            "bytes": size,
        }
    return measured


def _done(verb: str, folder: Path, where: Path, found: Made, without: bool = False) -> tuple[float, int]:
    """CPU seconds and the most memory of a command about the run as it was left."""
    data = b"".join(found.lines)
    (where / "trace.jsonl").write_bytes(data)
    snapshots.drop(where)
    if found.snapshot is not None and not without:
        snapshots.write(where, found.snapshot, found.size, hashlib.sha256(data[: found.size]))
    words = [sys.executable, "-c", COMMAND, verb, found.name, "--json"]
    words += ["--runs-dir", str(folder / "runs"), *(["--at", str(len(found.lines))] * (verb == "fork"))]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, cwd=folder)
        assert process.stderr is not None
        held = int(process.stderr.read().split()[-1]) * 1024
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        seen = json.loads(out.read())
    records = {"resume": len(found.lines) + 1, "show": len(found.lines), "fork": len(found.lines)}
    exits = {"resume": 4, "fork": 4}
    assert process.returncode == exits.get(verb, 0), (verb, process.returncode, seen)
    assert verb not in records or (seen["state"], seen["records"]) == ("waiting", records[verb]), seen
    if verb == "fork":
        shutil.rmtree(folder / "runs" / seen["run"])
    return used.ru_utime + used.ru_stime, held


# ---- the worker


def worker() -> dict[int, dict[str, float]]:
    team = team_of_bench()
    from django.db import connection

    from spakweb.ground.database import appendonly

    appendonly.remove(connection)
    _advanced(team, SHORT, "warm")
    return {count: _advanced(team, count, f"run-{count}") for count in (SHORT, LONG)}


def _advanced(team: Any, count: int, key: str) -> dict[str, float]:
    from spakweb.store.ledger.projection import Projection
    from spakweb.store.ledger.workspaces import folder_of, workspace_of
    from spakweb.store.runs.models import Run

    found = made(key, count, workspace_of(key).snapshot())
    _fill(folder_of(key) / "store", count // 3)
    run = Run.objects.create(team=team, key=key, name=key, mode="stepwise", backend="manual")
    seen = Projection()
    known = 0 if found.snapshot is None else found.snapshot.count
    for record in found.records[:known]:
        seen.feed(record)
    summary = seen.data
    _insert(run, found)
    spent = [_taken(run, found, known, summary) for _ in range(ROUNDS)]
    whole = spent if found.snapshot is None else [_taken(run, found, 0, {})]
    return {"cpu": statistics.median(spent), "whole": statistics.median(whole)}


def _insert(run: Any, found: Made) -> None:
    from spakweb.store.runs.models import RunRecord

    rows_ = (
        RunRecord(run=run, seq=item.seq, kind=str(item.kind), authority=str(item.authority), task=item.task,
                  step=item.step, at=item.at, line=line)
        for item, line in zip(found.records, found.lines, strict=True)
    )  # fmt: skip
    RunRecord.objects.bulk_create(rows_, batch_size=500)


def _taken(run: Any, found: Made, known: int, summary: dict[str, Any]) -> float:
    """CPU seconds of a worker that takes the run up as it was left, and puts it down again."""
    from django.db import connection

    from spakweb.store.runs.models import Run, RunRecord, RunSnapshot
    from spakweb.work.worker.execute import advance

    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s AND seq >= %s",
            [run.pk, len(found.lines)],
        )
    RunSnapshot.objects.filter(run=run).delete()
    if known and found.snapshot is not None:
        kept = found.snapshot
        RunSnapshot.objects.create(run=run, count=kept.count, head=kept.head, data=kept.data)
    Run.objects.filter(pk=run.pk).update(
        count=len(found.lines), head=found.records[-1].hash, state="queued", projected=known, summary=summary
    )
    began = time.process_time()
    advance(run.key)
    spent = time.process_time() - began
    run.refresh_from_db()
    assert (run.state, run.count, run.projected) == ("waiting", len(found.lines) + 1, run.count), run.reason
    return spent


if __name__ == "__main__":
    os.chdir(ROOT)
    print(json.dumps(worker()))
