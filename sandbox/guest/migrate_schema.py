"""Runs inside the sandbox: two schemas of SQLite, and the statements that lead from one to the other.

The half of migrate_guest.py that sees no rows: its text is in the plan. Needs the standard library.

SQLite itself is the parser: the wanted schema is executed in an empty database in memory, and everything that
is compared is read back from `sqlite_master` and pragmas. A guard of the connection refuses statements that
are no part of a schema. The steps are the documented ones: ALTER TABLE where that gives the wanted text,
otherwise a new table, its rows and its name (https://www.sqlite.org/lang_altertable.html#otheralter). Each is
tried on an empty copy of the schema.
"""

import re
import sqlite3

MOST_OBJECTS, WORK = 2000, 20_000_000
"""Tables, indexes, views and triggers; instructions that a schema may take."""
KINDS = ("table", "index", "view", "trigger")
ORDER = "CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, rowid"
DATA = {sqlite3.SQLITE_INSERT: "INSERT", sqlite3.SQLITE_UPDATE: "UPDATE", sqlite3.SQLITE_DELETE: "DELETE"}
FOREIGN = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
    sqlite3.SQLITE_CREATE_VTABLE: "a virtual table",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "a temporary table",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "a temporary view",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "a temporary trigger",
}
TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])'
    r"|(?P<text>'(?:[^']|'')*')|(?P<word>[^\W\d][\w$]*)|(?P<other>\d[\w.]*|.)",
    re.DOTALL,
)


class Refused(Exception):
    """Why there is no migration: a code, a message and evidence."""

    def __init__(self, code, message, **evidence):
        super().__init__(message)
        self.found = {"code": code, "message": message, **evidence}


def quoted(name):
    """A name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text):
    """A text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def listed(names):
    """Names for SQL, with commas."""
    return ", ".join(map(quoted, names))


def opened(path=":memory:"):
    """A connection that leaves transactions to the text that it runs, and reads any text."""
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return db


# ---- Reading schemas ----


def executed(db, text, code, where, data=False):
    """Run statements that may only make a schema; with `data` also rows, as a migration has them."""
    denied = []

    def guard(action, first, second, database, source):
        function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension"
        pragma = data and action == sqlite3.SQLITE_PRAGMA and (first or "").lower() == "foreign_keys"
        rows = action in DATA and not data and not (first or "").startswith("sqlite_")
        if not function and not rows and (action not in FOREIGN or pragma):
            return sqlite3.SQLITE_OK
        denied.append("load_extension" if function else FOREIGN.get(action) or f"{DATA[action]} of rows")
        return sqlite3.SQLITE_DENY

    steps = iter(range(WORK // 100_000))
    db.set_authorizer(guard)
    db.set_progress_handler(lambda: next(steps, None) is None, 100_000)
    try:
        db.executescript(text)
        if db.in_transaction:
            db.execute("COMMIT")
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        why = f"{denied[0]} is not part of a schema" if denied else said(error)
        raise Refused(code, f"{where}: {why}") from error
    finally:
        db.set_authorizer(None)
        db.set_progress_handler(None, 0)


def said(error):
    """What SQLite says, and of its interrupt what that means."""
    return "it takes too long" if str(error) == "interrupted" else str(error)


def rows_of(db):
    """The rows of sqlite_master that somebody wrote: type, name, table, text."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql NOT NULL"
    rows = db.execute(f"{query} AND substr(name, 1, 7) <> 'sqlite_' ORDER BY {ORDER}").fetchall()
    for _, name, _, sql in rows:
        if tokens(sql)[1][0] == "virtual":
            raise Refused("migrate.unsupported", f"{name} is a virtual table", table=name)
    return rows


def objects(db):
    """Each object by kind and name in lower case: its name, table, text, and what is compared of it."""
    found = {}
    for kind, name, table, sql in rows_of(db):
        same = [word for word, _, _ in tokens(sql)]
        defaults = tuple(str(one[4]) for one in columns(db, name)) if kind == "table" else ()
        if (kind, name.lower()) in found:  # SQLite tells the case of other letters than a to z apart
            raise Refused("migrate.unsupported", f"{name}: another {kind} differs in upper case only")
        found[kind, name.lower()] = {"name": name, "table": table, "sql": sql, "same": (*same, *defaults)}
    if len(found) > MOST_OBJECTS:
        raise Refused("migrate.schema", f"{len(found)} tables, indexes, views and triggers of {MOST_OBJECTS}")
    return found


def differences(one, other):
    """The names of what two schemas do not share, in order."""
    keys = one.keys() | other.keys()
    return sorted({name for kind, name in keys if same(one, kind, name) != same(other, kind, name)})


def same(found, kind, name):
    """What is compared of an object; None where there is none."""
    return found.get((kind, name), {}).get("same")


def tokens(sql):
    """The words of a statement as they are compared, with where each begins and ends."""
    found = []
    for match in TOKEN.finditer(sql):
        text = match[0]
        if match.lastgroup == "quoted":
            text = text[1:-1].replace(text[0] * 2, text[0]).lower()
        if match.lastgroup != "space":
            found.append((text.lower() if match.lastgroup == "word" else text, match.start(), match.end()))
    return found


def columns(db, table):
    """table_xinfo: cid, name, type, notnull, default, pk, hidden (2 and 3: generated)."""
    return db.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()


def cloned(db):
    """An empty database in memory with the schema of another."""
    made = opened()
    for kind, name, _, sql in rows_of(db):
        try:
            made.execute(sql)
        except sqlite3.Error as error:
            raise Refused("migrate.unsupported", f"the {kind} {name}: {error}") from error
    return made


def sound(db, where):
    """Refuse views and triggers of what does not exist, and foreign keys that cannot hold."""
    try:
        db.execute("CREATE TABLE _spak_probe(a)")
        db.execute("ALTER TABLE _spak_probe RENAME TO _spak_probed")
        db.execute("DROP TABLE _spak_probed")
        db.execute("PRAGMA foreign_key_check").fetchall()
    except sqlite3.Error as error:
        raise Refused("migrate.schema", f"{where}: {error}") from error


# ---- The steps from one schema to another ----


class Way:
    """The statements from one schema to another; `trial` is an empty database that went the same way."""

    def __init__(self, old, new):
        self.old, self.new, self.trial = old, new, cloned(old)
        self.steps = []
        self.unchecked = False
        """Whether foreign keys have to be off."""

    def step(self, sql, about=""):
        """Add one. `about`: the table whose rows it may not fit."""
        try:
            self.trial.execute(sql)
        except sqlite3.Error as error:
            raise Refused("migrate.unsupported", f"{error}: {sql}") from error
        self.steps.append((sql, about))

    def text(self, title):
        """The script."""
        begin = ["PRAGMA foreign_keys = OFF;"] if self.unchecked else []
        lines = [
            f"-- {''.join(one if one.isprintable() else '?' for one in title)}",
            "-- sqlite3 -bail DATABASE < this file: without -bail, sqlite3 goes on after an error",
            *begin,
            "BEGIN;",
            *(f"{sql};" for sql, _ in self.steps),
            "COMMIT;",
            "",
        ]
        return "\n".join(lines)


def way(old, new):
    """The Way between two empty databases."""
    found, before, after = Way(old, new), objects(old), objects(new)
    changed = {key for key in before.keys() & after.keys() if before[key]["same"] != after[key]["same"]}
    gone = before.keys() - after.keys()
    alters = {key: altered(found, key[1], after) for key in sorted(changed) if key[0] == "table"}
    moved = {name for (_, name), steps in alters.items() if steps is None}
    moved |= {name for kind, name in gone if kind == "table"}
    found.unchecked = bool(moved)
    seen = [key for key in before if key[0] in ("trigger", "view")]
    if not moved and not any(key[0] == "view" and key in changed | gone for key in seen):
        seen = [key for key in seen if key in changed | gone]
    for key in sorted(seen):
        found.step(f"DROP {key[0].upper()} {quoted(before[key]['name'])}")
    for key in before:
        if key[0] == "index" and key in changed | gone and before[key]["table"].lower() not in moved:
            found.step(f"DROP INDEX {quoted(before[key]['name'])}")
    for key, one in after.items():
        if key[0] == "table" and key not in before:
            found.step(one["sql"])
    for key, steps in alters.items():
        for sql, about in rebuilt(found, before[key], after[key]) if steps is None else steps:
            found.step(sql, about)
    for key in sorted(gone):
        if key[0] == "table":
            found.step(f"DROP TABLE {quoted(before[key]['name'])}")
    left = objects(found.trial)
    for key, one in after.items():
        if key not in left:
            found.step(one["sql"], one["table"] if key[0] == "index" else "")
    if missed := differences(objects(found.trial), after):
        raise Refused("migrate.unsupported", f"no steps lead to {', '.join(missed)}")
    return found


def altered(found, table, after):
    """The ALTER TABLEs that give a table its wanted text with any rows in it, or None where none do."""
    old, new = ({one[1].lower(): one[1] for one in columns(db, table)} for db in (found.old, found.new))
    sql = after["table", table]["sql"]
    parts = {words[0][0]: part for part in definitions(sql) if (words := tokens(part))}
    head = f"ALTER TABLE {quoted(after['table', table]['name'])}"
    added = [parts.get(name, "") for name in new if name not in old]
    steps = [f"{head} DROP COLUMN {quoted(old[name])}" for name in old if name not in new]
    steps += [f"{head} ADD COLUMN {part}" for part in added]
    tried, full = cloned(found.old), opened()
    try:
        full.executescript("CREATE TABLE one(_spak); INSERT INTO one VALUES (1)")
        for part in added:  # what SQLite allows only while a table is empty is not for a migration
            full.execute(f"ALTER TABLE one ADD COLUMN {part}")
        for step in steps:
            tried.execute(step)
    except sqlite3.Error:
        return None
    if objects(tried)["table", table]["same"] != after["table", table]["same"]:
        return None
    return [(step, table) for step in steps]


def definitions(sql):
    """The columns and constraints of a CREATE TABLE, as they are written."""
    depth, begin, found = 0, 0, []
    for word, start, end in tokens(sql):
        depth += (word == "(") - (word == ")")
        if word == "(" and depth == 1 and not begin:
            begin = end
        elif (word == "," and depth == 1) or (word == ")" and depth == 0):
            found.append(sql[begin:start].strip())
            begin = end
            if word == ")":
                break
    return found


def rebuilt(found, before, after):
    """The steps that move the rows of a table into a new one of its name."""
    name, made = before["name"], f"_new_{before['name']}"
    old = shared(found.old, found.new, name, copied=True)
    number = integer_key(found.new, name)
    if has_rowid(found.old, name) and has_rowid(found.new, name) and number not in map(str.lower, old):
        old = ["rowid", *old]
    yield f"CREATE TABLE {quoted(made)}{after['sql'][tokens(after['sql'])[2][2] :]}", ""
    if old:
        yield f"INSERT INTO {quoted(made)} ({listed(old)}) SELECT {listed(old)} FROM {quoted(name)}", name
    if all("autoincrement" in one["same"] for one in (before, after)):
        table = "sqlite_sequence"
        yield f"DELETE FROM {table} WHERE name = {literal(made)}", ""
        seq = f"SELECT {literal(made)}, seq FROM {table} WHERE name = {literal(name)}"
        yield f"INSERT INTO {table} (name, seq) {seq}", ""
    yield f"DROP TABLE {quoted(name)}", ""
    yield f"ALTER TABLE {quoted(made)} RENAME TO {quoted(after['name'])}", ""


def shared(old, new, table, copied=False):
    """The columns of a table that both schemas have, unless both generate it; `copied`: that are written."""
    made = {one[1].lower(): one[6] for one in columns(new, table)}
    return [
        one[1] for one in columns(old, table)
        if (name := one[1].lower()) in made and not (made[name] and (copied or one[6]))
    ]  # fmt: skip


def has_rowid(db, table):
    """Whether rows have a number of their own that no column hides."""
    if any(one[1].lower() == "rowid" for one in columns(db, table)):
        return False
    try:
        db.execute(f"SELECT rowid FROM {quoted(table)} LIMIT 0")
    except sqlite3.Error:
        return False
    return True


def integer_key(db, table):
    """The column that is the number of a row, in lower case."""
    keys = [one for one in columns(db, table) if one[5]]
    return keys[0][1].lower() if len(keys) == 1 and keys[0][2].lower() == "integer" else ""
