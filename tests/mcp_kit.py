"""MCP servers for tests: the small one of tests/mcp_server.py, as honest or hostile as a folder says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from spak import config
from spak.mcp import identity, pins
from spak.mcp.pins import Server
from spak.own import starting
from spak.ports import Call, Limits
from spak.tools.served import Servers

PROGRAM = Path(__file__).parent / "mcp_server.py"
DEFINITIONS: tuple[dict[str, Any], ...] = (
    {
        "name": "say",
        "description": "Says a text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
    {"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}},
)


def approved(name: str = "small", **members: Any) -> Server:
    """A server that nobody starts, with both tools approved."""
    made = Server(name, argv=("python", "server.py"), files={"python": "x"}, **members)
    tools = {one["name"]: pins.pinned(one) for one in DEFINITIONS}
    return replace(made, tools=tools, list_hash=pins.list_hash(name, DEFINITIONS))


def lay(folder: Path, definitions: Any = DEFINITIONS, **how: Any) -> Path:
    """The folder that says what the small server lists, and how it behaves by method."""
    folder = folder / "served"  # which others may read: a test's own folder is closed to the sandbox's user
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.json").write_text(json.dumps(list(definitions)), encoding="utf-8")
    named = {name.replace("_", "/", 1): value for name, value in how.items()}
    (folder / "how.json").write_text(json.dumps(named), encoding="utf-8")
    return folder


def small(folder: Path, name: str = "small", **members: Any) -> Server:
    """The small server with both tools approved, as it would be started."""
    argv = ("python", str(PROGRAM), str(folder))
    where = folder, config.toolchain().programs
    files = identity.files(argv, *where)
    return replace(approved(name), argv=argv, files=files, packages={}, **members)


def pin(folder: Path, *names: str) -> None:
    """Approve the small server of a project under these names, as `spak mcp add` does."""
    if not (folder / "server.py").exists():
        shutil.copy(PROGRAM, folder / "server.py")
        lay(folder)
    argv = ("python", "server.py", "served")
    files = identity.files(argv, folder, config.toolchain().programs)
    pins.write(folder / pins.LOCK, {name: replace(approved(name), argv=argv, files=files) for name in names})


@contextmanager
def servers(*approved_servers: Server) -> Iterator[Servers]:
    made = Servers({one.name: one for one in approved_servers}, starting(config.Settings(), Path()))
    try:
        yield made
    finally:
        made.close()


def call(tool: str, limit_s: float = 60.0, **args: Any) -> Call:
    return Call("1", tool, args, Path(), None, limits=Limits(wall_s=limit_s))
