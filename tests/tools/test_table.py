"""The table of tools: schemas in the pinned dialect, names that resolve, docs that name everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spak import canon
from spak.lang.catalog import Catalog
from spak.lang.schema import check_schema
from spak.tools import TOOLS

DOCS = Path(__file__).parents[2] / "docs" / "tools.md"


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_is_described(name: str) -> None:
    entry = TOOLS[name].entry
    assert entry.name == name and entry.summary.endswith(".") and entry.version >= 1
    check_schema(entry.schema)
    assert entry.schema["additionalProperties"] is False
    assert set(entry.schema["required"]) <= set(entry.schema["properties"])
    assert not entry.writes or entry.effect == "effect"
    canon.dumps(entry.schema)


def test_the_catalog_survives_genesis() -> None:
    catalog = Catalog(tools={name: tool.entry for name, tool in TOOLS.items()})
    again = Catalog.from_json(canon.loads(canon.dumps(catalog.to_json())))
    assert canon.dumps(again.to_json()) == canon.dumps(catalog.to_json())


def test_names_of_the_seeds_resolve() -> None:
    catalog = Catalog(tools={name: tool.entry for name, tool in TOOLS.items()})
    for name in ("nvcc", "nsight", "read_ast", "write_cuda", "run", "apply_patch"):
        assert catalog.tool(name) is not None
    aliases = [alias for tool in TOOLS.values() for alias in tool.entry.aliases]
    assert len(aliases) == len(set(aliases)) and not set(aliases) & set(TOOLS)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_the_docs_name_every_tool_and_argument(name: str) -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert f"## `{name}`" in text
    section = text.split(f"## `{name}`")[1].split("\n## ")[0]
    entry = TOOLS[name].entry
    for argument in entry.schema["properties"]:
        assert f"`{argument}`" in section, argument
    assert f"class {entry.effect}" in section and f"on_fail {entry.on_fail}" in section
    for alias in entry.aliases:
        assert f"`{alias}`" in section


def test_the_table_is_cheap() -> None:
    heavy = "numpy re2 rich lark subprocess"
    code = f"import spak.tools, sys; print([name for name in {heavy.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
