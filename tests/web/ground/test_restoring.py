"""A restore that is killed: the place is as it was, or nothing starts there until a restore is done."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core import checks
from django.core.management import get_commands, load_command_class
from django.db import connection
from django.test import Client

import warm_kit
from platform_kit import ROOT, environment, manage
from spakweb.ground.database import restoring
from spakweb.ground.errors import Refused
from spakweb.work.operate import backup

OLD = {
    "spak.sqlite3": "old database",
    "spak.sqlite3-wal": "old log",
    "secret_key": "old key",
    "runs/mine.txt": "mine",
    "media/aa": "a",
}
NEW = {"secret_key": "new key", "runs/r1/word.txt": "hello", "runs/r2.txt": "two", "media/bb": "b"}
DATABASE = "new database"


def laid(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def found(place: Path) -> dict[str, str]:
    """The texts of all files but those that the platform makes again."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {
        str(path.relative_to(place)): path.read_text()
        for path in files
        if path.relative_to(place).parts[0] not in backup.PASSING - {restoring.NAME}
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole backup of a few small files."""
    copy = tmp_path_factory.mktemp("backup") / "copy"
    laid(copy / "data", NEW)
    (copy / backup.SQLITE).write_text(DATABASE)
    digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()  # noqa: E731
    rows = [[name, len(text), digest(copy / "data" / name)] for name, text in NEW.items()]
    (copy / backup.FILES).write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = {
        "version": backup.VERSION, "made_at": "2026-01-01", "database": backup.SQLITE, "files": len(NEW),
        "sha256": digest(copy / backup.SQLITE), "files_sha256": digest(copy / backup.FILES),
        "runs": 2, "damaged": [],
    }  # fmt: skip
    (copy / backup.MANIFEST).write_text(json.dumps(manifest))
    return copy


@pytest.fixture
def place(tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    settings.DATA_DIR = data
    monkeypatch.setitem(connection.settings_dict, "NAME", str(data / "spak.sqlite3"))
    monkeypatch.setattr(connection, "close", lambda: None)
    return data


CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "shutil.rmtree"}


def killed_before(number: int, source: Path, replace: bool) -> bool:
    """Restore in a child that is killed right before it changes something for that time; whether it was."""
    pid = os.fork()
    if not pid:
        seen = 0

        def look(event: str, words: tuple[object, ...]) -> None:
            nonlocal seen
            writes = event == "open" and isinstance(words[2], int) and words[2] & (os.O_WRONLY | os.O_CREAT)
            if event in CHANGES or writes:
                seen += 1
                if seen > number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(look)
        try:
            backup.restore(source, replace, lambda line: None)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def half(data: Path) -> bool:
    try:
        restoring.refuse(data)
    except Refused as why:
        assert why.code == "web.half_restored"
        return True
    return False


def restored(data: Path) -> dict[str, str]:
    """What was put back, and what was put aside under its own names."""
    assert not (data / backup.COMING).exists() and not half(data)
    whole = {**NEW, "spak.sqlite3": DATABASE}
    texts = found(data)
    assert {name: text for name, text in texts.items() if not name.startswith(backup.ASIDE)} == whole
    asides = list(data.glob(f"{backup.ASIDE}*"))
    assert len(asides) <= 1
    return found(asides[0]) if asides else {}


@pytest.mark.parametrize("used", [True, False], ids=["over an old one", "into an empty place"])
def test_killed_before_each_change_it_is_as_it_was_or_begins_anew(
    used: bool, source: Path, place: Path
) -> None:
    halves = wholes = 0
    for number in range(1000):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        laid(place, OLD if used else {"secret_key": "made by the settings"})
        before = found(place)
        if not killed_before(number, source, replace=used):
            break
        if half(place):
            halves += 1
            killed_before(number // 2, source, replace=False)
            if half(place):
                backup.restore(source, False, lambda line: None)
        else:
            wholes += 1
            assert found(place) == before
            backup.restore(source, used, lambda line: None)
        assert restored(place) == before
    assert restored(place) == before and halves >= 10 and wholes >= 5


def test_another_backup_or_half_a_one_may_come_next(source: Path, place: Path, tmp_path: Path) -> None:
    laid(place, OLD)
    assert killed_before(20, source, replace=True) and half(place)
    (tmp_path / "none").mkdir()
    with pytest.raises(Refused, match=r"not a whole backup"):
        backup.restore(tmp_path / "none", True, lambda line: None)
    assert half(place)
    backup.restore(source, False, lambda line: None)
    assert restored(place) == OLD


def test_nothing_of_what_was_put_aside_is_written_over(source: Path, place: Path) -> None:
    """A process that still ran has made the key anew in the middle."""
    laid(place, OLD)
    restoring.write(place, restoring.Marker(f"{backup.ASIDE}1"))
    laid(place, {f"{backup.ASIDE}1/secret_key": "the first key"})
    backup.restore(source, False, lambda line: None)
    aside = restored(place)
    assert aside.pop("secret_key") == "the first key" and aside.pop("secret_key.1") == "old key"
    assert aside == {name: text for name, text in OLD.items() if name != "secret_key"}


def test_a_database_beside_the_data_is_put_aside_where_it_is(
    source: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be on another disk."""
    laid(place, {"runs/mine.txt": "mine"})
    laid(tmp_path, {"db/x.sqlite3": "old database"})
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "db/x.sqlite3"))
    backup.restore(source, True, lambda line: None)
    assert (tmp_path / "db/x.sqlite3").read_text() == DATABASE
    (aside,) = (tmp_path / "db").glob(f"{backup.ASIDE}*")
    assert (aside / "x.sqlite3").read_text() == "old database"
    assert found(place / aside.name) == {"runs/mine.txt": "mine"}


# ---- who refuses


def test_no_command_and_no_worker_begins_while_it_is_half(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    restoring.write(data, restoring.Marker(f"{backup.ASIDE}1"))
    for words in (["up", "--demo"], ["check_store"]):
        done = manage(data, *words)
        assert done.returncode == 1 and "web.half_restored" in done.stderr, (words, done.stderr)
        assert "manage.py restore" in done.stderr and "Traceback" not in done.stderr
    line = ["-m", "celery", "-A", "spakweb.celery", "worker", "-P", "threads"]
    worker = warm_kit.run(line, cwd=ROOT, env=environment(data, 8000), timeout=120)
    assert worker.returncode and "web.half_restored" in worker.stderr, worker.stderr
    assert not (data / "secret_key").exists()


def test_every_command_but_restore_asks_first(place: Path) -> None:
    place.mkdir()
    assert not [error for error in checks.run_checks() if error.id == restoring.CODE]
    restoring.write(place, restoring.Marker(f"{backup.ASIDE}1"))
    assert [error.id for error in checks.run_checks() if error.is_serious()] == [restoring.CODE]
    commands = get_commands()
    ours = {name for name, app in commands.items() if str(app).startswith("spakweb.")} | {"migrate", "shell"}
    assert len(ours) >= 10
    asking = {name for name in ours if load_command_class(commands[name], name).requires_system_checks}
    assert ours - asking <= {"restore", "check_worker", "shell"}


def test_readyz_says_so(place: Path, client: Client) -> None:
    place.mkdir()
    restoring.write(place, restoring.Marker(f"{backup.ASIDE}1"))
    answer = client.get("/readyz")
    assert answer.status_code == 503 and b"web.half_restored" in answer.content
