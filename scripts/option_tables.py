"""The tables of options and arguments in docs/, made from the schemas of tools, validators and proposers.

`python scripts/option_tables.py` writes each anew between `<!-- options: NAME -->` and `<!-- end -->`; a test
compares, so that docs, hovers and schemas say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spak import config

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("evolve.md", "measuring.md", "repair.md", "strategies.md", "tools.md", "tuner.md", "validators.md")
_BLOCK = re.compile(r"(<!-- options: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_KINDS = {"string": "text", "boolean": "true or false", "object": "map", "array": "list", "number": "number"}


def filled(page: str) -> str:
    """The page with every table written anew. Raises: KeyError for one of an entry that does not exist."""
    catalog = config.catalog()
    entries = {**catalog.tools, **catalog.validators, **catalog.proposers}
    return _BLOCK.sub(lambda found: found[1] + table(entries[found[2]].schema) + found[3], page)


def table(schema: Mapping[str, Any]) -> str:
    """The members of a schema, the required ones first."""
    return "| name | type | default | |\n|---|---|---|---|\n" + "".join(
        f"| {' | '.join(row)} |\n".replace("  ", " ") for row in _rows(schema)
    )


def _rows(schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    members = schema["properties"]
    for name in sorted(members, key=lambda name: name not in required):
        member = members[name]
        default = _shown(member["default"]) if "default" in member else ""
        yield (
            f"`{name}`",
            _kind(member),
            "required" if name in required else default,
            member["description"].replace("<", "&lt;"),
        )


def _kind(member: Mapping[str, Any]) -> str:
    if "enum" in member:
        return ", ".join(f"`{word}`" for word in member["enum"])
    if member.get("type") == "integer":
        most = f"{member['maximum']:,}" if "maximum" in member else ""
        return f"{member['minimum']:,} to {most}" if most else f"from {member['minimum']:,}"
    if isinstance(member.get("type"), list):
        return " or ".join(_KINDS[kind] for kind in member["type"])
    return _KINDS[member.get("type", "string")]


def _shown(default: Any) -> str:
    return f"`{default}`" if isinstance(default, str) else str(default).lower()


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(filled((DOCS / name).read_text()))
