"""The names that `go.mod` and `Cargo.toml` give to what is below their folder.

Takes bytes; fills a `Maker`: `all` is the module's name; of a crate also the path of its library, and
the names of crates that it uses.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from spak.world.facts import Maker

_MODULE = re.compile(r'^\s*module\s+"?([^\s"]+)', re.M)


def facts_of(language: str, data: bytes) -> Maker:
    """The facts of a manifest."""
    maker, text = Maker(), data.decode("utf-8", "replace")
    if language == "gomod":
        maker.all = _MODULE.findall(text)[:1]
        return maker
    try:
        told = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        maker.errors, told = [1], {}
    package, library = _table(told, "package"), _table(told, "lib")
    name, path = library.get("name") or package.get("name"), library.get("path")
    if isinstance(name, str):
        others = {**_table(told, "dependencies"), **_table(told, "dev-dependencies")}
        own = [name, path if isinstance(path, str) else "src/lib.rs"]
        maker.all = [own[0].replace("-", "_"), own[1], *(other.replace("-", "_") for other in others)]
    return maker


def _table(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}
