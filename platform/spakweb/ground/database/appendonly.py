"""Rows that stay as they were written: triggers that refuse UPDATE and DELETE, and a base class that says so.

`install(connection)` sets the triggers of every model that derives from AppendOnly, on SQLite and PostgreSQL.
It is run after every migration, because SQLite drops triggers in silence when a migration rebuilds a table;
`make_way(connection)` before one drops those that would stop it. `INSERT OR REPLACE` would pass the first two
triggers on SQLite, TRUNCATE those of PostgreSQL: each has one of its own. A model with GOES_WITH lets the
rows of a parent go whose `deleted_at` is set, and no others. `remove(connection)` is for tests that empty
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from django.apps import apps
from django.db import models

FUNCTION = "spak_append_only"


class AppendOnlyError(Exception):
    """An attempt to change or delete a row that stays."""


class AppendOnlyQuerySet(models.QuerySet):
    """Rows that are only added."""

    def update(self, **fields: Any) -> NoReturn:
        """Raises: AppendOnlyError."""
        raise AppendOnlyError(f"{self.model.__name__} has no update")

    def delete(self) -> NoReturn:
        """Raises: AppendOnlyError."""
        raise AppendOnlyError(f"{self.model.__name__} has no delete")


class AppendOnly(models.Model):
    """A row that is inserted once."""

    GOES_WITH: tuple[str, str] | None = None
    """A column and the table that it refers to: its rows may be deleted once `deleted_at` is set there."""

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the row. Raises: AppendOnlyError where it is written already."""
        if not self._state.adding:
            raise AppendOnlyError(f"{type(self).__name__} {self.pk} is written")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises: AppendOnlyError."""
        raise AppendOnlyError(f"{type(self).__name__} {self.pk} stays")


def tables() -> dict[str, tuple[str, str] | None]:
    """By name of the table: what its rows go with."""
    found = {model._meta.db_table: model for model in apps.get_models() if issubclass(model, AppendOnly)}
    return {name: found[name].GOES_WITH for name in sorted(found)}


def install(connection: Any) -> None:
    """Create the triggers that refuse updates and deletes, for the tables that exist."""
    there = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'rows of % stay as they are', TG_TABLE_NAME "
                "USING ERRCODE = 'integrity_constraint_violation'; END $$"
            )
        for table, goes_with in tables().items():
            if table in there and (goes_with is None or goes_with[1] in there):
                for statement in _statements(connection.vendor, table, goes_with):
                    cursor.execute(statement)


def make_way(connection: Any) -> None:
    """Drop the triggers that name the table of a parent, which SQLite refuses to rebuild beneath them."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for table, goes_with in tables().items():
                if goes_with is not None:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {_names(table)[1]}")


def remove(connection: Any) -> None:
    """Drop these triggers."""
    with connection.cursor() as cursor:
        for table in tables():
            for name in _names(table):
                at = f" ON {table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{at}")


def missing(connection: Any) -> list[str]:
    """The tables that have lost a trigger."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgname FROM pg_trigger")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        there = {name for (name,) in cursor.fetchall()}
    return [table for table in tables() if not set(_names(table)) <= there]


def _names(table: str) -> tuple[str, str, str]:
    return f"{table}_no_update", f"{table}_no_delete", f"{table}_no_replace"


def _statements(vendor: str, table: str, goes_with: tuple[str, str] | None) -> Iterator[str]:
    update, delete, replace = _names(table)
    if vendor == "postgresql":
        function = FUNCTION
        if goes_with is not None:
            function = f"{table}_goes"
            yield (
                f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN IF {_gone(goes_with)} THEN RETURN OLD; END IF; "
                "RAISE EXCEPTION 'rows of % stay as they are', TG_TABLE_NAME "
                "USING ERRCODE = 'integrity_constraint_violation'; END $$"
            )
        for name, event, does in (
            (update, "UPDATE ON {} FOR EACH ROW", FUNCTION),
            (delete, "DELETE ON {} FOR EACH ROW", function),
            (replace, "TRUNCATE ON {} FOR EACH STATEMENT", FUNCTION),
        ):
            yield f"CREATE OR REPLACE TRIGGER {name} BEFORE {event.format(table)} EXECUTE FUNCTION {does}()"
        return
    refuse = f"BEGIN SELECT RAISE(ABORT, 'rows of {table} stay as they are'); END"
    yield f"CREATE TRIGGER IF NOT EXISTS {update} BEFORE UPDATE ON {table} {refuse}"
    unless = "" if goes_with is None else f"WHEN NOT {_gone(goes_with)} "
    if unless:  # an older version's has no exception
        yield f"DROP TRIGGER IF EXISTS {delete}"
    yield f"CREATE TRIGGER IF NOT EXISTS {delete} BEFORE DELETE ON {table} {unless}{refuse}"
    yield (
        f"CREATE TRIGGER IF NOT EXISTS {replace} BEFORE INSERT ON {table} "
        f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) {refuse}"
    )


def _gone(goes_with: tuple[str, str]) -> str:
    column, parent = goes_with
    return f"EXISTS (SELECT 1 FROM {parent} WHERE id = OLD.{column} AND deleted_at IS NOT NULL)"
