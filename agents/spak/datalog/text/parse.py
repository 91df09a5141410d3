"""Tokens to the tree: a recursive descent that accepts the seed's dialect and says what each form is in
Mangle.

`parse(text, file)` never raises for bad text: every fault is a finding, and the reading goes on after the
next dot (at most MAX_FINDINGS findings). `parse_atom` reads one atom of a query. Depth of nesting is bounded.
"""

from __future__ import annotations

from spak.datalog.errors import PolicyError
from spak.datalog.syntax import (
    Atom,
    Clause,
    Compare,
    Const,
    Let,
    Literal_,
    Part,
    Source,
    Term,
    Transform,
    Var,
)
from spak.datalog.text.decl import DeclReader
from spak.datalog.text.reader import Reader, Stop
from spak.datalog.text.scan import MAX_FINDINGS, scan

_OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


def parse(text: str, file: str = "") -> Source:
    """The file's clauses and declarations, with every finding."""
    tokens, findings = scan(text, file)
    reader = _Clauses(tokens, findings)
    reader.read_all()
    found = sorted(reader.findings, key=lambda item: (item.place.start, item.code))
    errors = [item for item in found if item.severity == "error"]
    if len(errors) > MAX_FINDINGS:
        found = errors[:MAX_FINDINGS]
    return Source(file, tuple(reader.clauses), tuple(reader.decls), tuple(found))


def parse_atom(text: str) -> Atom:
    """One atom, a final dot or question mark allowed. Raises: PolicyError `policy.query`."""
    tokens, findings = scan(text, "query")
    reader = _Clauses(tokens, findings)
    try:
        atom = reader.atom()
        reader.take_if(".") or reader.take_if("?")
        if reader.now.kind != "end":
            reader.fail("one atom was expected")
    except Stop:
        pass
    for item in reader.findings:
        if item.severity == "error":
            raise PolicyError("policy.query", f"{text[:200]!r} is no atom: {item.message}", item.hint)
    return atom


class _Clauses(DeclReader, Reader):
    """The statements of a file."""

    def read_all(self) -> None:
        self.clauses: list[Clause] = []
        while self.now.kind != "end":
            before = self.at
            try:
                self.statement()
            except Stop:
                self.skip_statement()
            if self.at == before:
                self.at += 1

    def statement(self) -> None:
        token = self.now
        if token.kind == "variable" and token.value == "Decl":
            self.declaration()
        elif token.kind == "variable" and token.value in ("Package", "Use"):
            hint = "put the clauses of all files of a policy side by side"
            self.note("policy.unsupported", f"`{token.value}` is not supported", token.place, hint)
            raise Stop
        elif token.value == "." and self.peek().kind == "ident":
            self.fail(
                f"`.{self.peek().value}` is Soufflé", "declare with `Decl p(X, Y) bound [/name, /string].`"
            )
        else:
            self.clause()

    def clause(self) -> None:
        first = self.now
        head = self.atom(head=True)
        if head.pred.startswith(":"):
            self.note("policy.builtin", f"{head.pred} is built in and cannot be defined", head.place)
            raise Stop
        body: list[Part] = []
        transform = None
        if self.take_if(":-"):
            body.append(self.part())
            while self.take_if(","):
                body.append(self.part())
            if self.take_if("|>"):
                transform = self.transform()
        elif self.now.value == "<-":
            self.fail("rules are written `head :- body.`")
        self.end_of_clause()
        self.clauses.append(Clause(head, tuple(body), transform, self.span(first.place)))

    def part(self) -> Part:
        """One literal of a body."""
        token = self.now
        if token.value == "!" or (
            token.kind == "ident" and token.value == "not" and self.peek().value != "("
        ):
            self.at += 1
            if token.value == "not":
                self.dialect("negation is written `!`", token.place, "!")
            return self.negation()
        if token.kind == "mark" and token.value in ("<-", "<+", "[-", "[+"):
            hint = "compare the ends: `p(X)@[From, To], clock(Now), From <= Now`"
            self.note("policy.unsupported", "temporal operators are not evaluated yet", token.place, hint)
            raise Stop
        if token.kind == "function":
            found = self.function_literal()
            if found is not None:
                return found
        elif token.kind in ("ident", "builtin"):
            return Literal_(self.atom())
        left = self.term()
        operator = self.now
        if operator.value not in _OPERATORS:
            self.fail("a comparison was expected here", "write `X < Y`, `X = Y` or a predicate")
        self.at += 1
        return Compare(operator.value, left, self.term(), self.span(token.place))

    def negation(self) -> Part:
        if self.now.kind == "function":
            found = self.function_literal()
            if found is not None:
                return Literal_(found.atom, True)
        if self.now.kind not in ("ident", "builtin"):
            self.fail("a predicate was expected after `!`")
        return Literal_(self.atom(), True)

    def function_literal(self) -> Literal_ | None:
        """`fn:string_contains(X, "y")` as a literal, which is `:string:contains`; None for a term."""
        start, token = self.at, self.now
        term = self.term()
        if self.now.value in _OPERATORS:
            self.at = start
            return None
        name = ":" + token.value.removeprefix("fn:").replace("_", ":", 1)
        self.dialect(f"a test is written `{name}(..)`", token.place, name)
        args = term.args if not isinstance(term, Var | Const) and hasattr(term, "args") else ()
        return Literal_(Atom(name, args, self.span(token.place)))

    def transform(self) -> Transform:
        keys: tuple[Var, ...] | None = None
        lets: list[Let] = []
        more = True
        while more:
            token = self.now
            if token.value == "do":
                if keys is not None or lets:
                    self.note("policy.unsupported", "one `do`, and it comes first", token.place)
                    raise Stop
                self.at += 1
                keys = self.grouping()
            elif token.value == "let":
                lets.append(self.let())
            else:
                self.fail("`do fn:group_by(..)` or `let X = ..` was expected here")
            more = self.take_if(",") or self.take_if("|>")
        return Transform(keys, tuple(lets))

    def grouping(self) -> tuple[Var, ...]:
        token = self.now
        term = self.term()
        if token.value != "fn:group_by":
            self.note("policy.builtin", "after `do` comes fn:group_by(..)", token.place)
            raise Stop
        args: tuple[Term, ...] = getattr(term, "args", ())
        if not all(isinstance(arg, Var) for arg in args):
            self.note("policy.builtin", "fn:group_by takes variables", token.place)
            raise Stop
        return tuple(arg for arg in args if isinstance(arg, Var))

    def let(self) -> Let:
        token = self.now
        self.at += 1
        variable = self.now
        if variable.kind != "variable":
            self.fail("a variable was expected after `let`")
        self.at += 1
        self.need("=")
        return Let(variable.value, self.term(), self.span(token.place))
