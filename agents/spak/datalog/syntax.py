"""The tree of a policy: what the parser gives, what checks, engine and checker read. Nothing here computes.

Every node carries its position; `Finding` is what a pass says about one. A constant holds its value in the
inside form of `spak.datalog.values`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from spak.datalog.intervals import is_temporal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: file, line and column from 1, offset and end in characters."""

    file: str = ""
    line: int = 0
    column: int = 0
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding with its place, a hint, and the text that would mend it (`fix`, perhaps empty)."""

    code: str
    severity: Severity
    message: str
    place: Place
    hint: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as commands print it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "fix": self.fix,
        }

    def text(self) -> str:
        """The finding in lines: where, what, how to mend it."""
        lines = [f"{self.place}: {self.severity}: {self.message} [{self.code}]"]
        lines += [f"  hint: {self.hint}"] if self.hint else []
        lines += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    name: str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Wild:
    """`_`, which matches anything."""

    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A value; `text` is how a date was written, which the value does not tell."""

    value: Any
    place: Place = field(default=Place(), compare=False)
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A function applied; lists, maps and structs in brackets are `fn:list`, `fn:map`, `fn:struct`."""

    function: str
    args: tuple[Term, ...]
    place: Place = field(default=Place(), compare=False)


Term = Var | Wild | Const | Apply


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate with its arguments; `pred` of a built-in begins with a colon."""

    pred: str
    args: tuple[Term, ...]
    place: Place = field(default=Place(), compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """The predicate and its number of arguments."""
        return (self.pred, len(self.args))


@dataclass(frozen=True, slots=True)
class Literal_:
    """An atom of a body, negated or not."""

    atom: Atom
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` with op one of < <= > >= = !=."""

    op: str
    left: Term
    right: Term
    place: Place = field(default=Place(), compare=False)


Part = Literal_ | Compare


@dataclass(frozen=True, slots=True)
class Let:
    """`let name = term`; in a grouping transform the term may be a reducer."""

    name: str
    term: Apply | Var | Const | Wild
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Transform:
    """`|> do fn:group_by(keys), let ...`; `keys` is None for a transform without `do`."""

    keys: tuple[Var, ...] | None
    lets: tuple[Let, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A fact (no body) or a rule."""

    head: Atom
    body: tuple[Part, ...] = ()
    transform: Transform | None = None
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Bound:
    """The type of a column: one of values.KINDS, `any`, `prefix`, `one` (a single constant) or `union`."""

    kind: str
    args: tuple[Bound, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Decl:
    """A declaration: `bounds` are alternatives, each one type per column; empty when none were given."""

    atom: Atom
    bounds: tuple[tuple[Bound, ...], ...] = ()
    inclusions: tuple[Atom, ...] = ()
    names: tuple[str, ...] = ()
    descr: tuple[Atom, ...] = ()
    place: Place = field(default=Place(), compare=False)

    @property
    def temporal(self) -> bool:
        """Whether its rows hold for intervals of time."""
        return is_temporal(self.atom.pred)

    @property
    def modes(self) -> tuple[tuple[str, ...], ...]:
        """The signs of each mode, "?" for what is no string."""
        return tuple(
            tuple(str(getattr(arg, "value", '"?'))[1:] for arg in atom.args)
            for atom in self.descr
            if atom.pred == "mode"
        )

    @property
    def external(self) -> bool:
        """Whether its rows come from outside."""
        return any(atom.pred == "external" for atom in self.descr)


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file."""

    name: str
    clauses: tuple[Clause, ...]
    decls: tuple[Decl, ...]
    findings: tuple[Finding, ...]
