"""The trigger that puts a delivery into the outbox when the state of a run changes.

A state is written in several places, by statements of our own too, and each commits at its own time. The
trigger misses none of them, and commits with the change: a message is sent if and only if the change was.
It is dropped before migrations and set after them, because SQLite refuses to rename a table while a trigger
names one that is gone.
"""

from __future__ import annotations

from typing import Any

from spakweb.store.hooks.models import Delivery, Webhook
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import SpecVersion

NAME = "hooks_run_state"
_RUNS, _HOOKS, _OUTBOX, _VERSIONS = (model._meta.db_table for model in (Run, Webhook, Delivery, SpecVersion))
_DIALECTS = {
    "sqlite": ("'msg_' || lower(hex(randomblob(16)))", "strftime('%Y-%m-%d %H:%M:%f', 'now')"),
    "postgresql": ("'msg_' || replace(gen_random_uuid()::text, '-', '')", "clock_timestamp()"),
}
"""A new id of a message, and the time."""


def install(connection: Any) -> None:
    """Set the trigger, in place of an older version's, where its tables are there."""
    if not {_RUNS, _HOOKS, _OUTBOX} <= set(connection.introspection.table_names()):
        return
    remove(connection)
    on = f"AFTER UPDATE OF state ON {_RUNS}"
    when = "OLD.state <> NEW.state AND NEW.deleted_at IS NULL"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {NAME}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {_insert('postgresql')}; RETURN NULL; END $$"
            )
            cursor.execute(f"CREATE TRIGGER {NAME} {on} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {NAME}()")
        else:
            cursor.execute(
                f"CREATE TRIGGER {NAME} {on} FOR EACH ROW WHEN {when} BEGIN {_insert('sqlite')}; END"
            )


def remove(connection: Any) -> None:
    """Drop the trigger."""
    if _RUNS not in connection.introspection.table_names():
        return
    with connection.cursor() as cursor:
        at = f" ON {_RUNS}" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER IF EXISTS {NAME}{at}")


def _insert(vendor: str) -> str:
    message, now = _DIALECTS[vendor]
    return (
        f"INSERT INTO {_OUTBOX} (webhook_id, run_id, message, event, count, reason, at, next_at, "
        f"body, state, tries, status, error) SELECT id, NEW.id, {message}, NEW.state, NEW.count, NEW.reason, "
        f"{now}, {now}, '', 'due', 0, 0, '' FROM {_HOOKS} WHERE team_id = NEW.team_id AND active "
        "AND ',' || events || ',' LIKE '%,' || NEW.state || ',%' AND (user_id IS NULL OR NEW.trial = '' "
        f"AND spec_id = (SELECT spec_id FROM {_VERSIONS} WHERE id = NEW.version_id))"
    )
