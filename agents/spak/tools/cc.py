"""`cc`: gcc in the sandbox, on one C file of the workspace.

Flags come from three places: the call, its `defines`, and, where asked, the first line of the source that
reads `// spak-flags: -O3 ...`; all go through one list of what is allowed. A compile error is a result
(exit 1, diagnostics with file, line, code), as is a link error.
"""

from __future__ import annotations

import posixpath
from typing import Any

from spak import paths
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import MIB, Call, ToolResult
from spak.tools import gcc, inside, results
from spak.tools.argument_schemas import PATH, TIMEOUT, object_of

MARK = "// spak-flags:"
_HEAD_LINES = 20


class Cc:
    """The tool `cc`."""

    entry = ToolEntry(
        name="cc",
        version=1,
        summary="Compiles one C file of the workspace with gcc in the sandbox.",
        schema=object_of(
            {
                "source": PATH,
                "output": {**PATH, "description": "Where the result goes; else beside the source."},
                "flags": {
                    "description": "Flags of gcc: optimisation, machine, warnings, macros, libraries.",
                    "type": "array",
                    "maxItems": 64,
                    "items": {"type": "string", "maxLength": 256, "pattern": gcc.FLAG},
                },
                "defines": {
                    "description": "Macros by name.",
                    "type": "object",
                    "additionalProperties": {
                        "type": ["string", "number", "boolean"],
                        "maxLength": 1024,
                    },
                },
                "shared": {
                    "description": "A shared library (default) or a program.",
                    "type": "boolean",
                    "default": True,
                },
                "lang": {"type": "string", "enum": ["c", "c++"], "default": "c"},
                "flags_from_source": {
                    "description": f"Also take the flags of the line `{MARK} ...` at the top of the source.",
                    "type": "boolean",
                    "default": False,
                },
                "timeout_s": TIMEOUT,
            },
            required=("source",),
        ),
        arguments={
            "source": "reads",
            "output": "writes?",
            "flags": "reads?",
            "defines": "text",
            "shared": "text",
            "lang": "text",
            "flags_from_source": "text",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_compile, call)


def _compile(call: Call) -> ToolResult:
    compiler = inside.program(call, "gcc")
    if not compiler:
        return results.failed(
            "cc.missing",
            "the toolchain has no gcc",
            "spak doctor lists what to install",
            exit=results.MISSING,
        )
    args = call.args
    source = paths.join(paths.normalise(str(args["source"])))
    text = beneath.read_beneath(call.workspace, source)
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
            "-fdiagnostics-format=json",
            "-fmax-errors=20",
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
    found = gcc.diagnostics(outcome.stderr.data)
    shown = gcc.rendered(found, outcome.stderr.data)
    if outcome.status == "exited" and not outcome.exit:
        shown += f"{output}\n"
    return results.of_outcome(outcome, output=shown.encode(), diagnostics=found)


def _flags(args: Any, source: bytes) -> list[str]:
    flags = gcc.checked(args.get("flags", ()))
    if args.get("flags_from_source"):
        for line in source.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
            row = line.decode("utf-8", "replace").strip()
            if row.startswith(MARK):
                flags += gcc.checked(row[len(MARK) :].split())
                break
    return flags + gcc.definitions(args.get("defines", {}))
