"""`python_repl`: Python code in the sandbox; what it prints, and the value of a last expression.

Each call is a fresh interpreter, isolated from the environment; modules of the workspace come last in its
search path, so that none of them stands in for one of the standard library.
"""

from __future__ import annotations

import re

from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import inside, results

_BOOTSTRAP = """
import ast, sys
sys.path.append("/ws")
source = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
tree = ast.parse(source, "<code>")
last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
space = {"__name__": "__main__"}
exec(compile(tree, "<code>", "exec"), space)
if last is not None:
    value = eval(compile(ast.Expression(last.value), "<code>", "eval"), space)
    if value is not None:
        print(repr(value))
"""
_LAST = re.compile(r"^([A-Za-z_][\w.]{0,100})(?:: (.{0,400}).*)?$", re.M)
_LINE = re.compile(r'File "<code>", line (\d{1,9})')
_OURS = re.compile(r'  File "<string>", line \d+, in <module>\n(?:    .*\n)?')


class PythonRepl:
    """The tool `python_repl`."""

    entry = ToolEntry(
        name="python_repl",
        version=1,
        summary="Runs Python code in the sandbox; prints the value of a last expression.",
        schema=parts.members(
            ["code"],
            code=parts.text("Python source.", 1 << 20, least=0),
            timeout_s=parts.TIMEOUT,
            writable=parts.flag("False shows the workspace read-only.", True),
        ),
        on_fail="continue",
        arguments={"code": "runs", "timeout_s": "text", "writable": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        python = inside.program(call, "python")
        if not python:
            return results.failed(
                "python_repl.missing",
                "the toolchain has no python",
                "spak doctor lists what to install",
                exit=results.MISSING,
            )
        outcome = inside.run(
            call,
            (python, "-I", "-B", "-c", _BOOTSTRAP),
            writable=bool(call.args.get("writable", True)),
            timeout_s=call.args.get("timeout_s"),
            stdin=str(call.args["code"]).encode("utf-8", "surrogatepass"),
            heard=call.heard,
        )
        trace = _OURS.sub("", outcome.stderr.data.decode("utf-8", "replace"))
        raised = outcome.status == "exited" and outcome.exit == 1
        found = _exception(trace) if raised else []
        return results.of_outcome(outcome, output=outcome.stdout.data + trace.encode(), diagnostics=found)


def _exception(trace: str) -> list[dict[str, object]]:
    """The exception that ended the code."""
    rows = trace.rstrip().rsplit("\n", 1)
    named = _LAST.match(rows[-1])
    if named is None:
        return []
    lines = _LINE.findall(trace)
    return [
        results.diagnostic("error", named[1], named[2] or named[1], "<code>", int(lines[-1]) if lines else 0)
    ]
