"""The layout of a policy file: `format_text` gives the same clauses and comments in the form of Mangle.

A clause stays on one line if its author put it on one line and it fits; else each literal has its own.
Comments stay with the clause, literal or column that they follow, or before which they stand on a line of
their own; at most one blank line stays between two things. A form of the seed's dialect becomes Mangle's. The
result is read again: if it does not say the same, the text is left as it was.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from spak.datalog.intervals import COLUMNS, MARK
from spak.datalog.syntax import Bound, Clause, Compare, Decl, Finding, Place, Source
from spak.datalog.text.decl import show_bound
from spak.datalog.text.format import format_clause, show_atom_, show_part, show_stages
from spak.datalog.text.parse import parse
from spak.datalog.text.scan import Token, comments, scan
from spak.incoming import ended_as

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Laid:
    """The text as it should stand; the same text again where `diagnostics` holds an error."""

    text: str
    diagnostics: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no diagnostic is an error."""
        return not any(item.severity == "error" for item in self.diagnostics)


@dataclass(slots=True)
class _Piece:
    """A line of a statement: its text, where it begins and ends in the source, and its comments."""

    text: str
    start: int
    end: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def format_text(text: str, file: str = "") -> Laid:
    """The file laid out anew. Never raises: what is no policy comes back with what is wrong with it."""
    source = parse(text, file)
    if any(item.severity == "error" for item in source.findings):
        return Laid(text, source.findings)
    made = ended_as(_Layout(text, source).text(), text)
    parsed = parse(made, file)
    same = (parsed.clauses, parsed.decls) == (source.clauses, source.decls)
    if not same or _words(made) != _words(text):
        return Laid(text, source.findings)
    return Laid(made, source.findings)


def _words(text: str) -> list[str]:
    return sorted(comment for _, comment in comments(text))


class _Layout:
    def __init__(self, text: str, source: Source) -> None:
        self.source = text
        self.starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self.things: list[Clause | Decl] = sorted(
            (*source.clauses, *source.decls), key=lambda thing: thing.place.start
        )
        self.comments = comments(text)
        self.tokens = scan(text, "")[0]

    def line(self, at: int) -> int:
        return bisect_right(self.starts, at)

    def text(self) -> str:
        lines: list[str] = []
        last = 0
        waiting = list(self.comments)

        def gap(start: int) -> None:
            if lines and self.line(start) - self.line(max(last - 1, 0)) > 1:
                lines.append("")

        for at, thing in enumerate(self.things):
            while waiting and waiting[0][0] < thing.place.start:
                start, comment = waiting.pop(0)
                gap(start)
                lines.append(comment)
                last = start + 1
            inside = []
            while waiting and waiting[0][0] < thing.place.end:
                inside.append(waiting.pop(0))
            behind = []
            end, following = self.line(thing.place.end), self.following(at)
            while waiting and waiting[0][0] < following and self.line(waiting[0][0]) == end:
                behind.append(waiting.pop(0))
            gap(thing.place.start)
            made = self.thing(thing, inside, bool(behind))
            if behind:
                kept = self.source[thing.place.end : behind[0][0]]
                same = made == [self.source[thing.place.start : thing.place.end]]
                made[-1] += (kept if same and len(kept) > 1 and kept.isspace() else "  ") + behind[0][1]
            lines += made
            last = behind[-1][0] + 1 if behind else thing.place.end
        for start, comment in waiting:
            gap(start)
            lines.append(comment)
            last = start + 1
        return "\n".join(lines) + "\n" if lines else ""

    def following(self, at: int) -> int:
        return self.things[at + 1].place.start if at + 1 < len(self.things) else len(self.source) + 1

    def thing(self, thing: Clause | Decl, inside: list[tuple[int, str]], behind: bool) -> list[str]:
        if isinstance(thing, Decl):
            return self.decl(thing, inside)
        one = format_clause(thing)
        alone = self.line(thing.place.start) == self.line(thing.place.end - 1)
        if not inside and (not thing.body or (alone and len(one) <= WIDTH)):
            return [one]
        head = _Piece(show_atom_(thing.head), thing.place.start, thing.head.place.end)
        pieces = []
        for part in thing.body:
            place = part.place if isinstance(part, Compare) else part.atom.place
            pieces.append(_Piece(show_part(part), place.start, place.end))
        stages = show_stages(thing)
        if stages:
            mark = self.token("|>", thing.place)
            pieces.append(_Piece("|> " + stages, mark.place.start, thing.place.end))
        if not pieces:
            return self.single(one, inside)
        self.place(inside, pieces, head)
        last = pieces[
            -1
        ]  # what follows its dot is read as a comment behind the clause: there is room for one
        last.before += last.after if behind else last.after[1:]
        last.after = [] if behind else last.after[:1]
        lines = [f"{head.text} :-" + self.tail(head)]
        for at, piece in enumerate(pieces):
            lines += ["    " + comment for comment in piece.before]
            following = pieces[at + 1].text if at + 1 < len(pieces) else ""
            end = "." if not following else "" if following.startswith("|>") else ","
            lines.append(f"    {piece.text}{end}" + self.tail(piece))
            lines += ["    " + comment for comment in piece.after[1:]]
        return lines

    def decl(self, decl: Decl, inside: list[tuple[int, str]]) -> list[str]:
        name = decl.atom.pred.removesuffix(MARK)
        names = decl.names[: -len(COLUMNS)] if decl.temporal else decl.names
        rest = _parts(decl)
        if rest is None:
            return [line.rstrip() for line in self.source[decl.place.start : decl.place.end].split("\n")]
        one = f"Decl {name}({', '.join(names)})" + "".join(" " + part for part in rest) + "."
        if not inside:
            alone = self.line(decl.place.start) == self.line(decl.place.end - 1)
            if (alone and len(one) <= WIDTH) or not rest:
                return [one]
            first = f"Decl {name}({', '.join(names)})"
            return [first, *(f"    {part}" for part in rest[:-1]), f"    {rest[-1]}."]
        columns = self.columns(decl)
        if len(columns) != len(names) or not columns:
            return self.single(one, inside)
        pieces = [
            _Piece(column, token.place.start, token.place.end)
            for column, token in zip(names, columns, strict=True)
        ]
        head = _Piece("", decl.place.start, self.token("(", decl.place).place.end)
        self.place(inside, pieces, head)
        lines = [f"Decl {name}(" + self.tail(head)]
        for at, piece in enumerate(pieces):
            lines += ["    " + comment for comment in piece.before]
            lines.append(f"    {piece.text}{',' if at < len(pieces) - 1 else ''}" + self.tail(piece))
            lines += ["    " + comment for comment in piece.after[1:]]
        lines.append(")" + "".join(" " + part for part in rest) + ".")
        return lines

    def single(self, one: str, inside: list[tuple[int, str]]) -> list[str]:
        """The statement on one line, its comments before it."""
        return [*(comment for _, comment in inside), one]

    def place(self, inside: list[tuple[int, str]], pieces: list[_Piece], head: _Piece) -> None:
        """Each comment to the piece that it follows on its line, else before the next one."""
        for start, comment in inside:
            older = [piece for piece in [head, *pieces] if piece.start < start]
            last = older[-1] if older else None
            if last is not None and (self.line(last.end) == self.line(start) or last is pieces[-1]):
                last.after.append(comment)
                continue
            following = next((piece for piece in pieces if piece.start > start), pieces[-1])
            following.before.append(comment)
        pieces[0].before[:0] = head.after[1:]

    @staticmethod
    def tail(piece: _Piece) -> str:
        return "  " + piece.after[0] if piece.after else ""

    def token(self, value: str, place: Place) -> Token:
        return next(
            token for token in self.tokens if token.value == value and place.start <= token.place.start
        )

    def columns(self, decl: Decl) -> list[Token]:
        """The tokens of a declaration's column names."""
        found: list[Token] = []
        depth = 0
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if not decl.place.start < token.place.start < decl.place.end:
                continue
            if token.kind == "mark" and token.value in "([{":
                depth += 1
            elif token.kind == "mark" and token.value in ")]}":
                depth -= 1
                if depth == 0:
                    break
            elif depth == 1 and before.value in ("(", ",") and token.kind in ("variable", "wild"):
                found.append(token)
        return found


def _parts(decl: Decl) -> list[str] | None:
    """`descr`, `bound` and `inclusion` of a declaration; None where a type cannot be written back."""
    if any(_opaque(bound) for row in decl.bounds for bound in row):
        return None
    found = ["temporal"] if decl.temporal else []
    bounds = [row[: -len(COLUMNS)] for row in decl.bounds] if decl.temporal else decl.bounds
    if decl.temporal and all(bound.kind == "any" for row in bounds for bound in row):
        bounds = []
    if decl.descr:
        found.append(f"descr [{', '.join(map(show_atom_, decl.descr))}]")
    found += [f"bound [{', '.join(map(show_bound, row))}]" for row in bounds]
    if decl.inclusions:
        found.append(f"inclusion [{', '.join(map(show_atom_, decl.inclusions))}]")
    return found


def _opaque(bound: Bound) -> bool:
    """Fields of a struct, the one thing that a bound does not keep."""
    return bound.kind == "struct" or any(_opaque(item) for item in bound.args)
