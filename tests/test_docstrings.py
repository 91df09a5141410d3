"""Public names say what they are: each public class, function and method has a docstring.

Counted are the names without an underscore of both source roots. Not counted are names that somebody else
documents: what a framework asks for (FRAMEWORK), the grammar's actions (`on_NAME`, which the grammar spells
out) and, in the rooms of adapters, methods of the ports, which spak.ports documents for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FRAMEWORK = frozenset({"Meta", "add_arguments", "as_postgresql", "as_sql", "as_sqlite", "handle", "ready"})
ADAPTERS = frozenset(
    {"launchers", "ledger", "llm", "proposers", "sandbox", "tools", "validators", "workspace"}
)

Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def names(tree: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, Named]]:
    """Every public class, function and method, with its name inside the module."""
    for node in tree.body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield before + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from names(node, f"{before}{node.name}.")


def port_methods() -> frozenset[str]:
    """Methods that the ports document."""
    found = set()
    for path in (ROOT / "agents/spak/ports").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
                found |= {name for name, inner in names(node) if ast.get_docstring(inner)}
    return frozenset(found)


def counted() -> Iterator[tuple[str, str, bool]]:
    """The room, the name with its file, and whether it has a docstring, of each name that counts."""
    ports = port_methods()
    for root in ("agents/spak", "platform/spakweb"):
        for path in sorted((ROOT / root).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            room = path.relative_to(ROOT).parts[2]
            for name, node in names(ast.parse(path.read_text())):
                last = name.rpartition(".")[2]
                if last in FRAMEWORK or (last == "Command" and "management" in path.parts):
                    continue
                if last.startswith("on_") and path.match("lang/parser/build.py"):
                    continue
                if "." in name and last in ports and ADAPTERS & set(path.parts):
                    continue
                yield f"{root}/{room}", f"{path.relative_to(ROOT)}:{name}", bool(ast.get_docstring(node))


def test_public_names_have_docstrings() -> None:
    found = list(counted())
    assert len(found) > 4000
    assert [name for _, name, known in found if not known] == []
