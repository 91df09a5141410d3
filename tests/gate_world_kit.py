"""Rules with tools for files, and a world that answers observations from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_kit import CATALOG, PERMITS, World, fresh, program, rules, tool
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.lang.catalog import Catalog, ToolEntry
from spak.program import Task
from spak.records import Kind

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
FILES = Catalog(
    tools={
        **CATALOG.tools,
        "read_file": ToolEntry("read_file", 1, "reads", PATH, "pure", sandboxed=False, writes=False),
        "write_file": ToolEntry("write_file", 1, "writes", PATH, "effect", sandboxed=False),
    },
    validators=CATALOG.validators,
)
INSIDE = {"a.txt": ["a.txt", "inside", "a.txt", "file", 1, ""]}
OUT = {"a.txt": ["a.txt", "outside", "/etc/passwd", "other", 1, ""]}


def files(made: Any, law: str = PERMITS) -> Rules:
    found = rules(made, law=law)
    return Rules(found.program, FILES, 7, "root-0", "opening", found.wanted, found.gate, found.keys)


def sees(paths: Mapping[str, Any]) -> Any:
    """Answers observations from a table, everything else as `fresh` does."""

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "approve":
            return None
        if effect.act != "observe":
            return fresh(effect, count)
        asked = effect.args["questions"].get("paths", [])
        return Kind.OBSERVE, {"facts": {"paths": [paths[path] for path in asked]}}

    return script


def one(name: str = "look", **args: Any) -> Any:
    return program(Task("t", steps=(tool("s", name, **args),)))


def permits(made: World) -> list[Mapping[str, Any]]:
    return made.bodies("permit")
