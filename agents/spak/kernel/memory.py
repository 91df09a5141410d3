"""Memory: what a prompt still shows of what happened, and what it only names.

One Entry per effect that a model may want to look back on: a tool's call and result, a question and its
answer, something a person said. New entries are *fresh* and shown in full; settled ones are *references*,
`ref://N name size gist`, where N is the effect's attempt: the whole text stays in the ledger and its blobs,
and the tool `recall` reads it back. The policies of CONFIG differ in when entries settle and in what is
left of them:

    FLUSH_ON_TRANSITION   at a transition, when it pays, and past the limit; the reference keeps a gist
    SUMMARIZE             past the limit, the older half; the reference keeps a gist
    FIFO                  past the limit, the older half; one line says how many there are

Settling is append-only (a block of references is added behind those before it, and never edited), so that
the prompt's prefix stays what a provider has cached; only when the references themselves pass their limit
does the older half of the blocks fold into one line. The gist is extracted (identifiers, paths, numbers),
never asked of a model: it costs no call and replays bit for bit.

Pure data and functions; sizes in characters; bounded whatever the length of the run.
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
"""Characters of one text that an entry may hold; a longer one is a reference from the start."""
LIMIT = 24_000
"""Characters of fresh entries past which the older half settles, whatever the policy."""
NAMED = 6_000
"""Characters of references past which the older half of their blocks folds into one line."""
GIST = 320
"""Characters of a gist."""
HORIZON = 8
"""Prompts still to come that a flush may count on in a run that has made fewer."""
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
    text: str = ""
    size: int = 0
    """Bytes of the whole text; `digest` is of all of them."""
    digest: str = ""
    gist: str = ""
    """What is left of it in a reference. A text too long to be held is empty, and the gist stands for it."""

    @property
    def length(self) -> int:
        return OVERHEAD + len(self.call) + (len(self.text) if self.text else len(self.gist))


@dataclass(frozen=True, slots=True)
class Reference:
    ref: int
    name: str
    size: int
    digest: str
    gist: str = ""

    def line(self) -> str:
        return f"ref://{self.ref} {self.name} {self.size}B: {self.gist}"


@dataclass(frozen=True, slots=True)
class Memory:
    folded: int = 0
    """References that one line stands for: `ref://` up to `upto`."""
    upto: int = 0
    blocks: tuple[tuple[Reference, ...], ...] = ()
    fresh: tuple[Entry, ...] = ()
    sent: int = 0
    """How many of the fresh entries some prompt has shown."""
    calls: int = 0
    """Prompts made from this memory so far."""


def entry(ref: int, role: Role, name: str, text: str, call: Any = "") -> Entry:
    """An entry of a whole text and, for a tool, its arguments; JSON in them is rewritten by `plain`."""
    data = text.encode("utf-8", "replace")
    kept = gist([_brief(call), text])
    called = _called(name, call)
    if len(text) + len(called) > WHOLE:
        return Entry(ref, role, name, called[:GIST], "", len(data), canon.digest(data), kept)
    return Entry(ref, role, name, called, plain(text), len(data), canon.digest(data), kept)


def long(ref: int, role: Role, name: str, value: Mapping[str, Any], call: Any = "") -> Entry:
    """An entry of a text that is a blob: `{"$blob", size, head}`, whose gist is that of its head."""
    called, size = _called(name, call)[:GIST], value.get("size", 0)
    kept = gist([_brief(call), value.get("head", "")])
    return Entry(ref, role, name, called, "", size, str(value.get("$blob", "")), kept)


def _called(name: str, call: Any) -> str:
    """A call as a prompt shows it; a long value in it by its size alone."""
    return f"{name} {plain(_brief(call))}" if call else ""


def _brief(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "$blob" in value:
            return f"({value.get('size', 0)} bytes)"
        return {key: _brief(item) for key, item in value.items()}
    return [_brief(item) for item in value] if isinstance(value, (list, tuple)) else value


def remember(memory: Memory, item: Entry, policy: str, limit: int = LIMIT) -> Memory:
    """The memory with one more entry; what is past the limit settles, in a block."""
    memory = replace(memory, fresh=(*memory.fresh, item))
    if sum(item.length for item in memory.fresh) <= limit:
        return memory
    keep, left = len(memory.fresh) - 1, limit // 2
    while keep > 0 and memory.fresh[keep].length <= left:
        left -= memory.fresh[keep].length
        keep -= 1
    return _settle(memory, keep + 1, gists=policy != "FIFO")


def sent(memory: Memory) -> Memory:
    """The memory after a prompt was made from it."""
    return replace(memory, sent=len(memory.fresh), calls=memory.calls + 1)


def transition(memory: Memory, policy: str) -> Memory:
    """The memory after the run went on to another task.

    FLUSH_ON_TRANSITION settles every entry that a prompt has shown, when that is worth its price with a
    prefix cache: the references are sent once at the full price instead of a tenth, and so is what stands
    behind them, and every prompt to come is shorter. How many will come nobody knows: as many as there were
    is the guess, HORIZON at first. What no prompt has shown yet stays, so that nothing settles unseen.
    """
    if policy != "FLUSH_ON_TRANSITION" or not memory.sent:
        return memory
    old = memory.fresh[: memory.sent]
    lines = len(_text(_block(memory, memory.sent, True)))
    gone = sum(item.length for item in old) - lines
    if max(memory.calls, HORIZON) * gone <= 9 * lines:
        return memory
    return _settle(memory, memory.sent, gists=True)


def compact(memory: Memory, policy: str) -> Memory | None:
    """The memory made smaller for a prompt that is too long: first everything fresh settles, then the
    references fold into one line; None when there is nothing left to take away."""
    if memory.fresh:
        return _settle(memory, len(memory.fresh), gists=policy != "FIFO")
    if memory.blocks:
        return _fold(memory, len(memory.blocks))
    return None


def shown(memory: Memory) -> tuple[Mapping[str, str], ...]:
    """The memory as prompt items `{role, name, text}`, oldest first."""
    found: list[Mapping[str, str]] = []
    if memory.folded:
        text = (
            f"{memory.folded} older texts, up to ref://{memory.upto}: recall lists, searches and reads them"
        )
        found.append({"role": "user", "name": "memory.folded", "text": text})
    for block in memory.blocks:
        found.append({"role": "user", "name": f"memory.{block[0].ref}", "text": _text(block)})
    for item in memory.fresh:
        found += _items(item)
    return tuple(found)


def _items(item: Entry) -> Iterable[Mapping[str, str]]:
    name = f"ref.{item.ref}"
    if item.call:
        yield {"role": "assistant", "name": name, "text": item.call}
    text = item.text
    if item.size and not text:
        text = Reference(item.ref, item.name, item.size, item.digest, item.gist).line()
    yield {"role": item.role, "name": name, "text": text}


def _text(block: tuple[Reference, ...]) -> str:
    """A line per reference with a gist, and one that names those without."""
    lines = [item.line() for item in block if item.gist]
    bare = [str(item.ref) for item in block if not item.gist]
    if bare:
        lines.append("ref://" + ",".join(bare))
    return "\n".join(lines)


def _settle(memory: Memory, count: int, gists: bool) -> Memory:
    """The first `count` fresh entries as one more block of references."""
    block = _block(memory, count, gists)
    blocks = (*memory.blocks, block)
    memory = replace(memory, blocks=blocks, fresh=memory.fresh[count:], sent=max(0, memory.sent - count))
    if not gists:
        return _fold(memory, len(blocks))
    if sum(len(_text(block)) for block in blocks) <= NAMED:
        return memory
    return _fold(memory, max(1, len(blocks) // 2))


def _fold(memory: Memory, count: int) -> Memory:
    """The first `count` blocks as part of the one line that stands for all older references."""
    gone = memory.blocks[:count]
    return replace(
        memory,
        folded=memory.folded + sum(map(len, gone)),
        upto=gone[-1][-1].ref,
        blocks=memory.blocks[count:],
    )


def _block(memory: Memory, count: int, gists: bool) -> tuple[Reference, ...]:
    """References to the first `count` fresh entries; a literal stands in one gist only."""
    known = {word for block in memory.blocks for item in block for word in item.gist.split()}
    found = []
    for item in memory.fresh[:count]:
        words = [word for word in item.gist.split() if gists and word not in known]
        known.update(words)
        kept = " ".join(words)
        found.append(Reference(item.ref, item.name, item.size, item.digest, kept))
    return tuple(found)


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


def plain(value: Any) -> str:
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
