"""Whether a SQLite database is damaged, by SQLite's own check, within a bound of time.

Takes the file; changes nothing in it. The quick check looks at every page and row, the full one also at every
index entry. Neither notices a changed byte of a text: for records their chain does.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

MOST = 20
"""Problems that are named."""
STEPS = 10_000
"""Instructions of SQLite between two looks at the time."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of files found: problems in words, and whether all of them could be looked at."""

    problems: tuple[str, ...] = ()
    complete: bool = True
    """False when the time was over before all was looked at."""


def check(file: Path, within_s: float, *, full: bool = False) -> Checked:
    """What is wrong with the database; nothing where there is no file."""
    if not file.exists():
        return Checked()
    ends = time.monotonic() + within_s
    word = "integrity_check" if full else "quick_check"
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=within_s)
        ) as opened:
            opened.set_progress_handler(lambda: time.monotonic() > ends, STEPS)
            rows = opened.execute(f"PRAGMA {word}({MOST})").fetchall()
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error) or "locked" in str(error):
            return Checked(complete=False)
        return Checked((str(error),))
    except sqlite3.DatabaseError as error:
        return Checked((str(error),))
    found = [line for row in rows for line in str(row[0]).splitlines() if not line.startswith("***")]
    return Checked(() if found == ["ok"] else tuple(found[:MOST]))
