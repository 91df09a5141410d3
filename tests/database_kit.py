"""The database of tests: its tables are made once for all workers of a run, and emptied at little cost.

A plug-in of pytest that tests/conftest.py registers: all folders have one database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

from platform_kit import migrated

LASTING = {"auth_permission", "django_content_type"}
"""What Django makes anew, out of the models, after it has emptied all tables."""


@pytest.fixture(scope="session")
def django_db_keepdb(
    request: pytest.FixtureRequest,
    django_db_modify_db_settings: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> bool:
    """The database begins as a copy of one that has its tables; it goes with its folder."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return bool(request.config.getvalue("reuse_db"))
    with (
        closing(sqlite3.connect(migrated(tmp_path_factory) / "spak.sqlite3")) as tables,
        closing(sqlite3.connect(database["TEST"]["NAME"])) as ours,
    ):
        tables.backup(ours)
    return True


def filled() -> list[str]:
    """The tables that have rows, but for those that Django fills."""
    from django.db import connection

    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    asked = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in sorted({*found} - LASTING))
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        return [name for (name,) in cursor.fetchall()]


def rows_of(tables: Iterable[str]) -> list[str]:
    """Statements that put the rows of these tables there again, as they are."""
    from django.db import connection

    quote = "quote({})" if connection.vendor == "sqlite" else "quote_nullable({}::text)"
    made = []
    with connection.cursor() as cursor:
        for table in tables:
            described = connection.introspection.get_table_description(cursor, table)
            names = [f'"{column.name}"' for column in described]
            columns, quoted = ", ".join(names), ", ".join(map(quote.format, names))
            cursor.execute(f"SELECT {quoted} FROM {table}")
            rows = ", ".join(f"({', '.join(row)})" for row in cursor.fetchall())
            made.append(f"INSERT INTO {table} ({columns}) VALUES {rows}")
    return made


def emptied(case: Any) -> None:
    """Empty the tables that have rows, and keep what Django would fill again: this costs it 0.15 s of a core,
    and PostgreSQL, which gives each table a new file, more. Triggers are set again, as after a migration."""
    from django.db import connection, transaction

    from spakweb.ground.database import appendonly

    with transaction.atomic(), connection.cursor() as cursor:
        for name in filled():
            cursor.execute(f"DELETE FROM {name}")
    appendonly.install(connection)


@pytest.fixture(autouse=True, scope="session")
def emptied_soon() -> Iterator[None]:
    """After tests whose rows other connections saw."""
    from django.test import TransactionTestCase

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptied)
        yield
