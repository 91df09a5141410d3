"""`instantiate`: a source file from a template and one point of a parameter space.

The new file is a line comment with the compiler flags (`// spak-flags: ...`, which `cc` reads when asked), a
`#define NAME value` for each parameter, and the template as it is. Parameters named FLAGS or FLAGS_... are
texts of flags and join the first line instead, and COMPILER becomes a line `// spak-compiler: ...`; without
them there are no such lines. A Python file gets `NAME = value` instead, and has neither flags nor compiler.
It only writes text: what the flags may be is judged by the compiler's tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from spak import canon
from spak import schema_parts as parts
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import MIB, Call, ToolResult
from spak.tools import results

MARK = "// spak-flags:"
COMPILER_MARK = "// spak-compiler:"
MAX_TEMPLATE = MIB
MAX_PARAMS = 256
MAX_FLAGS = 64
MAX_BITS = 63

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_VALUE = re.compile(r"-?[A-Za-z0-9_.]{1,64}")
_FLAG = re.compile(r"-[A-Za-z][A-Za-z0-9=_.,+-]{0,127}")


class Instantiate:
    """The tool `instantiate`."""

    entry = ToolEntry(
        name="instantiate",
        version=1,
        summary="Writes a source file: parameters as lines of definitions, then the template.",
        schema=parts.members(
            ["template", "path", "params"],
            template=parts.path("The template, a path relative to the workspace."),
            path=parts.path("The file to write."),
            params=parts.mapping(
                "Names such as TILE to numbers or words; FLAGS to compiler flags, COMPILER to gcc or clang.",
                {"type": ["string", "number", "boolean"], "maxLength": 1024},
            ),
            flags=parts.listed(
                "Compiler flags for the first line.", {"type": "string", "maxLength": 128}, MAX_FLAGS
            ),
        ),
        effect="effect",
        on_fail="stop",
        sandboxed=False,
        writes=True,
        arguments={"template": "reads", "path": "edits", "params": "text", "flags": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_instantiate, call)


def render(
    template: bytes, params: Mapping[str, Any], flags: Sequence[str] = (), python: bool = False
) -> bytes:
    """The file that a point makes of a template, in C or Python.

    Raises: UsageError `instantiate.name`, `instantiate.value`, `instantiate.flag`, `instantiate.template`.
    """
    if len(params) > MAX_PARAMS:
        raise UsageError("instantiate.name", f"more than {MAX_PARAMS} parameters")
    if b"\0" in template:
        raise UsageError("instantiate.template", "the template is not text", "name a source file")
    found, compiler = list(flags), ""
    lines = []
    for name in sorted(params):
        value = params[name]
        if not _NAME.fullmatch(name):
            raise UsageError(
                "instantiate.name",
                f"{name[:70]!a} is no name for a macro",
                "use capitals, digits and underscores, a capital first",
            )
        if name == "FLAGS" or name.startswith("FLAGS_"):
            found += _flag_text(name, value)
        elif name == "COMPILER":
            compiler = _value(name, value)
        elif python:
            lines.append(f"{name} = {_literal(name, value)}\n")
        else:
            lines.append(f"#define {name} {_value(name, value)}\n")
    if python and (found or compiler):
        raise UsageError(
            "instantiate.flag", "a Python file has no compiler flags", "leave FLAGS and COMPILER out"
        )
    head = f"{COMPILER_MARK} {compiler}\n" if compiler else ""
    return (_flag_line(found) + head + "".join(lines)).encode() + template


def _instantiate(call: Call) -> ToolResult:
    template = beneath.read_beneath(call.workspace, str(call.args["template"]), MAX_TEMPLATE)
    python = str(call.args["path"]).endswith(".py")
    data = render(template, call.args["params"], call.args.get("flags", ()), python)
    with beneath.locate(call.workspace, str(call.args["path"]), folders="may") as place:
        target = place.path
    with beneath.locate(call.workspace, str(call.args["template"])) as place:
        if place.path == target:
            raise UsageError("instantiate.path", "the file would overwrite its template", "name another path")
    path = beneath.write_beneath(call.workspace, str(call.args["path"]), data)
    return results.done(f"{path}: {len(data)} bytes\n", sha256=canon.digest(data))


def _value(name: str, value: Any) -> str:
    match value:
        case bool():
            return str(int(value))
        case int() if value.bit_length() <= MAX_BITS:
            return str(value)
        case float() if isfinite(value):
            return repr(value)
        case str() if _VALUE.fullmatch(value):
            return value
        case _:
            raise UsageError(
                "instantiate.value",
                f"{name} cannot stand for {str(value)[:70]!a}",
                "a value is a number or one word of letters, digits, dots and underscores",
            )


def _literal(name: str, value: Any) -> str:
    """A value as Python reads it: words are texts."""
    text = _value(name, value)
    return repr(text) if isinstance(value, str) else str(value) if isinstance(value, bool) else text


def _flag_text(name: str, value: Any) -> list[str]:
    if not isinstance(value, str):
        raise UsageError("instantiate.flag", f"{name} is not a text of flags")
    return value.split()


def _flag_line(flags: Sequence[Any]) -> str:
    if len(flags) > MAX_FLAGS:
        raise UsageError("instantiate.flag", f"more than {MAX_FLAGS} flags")
    for flag in flags:
        if not isinstance(flag, str) or not _FLAG.fullmatch(flag):
            raise UsageError(
                "instantiate.flag",
                f"{str(flag)[:70]!a} is not a compiler flag",
                "a flag starts with - and names no path",
            )
    return f"{MARK} {' '.join(flags)}\n" if flags else ""
