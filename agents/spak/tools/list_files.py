"""`list_files`: the names below a folder of the workspace, sorted; links are named, not entered."""

from __future__ import annotations

from spak import schema_parts as parts
from spak.files.walk import printable, walk
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results

MAX_ENTRIES = 2000


class ListFiles:
    """The tool `list_files`."""

    entry = ToolEntry(
        name="list_files",
        version=1,
        summary="Lists the files below a folder of the workspace; folders end with /, links with @.",
        schema=parts.members(
            [],
            path=parts.path(default="."),
            depth=parts.whole("How many levels of folders are entered.", 1, 64, 16),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"path": "reads=.", "depth": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_list, call)


def _list(call: Call) -> ToolResult:
    path = str(call.args.get("path", "."))
    rows: list[str] = []
    whole = True
    try:
        for entry in walk(call.workspace, path, int(call.args.get("depth", 16))):
            if len(rows) >= MAX_ENTRIES:
                whole = False
                break
            sign = {"link": "@", "folder": "/", "file": ""}[entry.kind]
            rows.append(printable(entry.path) + sign + (f" ({entry.trouble})" if entry.trouble else ""))
    except NotADirectoryError:
        return results.failed("path.not_a_folder", f"{path!a} is not a folder", "name a folder")
    result = results.done("".join(row + "\n" for row in rows))
    if whole:
        return ToolResult("exited", 0, result.output, result.size, result.sha256, False, _key(result))
    note = results.diagnostic("warning", "list_files.cut", f"only the first {MAX_ENTRIES} names are shown")
    return ToolResult("exited", 0, result.output, result.size, result.sha256, True, _key(result), (note,))


def _key(result: ToolResult) -> dict[str, object]:
    return {"exit": 0, "sha256": result.sha256}
