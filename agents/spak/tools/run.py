"""`run`: one program with its arguments, in the sandbox. No shell stands between."""

from __future__ import annotations

import re
import stat

from spak import schema_parts as parts
from spak.errors import UsageError
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import inside, results

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


class Run:
    """The tool `run`."""

    entry = ToolEntry(
        name="run",
        version=2,
        summary="Runs one program with its arguments in the sandbox and keeps its output.",
        schema=parts.members(
            ["cmd"],
            cmd=parts.listed(
                "The program and its arguments; a spec may write one line of text.",
                {"type": "string", "maxLength": 65536},
                256,
                1,
            ),
            working_dir=parts.WORKING_DIR,
            env=parts.ENV,
            timeout_s=parts.TIMEOUT,
            writable=parts.flag("False shows the workspace read-only.", True),
            verdict_file=parts.text(
                "A file that gets PASS or FAIL by the exit code, after the program.", 4096
            ),
        ),
        on_fail="continue",
        arguments={
            "cmd": "runs",
            "working_dir": "reads?",
            "env": "text",
            "timeout_s": "text",
            "writable": "text",
            "verdict_file": "edits?",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_run, call)


def _run(call: Call) -> ToolResult:
    argv = [str(word) for word in call.args["cmd"]]
    if not argv[0]:
        return results.failed("run.empty", "the program's name is empty", "name a program")
    env = {str(name): str(value) for name, value in call.args.get("env", {}).items()}
    wrong = next((name for name, value in env.items() if not _is_variable(name, value)), None)
    if wrong is not None:
        return results.failed("run.env", f"{wrong[:80]!a} is no variable with a text", 'A_NAME: "a value"')
    outcome = inside.run(
        call,
        inside.resolved(call, argv),
        writable=bool(call.args.get("writable", True)),
        timeout_s=call.args.get("timeout_s"),
        env=env,
        folder=_folder(call),
        heard=call.heard,
    )
    result = results.of_outcome(outcome)
    if "verdict_file" in call.args and result.status == "exited":
        # Written on this side and after the program, so that the program cannot forge it.
        word = "PASS\n" if result.exit == 0 else f"FAIL (exit {result.exit})\n"
        beneath.write_beneath(call.workspace, str(call.args["verdict_file"]), word.encode())
    return result


def _folder(call: Call) -> str:
    """The working folder, links resolved, below the workspace; empty for the workspace itself.

    Raises: UsageError `path.not_a_folder`, and what `beneath.locate` raises.
    """
    asked = str(call.args.get("working_dir", "."))
    if asked == ".":
        return ""
    with beneath.locate(call.workspace, asked) as place:
        status = place.status()
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise UsageError("path.not_a_folder", f"{asked!a} is no folder", "name a folder that exists")
        return place.path


def _is_variable(name: str, value: str) -> bool:
    return _VARIABLE.match(name) is not None and "\0" not in value
