"""Reading a patch and applying it to contents: every file of it, or a refusal.

1. the text is judged as a whole (size, NUL, encoding) and read;
2. no path may be the target or the source of two files of one mail or commit, nor a folder of another;
3. each file is read, its hunks are laid over it exactly where they say, its hashes are compared;
4. only when all of them fit are the changes returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from spak import canon
from spak.errors import UserError
from spak.incoming import thought, unfenced, unmarked
from spak.patch import object as patch_object
from spak.patch import unified
from spak.patch.model import (
    MAX_BYTES,
    MAX_FILE_BYTES,
    MAX_LINE_BYTES,
    MAX_TOTAL_BYTES,
    Change,
    FilePatch,
    Hunk,
    PatchRefused,
    Refusal,
    lines_of,
    refuse,
)

_COUNTS = ("nowhere", "once", "twice", "more than twice")

_OTHER_FORM = re.compile(r"^(?:\*\*\* .*\n--- |[0-9]+(?:,[0-9]+)?[acd][0-9]+(?:,[0-9]+)?$)", re.M)
"""A context diff, and one that only has numbers of lines."""

Read = Callable[[str], bytes | None]


def read_patch(text: str) -> tuple[FilePatch, ...] | PatchRefused:
    """The files that the patch would touch, without looking at any of them."""
    try:
        return tuple(_read(text))
    except Refusal as refusal:
        return refusal.refused


def apply(text: str, read: Read) -> tuple[Change, ...] | PatchRefused:
    """The changes in the order of the patch. `read` gives the content at a path, None when nothing is there,
    and may raise a UserError, which becomes the refusal.

    Mails and commits are applied one after the other; where that does not fit, the last first, which is how
    `git log -p` writes them.
    """
    refused = None
    try:
        files = _read(text)
        for series in (files, sorted(files, key=lambda file: -file.part)):
            try:
                return _applied_in_turn(series, read)
            except Refusal as refusal:
                refused = refused or refusal.refused
                if not files[-1].part:
                    break
    except Refusal as refusal:
        return refusal.refused
    assert refused is not None
    return refused


def apply_to(text: str, content: str) -> str | PatchRefused:
    """A text under the patch of one file, whatever that is called in it: `diff -u OLD NEW` has two names."""
    try:
        files = _read(text, "it")
        changes = _applied_in_turn(files, lambda path: content.encode())
    except Refusal as refusal:
        return refusal.refused
    return (changes[0].after or b"").decode("utf-8", "replace")


def _applied_in_turn(files: Sequence[FilePatch], read: Read) -> tuple[Change, ...]:
    changes: dict[str, Change] = {}
    contents: dict[str, bytes | None] = {}

    def current(path: str) -> bytes | None:
        return contents[path] if path in contents else read(path)

    for file in files:
        for change in _applied(file, read if file.part == files[0].part else current):
            contents[change.path] = change.after
            changes[change.path] = _after(changes.get(change.path), change)
        if sum(len(after or b"") for after in contents.values()) > MAX_TOTAL_BYTES:
            refuse("too_large", f"the files together have more than {MAX_TOTAL_BYTES} bytes")
    return tuple(one for one in changes.values() if (one.before, one.after) != (None, None))


def _after(earlier: Change | None, later: Change) -> Change:
    """What two changes of one path in a row make of it."""
    if earlier is None:
        return later
    return Change(
        later.path,
        earlier.before,
        later.after,
        earlier.mode if later.mode is None else later.mode,
        later.source or ("" if later.after is None else earlier.source),
        earlier.anchored and later.anchored,
    )


def _read(text: str, name: str = "") -> list[FilePatch]:
    if len(text) > MAX_BYTES:
        refuse("too_large", f"a patch of more than {MAX_BYTES} characters", "send it in parts")
    if "\0" in text:
        refuse("binary", "a patch with a NUL character", "binary files are not patched")
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse("text", "a patch with half of a surrogate pair")
    text = thought(text)[1]
    inner = unfenced(text)
    is_object = unmarked(inner).lstrip()[:1] in ("{", "[")
    text = unmarked(inner) if is_object else text
    files = patch_object.parse(text) if is_object else unified.parse(text, name)
    _line_lengths(files)
    if not files:
        if found := _OTHER_FORM.search(text):
            hint = "write a unified one: diff -u, git diff"
            refuse("unsupported", "a diff of another form", hint, text.count("\n", 0, found.start()) + 1)
        refuse("empty", "it changes no file", "send a unified diff or a JSON patch object")
    _disjoint(files)
    return files


def _line_lengths(files: Sequence[FilePatch]) -> None:
    for file in files:
        parts = [line for hunk in file.hunks for line in (*hunk.before, *hunk.after)]
        if any(len(line) > MAX_LINE_BYTES for line in (*parts, *lines_of(file.content or b""))):
            refuse(
                "long_line",
                f"a line of more than {MAX_LINE_BYTES} bytes in the patch of {file.path}",
                "break the line, or write the file with write_file",
                file.line,
                file.path,
            )


def _disjoint(files: Sequence[FilePatch]) -> None:
    """Within one mail or commit each path is patched once, and none is a file and a folder."""
    for part in sorted({file.part for file in files}):
        _apart([file for file in files if file.part == part])


def _apart(files: Sequence[FilePatch]) -> None:
    taken: dict[str, FilePatch] = {}
    for file in files:
        for path in filter(None, (file.path, file.source if file.kind == "rename" else "")):
            if path in taken:
                refuse("duplicate", f"{path} is patched twice", "put its hunks together", file.line, path)
            taken[path] = file
    kept = {file.path for file in files if file.kind != "delete"}
    for file in files:
        parents = [file.path[:index] for index, sign in enumerate(file.path) if sign == "/"]
        clash = next((parent for parent in parents if parent in kept), "")
        if clash and file.kind != "delete":
            refuse("duplicate", f"{clash} is a file and a folder", "", file.line, file.path)


def _applied(file: FilePatch, read: Read) -> list[Change]:
    origin = file.source or file.path
    before = _content(origin, read, file)
    if file.source and _content(file.path, read, file) is not None:
        refuse("exists", f"{file.path} is there already", "", file.line, file.path)
    if file.kind == "create" and before is not None:
        refuse("exists", f"{file.path} is there already", "patch it instead", file.line, file.path)
    if before is None and (file.kind not in ("create", "replace") or file.before_hash):
        refuse("missing", f"there is no file {origin}", "create it with --- /dev/null", file.line, origin)
    if before is not None and file.before_hash not in ("", canon.digest(before)):
        refuse("hash", f"{origin} is not the file the patch was made for", "read it again", file.line, origin)
    data = before or b""
    after = file.content if file.content is not None else _patched(file, data)
    if file.kind == "delete":
        if file.hunks and after:
            refuse("mismatch", f"{origin} has more than the patch deletes", "", file.line, origin)
        if not file.hunks and data and not file.before_hash:
            refuse(
                "unanchored", f"{origin} is deleted unseen", "show its lines or its hash", file.line, origin
            )
        after = b""
    if len(after) > MAX_FILE_BYTES:
        refuse("too_large", f"{file.path} would have more than {MAX_FILE_BYTES} bytes", "", file.line)
    if file.after_hash not in ("", canon.digest(after)):
        refuse("hash", f"{file.path} does not become what after-hash says", "", file.line, file.path)
    seen = None if before is None else canon.digest(before)
    known = bool(file.hashed or file.before_hash)
    if file.kind == "delete":
        return [Change(origin, seen, None, anchored=known)]
    if file.kind == "copy":
        return [Change(file.path, None, after, file.mode, origin, known)]
    if file.source:
        gone = Change(origin, seen, None, anchored=known)
        return [gone, Change(file.path, None, after, file.mode, origin, known)]
    return [Change(file.path, seen, after, file.mode, anchored=known)]


def _content(path: str, read: Read, file: FilePatch) -> bytes | None:
    try:
        data = read(path)
    except UserError as error:
        raise Refusal(PatchRefused(error.code, error.message, error.hint, file.line, path)) from error
    if data is not None and len(data) > MAX_FILE_BYTES:
        refuse("too_large", f"{path} has more than {MAX_FILE_BYTES} bytes", "", file.line, path)
    return data


def _patched(file: FilePatch, data: bytes) -> bytes:
    """The content with all hunks applied."""
    old = lines_of(data)
    hunks = _with_line_ends(file.hunks, old)
    new: list[bytes] = []
    done = 0
    for hunk in hunks:
        at = _place(hunk, old, file)
        if at < done:
            refuse("overlap", "hunks that overlap or stand in the wrong order", "", hunk.line, file.path)
        if at > len(old) or tuple(old[at : at + len(hunk.before)]) != hunk.before:
            _mismatch(hunk, old, file)
        if not hunk.before and old and not file.before_hash:
            refuse("unanchored", "an insertion without context", "give lines around it", hunk.line, file.path)
        new.extend(old[done:at])
        if hunk.new_at is not None and hunk.new_at != len(new):
            refuse("hunk", "the header's new line number is wrong", "count again", hunk.line, file.path)
        new.extend(hunk.after)
        done = at + len(hunk.before)
    new.extend(old[done:])
    if any(not line.endswith(b"\n") for line in new[:-1]):
        refuse("hunk", "a line without its end that is not the last", "", file.line, file.path)
    return b"".join(new)


def _place(hunk: Hunk, old: list[bytes], file: FilePatch) -> int:
    if hunk.at is not None:
        return hunk.at
    places = _places(hunk, b"".join(old))
    if len(places) != 1:
        refuse(
            "mismatch",
            f"a hunk's lines occur {_COUNTS[len(places)]} in {file.path}",
            "give more lines around it, or its line",
            hunk.line,
            file.path,
        )
    return places[0]


def _places(hunk: Hunk, data: bytes) -> list[int]:
    """Up to three lines, from 0, at which the hunk's old lines occur."""
    wanted = b"".join(hunk.before)
    places: list[int] = []
    start = data.find(wanted)
    while start >= 0 and len(places) < 3:
        end = start + len(wanted)
        whole = wanted.endswith(b"\n") or end == len(data)
        if whole and (start == 0 or data[start - 1 : start] == b"\n"):
            places.append(data.count(b"\n", 0, start))
        start = data.find(wanted, start + 1)
    return places


def _mismatch(hunk: Hunk, old: list[bytes], file: FilePatch) -> None:
    places = _places(hunk, b"".join(old)) if hunk.before else []
    assert hunk.at is not None
    hint = "read the file again and make the patch from what it says now"
    if places:
        numbers = ", ".join(str(place + 1) for place in places[:3])
        hint = f"the same lines are at line{'' if len(places) == 1 else 's'} {numbers}"
    else:
        for offset, line in enumerate(hunk.before):
            at = hunk.at + offset
            found = old[at] if at < len(old) else None
            if found != line:
                shown = "nothing" if found is None else ascii(found[:60].decode(errors="replace"))
                hint = f"line {at + 1} is {shown}, not {line[:60].decode(errors='replace')!a}"
                break
    refuse("mismatch", f"{file.path} does not have these lines", hint, hunk.line, file.path)


def _with_line_ends(hunks: tuple[Hunk, ...], old: list[bytes]) -> tuple[Hunk, ...]:
    """The hunks with CRLF where the file has it on all lines and the patch on none."""
    ended = [line for line in old if line.endswith(b"\n")]
    if not ended or not all(line.endswith(b"\r\n") for line in ended):
        return hunks
    if any(line.endswith(b"\r\n") for hunk in hunks for line in (*hunk.before, *hunk.after)):
        return hunks
    return tuple(
        Hunk(_crlf(hunk.before), _crlf(hunk.after), hunk.at, hunk.new_at, hunk.line) for hunk in hunks
    )


def _crlf(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(line[:-1] + b"\r\n" if line.endswith(b"\n") else line for line in lines)
