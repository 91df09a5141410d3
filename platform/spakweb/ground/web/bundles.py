"""One script and one style sheet for each kind of page, put together from our own plain files.

A finder of static files: `bundles/editor.js` and the like are made from the modules of `static/js` and the
sheets of `static/css` when they are asked for (by `collectstatic` in production, by the server elsewhere),
and again when a source has changed. A module becomes a function that gives what it exports; modules of
`static/vendor` stay imports, as they have been bundled already. No dependency is involved and nothing is
rewritten but imports and exports (ADR 0041).

Raises: BadBundle where a module uses a form of import or export that is not among those below.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

SCRIPTS = {
    "editor": "js/editor/main.js",
    "compare": "js/editor/compare.js",
    "merge": "js/editor/merge.js",
    "run": "js/run/run.js",
    "list": "js/run/list.js",
    "campaign": "js/run/campaign.js",
    "start": "js/start/start.js",
    "review": "js/review/review.js",
    "api": "js/docs/api.js",
}
STYLES = {
    "base": ("tokens", "shell"),
    "specs": ("generated/graph", "specs"),
    "editor": ("generated/graph", "editor"),
    "merge": ("generated/graph", "specs", "editor", "merge"),
    "run": ("generated/graph", "specs", "runs"),
    "review": ("generated/graph", "specs", "review"),
    "docs": ("docs",),
}
NAMES = (*(f"bundles/{name}.js" for name in SCRIPTS), *(f"bundles/{name}.css" for name in STYLES))

_IMPORT = re.compile(r"^import\s+(\*\s+as\s+\w+|\{[^}]*\})\s+from\s+\"([^\"]+)\";\n?", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const)\s+(\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import\b|export\b).*", re.MULTILINE)


class BadBundle(Exception):
    """A source that cannot be put into a bundle, with its name and the line."""


def make(name: str, root: Path) -> tuple[str, list[Path]]:
    """The text of a bundle, and the files that it is made from."""
    stem, kind = posixpath.basename(name).split(".")
    if kind == "css":
        files = [root / "css" / f"{part}.css" for part in STYLES[stem]]
        return "".join(file.read_text() for file in files), files
    return _Script(root).made(SCRIPTS[stem])


class _Script:
    """The modules of one page, each after those that it imports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.vendor: dict[str, str] = {}
        self.modules: dict[str, str] = {}
        self.open: list[str] = []

    def made(self, entry: str) -> tuple[str, list[Path]]:
        self.add(entry)
        heads = [f'import * as {name} from "../{path}";\n' for path, name in self.vendor.items()]
        return "".join([*heads, *self.modules.values()]), [self.root / path for path in self.modules]

    def add(self, path: str) -> str:
        """The name of a module's function in the bundle, which has it from now on."""
        if path.startswith("vendor/"):
            return self.vendor.setdefault(path, f"vendor{len(self.vendor)}")
        name = re.sub(r"\W", "_", path.removesuffix(".js"))
        if path in self.modules:
            return name
        if path in self.open:
            raise BadBundle(f"{path} imports itself by {' and '.join(self.open)}")
        self.open.append(path)
        text = (self.root / path).read_text()
        heads: list[str] = []

        def take(found: re.Match[str]) -> str:
            words, where = found.groups()
            other = self.add(posixpath.normpath(posixpath.join(posixpath.dirname(path), where)))
            wanted = words.split()[-1] if words[0] == "*" else re.sub(r"\s+as\s+", ": ", words)
            heads.append(f"const {' '.join(wanted.split())} = {other};\n")
            return ""

        body = _IMPORT.sub(take, text)
        exports = _EXPORT.findall(body)
        body = _EXPORT.sub("", body)
        if left := _LEFT.search(body):
            raise BadBundle(f"{path}: {left.group()[:80]}")
        self.open.pop()
        self.modules[path] = (
            f"// {path}\nconst {name} = (() => {{\n{''.join(heads)}{body}\n"
            f"return {{ {', '.join(exports)} }};\n}})();\n"
        )
        return name


class Bundles(BaseFinder):
    """Finds `bundles/*`, kept in the data folder and remade when a source is newer."""

    def __init__(self, app_names: Any = None, *args: Any, **options: Any) -> None:
        self.root = Path(settings.BASE_DIR) / "static"
        self.storage = FileSystemStorage(location=Path(settings.DATA_DIR) / "bundled")

    def check(self, **options: Any) -> list[Any]:
        """Django asks finders for checks; there are none."""
        return []

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        """Every bundle, rebuilt where its parts have changed."""
        for name in NAMES:
            self.find(name)
            yield name, self.storage

    def find(self, path: str, find_all: bool = False, **options: Any) -> Any:
        """The path of a bundle, rebuilt where its parts have changed; an empty list for other names."""
        if path not in NAMES:
            return []
        text, _ = make(path, self.root)
        place = Path(self.storage.path(path))
        if not place.exists() or place.read_text() != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=place.parent, delete=False) as file:
                file.write(text)
            Path(file.name).chmod(0o644)
            Path(file.name).replace(place)  # another process may make the same one
        return [str(place)] if find_all else str(place)
