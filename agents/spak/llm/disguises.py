"""Values in a text that does not show them as they are: coded, escaped, in another letter case, set apart.

Takes the values and a text; gives where in it they are. A value is looked for in two views of the text. In
the first, escapes are read (percent, backslashes, HTML), and ends of lines, quotes and backslashes are left
out. The second is letters and digits alone, for codes between whose parts anything may be: hex as `xxd`, `od`
and `hexdump` print it, words of two and four bytes as they lie in memory, bytes in octal or decimal, base64
and base32 wherever the value begins in what was coded. There a piece of a value is found, too, where letters
and digits are mixed as in no word (`cut -c`, `grep -o`, `${v:0:20}`). Of rows of a dump the address and the
column of text are left out too. A view is made in one pass, and the work is linear in the text.

Not found is what a program makes in a way of its own: a value that is coded twice, whose parts have others
between them, compressed or encrypted; and what is shorter than the floors below, which would be found by
chance.
"""

from __future__ import annotations

import codecs
import html
import json
import re
import sys
from array import array
from base64 import b32encode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

import re2

LEAST = 6
"""Characters of a form that is found as it is written."""
LEAST_ACROSS = 10
"""Of one that is found across ends of lines, and of a code without what is between its parts."""
LEAST_CODED = 8
"""Bytes of a value of which other codes than hex are found, and hex with anything between its digits."""
LEAST_IN_ANY_CASE = (8, 16)
"""Characters of a value that is found in any letter case; the second of one of letters alone, or with one
or two digits after them."""
LEAST_APART = (12, 20)
"""Letters and digits of a value that is found with other signs between them; the second as above."""
LEAST_OF_PIECE = 12
"""Letters and digits of a value, one after the other, that are found without the rest of it; of hex twice as
many."""
_ANCHOR = 8
"""Signs of a piece that are looked for first."""
_MOST_HELD = 8
"""Values, and places in them, that hold the same such signs. More of them (the head of every token), and
signs of one or two kinds (a row of `A`), say little, and would be compared at every place of such a text."""
_GROUP = 1000
"""Beginnings of forms that one automaton looks for without growing beyond its memory."""

_ESCAPES = re.compile(
    r"\[redacted:[a-z_]+\]|%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*|\\x[0-9A-Fa-f]{2}(?:\\x[0-9A-Fa-f]{2})*"
    r"|\\[0-3][0-7]{2}(?:\\[0-3][0-7]{2})*"
    r"|\\u[dD][89aAbB][0-9A-Fa-f]{2}\\+u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}"
    r"|\\U[0-9A-Fa-f]{8}|&#[xX][0-9A-Fa-f]{1,6};|&#[0-9]{1,7};|&(?:amp|lt|gt|quot|apos);"
    r"|\\[nrt]|0(?<![0-9A-Za-z_]0)[xX]|\x1b\[[0-9;?]*[A-Za-z]"
)
"""Each begins with one character, so that the search for them is fast."""
_BEGUN = re.compile(
    r"(?:%[0-9A-Fa-f]?|\\(?:[xuU]\{?[0-9A-Fa-f]{0,7}|[0-3]?[0-7]?)|&(?:#[xX]?[0-9A-Fa-f]{0,6}|[a-z]{0,4})|(?<!\w)0)\Z"
)
"""The beginning of one."""
_MAY_BE = re2.compile(r"[%&\\\x1b]|0[xX]|\[redacted:")
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BORDER = "\2"
"""In the place of what was taken out before: no form lies across it."""
_SIGNS = b"\0\r\n\t'\"\\"
"""What the first view leaves out."""
_BETWEEN = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) != _BORDER)
"""What the second does."""
_ROW = re.compile(
    r"[ \t]*+[0-9A-Fa-f]{6,16}+(?:: ((?:[0-9A-Fa-f]{2,16} )++) .*+"
    r"|[ \t]++((?:[0-9A-Fa-f]{2,16} {1,2}+)++) *+[|>].*+|((?:[ \t]++[^ \t\r\n]{1,16}+){1,32}+)[ \t]*+)\r?"
)
"""A row of a dump: of xxd, with a column of text, with nothing but an address before it."""
_MAY_BE_ROW = re2.compile(r"(?m)^[ \t]*[0-9A-Fa-f]{6,16}:?[ \t]+[^ \t\r\n]{1,16}(?:[ \t\r]|$)")
_COUNTED = tuple(row[::step] for row in (digits + digits, ascii_lowercase) for step in (1, -1))
_WORD = re.compile(r"[^\W\d_]+[0-9]{0,2}")
_ORDINARY = re.compile(
    r"(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific)(?:/[A-Z][A-Za-z_-]{1,24}){1,2}"
    r"|[0-9]{4}-?[01][0-9]-?[0-3][0-9]"
    r"(?:[T ]?[0-2][0-9]:?[0-5][0-9](?::?[0-5][0-9](?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
    r"|[A-Za-z][A-Za-z0-9+.-]{1,15}://[A-Za-z0-9.-]{1,64}(?::[0-9]{1,5})?(?:/[A-Za-z._-]{0,20}[0-9]{0,2})*"
)
"""Time zones, dates and times, and addresses that name a host and a path of plain words."""
_REPEATED = re.compile(r"(.)\1+")

Span = tuple[int, int]


class Disguises:
    """Finds some values in texts. `telling` says which text can be told from ordinary words."""

    __slots__ = ("_any", "_coded", "_pieces", "_short", "_written")

    def __init__(self, values: Sequence[str], telling: Callable[[str], bool]) -> None:
        self._any = bool(values)
        self._written = _Forms(chain.from_iterable(_written(value, telling) for value in values), LEAST)
        self._coded = _Forms(chain.from_iterable(map(_coded, values)), LEAST_ACROSS)
        self._short = _Forms(
            (_Form(_bytes(value).hex().encode()) for value in values if _is_short(value)), LEAST_ACROSS
        )
        self._pieces = _Pieces(values)

    def spans(self, text: str) -> list[Span]:
        """Where values are, in order and apart from each other."""
        if not self._any:
            return []
        found = self._found(text)
        if _MAY_BE_ROW.search(text):
            short, starts, places, rows = _trimmed(text)
            for start, stop in self._found(short):
                first, last = (bisect_right(starts, index) - 1 for index in (start, stop - 1))
                begin = rows[first] or (places[first] + start - starts[first], 0)
                end = rows[last] or (0, places[last] + stop - starts[last])
                found.append((begin[0], end[1]))
        return _apart(found)

    def _found(self, text: str) -> list[Span]:
        view = _view(text)
        lower = view.lower()
        letters = lower.translate(None, _BETWEEN)
        written = self._written.spans(view, lower)
        coded = self._coded.spans(letters, letters) + self._pieces.spans(letters)
        short = self._short.spans(letters, letters)
        if not written and not coded and not short:
            return []
        starts, stops = _places(text)
        kept = [at for at, code in enumerate(view) if code not in _BETWEEN] if coded or short else []
        found = [(starts[start], stops[stop - 1], stop - start) for start, stop in written]
        found += [(starts[kept[start]], stops[kept[stop - 1]], LEAST_ACROSS) for start, stop in coded]
        hexed = ((starts[kept[start]], stops[kept[stop - 1]]) for start, stop in short)
        found += [(start, stop, 0) for start, stop in hexed if _is_even(text[start:stop])]
        return [
            (start, stop)
            for start, stop, size in found
            if size >= LEAST_ACROSS or "\n" not in text[start:stop]
        ]


class _Form(NamedTuple):
    """A way that a value may be written; `cased`: in this letter case only."""

    data: bytes
    cased: bool = False


class _Forms:
    """Finds forms in a view, by the first `size` bytes of each in small letters."""

    __slots__ = ("_begun", "_finders", "_size")

    def __init__(self, forms: Iterable[_Form], size: int) -> None:
        self._size = size
        self._begun: dict[bytes, list[_Form]] = {}
        for form in dict.fromkeys(forms):
            lower = form.data.lower()
            held = form if form.cased else _Form(lower)
            self._begun.setdefault(lower[:size], []).append(held)
        self._finders = _finders(sorted(self._begun))

    def spans(self, view: bytes, lower: bytes) -> list[Span]:
        """Where in the view a form is, the longest that begins there."""
        found = []
        for finder in self._finders:
            at = 0
            while (match := finder.search(lower, at)) is not None:
                at = match.start()
                ends = (
                    at + len(data)
                    for data, cased in self._begun[lower[at : at + self._size]]
                    if (view if cased else lower).startswith(data, at)
                )
                end = max(ends, default=0)
                if end:
                    found.append((at, end))
                at += 1
        return found


class _Whole(NamedTuple):
    """What is looked for in pieces of at least so many signs. `mixed`: its letters and digits as they are,
    where each piece has to be of such as no word has."""

    data: bytes
    least: int
    mixed: str = ""


class _Pieces:
    """Finds pieces of values in the second view: every so many signs of a value stand for all around them."""

    __slots__ = ("_begun", "_finders")

    def __init__(self, values: Iterable[str]) -> None:
        begun: dict[bytes, list[tuple[_Whole, int]]] = {}
        for whole in dict.fromkeys(chain.from_iterable(map(_wholes, values))):
            for at in range(0, len(whole.data) - _ANCHOR + 1, whole.least - _ANCHOR + 1):
                begun.setdefault(whole.data[at : at + _ANCHOR], []).append((whole, at))
        self._begun = {
            begin: held for begin, held in begun.items() if len(held) <= _MOST_HELD and len(set(begin)) > 2
        }
        self._finders = _finders(sorted(self._begun))

    def spans(self, view: bytes) -> list[Span]:
        """Where in the view a piece is, as long as it goes on."""
        found = []
        for finder in self._finders:
            at = 0
            while (match := finder.search(view, at)) is not None:
                at = match.start()
                spans = (_around(view, at, whole, held) for whole, held in self._begun[match[0]])
                longest = max(spans, key=lambda span: span[1] - span[0])
                if longest[1] > at:
                    found.append(longest)
                at = max(longest[1] - _ANCHOR, at) + 1
        return found


def _around(view: bytes, at: int, whole: _Whole, held: int) -> Span:
    """Where the piece of a value begins and ends of which the sign `held` is at this place; nothing of it
    where it is too short, or of words as far as twice the shortest piece on both sides."""
    data, start, stop, offset = whole.data, held, held + _ANCHOR, at - held
    first, end = max(0, -offset, held - 2 * whole.least), min(len(data), len(view) - offset)
    while start > first and data[start - 1] == view[offset + start - 1]:
        start -= 1
    while stop < min(end, held + 2 * whole.least) and data[stop] == view[offset + stop]:
        stop += 1
    if stop - start < whole.least or (whole.mixed and not _is_mixed(whole.mixed[start:stop])):
        return at, at
    while stop < end and data[stop] == view[offset + stop]:
        stop += 1
    return offset + start, offset + stop


def _wholes(value: str) -> Iterator[_Whole]:
    """What of a value is looked for in pieces, as the second view has it."""
    for run in _RUN.findall(value):
        mixed = "".join(filter(str.isalnum, run))
        if len(mixed) < LEAST_OF_PIECE or not _is_mixed(mixed):
            continue
        for text in (mixed, mixed[::-1]):
            yield _Whole(text.lower().encode(), LEAST_OF_PIECE, text)
        data = run.encode()
        yield _Whole(data.hex().encode(), 2 * LEAST_OF_PIECE)
        for code in _aligned(b64encode, data, 3, 6):
            yield _Whole(_letters(code), LEAST_OF_PIECE * 4 // 3)


_RUN = re.compile(r"[A-Za-z0-9+/_=-]{12,}")


def _is_mixed(text: str) -> bool:
    """Whether capitals, small letters and digits take turns as in no words: `aWordOfMany` is of such."""
    kinds = ["0" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in text]
    turns = sum(one != other for one, other in pairwise(kinds)) - "".join(kinds).count("Aa")
    return 4 * turns >= len(kinds)


def _finders(begun: Sequence[bytes]) -> list[Any]:
    groups = (begun[at : at + _GROUP] for at in range(0, len(begun), _GROUP))
    return [re2.compile(b"|".join(map(re2.escape, group)), _BYTES) for group in groups]


def _written(value: str, telling: Callable[[str], bool]) -> Iterator[_Form]:
    """The value as the first view has it."""
    ordinary = _ORDINARY.fullmatch(value) is not None
    for form in _turned(value):
        for data in (_view(form), *(_bytes(text).translate(None, _SIGNS) for text in (form, _whole(form)))):
            text = data.decode("utf-8", "surrogatepass")
            if len(text) >= LEAST and telling(text):
                yield _Form(data, ordinary or not _is_long(text, LEAST_IN_ANY_CASE))


def _whole(form: str) -> str:
    """It without an end that what comes after it may make an escape."""
    return _BEGUN.sub("", form)


def _coded(value: str) -> Iterator[_Form]:
    """Codes, and the value itself where it is long enough to be told without its signs, as the second view
    has them."""
    data = _bytes(value)
    forms = [
        letters
        for form in (() if _ORDINARY.fullmatch(value) else _turned(value))
        for letters in map(_letters, (_view(form), _bytes(form)))
        if not letters.isdigit() and _is_long(letters.decode("utf-8", "surrogatepass"), LEAST_APART)
    ]
    if len(data) >= LEAST_CODED:
        if not _is_counted(value):
            forms += (number.encode() for number in _numbers(data))
        forms += (*_aligned(b64encode, data, 3, 6), *_aligned(b32encode, data, 5, 5))
    yield from (_Form(form) for form in map(_letters, forms) if len(form) >= LEAST_ACROSS)


def _is_counted(value: str) -> bool:
    """Whether the numbers of its signs count up or down, as those of many lists do."""
    once = _REPEATED.sub(r"\1", value.lower())
    return any(once in row for row in _COUNTED)


def _is_short(value: str) -> bool:
    """Whether its hex is found only where `_is_even`: anything between so few digits is found by chance."""
    return len(_bytes(value)) < LEAST_CODED and not _is_counted(value)


def _is_even(shown: str) -> bool:
    """Whether whole bytes in hex lie together, or all with the same signs between them."""
    parts = re.split(r"([^0-9A-Za-z]+)", _ESCAPES.sub(_meant, shown))
    between = {part.strip(" \t") for part in parts[1::2]}
    return all(len(part) % 2 == 0 for part in parts[::2]) and len(between) < 2


def _turned(value: str) -> Iterator[str]:
    """As it is, backwards and rotated by 13; in other letter case where a view does not see that these are
    the same: it folds letters of ASCII alone, and what is an escape in one case is none in another. Such a
    value is looked for both read and as it is, since what holds it may be escaped or not."""
    plain = value.isascii() and not _MAY_BE.search(value)
    for cased in (value,) if plain else (value, value.lower(), value.upper(), value.swapcase()):
        yield from (cased, cased[::-1], codecs.encode(cased, "rot13"))


def _is_long(text: str, least: tuple[int, int]) -> bool:
    return len(text) >= least[_WORD.fullmatch(text) is not None]


def _numbers(data: bytes) -> Iterator[str]:
    """Bytes in hex, octal and decimal, and words as they lie in memory: those that hold nothing but the
    value, wherever in a word it begins."""
    yield data.hex()
    yield "".join(map("{:03o}".format, data))
    yield "".join(map(str, data))
    for size in (2, 4):
        for skipped in range(size):
            whole = range(skipped, len(data) - size + 1, size)
            words = [int.from_bytes(data[at : at + size], "little") for at in whole]
            yield "".join(f"{word:0{2 * size}x}" for word in words)
            if size == 2:
                yield "".join(map("{:06o}".format, words))


def _aligned(encode: Callable[[bytes], bytes], data: bytes, group: int, bits: int) -> Iterator[bytes]:
    """What of a code depends on the bytes alone, wherever in a group of them they begin."""
    for before in range(group):
        yield encode(bytes(before) + data)[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]


def _letters(view: bytes) -> bytes:
    return view.lower().translate(None, _BETWEEN)


def _view(text: str) -> bytes:
    """The first view."""
    read = _ESCAPES.sub(_meant, text) if _MAY_BE.search(text) else text
    return _bytes(read).translate(None, _SIGNS)


def _places(text: str) -> tuple[Sequence[int], Sequence[int]]:
    """For each byte of the first view, where in the text that begins and ends which it was made of."""
    starts, stops = array("q"), array("q")

    def add(letter: str, start: int, stop: int) -> None:
        for code in _bytes(letter):
            if code not in _SIGNS:
                starts.append(start)
                stops.append(stop)

    done = 0
    for match in chain(_ESCAPES.finditer(text), (None,)):
        start, end = match.span() if match is not None else (len(text), len(text))
        for at in range(done, start):
            add(text[at], at, at + 1)
        for letter, size in _sizes(match) if match is not None else ():
            add(letter, start, start + size)
            start += size
        done = end
    return starts, stops


def _sizes(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The letters that an escape means, each with the characters of the text that it takes."""
    meant, size = _meant(match), len(match[0])
    unit = {"%": 3, "\\": 4}.get(match[0][0], size)
    sizes = [len(_bytes(letter)) for letter in meant] if unit < size else [1] * len(meant)
    if sum(sizes) * unit != size:  # one letter, or bytes that are no UTF-8
        sizes, unit = [1] * len(meant), size // max(1, len(meant))
    yield from zip(meant, (size * unit for size in sizes), strict=True)


def _meant(match: re.Match[str]) -> str:
    """What an escape means; nothing for ends of lines, colours and marks of a number."""
    text = match[0]
    first, kind = text[0], text[1]
    if first == "%":
        return _read(bytes.fromhex(text.replace("%", "")))
    if first == "&":
        return html.unescape(text)
    if first == "[":
        return _BORDER
    if first != "\\" or kind in "nrt":
        return ""
    if kind == "x":
        return _read(bytes.fromhex(text.replace("\\x", "")))
    if kind in "uU":
        code = text[2:].strip("{}")
        if "u" in code:
            return str(json.loads(f'"\\u{code[:4]}\\u{code[-4:]}"'))
        return chr(int(code, 16)) if int(code, 16) <= sys.maxunicode else _BORDER
    return _read(bytes(int(number, 8) for number in text.split("\\")[1:]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _trimmed(text: str) -> tuple[str, list[int], list[int], list[Span | None]]:
    """The text with what counts of the rows of dumps, where each of its lines begins in it and in the text,
    and of each that is a row where all of it is."""
    parts, starts, places = [], [], []
    rows: list[Span | None] = []
    at = size = 0
    for line in text.split("\n"):
        row = _ROW.fullmatch(line)
        start, stop = row.span(row.lastindex or 0) if row is not None else (0, len(line))
        parts.append(line[start:stop])
        starts.append(size)
        places.append(at + start)
        rows.append((at, at + len(line)) if row is not None else None)
        size += stop - start + 1
        at += len(line) + 1
    return "\n".join(parts), starts, places, rows


def _apart(spans: Iterable[Span]) -> list[Span]:
    """In order; those that touch are one."""
    found: list[Span] = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found
