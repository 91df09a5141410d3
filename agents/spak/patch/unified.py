"""Unified diffs, with git's extended headers: text to FilePatch.

    diff --git a/src/x.py b/src/x.py        optional, and then it must name the same files
    before-hash sha256:...                  optional anchors of our own, anywhere among the headers:
    after-hash sha256:...                   the content of the whole file before and after
    --- a/src/x.py
    +++ b/src/x.py
    @@ -1,3 +1,4 @@

Text may stand before the first file (a mail, a fence), nothing but empty lines and a mail's signature behind
it. Lines end with a line feed; a carriage return belongs to the line, unless every line of the patch has one
(but for the last, which may have been cut). An empty line is one of the context whose blank was stripped,
also at the end of the text. Runs of older semantics read fewer forms (`as_git`): their policy judged by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from spak.patch.model import (
    MAX_FILES,
    MAX_HUNKS,
    FilePatch,
    Hunk,
    checked_hash,
    checked_mode,
    checked_path,
    refuse,
)

_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@(?: .*)?\Z")
_INDEX = re.compile(r"index [0-9a-fA-F]+\.\.[0-9a-fA-F]+(?: ([0-9]+))?\Z")
_ESCAPE = re.compile(r'\\(?:([0-7]{3})|([abtnvfr"\\]))')
_ANY_ESCAPE = re.compile(r"\\.")
_STAMPED = re.compile(r'"(?:[^"\\]|\\.)*"(?=\t)')
"""A quoted name with a time behind it, as diff writes it."""
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_MAX_NUMBER = 10**8
MAX_CUT = 8
"""Empty lines that may have been cut from the end of a patch."""
_NULL = "/dev/null"
_ANCHORS = ("before-hash ", "after-hash ")
_HEADERS = (
    "old mode ", "new mode ", "new file mode ", "deleted file mode ", "similarity index ",
    "dissimilarity index ", "rename from ", "rename to ", "copy from ", "copy to ", "index ",
    "Binary files ", "GIT binary patch", *_ANCHORS,
)  # fmt: skip


@dataclass(slots=True)
class _Head:
    """The headers of one file, as far as they were read."""

    line: int
    as_git: bool
    git: str = ""
    mode: int | None = None
    created: bool = False
    deleted: bool = False
    rename_from: str = ""
    rename_to: str = ""
    old: str = ""
    new: str = ""
    before_hash: str = ""
    after_hash: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def parse(text: str, as_git: bool = True) -> list[FilePatch]:
    """The files of the patch in its order; without `as_git` as before semantics 3. Raises: Refusal."""
    return _Reader(text, as_git).files()


class _Reader:
    def __init__(self, text: str, as_git: bool) -> None:
        self.as_git = as_git
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        if self.lines and self._with_returns():
            self.lines = [line.removesuffix("\r") for line in self.lines]
        self.at = 0

    def _with_returns(self) -> bool:
        """Whether the carriage returns belong to the patch: every line has one, but for the very last, which
        may have been cut."""
        lines = self.lines
        if self.as_git and len(lines) > 1 and not lines[-1].endswith("\r"):
            lines = lines[:-1]
        return all(line.endswith("\r") for line in lines if line)

    def files(self) -> list[FilePatch]:
        files: list[FilePatch] = []
        while self.at < len(self.lines):
            line = self._head_line()
            if line.startswith("diff --git ") or self._opens():
                files.append(self._file())
                if len(files) > MAX_FILES:
                    refuse("too_large", f"more than {MAX_FILES} files", line=self.at)
            elif line.startswith("@@ "):
                refuse("syntax", "a hunk without a file", "write --- and +++ lines before it", self.at + 1)
            elif files and line and not self._signature():
                refuse(
                    "syntax",
                    f"this is no part of a patch: {line[:60]!a}",
                    "check the hunk above: its header must count all of its lines",
                    self.at + 1,
                )
            else:
                self.at += 1
        return files

    def _head_line(self) -> str:
        return self.lines[self.at].removesuffix("\r")

    def _opens(self) -> bool:
        following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""
        return self.lines[self.at].startswith("--- ") and following.startswith("+++ ")

    def _signature(self) -> bool:
        """True at git's mail signature, which ends a patch: `-- ` and a version."""
        if self.lines[self.at] != "-- " or any(line.strip() for line in self.lines[self.at + 2 :]):
            return False
        self.at = len(self.lines)
        return True

    # -- one file

    def _file(self) -> FilePatch:
        head = _Head(self.at + 1, self.as_git)
        if self.lines[self.at].startswith("diff --git "):
            head.git = self._head_line()[len("diff --git ") :]
            self.at += 1
            while self.at < len(self.lines) and self._head_line().startswith(_HEADERS):
                self._header(head)
        if self.at < len(self.lines) and self._opens():
            head.old = _name(self._head_line()[4:], self.at + 1, self.as_git)
            head.new = _name(self.lines[self.at + 1].removesuffix("\r")[4:], self.at + 2, self.as_git)
            self.at += 2
            while self.at < len(self.lines) and self.lines[self.at].startswith(
                ("before-hash ", "after-hash ")
            ):
                self._header(head)
            while self.at < len(self.lines) and self.lines[self.at].startswith("@@"):
                head.hunks.append(self._hunk())
                if len(head.hunks) > MAX_HUNKS:
                    refuse("too_large", f"more than {MAX_HUNKS} hunks in a file", line=self.at)
            if not head.hunks:
                refuse("syntax", "a file without a hunk", "", head.line)
        return _judged(head)

    def _header(self, head: _Head) -> None:
        line, number = self._head_line(), self.at + 1
        self.at += 1
        word, _, value = line.rpartition(" ")
        match word:
            case "old mode":
                checked_mode(value, number)
            case "new mode" | "new file mode":
                head.mode = checked_mode(value, number)
                head.created = head.created or word == "new file mode"
            case "deleted file mode":
                checked_mode(value, number)
                head.deleted = True
            case "before-hash":
                head.before_hash = checked_hash(value, number)
            case "after-hash":
                head.after_hash = checked_hash(value, number)
            case _ if line.startswith("rename from "):
                head.rename_from = _name(line[12:], number, self.as_git)
            case _ if line.startswith("rename to "):
                head.rename_to = _name(line[10:], number, self.as_git)
            case _ if line.startswith("index "):
                found = _INDEX.match(line)
                if found is None:
                    refuse("syntax", "a damaged index line", "", number)
                if found[1] is not None:
                    checked_mode(found[1], number)
            case _ if line.startswith("copy "):
                refuse("unsupported", "copies are not read here", "create the file with its content", number)
            case _ if line.startswith(("Binary", "GIT binary")):
                refuse("binary", "a binary patch", "write the file by other means", number)

    # -- one hunk

    def _hunk(self) -> Hunk:
        number = self.at + 1
        found = _HUNK.match(self._head_line())
        if found is None:
            refuse("hunk", "a damaged hunk header", "@@ -start,count +start,count @@", number)
        numbers = [1 if text is None else int(text[:12]) for text in found.groups()]
        if any(value > _MAX_NUMBER for value in numbers):
            refuse("hunk", "a line number out of range", "", number)
        old_start, old_count, new_start, new_count = numbers
        if (old_start == 0 and old_count) or (new_start == 0 and new_count) or not (old_count or new_count):
            refuse("hunk", "a hunk header that contradicts itself", "", number)
        self.at += 1
        before: list[bytes] = []
        after: list[bytes] = []
        while len(before) < old_count or len(after) < new_count:
            self._body_line(before, after, old_count, new_count, number)
        self._no_newline(before, after)
        return Hunk(
            tuple(before),
            tuple(after),
            old_start - 1 if old_count else old_start,
            new_start - 1 if new_count else new_start,
            number,
        )

    def _body_line(self, before: list[bytes], after: list[bytes], olds: int, news: int, number: int) -> None:
        line = self.lines[self.at] if self.at < len(self.lines) else self._missing(before, after, olds, news)
        sign, data = line[:1] or " ", line[1:].encode() + b"\n"
        if sign == "\\":
            self._no_newline(before, after)
            return
        if sign not in " +-":
            refuse("hunk", "a hunk with fewer lines than its header counts", "count them again", number)
        if (sign != "+" and len(before) >= olds) or (sign != "-" and len(after) >= news):
            refuse("hunk", "a hunk with more lines than its header counts", "count them again", number)
        if sign != "+":
            before.append(data)
        if sign != "-":
            after.append(data)
        self.at += 1

    def _missing(self, before: list[bytes], after: list[bytes], olds: int, news: int) -> str:
        """A line after the end of the text: an empty one of the context, where blanks at the end were cut.
        That the file has it there is compared like any other line."""
        left = olds - len(before), news - len(after)
        return "" if self.as_git and left[0] == left[1] <= MAX_CUT else "~"

    def _no_newline(self, before: list[bytes], after: list[bytes]) -> None:
        r"""`\ No newline at end of file` takes the line end from the line above it."""
        if self.at >= len(self.lines) or not self.lines[self.at].startswith("\\ "):
            if self.at < len(self.lines) and self.lines[self.at].startswith("\\"):
                refuse("syntax", "a damaged line", "", self.at + 1)
            return
        sign = self.lines[self.at - 1][:1] or " "
        if sign not in " +-" or self.lines[self.at - 1].startswith("@@"):
            refuse("syntax", "a `\\ No newline` line with no line above it", "", self.at + 1)
        if sign != "+":
            before[-1] = before[-1].removesuffix(b"\n")
        if sign != "-":
            after[-1] = after[-1].removesuffix(b"\n")
        self.at += 1


def _judged(head: _Head) -> FilePatch:
    """The file patch, when all that the headers say about it agrees."""
    old, new = _stripped(head)
    kind: Literal["modify", "create", "delete", "rename"] = "modify"
    if head.rename_from or head.rename_to:
        kind = "rename"
        if head.created or head.deleted or (old, new) != (head.rename_from, head.rename_to) or old == new:
            refuse("names", "headers that name different files", "", head.line)
    elif old == _NULL or head.created:
        kind = "create"
        if new == _NULL or head.deleted or old not in (_NULL, new) or (head.hunks and old != _NULL):
            refuse("names", "headers that both create and keep a file", "", head.line)
    elif new == _NULL or head.deleted:
        kind = "delete"
        if new not in (_NULL, old) or (head.hunks and new != _NULL):
            refuse("names", "headers that both delete and keep a file", "", head.line)
        new = old
    elif old != new:
        refuse(
            "names",
            f"two names for one file: {old[:60]!a} and {new[:60]!a}",
            "a rename needs `rename from` and `rename to`",
            head.line,
        )
    if not head.hunks and kind == "modify" and head.mode is None:
        refuse("syntax", "a file without a hunk", "", head.line)
    return FilePatch(
        checked_path(new, head.line),
        kind,
        checked_path(old, head.line) if kind == "rename" else "",
        head.mode,
        tuple(head.hunks),
        None,
        head.before_hash,
        head.after_hash,
        head.line,
    )


def _stripped(head: _Head) -> tuple[str, str]:
    """Old and new name without git's `a/` and `b/`; they must agree with the `diff --git` line."""
    old, new = head.old, head.new
    if not old:
        if head.rename_from and head.rename_to:
            old, new = "a/" + head.rename_from, "b/" + head.rename_to
        else:
            old, new = _git_names(head)
    named = (_prefixed(old, "a/", new), _prefixed(new, "b/", old))
    if head.git and named not in _cuts(head):
        refuse("names", "the `diff --git` line names other files", "", head.line)
    plain_old = old.startswith("a/") or old == _NULL
    plain_new = new.startswith("b/") or new == _NULL
    if plain_old and plain_new:
        old = old if old == _NULL else old[2:]
        new = new if new == _NULL else new[2:]
    return old, new


def _prefixed(name: str, prefix: str, other: str) -> str:
    """The name as a `diff --git` line writes it, where `/dev/null` stands as the other name."""
    return prefix + other[2:] if name == _NULL else name


MAX_NAMES = 2 * 4 * 4096 + 16
"""Characters of a `diff --git` line: two paths, each byte of them as an octal escape."""


def _cuts(head: _Head) -> Iterator[tuple[str, str]]:
    """The ways to read the rest of a `diff --git` line as two names."""
    text, line, as_git = head.git, head.line, head.as_git
    if as_git and len(text) > MAX_NAMES:
        refuse("path", f"a `diff --git` line of more than {MAX_NAMES} characters", "", line)
    for cut in [index for index, sign in enumerate(text) if sign == " "][:200]:
        first, second = text[:cut], text[cut + 1 :]
        quotes = (_ANY_ESCAPE.sub("", first) if as_git else first).count('"')
        if first and second and quotes % 2 == 0:
            yield _name(first, line, as_git), _name(second, line, as_git)


def _git_names(head: _Head) -> tuple[str, str]:
    """The names where only the `diff --git` line has them: both the same but for `a/` and `b/`."""
    for old, new in _cuts(head):
        if old.startswith("a/") and new.startswith("b/") and old[2:] == new[2:]:
            return old, new
    return refuse("names", "a `diff --git` line without one name for both sides", "", head.line)


def _name(text: str, line: int, as_git: bool) -> str:
    """A file name of a header: up to a tab, or quoted as git quotes."""
    if not text.startswith('"'):
        return text.split("\t", 1)[0]
    if as_git and (stamped := _STAMPED.match(text)):
        text = stamped[0]
    end = len(text.rstrip())
    if end < 2 or text[end - 1] != '"':
        refuse("path", "a quoted name that is not closed", "", line)
    inner, raw, at = text[1 : end - 1], bytearray(), 0
    while at < len(inner):
        if inner[at] != "\\":
            raw += inner[at].encode()
            at += 1
            continue
        found = _ESCAPE.match(inner, at)
        if found is None:
            refuse("path", "a quoted name with a damaged escape", "", line)
        raw.append(int(found[1], 8) & 0xFF if found[1] else _ESCAPES[found[2]])
        at = found.end()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        refuse("path", "a name that is not UTF-8", "", line)
