"""What a tool puts out while it runs, as people may see it: the newest end of it, without secrets.

Takes the bytes of a job's streams as its launcher reads them (`ports.Heard`), from any thread and at any
speed; gives a short text to whoever asks, at their pace. It never makes the job wait: what comes faster than
anybody looks is left out, and the text says how much. Secrets are taken out by the rule that the record is
held to; what may be the beginning of one is held back. It decides nothing, no record holds it, and a replay
knows nothing of it: what a tool did is what its result says.

Shown as a terminal would, simply: escapes are gone, of a line that was written over its last state is left.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from spak.errors import SpakError
from spak.incoming import CONTROLS, ESCAPE, written_over
from spak.ports import Redacting

TAIL = 16 << 10
"""Bytes of the text that is given."""
LIMIT = 32 << 10
"""Bytes of a stream that are kept until somebody looks."""
MOST_HELD = 16 << 10
"""Characters that are held back as what may become a secret; more are left out."""
LEFT_OUT = "\u2026 {:,} bytes left out"
_GAP = re.compile(r"^\u2026 ([0-9][0-9,]{0,19}) bytes left out(?:\n|\Z)", re.M)

_CARRIED = 100
"""Bytes in which the mark of a key block can lie across a gap."""
_NAME, _TRIES = b"PRIVATE KEY", 200
"""What each mark holds; so many that are no marks are taken for one."""
_MARK = re.compile(rb"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ESCAPE_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|[\]PX^_][^\x07\x1b]{0,2048}\x1b?|[ -/]{0,3})\Z")


@dataclass(slots=True)
class Shown:
    """The newest end of what was put out; `size` counts all bytes of it."""

    text: str
    size: int

    @property
    def last_line(self) -> str:
        """The last line of the output so far."""
        return self.text.rstrip("\n").rpartition("\n")[2]


class Live:
    """The output of one tool that runs. `wake` is called when something came after the last look."""

    def __init__(self, redactor: Redacting | None = None, wake: Callable[[], None] = lambda: None) -> None:
        self._redactor, self._wake = redactor, wake
        self._sources = {1: _Source(redactor), 2: _Source(redactor)}
        self._lock = threading.Lock()
        self._size = 0
        self._last = 0
        self._screen = _Screen()
        self.news = False

    def heard(self, number: int, chunk: bytes) -> None:
        """`ports.Heard`: keep the newest of it, and come back."""
        with self._lock:
            self._size += len(chunk)
            self._sources[number].feed(chunk)
            wake, self.news = not self.news, True
        if wake:
            self._wake()

    def look(self) -> Shown:
        """How it looks by now. For one thread at a time."""
        with self._lock:
            self.news = False
            size = self._size
            taken = [(number, *source.take()) for number, source in self._sources.items()]
        for number, data, lost in taken:
            try:
                self._put(number, data, lost)
            except SpakError:  # it cannot be shown without secrets: then it is not shown
                self._screen.clear(size)
        text = self._screen.text()
        try:
            if self._redactor is not None:  # what a terminal puts together may be one only now
                text = self._redactor.text(text)
        except SpakError:
            text = ""
        return Shown(text, size)

    def _put(self, number: int, data: bytes, lost: bool) -> None:
        text, left_out = self._sources[number].read(data, lost)
        if left_out:
            self._screen.line(LEFT_OUT.format(left_out))
        if text:
            if number != self._last:
                self._screen.end_line()
            self._last = number
            self._screen.put(text)


class _Source:
    """One stream: `feed` and `take` under the lock of the Live, `read` by whoever looks."""

    def __init__(self, redactor: Redacting | None) -> None:
        self._redactor = redactor
        self._raw = bytearray()
        self._lost = False
        self._dropped = _Passed()
        """What has gone by, up to the first byte of `_raw`."""
        self._seen = _Passed()
        """What has gone by, up to what is read next."""
        self._left_out = 0
        self._gap, self._since = False, 0
        """Whether what came before is lost, and how many bytes behind that are not shown either."""
        self._begin()

    def _begin(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = self._held = ""

    def feed(self, chunk: bytes) -> None:
        if len(self._raw) + len(chunk) <= 2 * LIMIT:
            self._raw += chunk
            return
        whole = bytes(self._raw) + chunk
        self._dropped.pass_by(whole[:-LIMIT])
        self._raw = bytearray(whole[-LIMIT:])
        self._lost = True

    def take(self) -> tuple[bytes, bool]:
        """The bytes since the last time; whether some before them were dropped."""
        data, lost = bytes(self._raw), self._lost
        self._raw.clear()
        self._lost = False
        if lost:
            self._left_out += self._dropped.count - self._seen.count
            self._seen = self._dropped.copy()
        self._dropped.pass_by(data)
        return data, lost

    def read(self, data: bytes, lost: bool) -> tuple[str, int]:
        """What may be shown of it, and how many bytes before it may not or are gone. Raises: SpakError."""
        if lost:
            self._left_out += len(self._held.encode("utf-8", "replace"))
            self._gap, self._since = True, 0
        if self._gap:
            data = self._after_gap(data)
            if not data:
                return "", 0
        left_out, self._left_out = self._left_out, 0
        text = self._held + self._plain(data)
        self._seen.pass_by(data)
        if self._redactor is None:
            return text, left_out
        end = self._redactor.whole(text)
        self._held = text[end:]
        if len(self._held) > MOST_HELD:
            self._left_out += len(self._held.encode("utf-8", "replace"))
            self._gap, self._since = True, 0
        return self._redactor.text(text[:end]), left_out

    def _after_gap(self, data: bytes) -> bytes:
        """Of bytes behind a gap, those that are surely not the rest of a secret; the gap ends with them."""
        self._begin()
        at, size = 0, len(data)
        while at < size:
            start = at
            if self._seen.open_before(data[at : at + _CARRIED]):
                ends = (mark.end() for mark in _MARK.finditer(data, at) if mark[1] == b"END")
                at = next(ends, size)
            if self._redactor is not None:
                text = data[at:].decode("latin-1")  # a character for each byte
                at += self._redactor.rest(text, self._since)
            self._since += at - start
            self._seen.pass_by(data[start:at])
            if not self._seen.open_before(
                data[at : at + _CARRIED]
            ):  # the line that it ended with may begin one
                break
        self._left_out += at
        self._gap = at == size
        return data[at:]

    def _plain(self, data: bytes) -> str:
        """Without escapes; one that is not whole is held back."""
        text = self._escape + self._decoder.decode(data)
        text = ESCAPE.sub("", text)
        begun = _ESCAPE_BEGUN.search(text, max(0, len(text) - 4096))
        self._escape = text[begun.start() :] if begun is not None else ""
        return text[: begun.start()] if begun is not None else text


class _Passed:
    """Whether bytes that went by end inside of a key block, and their last ones."""

    def __init__(self, count: int = 0, end: bytes = b"", inside: bool = False) -> None:
        self.count, self._end, self._inside = count, end, inside

    def copy(self) -> _Passed:
        return _Passed(self.count, self._end, self._inside)

    def pass_by(self, data: bytes) -> None:
        self.count += len(data)
        whole = self._end + data
        self._inside = _inside(whole, self._inside)
        self._end = whole[-_CARRIED:]

    def open_before(self, data: bytes) -> bool:
        """Whether these, which come next, begin inside of one; its mark may lie across the border."""
        inside = self._inside
        for mark in _MARK.finditer(self._end + data[:_CARRIED]):
            if mark.start() < len(self._end):
                inside = mark[1] == b"BEGIN"
        return inside


def _inside(data: bytes, before: bool) -> bool:
    """Whether the end of these bytes lies in a key block, sought from the end: they may be many."""
    end = len(data)
    for _ in range(_TRIES):
        end = data.rfind(_NAME, 0, end)
        if end < 0:
            return before
        marks = list(_MARK.finditer(data[max(0, end - 60) : end + 40]))
        if marks:
            return marks[-1][1] == b"BEGIN"
    return True


class _Screen:
    """The last lines of a text; of a line that was written over, its last state."""

    def __init__(self) -> None:
        self._lines = ""
        self._line = ""
        self._before = 0

    def put(self, text: str) -> None:
        *whole, line = (self._line + text).split("\n")
        self._lines += "".join(f"{written_over(one)}\n" for one in whole)
        self._line = written_over(line) + ("\r" if line.endswith("\r") else "")
        if len(self._line) > TAIL:
            self._before += _bytes(self._line[:-TAIL])
            self._line = self._line[-TAIL:]
        if len(self._lines) > 2 * TAIL:
            self._before += _bytes(self._lines[:-TAIL])
            self._lines = self._lines[-TAIL:]

    def end_line(self) -> None:
        if self._line:
            self.put("\n")

    def line(self, text: str) -> None:
        self.end_line()
        self.put(f"{text}\n")

    def clear(self, before: int) -> None:
        self._lines = self._line = ""
        self._before = before

    def text(self) -> str:
        data = (self._lines + written_over(self._line)).translate(CONTROLS).encode("utf-8", "replace")
        before = self._before
        if len(data) > TAIL:
            before += _bytes(data[:-TAIL].decode("utf-8", "replace"))
            data = data[-TAIL:]
        if not before:
            return data.decode("utf-8", "replace")
        first, end, rest = data.partition(b"\n")
        if end:
            before, data = before + len(first) + 1, rest
        return f"{LEFT_OUT.format(before)}\n{data.decode('utf-8', 'ignore')}"


def _bytes(text: str) -> int:
    """How many bytes a text stands for, with those that it says were left out."""
    gaps = sum(int(found.replace(",", "")) for found in _GAP.findall(text))
    return len(_GAP.sub("", text).encode("utf-8", "replace")) + gaps
