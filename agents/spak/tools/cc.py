"""`cc`: gcc or clang in the sandbox, on one C or C++ file of the workspace.

Flags come from three places: the call, its `defines`, and, where asked, the first line of the source that
reads `// spak-flags: -O3 ...`; all go through one list of what is allowed. The compiler is the call's, or
that of a line `// spak-compiler: clang` where asked. What was used is written into the object, where the
profiler reads it. A compile error is a result (exit 1, diagnostics with file, line, code), as is a link
error.
"""

from __future__ import annotations

import posixpath
from typing import Any

from spak import paths
from spak import schema_parts as parts
from spak.diagnostics import read
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import MIB, Call, ToolResult
from spak.tools import gcc, inside, results

MARK = "// spak-flags:"
COMPILER_MARK = "// spak-compiler:"
COMPILERS = {("gcc", "c"): "gcc", ("gcc", "c++"): "g++", ("clang", "c"): "clang", ("clang", "c++"): "clang++"}
"""The program of the toolchain for a compiler and a language."""
INSTALL = {
    "gcc": "apt-get install gcc libc6-dev",
    "g++": "apt-get install g++",
    "clang": "apt-get install clang",
    "clang++": "apt-get install clang",
}
_HEAD_LINES = 20


class Cc:
    """The tool `cc`."""

    entry = ToolEntry(
        name="cc",
        version=1,
        summary="Compiles one C or C++ file of the workspace with gcc or clang in the sandbox.",
        schema=parts.members(
            ["source"],
            source=parts.path(),
            output=parts.path("Where the result goes; else beside the source."),
            flags=parts.listed(
                "Compiler flags: optimisation, machine, warnings, macros, libraries.",
                {"type": "string", "maxLength": 256, "pattern": gcc.FLAG},
                64,
            ),
            defines=parts.mapping(
                "Macros by name.", {"type": ["string", "number", "boolean"], "maxLength": 1024}
            ),
            shared=parts.flag("A shared library (default) or a program.", True),
            lang=parts.choice("The language of the source; c++ needs g++ or clang++.", ("c", "c++"), "c"),
            compiler=parts.choice("The compiler.", ("gcc", "clang"), "gcc"),
            flags_from_source=parts.flag(
                f"Also take the flags of the line `{MARK} ...`, and the compiler of "
                f"`{COMPILER_MARK} ...`, at the top of the source.",
                False,
            ),
            timeout_s=parts.TIMEOUT,
        ),
        arguments={
            "source": "reads",
            "output": "writes?",
            "flags": "reads?",
            "defines": "text",
            "shared": "text",
            "lang": "text",
            "compiler": "text",
            "flags_from_source": "text",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_compile, call)


def _compile(call: Call) -> ToolResult:
    args = call.args
    source = paths.join(paths.normalise(str(args["source"])))
    text = beneath.read_beneath(call.workspace, source)
    name = COMPILERS[_compiler(args, text), str(args.get("lang", "c"))]
    compiler = inside.program(call, name)
    if not compiler:
        return results.failed(
            "cc.missing", f"the toolchain has no {name}", INSTALL[name], exit=results.MISSING
        )
    shared = bool(args.get("shared", True))
    output = str(args.get("output") or posixpath.splitext(source)[0] + (".so" if shared else ""))
    output = paths.join(paths.normalise(output))
    if output == source:
        raise UsageError("cc.output", "the output would overwrite the source", "name another output")
    flags = _flags(args, text)
    with beneath.locate(call.workspace, output, folders="make"):
        pass
    outcome = inside.run(
        call,
        (
            compiler,
            *(("-shared", "-fPIC") if shared else ()),
            *flags,
            *(gcc.CLANG_OPTIONS if "clang" in name else gcc.OPTIONS),
            "-x",
            str(args.get("lang", "c")),
            f"./{source}",
            "-x",
            "none",
            "-o",
            f"./{output}",
            *(flag for flag in flags if flag.startswith("-l")),
            "-lm",
        ),
        timeout_s=args.get("timeout_s"),
        output_bytes=4 * MIB,
    )
    found = (read("gcc", b"", outcome.stderr.data) or [])[: gcc.MAX_DIAGNOSTICS]
    shown = gcc.rendered(found, outcome.stderr.data)
    if "clang" in name:
        shown = outcome.stderr.data.decode("utf-8", "replace")
    if outcome.status == "exited" and not outcome.exit:
        shown += f"{output}\n"
    return results.of_outcome(outcome, output=shown.encode(), diagnostics=found)


def _flags(args: Any, source: bytes) -> list[str]:
    flags = gcc.checked(args.get("flags", ()))
    if args.get("flags_from_source"):
        flags += gcc.checked(marked(source, MARK).split())
    return flags + gcc.definitions(args.get("defines", {}))


def _compiler(args: Any, source: bytes) -> str:
    """`gcc` or `clang`. Raises: UsageError `cc.compiler`."""
    named = marked(source, COMPILER_MARK) if args.get("flags_from_source") else ""
    found = named or str(args.get("compiler", "gcc"))
    if found not in ("gcc", "clang"):
        raise UsageError("cc.compiler", f"{found[:80]!a} is no compiler", "name gcc or clang")
    return found


def marked(source: bytes, mark: str) -> str:
    """What follows a mark in the first lines of the source; empty without one."""
    for line in source.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
        row = line.decode("utf-8", "replace").strip()
        if row.startswith(mark):
            return row[len(mark) :].strip()
    return ""
