"""What an expression can be, and the faces of files that such answers rest on.

    ("M", file) ("P", folder)            a module, a package without a file
    ("C", file, QUAL) ("I", file, QUAL)  a class, an instance of it
    ("F", file, QUAL, owner)             a function, with what it is bound to, or None
    ("L", one, item)                     a container: what going through it gives, what an index gives
    ("T", (values...))                   a tuple
    ("K", values)                        something that gives these when it is called
    ("V", values)                        any of these
    ("S", file, QUAL)                    `super()` in a class
    ("G", folder)                        a package of Go
    ("E",)                               something from outside of the tree

Every face that is looked at is noted in `deps`, as (path, name at its top), and every word of an import, as
("/", word): a link is made again when one of them changes and only then. A result that was cut off because it
needs itself is kept only where it does not depend on where the question began, so the links of a file do not
depend on the order in which files are linked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from spak.world.facts import CLASSES, GO, INCLUDE, RUST, Bind, Face, Symbol, top
from spak.world.modules import Modules, word

Value = tuple[Any, ...]
Values = tuple[Value, ...]
EXTERNAL: Value = ("E",)
MOST = 8
MAX_DEPTH = 80
TYPED = (".go", ".rs")
"""Files whose names others of their folder see too, without an import."""


class Hit(NamedTuple):
    """What a name stands for, the symbol that it is, if it is one, and how it was found."""

    value: Value | None
    target: tuple[str, str] | None
    how: str


Hits = tuple[Hit, ...]
NOTHING: Face = {"names": {}, "symbols": {}, "all": None, "stars": []}
"""The face of a file that there is not."""

S = TypeVar("S", bound="Faces")
P = ParamSpec("P")
R = TypeVar("R")


def kept(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Keep the results of a method with what they depend on; a result that needs itself is empty."""
    name = method.__name__

    def answered(self: S, /, *args: P.args, **unused: P.kwargs) -> R:
        key = (name, *args)
        known = self._memo.get(key)
        if known is None:
            result: R = self._computed(key, method)
            return result
        self.deps |= known[1]
        return known[0]  # type: ignore[no-any-return]

    return answered


class Faces:
    """Answers about one tree of files; `load` gives one file's face, None where there is no such file."""

    def __init__(self, load: Callable[[str], Face | None], modules: Modules) -> None:
        self._load = load
        self._faces: dict[str, Face] = {}
        self.modules = modules
        self.deps: set[tuple[str, str]] = set()
        self._memo: dict[Any, tuple[Any, frozenset[tuple[str, str]]]] = {}
        self._open: dict[Any, int] = {}
        self._low = 1 << 30
        self.local: dict[str, dict[str, list[Bind]]] | None = None
        self.local_path = ""
        self._locals: dict[tuple[str, str], list[Hit]] = {}

    def within(self, path: str, local: dict[str, dict[str, list[Bind]]]) -> None:
        """Begin with a file: its own local names count from here on, and `deps` are its own."""
        self.local, self.local_path, self._locals, self.deps = local, path, {}, set()

    def _face(self, path: str) -> Face:
        found = self._faces[path] = self._load(path) or NOTHING
        return found

    def _computed(self, key: Any, compute: Callable[..., Any]) -> Any:
        depth = len(self._open)
        if key in self._open or depth > MAX_DEPTH:
            self._low = min(self._low, self._open.get(key, -1))
            return ()
        saved_deps, saved_low, local = self.deps, self._low, self.local
        self.deps, self._low, self.local = set(), 1 << 30, None  # what is kept holds for every file
        self._open[key] = depth
        try:
            result = compute(self, *key[1:])
        finally:
            del self._open[key]
            mine, low, self.local = self.deps, self._low, local
            self.deps = saved_deps
            self.deps |= mine
            self._low = min(saved_low, low if low < depth else 1 << 30)
        if low >= depth:
            self._memo[key] = (result, frozenset(mine))
        return result

    def symbol(self, path: str, qual: str) -> Symbol:
        """What the face of a file says of a symbol."""
        name = top(qual)
        self.deps.add((path, name))
        group = (self._faces.get(path) or self._face(path))["symbols"].get(name)
        found: Symbol = {} if group is None else group.get(qual, {})
        return found

    def of_symbol(self, path: str, qual: str, symbol: Symbol, owner: Value | None = None) -> Value | None:
        """The value that a symbol is."""
        kind = symbol.get("k")
        if kind in CLASSES:
            return ("C", path, qual)
        return ("F", path, qual, owner) if kind == "function" else None

    def binds(self, path: str, name: str) -> list[Bind]:
        """What a name of a module stands for."""
        self.deps.add((path, name))
        found: list[Bind] = (self._faces.get(path) or self._face(path))["names"].get(name, [])
        return found

    def stars(self, path: str) -> list[list[Any]]:
        """The modules that a module imports `*` from."""
        self.deps.add((path, "*"))
        found: list[list[Any]] = (self._faces.get(path) or self._face(path))["stars"]
        return found

    def all_names(self, path: str) -> list[str] | None:
        """What `__all__` of a module says, if it has one."""
        self.deps.add((path, "*"))
        found: list[str] | None = (self._faces.get(path) or self._face(path))["all"]
        return found

    def target(self, path: str, level: int, module: str) -> tuple[str, str] | None:
        """The module that an import names."""
        if level == GO:
            return self._package(path, module)
        if level == RUST:
            above = path.split("/")[-3:-1]  # `mod.rs` and what a folder is the module of
            self.deps.update(("/", part) for part in (*above, word(module), "lib", "main"))
            return self.modules.rust(path, module)
        if level < 0:
            self.deps.add(("/", word(module)))
            found = self.modules.included if level == INCLUDE else self.modules.relative
            return found(path, module)
        self.deps.update(("/", part) for part in module.split("."))
        return self.modules.python(path, level, module)

    def _package(self, path: str, module: str) -> tuple[str, str] | None:
        """The folder of a package of Go, where its module is in the tree."""
        if module == ".":
            return "G", path.rpartition("/")[0]
        found = []
        for manifest, (name, *_) in self.manifests("go.mod"):
            if module == name or module.startswith(f"{name}/"):
                found.append((len(name), f"{manifest[:-6]}{module[len(name) + 1 :]}".rstrip("/")))
        return ("G", max(found)[1]) if found else None

    def crate(self, name: str) -> Value | None:
        """The root of a crate of Rust that is in the tree; whether one is known to be outside of it."""
        outside = name in ("std", "core", "alloc")
        for manifest, (known, library, *others) in self.manifests("Cargo.toml"):
            outside |= name in others
            file = f"{manifest[:-10]}{library}"
            if known == name:
                self.deps.add(("/", word(file)))
                return ("M", file) if file in self.modules.files else None
        return EXTERNAL if outside else None

    def manifests(self, base: str) -> list[tuple[str, list[str]]]:
        """The manifests of a name in the tree, and what they say."""
        self.deps.update({("/", word(base)), ("/", "lib")})
        found = [path for path in self.modules.manifests if path.rpartition("/")[2] == base]
        return [(path, names) for path in found if (names := self.all_names(path))]

    def around(self, folder: str, end: str, name: str) -> list[tuple[str, list[Bind]]]:
        """The files of a folder that have a name, which its other files see without an import."""
        self.deps.add(("/", shared(f"{folder}/", name)))
        found = []
        for path in self.modules.inside(folder, end):
            binds = (self._faces.get(path) or self._face(path))["names"].get(name)
            if binds:
                found.append((path, binds))
        return found

    def definitions(self, path: str, qual: str) -> list[tuple[str, str]]:
        """The definitions of a prototype: in its file, and in sources of the same name."""
        self.deps.add(("/", word(path)))
        bare, found = qual.partition("~")[0], []
        for where in dict.fromkeys([path, *self.modules.units(path)]):
            self.deps.add((where, top(qual)))
            group = (self._faces.get(where) or self._face(where))["symbols"].get(top(qual), {})
            found += [
                (where, other)
                for other, about in group.items()
                if other.partition("~")[0] == bare and "d" not in about.get("flags", "")
            ]
        return found


def shared(path: str, name: str) -> str:
    """The word by which files depend on a name of any file of a folder."""
    return f"{path.rpartition('/')[0]}:{name}"


@lru_cache(50_000)
def steps_of(rest: str) -> tuple[str, ...]:
    """The steps of a chain after its root."""
    found: list[str] = []
    at = 0
    while at < len(rest):
        sign = rest[at]
        if sign == "(":
            end = at + 2
        elif sign == "[":
            end = rest.index("]", at) + 1
        elif sign in "<!":
            end = at + 2
        else:
            end = at + 1
            while end < len(rest) and rest[end] not in ".([<!":
                end += 1
        found.append(rest[at:end])
        at = end
    return tuple(found)


def flat(value: Value | None) -> Values:
    """The values that a property gave, or the one value."""
    if value is None:
        return ()
    return tuple(value[1]) if value[0] == "V" else (value,)


def distinct(hits: list[Hit]) -> Hits:
    """The hits once each, the first few."""
    return tuple(dict.fromkeys(hits))[:MOST] if len(hits) > 1 else tuple(hits)


def told_apart(hits: Hits, step: str, called: bool) -> Hits:
    """Of a method and a field with one name, as Rust has them: the method where it is called."""
    if len(hits) < 2 or step[0] != ".":
        return hits
    kept = [hit for hit in hits if (hit.value is not None and hit.value[0] == "F") == called]
    rust = any(hit.target is not None and hit.target[0].endswith(".rs") for hit in hits)
    return tuple(kept) if rust and kept else hits


def merged(lines: list[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """C3; where the bases contradict each other, in the order of the text."""
    found: list[tuple[str, str]] = []
    lines = [[*line] for line in lines if line]
    while lines:
        heads = [line[0] for line in lines]
        head = next((head for head in heads if not any(head in line[1:] for line in lines)), heads[0])
        found.append(head)
        lines = [kept for line in lines if (kept := [item for item in line if item != head])]
    return found
