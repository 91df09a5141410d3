"""Another name for a symbol of Python, in all files at once or not at all.

Takes a Model that is up to date, a symbol and the new name; gives the files as they would be. Which places
name the symbol is known in two ways that do not share code: the scopes of the language reference say it for
names and imports, the edges of the model for attributes. Then the changed files are linked once more in
memory: the edges must be those of before with the one name replaced, so a place that was missed, or a name
that now means something else, is a refusal. So is a place that names the symbol and cannot be followed. It
writes nothing, and knows nothing of strings, comments and documents: strings that are the name are listed.
"""

from __future__ import annotations

import builtins
import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spak.errors import UsageError
from spak.world import scan
from spak.world.ask import Model, Symbol
from spak.world.extract import extract
from spak.world.facts import MOST_LINES, split_root
from spak.world.index import symbol_id
from spak.world.link import File, Links, link
from spak.world.python_names import Name, Scope, Text
from spak.world.rename_data import Reads, called_by_name, imported, odd_all, outside_base
from spak.world.values import EXTERNAL, steps_of

_MOST_NAMED = 5
Target = tuple[str, str]
"""File and QUAL."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """Files before and after, how many places changed, and where a string is the name: path and line."""

    files: dict[str, tuple[bytes, bytes]]
    places: int
    strings: list[tuple[str, int]]


def rename(model: Model, target: Symbol, new: str, leave: bool = False) -> Renamed:
    """`leave` does it although places that name the symbol could not be followed, or names are read as data.

    Raises: UsageError `world.rename_*`, `world.language`.
    """
    return _Renaming(model, target, new, leave).run()


class _Renaming:
    def __init__(self, model: Model, target: Symbol, new: str, leave: bool) -> None:
        self.model, self.target, self.new, self.leave = model, target, new, leave
        self.name = target.qual.rpartition(".")[2].partition("~")[0]
        self.paths = {
            row[0]: row[1]
            for row in model.store.rows(
                "SELECT path, hash FROM file WHERE tree = ? AND content != 0", [model.tree]
            )
        }
        self.texts: dict[str, Text] = {}
        self.data: dict[str, bytes] = {}
        self.values = model.resolver()
        self.places: dict[str, set[Name]] = {}
        self.reads = Reads(model, self.values, target, self.name)

    def run(self) -> Renamed:
        self._allowed()
        family = self._family() if "." in self.target.qual else {(self.target.path, self.target.qual)}
        self._read()
        for path, scope in self._carriers(family):
            self._of_scope(path, scope)
        self._attributes({one.id for path, qual in family for one in self.model.symbols(f"{path}#{qual}")})
        self._uncoded()
        if not self.leave:
            self.reads.of_files(family, {path: self._text(path) for path in sorted(self.data)}, {*self.paths})
        return self._checked(family)

    # may it be renamed

    def _allowed(self) -> None:
        symbol, name, new = self.target, self.name, self.new
        if not symbol.path.endswith((".py", ".pyi")):
            raise UsageError("world.language", "symbols of Python are renamed", f"{symbol.path} is another")
        normal = unicodedata.normalize("NFKC", new) == new
        if not normal or not new.isidentifier() or keyword.iskeyword(new) or new == name or _special(new):
            raise UsageError(
                "world.rename_name", f"{new!a} is no new name for {symbol.id}", "letters, digits and `_`"
            )
        holder, _, _ = symbol.qual.rpartition(".")
        inside = self.values.symbol(symbol.path, holder).get("k", "") if holder else "module"
        if symbol.kind == "module" or inside not in ("module", "class") or "~" in holder or _special(name):
            raise UsageError(
                "world.rename_kind",
                f"{symbol.id} is no function, class or variable of a module or class with a name of its own",
                "name one of those; special names such as __init__ belong to the language",
            )
        about = self.values.symbol(symbol.path, symbol.qual)
        decorators = [chain.partition("(")[0] for chain in about.get("dec", ())]
        if any(chain.rpartition(".")[2] == "fixture" for chain in decorators):
            raise UsageError(
                "world.rename_kind", f"{symbol.id} is a fixture", "tests name it by their parameters"
            )
        if called_by_name(name) or called_by_name(new):
            raise UsageError(
                "world.rename_kind", f"{name} or {new} is a name that tests are found by", "rename it by hand"
            )
        if not self.leave:
            self.reads.of_symbol(holder)
            if symbol.kind == "class":
                self._unread()

    def _unread(self) -> None:
        """No base from outside of the tree reads the name of a class."""
        for where, holder, chain, base in self._from_outside(self.target.path, self.target.qual):
            own = [one for each in getattr(base, "__mro__", ()) for one in vars(each).values()]
            names = {name for one in own for name in getattr(getattr(one, "__code__", None), "co_names", ())}
            if base is None or names & {"__name__", "__qualname__"}:
                raise UsageError(
                    "world.rename_unsafe",
                    f"{holder} in {where} has the base {chain[:40]!a}, which may read its name as data",
                    "look at what becomes of it; --leave renames nevertheless",
                )

    def _family(self) -> set[Target]:
        """The member with those that it replaces and that replace it."""
        found: set[str] = set()
        front = [symbol.id for symbol in self.model.symbols(f"{self.target.path}#{self.target.qual}")]
        while front:
            found.update(front)
            edges = self.model.callers(front) + self.model.callees(front)
            front = [one for edge in edges if edge[3] == "over" for one in edge[:2] if one not in found]
        family = {_parts(one) for one in found}
        for path, qual in family:
            self._bases(path, qual.rpartition(".")[0])
            self._untaken(path, qual.rpartition(".")[0], family)
            holder = self.values.symbol(path, qual.rpartition(".")[0])
            self.reads.of_class(path, qual.rpartition(".")[0])
            for bind in holder.get("names", {}).get(self.name, ()):
                for value in self.values.value_of(path, bind) if len(bind) == 4 else ():
                    if value[0] == "I" and self.values.member(value, "__set_name__"):
                        self.reads.found.append(f"{path}#{qual} is told its name by __set_name__")
            if holder.get("dec") and self.values.symbol(path, qual).get("k") in ("variable", "constant"):
                raise UsageError(
                    "world.rename_kind",
                    f"py:{path}#{qual} is a field of a decorated class",
                    "its constructor may have a parameter of that name",
                )
        return family

    def _bases(self, path: str, qual: str) -> None:
        """A base from outside of the tree may have the name, and its own code then calls this member."""
        for where, holder, chain, base in self._from_outside(path, qual):
            if not outside_base(base) or hasattr(base, self.name) or hasattr(base, self.new):
                raise UsageError(
                    "world.rename_unsafe",
                    f"{holder} in {where} has the base {chain[:40]!a}, which is not in the tree and may"
                    f" have {self.name} itself",
                    "rename by hand, or give the class a base in the tree",
                )

    def _from_outside(self, path: str, qual: str) -> Iterator[tuple[str, str, str, Any]]:
        """The bases of a class that are not in the tree: file, class, chain, what it is or None."""
        for where, holder in self.values.mro(path, qual):
            for chain in self.values.symbol(where, holder).get("bases", ()) if where else ():
                scope = holder.rpartition(".")[0]
                if all(value[0] != "C" for value in self.values.evaluate(where, scope, chain)):
                    yield where, holder, chain, imported(self.values, where, chain)

    def _untaken(self, path: str, qual: str, family: set[Target]) -> None:
        """The new name is in none of the classes above and below, and no class beside gives the old one."""
        below, front = set(), [self.model.symbols(f"{path}#{qual}")[0].id]
        while front:
            below.update(front)
            edges = self.model.callers(front)
            front = [edge[0] for edge in edges if edge[3] == "base" and edge[0] not in below]
        for where, holder in {*self.values.mro(path, qual), *map(_parts, below)}:
            symbol = self.values.symbol(where, holder) if where else {}
            if self.new in symbol.get("names", {}) or self.new in symbol.get("attrs", {}):
                raise self._taken(where, 0, holder)
        for where, holder in {one for low in below for one in self.values.mro(*_parts(low))}:
            names = self.values.symbol(where, holder).get("names", {}) if where else {}
            if self.name in names and (where, f"{holder}.{self.name}") not in family:
                raise UsageError(
                    "world.rename_unsafe",
                    f"{holder} in {where} has {self.name} too, and a class has both as bases",
                    "give one of them another name by hand",
                )

    def _taken(self, path: str, line: int, holder: str) -> UsageError:
        where = f"{path}:{line}" if line else path
        return UsageError(
            "world.rename_name",
            f"{self.new} is in use in {holder or 'the module'}, {where}",
            "choose another name",
        )

    # where it is named

    def _read(self) -> None:
        """The files that have the word, the new one, or names that they do not say."""
        found = {item.path: item for item in scan.files(self.model.root)}
        either = b"|".join(re.escape(name.encode()) for name in (self.name, self.new))
        words = re.compile(rb"%s|import[ (]+\*" % either)
        for path, digest in sorted(self.paths.items()):
            if not path.endswith((".py", ".pyi")):
                continue
            data = scan.read(self.model.root, found[path])[0] if path in found else b""
            if (hashlib.sha256(data).hexdigest() if data else "") != digest:
                raise UsageError("world.stale", f"{path} changed just now", "try again")
            text = data if data.isascii() else unicodedata.normalize("NFKC", data.decode()).encode()
            if words.search(text):
                self.data[path] = data

    def _text(self, path: str) -> Text:
        if path not in self.texts:
            try:
                self.texts[path] = Text(self.data[path])
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise UsageError(
                    "world.rename_unparsed",
                    f"{path} has the name, and Python does not read it: {str(error)[:100]}",
                    "mend it first",
                ) from error
        return self.texts[path]

    def _carriers(self, family: set[Target]) -> list[tuple[str, Scope]]:
        """The scopes in which the name is the symbol: those that define it, and those that import it."""
        found: dict[Scope, str] = {}
        holders = {(path, qual.rpartition(".")[0]) for path, qual in family}
        for path in {path for path, _ in holders}:
            text = self._text(path)
            for scope in {text.module, *(one.scope for one in text.names)}:
                if (path, scope.qual) in holders and scope.kind in ("module", "class"):
                    found[scope] = path
        own = set(found)
        while "." not in self.target.qual and self._grown(found):
            pass
        for scope, path in found.items():
            bound = scope.binds.get(self.name, set())
            imports = [
                one for one in self._text(path).imports if one.scope is scope and one.bound == self.name
            ]
            strange = [one for one in imports if not self.places.get(path, set()).issuperset(one.places)]
            fits = ({"def"}, {"other"}) if scope in own else ({"import"},) if imports else (set(),)
            before = scope.early(self.name)
            if strange or bound not in fits or before:
                raise UsageError(
                    "world.rename_unsafe",
                    f"{self.name} has several meanings in {scope.qual or 'the module'}, {path}",
                    "give one of them another name by hand",
                )
        listed = {path: odd_all(self._text(path).tree) for path in {*found.values()}}
        for path, line in listed.items():
            if line and "." not in self.target.qual and not self.leave:
                raise UsageError(
                    "world.rename_unsafe",
                    f"{path}:{line} makes `__all__` by more than a list of names",
                    "write the names in one list",
                )
        return [(path, scope) for scope, path in found.items()]

    def _grown(self, found: dict[Scope, str]) -> bool:
        """Add the scopes that import the name from one of these; whether there was one."""
        before = len(found)
        modules = {path for scope, path in found.items() if scope.kind == "module"}
        for path in self.data:
            for one in self._text(path).imports:
                if one.name not in (self.name, "*"):
                    continue
                source = self.values.target(path, one.level, one.module)
                if source is None or source[0] != "M" or source[1] not in modules:
                    continue
                self.places.setdefault(path, set()).update(one.places)
                shown = self.values.all_names(source[1])
                if not one.places and (
                    self.name not in shown if shown is not None else self.name.startswith("_")
                ):
                    continue
                if one.bound in (self.name, "*"):
                    found.setdefault(one.scope, path)
        return len(found) > before

    def _of_scope(self, path: str, carrier: Scope) -> None:
        """The places of a file in which the name is that of the scope."""
        for scope in {one.scope for one in self._text(path).names}:
            if scope is not carrier and carrier in scope.around() and scope.early(self.name):
                raise UsageError(
                    "world.rename_unsafe",
                    f"{scope.qual} in {path} reads {self.name} and binds it, so both may be meant",
                    "give one of them another name by hand",
                )
        for one in self._text(path).names:
            inside = carrier in one.scope.around()
            named = inside and one.name == self.new and one.how not in ("attribute", "odd", "listed")
            if named and one.scope.holder(self.new) in carrier.around():
                raise self._taken(path, one.line, one.scope.qual)
            if one.name != self.name or one.how in ("attribute", "odd"):
                continue
            if one.how == "listed":
                if carrier.kind == "module":
                    self.places.setdefault(path, set()).add(one)
            elif inside and one.scope.holder(self.name) is carrier:
                between = one.scope.holder(self.new)
                if between is not carrier and carrier in between.around():
                    raise self._taken(path, one.line, between.qual)
                self._place(path, one)

    def _place(self, path: str, one: Name) -> None:
        if one.how in ("fixed", "odd"):
            raise UsageError(
                "world.rename_unsafe",
                f"{path}:{one.line} names {self.name} in a form that is not rewritten",
                "change that line by hand first: one import or assignment of its own",
            )
        self.places.setdefault(path, set()).add(one)

    def _attributes(self, ids: set[str]) -> None:
        """The places that name it behind a dot: those on the lines of its edges."""
        sites = [
            (*_parts(caller), line)
            for caller, _, line in self.model.unresolved([self.name])
            if caller.startswith("py:")
        ]
        files = {}
        for path, data in self.data.items():
            if self.name.encode() in data:
                body = self.model.facts("body", path)
                files[path] = body, File(path, body, self.values)
                sites += self._outside(path, *files[path])
        if sites and not self.leave:
            shown = ", ".join(f"{path}:{line}" for path, _, line in sites[:_MOST_NAMED])
            raise UsageError(
                "world.rename_unsafe",
                f"{len(sites)} places name {self.name} and could not be followed: {shown}",
                "an annotation of the receiver helps; --leave leaves them as they are",
            )
        lines: dict[tuple[str, str], set[int]] = {}
        for caller, _, _, role, at in self.model.callers(ids):
            if role not in ("over", "def"):
                lines.setdefault(_parts(caller), set()).update(map(int, at.split()))
        for (path, _), wanted in sorted(lines.items()):
            body, file = files[path]
            for user, (role, chain, *at) in (
                (one, ref) for one, refs in body["refs"].items() for ref in refs
            ):
                named = [
                    part for part in chain.split("|") if f".{self.name}" in steps_of(split_root(part)[1])
                ]
                if not wanted.intersection(at) or not named:
                    continue
                file.edges.clear()
                file.unresolved.clear()
                for part in named:
                    file.follow(user, file.scope_of(user, role), role, part, at)
                reached = {symbol_id(edge[1], edge[2]) for edge in file.edges}
                mixed = any(_last(one) == self.name and one not in ids for one in reached)
                many = any(self._steps(part) > 1 for part in named)
                if file.unresolved or mixed or many or not reached & ids or len(at) >= MOST_LINES:
                    raise UsageError(
                        "world.rename_unsafe",
                        f"{path}:{at[0]} names {self.name} more than once, not always this one",
                        "write it on lines of their own",
                    )
            for one in self._text(path).names:
                if one.how in ("attribute", "odd") and one.name == self.name and one.start in wanted:
                    self._place(path, one)

    def _outside(self, path: str, body: Any, file: File) -> Iterator[tuple[str, str, int]]:
        """The places that name it behind something that code from outside of the tree gave, which may be what
        it was given, and those where a class has it from a base outside, or a subclass alone has it. What an
        import from outside holds itself is another thing."""
        for caller, refs in body["refs"].items():
            for role, chain, *lines in refs:
                for part in chain.split("|"):
                    root, rest = split_root(part)
                    steps = steps_of(rest)
                    if f".{self.name}" not in steps:
                        continue
                    scope = file.scope_of(caller, role)
                    until = steps[: steps.index(f".{self.name}")]
                    values = self.values.evaluate(path, scope, root + "".join(until))
                    binds = self.values.binds(path, root) or [["m"] if hasattr(builtins, root) else ["v"]]
                    plain = all(step[0] == "." for step in until) and all(bind[0] in "im" for bind in binds)
                    if not values and root in ("__import__", "sys"):
                        values, plain = (EXTERNAL,), False
                    mine = until and _stem(until[-1]) == _stem(self.target.path)
                    given = root + "".join((*until, f".{self.name}"))
                    below = any(one[0] in "CI" for one in values)
                    based = below and EXTERNAL in self.values.evaluate(path, scope, given)
                    if based or (values == (EXTERNAL,) and (not plain or mine)):
                        yield from ((path, caller, line) for line in lines)

    def _strings(self) -> Iterator[tuple[str, str, int]]:
        """The strings that have the name as a word: path, text, line. In `__all__` they are places."""
        word = re.compile(rf"\b{re.escape(self.name)}\b")
        for path in self.data:
            lines = {one.line for one in self.places.get(path, ())}
            for text, line in self._text(path).strings:
                if line not in lines and word.search(text):
                    yield path, text, line

    def _uncoded(self) -> None:
        """No string has the name as code has it: behind a dot, or before one or a bracket."""
        name = re.escape(self.name)
        code = re.compile(rf"[.:]{name}\b|\b{name}[.(]")
        found = [f"{path}:{line}" for path, text, line in self._strings() if code.search(text)]
        if found and not self.leave:
            raise UsageError(
                "world.rename_unsafe",
                f"{len(found)} strings name {self.name} as code does: {', '.join(found[:_MOST_NAMED])}",
                "look at what becomes of them; --leave leaves them as they are",
            )

    def _steps(self, chain: str) -> int:
        """How often a chain goes through an attribute of the name."""
        return steps_of(split_root(chain)[1]).count(f".{self.name}")

    # is it the same program

    def _checked(self, family: set[Target]) -> Renamed:
        """The files as they would be, if all else means what it meant."""
        after = {path: self._text(path).replaced(places, self.new) for path, places in self.places.items()}
        facts = {path: extract("python", data) for path, data in after.items()}
        dependents = self.model.dependents(after)
        was, now = (
            self.model.resolver(),
            self.model.resolver({path: face for path, (face, _) in facts.items()}),
        )
        strings = [(path, line) for path, text, line in self._strings() if text == self.name]
        left = set(strings) if self.leave else set()  # `getattr` by the old name means nothing then
        for path in sorted({*after, *dependents}):
            body = self.model.facts("body", path)
            old = link(path, body, was)
            new = link(path, facts[path][1] if path in facts else body, now)
            before, then = self._mapped(old, path, family), self._mapped(new, path, set())
            if other := {(path, row[-1]) for row in before ^ then} - left:
                where, line = min(other)
                raise UsageError(
                    "world.rename_unsafe",
                    f"{where}:{line} would not mean what it means now",
                    "look at that line: it may name the symbol in a way that is not followed",
                )
        places = sum(map(len, self.places.values()))
        return Renamed({path: (self.data[path], data) for path, data in after.items()}, places, strings)

    def _mapped(self, links: Links, path: str, family: set[Target]) -> set[tuple[Any, ...]]:
        """Edges and unresolved places with the new name in place of the old one."""

        def qual(where: str, old: str) -> str:
            parts = old.split(".")
            for own, named in family:
                *above, _ = named.split(".")
                last = parts[len(above)].partition("~") if len(parts) > len(above) else ("", "", "")
                if where == own and parts[: len(above)] == above and last[0] == self.name:
                    parts[len(above)] = f"{self.new}{last[1]}{last[2]}"
            return ".".join(parts)

        edges = {
            (qual(path, caller), where, qual(where, callee), how, role, lines[0])
            for caller, where, callee, how, role, lines in links.edges
        }
        return edges | {(qual(path, caller), name, line) for caller, name, line in links.unresolved}


def _parts(symbol: str) -> Target:
    path, _, qual = symbol.partition(":")[2].partition("#")
    return path, qual


def _stem(module: str) -> str:
    """The last word of a module's name or path."""
    parts = re.split(r"[./]", module.removesuffix(".py").removesuffix("/__init__"))
    return parts[-1]


def _last(symbol: str) -> str:
    return symbol.rpartition("#")[2].rpartition(".")[2].partition("~")[0]


def _special(name: str) -> bool:
    """Whether the language or a library calls it by its name; two underscores also change it in classes."""
    return name.startswith("__") or (len(name) > 1 and name[0] == name[-1] == "_")
