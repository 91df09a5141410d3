"""`search_code`: places in the workspace whose code has a form, such as `try: $$$A except: $$$B`.

Patterns, languages and bounds are those of `spak.world.search`; files are parsed in a process with limits.
"""

from __future__ import annotations

from dataclasses import asdict

from spak import canon
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import results


class SearchCode:
    """The tool `search_code`."""

    entry = ToolEntry(
        name="search_code",
        version=1,
        summary="Finds code of the workspace by a pattern of its syntax tree, as JSON.",
        schema=parts.members(
            ["pattern"],
            pattern=parts.text("Code with $A for one node and $$$A for any number of them.", 2000),
            language=parts.text("The language of the pattern; without it each file's own.", 32),
            path=parts.path(default="."),
        ),
        effect="pure",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"pattern": "text", "language": "text", "path": "reads=."},
    )

    def run(self, call: Call) -> ToolResult:
        """Exit 0, with or without a match."""
        return results.guarded(_search, call)


def _search(call: Call) -> ToolResult:
    from spak.world.search import search

    found = search(
        call.workspace,
        str(call.args["pattern"]),
        str(call.args.get("language", "")),
        str(call.args.get("path", ".")),
        call.cancel,
    )
    shown = {
        "matches": [asdict(match) for match in found.matches],
        "cut": found.cut,
        "covers": {"files": found.files, "unknown": found.unknown},
    }
    return results.done(canon.dumps(shown) + b"\n", matches=len(found.matches))
