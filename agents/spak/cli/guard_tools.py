"""The tools of others in one guarded session: those of the MCP servers that `--mcp` names.

Takes names of servers of the lock file; gives the edit of the session's spec that lists their approved tools
with ours. It permits none of them: which is called, the law says (mcp_may), or a person who signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.lang.edit import Op


def offered(spec: Path, names: Sequence[str]) -> list[Op]:
    """The edits of the spec's text. Raises: UsageError `mcp.unknown`, `mcp.lock`."""
    from spak.cli import common
    from spak.guard import TASK
    from spak.lang import parse
    from spak.lang.edit import ops
    from spak.mcp import pins
    from spak.program import compile as compile_program

    if not names:
        return []
    known = pins.read(Path(pins.LOCK))
    for name in names:
        if name not in known:
            raise UsageError("mcp.unknown", f"no server {name!a} is approved here", "spak mcp list")
    ours = compile_program(parse(common.read_input(spec), str(spec)), common.catalog(), {})
    tools = [*ours.tasks[TASK].tools, *(tool for name in dict.fromkeys(names) for tool in known[name].ids())]
    return [ops.Set("TOOLS", tools, TASK)]
