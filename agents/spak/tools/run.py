"""`run`: one program with its arguments, in the sandbox. No shell stands between."""

from __future__ import annotations

from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import beneath, inside, results
from spak.tools.schemas import TIMEOUT, object_of


class Run:
    entry = ToolEntry(
        name="run",
        version=1,
        summary="Runs one program with its arguments in the sandbox and keeps its output.",
        schema=object_of(
            {
                "cmd": {
                    "description": "The program and its arguments; a spec may write one line of text.",
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 256,
                    "items": {"type": "string", "maxLength": 65536},
                },
                "timeout_s": TIMEOUT,
                "writable": {
                    "description": "False shows the workspace read-only.",
                    "type": "boolean",
                    "default": True,
                },
                "verdict_file": {
                    "description": "A file that gets PASS or FAIL by the exit code, after the program.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 4096,
                },
            },
            required=("cmd",),
        ),
        on_fail="continue",
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_run, call)


def _run(call: Call) -> ToolResult:
    argv = [str(word) for word in call.args["cmd"]]
    if not argv[0]:
        return results.failed("run.empty", "the program's name is empty", "name a program")
    outcome = inside.run(
        call,
        inside.resolved(call, argv),
        writable=bool(call.args.get("writable", True)),
        timeout_s=call.args.get("timeout_s"),
        heard=call.heard,
    )
    result = results.of_outcome(outcome)
    if "verdict_file" in call.args and result.status == "exited":
        # Written on this side and after the program, so that the program cannot forge it.
        word = "PASS\n" if result.exit == 0 else f"FAIL (exit {result.exit})\n"
        beneath.write_beneath(call.workspace, str(call.args["verdict_file"]), word.encode())
    return result
