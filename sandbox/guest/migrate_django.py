"""Runs inside the sandbox, in a copy of a Django project: its migrations made, run, and run backwards.

Started by migrate_guest.py as `python -B -c TEXT PLAN RESULT` in the folder of manage.py; needs Django and
the project. It leaves copies of the SQLite database before, after and after going back (base.db, up.db and
down.db beside RESULT), and writes RESULT, JSON: the new files, or a refusal. It compares nothing: this
process runs the project's code.
"""

import contextlib
import importlib
import io
import json
import os
import sqlite3
import sys
from pathlib import Path

MOST = 64 << 20


class Refused(Exception):
    """A code and a message."""


def stage(code, work, *args, **options):
    """Do a part; what goes wrong in it refuses with its code."""
    try:
        return work(*args, **options)
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        raise Refused(code, f"{type(error).__name__}: {error}") from error


def tried(plan, folder):
    """The whole way: the new files and where each database is."""
    os.environ["DJANGO_SETTINGS_MODULE"] = plan["settings"]
    sys.path.insert(0, str(Path.cwd()))
    import django

    stage("migrate.project", django.setup)
    from django.core.management import call_command
    from django.db import connections
    from django.db.migrations.loader import MigrationLoader

    path = database(connections, plan["root"])
    existed = path.exists()
    present = str(path.relative_to(plan["root"])) if existed else "an empty database"
    said = io.StringIO()
    quiet = {"interactive": False, "verbosity": 0, "no_color": True, "stdout": said, "stderr": said}

    def migrate(*target):
        importlib.invalidate_caches()
        call_command("migrate", *target, **quiet)

    def keep(name):
        """A copy with what the journal holds, though the project may have connections of its own."""
        connections.close_all()
        closing, copy = contextlib.closing, sqlite3.connect(folder / name)
        with closing(sqlite3.connect(path)) as db, closing(copy):
            db.backup(copy)

    known = stage("migrate.history", lambda: MigrationLoader(None).disk_migrations)
    lacked = -len(applied(connections))
    stage("migrate.history", migrate)
    lacked += len(applied(connections))
    keep("base.db")
    try:
        making = {**quiet, "verbosity": 1, "skip_checks": False, "include_header": False}
        stage("migrate.project", call_command, "makemigrations", **making)
    except Refused as error:
        code = "migrate.rows" if "SystemExit: 3" in error.args[1] else error.args[0]
        raise Refused(code, f"{said.getvalue().strip()[-600:]} {error.args[1]}".strip()) from error
    importlib.invalidate_caches()
    every = MigrationLoader(None).disk_migrations
    made = {key: one for key, one in every.items() if key not in known}
    if not made:
        raise Refused("migrate.unchanged", "the migrations have all changes of the models already")
    stage("migrate.rows", migrate)
    keep("up.db")
    clean = {"check_changes": True, "dry_run": True, **quiet}
    stage("migrate.project", call_command, "makemigrations", **clean)
    for label in sorted({label for label, _ in made}):
        needs = [need for key, one in made.items() if key[0] == label for need in one.dependencies]
        before = [name for need, name in needs if need == label and (need, name) not in made]
        stage("migrate.irreversible", migrate, label, before[0] if before else "zero")
    keep("down.db")
    files = [Path(sys.modules[one.__module__].__file__) for one in made.values()]
    files += [one.parent / "__init__.py" for one in files]
    root = Path(plan["root"])
    return {
        "files": {str(one.relative_to(root)): one.read_text("utf-8") for one in sorted(set(files))},
        "from": present,
        "before": f", after pending migrations ({lacked})" if lacked and existed else "",
        "applied": sorted(f"{label}.{name}" for label, name in made),
    }


def applied(connections):
    """The migrations that the database has."""
    from django.db.migrations.recorder import MigrationRecorder

    return MigrationRecorder(connections["default"]).applied_migrations()


def database(connections, root):
    """The file of the default database."""
    one = connections["default"]
    path = Path(str(one.settings_dict["NAME"])).absolute()
    if one.vendor != "sqlite":
        raise Refused("migrate.unsupported", f"the default database is of {one.vendor}, and not of SQLite")
    if not path.resolve().is_relative_to(Path(root).resolve()):  # a link to the database that is in use
        raise Refused("migrate.database", f"{path} is not in the folder of the project")
    if path.exists():
        if path.stat().st_size > MOST:
            raise Refused("migrate.database", f"{path.name}: it is larger than {MOST >> 20} MiB")
        with sqlite3.connect(path) as db:
            stage("migrate.database", db.execute, "SELECT count(*) FROM sqlite_master")
        db.close()
    return path


def main():
    """Write the result."""
    plan, result = json.loads(sys.argv[1]), Path(sys.argv[2])
    try:
        found = tried(plan, result.parent)
    except Refused as error:
        code, message = error.args
        found = {"refusal": {"code": code, "message": message[-1000:]}}
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
