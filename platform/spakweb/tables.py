"""Whether the tables of the database are newer than this code: migrations were applied that it does not have.

`migrate`, and so `manage.py up`, asks `refuse` before it changes anything, `serve` and workers before they
begin; `check_store` reports it.
"""

from __future__ import annotations

from django.db import connection
from django.db.migrations.loader import MigrationLoader

from spakweb.errors import Refused

CODE = "web.newer_tables"


def unknown() -> list[str]:
    """Applied migrations of the apps here that this code does not have. Raises: DatabaseError."""
    loader = MigrationLoader(connection)
    known = set(loader.disk_migrations) | set(loader.replacements)
    known |= {key for one in loader.replacements.values() for key in one.replaces}
    mine = (key for key in loader.applied_migrations if key[0] in loader.migrated_apps)
    return sorted(f"{app}.{name}" for app, name in mine if (app, name) not in known)


def refuse() -> None:
    """Raises: Refused `web.newer_tables`."""
    if found := unknown():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise Refused(
            CODE,
            f"The tables were made by a newer version: it applied {found[0]}{more}, unknown here.",
            "Install that version again, or restore a backup that was made before it (docs/deploy.md).",
        )
