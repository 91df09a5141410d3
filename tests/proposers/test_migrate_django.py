"""The proposer `migrate_django`: what Django makes of changed models, there and back, and what is refused."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cli_kit import ROOT
from migrate_kit import MODELS, guest, project
from spak.errors import RunError, UsageError
from spak.ports import PlanRequest, Search
from spak.proposers.migrate import DRIVER, MigrateDjango
from validator_calls import call

SIZE = "size = models.IntegerField(null=True)"

EMPTY = """\
from django.db.migrations import Migration as Base


class Migration(Base):
    dependencies = [("shop", "0001_initial")]
"""
HELD = """\
import sqlite3

from django.apps import AppConfig
from django.conf import settings


class Shop(AppConfig):
    name = "shop"

    def ready(self):
        self.db = sqlite3.connect(settings.DATABASES["default"]["NAME"])
        self.db.execute("SELECT * FROM shop_item").fetchall()
"""
"""A project with a connection of its own, which keeps the journal of the database open."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("django") / "work")
    with sqlite3.connect(folder / "db.sqlite3") as db:
        db.executescript("INSERT INTO shop_item(name, size) VALUES ('a', 1), ('a', NULL), ('c', 3);")
    db.close()
    return folder


@pytest.fixture
def work(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "work")
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def to(work: Path, models: str, lose: str = "") -> dict[str, Any]:
    """The files and verdicts, or the refusal; without the sandbox, for speed."""
    (work / "shop/models.py").write_text(models)
    names = guest()
    plan = {"manage": "manage.py", "lose": lose, "driver": (ROOT / DRIVER).read_text()}
    try:
        found: dict[str, Any] = names["django"](plan, work.parent / "scratch")
    except names["schemas"].Refused as error:
        found = error.found
    return found


def searched(folder: Path, **options: str) -> Search:
    return MigrateDjango().search(PlanRequest("p", "t", "s", 0, 0, options, {}, {}), call(folder, {}))


@pytest.mark.sandbox
def test_a_new_field_is_a_migration_that_was_run_both_ways(work: Path) -> None:
    with sqlite3.connect(work / "db.sqlite3") as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    (work / "db.sqlite3").chmod(0o644)
    (work / "shop/apps.py").write_text(HELD)
    (work / "shop/models.py").write_text(
        MODELS + "    color = models.CharField(default='red', max_length=9)\n"
    )
    found = searched(work)
    assert found.refusal is None
    (one,) = found.candidates
    names = ["up", "kept", "foreign_keys", "clean", "down", "returned"]
    assert [check["name"] for check in one.checks] == names and all(check["ok"] for check in one.checks)
    assert one.checks[1]["detail"] == "5 rows of 2 tables, from db.sqlite3"
    assert "+++ b/shop/migrations/0002_item_color.py" in one.args["patch"]
    assert one.args["patch"].count("diff --git") == 1 and "AddField" in one.args["patch"]
    assert not (work / "shop/migrations/0002_item_color.py").exists(), "it works in a copy"


def test_a_field_with_values_is_lost_only_where_a_person_names_it(work: Path) -> None:
    models = MODELS.replace(f"    {SIZE}\n", "")
    (work / "shop/migrations/0002_empty.py").write_text(EMPTY)
    found = to(work, models)
    loss = {"table": "shop_item", "column": "size", "rows": 2}
    assert (found["code"], found["losses"]) == ("migrate.loss", [loss])
    shutil.rmtree(work.parent / "scratch")
    (work.parent / "scratch").mkdir()
    found = to(work, models, lose="shop_item.size")
    assert list(found["files"]) == ["shop/migrations/0003_remove_item_size.py"]
    assert found["checks"][1]["detail"].endswith("from db.sqlite3, after pending migrations (1)")


@pytest.mark.parametrize(
    ("was", "now", "code", "said", "which"),
    [
        ("", "", "migrate.unchanged", "have all changes", None),
        (
            SIZE,
            SIZE + "\n    n = models.IntegerField()",
            "migrate.rows",
            "impossible to add a non-null",
            None,
        ),
        ("null=True", "", "migrate.rows", "NOT NULL constraint failed", [{"id": 2}]),
        ("max_length=20", "max_length=20, unique=True", "migrate.rows", "UNIQUE constraint", [{"name": "a"}]),
        (SIZE, "size = models.IntegrField()", "migrate.project", "IntegrField", None),
        (SIZE, "size = models.ForeignKey('shop.No', models.CASCADE)", "migrate.project", "shop.No", None),
    ],
)
def test_what_django_cannot_migrate_is_refused(
    work: Path, was: str, now: str, code: str, said: str, which: list[dict[str, object]] | None
) -> None:
    found = to(work, MODELS.replace(was, now, 1))
    assert found["code"] == code and said in found["message"], found
    assert found.get("which") == which


def test_a_way_back_that_rows_forbid_is_refused(work: Path) -> None:
    models = MODELS.replace("    name = models.CharField(max_length=20)\n", "")
    assert to(work, models, lose="shop_item.name")["code"] == "migrate.irreversible"


@pytest.mark.parametrize(
    ("file", "was", "now", "code"),
    [
        ("manage.py", "DJANGO_SETTINGS_MODULE", "OTHER", "migrate.project"),
        ("site_/settings.py", "db.backends.sqlite3", "db.backends.dummy", "migrate.unsupported"),
        ("site_/settings.py", 'BASE / "db.sqlite3"', '"/var/db.sqlite3"', "migrate.database"),
        ("db.sqlite3", "", "this is a text and not a database\n", "migrate.database"),
        ("shop/migrations/0001_initial.py", "CreateModel", "CreateModle", "migrate.history"),
    ],
)
def test_a_project_that_cannot_be_migrated(work: Path, file: str, was: str, now: str, code: str) -> None:
    path = work / file
    text = path.read_text() if was else ""
    assert was in text
    path.write_text(text.replace(was, now) if was else now)
    assert to(work, MODELS)["code"] == code


def test_a_link_to_the_database_in_use_is_not_followed(work: Path) -> None:
    real = work.parent / "real.sqlite3"
    (work / "db.sqlite3").rename(real)
    (work / "db.sqlite3").symlink_to(real)
    before = real.read_bytes()
    found = to(work, MODELS + "    color = models.CharField(default='red', max_length=9)\n")
    assert found["code"] == "migrate.database" and real.read_bytes() == before


def test_a_refusal_that_the_project_wrote_itself(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"refusal": {"code": "other.code", "message": "m"}}
    monkeypatch.setattr("spak.proposers.migrate.guest.ask", lambda *args: written)
    with pytest.raises(RunError) as caught:
        searched(work)
    assert caught.value.code == "migrate.incomplete"


def test_without_a_database_the_migrations_are_run_on_an_empty_one(work: Path) -> None:
    (work / "db.sqlite3").unlink()
    found = to(work, MODELS + "    color = models.CharField(default='red', max_length=9)\n")
    assert found["from"] == "an empty database" and len(found["files"]) == 1


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        searched(tmp_path, other="x")
    assert caught.value.code == "migrate.options"
