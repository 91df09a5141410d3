"""`read_file`: a file of the workspace, or some of its lines."""

from __future__ import annotations

from spak import canon
from spak import schema_parts as parts
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results

MAX_BYTES = 256 * 1024


class ReadFile:
    """The tool `read_file`."""

    entry = ToolEntry(
        name="read_file",
        version=1,
        summary="Reads a file of the workspace, or a range of its lines.",
        schema=parts.members(
            ["path"],
            path=parts.path(),
            start_line=parts.whole("First line, from 1.", 1),
            end_line=parts.whole("Last line, itself included.", 1),
            max_bytes=parts.whole("How much is shown, from the start of the range.", 1, 4 << 20, MAX_BYTES),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        aliases=("read",),
        also=parts.PATH_NAMES,
        arguments={"path": "reads", "start_line": "text", "end_line": "text", "max_bytes": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_read, call)


def _read(call: Call) -> ToolResult:
    path, start = str(call.args["path"]), int(call.args.get("start_line", 1))
    end = call.args.get("end_line")
    if end is not None and end < start:
        return results.failed("read_file.range", f"line {end} comes before line {start}", "swap them")
    data = beneath.read_beneath(call.workspace, path)
    shown = data
    if start > 1 or end is not None:
        shown = b"\n".join(data.split(b"\n")[start - 1 : end])
    limit = int(call.args.get("max_bytes", MAX_BYTES))
    digest = canon.digest(data)
    return ToolResult(
        "exited",
        0,
        shown[:limit],
        len(data),
        digest,
        len(shown) > limit,
        {"exit": 0, "sha256": digest},
    )
