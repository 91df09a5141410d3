"""Runs inside the sandbox: a migration of a SQLite database, there and back, tried on copies with all rows.

Started as `python -I -B -c TEXT`, with a plan in JSON on standard input, in the workspace, which it only
reads; needs the standard library and migrate_schema.py, whose text is in the plan. It writes one line of
JSON: the files of the migration with what was checked, or a refusal. What the files say is what was run.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import types
from collections import Counter
from pathlib import Path

MOST_TEXT, MOST_DATABASE, MOST_FILES, MOST_ROWS = 1 << 20, 64 << 20, 100_000, 5
"""Bytes of a file of SQL and of a database; files that are looked at; rows that a refusal names."""
SUFFIXES = (".db", ".db3", ".sqlite", ".sqlite3")
MAGIC = b"SQLite format 3\0"
schemas = types.ModuleType("migrate_schema")
"""The names of migrate_schema.py."""


# ---- Trying it with rows ----


def walked(base, path, found, text):
    """A database file that went a way from `base`, or which rows do not fit."""
    shutil.copyfile(base, path)
    db = schemas.opened(path)
    try:
        db.executescript(text)
        return db
    except (sqlite3.Error, sqlite3.Warning):
        db.close()
    shutil.copyfile(base, path)
    db = schemas.opened(path)
    db.execute("PRAGMA foreign_keys = OFF")
    for sql, about in found.steps:
        try:
            db.execute(sql)
        except sqlite3.Error as error:
            misfit(db, found, sql, about, error)
    raise schemas.Refused("migrate.unsupported", "the script does not run as its statements do")


def misfit(db, found, sql, table, error):
    """Refuse, with the rows that a statement fails for."""
    if not table:
        raise schemas.Refused("migrate.unsupported", f"{error}: {sql}") from error
    keys = key_of(db, table)
    which, said = [], str(error)
    if sql.startswith("INSERT INTO"):
        into, _, select = sql.partition(" SELECT ")
        names = select.rpartition(" FROM ")[0]
        chosen = ", ".join([*map(schemas.quoted, keys), names])
        rows = db.execute(f"SELECT {chosen} FROM {schemas.quoted(table)}").fetchall()
        marks = ", ".join("?" * (len(rows[0]) - len(keys))) if rows else ""
        for row in rows:
            try:
                db.execute(f"{into} VALUES ({marks})", row[len(keys) :])
            except sqlite3.Error as why:
                said = said if which else str(why)
                which.append(dict(zip(keys, map(plain, row), strict=False)))
    elif sql.startswith("CREATE UNIQUE"):
        names = [one[2] for one in index_columns(found, sql)]
        if all(names):
            both = schemas.listed(names)
            query = f"SELECT {both} FROM {schemas.quoted(table)} GROUP BY {both} HAVING count(*) > 1"
            which = [dict(zip(names, map(plain, row), strict=True)) for row in db.execute(query)]
    else:
        query = f"SELECT {schemas.listed(keys)} FROM {schemas.quoted(table)}" if keys else "SELECT 1 WHERE 0"
        which = [dict(zip(keys, map(plain, row), strict=True)) for row in db.execute(query)]
    many, said = len(which), said.replace("_new_", "")
    raise schemas.Refused(
        "migrate.rows",
        f"{plural(many, 'row')} of {table} cannot be kept: {said}",
        table=table,
        rows=many,
        which=which[:MOST_ROWS],
    ) from error


def index_columns(found, sql):
    """index_info of the index that a statement makes."""
    name = next(one["name"] for one in schemas.objects(found.new).values() if one["sql"] == sql)
    return found.new.execute(f"PRAGMA index_info({schemas.quoted(name)})").fetchall()


def key_of(db, table):
    """The columns that name a row."""
    keys = [one[1] for one in sorted(schemas.columns(db, table), key=lambda one: one[5]) if one[5]]
    return keys or (["rowid"] if schemas.has_rowid(db, table) else [])


def plural(count, noun):
    """A number with its noun."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def plain(value, most=100):
    """A value as records have it."""
    if isinstance(value, bytes):
        return value.hex()[:most]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()[:most]
    exact = isinstance(value, (int, float)) and abs(value) < 1 << 53
    return value if value is None or exact else str(value)


def compared(base, work, table, names):
    """Which of these columns hold other values than before: column, how many rows, and their keys."""
    keys = key_of(base, table)
    if not {key.lower() for key in keys} <= {name.lower() for name in names}:
        keys = []  # it is left out, or is another one now
    query = f"SELECT {schemas.listed([*keys, *names])} FROM {schemas.quoted(table)}"
    before, after = (Counter(map(repr, db.execute(query))) for db in (base, work))
    if not (lost := before - after):
        return
    same = schemas.integer_key(base, table) == schemas.integer_key(work, table)
    if not keys and same and schemas.has_rowid(base, table) and schemas.has_rowid(work, table):
        keys = ["rowid"]
        query = query.replace("SELECT ", 'SELECT "rowid", ', 1)
    old, new = ({row[: len(keys)]: row[len(keys) :] for row in db.execute(query)} for db in (base, work))
    found = False
    for number, name in enumerate(names if keys else ()):
        which = [
            dict(zip(keys, map(plain, key), strict=True))
            for key, row in old.items()
            if key not in new or repr(row[number]) != repr(new[key][number])
        ]
        if which:
            found = True
            yield name, len(which), which[:MOST_ROWS]
    if not found:  # rows without a key, or several with one
        yield "", lost.total(), []


def violations(db):
    """The rows that violate a foreign key."""
    try:
        return set(db.execute("PRAGMA foreign_key_check"))
    except sqlite3.Error:
        return set()


def refuse_violations(base, work):
    """Refuse rows that violate a foreign key and did not before."""
    if broken := sorted(map(str, violations(work) - violations(base))):
        what = f"a foreign key would be violated by {plural(len(broken), 'row')}"
        raise schemas.Refused("migrate.rows", what, rows=len(broken), which=broken[:MOST_ROWS])


def names_of(lose):
    """The tables and columns whose values may be lost."""
    return {name.strip().lower() for name in lose.split(",")} - {""}


def missing(base, old, new):
    """What leaves with its table or column: table, column, rows that have a value there."""
    after, found = schemas.objects(new), []
    for (kind, key), one in schemas.objects(old).items():
        if kind != "table":
            continue
        name = one["name"]
        if (kind, key) not in after:
            found.append({"table": name, "column": "", "rows": counted(base, name)})
            continue
        kept = {one.lower() for one in schemas.shared(old, new, name)}
        for column in schemas.columns(old, name):
            if column[1].lower() not in kept and not column[6]:
                found.append({"table": name, "column": column[1], "rows": counted(base, name, column[1])})
    return [one for one in found if one["rows"]]


def counted(db, table, column=""):
    """The rows of a table, or those with a value in a column."""
    return db.execute(
        f"SELECT count({schemas.quoted(column) if column else '*'}) FROM {schemas.quoted(table)}"
    ).fetchone()[0]


def changed(base, work, old, new, returned):
    """Values that are not what they were. A column of another type is compared when it has `returned`."""
    found = []
    for (kind, _), one in schemas.objects(old).items():
        if kind != "table" or ("table", one["name"].lower()) not in schemas.objects(new):
            continue
        name = one["name"]
        types = {column[1].lower(): column[2].lower() for column in schemas.columns(new, name)}
        names = [
            column[1] for column in schemas.columns(old, name)
            if column[1] in schemas.shared(old, new, name)
            and (returned or types[column[1].lower()] == column[2].lower())
        ]  # fmt: skip
        for column, many, which in compared(base, work, name, names) if names else ():
            found.append({"table": name, "column": column, "rows": many, "which": which})
    return found


def refuse_losses(found, lose):
    """Refuse what is lost and was not named."""
    left = [one for one in found if not {one["table"].lower(), place(one).lower()} & lose]
    if left:
        words = ", ".join(f"{place(one)} ({plural(one['rows'], 'row')})" for one in left[:MOST_ROWS])
        more = f" and {len(left) - MOST_ROWS} more" if len(left) > MOST_ROWS else ""
        raise schemas.Refused("migrate.loss", f"values would be lost: {words}{more}", losses=left[:100])


def place(loss):
    """A table or a column, as a person names it."""
    return ".".join(filter(None, (loss["table"], loss["column"])))


# ---- A migration of plain SQL ----


def sql(plan, scratch):
    """The files of a migration from the present database to the wanted schema."""
    where = plan["schema"]
    new = schemas.opened()
    new.execute("PRAGMA max_page_count = 20000")
    schemas.executed(new, text_of(where, "migrate.schema"), "migrate.schema", where)
    schemas.sound(new, where)
    base = str(scratch / "base.db")
    source = present(plan, base)
    rows = schemas.opened(base)
    old = schemas.cloned(rows)
    missed = schemas.differences(schemas.objects(old), schemas.objects(new))
    if not missed:
        raise schemas.Refused("migrate.unchanged", f"{source} has the schema of {where} already")
    lose = names_of(plan["lose"])
    refuse_losses(missing(rows, old, new), lose)
    number, name = named(plan["folder"], schemas.objects(old), schemas.objects(new))
    title = f"{number:04}_{name}"
    up, down = schemas.way(old, new), schemas.way(new, old)
    texts = {"up.sql": up.text(f"{title}: {source} to {where}"), "down.sql": down.text(f"back from {title}")}
    if any(not text.isascii() and text != plain(text, len(text)) for text in texts.values()):
        raise schemas.Refused("migrate.unsupported", "the schema has a text that is not UTF-8")
    checks = tried(base, rows, up, down, texts, scratch, lose, source)
    files = {f"{plan['folder']}/{title}/{file}": text for file, text in texts.items()}
    return {"files": files, "checks": checks, "from": source, "changed": missed}


def tried(base, rows, up, down, texts, scratch, lose, source):
    """The verdicts of a way there and back on a copy with all rows."""
    work = walked(base, str(scratch / "up.db"), up, texts["up.sql"])
    expected("up", work, up.new)
    refuse_losses(changed(rows, work, up.old, up.new, returned=False), lose)
    refuse_violations(rows, work)
    kept = kept_rows(rows, work, source)
    work.close()
    try:
        back = walked(str(scratch / "up.db"), str(scratch / "down.db"), down, texts["down.sql"])
    except schemas.Refused as error:
        message = f"down.sql: {error}"
        error.found |= {"code": "migrate.irreversible", "message": message}
        raise
    expected("down", back, up.old)
    refuse_losses(changed(rows, back, up.old, up.new, returned=True), lose)
    return [
        verdict("up", f"{plural(len(up.steps), 'statement')} to the wanted schema"),
        kept,
        verdict("foreign_keys", "no row violates one that did not before"),
        verdict("down", f"{plural(len(down.steps), 'statement')} back to the present schema"),
        verdict("returned", "values are what they were"),
    ]


def kept_rows(base, work, source):
    """The verdict on rows, with the tables that give numbers of deleted rows to new ones now."""
    tables = [one["name"] for (kind, _), one in schemas.objects(work).items() if kind == "table"]
    many = sum(counted(work, table) for table in tables)
    before, after = counters(base), counters(work)
    again = [one for one in tables if before.get(one.lower(), 0) > after.get(one.lower(), highest(work, one))]
    said = f"; new rows of {', '.join(again)} may get numbers of deleted ones" if again else ""
    return verdict("kept", f"{plural(many, 'row')} of {plural(len(tables), 'table')}, from {source}{said}")


def counters(db):
    """The highest number that AUTOINCREMENT gave, by table."""
    try:
        rows = db.execute("SELECT lower(name), seq FROM sqlite_sequence WHERE typeof(seq) = 'integer'")
        return dict(rows.fetchall())
    except sqlite3.Error:
        return {}  # no table has one


def highest(db, table):
    """The highest number of a row."""
    rowid = schemas.has_rowid(db, table)
    return (rowid and db.execute(f"SELECT max(rowid) FROM {schemas.quoted(table)}").fetchone()[0]) or 0


def expected(which, db, wanted):
    """Refuse a schema that is not the wanted one."""
    if missed := schemas.differences(schemas.objects(db), schemas.objects(wanted)):
        raise schemas.Refused("migrate.unsupported", f"{which} gives other {', '.join(missed)}")


def verdict(name, detail):
    """A check that holds."""
    return {"name": name, "ok": True, "code": "", "detail": detail}


def named(folder, before, after):
    """The number and the name of the next migration."""
    numbers = [int(one.name[:4]) for one in steps_of(folder)]
    for word, one, other in (("create", after, before), ("drop", before, after), ("change", after, before)):
        for kind, name in one:
            if schemas.same(one, kind, name) != schemas.same(other, kind, name) and (
                word == "change" or (kind, name) not in other
            ):
                return max(
                    numbers, default=0
                ) + 1, f"{word}_{re.sub('[^a-z0-9]+', '_', name)[:40].strip('_') or kind}"
    raise AssertionError("two schemas that differ differ nowhere")


def steps_of(folder):
    """The migrations that there are, in order."""
    found = Path(folder).iterdir() if Path(folder).is_dir() else ()
    return sorted(one for one in found if re.match(r"\d{4}_", one.name) and one.is_dir())


def text_of(path, code):
    """A file of SQL."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_TEXT + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise schemas.Refused(
            code, f"{path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        ) from error
    if len(data) > MOST_TEXT or "\0" in text:
        raise schemas.Refused(code, f"{path}: it holds a zero byte or more than {MOST_TEXT} bytes")
    return text


def present(plan, base):
    """Make `base` a copy of the present database, or what the migrations give; what it is of."""
    path = plan["database"] or found_database()
    if path:
        copied(path, base)
        return path
    db = schemas.opened(base)
    for one in steps_of(plan["folder"]):
        schemas.executed(
            db, text_of(one / "up.sql", "migrate.history"), "migrate.history", str(one / "up.sql"), data=True
        )
    db.close()
    return f"{plan['folder']}/" if steps_of(plan["folder"]) else "an empty database"


def found_database():
    """The one database file of the workspace; empty where there is none."""
    found, seen = [], 0
    for folder, names, files in os.walk("."):
        names[:] = sorted(name for name in names if name[0] != "." and name not in ("node_modules", "venv"))
        seen += len(files)
        found += [str(Path(folder) / name) for name in files if name.endswith(SUFFIXES)]
        if seen > MOST_FILES:
            break
    if len(found) > 1:
        raise schemas.Refused("migrate.database", f"{len(found)} databases: {', '.join(sorted(found)[:5])}")
    return found[0] if found else ""


def copied(path, base):
    """A database with what its journal holds, as one sound file elsewhere."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(len(MAGIC))
        if Path(path).stat().st_size > MOST_DATABASE:
            raise schemas.Refused("migrate.database", f"{path}: it is larger than {MOST_DATABASE >> 20} MiB")
        if head and head != MAGIC:
            raise schemas.Refused("migrate.database", f"{path}: it is not a SQLite database")
        for end in ("", "-wal", "-journal"):
            if not end or Path(path + end).is_file():
                shutil.copyfile(path + end, base + end)
        db = schemas.opened(base)
        db.execute("PRAGMA journal_mode = DELETE")
        result = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        db.close()
    except (OSError, sqlite3.Error) as error:
        raise schemas.Refused(
            "migrate.database", f"{path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if result != "ok":
        raise schemas.Refused("migrate.database", f"{path}: {result}")


# ---- A migration of Django ----


def django(plan, scratch):
    """The files that Django makes for the models of a project, run up and down by it on a copy."""
    manage = Path(plan["manage"])
    settings = re.search(
        r"DJANGO_SETTINGS_MODULE['\"]\s*,\s*['\"]([\w.]+)", text_of(manage, "migrate.project")
    )
    if settings is None:
        raise schemas.Refused("migrate.project", f"{manage}: it names no DJANGO_SETTINGS_MODULE")
    root, result = scratch / "project", scratch / "result.json"
    left = shutil.ignore_patterns(".git", ".spak", ".venv", "venv", "node_modules", "__pycache__")
    shutil.copytree(".", root, symlinks=True, ignore=left)
    about = json.dumps({"settings": settings[1], "root": str(root)})
    argv = [sys.executable, "-B", "-c", plan["driver"], about, str(result)]
    done = subprocess.run(
        argv, cwd=root / manage.parent, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if not result.exists():
        last = done.stderr.decode("utf-8", "replace").strip()[-600:]
        raise schemas.Refused("migrate.project", f"Django does not run here: {last}")
    found = json.loads(result.read_text())
    if "refusal" in found:
        raise schemas.Refused(**found["refusal"], **unfit(scratch / "base.db", found["refusal"]["message"]))
    copied(str(scratch / "base.db"), str(scratch / "sound.db"))
    base, work, back = (schemas.opened(scratch / f"{name}.db") for name in ("base", "up", "down"))
    old, new = schemas.cloned(base), schemas.cloned(work)
    lose = names_of(plan["lose"])
    refuse_losses([*missing(base, old, new), *changed(base, work, old, new, returned=False)], lose)
    refuse_violations(base, work)
    if shape(base) != shape(back):
        raise schemas.Refused("migrate.irreversible", "the schema is another one after going back")
    refuse_losses(changed(base, back, old, new, returned=True), lose)
    checks = [
        verdict("up", f"{', '.join(found['applied'])} applied"),
        kept_rows(base, work, found["from"] + found["before"]),
        verdict("foreign_keys", "no row violates one that did not before"),
        verdict("clean", "makemigrations --check finds no further change"),
        verdict("down", "the schema is the present one again"),
        verdict("returned", "values are what they were"),
    ]
    files = {path: text for path, text in found["files"].items() if not Path(path).exists()}
    return {"files": files, "checks": checks, "from": found["from"], "changed": found["applied"]}


def shape(db):
    """A schema without the order of columns, which Django does not keep."""

    def parts(sql):
        return sorted([word for word, _, _ in schemas.tokens(part)] for part in schemas.definitions(sql))

    every = schemas.objects(db).items()
    return {key: parts(one["sql"]) if key[0] == "table" else one["same"] for key, one in every}


def unfit(base, message):
    """The rows that a failed constraint speaks of, as evidence of a refusal."""
    found = re.search(r"(NOT NULL|UNIQUE) constraint failed: (?:new__)?(\w+)\.(\w+)$", message)
    if found is None or not base.exists():
        return {}
    rule, table, column = found.groups()
    db = schemas.opened(base)
    name, many = schemas.quoted(column), schemas.quoted(table)
    keys = [column] if rule == "UNIQUE" else key_of(db, table)
    ends = f"GROUP BY {name} HAVING count(*) > 1" if rule == "UNIQUE" else f"WHERE {name} IS NULL"
    rows = [
        dict(zip(keys, row, strict=True))
        for row in db.execute(f"SELECT {schemas.listed(keys)} FROM {many} {ends}")
    ]
    return {"table": table, "rows": len(rows), "which": rows[:MOST_ROWS]}


def main():
    """Do what the plan says and print what came of it."""
    plan = json.load(sys.stdin)
    exec(plan["schemas"], schemas.__dict__)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = {"sql": sql, "django": django}[plan["do"]](plan, Path(folder))
        except schemas.Refused as error:
            found = {"refusal": error.found}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
