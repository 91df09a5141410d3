"""Where an offset stands: which block, and what may be written there.

Takes a View and an offset; gives a Spot. It reads tokens, not the tree, because text that is being written
seldom parses: from the offset backwards over whole brackets to each one that is still open, up to the TASK,
AGENT or SYSTEM_MODEL (so that a brace lost further up does no harm), then each open bracket is named by the
words in front of it, the outermost first. What may follow is decided by the one or two tokens before the
word at the offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spak.lang import settings
from spak.lang.features.view import View, Word
from spak.lang.parser.automaton import tables
from spak.lang.parser.lexer import Vocabulary

Block = Literal[
    "top", "agent", "model", "task", "next", "evaluation", "step", "settings", "inputs", "space", "options",
    "map", "list", "call", "condition", "opaque",
]  # fmt: skip
Wanted = Literal[
    "item",  # a key, a keyword or a member, as the block has them
    "value",  # the value of `key`
    "target",  # a task
    "trigger",
    "kind",  # of a step: tool.run, llm.query
    "condition",  # an operand
    "joint",  # and, or, or a new item
    "type",  # of an input
    "when",
    "static",  # the check of an axiom
    "variable",  # inside {{ }}
    "text",  # inside a string
    "word",  # one of `words`: what continues a construct
    "name",  # a new name: nothing to offer
    "nothing",
]

Choice = tuple[Wanted, str, tuple[str, ...]]
"""What is wanted, of which key, or which words."""

_NAMED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "top": {"agent": ("LEVEL", "{"), "task": ("{",), "system_model": ("{",)},
    "agent": {"task": ("{",), "system_model": ("{",)},
    "task": {"step": (":",)},
    "evaluation": {"check": (":",)},
    "model": {"check": ("{",)},
}
"""By block, the keywords that a new name follows, and what may follow the name."""

_FOLLOWS = {"success": ":", "invariant": ":", "next": "{", "evaluation": "{"}
_TEXTS = ("axiom", "heuristic", "prediction", "when")


@dataclass(frozen=True, slots=True)
class Frame:
    """An open bracket: its block, and what stands before it. `owner` is a step's kind, a function's name or
    the name that options belong to; `table` names the settings' place or the catalog's table."""

    block: Block
    open: int
    owner: str = ""
    key: str = ""
    table: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spot:
    """What is wanted at the word that an offset touches; `start` to `end` is what an answer replaces."""

    wanted: Wanted
    frames: tuple[Frame, ...]
    word: Word
    key: str = ""
    words: tuple[str, ...] = ()
    first: int = 0
    """The first raw token that is not before the word."""

    @property
    def frame(self) -> Frame:
        """The innermost block around it."""
        return self.frames[-1]

    def inside(self, *blocks: Block) -> Frame | None:
        """The innermost frame of one of these blocks."""
        return next((frame for frame in reversed(self.frames) if frame.block in blocks), None)


def spot(view: View, offset: int) -> Spot:
    """What may be written at the offset."""
    return _Finder(view).find(max(0, min(offset, len(view.text))))


def spot_of(view: View, word: Word) -> Spot:
    """What the word at its place was one choice of."""
    return _Finder(view).find(word.start if word.end == word.start else word.start + 1)


class _Finder:
    def __init__(self, view: View) -> None:
        self.view = view
        self.text = view.text
        self.tokens = view.raw
        self.words: Vocabulary = tables().words
        self.opener = self.words.openers
        self.closer = self.words.closers

    def find(self, offset: int) -> Spot:
        token = self.view.token_at(offset - 1) if offset else None
        if token is not None and self.tokens.kinds[token] == self.words.string:
            inside = self._in_string(token, offset)
            if inside is not None:
                return inside
        word = self.view.word_at(offset)
        first = self._first_after(word.start)
        if self.view.in_comment(offset):
            return Spot("nothing", (Frame("top", -1),), word, first=first)
        frames = self._frames(first)
        return self._wanted(frames, word, first)

    # ---- tokens

    def _first_after(self, offset: int) -> int:
        """The first raw token that does not end before the offset."""
        low, high = 0, len(self.tokens) - 1
        while low < high:
            middle = (low + high) // 2
            if self.tokens.ends[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def word(self, index: int) -> str:
        """The spelling of a token, empty outside of the text."""
        if not 0 <= index < len(self.tokens) - 1:
            return ""
        return self.text[self.tokens.starts[index] : self.tokens.ends[index]]

    def low(self, index: int) -> str:
        return self.word(index).lower()

    def is_word(self, index: int) -> bool:
        if not 0 <= index < len(self.tokens) - 1:
            return False
        kind = self.tokens.kinds[index]
        return kind == self.words.name or kind >= tables().keyword

    def kind(self, index: int) -> int:
        return self.tokens.kinds[index] if 0 <= index < len(self.tokens) else 0

    # ---- frames

    def _frames(self, first: int) -> tuple[Frame, ...]:
        """The brackets that are open before a token. Behind a whole TASK only an AGENT's can be."""
        openers: list[int] = []
        depth, outside = 0, False
        for index in range(first - 1, -1, -1):
            kind = self.kind(index)
            if kind in self.closer:
                depth += 1
            elif kind in self.opener and depth:
                depth -= 1
                outside = outside or (depth == 0 and bool(self._head(index)))
            elif kind in self.opener:
                head = self._head(index)
                if not outside or head == "agent":
                    openers.append(index)
                if head and (not outside or head == "agent"):
                    break
        frames = [Frame("top", -1)]
        for opener in reversed(openers):
            frames.append(self._frame(opener, frames[-1]))
        return tuple(frames)

    def _head(self, brace: int) -> str:
        """The keyword of the TASK, AGENT or SYSTEM_MODEL whose brace this is, or nothing."""
        if self.word(brace) != "{":
            return ""
        if self.low(brace - 2) in ("task", "agent", "system_model") and self.is_word(brace - 1):
            return self.low(brace - 2)
        if self.low(brace - 1) == "system_model":
            return "system_model"
        if self.kind(brace - 1) == self.words.number and self.low(brace - 4) == "agent":
            return "agent"
        return ""

    def _frame(self, at: int, outer: Frame) -> Frame:
        if self.word(at) == "[":
            key = self._key_before(at)
            return Frame("list", at, outer.owner, key, outer.table, self._schema(outer, key).get("items", {}))
        if self.word(at) == "(":
            if outer.block in ("task", "condition") and not self._is_call(at):
                return Frame("condition", at)
            return Frame("call", at, self.low(at - 1), outer.key, outer.block)
        head = self._head(at)
        if head:
            return Frame("model" if head == "system_model" else "task" if head == "task" else "agent", at)
        if self.low(at - 1) == "next":
            return Frame("next", at)
        if self.low(at - 1) == "evaluation":
            return Frame("evaluation", at)
        if self.low(at - 4) in ("step", "check") and self.word(at - 2) == ":":
            return self._step_frame(at)
        return self._block(at, outer)

    def _is_call(self, at: int) -> bool:
        return self.is_word(at - 1) and self.low(at - 1) not in ("and", "or", "not")

    def _step_frame(self, at: int) -> Frame:
        kind = self.word(at - 1)
        tool = self.view.catalog.tool(kind.removeprefix("tool.")) if kind.startswith("tool.") else None
        return Frame("step", at, kind, schema=tool.schema if tool is not None else {})

    def _block(self, at: int, outer: Frame) -> Frame:
        """The map of `KEY {`, or the options of `KEY name {`."""
        key = self._key_before(at)
        if outer.block == "model" and self.low(at - 2) == "check":
            check = self.view.catalog.checks.get(self.word(at - 1))
            return Frame("options", at, self.word(at - 1), schema=check.schema if check is not None else {})
        if outer.block in ("top", "agent", "task", "settings"):
            place = _place(outer)
            setting = settings.find(place, self.word(at - 1)) if self.is_word(at - 1) else None
            setting = setting or (settings.find(place, key) if key else None)
            if setting is not None and setting.kind in ("map", "inputs", "space"):
                if setting.kind == "map":
                    return Frame("settings", at, key=setting.key, table=setting.table)
                return Frame("inputs" if setting.kind == "inputs" else "space", at, key=setting.key)
            tagged = settings.find(place, self._tag_key(at))
            if tagged is not None and tagged.kind in ("tagged", "name"):
                name = self.word(at - 1)
                entry = getattr(self.view.catalog, tagged.table).get(name)
                schema = entry.schema if entry is not None else {}
                return Frame("options", at, name, tagged.key, tagged.table, schema)
            return Frame("opaque", at)
        if outer.block == "model":
            return Frame("opaque", at)
        if outer.block == "step" and key == "poll":
            return Frame("settings", at, key=key, table="poll")
        return Frame("map", at, outer.owner, key, outer.table, self._schema(outer, key))

    def _key_before(self, at: int) -> str:
        """The key whose value begins at a bracket: `key [`, `key: [`, `key = {`."""
        back = at - 1
        if self.word(back) in (":", "="):
            back -= 1
        if self.kind(back) == self.words.string:
            return self.word(back).strip('"')
        return self.word(back) if self.is_word(back) else ""

    def _tag_key(self, at: int) -> str:
        """The key of `KEY name {` and `KEY: name {`."""
        back = at - 2
        return self.word(back - 1 if self.word(back) in (":", "=") else back)

    def _schema(self, frame: Frame, key: str) -> Mapping[str, Any]:
        """The schema of a member of a frame; that of a list's items where the frame is a list."""
        if frame.block == "list":
            return frame.schema
        found = frame.schema.get("properties", {}).get(key) if isinstance(frame.schema, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    # ---- what is wanted

    def _wanted(self, frames: tuple[Frame, ...], word: Word, first: int) -> Spot:
        frame, last = frames[-1], first - 1
        wanted, key, words = self._choose(frame, last)
        return Spot(wanted, frames, word, key, words, first)

    def _choose(self, frame: Frame, last: int) -> Choice:
        before = self.word(last)
        match frame.block:
            case "next":
                if before == "->":
                    return "target", "", ()
                if self.is_word(last) and self.word(last - 1) != "->":
                    return "word", "", ("->",)
                return "trigger", "", ()
            case "list":
                return ("value", frame.key, ()) if before in ("[", ",") else ("nothing", "", ())
            case "call":
                return ("value", "", ()) if before in ("(", ",") else ("nothing", "", ())
            case "condition":
                return ("condition" if self._operand(last) else "joint"), "", ()
            case "inputs":
                return ("type" if before == ":" else "value" if before == "=" else "name"), "", ()
            case "opaque":
                return "nothing", "", ()
            case "top" | "agent" | "model" | "task" | "evaluation":
                return self._in_construct(frame, last) or self._in_body(frame, last)
            case "settings":
                key = self._open_key(last, frame.table)
            case _:
                key = self._open_member(last, frame)
        return ("value" if key else "item"), key, ()

    def _operand(self, last: int) -> bool:
        """True when a condition's operand may follow this token."""
        return self.low(last) in ("and", "or", "not", "(", ":", ",") or self.kind(last) == self.words.compare

    def _in_construct(self, frame: Frame, last: int) -> Choice | None:
        """What continues `TASK`, `STEP name`, `START ->` and the like; None where nothing is begun."""
        before, two, three = self.low(last), self.low(last - 1), self.low(last - 2)
        if before == "->" or (before == ":" and two == "start"):
            return "target", "", ()
        if before == ":" and three in ("step", "check"):
            return "kind", "", ()
        if before == ":" and two in ("success", "invariant"):
            return "condition", "", ()
        if not self.is_word(last):
            return None
        if two in _NAMED[frame.block]:
            return "word", "", _NAMED[frame.block][two]
        if before == "level" and three == "agent":
            return "value", "LEVEL", ()
        if frame.block == "model" and before == "check":
            return "static", "", ()
        if before in _NAMED[frame.block] or before == "system_model":
            return "name", "", ()
        if before == "start" and frame.block in ("top", "agent"):
            return "target", "", ()
        if frame.block == "model" and before in _TEXTS:
            return ("when" if before == "when" else "text"), "", ()
        if frame.block == "task" and before in _FOLLOWS:
            return "word", "", (_FOLLOWS[before],)
        return None

    def _in_body(self, frame: Frame, last: int) -> Choice:
        if frame.block == "task" and self._in_condition(last):
            return ("condition" if self._operand(last) else "joint"), "", ()
        if frame.block == "model":
            return "item", "", self._after_text(last)
        if frame.block == "evaluation":
            return "item", "", ()
        key = self._open_key(last, _place(frame))
        return ("value" if key else "item"), key, ()

    def _after_text(self, last: int) -> tuple[str, ...]:
        """What may follow the text of an axiom or a heuristic."""
        if self.kind(last) != self.words.string:
            return ()
        head = self.low(last - 2) if self.word(last - 1) == ":" else self.low(last - 1)
        return {"heuristic": ("WHEN",), "axiom": ("CHECK",)}.get(head, ())

    def _in_condition(self, last: int) -> bool:
        """True when the tokens before belong to `success:` or `invariant:`."""
        depth = 0
        for index in range(last, -1, -1):
            kind, word = self.kind(index), self.low(index)
            if kind in self.closer and word != "}":
                depth += 1
            elif kind in self.opener and depth:
                depth -= 1
            elif kind in self.opener or kind in self.closer:
                return False
            elif depth:
                continue
            elif word == ":":
                return self.low(index - 1) in ("success", "invariant")
            elif word in ("->", "=", ",") or (self.is_word(index) and self._task_key(index)):
                return False
        return False

    def _task_key(self, index: int) -> bool:
        word = self.word(index)
        return word.isupper() and settings.find("task", word) is not None

    def _open_key(self, last: int, place: str) -> str:
        """The setting whose value is wanted after this token, if any."""
        back = last - 1 if self.word(last) in (":", "=") else last
        if not self.is_word(back):
            return ""
        setting = settings.find(place, self.word(back))
        if setting is None or (back == last and self._open_key(back - 1, place)):
            return ""
        return setting.key

    def _open_member(self, last: int, frame: Frame) -> str:
        """The member of a map whose value is wanted after this token, if any."""
        if self.word(last) in (":", "="):
            back = last - 1
            if self.kind(back) == self.words.string:
                return self.word(back).strip('"')
            return self.word(back) if self.is_word(back) else ""
        known = frame.schema.get("properties", {})
        if self.word(last) in known and self.word(last - 1) in ("{", ",", "}", "]"):
            return self.word(last)
        return ""

    # ---- inside a text

    def _in_string(self, token: int, offset: int) -> Spot | None:
        """In a template's `{{`, or in a text that is one of some; None behind the closing quote."""
        start, end = self.tokens.starts[token], self.tokens.ends[token]
        raw = self.text[start:end]
        quotes = 3 if raw.startswith('"""') else 1
        closed = len(raw) >= 2 * quotes and raw.endswith('"' * quotes)
        if offset < start + quotes or offset > end - (quotes if closed else 0):
            return None
        frames = self._frames(token)
        hole = self.text.rfind("{{", start, offset)
        if hole >= 0 and self.text.find("}}", hole, offset) < 0 and not self.text.startswith("\\", hole - 1):
            key = self._wanted(frames, Word("", start, start), token).key
            return Spot("variable", frames, self.view.word_at(offset), key, first=token)
        inner = Word(
            self.text[start + quotes : end - quotes if closed else end],
            start + quotes,
            end - quotes if closed else end,
        )
        before = self._wanted(frames, inner, token)
        return Spot("text", frames, inner, before.key if before.wanted == "value" else "", (), token)


def _place(frame: Frame) -> str:
    """The settings' place of a block."""
    if frame.block == "settings":
        return frame.table
    return "task" if frame.block == "task" else "agent"
