"""`spak doctor` lists the backends that a spec or `spak.toml` may name, as the documentation says it does."""

from __future__ import annotations

from pathlib import Path

from cli_kit import spak
from spak.llm import BACKENDS


def test_doctor_lists_every_backend_and_needs_none(tmp_path: Path) -> None:
    _, told = spak(tmp_path, "doctor", "--json")
    rows = {row["name"]: row for row in told["checks"]}
    for name, make in BACKENDS.items():
        row = rows[f"backend {name}"]
        assert row["needed"] is False and (row["ok"] or row["mend"])
        assert make().entry.summary in row["detail"]
    assert rows["backend manual"]["ok"] is True
