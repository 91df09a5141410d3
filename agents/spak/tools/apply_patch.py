"""`apply_patch`: a patch to the workspace, exactly or not at all.

The patch (`spak.patch`) is a unified diff or a JSON patch object with content hashes. What it changes without
a hash of its own must still be what its author could see (`Call.shown`); the hash of each file before the
change is a result either way. Before the first write
every path is walked: a patch names plain files, so a link as its target is refused, and so are two names for
one file and a way into git's own folder through a link.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import replace

from spak import patch
from spak import schema_parts as parts
from spak.errors import RunError, UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.patch import Change, PatchRefused
from spak.paths import normalise
from spak.ports import Call, ToolResult
from spak.tools import results


class ApplyPatch:
    """The tool `apply_patch`."""

    entry = ToolEntry(
        name="apply_patch",
        version=1,
        summary="Applies a unified diff or a JSON patch object exactly; refused, it changes nothing.",
        schema=parts.members(
            ["patch"],
            patch=parts.text("A unified diff, or a JSON patch object with content hashes.", 1 << 20),
            protect=parts.listed(
                "Files and folders that the patch may not touch, by their paths.",
                {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^*?]+$"},
                256,
            ),
        ),
        on_fail="retry",
        sandboxed=False,
        arguments={"patch": "edits", "protect": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_apply, call)


def _apply(call: Call) -> ToolResult:
    def read(path: str) -> bytes | None:
        try:
            return beneath.read_beneath(call.workspace, path)
        except UsageError as error:
            if error.code == "path.missing":
                return None
            raise

    changes = patch.apply(str(call.args["patch"]), read)
    if isinstance(changes, PatchRefused):
        where = f"line {changes.line}: " if changes.line else ""
        return results.failed(
            changes.code, where + changes.message, changes.hint, file=changes.path, line=changes.line
        )
    modes, places = _modes(call, changes)
    refused = _drifted(call, changes, places)
    if refused is not None:
        return refused
    rows = []
    for change in changes:
        if change.after is None:
            beneath.remove_beneath(call.workspace, change.path)
            rows.append(f"deleted {change.path}\n")
        else:
            beneath.write_beneath(call.workspace, change.path, change.after, modes[change.path])
            rows.append(f"{'created' if change.before is None else 'changed'} {change.path}\n")
    done = results.done("".join(rows), files=sorted(change.path for change in changes))
    return replace(done, anchors={change.path: change.before for change in changes})


def _drifted(call: Call, changes: tuple[Change, ...], places: Mapping[str, str]) -> ToolResult | None:
    """Why a patch without hashes is not applied: a file is not the one that its author could see."""
    for change in changes:
        if change.anchored or call.shown is None:
            continue
        try:
            shown = call.shown(str(call.args["patch"]), places[change.path])
        except RunError:
            return _unanchored(
                "patch.unknown", change.path, "nobody knows what it was when the patch was asked for"
            )
        if shown is None and change.before is not None:
            return _unanchored("patch.unseen", change.path, "it did not exist when the patch was asked for")
        if shown != change.before:
            return _unanchored("patch.drift", change.path, "it has changed since the patch was asked for")
    return None


def _unanchored(code: str, path: str, why: str) -> ToolResult:
    return results.failed(
        code,
        f"{path}: {why}, and the patch names no hash of it",
        "ask for the patch again, or name the file's content in it with a before-hash line",
        file=path,
    )


def _modes(call: Call, changes: tuple[Change, ...]) -> tuple[dict[str, int | None], dict[str, str]]:
    """The mode of each path, and the path with links resolved.

    Raises: UsageError for a path that is a link or leads where no patch may go.
    """
    modes: dict[str, int | None] = {}
    places: dict[str, str] = {}
    kept = [normalise(str(path).rstrip("/")) for path in call.args.get("protect", ())]
    taken: dict[tuple[str, ...], str] = {}
    for change in changes:
        status, parts, linked = _looked(call, change.path)
        if linked:
            raise UsageError("patch.link", f"{change.path} is a link", "patch the file that it leads to")
        if any(part.casefold() == ".git" for part in parts):
            raise UsageError("patch.path", f"{change.path} leads to git's own files")
        if any(parts[: len(path)] == path for path in kept):
            raise UsageError(
                "patch.protected", f"{change.path} is protected by the spec", "leave it as it is"
            )
        if parts in taken:
            raise UsageError("patch.duplicate", f"{change.path} and {taken[parts]} are one file")
        taken[parts] = change.path
        places[change.path] = "/".join(parts)
        modes[change.path] = change.mode
        if change.source and change.mode is None:
            copied = change.source not in modes
            modes[change.path] = _mode(_looked(call, change.source)[0]) if copied else modes[change.source]
        if change.after is None and status is not None:
            modes[change.path] = _mode(status)
    return modes, places


def _mode(status: int | None) -> int | None:
    return None if status is None else stat.S_IMODE(status) & 0o777


def _looked(call: Call, path: str) -> tuple[int | None, tuple[str, ...], bool]:
    """Mode, resolved parts and whether the path itself is a link; a file that is not there has no mode."""
    with beneath.locate(call.workspace, path, folders="may") as place:
        status = place.status()
        return (None if status is None else status.st_mode), place.parts, place.linked
