"""The two tools of both arms: reading a table in its encoding, and writing a file, which may break off.

`read_table` is a pure tool of the bench, since `read_file` gives bytes as UTF-8. Writing is the shipped
`write_file`; at the draws of `breaks` it ends as a tool does whose process is killed in the middle: half of
the file is there, the call is an error. Neither starts a program, so neither needs a sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spak import canon
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results
from spak.tools.write_file import WriteFile

BROKE_OFF = "write_file was killed in the middle of the file"


class ReadTable:
    """The tool `read_table`."""

    entry = ToolEntry(
        name="read_table",
        version=1,
        summary="Reads a table of the workspace as text.",
        schema=parts.members(
            ["path", "encoding"], path=parts.path(), encoding=parts.text("Its encoding.", 20)
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"path": "reads", "encoding": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        path, encoding = str(call.args["path"]), str(call.args["encoding"])
        try:
            data = (call.workspace / path).read_bytes()
            text = data.decode(encoding)
        except (OSError, LookupError, UnicodeDecodeError) as error:
            return results.failed(
                "read_table.unreadable", f"{path}: {error}", "check the path and the encoding"
            )
        shown = f"table {path}\n{text}".encode()
        return ToolResult("exited", 0, shown, len(shown), key={"sha256": canon.digest(data)})


@dataclass(frozen=True, slots=True)
class Breaking:
    """`write_file`, some of whose calls break off."""

    breaks: Callable[[str], bool]
    """Whether the next write of a path breaks off."""
    as_result: bool = False
    """Report it as an exit of the tool, which is committed and not rolled back: what an arm without rollback
    does with it."""
    entry = WriteFile.entry

    def run(self, call: Call) -> ToolResult:
        path, content = str(call.args["path"]), str(call.args["content"])
        if not self.breaks(path):
            return WriteFile().run(call)
        WriteFile().run(replace(call, args={**call.args, "content": content[: len(content) // 2]}))
        said = BROKE_OFF.encode()
        status = "exited" if self.as_result else "crash"
        return ToolResult(status, 137, said, len(said), key={"exit": 137})
