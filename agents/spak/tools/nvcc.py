"""`nvcc`: a CUDA file of the workspace to a cubin, in the sandbox. It needs no device and measures nothing.

`ptxas -v` says what each kernel uses; its lines are diagnostics of severity info (`registers`, `spills`,
`shared memory`), and that is all that a machine without a device can say about speed.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from spak import paths
from spak import schema_parts as parts
from spak.diagnostics import relative
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import MIB, Call, ToolResult
from spak.tools import gcc, inside, results

FLAG = (
    r"^(-O[0-3]|-g|-lineinfo|-use_fast_math|-std=c\+\+[0-9]{2}|-maxrregcount=[0-9]{1,3}"
    r"|-(fmad|ftz|prec-div|prec-sqrt)=(true|false)|-[DU][A-Za-z_][A-Za-z0-9_]*(=[^\x00-\x1f]*)?"
    r"|-I[A-Za-z0-9_.][A-Za-z0-9_./+-]*|--expt-relaxed-constexpr|--extra-device-vectorization)$"
)
_FLAG = re.compile(FLAG)
_MESSAGE = re.compile(r"^([^\s(:][^\n(:]*)\((\d{1,9})\): (error|warning)(?: #([\w-]+))?: (.{1,400})$", re.M)
_PTXAS = re.compile(r"^ptxas (info|warning|error|fatal)\s*: (.{1,300})$", re.M)
_NAMED = re.compile(r"(?:entry function|Function properties for) '?([\w$.]{1,200})'?")


class Nvcc:
    """The tool `nvcc`."""

    entry = ToolEntry(
        name="nvcc",
        version=1,
        summary="Compiles one CUDA file to a cubin in the sandbox; says registers and spills.",
        schema=parts.members(
            ["source"],
            source=parts.path(),
            output=parts.path("Where the cubin goes; else beside the source."),
            arch={
                "description": "The architecture.",
                "type": "string",
                "pattern": "^sm_[0-9]{2,3}[a-z]?$",
                "default": "sm_90",
            },
            flags=parts.listed(
                "Flags of nvcc: optimisation, arithmetic, macros.",
                {"type": "string", "maxLength": 256, "pattern": FLAG},
                64,
            ),
            timeout_s=parts.TIMEOUT,
        ),
        arguments={
            "source": "reads",
            "output": "writes?",
            "arch": "text",
            "flags": "reads?",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_compile, call)


def _compile(call: Call) -> ToolResult:
    compiler = inside.program(call, "nvcc")
    if not compiler:
        return results.failed(
            "nvcc.missing",
            "the toolchain has no nvcc",
            "install the CUDA toolkit; spak doctor shows what was found",
            exit=results.MISSING,
        )
    source = paths.join(paths.normalise(str(call.args["source"])))
    beneath.read_beneath(call.workspace, source)
    output = str(call.args.get("output") or posixpath.splitext(source)[0] + ".cubin")
    output = paths.join(paths.normalise(output))
    if output == source:
        raise UsageError("nvcc.output", "the output would overwrite the source", "name another output")
    for flag in call.args.get("flags", ()):
        if not _FLAG.match(flag) or (flag.startswith("-I") and ".." in flag[2:].split("/")):
            raise UsageError("nvcc.flag", f"the flag {flag[:80]!a} is not allowed", "see docs/tools.md, nvcc")
    with beneath.locate(call.workspace, output, folders="make"):
        pass
    line = (compiler, "-cubin", f"-arch={call.args.get('arch', 'sm_90')}", "-Xptxas", "-v")
    outcome = inside.run(
        call,
        (*line, *call.args.get("flags", ()), "-x", "cu", f"./{source}", "-o", f"./{output}"),
        timeout_s=call.args.get("timeout_s"),
        output_bytes=4 * MIB,
        heard=call.heard,
    )
    text = (outcome.stdout.data + outcome.stderr.data).decode("utf-8", "replace")
    return results.of_outcome(outcome, diagnostics=_diagnostics(text))


def _diagnostics(text: str) -> list[dict[str, Any]]:
    found = [
        results.diagnostic(severity, number or severity, message, relative(file), int(line))
        for file, line, severity, number, message in _MESSAGE.findall(text)
    ]
    kernel = ""
    for kind, message in _PTXAS.findall(text):
        named = _NAMED.search(message)
        kernel = named[1] if named is not None else kernel
        severity = {"info": "info", "warning": "warning"}.get(kind, "error")
        if "Used " in message or severity != "info":
            found.append(results.diagnostic(severity, "ptxas", f"{kernel}: {message}" if kernel else message))
    return found[: gcc.MAX_DIAGNOSTICS]
