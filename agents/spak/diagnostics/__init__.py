"""What compilers, linters, type checkers and tests print, as diagnostics: severity, file, line, code, text.

`read` takes the name of a form and both streams of a process; it gives the findings in the order in which
they were printed, or None where the form is a JSON document and the output is not one. Nothing is added
that the tool did not say. It runs nothing and decides nothing: `block_commit` of the shipped law rests on the
facts that the kernel makes of these (`diagnostic/5`, seed 004 3.4), and an exit code stays the tool's word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from spak.diagnostics import documents, lines
from spak.diagnostics.shape import SEVERE, SEVERITIES, Found, diagnostic, relative

__all__ = [
    "FORMS",
    "MAX_DIAGNOSTICS",
    "SEVERE",
    "SEVERITIES",
    "Found",
    "diagnostic",
    "first",
    "read",
    "relative",
]

MAX_DIAGNOSTICS = 500
F = TypeVar("F", bound=Mapping[str, Any])

FORMS: dict[str, Callable[[str, str], list[Found] | None]] = {
    "eslint": documents.eslint,
    "gcc": lines.gcc,
    "go": lines.go,
    "mypy": lines.mypy,
    "pyright": documents.pyright,
    "pytest": lines.pytest,
    "ruff": documents.ruff,
    "rustc": lines.rustc,
    "sarif": documents.sarif,
    "tsc": lines.tsc,
}
"""Each form with its reader: standard output and standard error in, findings out."""


def read(form: str, stdout: bytes, stderr: bytes) -> list[Found] | None:
    """The findings of a form, each once and at most `MAX_DIAGNOSTICS`; None for an invalid one."""
    found = FORMS[form](stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))
    return None if found is None else first({tuple(item.values()): item for item in found}.values())


def first(found: Iterable[F], most: int = MAX_DIAGNOSTICS) -> list[F]:
    """As many as are kept. Of more, severe ones come first: a flood of warnings hides no error."""
    listed = list(found)
    if len(listed) > most:
        listed.sort(key=lambda item: item.get("severity") not in SEVERE)
    return listed[:most]
