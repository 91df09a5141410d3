"""A signed checkpoint of 10,000 runs, and the proof of one record in it.

The folder has RUNS runs of RECORDS records as our ledger writes them. The checkpoint is `FileLog.update` and
`publish` into a folder, the proof is `prove`, which `spak ledger checkpoint` and `spak ledger prove` call.
The first checkpoint reads every record; the second comes after 100 runs have grown, looks at all and reads
those. Proofs are of random records of random runs, each verified apart from its time. The floor of the first
checkpoint is the time to read all files once.

The platform has as many runs in SQLite; its figures are those of a team's job (`checkpoints.write`) and of
`DatabaseLog.prove`, in a process of its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_platform import ROOT, _environment, team_of_bench
from bench.sizes import sized
from spak import canon
from spak.ledger.file_log import FileLog, prove
from spak.ledger.files import FileLedgers
from spak.ledger.note import own_verifier, verifier
from spak.ledger.places import place
from spak.ledger.proofs import check_inclusion
from spak.ledger.publish import Published, publish
from spak.records import Record
from spak.records import place as placed

RUNS, RECORDS, GROWN, PROOFS = sized(10_000, 50), 30, sized(100, 5), sized(500, 20)
ORIGIN, SEED = "example.com/bench", b"b" * 32
OUT = "o" * 400
"""What each record says: with it a line has the usual length of one of ours."""


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        root, evidence = Path(name) / "runs", Path(name) / "evidence"
        names = [f"run-{number:05d}" for number in range(RUNS)]
        for run in names:
            _write(root, run, RECORDS)
        begun = time.perf_counter()
        for run in names:
            (root / run / "trace.jsonl").read_bytes()
        floor = time.perf_counter() - begun
        first_s, first = _timed(root, evidence)
        for run in names[:GROWN]:
            _write(root, run, RECORDS + 5)
        again_s, again = _timed(root, evidence)
        key, rnd, proof_s = own_verifier(ORIGIN, SEED), random.Random(7), list[float]()
        for _ in range(PROOFS):
            run, seq = rnd.choice(names), rnd.randrange(RECORDS)
            begun = time.perf_counter()
            text = prove(root, run, seq)
            proof_s.append(time.perf_counter() - begun)
            found = check_inclusion(text, key)
            if (found.leaf.run, found.seq) != (run, seq):
                raise RuntimeError(f"the proof of {run}/{seq} proves another record")
    middle, most = _of(proof_s)
    sizes = (first.note.head().size, again.note.head().size)
    if sizes != (RUNS, RUNS + GROWN):
        raise RuntimeError(f"the checkpoints have {sizes} leaves")
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        words, env = [sys.executable, "-m", "bench.bench_checkpoint"], _environment(Path(name), {})
        done = subprocess.run(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=True)
        stored = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return [
        _row(f"checkpoint: the first of {RUNS:,} runs on the platform", stored["first"], None, "s", "<= 5"),
        _row("checkpoint: the next one on the platform", stored["again"], None, "s", "<= 5"),
        _row("checkpoint: proof of a record on the platform, median", stored["middle"], None, "ms", "<= 10"),
        _row("checkpoint: the same, 99 of 100", stored["most"], None, "ms", ""),
        _row(
            f"checkpoint: the first of {RUNS:,} runs of {RECORDS} records, signed",
            first_s,
            floor,
            "s",
            "<= 5",
        ),
        _row(f"checkpoint: the next one, after {GROWN} of them have grown", again_s, None, "s", "<= 5"),
        _row(f"checkpoint: proof of a record, median of {PROOFS}", middle, None, "ms", "<= 10"),
        _row("checkpoint: the same, 99 of 100", most, None, "ms", ""),
    ]


def _timed(root: Path, evidence: Path) -> tuple[float, Published]:
    begun = time.perf_counter()
    log = FileLog(root)
    with log.held():
        if wrong := log.update(FileLedgers(root)):
            raise RuntimeError(wrong[0])
        made = publish(log, ORIGIN, SEED, log.signed(), (), [place(str(evidence))])
        log.keep(made.note)
    return time.perf_counter() - begun, made


def _write(root: Path, run: str, count: int) -> None:
    (root / run).mkdir(parents=True, exist_ok=True)
    (root / run / "trace.jsonl").write_bytes(b"".join(_lines(run, count)))


def _lines(run: str, count: int) -> list[bytes]:
    head, lines = canon.ZERO, []
    for seq in range(count):
        body = {"host": {"run": run}, "rules": {}} if seq == 0 else {"n": seq, "out": OUT}
        kind = "act" if seq else "genesis"
        record, line = placed(Record(kind, "proposal", body, "Main", "step", seq, at=18), seq, head)
        head = record.hash
        lines.append(line)
    return lines


def _of(seconds: list[float]) -> tuple[float, float]:
    """The median, and what 99 of 100 do not exceed, in milliseconds."""
    found = sorted(one * 1000 for one in seconds)
    return found[len(found) // 2], found[int(0.99 * len(found)) - 1]


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": floor, "unit": unit, "aim": aim}


def platform() -> dict[str, float]:
    """Seconds of the platform: the first checkpoint of a team, the next, and 99 of 100 proofs."""
    team = team_of_bench()
    from django.conf import settings

    from spak.ledger.settings import Checkpoints
    from spakweb.store.ledger.log import DatabaseLog
    from spakweb.store.runs.models import Run, RunRecord
    from spakweb.work.runs import checkpoints

    def records(run: Run, lines: list[bytes], start: int = 0) -> list[RunRecord]:
        kept = {"run": run, "kind": "act", "authority": "proposal", "at": 18}
        return [RunRecord(seq=seq, line=lines[seq], **kept) for seq in range(start, len(lines))]

    settings.CHECKPOINTS = Checkpoints(log="example.com/bench")
    keys = [f"run-{number:05d}" for number in range(RUNS)]
    runs = Run.objects.bulk_create([Run(team=team, key=key, name=key, state="succeeded") for key in keys])
    for start in range(0, RUNS, 200):
        made: list[RunRecord] = []
        for run in runs[start : start + 200]:
            lines = _lines(run.key, RECORDS)
            run.count, run.head = RECORDS, lines[-1][6:49].decode()
            made += records(run, lines)
        RunRecord.objects.bulk_create(made, batch_size=1000)
    Run.objects.bulk_update(runs, ["count", "head"], batch_size=200)
    begun = time.perf_counter()
    size = checkpoints.write(team).size
    first = time.perf_counter() - begun
    for run in runs[:GROWN]:
        lines = _lines(run.key, RECORDS + 5)
        RunRecord.objects.bulk_create(records(run, lines, RECORDS))
        Run.objects.filter(pk=run.pk).update(count=len(lines), head=lines[-1][6:49].decode())
    begun = time.perf_counter()
    row = checkpoints.write(team)
    again = time.perf_counter() - begun
    if (size, row.size, row.problems) != (RUNS, RUNS + GROWN, []):
        raise RuntimeError(f"the checkpoints have {size} and {row.size} leaves: {row.problems}")
    key, rnd, proof_s = verifier(row.key), random.Random(7), list[float]()
    for _ in range(PROOFS):
        run, seq = rnd.choice(runs), rnd.randrange(RECORDS)
        begun = time.perf_counter()
        text = DatabaseLog(team).prove(run, seq)
        proof_s.append(time.perf_counter() - begun)
        if check_inclusion(text, key).line != _lines(run.key, RECORDS)[seq]:
            raise RuntimeError(f"the proof of {run.key}/{seq} proves another record")
    middle, most = _of(proof_s)
    return {"first": first, "again": again, "middle": middle, "most": most}


if __name__ == "__main__":
    print(json.dumps(platform()))
