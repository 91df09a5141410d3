"""Which language a file is in, and its parser: one wheel for each language (ADR 0101).

Takes a path; gives the language's name and, on request, tree-sitter's parser of it, loaded when it is first
needed. It reads no file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    **dict.fromkeys((".cu", ".cuh"), "cuda"),
}
PREFIXES: Mapping[str, str] = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "tsx": "ts",
    "go": "go",
    "rust": "rs",
    "c": "c",
    "cpp": "c",
    "cuda": "c",
    "gomod": "mod",
    "cargo": "toml",
}
"""What the id of a symbol begins with, by language: files that link to each other share it."""
MANIFESTS: Mapping[str, str] = {"go.mod": "gomod", "Cargo.toml": "cargo"}
"""Files that are no source, and name what is below their folder: by name, and how they are read."""
_MODULES = {
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}


def language_of(path: str) -> str:
    """The language of a file by its name, or an empty string."""
    return SUFFIXES.get(posixpath.splitext(path)[1].lower(), "")


def indexed_as(path: str) -> str:
    """The language of a source file, or how a manifest is read; else an empty string."""
    return language_of(path) or MANIFESTS.get(posixpath.basename(path), "")


@cache
def grammar(language: str) -> tree_sitter.Language:
    """tree-sitter's grammar of a language."""
    import tree_sitter

    module, function = _MODULES.get(language, (f"tree_sitter_{language}", "language"))
    return tree_sitter.Language(getattr(import_module(module), function)())


@cache
def parser(language: str) -> tree_sitter.Parser:
    """One parser for each language and process."""
    import tree_sitter

    return tree_sitter.Parser(grammar(language))
