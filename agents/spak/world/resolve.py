"""Names, members along the MRO and declared types: what the linker knows of a tree of files.

Takes faces and chains; gives values. Types come from what the text declares (annotations, constructors, what
a function visibly returns), never from guessed data flow; what is not known is no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak.world import scan
from spak.world.annotations import Note, note
from spak.world.facts import CLASSES, RUST, Bind, Symbol, split_root
from spak.world.typed.around import UNCHANGED, Around
from spak.world.values import (
    EXTERNAL,
    MOST,
    TYPED,
    Hit,
    Hits,
    Value,
    Values,
    distinct,
    flat,
    kept,
    merged,
    steps_of,
    told_apart,
)


class Resolver(Around):
    """Answers about one tree of files."""

    @kept
    def module_name(self, path: str, name: str) -> Hits:
        """A name of a module, through imports and `*`."""
        found: list[Hit] = []
        for bind in self.binds(path, name):
            found += self.bound(path, bind, name, "")
        if not found and path.endswith(TYPED):
            found = self.beyond(path, name)
        if found:
            return distinct(found)
        for level, module in self.stars(path) if not path.endswith(TYPED) else ():
            target = self.target(path, level, module)
            if target is not None and target[0] == "M" and target[1] != path:
                shown = self.all_names(target[1])
                if name in shown if shown is not None else level < 0 or not name.startswith("_"):
                    found += [hit._replace(how="import") for hit in self.module_name(target[1], name)]
        if not found and not path.endswith(TYPED):
            self.deps.add(("/", name))
            inner = self.modules.submodule(("M", path), name)
            if inner is not None:
                found.append(Hit(inner, None, "import"))
        return distinct(found)

    def bound(self, path: str, bind: Bind, name: str, scope: str) -> list[Hit]:
        """What one bind of a name stands for."""
        kind = bind[0]
        if kind == "s":
            symbol = self.symbol(path, bind[1])
            return [Hit(self.of_symbol(path, bind[1], symbol), (path, bind[1]), "scope")]
        if kind == "i":
            return self._imported(path, bind[1], bind[2], bind[3])
        if kind == "m":
            target = self.target(path, bind[2] if len(bind) > 2 else 0, bind[1])
            return [Hit(EXTERNAL if target is None else target, None, "import")]
        holder = f"{scope}.{name}" if scope else name
        known = self.symbol(path, holder).get("k")
        symbol_of = (path, holder) if known in ("variable", "constant") else None
        values = self.value_of(path, bind)
        return [Hit(value, symbol_of, "scope") for value in values] or [Hit(None, symbol_of, "scope")]

    def _imported(self, path: str, level: int, module: str, name: str) -> list[Hit]:
        if level == RUST:
            return self.used_name(path, module, name)
        target = self.target(path, level, module)
        if target is None:
            return [Hit(EXTERNAL, None, "import")]
        found: list[Hit] = []
        if target[0] == "M" and target[1] != path:
            found = [hit._replace(how="import") for hit in self.module_name(target[1], name)]
        if not found:
            self.deps.add(("/", name))
            inner = self.modules.submodule(target, name)
            found = [Hit(inner, None, "import")] if inner is not None else []
        return found

    def value_of(self, path: str, bind: Bind, owner: Value | None = None) -> Values:
        """The value that a bind of kind `v` gives, by its annotation, else by its chain."""
        if self.local is not None and path == self.local_path and bind[3] in self.local:
            return self._value_of(path, bind, owner)
        return self._value_elsewhere(path, tuple(bind), owner)

    @kept
    def _value_elsewhere(self, path: str, bind: tuple[Any, ...], owner: Value | None) -> Values:
        return self._value_of(path, bind, owner)

    def _value_of(self, path: str, bind: Sequence[Any], owner: Value | None) -> Values:
        _, chain, annotation, scope = bind
        if annotation:
            values = self.declared(path, scope, annotation, owner)
            if values:
                return values
        return self.evaluate(path, scope, chain) if chain else ()

    def lookup(self, path: str, scope: str, name: str, values: bool = True) -> Hits:
        """A name as code of a scope sees it: from the inside out, classes only from within. Without
        values, as the beginning of a path or a type: variables, parameters and fields are passed over."""
        first = scope
        while scope:
            symbol = self.symbol(path, scope)
            found: list[Hit] = []
            if symbol.get("k") in CLASSES:
                if (scope == first and values) or "m" in symbol.get("flags", ""):
                    for bind in symbol.get("names", {}).get(name, ()):
                        found += self.bound(path, bind, name, scope)
                    found = found or self.all_of(path, symbol.get("names", {}).get("*", ()), name)
            else:
                found = self._parameter(path, scope, symbol, name) if values else []
                found = found or self._local(path, scope, name, values)
            flags = symbol.get("flags", "")
            if not found and "m" in flags and "u" not in flags:
                found = self.rooted(path, name)
                return distinct(found)
            if found:
                return distinct(found)
            scope = scope.rpartition(".")[0]
        return self.module_name(path, name)

    def _local(self, path: str, scope: str, name: str, values: bool) -> list[Hit]:
        """A local name of a function; only of the file that is being linked."""
        if self.local is None or path != self.local_path:
            return []
        key = (scope, name if values else f"^{name}")
        if key not in self._locals:
            self._locals[key] = []  # what a name needs itself for is not known
            found: list[Hit] = []
            for bind in self.local.get(scope, {}).get(name, ()):
                found += self.bound(path, bind, name, scope) if values or bind[0] != "v" else []
            found = found or self.all_of(path, self.local.get(scope, {}).get("*", ()), name)
            self._locals[key] = list(distinct(found))
        return self._locals[key]

    def _parameter(self, path: str, scope: str, symbol: Symbol, name: str) -> list[Hit]:
        for at, (param, annotation, star) in enumerate(symbol.get("params", ())):
            if param != name:
                continue
            if at == 0 and not annotation:
                owner = self.self_of(path, scope, symbol)
                if owner is not None:
                    return [Hit(owner, None, "self")]
            if not annotation and not star and scan.is_test(path):
                return self._given(path, name)
            values = self.declared(path, scope, annotation) if annotation else ()
            if star == "*":
                values = (("L", values, values),)
            elif star:
                values = (("L", (), values),)
            return [Hit(value, None, "type") for value in values] or [Hit(None, None, "scope")]
        return []

    def _given(self, path: str, name: str) -> list[Hit]:
        """What pytest gives to a parameter of a test: what its fixture returns or yields."""
        found: list[Hit] = []
        for hit in self.fixture(path, name):
            if hit.value is not None:
                results = [inner for value in self.called(hit.value) for inner in self._part(value, "!w")]
                found += [Hit(value, None, "type") for value in results]
        return found or [Hit(None, None, "scope")]

    def fixture(self, path: str, name: str) -> Hits:
        """The fixture that a parameter of a test names: of its file, else of a `conftest.py` above it."""
        folder = path.rpartition("/")[0]
        places = [path]
        while True:
            places.append(f"{folder}/conftest.py" if folder else "conftest.py")
            if not folder:
                break
            folder = folder.rpartition("/")[0]
        self.deps.add(("/", "conftest"))
        for place in places:
            if place not in self.modules.files:
                continue
            found = [
                hit._replace(how="scope" if hit.target is not None and hit.target[0] == path else "import")
                for hit in self.module_name(place, name)
                if hit.target is not None and self._is_fixture(hit.target)
            ]
            if found:
                return distinct(found)
        return ()

    def _is_fixture(self, target: tuple[str, str]) -> bool:
        decorators = self.symbol(*target).get("dec", ())
        return any(chain.removesuffix("()").rpartition(".")[2] == "fixture" for chain in decorators)

    def self_of(self, path: str, scope: str, symbol: Symbol) -> Value | None:
        """What the first parameter of a method is."""
        holder = scope.rpartition(".")[0]
        if not holder or self.symbol(path, holder).get("k") not in ("class", "interface"):
            return None
        flags, name = symbol.get("flags", ""), scope.rpartition(".")[2].partition("~")[0]
        if "s" in flags and name != "__new__":
            return None
        cls = "c" in flags or name in ("__new__", "__init_subclass__", "__class_getitem__")
        return ("C" if cls else "I", path, holder)

    # members

    @kept
    def mro(self, path: str, qual: str) -> tuple[tuple[str, str], ...]:
        """The class and its bases in Python's order; `("", "")` stands for one from outside."""
        lines: list[list[tuple[str, str]]] = []
        direct: list[tuple[str, str]] = []
        scope = qual.rpartition(".")[0]
        bases = [(path, scope, chain) for chain in self.symbol(path, qual).get("bases", ())]
        bases += [(where, bind[3], bind[1]) for where, bind, _ in self.elsewhere(path, qual, "+")]
        for where, scope, chain in bases:
            found = [value for value in self.evaluate(where, scope, chain) if value[0] in "CE"]
            base = (found[0][1], found[0][2]) if found and found[0][0] == "C" else ("", "")
            if base != (path, qual):
                direct.append(base)
                lines.append(list(self.mro(*base)) if base[0] else [base])
        return ((path, qual), *merged([*lines, direct]))

    @kept
    def member(self, value: Value, name: str) -> Hits:
        """An attribute of a value."""
        return distinct(self._member(value, name))

    def _member(self, value: Value, name: str) -> list[Hit]:
        kind = value[0]
        if kind == "M":
            return [hit._replace(how="import") for hit in self.module_name(value[1], name)]
        if kind == "G":
            return [hit._replace(how="import") for hit in self.package(value[1], name, "")]
        if kind == "T" and name.isdigit():
            return [Hit(one, None, "type") for one in self._part(value, f"[{name}]")]
        if kind == "P":
            self.deps.add(("/", name))
            inner = self.modules.submodule((value[0], value[1]), name)
            return [Hit(inner, None, "import")] if inner is not None else []
        if kind in "CI":
            found = self.inherited(value, self.mro(value[1], value[2]), name)
            same = not found and value[1].endswith(".rs") and name in UNCHANGED
            return [Hit(("K", (("I", *value[1:3]),)), None, "type")] if same else found
        if kind == "L":
            return self.of_container(value, name)
        return [Hit(EXTERNAL, None, "type")] if kind in "ET" else []

    def inherited(self, value: Value, mro: tuple[tuple[str, str], ...], name: str) -> list[Hit]:
        """The first class of an MRO that has the name says what it is."""
        outside = False
        for path, qual in mro:
            if not path:
                outside = True
                continue
            symbol = self.symbol(path, qual)
            attrs = symbol.get("attrs", {}).get(name, ()) if value[0] == "I" else ()
            found: list[Hit] = []
            for bind in symbol.get("names", {}).get(name, ()):
                found += [self._owned(hit, value, path) for hit in self.bound(path, bind, name, qual)]
            fields = path.endswith(".rs") and not any(hit.value and hit.value[0] == "F" for hit in found)
            for where, bind, holder in self.elsewhere(path, qual, name) if fields or not found else ():
                found += [self._owned(hit, value, where) for hit in self.bound(where, bind, name, holder)]
            for bind in attrs:
                target = found[0].target if found else None
                found += [Hit(item, target, "type") for item in self.value_of(path, bind, value)]
            if not found and attrs:
                found = [Hit(None, None, "type")]
            if found:
                known = [hit for hit in found if hit.value is not None]
                return found if path.endswith(".rs") else known or found
        return [Hit(EXTERNAL, None, "type")] if outside else []

    def _owned(self, hit: Hit, value: Value, path: str) -> Hit:
        """What a class attribute is on an instance: a method is bound, a property is what it gives."""
        if hit.value is None or hit.value[0] != "F" or hit.target is None:
            return hit
        flags = self.symbol(*hit.target).get("flags", "")
        bound = ("F", hit.value[1], hit.value[2], value)
        if "p" in flags and value[0] == "I":
            values = self.called(bound)
            return hit._replace(value=("V", values))
        return hit._replace(value=bound)

    # calls and types

    @kept
    def called(self, value: Value) -> Values:
        """What calling a value gives."""
        return self._called(value)[:MOST]

    def _called(self, value: Value) -> Values:
        kind = value[0]
        if kind == "C":
            return (("I", value[1], value[2]),)
        if kind == "K":
            return tuple(value[1])
        if kind == "I" and value[1].endswith(".rs"):
            return (value,)  # a variant of an enumeration with what it holds
        if kind == "I":
            return tuple(
                result
                for hit in self.member(value, "__call__")
                if hit.value is not None and hit.value[0] == "F"
                for result in self.called(hit.value)
            )
        if kind != "F":
            return (EXTERNAL,) if kind == "E" else ()
        _, path, qual, owner = value
        symbol = self.symbol(path, qual)
        if "ret" in symbol:
            return self.declared(path, qual, symbol["ret"], owner)
        stub = self._stub(path, qual)
        if stub:
            return self.declared(f"{path}i", qual, stub, owner)
        found: list[Value] = []
        for chain in symbol.get("gives", ()):
            found += self.evaluate(path, qual, chain)
        if "g" in symbol.get("flags", ""):
            return tuple(found) if found else (("L", (), ()),)
        return tuple(dict.fromkeys(found))

    def _stub(self, path: str, qual: str) -> str:
        """The return type that a stub beside the file declares."""
        self.deps.add(("/", path.rpartition("/")[2].partition(".")[0]))
        if not path.endswith(".py") or f"{path}i" not in self.modules.files:
            return ""
        return str(self.symbol(f"{path}i", qual).get("ret", ""))

    def declared(self, path: str, scope: str, annotation: str, owner: Value | None = None) -> Values:
        """The values that an annotation allows."""
        if path.endswith(TYPED):  # names of functions are no types there
            scope = self.module_of(path, scope)
        return self._annotated(path, scope, annotation, owner)

    @kept
    def _annotated(self, path: str, scope: str, annotation: str, owner: Value | None) -> Values:
        return self._noted(path, scope, note(annotation), owner)

    def _noted(self, path: str, scope: str, what: Note, owner: Value | None) -> Values:
        kind = what[0]
        if kind == "any":
            return tuple(
                dict.fromkeys(one for part in what[1] for one in self._noted(path, scope, part, owner))
            )
        if kind == "self":
            if owner is not None and owner[0] in "CI":
                return (("I", owner[1], owner[2]),)
            holder = self.self_of(path, scope, {}) if scope else None
            return (("I", holder[1], holder[2]),) if holder is not None else ()
        if kind == "many":
            one = self._noted(path, scope, what[1], owner)
            return (("L", one, self._noted(path, scope, what[2], owner) if what[2] else one),)
        if kind == "tuple":
            return (("T", tuple(self._noted(path, scope, part, owner)[:MOST] for part in what[1])),)
        if kind == "type":
            found = self._noted(path, scope, what[1], owner)
            return tuple(("C", value[1], value[2]) for value in found if value[0] == "I")
        if kind == "call":
            return (("K", self._noted(path, scope, what[1], owner)),)
        return self._named(path, scope, what[1], owner)

    def _named(self, path: str, scope: str, chain: str, owner: Value | None) -> Values:
        found: list[Value] = []
        for value in self.evaluate(path, scope, chain):
            if value[0] == "C":
                found.append(("I", value[1], value[2]))
            elif value[0] in "ELTK":
                found.append(value)
        if not found or found == [EXTERNAL]:
            found = list(self._type_variable(path, scope, chain, owner)) or found
        return tuple(found)

    def _type_variable(self, path: str, scope: str, chain: str, owner: Value | None) -> Values:
        """A type variable of the first parameter is the class of the instance."""
        if owner is None or "." in chain:
            return ()
        params = self.symbol(path, scope).get("params", ())
        if params and params[0][1].strip("\"'") in (chain, f"type[{chain}]", f"Type[{chain}]"):
            return (("I", owner[1], owner[2]),) if owner[0] in "CI" else ()
        return ()

    def evaluate(self, path: str, scope: str, chain: str) -> Values:
        """The values of a chain, as code of a scope sees it."""
        found: list[Value] = []
        for part in chain.split("|"):
            found += [hit.value for hit in self.steps(path, scope, part) if hit.value is not None]
        return tuple(dict.fromkeys(found))[:MOST] if len(found) > 1 else tuple(found)

    def steps(self, path: str, scope: str, chain: str) -> Hits:
        """What the whole of a chain stands for."""
        root, rest = split_root(chain)
        hits = self.root(path, scope, root)
        if root == "super" and rest.startswith("()"):
            rest = rest[2:]
        steps = steps_of(rest)
        for at, step in enumerate(steps):
            hits = told_apart(self.step(hits, step), step, steps[at + 1 : at + 2] == ("()",))
            if not hits:
                break
        return hits

    def root(self, path: str, scope: str, root: str) -> Hits:
        """What the beginning of a chain stands for."""
        if root == "super":
            return self._super(path, scope)
        if root.startswith("'"):
            if root.startswith("'cast:"):
                return tuple(
                    Hit(value, None, "type")
                    for value in self.declared(path, scope, root[6:].replace(":", "."))
                )
            return (Hit(EXTERNAL, None, "scope"),)
        if root.startswith("^"):
            return self.lookup(path, scope, root[1:], values=False)
        return () if root == "?" else self.lookup(path, scope, root)

    def _super(self, path: str, scope: str) -> Hits:
        while scope:
            holder = scope.rpartition(".")[0]
            if holder and self.symbol(path, holder).get("k") in ("class", "interface"):
                return (Hit(("S", path, holder), None, "super"),)
            scope = holder
        return ()

    def step(self, hits: Hits, step: str) -> Hits:
        """The next step of a chain, for everything that the steps before can stand for."""
        found: list[Hit] = []
        for hit in hits:
            if hit.value is not None:
                how = "type" if hit.target and hit.how == "self" else hit.how
                for value in hit.value[1] if hit.value[0] == "V" else (hit.value,):
                    found += self._step(value, step, how)
        return distinct(found)

    def _step(self, value: Value, step: str, how: str) -> list[Hit]:
        if step[0] == ".":
            if value[0] == "S":
                own = ("I", value[1], value[2])
                return [
                    hit._replace(how="super")
                    for hit in self.inherited(own, self.mro(value[1], value[2])[1:], step[1:])
                ]
            members = self.member(value, step[1:])
            if value[0] in "CI":
                by = how if value[0] == "C" or how == "self" else "type"
                return [hit._replace(how=by if hit.target else "type") for hit in members]
            return list(members)
        if step == "()":
            return [Hit(result, None, "type") for result in self.called(value)]
        return [Hit(result, None, "type") for result in self._part(value, step)]

    def _part(self, value: Value, step: str) -> Values:
        kind = value[0]
        if kind == "E":
            return (EXTERNAL,)
        if step == "!l":
            return (("L", (value,), (value,)),)
        if step == "!t":
            return (("C", value[1], value[2]),) if kind == "I" else ()
        if step == "!e":
            inner = self._part(value, "<>")
            pair = ("T", ((EXTERNAL,), inner[:MOST]))
            return (("L", (pair,), (pair,)),)
        if step == "!w":
            if kind == "L":
                return tuple(value[1])
            return self._method(value, "__enter__") or self._method(value, "__aenter__") or (value,)
        if kind == "L":
            return tuple(value[1] if step == "<>" else value[2])
        if kind == "T":
            parts = value[1]
            number = step[1:-1]
            if number.isdigit():
                return tuple(parts[int(number)]) if int(number) < len(parts) else ()
            return tuple(one for part in parts for one in part)
        if kind in "CF" and step != "<>":
            return (value,)
        if step == "<>":
            found: list[Value] = []
            for iterator in self._method(value, "__iter__") or self._method(value, "__aiter__"):
                found += iterator[1] if iterator[0] == "L" else self._method(iterator, "__next__")
            return tuple(found)
        return self._method(value, "__getitem__")

    def _method(self, value: Value, name: str) -> Values:
        if value[0] != "I":
            return ()
        found: list[Value] = []
        for hit in self.member(value, name):
            for one in flat(hit.value):
                if one[0] == "F":
                    found += self.called(one)
        return tuple(dict.fromkeys(found))
