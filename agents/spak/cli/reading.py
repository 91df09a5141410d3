"""Reading a run without its lease: its view, its records, the prompts it sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from spak.cli.artifacts import with_artifacts
from spak.errors import UsageError
from spak.kernel.replay import Replay
from spak.ledger.files import FileLedgers
from spak.records import Record
from spak.runner import View, view
from spak.runner.perform import prompt_of


def records_of(root: Path, run: str) -> Iterator[Record]:
    """The records of a run in order."""
    reader = FileLedgers(root).reader(run)
    try:
        for record, _ in reader.read():
            yield record
    finally:
        reader.close()


def view_of(root: Path, run: str) -> View:
    """The view of a run as its ledger has it now; it may be moving."""
    reader = FileLedgers(root).reader(run)
    try:
        found = Replay()
        for record, _ in reader.read():
            found.feed(record)
        effect = found.state.r6
        waits = (
            not found.state.ended and effect is not None and effect.cls == "ask" and effect.act != "approve"
        )
        prompt = prompt_of(effect, reader.blobs) if waits and effect is not None else None
        stop = "" if is_held(root / run) else "paused"
        seen = view(run, found.state, reader.head, reader.count, stop, prompt)
        return seen if found.rules is None else with_artifacts(seen, root / run, found.rules.r3)
    finally:
        reader.close()


def is_held(folder: Path) -> bool:
    """Whether a process holds the run's lease now; taking it to find out would refuse somebody else."""
    try:
        found = (folder / "lock").stat()
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(line.split()[1] == "FLOCK" and place in line.split() for line in locks)


def prompt_at(root: Path, run: str, seq: int) -> str:
    """The prompt that a permit sent, made again from the records before it.

    Raises: UsageError `usage.record` when that record asked nothing.
    """
    reader = FileLedgers(root).reader(run)
    asked: list[int] = []
    try:
        found = Replay()
        for record, _ in reader.read():
            found.feed(record)
            effect = found.state.r6
            if effect is not None and effect.items and effect.id == record.content:
                if record.seq == seq:
                    return prompt_of(effect, reader.blobs).text
                asked.append(record.seq)
    finally:
        reader.close()
    hint = f"these did: {', '.join(map(str, asked))}" if asked else "no record of this run did"
    raise UsageError("usage.record", f"record {seq} of run {run} asked nothing", hint)
