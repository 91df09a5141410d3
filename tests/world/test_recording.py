"""Data files of coverage.py that are damaged, huge or hostile: a code, never a crash."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import recording_kit
from spak.errors import UsageError
from spak.world.selection import coverage_file, recording
from spak.world.selection.recording import Recording
from world_kit import Code

FILES = {"calc.py": "def f():\n    return 1\n", "test_calc.py": "def test_f():\n    pass\n"}
RAN = {"": {"calc.py": [1]}, "test_calc.py::test_f|run": {"calc.py": [2]}}


def sql(*statements: str) -> Callable[[Path, Path], None]:
    """A recording that somebody changed."""

    def make(path: Path, root: Path) -> None:
        recording_kit.write(path, root, RAN)
        with closing(sqlite3.connect(path)) as db, db:
            for statement in statements:
                db.execute(statement)

    return make


def text(data: bytes) -> Callable[[Path, Path], None]:
    return lambda path, root: path.write_bytes(data) and None


def cut(path: Path, root: Path) -> None:
    recording_kit.write(path, root, RAN)
    path.write_bytes(path.read_bytes()[:5000])


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x, x, x FROM n"
BAD: dict[str, tuple[Callable[[Path, Path], object], str, str]] = {
    "missing": (lambda path, root: None, "world.recording", "no such file"),
    "a folder": (lambda path, root: path.mkdir(), "world.recording", "not a file"),
    "a pipe": (lambda path, root: os.mkfifo(path), "world.recording", "not a file"),
    "text": (text(b"!coverage.py: This is a private format\n" * 40), "world.recording", "cannot be read"),
    "empty": (text(b""), "world.recording", "no table"),
    "cut": (cut, "world.recording", ""),
    "another version": (sql("UPDATE coverage_schema SET version = 6"), "world.recording", "not version 7"),
    "no table": (sql("DROP TABLE arc"), "world.recording", "no table arc"),
    "an endless view": (
        sql("DROP TABLE line_bits", f"CREATE VIEW line_bits AS {ENDLESS}"),
        "world.recording",
        "no table line_bits",
    ),
    "a long value": (sql("UPDATE line_bits SET numbits = zeroblob(4000000)"), "world.recording", "too big"),
    "lines that are text": (sql("UPDATE line_bits SET numbits = '2'"), "world.recording", "no set of lines"),
    "arcs that are text": (sql("INSERT INTO arc VALUES (1, 1, 'a', 'b')"), "world.recording", "no number"),
    "a name that is a number": (
        sql("UPDATE context SET context = x'00' WHERE id = 2"),
        "world.recording",
        "no text",
    ),
    "a row of no file": (sql("UPDATE line_bits SET file_id = 77"), "world.recording", "names no file"),
    "no contexts": (
        sql("DELETE FROM context WHERE id = 2", "DELETE FROM line_bits WHERE context_id = 2"),
        "world.recording_contexts",
        "which test",
    ),
    "another folder": (
        sql("UPDATE file SET path = replace(path, 'code/', 'elsewhere/')"),
        "world.recording_elsewhere",
        "no file of it is of this folder",
    ),
    "names that lead out": (
        sql("UPDATE file SET path = '../../../etc/passwd' || char(10) || id"),
        "world.recording_elsewhere",
        "no file of it is of this folder",
    ),
    "tests of others": (
        sql("UPDATE context SET context = 'x/test_y.py::test_z|run' WHERE id = 2"),
        "world.recording_elsewhere",
        "no context of it is a test of this folder",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_recording_of_this_folder_is_refused(code: Code, tmp_path: Path, case: str) -> None:
    make, wanted, words = BAD[case]
    code.put(FILES)
    make(tmp_path / "data", code.root)
    with pytest.raises(UsageError) as caught:
        recording.keep(code.model(), coverage_file.read(tmp_path / "data"))
    assert (caught.value.code, words in caught.value.message) == (wanted, True), caught.value.message
    assert not Recording(code.store, code.root)


def test_a_recording_of_changed_files_is_refused(code: Code, tmp_path: Path) -> None:
    code.put(FILES)
    path = recording_kit.write(tmp_path / "data", code.root, RAN)
    for name in FILES:
        os.utime(code.root / name, (path.stat().st_mtime + 9,) * 2)
    with pytest.raises(UsageError, match="changed") as caught:
        recording.keep(code.model(), coverage_file.read(path))
    assert caught.value.code == "world.recording_elsewhere"


@pytest.mark.parametrize(
    ("limit", "words"), [("MAX_BYTES", "MiB"), ("MAX_NAMES", "names"), ("MAX_ROWS", "lines")]
)
def test_a_huge_recording_is_refused(
    code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
) -> None:
    code.put(FILES)
    path = recording_kit.write(tmp_path / "data", code.root, RAN)
    monkeypatch.setattr(coverage_file, limit, 1)
    with pytest.raises(UsageError, match=words) as caught:
        coverage_file.read(path)
    assert caught.value.code == "world.recording"


def test_a_file_with_odd_names_beside_good_ones_is_read(code: Code, tmp_path: Path) -> None:
    """Names are only compared with those of the index: none is opened."""
    odd = {"a\n.py": "def g(): ...\n", "\u202e.py": "def h(): ...\n"}
    code.put({**FILES, **odd})
    ran = {
        **RAN,
        "test_calc.py::test_f[x]]|setup|run": {"a\n.py": [1], "../out.py": [1]},
        "\0": {"calc.py": [1]},
    }
    kept = recording.keep(
        code.model(), coverage_file.read(recording_kit.write(tmp_path / "data", code.root, ran))
    )
    assert (kept.tests, kept.unknown) == (1, ("\0",))
    assert Recording(code.store, code.root).tests == {"py:test_calc.py#test_f"}


def test_the_time_of_a_file_that_says_none_is_that_of_the_file(code: Code, tmp_path: Path) -> None:
    code.put(FILES)
    path = recording_kit.write(tmp_path / "data", code.root, RAN)
    assert coverage_file.read(path).begun == path.stat().st_mtime
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO meta VALUES ('when', '2001-02-03 04:05:06')")
    assert 0 < coverage_file.read(path).begun < 1_000_000_000
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = 'soon'")
    assert coverage_file.read(path).begun == path.stat().st_mtime


def test_reading_leaves_nothing_beside_the_file(code: Code, tmp_path: Path) -> None:
    code.put(FILES)
    path = recording_kit.write(tmp_path / "data", code.root, RAN)
    path.chmod(0o444)
    before = path.read_bytes()
    coverage_file.read(path)
    assert path.read_bytes() == before
    assert not [name for name in tmp_path.iterdir() if name.name.startswith("data-")]
