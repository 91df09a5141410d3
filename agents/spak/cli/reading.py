"""Reading a run without its lease: its view, its records, the prompts it sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
        waits = not found.state.ended and effect is not None and effect.cls == "ask"
        prompt = prompt_of(effect, reader.blobs) if waits and effect is not None else None
        return view(run, found.state, reader.head, reader.count, "paused", prompt)
    finally:
        reader.close()


def prompt_at(root: Path, run: str, seq: int) -> str | None:
    """The prompt that a permit sent, made again from the records before it; None when it sent none."""
    reader = FileLedgers(root).reader(run)
    try:
        found = Replay()
        for record, _ in reader.read():
            found.feed(record)
            effect = found.state.r6
            if record.seq == seq:
                asked = effect is not None and effect.items and effect.id == record.content
                return prompt_of(effect, reader.blobs).text if asked and effect is not None else None
        return None
    finally:
        reader.close()
