"""Unified diffs, with git's extended headers: text to FilePatch.

    diff --git a/src/x.py b/src/x.py        optional, and then it must name the same files
    before-hash sha256:...                  optional anchors of our own, anywhere among the headers:
    after-hash sha256:...                   the content of the whole file before and after
    --- a/src/x.py
    +++ b/src/x.py
    @@ -1,3 +1,4 @@

Read as git, GNU diff, hg and svn write them: with any prefix of one folder, with times behind the names (that
of the epoch means that there is no such file), with text before the first file and between files. What looks
like a line of a hunk and is in none is refused, for a header has counted too few, unless a message stands
there (a mail, a commit of a log, a fence). Colours are taken off. Lines end with a line feed; a carriage
return belongs to the line, unless every line of the patch has one (but for the last, which may have been
cut). An empty line is one of the context whose blank was stripped, also at the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from spak.incoming import unmarked
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

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
_COLOURED = re.compile(r"^\x1b\[[0-9;]*m(?:diff |--- |@@ )", re.M)
_MESSAGE = re.compile(
    r"```|~~~|commit [0-9a-f]{7,64}\b|From [0-9a-f]{40,64} |# HG changeset|changeset: |Property changes on: "
)
"""How a text for people begins: until the next file any line may stand there."""
_SVN_COMMIT = re.compile(r"r[0-9]+ \| ")
_BINARY = re.compile(
    r"(?:Binary files? .+ (?:differ|has changed|matches)|Cannot display: file marked as a binary type\.)\Z"
)
_COMBINED = ("diff --cc ", "diff --combined ")
_EPOCH = re.compile(
    r"(?:(?P<day>1970-01-01|1969-12-31)|[A-Z][a-z]{2} (?P<month>Jan|Dec) +(?P<number>0?1|31))"
    r" (?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):00(?:\.0+)?(?: (?P<year>19(?:70|69)))?"
    r"(?: (?P<sign>[+-])(?P<east>[0-9]{2}):?(?P<past>[0-9]{2}))?\Z"
)
_ABSENT = ("(nonexistent)", "(revision 0)")
"""What svn writes behind the name of a file that is not there."""
_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@(?: .*)?\Z")
_INDEX = re.compile(r"index [0-9a-fA-F]+\.\.[0-9a-fA-F]+(?: ([0-9]+))?\Z")
_ESCAPE = re.compile(r'\\(?:([0-7]{3})|([abtnvfr"\\]))')
_ANY_ESCAPE = re.compile(r"\\.")
_STAMPED = re.compile(r'"(?:[^"\\]|\\.)*"(?=\t)')
"""A quoted name with a time behind it, as diff writes it."""
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_COPY = re.compile(r"(?:~|\.(?:orig|old|new|bak|backup|mine|fixed|patched))\Z")
"""What people put behind the name of a copy."""
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
    git: str = ""
    mode: int | None = None
    created: bool = False
    deleted: bool = False
    rename_from: str = ""
    rename_to: str = ""
    old: str = ""
    new: str = ""
    no_old: bool = False
    no_new: bool = False
    """Whether what stands behind a name says that there is no such file on that side."""
    copy_from: str = ""
    copy_to: str = ""
    part: int = 0
    before_hash: str = ""
    after_hash: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def parse(text: str, name: str = "") -> list[FilePatch]:
    """The files of the patch in its order; with `name` each is of that one, whatever it is called there.

    Raises: Refusal.
    """
    return _Reader(text, name).files()


class _Reader:
    def __init__(self, text: str, name: str = "") -> None:
        self.name = name
        text = unmarked(text)
        if _COLOURED.search(text):
            text = _COLOUR.sub("", text)
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        if self.lines and self._with_returns():
            self.lines = [line.removesuffix("\r") for line in self.lines]
        self.at = 0
        self.part = 0

    def _with_returns(self) -> bool:
        """Whether the carriage returns belong to the patch: every line has one, but for the very last, which
        may have been cut."""
        lines = self.lines
        if len(lines) > 1 and not lines[-1].endswith("\r"):
            lines = lines[:-1]
        return all(line.endswith("\r") for line in lines if line)

    def files(self) -> list[FilePatch]:
        files: list[FilePatch] = []
        message = True
        while self.at < len(self.lines):
            line = self._head_line()
            if line.startswith("diff --git ") or self._opens():
                files.append(self._file())
                message = False
                if len(files) > MAX_FILES:
                    refuse("too_large", f"more than {MAX_FILES} files", line=self.at)
            elif line.startswith("@@ ") and (not message or _HUNK.match(line)):
                refuse("syntax", "a hunk without a file", "write --- and +++ lines before it", self.at + 1)
            elif line.startswith(_COMBINED):
                hint = "show a merge against one parent: git show -m --first-parent"
                refuse("unsupported", "the combined diff of a merge", hint, self.at + 1)
            elif _BINARY.match(line):
                refuse("binary", "a file that is binary", "write the file by other means", self.at + 1)
            elif _MESSAGE.match(line) or self._svn_log():
                self.part += bool(files)
                message = True
                self.at += 1
            elif message or not line.startswith(("+", "-", " ", "\\")):
                self.at += 1
            elif not self._signature():
                refuse(
                    "syntax",
                    f"this is no part of a patch: {line[:60]!a}",
                    "check the hunk above: its header must count all of its lines",
                    self.at + 1,
                )
        return files

    def _head_line(self) -> str:
        return self.lines[self.at].removesuffix("\r")

    def _opens(self) -> bool:
        following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""
        return self.lines[self.at].startswith("--- ") and following.startswith("+++ ")

    def _svn_log(self) -> bool:
        """Whether a commit of `svn log --diff` begins here, or the log ends."""
        following = next((line for line in self.lines[self.at + 1 :] if line.strip()), "r1 | ")
        return self._head_line() == "-" * 72 and _SVN_COMMIT.match(following) is not None

    def _signature(self) -> bool:
        """True at git's mail signature, which ends a mail: `-- ` and a version. Passes it."""
        following = next((line for line in self.lines[self.at + 2 :] if line.strip()), "From ")
        if self.lines[self.at] != "-- " or not following.startswith("From "):
            return False
        self.at += 2
        return True

    # -- one file

    def _file(self) -> FilePatch:
        head = _Head(self.at + 1, part=self.part)
        if self.lines[self.at].startswith("diff --git "):
            head.git = self._head_line()[len("diff --git ") :]
            self.at += 1
            while self.at < len(self.lines) and self._head_line().startswith(_HEADERS):
                self._header(head)
        if self.at < len(self.lines) and self._opens():
            old, new = self._head_line()[4:], self.lines[self.at + 1].removesuffix("\r")[4:]
            head.old, head.no_old = _name(old, self.at + 1), _is_absent(old)
            head.new, head.no_new = _name(new, self.at + 2), _is_absent(new)
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
        if self.name:
            head = _Head(head.line, old=self.name, new=self.name, hunks=head.hunks)
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
                head.rename_from = _name(line[12:], number)
            case _ if line.startswith("rename to "):
                head.rename_to = _name(line[10:], number)
            case _ if line.startswith("index "):
                found = _INDEX.match(line)
                if found is None:
                    refuse("syntax", "a damaged index line", "", number)
                if found[1] is not None:
                    checked_mode(found[1], number)
            case _ if line.startswith("copy from "):
                head.copy_from = _name(line[10:], number)
            case _ if line.startswith("copy to "):
                head.copy_to = _name(line[8:], number)
            case _ if line.startswith(("Binary", "GIT binary")):
                refuse("binary", "a binary patch", "write the file by other means", number)

    # -- one hunk

    def _hunk(self) -> Hunk:
        number = self.at + 1
        found = _HUNK.match(self._head_line())
        if found is None:
            refuse("hunk", "the header of a hunk is damaged", "@@ -start,count +start,count @@", number)
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
        return "" if left[0] == left[1] <= MAX_CUT else "~"

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
    if head.no_old and all(not hunk.before for hunk in head.hunks):
        old = _NULL
    elif head.no_new and all(not hunk.after for hunk in head.hunks):
        new = _NULL
    kind: Literal["modify", "create", "delete", "rename", "copy"] = "modify"
    source = (head.rename_from or head.copy_from, head.rename_to or head.copy_to)
    if any(source):
        kind = "rename" if head.rename_from or head.rename_to else "copy"
        if head.created or head.deleted or (old, new) != source or old == new:
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
    if not head.hunks and kind == "modify" and head.mode is None:
        refuse("syntax", "a file without a hunk", "", head.line)
    return FilePatch(
        checked_path(new, head.line),
        kind,
        checked_path(old, head.line) if any(source) else "",
        head.mode,
        tuple(head.hunks),
        None,
        head.before_hash,
        head.after_hash,
        head.line,
        part=head.part,
    )


def _stripped(head: _Head) -> tuple[str, str]:
    """Old and new name without their prefix, as the headers have them together.

    A prefix is one folder on each side: git's `a/` and `b/`, others that git is set to write, the two folders
    of `diff -r`. Both names are without one where they are equal. The `diff --git` line, where there is one,
    names the same two; what stands as `/dev/null` has its name there alone.
    """
    old, new = head.old, head.new
    moved = (head.rename_from or head.copy_from, head.rename_to or head.copy_to)
    pairs: Iterable[tuple[str, str]] = [(old, new)]
    if head.git:
        pairs = (cut for cut in _cuts(head) if _fits(cut[0], old) and _fits(cut[1], new))
    first = None
    for first in pairs:
        prefixed = _unprefixed(*first, moved)
        if prefixed is not None:
            return (_NULL if old == _NULL else prefixed[0]), (_NULL if new == _NULL else prefixed[1])
    if first is None:
        refuse("names", "the `diff --git` line names other files", "", head.line)
    if not old:
        refuse("names", "a `diff --git` line without one name for both sides", "", head.line)
    if not head.git and (name := _without_copy(*first)):
        return name, name
    hint = "a rename needs `rename from` and `rename to`"
    return refuse(
        "names", f"two names for one file: {first[0][:60]!a} and {first[1][:60]!a}", hint, head.line
    )


def _fits(name: str, stands: str) -> bool:
    """Whether a name of the `diff --git` line may be what stands behind `---` or `+++`, if anything does."""
    return stands in ("", _NULL, name)


def _unprefixed(old: str, new: str, moved: tuple[str, str]) -> tuple[str, str] | None:
    """Both names without prefix, if they are one file or those that `rename` or `copy` names."""
    cut_old, cut_new = old.partition("/")[2], new.partition("/")[2]
    if any(moved):
        return next((pair for pair in ((cut_old, cut_new), (old, new)) if pair == moved), None)
    if old == _NULL or new == _NULL:
        plain = (old == _NULL or old.startswith("a/")) and (new == _NULL or new.startswith("b/"))
        return (cut_old if old != _NULL else old, cut_new if new != _NULL else new) if plain else (old, new)
    if old.startswith("a/") and new.startswith("b/") and cut_old == cut_new:
        return cut_old, cut_new
    if old == new:
        return old, new
    return (cut_old, cut_new) if cut_old and cut_old == cut_new else None


def _without_copy(old: str, new: str) -> str:
    """The file, where the other name is a copy of it: `b.orig` or `b~` with it, or outside of the folder."""
    old, new = old.removeprefix("./"), new.removeprefix("./")
    outside = [name.startswith(("/", "../")) for name in (old, new)]
    if outside[0] != outside[1]:
        within = new if outside[0] else old
        return within if old.rpartition("/")[2] == new.rpartition("/")[2] else ""
    pairs = [(_COPY.sub("", old), new), (old, _COPY.sub("", new))]
    return next((found[1] for pair in pairs if (found := _unprefixed(*pair, ("", "")))), "")


def _is_absent(text: str) -> bool:
    """Whether what stands behind a name says that there is no such file: the moment 0 of 1970 in any zone, as
    GNU diff -N writes it, or svn's words. A time without a zone counts when it is that moment in some zone.
    """
    stamp = text.partition("\t")[2].strip()
    if stamp in _ABSENT:
        return True
    found = _EPOCH.match(stamp)
    if found is None or not (found["day"] or found["year"]):
        return False
    last = found["day"] == "1969-12-31" or found["month"] == "Dec"
    minutes = int(found["hour"]) * 60 + int(found["minute"]) - (24 * 60 if last else 0)
    if found["sign"] is None:
        return abs(minutes) <= 14 * 60
    east = int(found["east"]) * 60 + int(found["past"])
    return minutes == (east if found["sign"] == "+" else -east)


MAX_NAMES = 2 * 4 * 4096 + 16
"""Characters of a `diff --git` line: two paths, each byte of them as an octal escape."""


def _cuts(head: _Head) -> Iterator[tuple[str, str]]:
    """The ways to read the rest of a `diff --git` line as two names."""
    text, line = head.git, head.line
    if len(text) > MAX_NAMES:
        refuse("path", f"a `diff --git` line of more than {MAX_NAMES} characters", "", line)
    for cut in [index for index, sign in enumerate(text) if sign == " "][:200]:
        first, second = text[:cut], text[cut + 1 :]
        quotes = _ANY_ESCAPE.sub("", first).count('"')
        if first and second and quotes % 2 == 0:
            yield _name(first, line), _name(second, line)


def _name(text: str, line: int) -> str:
    """A file name of a header: up to a tab, or quoted as git quotes."""
    if not text.startswith('"'):
        return text.split("\t", 1)[0]
    if stamped := _STAMPED.match(text):
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
