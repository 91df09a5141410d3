"""The tree of a spec: frozen nodes as they stand in the text, both dialects alike.

The parser makes them and `check` and `compile` read them. A node's span is two token indexes, `start` and
`end` (exclusive), into the token table of its Source; lines and columns come from there, for what is printed
only. Words keep their spelling; whether a setting's key or value is known is the business of `check`.
`Spec.hash` names the meaning: layout, comments and the case of keywords do not change it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.lang.diagnostics import Diagnostic, Edit, Lines, Severity

# ---- values --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A string with its escapes undone; `long` when it stood in triple quotes."""

    value: str
    start: int
    end: int
    long: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: int | float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """A bare word: `true`, `none`, a variable, a choice. Empty where the parser filled a gap."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListValue:
    """`[...]`."""

    items: tuple[Value, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """`key value`, `key: value`, `key: type = default`. The key is the token at `start`."""

    key: str
    value: Value
    default: Value | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MapValue:
    """`{ key: value ... }`."""

    entries: tuple[Entry, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """`name { ... }`: a validator or a proposer with its options."""

    name: str
    body: MapValue | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Call:
    """`NAME(...)` in a condition."""

    name: str
    args: tuple[Value, ...]
    start: int
    end: int


Value = Text | Number | Name | ListValue | MapValue | Tagged | Call

# ---- conditions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Logic:
    """`a and b and c`, `a or b`; `op` is in lower case. A chain of one operator is one node."""

    op: str
    items: tuple[Condition, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Negation:
    """`not CONDITION`."""

    item: Condition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values and the sign between them."""

    op: str
    left: Value
    right: Value
    start: int
    end: int


Condition = Logic | Negation | Comparison | Value

# ---- items of bodies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """`step name: kind { ... }`. The name is the token at `start + 1`, the kind the one at `start + 3`."""

    name: str
    kind: str
    body: MapValue | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Check:
    """`check name: kind { ... }` of an evaluation; tokens as in Step."""

    name: str
    kind: str
    body: MapValue | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`evaluation { check ... }`."""

    items: tuple[Check, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edge:
    """`trigger -> target`, the tokens at `start` and `start + 2`."""

    trigger: str
    target: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Next:
    """`NEXT { trigger -> task ... }`, or `NEXT BY next_action { /name -> task ... }`."""

    items: tuple[Edge, ...]
    start: int
    end: int
    by: tuple[str, ...] = ()
    """The two words after NEXT, the tokens at `start + 1` and `start + 2`."""

    @property
    def bracket(self) -> int:
        """The token of its opening brace."""
        return self.start + 1 + len(self.by)


@dataclass(frozen=True, slots=True)
class Success:
    """`success: CONDITION`."""

    condition: Condition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Invariant:
    """`invariant: CONDITION`."""

    condition: Condition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BareCondition:
    """A condition that stands alone in a body: it joins the last `success:` or `invariant:` with `and`."""

    condition: Condition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Task:
    """The name is the token at `start + 1`."""

    name: str
    items: tuple[TaskItem, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Axiom:
    """`AXIOM "text"`, and the rule or check that holds it, where one is named."""

    text: Text
    check: Tagged | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heuristic:
    """`HEURISTIC "text"`, and after which trigger or code it is injected."""

    text: Text
    when: Name | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """`PREDICTION "text"`."""

    text: Text
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SystemModel:
    """`SYSTEM_MODEL name { ... }`."""

    name: str
    items: tuple[ModelItem, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Start:
    """`START -> task`; the target is the last token."""

    target: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Agent:
    """`AGENT name LEVEL n { ... }`."""

    name: str
    level: Number | None
    items: tuple[AgentItem, ...]
    start: int
    end: int


TaskItem = Step | Next | Success | Invariant | BareCondition | Evaluation | Entry
ModelItem = Axiom | Heuristic | Prediction | Entry
AgentItem = Start | Task | SystemModel | Entry
TopItem = Agent | Task | SystemModel | Entry
Node = (
    Value
    | Condition
    | Entry
    | TaskItem
    | ModelItem
    | AgentItem
    | TopItem
    | Check
    | Edge  # every kind of node
)

# ---- the whole -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tokens:
    """Kinds and offsets of the tokens, side by side, `$END` last; what lies between is blank or comment."""

    kinds: list[int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.kinds)


@dataclass(frozen=True, slots=True)
class Origin:
    """A stretch of a put-together text that came from a file: text[start:end] is the file's from `at` on."""

    start: int
    end: int
    at: int
    file: str
    lines: Lines


class Source:
    """A text with its tokens and the findings of the parser; finds lines, makes diagnostics.

    Where the text was put together from several files (imports.py), `origins` says what came from where, and
    findings are told in the file that they are about. `partial` says that something is missing from the text.
    """

    __slots__ = ("_lines", "name", "origins", "partial", "problems", "text", "tokens")

    def __init__(self, name: str, text: str, tokens: Tokens, problems: tuple[Diagnostic, ...] = ()) -> None:
        self.name = name
        self.text = text
        self.tokens = tokens
        self.problems = problems
        self.origins: tuple[Origin, ...] = ()
        self.partial = False
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        """Offsets of the text to lines and columns."""
        if self._lines is None:
            self._lines = Lines(self.text)
        return self._lines

    def line(self, token: int) -> int:
        """The line of a token, from 1."""
        return self.lines.line(self.tokens.starts[token])

    def offsets(self, start: int, end: int) -> tuple[int, int]:
        """The characters of tokens start to end (exclusive)."""
        return self.tokens.starts[start], self.tokens.ends[max(start, end - 1)]

    def origin(self, offset: int) -> Origin | None:
        """The stretch that holds a character; None where the text is one file's."""
        if not self.origins:
            return None
        index = bisect_right(self.origins, offset, key=lambda item: item.start) - 1
        return self.origins[max(0, index)]

    def where(self, token: int) -> str:
        """`line 12`, or `line 12 of shared.spak` where that is another file."""
        origin = self.origin(self.tokens.starts[token])
        if origin is None or not origin.file:
            return f"line {self.line(token)}"
        line = origin.lines.line(self.tokens.starts[token] - origin.start + origin.at)
        return f"line {line} of {origin.file}"

    def diagnostic(
        self,
        severity: Severity,
        code: str,
        message: str,
        hint: str,
        start: int,
        end: int,
        fix: tuple[Edit, ...] | None = None,
    ) -> Diagnostic:
        """A finding at the characters start to end, told in the file that they came from."""
        end = max(start, end)
        origin = self.origin(start)
        lines, file = self.lines, ""
        if origin is not None:
            shift = origin.at - origin.start
            start, end = start + shift, min(end, origin.end) + shift
            lines, file, fix = origin.lines, origin.file, self._moved(fix, origin)
        line, column = lines.place(start)
        end_line, end_column = lines.place(end)
        return Diagnostic(
            severity, code, message, hint, start, end, line, column, end_line, end_column, fix, file
        )

    def _moved(self, fix: tuple[Edit, ...] | None, origin: Origin) -> tuple[Edit, ...] | None:
        """A fix in the file's own offsets; none when it reaches into another file."""
        moved = []
        for start, end, text in fix or ():
            place = self.origin(start)
            if place is None or place.file != origin.file or end > place.end:
                return None
            shift = place.at - place.start
            moved.append((start + shift, end + shift, text))
        return tuple(moved) if fix else None


@dataclass(frozen=True)
class Spec:
    """The parsed text. It is immutable and always there, with less in it where the text was broken."""

    items: tuple[TopItem, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def hash(self) -> str:
        """The hash of the meaning: spans, layout, comments and the case of keys of settings left out."""
        return canon.content_hash([without_spans(item) for item in self.items])

    @property
    def agent(self) -> Agent | None:
        """The AGENT of the file, if it has one."""
        return next((item for item in self.items if isinstance(item, Agent)), None)

    def tasks(self) -> Iterator[Task]:
        """Every task, in order of declaration."""
        for item in self.items:
            if isinstance(item, Task):
                yield item
            elif isinstance(item, Agent):
                yield from (inner for inner in item.items if isinstance(inner, Task))

    def models(self) -> Iterator[SystemModel]:
        """Every SYSTEM_MODEL, inside the AGENT or beside it."""
        for item in self.items:
            if isinstance(item, SystemModel):
                yield item
            elif isinstance(item, Agent):
                yield from (inner for inner in item.items if isinstance(inner, SystemModel))


_SETTINGS_BELOW = frozenset({"CONFIG", "BUDGET", "RULE"})


def without_spans(node: Any, setting: bool = True) -> Any:
    """The node as plain JSON without spans; `setting` says that an entry's key is one of a setting."""
    if isinstance(node, Entry):
        key = node.key.upper() if setting else node.key
        below = setting and key in _SETTINGS_BELOW
        return ["Entry", key, without_spans(node.value, below), without_spans(node.default, False)]
    if isinstance(node, MapValue):
        return ["MapValue", [without_spans(item, setting) for item in node.entries]]
    if isinstance(node, Text):
        return ["Text", node.value]
    if isinstance(node, tuple):
        return [without_spans(item, setting) for item in node]
    if node is None or isinstance(node, (str, int, float)):
        return node
    inside = setting and isinstance(node, (Agent, Task, SystemModel))
    names = [name for name in node.__slots__ if name not in ("start", "end")]
    return [type(node).__name__, *(without_spans(getattr(node, name), inside) for name in names)]
