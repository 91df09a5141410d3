"""Whether the options of a proposer fit its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.errors import UsageError
from spak.lang.schema import violations


def fit(code: str, schema: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises: UsageError of that code for what does not fit."""
    for wrong in violations(schema, options)[:1]:
        choices = f": one of {', '.join(wrong.expected)}" if wrong.code == "schema.enum" else ""
        raise UsageError(
            code, f"{wrong.sentence('option')}{choices}", f"options are {', '.join(schema['properties'])}"
        )
