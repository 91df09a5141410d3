"""Damage of the store is found and told, the rest is read on; backups are verified, and lead back."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from django.db import DatabaseError, OperationalError
from django.test import Client

import warm_kit
from needs import missing
from platform_kit import ROOT, environment, migrated, migrated_server
from servers_kit import Postgres, binary
from spak import integrity
from spak.cli import doctor
from spakweb.face.home import views
from spakweb.ground.database import damage
from spakweb.work.operate import backup

PAGE = 4096
MADE = """
from spakweb.work.worker import execute, queue
from spakweb.work.runs.actions import start
from spakweb.store.runs.models import Run
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.ground.teams.models import User
queue.send = lambda key, name="default": None
alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
team = create_team(alice, "Tuners")
asking = '''task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}'''
many = "task Many {" + "".join(
    f'  step s{n}: tool.write_file {{ path: "f{n}.txt" content: "' + 1000 * "MARK" + f'{n}" }}' + chr(10)
    for n in range(6)) + "}"
asks, writes = create_spec(alice, team, "asks", asking), create_spec(alice, team, "writes", many)
for spec in (writes, writes, asks):
    run = start(alice, spec)
    while execute.advance(run.key):
        pass
    print("RUN", run.key, Run.objects.get(pk=run.pk).state)
"""
GOES_ON = """
from spakweb.work.worker import execute, queue
from spakweb.work.runs.actions import ask
from spakweb.store.runs.models import Run
queue.send = lambda key, name="default": None
run = Run.objects.get(state="waiting")
ask(run.made_by, run, "answer", run.summary["waiting"]["id"], text="hello")
execute.advance(run.key)
print("STATE", Run.objects.get(pk=run.pk).state)
"""

READY = """
from django.test import Client
from spakweb.ground.database import damage
client = Client(SERVER_NAME="localhost")
client.get("/readyz")
damage.health._thread.join()
answer = client.get("/readyz")
print("READY", answer.status_code, answer.content.decode())
"""
WHOLE = """
from spak.kernel.replay import replay
from spak.ledger import verify
from spakweb.store.ledger.store import DatabaseLedgers
for key in DatabaseLedgers().runs():
    reader = DatabaseLedgers().reader(key)
    found = replay(record for record, _ in reader.read())
    lines = (line for _, line in reader.read())
    whole = verify(lines, exported=False, blobs=reader.blobs).ok and found.difference is None
    print("WHOLE", key, whole and not found.missing)
"""


class Done:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        assert "Traceback" not in self.err, self.err


def manage(data: Path, *words: str, **more: str) -> Done:
    line = [str(ROOT / "manage.py"), *words]
    return Done(warm_kit.run(line, cwd=ROOT, env=environment(data, 8000, **more)))


def made(data: Path, **more: str) -> list[str]:
    """Three runs in a platform that has its tables: two that ended, and one that waits. Gives their keys."""
    done = manage(data, "shell", "--no-imports", "-c", MADE, **more)
    found = re.findall(r"^RUN (\S+) (\S+)$", done.out, re.M)
    assert [state for _, state in found] == ["succeeded", "succeeded", "waiting"], done.err
    return [key for key, _ in found]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    data = tmp_path_factory.mktemp("store") / "data"
    shutil.copytree(migrated(tmp_path_factory), data)
    return data, made(data)


@pytest.fixture
def store(first: tuple[Path, list[str]], tmp_path: Path) -> tuple[Path, list[str]]:
    data, keys = first
    shutil.copytree(data, tmp_path / "data", symlinks=True)
    return tmp_path / "data", keys


def damaged_at(data: Path, key: str, part: int = 0) -> None:
    """One page that holds records of the run is overwritten; with `part` only that byte of a text."""
    file = data / "spak.sqlite3"
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = (
            "SELECT line FROM runs_runrecord r JOIN runs_run u ON u.id = r.run_id WHERE key = ? AND seq = 3"
        )
        ((line,),) = opened.execute(query, [key]).fetchall()
    whole = bytearray(file.read_bytes())
    at = whole.find(line[:200])
    assert at > 0
    if part:
        whole[at + part] ^= 1
    else:
        page = at // PAGE * PAGE
        whole[page : page + 64] = b"\xff" * 64
    file.write_bytes(whole)


# ---- damage


def test_a_whole_store(store: tuple[Path, list[str]]) -> None:
    data, _ = store
    done = manage(data, "check_store")
    assert (done.code, done.out.splitlines()) == (0, ["3 runs checked", "nothing is damaged"]), done.err
    assert manage(data, "check_store", "--quick").out == "nothing is damaged\n"
    assert integrity.check(data / "spak.sqlite3", 60) == integrity.Checked()
    assert integrity.check(data / "nowhere", 60) == integrity.Checked()


def test_a_damaged_page_is_found_and_the_rest_is_rebuilt(store: tuple[Path, list[str]]) -> None:
    data, keys = store
    damaged_at(data, keys[0])
    assert integrity.check(data / "spak.sqlite3", 60).problems
    done = manage(data, "check_store")
    assert done.code == 1 and "database: " in done.err
    assert re.search(rf"{keys[0]}: \d+ of \d+ records cannot be read: ", done.err), done.err
    assert keys[2] not in done.err
    done = manage(data, "rebuild")
    assert done.code == 1 and re.search(rf"{keys[0]}: \d+ of \d+ records cannot be read", done.err)
    rebuilt = int(done.out.split()[0])
    assert rebuilt >= 1 and f"damaged: {keys[0]}" in done.err
    done = manage(data, "backup", str(data.parent / "copy"))
    assert done.code == 1 and "web.backup" in done.err and "damaged" in done.err
    assert not (data.parent / "copy").exists()


def test_a_changed_byte_of_a_record_is_found_by_its_chain(store: tuple[Path, list[str]]) -> None:
    data, keys = store
    damaged_at(data, keys[1], part=150)
    assert not integrity.check(data / "spak.sqlite3", 60).problems
    done = manage(data, "check_store")
    assert done.code == 1 and f"{keys[1]}: record 3" in done.err and keys[0] not in done.err
    done = manage(data, "backup", str(data.parent / "copy"))
    assert done.code == 1 and f"damaged: {keys[1]}" in done.err
    assert json.loads((data.parent / "copy/manifest.json").read_text())["damaged"]
    done = manage(data.parent / "other", "restore", str(data.parent / "copy"))
    assert done.code == 0 and f"was damaged when the backup was made: {keys[1]}" in done.err


def test_a_missing_blob_is_found(store: tuple[Path, list[str]]) -> None:
    data, _ = store
    blob = next(path for path in (data / "media/blobs").rglob("*") if path.is_file())
    blob.unlink()
    assert blob.name in manage(data, "check_store").err


def test_a_file_that_is_no_database_and_one_that_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all" * 100)
    assert "not a database" in integrity.check(tmp_path / "text", 60).problems[0]
    with closing(sqlite3.connect(tmp_path / "large")) as opened:
        opened.execute("CREATE TABLE t (a)")
        opened.executemany("INSERT INTO t VALUES (?)", ((number,) for number in range(200_000)))
        opened.commit()
    assert integrity.check(tmp_path / "large", -1) == integrity.Checked(complete=False)


@pytest.fixture
def health(monkeypatch: pytest.MonkeyPatch) -> damage.Health:
    fresh = damage.Health()
    monkeypatch.setattr(damage, "health", fresh)
    return fresh


@pytest.mark.django_db
def test_readyz_says_that_the_database_is_damaged(
    health: damage.Health, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "db").write_text("damaged" * 1000)
    monkeypatch.setattr(damage, "file", lambda: tmp_path / "db")
    answer = Client().get("/readyz")
    assert (answer.status_code, b"database damaged" in answer.content) == (503, True)
    (tmp_path / "db").unlink()
    assert Client().get("/readyz").status_code == 503, "it is not looked at for each question"
    health._checked = -damage.CHECK_EVERY_S * 2
    Client().get("/readyz")
    assert health._thread is not None
    health._thread.join(60)
    assert Client().get("/readyz").content == b"ready\n"


def test_readyz_does_not_wait_for_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(views, "READY_S", 0.2)
    monkeypatch.setattr(views, "_asked", lambda: go.wait(60))
    answer = Client().get("/readyz")
    go.set()
    assert (answer.status_code, answer.content) == (503, b"database not reachable\n")
    assert views.READY_S <= 5


@pytest.mark.django_db
def test_a_page_that_meets_damage_says_so_and_readyz_too(
    health: damage.Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "file", lambda: None)

    def damaged(*ignored: object) -> None:
        raise DatabaseError("database disk image is malformed")

    monkeypatch.setattr(views, "url_has_allowed_host_and_scheme", damaged)
    answer = Client().post("/theme/", {"theme": "dark"}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (500, "web.damaged")
    assert Client().get("/readyz").status_code == 503


@pytest.mark.parametrize(
    ("error", "is_damage"),
    [
        (DatabaseError("database disk image is malformed"), True),
        (DatabaseError("file is not a database"), True),
        (OperationalError("database is locked"), False),
        (ValueError("malformed"), False),
    ],
)
def test_which_errors_mean_damage(error: Exception, is_damage: bool) -> None:
    assert damage.is_damage(error) is is_damage


def test_doctor_looks_at_the_platform_of_the_folder(
    store: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, keys = store

    def row() -> dict[str, Any] | None:
        found = json.loads(CliRunner().invoke(doctor.command, ["--json"], standalone_mode=False).output)
        return next((row for row in found["checks"] if row["name"] == "platform database"), None)

    monkeypatch.setenv("SPAK_WEB_DATA", str(data.parent / "nowhere"))
    assert row() is None
    monkeypatch.setenv("SPAK_WEB_DATA", str(data))
    assert (found := row()) is not None and found["ok"] is True and not found["mend"]
    damaged_at(data, keys[0])
    assert (found := row()) is not None and found["ok"] is False and "check_store" in found["mend"]


# ---- backup and restore


def goes_on(data: Path, keys: list[str], **more: str) -> None:
    """All runs are there, whole, and the one that waits goes on."""
    assert manage(data, "check_store", **more).code == 0
    done = manage(data, "shell", "--no-imports", "-c", GOES_ON, **more)
    assert "STATE succeeded" in done.out, done.err
    assert (data / "runs" / keys[2] / "workspace/word.txt").read_text() == "hello"


def test_a_backup_leads_back(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    data, keys = store
    (data / "queue").mkdir(exist_ok=True)
    (data / "queue/x.msg").write_text("{}")
    (data / "runs/link").symlink_to("nowhere")
    folder = data / "runs" / keys[0] / "workspace"
    folder.chmod(0o710)
    done = manage(data, "backup", str(tmp_path / "copy"))
    assert done.code == 0 and "3 runs and " in done.out, done.err
    copy = tmp_path / "copy"
    assert copy.stat().st_mode & 0o777 == 0o700 and not (copy / "data/queue").exists()
    assert not list((copy / "data").glob("spak.sqlite3*"))
    shutil.rmtree(data)
    done = manage(data, "restore", str(copy))
    assert done.code == 0 and "3 runs restored" in done.out, done.err
    again = data / "runs" / keys[0] / "workspace"
    assert again.stat().st_mode & 0o777 == 0o710 and (data / "runs/link").is_symlink()
    assert (data / "secret_key").read_bytes() == (copy / "data/secret_key").read_bytes()
    goes_on(data, keys)
    assert manage(tmp_path / "third", "restore", str(copy)).code == 0, "a backup can be used again"


def test_from_a_damaged_page_back_to_ready(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    """/readyz tells of the damage, the backup leads back, /readyz is content, all runs verify and replay."""

    def told(script: str) -> list[str]:
        done = manage(data, "shell", "--no-imports", "-c", script)
        return re.findall(r"^(?:READY|WHOLE) (.+)$", done.out, re.M)

    data, keys = store
    assert manage(data, "backup", str(tmp_path / "copy")).code == 0
    assert told(READY) == ["200 ready"]
    damaged_at(data, keys[0])
    assert told(READY) == ["503 database damaged: manage.py check_store says what"]
    done = manage(data, "restore", "--replace", str(tmp_path / "copy"))
    assert done.code == 0 and "3 runs restored" in done.out, done.err
    assert told(READY) == ["200 ready"]
    assert sorted(told(WHOLE)) == sorted(f"{key} True" for key in keys)
    goes_on(data, keys)


def test_where_a_backup_may_go(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    data, _ = store
    (tmp_path / "there").mkdir()
    for dest in (tmp_path / "there", data / "inside", data, Path("/proc/nowhere/x")):
        done = manage(data, "backup", str(dest))
        assert done.code == 1 and "web.backup" in done.err, dest
    assert not (data / "inside").exists() and not list((tmp_path / "there").iterdir())


def halves() -> Iterator[tuple[str, Callable[[Path], object]]]:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def some_blob(copy: Path) -> Path:
        return next(path for path in (copy / "data/media").rglob("*") if path.is_file())

    def escape(copy: Path) -> None:
        manifest = json.loads((copy / "manifest.json").read_text())
        (copy / "files.jsonl").write_text('["../../etc/passwd", 1, "x"]\n')
        manifest["files_sha256"] = backup._digest(copy / "files.jsonl")
        (copy / "manifest.json").write_text(json.dumps(manifest))

    def edited(**members: object) -> Callable[[Path], object]:
        def edit(copy: Path) -> None:
            found = json.loads((copy / "manifest.json").read_text())
            (copy / "manifest.json").write_text(json.dumps(found | members))

        return edit

    yield "no manifest", lambda copy: (copy / "manifest.json").unlink()
    yield "half a manifest", lambda copy: (copy / "manifest.json").write_text('{"version": 1, "fi')
    yield "a list", lambda copy: (copy / "manifest.json").write_text("[]")
    yield "version", edited(version=2)
    yield "member", edited(more=1)
    yield "no database", lambda copy: (copy / "database.sqlite3").unlink()
    yield "a flipped bit", lambda copy: flip(copy / "database.sqlite3")
    yield "a shorter list", lambda copy: (copy / "files.jsonl").write_text("")
    yield "a missing file", lambda copy: some_blob(copy).unlink()
    yield "a changed file", lambda copy: flip(some_blob(copy))
    yield "a path out of it", escape

    def pipe(name: str) -> Callable[[Path], object]:
        def make(copy: Path) -> None:
            (copy / name).unlink()
            os.mkfifo(copy / name)

        return make

    for name in ("manifest.json", "files.jsonl", "database.sqlite3"):
        yield f"a pipe {name}", pipe(name)
    yield "no folder", shutil.rmtree


def test_half_a_backup_is_refused(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    data, _ = store
    assert manage(data, "backup", str(tmp_path / "whole")).code == 0
    assert backup.check(tmp_path / "whole").runs == 3
    for name, spoil in halves():
        copy = tmp_path / "half"
        shutil.copytree(tmp_path / "whole", copy, symlinks=True)
        spoil(copy)
        with pytest.raises(backup.Refused) as refused:
            backup.check(copy)
        assert refused.value.code == "web.backup", name
        shutil.rmtree(copy, ignore_errors=True)
    (tmp_path / "whole/manifest.json").unlink()
    done = manage(tmp_path / "new", "restore", str(tmp_path / "whole"))
    assert done.code == 1 and "web.backup" in done.err
    assert {path.name for path in (tmp_path / "new").iterdir()} <= {"secret_key", "up.lock"}


def test_a_place_in_use_is_only_replaced_when_told(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    data, keys = store
    assert manage(data, "backup", str(tmp_path / "copy")).code == 0
    (data / "runs/mine.txt").write_text("kept")
    done = manage(data, "restore", str(tmp_path / "copy"))
    assert done.code == 1 and "web.restore" in done.err and (data / "runs/mine.txt").exists()
    done = manage(data, "restore", "--replace", str(tmp_path / "copy"))
    assert done.code == 0, done.err
    (aside,) = data.glob("before-restore-*")
    assert (aside / "runs/mine.txt").read_text() == "kept" and (aside / "spak.sqlite3").is_file()
    assert not (data / "runs/mine.txt").exists()
    goes_on(data, keys)
    assert manage(data, "backup", str(tmp_path / "second")).code == 0
    assert not list((tmp_path / "second/data").glob("before-*"))


def test_a_platform_that_works_is_not_restored_over(store: tuple[Path, list[str]], tmp_path: Path) -> None:
    from spakweb.work.operate.up import only_one

    data, _ = store
    assert manage(data, "backup", str(tmp_path / "copy")).code == 0
    with only_one(data, "http://127.0.0.1:8000"):
        done = manage(data, "restore", "--replace", str(tmp_path / "copy"))
    assert done.code == 1 and "web.running" in done.err and not list(data.glob("before-*"))


@pytest.mark.timeout(300)
def test_a_backup_of_postgresql_leads_back(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not binary("initdb") or not shutil.which("pg_dump"):
        missing("PostgreSQL", "postgresql")
    from tempfile import mkdtemp

    folder = Path(mkdtemp(prefix="spak-pg-"))
    try:
        with Postgres(folder, durable=False, copied=migrated_server(tmp_path_factory)) as server:
            used = {"SPAK_WEB_DATABASE_URL": server.url}
            keys = made(tmp_path / "data", **used)
            done = manage(tmp_path / "data", "backup", str(tmp_path / "copy"), **used)
            assert done.code == 0 and "3 runs" in done.out, done.err
            assert (tmp_path / "copy/database.dump").stat().st_mode & 0o777 == 0o600
            done = manage(tmp_path / "data", "restore", str(tmp_path / "copy"), **used)
            assert done.code == 1 and "web.restore" in done.err
            done = manage(tmp_path / "sqlite", "restore", str(tmp_path / "copy"))
            assert done.code == 1 and "another kind of database" in done.err
            done = manage(tmp_path / "data", "restore", "--replace", str(tmp_path / "copy"), **used)
            assert done.code == 0, done.err
            goes_on(tmp_path / "data", keys, **used)
            without = {**used, "PATH": str(Path(sys.executable).parent)}
            done = manage(tmp_path / "data", "backup", str(tmp_path / "third"), **without)
            assert done.code == 1 and "there is no pg_dump" in done.err
    finally:
        shutil.rmtree(folder, ignore_errors=True)
