"""`Decl`: the columns of a predicate and their types, in Mangle's form and in the seed's (`X.Type<n>`).

The seed's types are read as bounds: n `/name`, int `/number`, float `/float64`, string `/string`, bool the
two names `/true` and `/false`, `[T]` a list, `{..}` a struct, `A|B` a union.
"""

from __future__ import annotations

from spak.datalog.intervals import COLUMNS, MARK
from spak.datalog.syntax import Apply, Atom, Bound, Const, Decl, Term, Var, Wild
from spak.datalog.text.reader import Reader

BOOL = Bound("union", (Bound("one", value="/true"), Bound("one", value="/false")))
_SEED = {
    "n": Bound("name"),
    "name": Bound("name"),
    "int": Bound("number"),
    "float": Bound("float64"),
    "string": Bound("string"),
    "bool": BOOL,
    "any": Bound("any"),
}
_NAMED = {
    "/name": Bound("name"),
    "/string": Bound("string"),
    "/number": Bound("number"),
    "/float64": Bound("float64"),
    "/bool": BOOL,
    "/any": Bound("any"),
}
_TIME = Bound("number")
_SHAPES = {"list": "list", "map": "map", "struct": "struct", "pair": "pair"}


class DeclReader(Reader):
    """Reads declarations into `decls`."""

    @property
    def decls(self) -> list[Decl]:
        """The declarations read so far."""
        if not hasattr(self, "_decls"):
            self._decls: list[Decl] = []
        return self._decls

    def declaration(self) -> None:
        """Read one `Decl`, whose first word is the next token."""
        first = self.now
        self.at += 1
        name = self.now
        if name.kind != "ident":
            self.fail("the name of a predicate was expected after `Decl`")
        self.at += 1
        names: list[str] = []
        columns: list[Bound | None] = []
        if self.take_if("("):
            while not self.take_if(")"):
                if names:
                    self.need(",")
                    if self.take_if(")"):
                        break
                names.append(self._column(columns))
        temporal, bounds, inclusions, descr = self._parts()
        self.end_of_clause()
        if any(column is not None for column in columns):
            row = tuple(column or Bound("any") for column in columns)
            bounds.insert(0, row)
            types = ", ".join(show_bound(item) for item in row)
            fix = f"Decl {name.value}({', '.join(names)}) bound [{types}]."
            self.dialect("types are written as bounds", self.span(first.place), fix)
        atom = Atom(name.value, tuple(Var(item) for item in names), self.span(name.place))
        for row in bounds:
            if len(row) != len(names):
                self.note("policy.arity", f"{len(row)} bounds for {len(names)} columns", first.place)
                return
        if temporal:
            atom = Atom(name.value + MARK, (*atom.args, *map(Var, COLUMNS)), atom.place)
            bounds = [(*row, _TIME, _TIME) for row in bounds or [(Bound("any"),) * len(names)]]
            names += COLUMNS
        span = self.span(first.place)
        self.decls.append(Decl(atom, tuple(bounds), tuple(inclusions), tuple(names), tuple(descr), span))

    def _column(self, columns: list[Bound | None]) -> str:
        token = self.now
        if token.kind not in ("variable", "wild"):
            self.fail("a column's name was expected here", "columns begin with a capital letter")
        self.at += 1
        if self.now.value == "." and self.peek().value == "Type":
            self.at += 2
            self.need("<")
            columns.append(self._seed_type())
            self.need(">")
        else:
            columns.append(None)
        return str(token.value)

    def _seed_type(self) -> Bound:
        """`n`, `[T]`, `{..}`, `A|B`."""
        options = [self._seed_one()]
        while self.take_if("|"):
            options.append(self._seed_one())
        return options[0] if len(options) == 1 else Bound("union", tuple(options))

    def _seed_one(self) -> Bound:
        token = self.now
        self.depth += 1
        if self.depth > 50:
            self.fail("nested too deep")
        try:
            if self.take_if("["):
                inner = self._seed_type()
                self.need("]")
                return Bound("list", (inner,))
            if self.take_if("{"):
                while not self.take_if("}"):
                    if self.now.kind == "end":
                        self.fail("`}` was expected here")
                    self.at += 1
                return Bound("struct")
            if token.kind == "ident" and token.value in _SEED:
                self.at += 1
                return _SEED[token.value]
            if token.kind == "name":
                self.at += 1
                return bound_of_name(token.value)
            self.fail("a type was expected here", f"one of {', '.join(_SEED)}, [T] or a name")
        finally:
            self.depth -= 1

    def _parts(self) -> tuple[bool, list[tuple[Bound, ...]], list[Atom], list[Atom]]:
        temporal = False
        bounds: list[tuple[Bound, ...]] = []
        inclusions: list[Atom] = []
        descr: list[Atom] = []
        while self.now.kind == "ident":
            word = self.now
            self.at += 1
            if word.value == "temporal":
                temporal = True
                continue
            if word.value not in ("descr", "bound", "inclusion"):
                self.at -= 1
                break
            self.need("[")
            if word.value == "bound":
                bounds.append(tuple(self._bound(term) for term in self._types()))
                continue
            while not self.take_if("]"):
                atom = self.atom()
                self.take_if(",")
                (inclusions if word.value == "inclusion" else descr).append(atom)
        return temporal, bounds, inclusions, descr

    def _types(self) -> tuple[Term, ...]:
        """The terms of a bound list; `.List</x>` is read as `fn:List(/x)`."""
        found: list[Term] = []
        while not self.take_if("]"):
            if found:
                self.need(",")
                if self.take_if("]"):
                    break
            found.append(self._type())
        return tuple(found)

    def _type(self) -> Term:
        first = self.now
        if self.now.value != "." or self.peek().kind != "variable":
            return self.term()
        self.at += 1
        shape = self.now.value
        self.at += 1
        self.need("<")
        self.depth += 1
        if self.depth > 50:
            self.fail("nested too deep")
        args: list[Term] = []
        keyed = False
        while not self.take_if(">"):
            if args and not keyed:
                self.need(",")
            args.append(self._type())
            keyed = self.take_if(":")
        self.depth -= 1
        return Apply(f"fn:{shape}", tuple(args), self.span(first.place))

    def _bound(self, term: Term) -> Bound:
        if isinstance(term, Const) and isinstance(term.value, str):
            return bound_of_name(term.value) if term.value[0] == "/" else Bound("one", value=term.value)
        if isinstance(term, Const):
            return Bound("one", value=term.value)
        if isinstance(term, Apply):
            shape = term.function.removeprefix("fn:").lower()
            if shape == "union":
                return Bound("union", tuple(self._bound(arg) for arg in term.args))
            if shape == "singleton" and term.args and isinstance(term.args[0], Const):
                return Bound("one", value=term.args[0].value)
            if shape in ("list", "pair", "map"):
                return Bound(shape, tuple(self._bound(arg) for arg in term.args))
            if shape in _SHAPES:
                return Bound(_SHAPES[shape])
        if isinstance(term, Wild | Var):
            return Bound("any")
        self.note("policy.types", "no type of a column", term.place, "one of " + ", ".join(_NAMED))
        return Bound("any")


def bound_of_name(text: str) -> Bound:
    """The bound that a name such as `/number` stands for."""
    return _NAMED.get(text) or Bound("prefix", value=text)


def show_bound(bound: Bound) -> str:
    """The bound as Mangle writes it."""
    if bound == BOOL:
        return "/bool"
    if bound.kind in ("prefix", "one"):
        from spak.datalog.values import show

        return bound.value if bound.kind == "prefix" else f"fn:Singleton({show(bound.value)})"
    if bound.kind == "union":
        return f"fn:Union({', '.join(show_bound(item) for item in bound.args)})"
    if bound.kind in _SHAPES:
        return f"fn:{bound.kind.capitalize()}({', '.join(show_bound(item) for item in bound.args)})"
    return "/" + bound.kind
