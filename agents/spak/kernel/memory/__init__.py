"""Memory: what a prompt still shows of what happened, and what it only names.

One Entry per effect that a model may want to look back on: a tool's call and result, a question and its
answer, something a person said. New entries are *fresh* and shown in full; settled ones are *references*,
`ref://N name size gist`, where N is the effect's attempt: the whole text stays in the ledger and its blobs,
and the tool `recall` reads it back. When entries settle and what is left of them is decided by the policies
of settle.py. The gist is extracted (identifiers, paths, numbers), never asked of a model: it costs
no call and replays bit for bit.

A text that the ledger keeps as a blob is carried as a reference to it, and the runner fills it in when the
prompt is sent: the state never holds a text of more than 16 KiB.

Pure data and functions; sizes in characters, of blobs in bytes; bounded whatever the length of the run.
Source: seed 000 section 2.1 (MEMORY), seed 004 section 8.2; notes on durability, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from spak import canon
from spak.kernel import strict

Role = Literal["user", "assistant"]

WHOLE = 16_384
"""Characters of a call that an entry may hold, and of a text that is read as JSON."""
LIMIT = 32_000
"""Length of all fresh entries past which the older half of them settles, whatever the policy."""
UNSEEN = 96_000
"""Length of fresh entries that no prompt has shown past which the oldest of them settle as well; a longer
text is a reference from the start."""
NAMED = 6_000
"""Characters of references past which the older half of them folds into one line."""
GIST = 320
"""Characters of a gist."""
OVERHEAD = 32
"""Characters that an entry counts besides its texts, so that empty ones are bounded too."""

_LITERAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@#+\-]*[A-Za-z0-9_]|\d")
_NUMBER = re.compile(r"[-+.]?\d[\d.eE+\-]*\Z")
_BARE = re.compile(r"[^\s\[\]{}|,:=\"\\](?:[^\[\]{}|,=\"\\\x00-\x1f]*[^\s\[\]{}|,:=\"\\])?\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One effect as a prompt shows it: a call, which is a model's, and the text that came of it."""

    ref: int
    role: Role
    """Whose the text is: `assistant` for a model's own words, `user` for whatever it was told."""
    name: str
    call: str = ""
    text: Any = ""
    """The text, or `{"$blob": hash, "size": n}` or `{"$text": [parts]}` that the runner expands. A text too
    long to be shown is empty, and the prompt has its gist."""
    size: int = 0
    """Bytes of the whole text; `digest` is of all of them."""
    digest: str = ""
    gist: str = ""
    """What is left of it in a reference."""

    @property
    def length(self) -> int:
        """Characters that it takes in a prompt."""
        return OVERHEAD + len(self.call) + (length(self.text) if self.text else len(self.gist))


@dataclass(frozen=True, slots=True)
class Reference:
    """What is left of a settled entry: its number, its size in bytes and what was extracted of it."""

    ref: int
    name: str
    size: int
    digest: str
    gist: str = ""
    summary: str = ""
    """Lines that SUMMARIZE keeps of the text."""

    def line(self) -> str:
        """The reference as a prompt shows it."""
        line = f"ref://{self.ref} {self.name} {self.size}B: {self.gist}"
        return f"{line}\n{self.summary}" if self.summary else line


@dataclass(frozen=True, slots=True)
class Memory:
    """All that a prompt shows of what happened: references in blocks, then fresh entries, oldest first."""

    folded: int = 0
    """References that one line stands for: `ref://` up to `upto`."""
    upto: int = 0
    blocks: tuple[tuple[Reference, ...], ...] = ()
    fresh: tuple[Entry, ...] = ()
    sent: int = 0
    """How many of the fresh entries some prompt has shown."""


def entry(ref: int, role: Role, name: str, text: str, call: Any = "") -> Entry:
    """An entry of a whole text and, for a tool, its arguments; JSON in them is rewritten by `plain`."""
    data = text.encode("utf-8", "replace")
    shown = compact_json(text) if len(text) <= UNSEEN else ""
    return Entry(
        ref, role, name, called(name, call), shown, len(data), canon.digest(data), gist([brief(call), text])
    )


def long(ref: int, role: Role, name: str, value: Mapping[str, Any], call: Any = "", note: str = "") -> Entry:
    """An entry of a text that is a blob, `{"$blob", size, head}`, with a note before it; its gist is that of
    its head."""
    size = value.get("size", 0)
    shown: Any = {"$text": [note, value]} if note else value
    kept = gist([brief(call), value.get("head", "")])
    shown = shown if length(shown) <= UNSEEN else ""
    return Entry(ref, role, name, called(name, call), shown, size, str(value.get("$blob", "")), kept)


def length(text: Any) -> int:
    """Characters of a prompt's text, where a blob in it counts its bytes."""
    if isinstance(text, Mapping):
        if "$text" in text:
            return sum(length(part) for part in text["$text"])
        size = text.get("size", 0)
        return size if type(size) is int else 0
    return len(str(text))


def head(text: Any) -> str:
    """The beginning of a text as far as the state knows it."""
    if isinstance(text, Mapping):
        return "".join(map(head, text["$text"])) if "$text" in text else str(text.get("head", ""))
    return str(text)


def called(name: str, call: Any) -> str:
    """A call as a prompt shows it; a long value in it by its size alone."""
    text = f"{name} {compact_json(brief(call))}" if call else ""
    return text if len(text) <= WHOLE else text[:GIST]


def brief(value: Any) -> Any:
    """A call's arguments with each long value replaced by its size."""
    if isinstance(value, Mapping):
        if "$blob" in value:
            return f"({value.get('size', 0)} bytes)"
        return {key: brief(item) for key, item in value.items()}
    return [brief(item) for item in value] if isinstance(value, (list, tuple)) else value


def sent(memory: Memory) -> Memory:
    """The memory after a prompt was made from it."""
    return replace(memory, sent=len(memory.fresh))


def shown(memory: Memory) -> tuple[Mapping[str, Any], ...]:
    """The memory as prompt items `{role, name, text}`, oldest first."""
    found: list[Mapping[str, Any]] = []
    if memory.folded:
        text = (
            f"{memory.folded} older texts, up to ref://{memory.upto}: recall lists, searches and reads them"
        )
        found.append({"role": "user", "name": "memory.folded", "text": text})
    for block in memory.blocks:
        found.append({"role": "user", "name": f"memory.{block[0].ref}", "text": lines(block)})
    for item in memory.fresh:
        found += _items(item)
    return tuple(found)


def _items(item: Entry) -> Iterable[Mapping[str, Any]]:
    name = f"ref.{item.ref}"
    if item.call:
        yield {"role": "assistant", "name": name, "text": item.call}
    text = item.text
    if item.size and not text:
        text = Reference(item.ref, item.name, item.size, item.digest, item.gist).line()
    yield {"role": item.role, "name": name, "text": text}


def lines(block: tuple[Reference, ...]) -> str:
    """The references of a block as a prompt shows them: a line for each that says something of its text, and
    one that names the others."""
    found = [item.line() for item in block if item.gist or item.summary]
    bare = [str(item.ref) for item in block if not (item.gist or item.summary)]
    if bare:
        found.append("ref://" + ",".join(bare))
    return "\n".join(found)


def literals(value: Any) -> Iterable[str]:
    """Identifiers, paths and numbers of four characters or more, in order: what is copied and not rephrased.

    Takes a text, or JSON, in which the values count and the member names do not. A literal holds a digit, or
    an underscore, slash, dot or the like inside; plain words are none.
    """
    for text in _texts(value):
        yield from _literals(text)


def _literals(text: str) -> Iterable[str]:
    for match in _LITERAL.finditer(text):
        word = match.group()
        if len(word) >= 4 and not word.isalpha():
            yield word


def gist(value: Any) -> str:
    """The distinct literals of a text, or of the values in JSON, in order, up to GIST characters."""
    left, found = GIST, []
    for word in dict.fromkeys(islice(literals(value), 2000)):
        left -= len(word) + 1
        if left < 0:
            break
        found.append(word)
    return " ".join(found)


def _texts(value: Any) -> Iterable[str]:
    """Every text and number in a JSON value, member names left out; text that is JSON counts as JSON."""
    if isinstance(value, str):
        inner = _json(value)
        if inner is None:
            yield value
        else:
            yield from _texts(inner)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, _Number):
        yield value.text
    elif type(value) in (int, float):
        yield canon.dumps(value).decode()


def compact_json(value: Any) -> str:
    """JSON without the quotes and repeated names that only a parser needs; any other text as it is.

    `[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]` becomes `[a,b|1,x|2,y]`. Nothing is left out: a string that
    could be misread keeps its quotes.
    """
    inner = _json(value) if isinstance(value, str) else value
    if inner is None:
        return str(value)
    written = _plain(inner)
    return written if not isinstance(value, str) or len(written) < len(value) else value


def _json(text: str) -> Any:
    """The object or list that a text is, or None; what nests too deep is text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return strict.loads(text, limit=WHOLE, number=_Number)
    except strict.Unreadable:
        return None


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as it was written: nothing is rounded on the way into a prompt."""

    text: str


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_name(name)}:{_plain(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        table = _table(value)
        return table or "[" + ",".join(_plain(item) for item in value) + "]"
    return _word(value)


def _table(items: list[Any]) -> str:
    """Objects of the same members, or lists of such, as a head and rows; nothing when they are not that.

    A member that is the same in every row stands in the head alone, with its value.
    """
    groups = items if all(isinstance(item, list) for item in items) else [items]
    rows = [row for group in groups for row in group]
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return ""
    flat = [_flat(row, "") for row in rows]
    if any(row.keys() != flat[0].keys() for row in flat):
        return ""
    cells = [{name: _plain(item) for name, item in row.items()} for row in flat]
    varying = [name for name in cells[0] if any(row[name] != cells[0][name] for row in cells)]
    varying = varying or list(cells[0])[:1]
    head = ",".join(name if name in varying else f"{name}={cells[0][name]}" for name in cells[0])
    lines = iter(",".join(row[name] for name in varying) for row in cells)
    written = ["|".join(islice(lines, len(group))) for group in groups]
    between = "||" if groups is items else "|"
    return f"[{between.join([head, *written])}]"


def _flat(row: dict[str, Any], above: str) -> dict[str, Any]:
    """The members of an object, those of objects inside it under dotted names."""
    found: dict[str, Any] = {}
    for name, item in row.items():
        if isinstance(item, dict) and item:
            found |= _flat(item, f"{above}{_name(name)}.")
        else:
            found[above + _name(name)] = item
    return found


def _name(name: str) -> str:
    return _quoted(name) if ":" in name or "." in name else _word(name)


def _quoted(text: str) -> str:
    return canon.dumps(text).decode()


def _word(value: Any) -> str:
    """A text as it is where it could be nothing else; quoted where it could be a number, a word of JSON or a
    part of what stands around it."""
    if isinstance(value, _Number):
        return value.text
    if not isinstance(value, str):
        return canon.dumps(value).decode()
    if _BARE.match(value) and value not in ("true", "false", "null") and not _NUMBER.match(value):
        return value
    return _quoted(value)
