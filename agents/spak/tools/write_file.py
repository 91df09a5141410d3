"""`write_file`: a file of the workspace, whole. `write_cuda` of the seed is the same tool."""

from __future__ import annotations

from spak import canon
from spak import schema_parts as parts
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results


class WriteFile:
    """The tool `write_file`."""

    entry = ToolEntry(
        name="write_file",
        version=1,
        summary="Writes a file of the workspace, whole; folders on the way are made.",
        schema=parts.members(
            ["path", "content"],
            path=parts.path(),
            content=parts.text("The new content.", 8 << 20, least=0),
            executable=parts.flag("Sets or clears the execute bits; left out, an old file keeps its mode."),
        ),
        sandboxed=False,
        aliases=("write_cuda", "write"),
        also={**parts.PATH_NAMES, "text": "content", "data": "content", "contents": "content"},
        arguments={"path": "edits", "content": "text", "executable": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_write, call)


def _write(call: Call) -> ToolResult:
    try:
        data = str(call.args["content"]).encode()
    except UnicodeEncodeError:
        return results.failed(
            "write_file.text", "the content has half of a surrogate pair", "send valid text"
        )
    executable = call.args.get("executable")
    mode = None if executable is None else 0o755 if executable else 0o644
    path = beneath.write_beneath(call.workspace, str(call.args["path"]), data, mode)
    return results.done(f"{path}: {len(data)} bytes\n", sha256=canon.digest(data))
