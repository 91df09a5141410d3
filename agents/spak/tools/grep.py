"""`grep`: the lines below a folder, or of a file, that match a pattern of RE2.

Files that the law lets nobody read by name are passed over, as are binary ones and links; what was looked at
and shown is bounded, and the result says where it was cut.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from collections.abc import Iterator

from spak import schema_parts as parts
from spak.cancel import check
from spak.files import beneath
from spak.files.walk import printable, walk
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results

MAX_FILE = 4 << 20
"""Bytes of one file that are searched."""
MAX_TOTAL = 64 << 20
"""Bytes of all files together."""
MAX_FILES = 20_000
MAX_LINES = 1000
"""Matching lines that are shown."""
MAX_WIDTH = 400
"""Characters of a line that are shown."""


class Grep:
    """Searches files of the workspace without starting a program."""

    entry = ToolEntry(
        name="grep",
        version=1,
        summary="Searches files of the workspace for lines that match a regular expression (RE2).",
        schema=parts.members(
            ["pattern"],
            pattern=parts.text("A regular expression in the syntax of RE2, searched in each line.", 1024),
            path=parts.path(default="."),
            glob=parts.text("Only files whose name fits, such as *.py; with a / the path.", 256),
            context=parts.whole("How many lines are shown before and after each match.", 0, 20, 0),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"pattern": "text", "path": "reads=.", "glob": "text", "context": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        """Exit 0, with or without a match; 1 for a pattern or a path that is none."""
        return results.guarded(_grep, call)


def _grep(call: Call) -> ToolResult:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(str(call.args["pattern"]), options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
        hint = "RE2 has no look-around and no back references; escape what is meant literally"
        return results.failed("grep.pattern", f"no pattern of RE2: {reason}", hint)
    rows: list[str] = []
    cut, found, context = "", 0, int(call.args.get("context", 0))
    for path, text in _texts(call):
        if path == "":
            cut = text
            break
        lines = text.replace("\r\n", "\n").split("\n")
        if lines[-1] == "":
            lines.pop()
        hits = [at for at, line in enumerate(lines) if pattern.search(line) is not None]
        if len(hits) > MAX_LINES - found:
            hits, cut = hits[: MAX_LINES - found], f"only the first {MAX_LINES} matching lines are shown"
        found += len(hits)
        rows += _shown(printable(path), lines, hits, context, bool(rows))
        if cut:
            break
    result = results.done("".join(row + "\n" for row in rows), matches=found)
    if not cut:
        return result
    note = results.diagnostic("warning", "grep.cut", cut, hint="search below one folder, or give a glob")
    return ToolResult("exited", 0, result.output, result.size, result.sha256, True, result.key, (note,))


def _shown(path: str, lines: list[str], hits: list[int], context: int, later: bool) -> Iterator[str]:
    """As grep shows them: `path:line:text`, around them `path-line-text`, and `--` between stretches."""
    matching, last = set(hits), -1
    around = sorted({at for hit in hits for at in range(hit - context, hit + context + 1)})
    for at in around:
        if not 0 <= at < len(lines):
            continue
        if context and (later if last < 0 else at != last + 1):
            yield "--"
        mark = ":" if at in matching else "-"
        yield f"{path}{mark}{at + 1}{mark}{printable(lines[at].expandtabs())[:MAX_WIDTH]}"
        last = at


def _texts(call: Call) -> Iterator[tuple[str, str]]:
    """Path and text of each file that is searched; an empty path with the reason where a limit is reached."""
    path, glob = str(call.args.get("path", ".")), call.args.get("glob")
    fd, parts = beneath.open_beneath(call.workspace, path)
    is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
    os.close(fd)
    if not is_folder:  # the gate judged this very path
        yield "/".join(parts), beneath.read_beneath(call.workspace, path, MAX_FILE).decode("utf-8", "replace")
        return
    files = total = 0
    for entry in walk(call.workspace, path):
        check(call.cancel)
        if entry.kind != "file" or (glob is not None and not _fits(entry.whole, entry.path, str(glob))):
            continue
        files += 1
        if files > MAX_FILES or total > MAX_TOTAL:
            limit = f"{MAX_FILES} files" if files > MAX_FILES else f"{MAX_TOTAL >> 20} MiB"
            yield "", f"only the first {limit} were searched"
            return
        data = entry.read(MAX_FILE)
        if data is None or b"\0" in data[:8192]:
            continue
        total += len(data)
        yield entry.whole, data.decode("utf-8", "replace")


def _fits(whole: str, path: str, glob: str) -> bool:
    if "/" in glob:
        return fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(whole, glob)
    return fnmatch.fnmatchcase(posixpath.basename(path), glob)
