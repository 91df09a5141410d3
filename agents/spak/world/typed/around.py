"""What names of Go and Rust mean beyond their file: packages, modules, members that are written elsewhere.

Takes and gives what `spak.world.resolve` does, of which it is a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spak.world.facts import GO, RUST, Bind, split_root
from spak.world.values import EXTERNAL, MOST, TYPED, Faces, Hit, Hits, Value, Values, distinct, kept, shared

_ITEMS = frozenset(["get", "pop", "setdefault", "popitem", "__getitem__", "popleft"])
_ALIKE = frozenset(["copy", "union", "intersection", "difference", "keys"])
_UNWRAPPED = frozenset(
    """unwrap expect unwrap_or unwrap_or_default unwrap_or_else first last first_mut last_mut get_mut next
    peek get_or_insert_with next_back pop_front pop_back pop_first pop_last remove swap_remove entry
    or_default or_insert or_insert_with max_by_key min_by_key max_by min_by find into_inner""".split()  # noqa: SIM905
)
UNCHANGED = frozenset(
    """clone iter iter_mut into_iter as_ref as_mut as_deref as_deref_mut to_owned to_vec borrow borrow_mut
    lock read write cloned copied rev skip take filter ok ok_or ok_or_else map_err or_else chain
    peekable drain default step_by collect context with_context as_slice deref upgrade unwrap expect
    skip_while take_while""".split()  # noqa: SIM905
)
"""Methods of Rust's own containers and wrappers by what they give: one item, or the same kind of value."""
ROOTS = ("crate", "mod", "super")
"""What a path of Rust may begin with, as extractors write it."""


class Around(Faces):
    """Answers about what is around a file."""

    if TYPE_CHECKING:  # the resolver's own

        def module_name(self, path: str, name: str) -> Hits: ...
        def member(self, value: Value, name: str) -> Hits: ...
        def evaluate(self, path: str, scope: str, chain: str) -> Values: ...
        def mro(self, path: str, qual: str) -> tuple[tuple[str, str], ...]: ...
        def bound(self, path: str, bind: Bind, name: str, scope: str) -> list[Hit]: ...

    def beyond(self, path: str, name: str) -> list[Hit]:
        """What a file of Go or Rust sees without a name of its own: its package, what `use x::*` gives,
        crates of the tree."""
        found: list[Hit] = []
        for level, module in self.stars(path):
            if module == ".":
                own = self.all_names(path) or ["?"]
                found += self.package(path.rpartition("/")[0], name, own[0])
            elif level == GO:
                target = self.target(path, level, module)
                found += self.member(target, name) if target is not None else ()
            else:
                found += self.all_of(path, [["i", level, module]], name)
        return found or (self.rooted(path, name) if path.endswith(".rs") else [])

    def all_of(self, path: str, binds: Sequence[Bind], name: str) -> list[Hit]:
        """A name of what `use x::*` names in a function, or in a module within a file."""
        values = [value for bind in binds if name not in ROOTS for value in self.used(path, bind[2])]
        return [hit._replace(how="import") for value in values for hit in self.member(value, name)]

    def rooted(self, path: str, name: str) -> list[Hit]:
        """What a path of Rust begins with that is not a name of the module."""
        target = self.target(path, RUST, name) if name in ROOTS else self.crate(name)
        return [Hit(target, None, "import")] if target is not None else []

    def module_of(self, path: str, scope: str) -> str:
        """The module of Rust around a scope: the file, or one that is written within it."""
        while scope and "m" not in self.symbol(path, scope).get("flags", ""):
            scope = scope.rpartition(".")[0]
        return scope

    @kept
    def used(self, path: str, chain: str) -> Values:
        """The module, or the type, that a path of Rust means."""
        return self.evaluate(path, "", chain)

    @kept
    def package(self, folder: str, name: str, own: str) -> Hits:
        """A name of a package of Go: for its own files all of it, else what is in no file of tests."""
        found: list[Hit] = []
        self.deps.add(("/", shared(f"{folder}/", "*")))
        for path, binds in self.around(folder, ".go", name):
            if self.all_names(path) == [own] if own else not path.endswith("_test.go"):
                found += [
                    hit for bind in binds if bind[0] in "sv" for hit in self.bound(path, bind, name, "")
                ]
        return distinct(found)

    def elsewhere(self, path: str, qual: str, name: str) -> list[tuple[str, Bind, str]]:
        """Members (`+`: bases) that other files give to a type: those of the package of Go; of Rust those of
        the type's folder and of the folder of its modules, where the name means this type."""
        if not path.endswith(TYPED) or "m" in self.symbol(path, qual).get("flags", ""):
            return []
        folder, holder = path.rpartition("/")[0], qual.rpartition(".")[2]
        if path.endswith(".go"):
            files = self.around(folder, ".go", f"{holder}.{name}") if "." not in qual else []
            return [(where, bind, holder) for where, binds in files for bind in binds]
        found = []
        for place in dict.fromkeys((folder, self.modules.module_folder(path))):
            for where, binds in self.around(place, ".rs", f"{holder}.{name}"):
                if any(hit.value == ("C", path, qual) for hit in self.module_name(where, holder)):
                    found += [(where, bind, holder) for bind in binds]
        return found

    def satisfied(self, path: str, holder: str, name: str) -> list[Hit]:
        """The methods of interfaces of Go, of the same package, that a method of a type is."""
        own, found = ("I", path, holder), []
        for where, binds in self.around(path.rpartition("/")[0], ".go", f".{name}"):
            for _, method in binds:
                order = self.mro(where, method.rpartition(".")[0])
                needed = [word for one in order if one[0] for word in self.symbol(*one).get("names", ())]
                known = ("", "") not in order and (path, holder) not in order
                if known and all(any(hit.target for hit in self.member(own, word)) for word in needed):
                    found.append(Hit(None, (where, method), "type"))
        return found

    def owner(self, path: str, holder: str) -> tuple[str, str] | None:
        """The type of another file whose members a file of Go or Rust has."""
        scope, _, name = holder.rpartition(".")
        found = [value for value in self.evaluate(path, scope, name) if value[0] == "C"]
        return (found[0][1], found[0][2]) if found else None

    def used_name(self, path: str, module: str, name: str) -> list[Hit]:
        """What `use module::name` is."""
        values = self.used(path, module) if module else ()
        hits = [hit._replace(how="import") for value in values for hit in self.member(value, name)]
        hits = hits or ([] if module else self.rooted(path, name))
        outside = not values and split_root(module)[0] not in ROOTS
        return hits or ([Hit(EXTERNAL, None, "import")] if outside else [])

    def of_container(self, value: Value, name: str) -> list[Hit]:
        """A method of a container, of Python or of Rust."""
        one, item = value[1], value[2]
        if name in _ITEMS:
            return [Hit(("K", item), None, "type")]
        if name == "values":
            return [Hit(("K", (("L", item, item),)), None, "type")]
        if name == "items":
            pair = ("T", (one, item))
            return [Hit(("K", (("L", (pair,), (pair,)),)), None, "type")]
        if name == "enumerate":
            pair = ("T", ((EXTERNAL,), tuple(one[:MOST])))
            return [Hit(("K", (("L", (pair,), (pair,)),)), None, "type")]
        if name in _UNWRAPPED:
            return [Hit(("K", one), None, "type")]
        return (
            [Hit(("K", (value,)), None, "type")]
            if name in _ALIKE or name in UNCHANGED
            else [Hit(EXTERNAL, None, "type")]
        )
