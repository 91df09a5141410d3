"""A run as rows, without a worker: a real genesis and, if wanted, many records behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spak import canon, config
from spak.lang import parse
from spak.lang.imports import resolve
from spak.lang.spec_files import folder_reader
from spak.program import compile as compile_program
from spak.records import Record, place
from spak.runner.genesis import genesis
from spakweb.store.ledger.blobs import store
from spakweb.store.runs.models import Run, RunBlob, RunRecord

PAGE = 1_000


def rows(run: Run, records: list[Record], previous: str = canon.ZERO, start: int = 0) -> str:
    """Write records of a run behind each other; gives the head."""
    head, made = previous, []
    for seq, given in enumerate(records, start):
        record, line = place(given, seq, head)
        head = record.hash
        kind, authority = record.kind, record.authority
        made.append(
            RunRecord(
                run=run, seq=seq, kind=kind, authority=authority, task=record.task, step=record.step,
                at=record.at, line=line,
            )
        )  # fmt: skip
    RunRecord.objects.bulk_create(made, batch_size=PAGE)
    return head


def begun(team: Any, version: Any, key: str, more: list[Record] | None = None, **columns: Any) -> Run:
    """A run of a version with its genesis and `more` records."""
    whole = resolve(parse(version.text.encode(), "kit.spak"), folder_reader(Path(__file__)))
    program = compile_program(whole.parsed, config.catalog(), {})
    host = {"run": key, "spec": "kit.spak", "mode": "stepwise", "auto_steps": 1, "in_place": ""}
    used = config.used(config.catalog(), program)
    body = genesis(whole.parsed.text, used, {}, canon.ZERO, 1, host, "", whole.policy, keys=[])
    columns = {"name": "kit", "state": "waiting", "takes_in": [], **columns}
    run = Run.objects.create(team=team, version=version, key=key, **columns)
    records = [Record("genesis", "proposal", body), *(more or [])]
    head = rows(run, records)
    Run.objects.filter(pk=run.pk).update(count=len(records), head=head)
    run.refresh_from_db()
    return run


def with_file(run: Run, data: bytes) -> str:
    """A file of the best candidate; gives how its address ends."""
    digest = canon.digest(data)
    store(digest, data)
    RunBlob.objects.get_or_create(run=run, digest=digest, size=len(data))
    run.summary = {"artifacts": [{"name": "best.c", "blob": digest}]}
    run.save(update_fields=["summary"])
    return f"blob/{digest}"
