"""What every part of the parser shares: the token cursor, findings, terms and atoms."""

from __future__ import annotations

from typing import NoReturn

from spak.datalog import values
from spak.datalog.intervals import MARK, OPEN_END, OPEN_START
from spak.datalog.syntax import Apply, Atom, Const, Finding, Place, Term, Var, Wild
from spak.datalog.text.scan import Token

MAX_DEPTH = 60


class Stop(Exception):
    """The statement at hand cannot be read on; its finding is noted."""


class Reader:
    """A cursor over tokens."""

    def __init__(self, tokens: list[Token], findings: list[Finding]) -> None:
        self.tokens, self.findings = tokens, findings
        self.at = 0
        self.depth = 0

    @property
    def now(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def peek(self) -> Token:
        """The token after the next."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def span(self, first: Place) -> Place:
        """The place from a first token to the last one that was read."""
        return Place(
            first.file, first.line, first.column, first.start, self.tokens[max(self.at - 1, 0)].place.end
        )

    def note(self, code: str, message: str, place: Place, hint: str = "", fix: str = "") -> None:
        """Add an error."""
        self.findings.append(Finding(code, "error", message, place, hint, fix))

    def dialect(self, message: str, place: Place, fix: str, hint: str = "") -> None:
        """Add a warning about a form that other dialects read differently."""
        self.findings.append(Finding("policy.dialect", "warning", message, place, hint, fix))

    def fail(self, message: str, hint: str = "") -> NoReturn:
        """Add a syntax error at the next token and leave the clause. Raises: Stop."""
        seen = "the end of the file" if self.now.kind == "end" else repr(str(self.now.value)[:40])
        self.note("policy.syntax", f"{message}; found {seen}", self.now.place, hint)
        raise Stop

    def take_if(self, mark: str) -> bool:
        """Read a mark if it is the next token; gives whether it was."""
        if self.now.kind == "mark" and self.now.value == mark:
            self.at += 1
            return True
        return False

    def need(self, mark: str) -> None:
        """Read a mark. Raises: Stop where another token is next."""
        if not self.take_if(mark):
            self.fail(f"`{mark}` was expected here")

    def end_of_clause(self) -> None:
        """Read the dot; a missing one before a new clause is an error with a fix."""
        if self.take_if("."):
            return
        token, last = self.now, self.tokens[self.at - 1].place
        if token.kind in ("ident", "end") or token.value == "Decl":
            where = Place(last.file, last.line, last.column + last.end - last.start, last.end, last.end)
            self.note("policy.syntax", "a clause ends with a dot", where, "", ".")
            return
        self.fail("`,` or the dot that ends the clause was expected here")

    def skip_statement(self) -> None:
        """Go on after the clause that could not be read."""
        while self.now.kind != "end":
            self.at += 1
            last, following = self.tokens[self.at - 1], self.now
            if following.place.line == last.place.line:
                continue
            starts = following.kind == "ident" or following.value == "Decl"
            if (last.kind == "mark" and last.value == ".") or (starts and following.place.column == 1):
                return

    # ---- atoms and terms ------------------------------------------------------------------------------

    def atom(self, head: bool = False) -> Atom:
        """A predicate with its arguments and perhaps an interval, whose ends `_` leaves open in a head."""
        token = self.now
        if token.kind not in ("ident", "builtin"):
            hint = "predicates begin with a small letter" if token.kind == "variable" else ""
            self.fail("a predicate was expected here", hint)
        self.at += 1
        if not self.take_if("("):
            self.dialect(f"write `{token.value}()`", token.place, f"{token.value}()")
            args: tuple[Term, ...] = ()
        else:
            args = self.terms(")")
        if self.now.value != MARK or self.now.kind != "mark" or token.kind == "builtin":
            return Atom(token.value, args, self.span(token.place))
        interval = self.interval(head)
        return Atom(token.value + MARK, (*args, *interval), self.span(token.place))

    def interval(self, head: bool) -> tuple[Term, Term]:
        """`@[from, to]`, or `@[at]` for an instant."""
        mark = self.now
        self.at += 1
        if not self.take_if("["):
            hint = "write `@[From, To]`"
            self.note("policy.unsupported", "an interval is no value of its own", mark.place, hint)
            raise Stop
        ends: list[Term] = []
        while not self.take_if("]"):
            if ends:
                self.need(",")
            if self.now.kind == "ident" and self.now.value == "now":
                hint = "state the time as a fact, and compare with it: `clock(Now), From <= Now, Now <= To`"
                self.note("policy.unsupported", "a policy has no clock", self.now.place, hint)
                raise Stop
            ends.append(self.term())
        if len(ends) not in (1, 2) or (len(ends) == 1 and isinstance(ends[0], Wild)):
            self.note("policy.syntax", "an interval is `[from, to]`, or `[at]`", self.span(mark.place))
            raise Stop
        first, last = ends[0], ends[-1]
        if head and isinstance(first, Wild):
            first = Const(OPEN_START, first.place, "_")
        if head and isinstance(last, Wild):
            last = Const(OPEN_END, last.place, "_")
        return first, last

    def terms(self, close: str) -> tuple[Term, ...]:
        """Terms with commas between and perhaps one after, up to and with the closing mark."""
        found: list[Term] = []
        while not self.take_if(close):
            if found:
                self.need(",")
                if self.take_if(close):
                    break
            found.append(self.term())
        return tuple(found)

    def term(self) -> Term:
        """Read a term. Raises: Stop."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                self.fail("nested too deep", f"at most {MAX_DEPTH} levels")
            return self._term()
        finally:
            self.depth -= 1

    def _term(self) -> Term:
        token = self.now
        self.at += 1
        match token.kind:
            case "variable":
                return Var(token.value, token.place)
            case "wild":
                return Wild(token.place)
            case "string":
                return Const('"' + token.value, token.place)
            case "name":
                return Const(token.value, token.place)
            case "number":
                if not values.MIN_INT <= token.value <= values.MAX_INT:
                    self.note("policy.syntax", "a number beyond 64 bits", token.place)
                    return Const(0, token.place)
                return Const(token.value, token.place)
            case "date":
                if not values.MIN_INT <= token.value.number <= values.MAX_INT:
                    self.note("policy.syntax", "a time beyond 64 bits of nanoseconds", token.place)
                    return Const(0, token.place)
                return Const(token.value.number, token.place, token.value.text)
            case "float":
                if abs(token.value) == float("inf"):
                    self.note("policy.syntax", "a number that no float can hold", token.place)
                    return Const(0, token.place)
                return Const(values.real(token.value), token.place)
            case "function":
                self.need("(")
                return Apply(token.value, self.terms(")"), self.span(token.place))
            case "mark" if token.value == "[":
                return self._bracket("]", "fn:map", "fn:list", token.place)
            case "mark" if token.value == "{":
                return self._bracket("}", "fn:struct", "fn:struct", token.place)
        self.at -= 1
        hint = ""
        if token.kind == "ident":
            hint = f"a variable is `{token.value.capitalize()}`, a name `/{token.value}`, a string has quotes"
        return self.fail("a term was expected here", hint)

    def _bracket(self, close: str, keyed: str, plain: str, place: Place) -> Term:
        """`[a, b]`, `[k: v]` or `{/f: v}`."""
        items: list[Term] = []
        is_keyed = keyed == plain
        while not self.take_if(close):
            if items:
                self.need(",")
                if self.take_if(close):
                    break
            items.append(self.term())
            if self.take_if(":"):
                is_keyed = True
                items.append(self.term())
            elif is_keyed:
                self.fail("`:` was expected here")
        if is_keyed and len(items) % 2:
            self.note("policy.syntax", "a key without a value", place)
        return Apply(keyed if is_keyed else plain, tuple(items), self.span(place))
