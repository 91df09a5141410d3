"""A column of bytes that is read as bytes whatever its row holds.

SQLite lets any statement put text into a column of bytes: `UPDATE ... SET line = replace(line, ...)` does. A
check of the store then names the record instead of ending in a TypeError. Migrations see Django's own field.
"""

from __future__ import annotations

from typing import Any

from django.db import models


class StoredBytes(models.BinaryField):
    """`BinaryField` that encodes text which a statement of somebody else left in the column."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        """Bytes, or what the driver gives for them; None stays."""
        return value.encode() if isinstance(value, str) else value

    def deconstruct(self) -> Any:
        """As Django's own field: the column is the same."""
        name, _, words, options = super().deconstruct()
        return name, "django.db.models.BinaryField", words, options
