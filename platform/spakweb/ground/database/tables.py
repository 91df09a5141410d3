"""Whether this code can bring the tables of the database up to date. It cannot if

- they are newer: migrations were applied that it does not have;
- they are older than what it begins with (ADR 0112): some of the migrations that a squashed one replaces were
  applied and some were not, and the files of the missing ones are gone.

`manage.py migrate`, and so `up`, asks `refuse` before it changes anything, `serve` and workers before they
begin; `check_store` reports both.
"""

from __future__ import annotations

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from spakweb.ground.errors import Refused

NEWER = "web.newer_tables"
OLDER = "web.older_tables"
MIGRATES_EARLIER = "0b013ebc"
"""The commit whose migrations the squashed ones replace: its `manage.py migrate` brings older tables to where
these begin. A later squash raises it."""


def unknown() -> list[str]:
    """Applied migrations of the apps here that this code does not have. Raises: DatabaseError."""
    loader, applied = _loader(), _applied()
    known = set(loader.disk_migrations)
    known |= {key for one in loader.disk_migrations.values() for key in one.replaces}
    return sorted(f"{app}.{name}" for app, name in applied - known if app in loader.migrated_apps)


def lacking() -> list[str]:
    """Migrations that are missing next to others of the same squashed one. Raises: DatabaseError."""
    applied = _applied()
    replaced = [set(one.replaces) for one in _loader().disk_migrations.values()]
    return sorted(f"{app}.{name}" for keys in replaced if keys & applied for app, name in keys - applied)


def refuse() -> None:
    """Raises: Refused `web.newer_tables`, `web.older_tables`."""
    if names := unknown():
        raise Refused(
            NEWER,
            f"The tables were made by a newer version: it applied {_some(names)}, unknown here.",
            "Install that version again, or restore a backup that was made before it (docs/deploy.md).",
        )
    if names := lacking():
        raise Refused(
            OLDER,
            f"The tables are older than this version can bring up to date: they lack {_some(names)}.",
            f"Make a backup, run `manage.py migrate` of commit {MIGRATES_EARLIER}, then start this version"
            " (docs/deploy.md).",
        )


def _loader() -> MigrationLoader:
    """The files only: the graph of older tables has no consistent form."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return loader


def _applied() -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


def _some(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
