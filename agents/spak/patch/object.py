"""The JSON patch object: files whole or in hunks, each anchored by content hashes.

    {"files": [
      {"path": "a.py", "after_content": "...", "after_hash": H, "before_hash": H or null},
      {"path": "b.py", "hunks": [{"line": 3, "before": "x = 1\\n", "after": "x = 2\\n",
                                  "before_hash": H, "after_hash": H}]},
      {"path": "c.py", "delete": true, "before_hash": H},
      {"path": "new.py", "rename_from": "old.py", "before_hash": H}]}

One file may stand alone, without `files`. H is a SHA-256 of bytes. `before_hash` null says that there is no
such file yet. Required: `after_hash` of a whole file, both hashes of a hunk, `before_hash` of a deletion or a
rename. A hunk without `line` (from 1) goes where its `before` occurs, which must be once. `mode` is "100644"
or "100755".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from spak import canon
from spak.patch.model import (
    MAX_FILES,
    MAX_HUNKS,
    FilePatch,
    Hunk,
    checked_hash,
    checked_mode,
    checked_path,
    lines_of,
    refuse,
)

_FILE = {
    "path": str, "after_content": str, "after_hash": str, "before_hash": str, "hunks": list, "delete": bool,
    "rename_from": str, "mode": str,
}  # fmt: skip
_HUNK = {"line": int, "before": str, "after": str, "before_hash": str, "after_hash": str}


def parse(text: str) -> list[FilePatch]:
    """The files of the object in its order. Raises: Refusal."""
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        refuse("syntax", "not JSON", "a patch is a unified diff or one JSON object")
    files = value.get("files") if isinstance(value, dict) and "files" in value else [value]
    if not isinstance(files, list) or (isinstance(value, dict) and "files" in value and len(value) > 1):
        refuse("schema", "`files` must be the only member, and a list")
    if len(files) > MAX_FILES:
        refuse("too_large", f"more than {MAX_FILES} files")
    return [_file(item) for item in files]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        refuse("schema", "a member that is named twice")
    return value


def _file(value: Any) -> FilePatch:
    members = _members(value, _FILE, ("path",), nullable="before_hash")
    path = checked_path(members["path"], 0)
    mode = checked_mode(members["mode"], 0) if "mode" in members else None
    ways = [name for name in ("after_content", "hunks", "delete", "rename_from") if name in members]
    if not ways or (len(ways) > 1 and ways != ["hunks", "rename_from"]):
        refuse("schema", f"{path}: wanted one of after_content, hunks, delete, rename_from", path=path)
    before = checked_hash(members["before_hash"], 0) if members.get("before_hash") is not None else ""
    after = checked_hash(members["after_hash"], 0) if "after_hash" in members else ""
    if "after_content" in members:
        if not after:
            refuse("schema", f"{path}: after_content needs after_hash", path=path)
        absent = "before_hash" in members and members["before_hash"] is None
        content = _bytes(members["after_content"])
        return FilePatch(
            path, "create" if absent else "replace", "", mode, (), content, before, after, hashed=True
        )
    if "hunks" in members:
        if len(members["hunks"]) > MAX_HUNKS or not members["hunks"]:
            refuse("schema", f"{path}: wanted 1 to {MAX_HUNKS} hunks", path=path)
        hunks = tuple(_hunk(item, path) for item in members["hunks"])
        source = checked_path(members["rename_from"], 0) if "rename_from" in members else ""
        kind: Literal["rename", "modify"] = "rename" if source else "modify"
        return FilePatch(path, kind, source, mode, hunks, None, before, after, hashed=True)
    if not before:
        refuse("schema", f"{path}: {ways[0]} needs before_hash", path=path)
    if "delete" in members:
        if members["delete"] is not True:
            refuse("schema", f"{path}: delete can only be true", path=path)
        return FilePatch(path, "delete", "", None, (), None, before, after)
    source = checked_path(members["rename_from"], 0)
    return FilePatch(path, "rename", source, mode, (), None, before, after)


def _hunk(value: Any, path: str) -> Hunk:
    members = _members(value, _HUNK, ("before", "after", "before_hash", "after_hash"))
    before, after = _bytes(members["before"]), _bytes(members["after"])
    for name, data in (("before", before), ("after", after)):
        if checked_hash(members[name + "_hash"], 0) != canon.digest(data):
            refuse("hash", f"{path}: {name}_hash of a hunk is not the hash of its {name}", "", path=path)
    at = members.get("line")
    if at is not None and not 1 <= at <= 10**8:
        refuse("hunk", f"{path}: a line number out of range", path=path)
    if not before and at is None:
        refuse("unanchored", f"{path}: a hunk with nothing before it needs a line", path=path)
    return Hunk(tuple(lines_of(before)), tuple(lines_of(after)), None if at is None else at - 1)


def _members(
    value: Any, kinds: Mapping[str, type], required: tuple[str, ...], nullable: str = ""
) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse("schema", "wanted an object for a file or a hunk")
    for name, item in value.items():
        kind = kinds.get(name)
        if kind is None:
            refuse("schema", f"unknown member {name[:40]!a}", "known: " + ", ".join(kinds))
        if not (type(item) is kind or (item is None and name == nullable)):
            refuse("schema", f"member {name} must be of type {kind.__name__}")
    missing = [name for name in required if name not in value]
    if missing:
        refuse("schema", f"missing member {missing[0]}")
    return value


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        refuse("text", "text with half of a surrogate pair")
