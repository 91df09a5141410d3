"""The proposer `migrate` on plain SQL: statements there and back, rows that are kept, and what is refused."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate_kit import guest
from spak.errors import RunError, UnavailableError, UsageError
from spak.patch import read_patch
from spak.ports import PlanRequest, Search
from spak.proposers.migrate import Migrate
from validator_calls import call

OLD = """\
CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, age TEXT);
CREATE TABLE posts(id INTEGER PRIMARY KEY, user INT REFERENCES users(id), title TEXT);
CREATE INDEX by_title ON posts(title);
CREATE VIEW names AS SELECT name FROM users;
CREATE TRIGGER grown AFTER INSERT ON posts BEGIN UPDATE users SET age = '1'; END;
"""
ROWS = """\
INSERT INTO users(id, name, age) VALUES (1, 'a', '7'), (2, 'b', NULL), (9, 'c', '007');
DELETE FROM users WHERE id = 9;
INSERT INTO users(id, name, age) VALUES (5, 'e', '08');
DROP TRIGGER grown;
INSERT INTO posts VALUES (1, 1, 'p'), (2, 2, 'q');
CREATE TRIGGER grown AFTER INSERT ON posts BEGIN UPDATE users SET age = '1'; END;
"""
PLAN = {"schema": "schema.sql", "database": "", "folder": "migrations", "lose": ""}


class World:
    """A folder with a database and a wanted schema, and the guest's functions in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scratch = folder, folder.parent / "scratch"
        self.scratch.mkdir()
        self.names = guest()

    def database(self, *scripts: str, name: str = "app.db") -> Path:
        with sqlite3.connect(self.folder / name) as db:
            for script in scripts:
                db.executescript(script)
        db.close()
        return self.folder / name

    def to(self, text: str, **plan: str) -> dict[str, Any]:
        """The files and verdicts, or the refusal."""
        (self.folder / "schema.sql").write_text(text)
        try:
            found: dict[str, Any] = self.names["sql"]({**PLAN, **plan}, self.scratch)
        except self.names["schemas"].Refused as error:
            found = error.found
        return found

    def text(self, schema: str, file: str = "up.sql", **plan: str) -> str:
        found = self.to(schema, **plan)
        assert "files" in found, found
        assert all(check["ok"] for check in found["checks"])
        return next(text for path, text in found["files"].items() if path.endswith(file))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return World(tmp_path / "work")


# ---- there and back ----


@pytest.mark.parametrize(
    ("was", "now", "up", "down"),
    [
        ("age TEXT)", "age TEXT, mail TEXT DEFAULT 'x')", "ADD COLUMN mail", 'DROP COLUMN "mail"'),
        ("name TEXT, age", "name TEXT NOT NULL, age", '"_new_users"', '"_new_users"'),
        ("(id INTEGER PRIMARY KEY AUTO", "(at TEXT DEFAULT CURRENT_TIMESTAMP, id INTEGER PRIMARY KEY AUTO",
         '"_new_users"', "DROP COLUMN"),
        ("age TEXT)", "age TEXT, at TEXT DEFAULT CURRENT_TIMESTAMP)", '"_new_users"', "DROP COLUMN"),
        ("age TEXT)", "age TEXT, CHECK (age <> 'x'))", '"_new_users"', '"_new_users"'),
        ("title TEXT);", "title TEXT) STRICT;", '"_new_posts"', '"_new_posts"'),
        ("user INT REFERENCES users(id)", "user INT REFERENCES users(id) ON DELETE CASCADE", '"_new_posts"',
         '"_new_posts"'),
        ("CREATE INDEX", "CREATE UNIQUE INDEX", 'DROP INDEX "by_title"', 'DROP INDEX "by_title"'),
        ("CREATE INDEX by_title ON posts(title);", "", 'DROP INDEX "by_title"', "CREATE INDEX by_title"),
        ("SELECT name FROM", "SELECT name, age FROM", 'DROP VIEW "names"', 'DROP VIEW "names"'),
        ("'1'; END", "'2'; END", 'DROP TRIGGER "grown"', 'DROP TRIGGER "grown"'),
        ("CREATE VIEW", "CREATE TABLE tags(n TEXT PRIMARY KEY) WITHOUT ROWID;\nCREATE VIEW",
         "CREATE TABLE tags", 'DROP TABLE "tags"'),
        ("age TEXT)", "age TEXT, up TEXT AS (upper(name)) STORED)", '"_new_users"', 'DROP COLUMN "up"'),
        ("title TEXT", "[the title] TEXT, title TEXT", '"_new_posts"', 'DROP COLUMN "the title"'),
    ],
)  # fmt: skip
def test_a_change_goes_up_and_down(world: World, was: str, now: str, up: str, down: str) -> None:
    world.database(OLD, ROWS)
    assert was in OLD
    wanted = OLD.replace(was, now, 1).replace("user INT", "user INTEGER" if "STRICT" in now else "user INT")
    found = world.to(wanted)
    assert "files" in found, found
    texts = list(found["files"].values())
    assert up in texts[0] and down in texts[1]
    assert [check["name"] for check in found["checks"]] == ["up", "kept", "foreign_keys", "down", "returned"]
    before = list(sqlite3.connect("app.db").execute("SELECT id, name FROM users"))
    with sqlite3.connect("app.db") as db:
        db.executescript(texts[0])
        assert list(db.execute("SELECT id, name FROM users")) == before
        assert shapes(db) == shapes(built(wanted)), "SQLite itself sees the wanted tables"
        db.executescript(texts[1])
        assert shapes(db) == shapes(built(OLD))
    db.close()
    assert world.to(OLD)["code"] == "migrate.unchanged"


def built(text: str) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.executescript(text)
    return db


def shapes(db: sqlite3.Connection) -> dict[str, Any]:
    """What pragmas say of each table: an answer that shares nothing with the comparison of texts."""
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {
        name.lower(): [
            sorted(row[1:] for row in db.execute(f'PRAGMA table_xinfo("{name}")')),
            sorted(row[2:] for row in db.execute(f'PRAGMA foreign_key_list("{name}")')),
            sorted(row[2:] for row in db.execute(f'PRAGMA index_list("{name}")')),
        ]
        for name in names
        if not name.startswith("sqlite_")
    }


def test_the_number_of_a_deleted_row_is_not_given_again(world: World) -> None:
    path = world.database(OLD, ROWS)
    up = world.text(OLD.replace("name TEXT", "name TEXT NOT NULL"))
    with sqlite3.connect(path) as db:
        db.executescript(up)
        db.execute("INSERT INTO users(name) VALUES ('z')")
        assert db.execute("SELECT max(id) FROM users").fetchone() == (10,)
    db.close()


def test_a_counter_that_is_lost_is_said(world: World) -> None:
    world.database(OLD, ROWS)
    found = world.to(OLD.replace(" AUTOINCREMENT", ""))
    assert found["checks"][1]["detail"].endswith("; new rows of users may get numbers of deleted ones")
    found = world.to(OLD.replace("name TEXT", "name TEXT NOT NULL"))
    assert found["checks"][1]["detail"].endswith("from app.db")


def test_random_schemas_are_migrated_or_refused(world: World) -> None:
    """Each pair of generated schemas: SQLite's own pragmas agree after both scripts, or there is a code."""
    draw = random.Random(34)
    types = ["TEXT", "INTEGER", "INT NOT NULL DEFAULT 0", "TEXT DEFAULT 'x'", "REAL", "TEXT UNIQUE"]

    def drawn() -> str:
        tables = []
        for table in draw.sample("tuvw", draw.randint(1, 3)):
            kinds = [f"{name} {draw.choice(types)}" for name in draw.sample("abcde", draw.randint(1, 4))]
            key = draw.choice(["id INTEGER PRIMARY KEY", "id INTEGER PRIMARY KEY AUTOINCREMENT", "id TEXT"])
            tables.append(f"CREATE TABLE {table}({', '.join([key, *kinds])});")
            if draw.random() < 0.3:
                tables.append(f"CREATE INDEX i{table} ON {table}({kinds[0][0]});")
        return "\n".join(tables)

    counts: dict[str, int] = {}
    for number in range(50):
        old, new, name = drawn(), drawn(), f"d{number}.db"
        path = world.database(old, name=name)
        with sqlite3.connect(path) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                if not table.startswith("sqlite_") and draw.random() < 0.5:
                    db.execute(f"INSERT INTO {table}(id) VALUES (7)")
        db.close()
        found = world.to(new, database=name)
        code = found.get("code", "")
        counts[code] = counts.get(code, 0) + 1
        if not code:
            up, down = found["files"].values()
            with sqlite3.connect(path) as db:
                db.executescript(up)
                assert shapes(db) == shapes(built(new)), (old, new)
                db.executescript(down)
                assert shapes(db) == shapes(built(old)), (old, new)
            db.close()
        path.unlink()
    assert set(counts) <= {"", "migrate.loss", "migrate.rows", "migrate.unchanged"} and counts[""] >= 12, (
        counts
    )


# ---- what would be lost ----


@pytest.mark.parametrize(
    ("was", "now", "place", "rows", "which"),
    [
        (", age TEXT", "", "users.age", 2, None),
        (OLD.splitlines()[1], "", "posts", 2, None),
        ("age TEXT", "age INTEGER", "users.age", 1, [{"id": 5}]),
        ("age TEXT", "age AS (NULL)", "users.age", 2, [{"id": 1}, {"id": 5}]),
    ],
)
def test_what_would_be_lost_is_refused_unless_a_person_names_it(
    world: World, was: str, now: str, place: str, rows: int, which: list[dict[str, int]] | None
) -> None:
    world.database(OLD, ROWS)
    wanted = OLD.replace(was, now, 1)
    if place == "posts":
        wanted = "\n".join(line for line in wanted.splitlines() if "posts" not in line)
    found = world.to(wanted)
    assert found["code"] == "migrate.loss" and f"{place} ({rows} row" in found["message"]
    (loss,) = found["losses"]
    assert loss["rows"] == rows and loss.get("which") == which
    assert world.text(wanted, lose=f"other, {place.upper()}")


def test_a_column_without_values_is_not_lost(world: World) -> None:
    world.database(OLD, ROWS, "UPDATE users SET age = NULL;")
    assert 'DROP COLUMN "age"' in world.text(OLD.replace(", age TEXT", "").replace("SET age", "SET name"))


def test_another_type_whose_values_come_back_is_no_loss(world: World) -> None:
    world.database("CREATE TABLE t(a INTEGER, b TEXT);", "INSERT INTO t VALUES (5, 'x'), (NULL, NULL);")
    assert '"_new_t"' in world.text("CREATE TABLE t(a TEXT, b TEXT);")


def test_a_new_key_that_keeps_all_values_loses_none(world: World) -> None:
    world.database(
        "CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT);", "INSERT INTO t VALUES ('7', 'x'), ('9', 'y');"
    )
    assert '"_new_t"' in world.text("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);")
    found = world.to("CREATE TABLE t(id TEXT PRIMARY KEY, a REAL);")
    assert "files" in found, "texts stay in a column of numbers"


def test_rows_without_a_key_are_named_by_their_number(world: World) -> None:
    world.database("CREATE TABLE t(a TEXT);", "INSERT INTO t(rowid, a) VALUES (4, '1'), (6, '01');")
    found = world.to("CREATE TABLE t(a INTEGER);")
    assert found["losses"] == [{"table": "t", "column": "a", "rows": 1, "which": [{"rowid": 6}]}]


def test_a_generated_column_that_becomes_a_plain_one_keeps_its_values(world: World) -> None:
    path = world.database("CREATE TABLE t(a TEXT, b TEXT AS (upper(a)));", "INSERT INTO t(a) VALUES ('x');")
    up = world.text("CREATE TABLE t(a TEXT, b TEXT);")
    with sqlite3.connect(path) as db:
        db.executescript(up)
        assert list(db.execute("SELECT a, b FROM t")) == [("x", "X")]
    db.close()


def test_a_name_of_a_file_is_no_statement(world: World) -> None:
    world.database("CREATE TABLE t(a);", name="x\nPRAGMA user_version = 7; --.db")
    lines = world.text("CREATE TABLE t(a, b);").splitlines()
    assert lines[0].startswith("-- 0001_change_t: x?PRAGMA") and lines[2] == "BEGIN;"


def test_rows_without_a_key_are_compared_too(world: World) -> None:
    world.database("CREATE TABLE t(rowid TEXT, a TEXT);", "INSERT INTO t VALUES ('x', '01');")
    found = world.to("CREATE TABLE t(rowid TEXT, a INTEGER);")
    assert (found["code"], found["losses"][0]["rows"]) == ("migrate.loss", 1)


def test_rows_whose_key_is_null_are_compared_each(world: World) -> None:
    rows = "INSERT INTO t VALUES (NULL, '01'), (NULL, '2'), (NULL, '3');"
    world.database("CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT);", rows)
    found = world.to("CREATE TABLE t(id TEXT PRIMARY KEY, a INTEGER);")
    assert (found["code"], found["losses"][0]["rows"]) == ("migrate.loss", 1)


# ---- rows that do not fit ----


def test_a_row_is_named_by_what_a_record_can_hold(world: World) -> None:
    world.database("CREATE TABLE t(a, b);", f"INSERT INTO t(rowid, a) VALUES ({1 << 60}, 1);")
    assert world.to("CREATE TABLE t(a, b NOT NULL);")["which"] == [{"rowid": str(1 << 60)}]
    plain = world.names["plain"]
    shown = [plain(value) for value in (7, 1 << 53, -0.5, float("inf"), b"\x01", "\udcff", None)]
    assert shown == [7, str(1 << 53), -0.5, "inf", "01", "?", None]


def test_a_row_without_a_key_that_does_not_fit(world: World) -> None:
    world.database("CREATE TABLE t(rowid TEXT, a TEXT);", "INSERT INTO t VALUES ('x', NULL);")
    found = world.to("CREATE TABLE t(rowid TEXT, a TEXT NOT NULL);")
    assert (found["code"], found["rows"], found["which"]) == ("migrate.rows", 1, [{}])


@pytest.mark.parametrize(
    ("was", "now", "said", "which"),
    [
        ("age TEXT", "age TEXT NOT NULL", "NOT NULL constraint failed: users.age", [{"id": 2}]),
        ("age TEXT", "age TEXT, mail TEXT NOT NULL", "NOT NULL", [{"id": 1}, {"id": 2}, {"id": 5}]),
        ("age TEXT", "age TEXT CHECK (age <> '08')", "CHECK", [{"id": 5}]),
        ("title TEXT", "title INT", "cannot store TEXT value", [{"id": 1}, {"id": 2}, {"id": 3}]),
        ("user INT REFERENCES users(id)", "user INT REFERENCES users(id) UNIQUE", "UNIQUE", [{"id": 3}]),
        ("CREATE INDEX by_title", "CREATE UNIQUE INDEX by_title", "UNIQUE", [{"title": "q"}]),
    ],
)
def test_rows_that_do_not_fit_are_named(
    world: World, was: str, now: str, said: str, which: list[dict[str, object]]
) -> None:
    more = "DROP TRIGGER grown; INSERT INTO posts VALUES (3, 2, 'q');" + OLD.splitlines()[-1]
    world.database(OLD, ROWS, more)
    wanted = OLD.replace(was, now, 1)
    if "cannot store" in said:
        wanted = wanted.replace("title INT);", "title INT) STRICT;")
    found = world.to(wanted)
    assert found["code"] == "migrate.rows" and said in found["message"] and "_new_" not in found["message"]
    assert (found["rows"], found["which"]) == (len(which), which)


def test_a_row_that_violates_a_new_foreign_key_is_named(world: World) -> None:
    old = "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE b(id INTEGER PRIMARY KEY, a INT);"
    world.database(old, "INSERT INTO b VALUES (1, 7);")
    found = world.to(old.replace("a INT", "a INT REFERENCES a(id)"))
    assert (found["code"], found["rows"]) == ("migrate.rows", 1) and "'b', 1, 'a'" in found["which"][0]


def test_a_way_back_that_rows_forbid_is_refused(world: World) -> None:
    world.database("CREATE TABLE t(a TEXT, b TEXT NOT NULL);", "INSERT INTO t VALUES ('x', 'y');")
    found = world.to("CREATE TABLE t(a TEXT);", lose="t.b")
    assert found["code"] == "migrate.irreversible" and "NOT NULL constraint failed: t.b" in found["message"]


# ---- schemas that cannot be used ----


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("CREATE TABLE t(", "incomplete input"),
        ("CREATE TABEL t(a);", "syntax error"),
        ("CREATE VIEW v AS SELECT * FROM nowhere;", "nowhere"),
        ("CREATE TABLE t(a); CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM nowhere; END;", "nowhere"),
        ("CREATE TABLE p(a); CREATE TABLE t(a REFERENCES p(a));", "foreign key mismatch"),
        ("ATTACH 'other.db' AS other;", "ATTACH is not part"),
        ("PRAGMA writable_schema = 1;", "PRAGMA is not part"),
        ("SELECT load_extension('x');", "load_extension is not part"),
        ("VACUUM INTO 'other.db';", "ATTACH is not part"),
        ("CREATE TABLE t(a); INSERT INTO t VALUES (1);", "INSERT of rows is not part"),
        ("CREATE TEMP TABLE t(a);", "a temporary table is not part"),
        ("CREATE VIRTUAL TABLE t USING fts5(a);", "a virtual table is not part"),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT count(*) FROM c;", "too long"),
        ("CREATE TABLE t(" + ", ".join(f"c{number}" for number in range(3000)) + ");", "too many columns"),
        ("-- " + "x" * (1 << 20), "more than 1048576 bytes"),
        ("".join(f"CREATE TABLE t{number}(a);" for number in range(2001)), "2001 tables"),
        ("CREATE TABLE t(a);\0", "zero byte"),
    ],
)
def test_a_schema_that_cannot_be_used(world: World, schema: str, said: str) -> None:
    found = world.to(schema)
    assert found["code"] == "migrate.schema" and said in found["message"], found
    assert not Path("other.db").exists()


def test_two_names_that_differ_in_case_only(world: World) -> None:
    world.database('CREATE TABLE "É"(a); CREATE TABLE "é"(a);')
    assert world.to('CREATE TABLE "é"(a);')["code"] == "migrate.unsupported"


def test_a_schema_file_that_cannot_be_read(world: World) -> None:
    Path("bytes.sql").write_bytes(b"\xff")
    assert world.to("", schema="bytes.sql")["code"] == "migrate.schema"
    assert "No such file" in world.to("", schema="gone.sql")["message"]


# ---- databases that cannot be used ----


def test_a_file_that_is_not_a_database(world: World) -> None:
    Path("app.db").write_text("this is a text and not a database\n")
    assert "not a SQLite database" in world.to("CREATE TABLE t(a);")["message"]
    path = world.database("CREATE TABLE t(a);", "INSERT INTO t VALUES (zeroblob(20000));", name="b.sqlite")
    damaged = path.read_bytes()
    path.write_bytes(damaged[:4096] + b"\xff" * 4096 + damaged[8192:])
    found = world.to("CREATE TABLE u(a);", database="b.sqlite")
    assert found["code"] == "migrate.database"
    assert "2 databases: app.db, b.sqlite" in world.to("CREATE TABLE t(a);")["message"]
    assert "No such file" in world.to("CREATE TABLE t(a);", database="gone.db")["message"]


def test_a_virtual_table_of_the_database_is_not_touched(world: World) -> None:
    world.database("CREATE VIRTUAL TABLE words USING fts5(a);")
    found = world.to("CREATE TABLE t(a);")
    assert (found["code"], found["table"]) == ("migrate.unsupported", "words")
    (one,) = sqlite3.connect("app.db").execute("SELECT count(*) FROM sqlite_master WHERE name = 'words'")
    assert one == (1,)


def test_a_locked_database_and_its_journal_are_read_as_committed(world: World) -> None:
    path = world.database("PRAGMA journal_mode = WAL;", OLD, ROWS)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("INSERT INTO users(name) VALUES ('in the journal')")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("INSERT INTO users(name) VALUES ('not committed')")
    found = world.to(OLD.replace("name TEXT", "name TEXT NOT NULL"))
    other.execute("ROLLBACK")
    other.close()
    kept = next(check["detail"] for check in found["checks"] if check["name"] == "kept")
    assert kept == "6 rows of 2 tables, from app.db"


# ---- the folder of migrations ----


def test_without_a_database_the_migrations_are_the_present_schema(world: World) -> None:
    found = world.to("CREATE TABLE t(a);")
    assert found["from"] == "an empty database" and "migrations/0001_create_t/up.sql" in found["files"]
    for path, text in found["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    found = world.to("CREATE TABLE t(a, b);")
    assert found["from"] == "migrations/" and "migrations/0002_change_t/up.sql" in found["files"]
    assert "ADD COLUMN b" in found["files"]["migrations/0002_change_t/up.sql"]
    Path("migrations/0001_create_t/up.sql").write_text("ATTACH 'x' AS y;")
    assert world.to("CREATE TABLE t(a, b);")["code"] == "migrate.history"


# ---- as a proposer, in the sandbox ----


def searched(folder: Path, original: Path | None = None, **options: str) -> Search:
    request = PlanRequest("p", "t", "s", 0, 0, {"schema": "schema.sql", **options}, {}, {})
    return Migrate().search(request, replace(call(folder, {}), original=original))


@pytest.mark.sandbox
def test_the_proposer_gives_a_patch_with_its_verdicts(world: World) -> None:
    world.database(OLD, ROWS).chmod(0o644)
    (world.folder / "schema.sql").write_text(OLD.replace("age TEXT)", "age TEXT, mail TEXT)"))
    found = searched(world.folder)
    (one,) = found.candidates
    assert one.tool == "apply_patch" and len(one.checks) == 5 and all(check["ok"] for check in one.checks)
    assert "ADD COLUMN mail TEXT" in one.args["patch"] and read_patch(one.args["patch"])
    assert found.record == {**PLAN, "from": "app.db", "changed": 1}
    original = world.folder.parent / "original"
    original.mkdir()
    (original / "app.db-wal").write_bytes(b"rows that git ignores")
    refused = searched(world.folder, original).refusal
    assert refused is not None and refused["code"] == "migrate.database" and "app.db-wal" in refused["hint"]
    refused = searched(world.folder, schema="gone.sql").refusal
    assert refused is not None and refused["code"] == "migrate.schema" and refused["hint"]


def test_options_and_places_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        searched(tmp_path, other="x")
    assert caught.value.code == "migrate.options"
    place = call(tmp_path, {})
    request = PlanRequest("p", "t", "s", 0, 0, {"schema": "schema.sql"}, {}, {})
    with pytest.raises(UnavailableError):
        Migrate().search(request, type(place)("m", "v", {}, tmp_path, None))


@pytest.mark.sandbox
def test_a_trial_that_ended_before_it_was_done_says_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spak.proposers.migrate.GUEST", "repair_guest.py")
    world.database(OLD, ROWS).chmod(0o644)
    (world.folder / "schema.sql").write_text(OLD + "CREATE TABLE t(a);")
    with pytest.raises(RunError) as caught:
        searched(world.folder)
    assert caught.value.code == "migrate.incomplete"
