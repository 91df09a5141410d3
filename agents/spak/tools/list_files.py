"""`list_files`: the names below a folder of the workspace, sorted; links are named, not entered."""

from __future__ import annotations

import os

from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results
from spak.tools.observe import beneath
from spak.tools.schemas import PATH, object_of

MAX_ENTRIES = 2000


class ListFiles:
    entry = ToolEntry(
        name="list_files",
        version=1,
        summary="Lists the files below a folder of the workspace; folders end with /, links with @.",
        schema=object_of(
            {
                "path": {**PATH, "default": "."},
                "depth": {
                    "description": "How many levels of folders are entered.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 64,
                    "default": 16,
                },
            },
            required=(),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_list, call)


def _list(call: Call) -> ToolResult:
    path = str(call.args.get("path", "."))
    fd, _ = beneath.open_beneath(call.workspace, path)
    try:
        rows: list[str] = []
        whole = _below(fd, "", int(call.args.get("depth", 16)), rows)
    except NotADirectoryError:
        return results.failed("path.not_a_folder", f"{path!a} is not a folder", "name a folder")
    finally:
        os.close(fd)
    result = results.done("".join(row + "\n" for row in rows))
    if whole:
        return ToolResult("exited", 0, result.output, result.size, result.sha256, False, _key(result))
    note = results.diagnostic("warning", "list_files.cut", f"only the first {MAX_ENTRIES} names are shown")
    return ToolResult("exited", 0, result.output, result.size, result.sha256, True, _key(result), (note,))


def _key(result: ToolResult) -> dict[str, object]:
    return {"exit": 0, "sha256": result.sha256}


def _below(fd: int, prefix: str, depth: int, rows: list[str]) -> bool:
    """Add the names below an open folder; False when there are more than fit. `.git` is not entered."""
    with os.scandir(fd) as entries:
        found = sorted(
            (entry.name, entry.is_symlink(), entry.is_dir(follow_symlinks=False)) for entry in entries
        )
    for name, is_link, is_folder in found:
        if len(rows) >= MAX_ENTRIES:
            return False
        shown = prefix + "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)
        rows.append(shown + ("@" if is_link else "/" if is_folder else ""))
        if is_folder and not is_link and depth > 1 and name != ".git":
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except OSError as error:
                rows[-1] += f" ({error.strerror})"
                continue
            try:
                if not _below(inner, shown + "/", depth - 1, rows):
                    return False
            finally:
                os.close(inner)
    return True
