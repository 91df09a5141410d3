"""The problems that profilers measure, as files: `specs/problems/NAME.py`, or one of the spec's author.

__init__    which file a name means
session     the sandboxed process that runs it
prototype   the C prototype     problem   cases, plan, tolerance, FLOPs and bytes
signature   whether a C source fits the prototype
planted     wrong answers that a tolerance has to find    check   `spak problem check`
fault       what a problem does wrong
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from typing import Any

from spak import data
from spak.validators.problems.fault import ProblemFault
from spak.validators.problems.problem import MAX_SIZE, Case, Problem, Tolerance
from spak.validators.problems.prototype import Parameter, Prototype, parse
from spak.validators.problems.session import Session, opened

FOLDER = "specs/problems"
USUAL = "attention"
MEASURED_BY = ("CpuProfiler", "CudaProfiler")
"""The validators that measure problems."""
MAX_BYTES = 256 << 10


@cache
def shipped() -> Mapping[str, str]:
    """The texts of the problems that ship, by name."""
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(data.path(FOLDER).glob("*.py"))}


SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "enum": list(shipped())},
        {"type": "string", "maxLength": 1024, "pattern": r"^[^/].*\.py$"},
    ]
}
"""The option of a validator that names a problem."""


def decoded(data: bytes) -> str:
    """The text of a problem's file, as runs take it. Raises: ProblemFault `problem.invalid`."""
    wanted = f"Python in UTF-8 of at most {MAX_BYTES >> 10} KB is needed"
    if len(data) > MAX_BYTES:
        raise ProblemFault("problem.invalid", f"the file has {len(data)} bytes; {wanted}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} of the file is no UTF-8"
        raise ProblemFault("problem.invalid", f"{where}; {wanted}") from error
    if "\0" in text:
        raise ProblemFault("problem.invalid", f"the file has a null character; {wanted}")
    return text


def text_of(name: str, given: Mapping[str, str]) -> str:
    """The text of a problem: what the run began with, else the shipped one.

    Raises: ProblemFault `problem.missing`.
    """
    text = given.get(name, shipped().get(name))
    if text is None:
        raise ProblemFault("problem.missing", f"the run has no problem {name!r}")
    return text


def prototype_in(text: str) -> str:
    """The prototype that a file names, read without running it; empty where it is no plain text in there."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "prototype" in names and isinstance(node.value.value, str):
                return node.value.value
    return ""


__all__ = [
    "MAX_SIZE",
    "MEASURED_BY",
    "SCHEMA",
    "USUAL",
    "Case",
    "Parameter",
    "Problem",
    "ProblemFault",
    "Prototype",
    "Session",
    "Tolerance",
    "opened",
    "parse",
    "prototype_in",
    "shipped",
    "text_of",
]
