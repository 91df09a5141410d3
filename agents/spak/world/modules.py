"""Which file an import means, in a tree of files: by paths only, nothing is read.

Takes the paths of a tree; gives for an import the file, or the folder, that it names. Python follows
`sys.path` as tests and scripts have it: the nearest folder above the file that is not a package, the folders
above that, and every folder that holds a top-level package. An include of C is looked for beside the file,
then in each folder above it, its `include` and its `src`. What is not found is outside of the tree.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from spak.world.languages import MANIFESTS

Target = tuple[str, str]
"""`("M", file)`, or `("P", folder)` for a package that has no file of its own."""

_ENDS = (".py", "/__init__.py", ".pyi", "/__init__.pyi")
_SCRIPTS = (
    *("", ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx"),
    *("/index.ts", "/index.tsx", "/index.js"),
)
_UNITS = (".c", ".cc", ".cpp", ".cxx", ".cu")


class Modules:
    """The modules of one tree, by path."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.files = set(paths)
        self.folders: set[str] = set()
        for path in self.files:
            folder = path.rpartition("/")[0]
            while folder and folder not in self.folders:
                self.folders.add(folder)
                folder = folder.rpartition("/")[0]
        self.packages = {
            posixpath.dirname(path)
            for path in self.files
            if posixpath.basename(path) in ("__init__.py", "__init__.pyi")
        }
        parents = {posixpath.dirname(package) for package in self.packages if package}
        self.bases = tuple(sorted({base for base in parents if base not in self.packages}, key=_short))
        self._known: dict[tuple[str, int, str], Target | None] = {}
        self._units: dict[str, list[str]] = {}
        self._inside: dict[str, list[str]] = {}
        self.manifests = sorted(path for path in self.files if posixpath.basename(path) in MANIFESTS)

    def python(self, path: str, level: int, module: str) -> Target | None:
        """The module of a Python import."""
        folder = posixpath.dirname(path)
        key = (folder, level, module)
        if key not in self._known:
            self._known[key] = self._python(folder, level, module)
        return self._known[key]

    def _python(self, folder: str, level: int, module: str) -> Target | None:
        parts = module.split(".") if module else []
        if level:
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            return self.below(folder, parts)
        for base in dict.fromkeys([*self._roots(folder), *self.bases]):
            found = self.below(base, parts)
            if found is not None and (found[0] == "M" or found[1] != folder):
                return found
        return None

    def included(self, path: str, words: str) -> Target | None:
        """The file of an include."""
        folder = posixpath.dirname(path)
        for base in (
            folder,
            *(posixpath.join(up, inner) for up in _up(folder) for inner in ("include", "", "src")),
        ):
            name = posixpath.normpath(posixpath.join(base, words))
            if name in self.files:
                return "M", name
        return None

    def units(self, path: str) -> list[str]:
        """The sources of C that have the name of a header: those beside it, else all."""
        if not self._units:
            for name in sorted(self.files):
                if name.endswith(_UNITS):
                    self._units.setdefault(word(name), []).append(name)
        found = self._units.get(word(path), [])
        near = [name for name in found if posixpath.dirname(name) == posixpath.dirname(path)]
        return near or found

    def below(self, folder: str, parts: list[str]) -> Target | None:
        """The module of a dotted name below a folder."""
        stem = posixpath.join(folder, *parts)
        for end in _ENDS:
            name = f"{stem}{end}" if stem or not end.startswith("/") else end[1:]
            if name in self.files:
                return "M", name
        return ("P", stem) if stem in self.folders and parts else None

    def submodule(self, target: Target, name: str) -> Target | None:
        """A module of a package."""
        kind, path = target
        if kind == "M" and posixpath.basename(path) not in ("__init__.py", "__init__.pyi"):
            return None
        return self.below(posixpath.dirname(path) if kind == "M" else path, [name])

    def relative(self, path: str, words: str) -> Target | None:
        """The file that a relative path of JavaScript names, with the endings that are left out."""
        if not words.startswith("."):
            return None
        stem = posixpath.normpath(posixpath.join(posixpath.dirname(path), words))
        bare, end = posixpath.splitext(stem)
        names = [stem + end for end in _SCRIPTS]
        if end in (".js", ".mjs", ".cjs", ".jsx"):  # TypeScript names what it will have become
            names += [bare + other for other in (".ts", ".tsx", ".mts", ".cts")]
        return next((("M", name) for name in names if name in self.files), None)

    def inside(self, folder: str, end: str) -> list[str]:
        """The files of a folder with an ending."""
        if not self._inside:
            for path in sorted(self.files):
                self._inside.setdefault(posixpath.dirname(path), []).append(path)
        return [path for path in self._inside.get(folder, ()) if path.endswith(end)]

    def rust(self, path: str, name: str) -> Target | None:
        """A module of Rust as a file sees it: itself (`mod`), the root of its `crate`, the one above
        (`super`), or one that it declares."""
        folder, base = posixpath.split(path)
        if name == "mod":
            return "M", path
        if name in ("crate", "super"):
            if self._is_root(path):
                return ("M", path) if name == "crate" else None
            above = (
                _up(folder)
                if name == "crate"
                else [posixpath.dirname(folder) if base == "mod.rs" else folder]
            )
            names = [posixpath.join(place, end) for place in above for end in ("lib.rs", "main.rs")]
            names += [f"{above[0]}.rs", f"{above[0]}/mod.rs"] if name == "super" else []
        elif name.endswith(".rs"):
            names = [posixpath.normpath(posixpath.join(folder, name))]
        else:
            below = posixpath.join(self.module_folder(path), name)
            names = [f"{below}.rs", f"{below}/mod.rs"]
        return next((("M", file) for file in names if file in self.files and file != path), None)

    def _is_root(self, path: str) -> bool:
        """Whether a file of Rust is the root of a crate: by its name, or as a test, example or program."""
        folder, base = posixpath.split(path)
        if base in ("lib.rs", "main.rs", "build.rs"):
            return True
        inner = self.files.isdisjoint((f"{folder}.rs", f"{folder}/mod.rs"))
        return inner and posixpath.basename(folder) in ("bin", "tests", "examples", "benches")

    def module_folder(self, path: str) -> str:
        """The folder in which the modules of a file of Rust are."""
        folder, base = posixpath.split(path)
        return folder if base == "mod.rs" or self._is_root(path) else path.removesuffix(".rs")

    def _roots(self, folder: str) -> list[str]:
        while folder and folder in self.packages:
            folder = posixpath.dirname(folder)
        return _up(folder)


def _up(folder: str) -> list[str]:
    """A folder and those above it."""
    found = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        found.append(folder)
    return found


def word(path: str) -> str:
    """The word by which an import means a file: its own name, or that of its package."""
    path = path.removesuffix("/mod.rs")
    stem = posixpath.splitext(path)[0].removesuffix(".d").removesuffix("/__init__").removesuffix("/index")
    return stem.rpartition("/")[2]


def _short(path: str) -> tuple[int, str]:
    return path.count("/"), path
