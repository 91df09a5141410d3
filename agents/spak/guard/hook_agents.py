"""The agents whose hooks the guard answers: where their settings are, which events they have, what their own
tools do in the words of the gate.

Takes the name of an agent's tool and its arguments; gives actions, all of which have to be allowed. A tool
that no table names is an action of its own name, which no rule permits by itself. It judges nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spak.policy.actions import Action

TIMEOUT_S = 30
"""After which an agent gives a hook up; the hook gives up before."""


@dataclass(frozen=True, slots=True)
class HookAgent:
    """An agent with hooks."""

    name: str
    file: str
    """Its settings in a project."""
    before: str
    """The event before a call of a tool."""
    after: tuple[str, ...]
    turn: str
    """The event at the end of a turn."""
    start: str
    gaps: tuple[str, ...]
    """What nothing holds where only hooks do, as far as it is known (`spak guard doctor`)."""
    grouped: bool = True
    """Whether an event has groups of hooks."""
    timeout: int | None = TIMEOUT_S
    """In the agent's unit; None leaves the agent's own."""
    closed: tuple[str, object] | None = None
    """What makes the agent deny where the hook fails."""
    silence: str = ""
    """What a hook prints that says nothing."""
    asks: bool = False
    """Whether a hook can have the agent ask its person."""
    advice: str = ""
    """What a person has to do besides."""


_ANY = "a command that an allowed command starts is seen by no hook"
AGENTS: Mapping[str, HookAgent] = {
    one.name: one
    for one in (
        HookAgent(
            "claude", ".claude/settings.local.json", "PreToolUse", ("PostToolUse", "PostToolUseFailure"),
            "Stop", "SessionStart", closed=("onFailure", "block"), asks=True,
            gaps=(_ANY, "a fault in a settings file switches its hooks off"),
        ),
        HookAgent(
            "codex", ".codex/hooks.json", "PreToolUse", ("PostToolUse",), "Stop", "SessionStart",
            gaps=(_ANY, "what it types into a program that runs (write_stdin) is seen by no hook",
                  "hooks that nobody trusted, and a fault in the file, switch them off"),
            advice="Codex runs them only once you trust the project and, in /hooks, each of them",
        ),
        HookAgent(
            "gemini", ".gemini/settings.json", "BeforeTool", ("AfterTool",), "AfterAgent", "SessionStart",
            timeout=1000 * TIMEOUT_S,
            gaps=(_ANY, "a hook that runs into the time-out, and a fault in the file, let the call through"),
            advice="Gemini CLI reads them only in a folder that you trust",
        ),
        HookAgent(
            "cursor", ".cursor/hooks.json", "preToolUse", ("postToolUse", "postToolUseFailure"), "stop",
            "sessionStart", grouped=False, timeout=None, closed=("failClosed", True), silence="{}",
            gaps=(_ANY, "a fault in the file switches its hooks off"),
        ),
    )
}  # fmt: skip
"""By name. Claude Code and Codex count the time-out in seconds, Gemini CLI in milliseconds."""

_PATH = ("file_path", "absolute_path", "notebook_path", "target_file", "path")
_FOLDER = ("path", "dir_path", "target_directory")
_LINE, _READ = ("shell", {"command": ("command",)}), ("read_file", {"path": _PATH})
_EDIT, _DELETE = ("write_file", {"path": _PATH}), ("delete_file", {"path": _PATH})
_LIST, _FETCH = ("list_files", {"path": _FOLDER}), ("http_request", {"url": ("url",)})
_GREP = ("grep", {"path": _FOLDER, "pattern": ("pattern",)})
_NATIVE: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    **dict.fromkeys(("Bash", "Shell", "run_shell_command"), _LINE),
    **dict.fromkeys(("Read", "NotebookRead", "read_file"), _READ),
    **dict.fromkeys(("Write", "write_file"), ("write_file", {"path": _PATH, "content": ("content",)})),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit", "StrReplace", "EditNotebook", "replace"), _EDIT),
    **dict.fromkeys(("Delete", "delete_file"), _DELETE),
    **dict.fromkeys(("Glob", "LS", "list_directory", "glob"), _LIST),
    **dict.fromkeys(("Grep", "grep_search", "search_file_content"), _GREP),
    **dict.fromkeys(("WebFetch", "web_fetch"), _FETCH),
}
"""The agent's tool to the gate's, and where the gate's arguments are among the agent's."""
QUIET = frozenset(
    {
        *("Agent", "Task", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput"),
        *("TaskStop", "BashOutput", "KillShell", "EnterPlanMode", "ExitPlanMode", "AskUserQuestion"),
        *("ToolSearch", "update_plan", "write_todos"),
    }
)
"""Tools that do nothing by themselves: what they lead to is asked about by itself."""
_PATCHED = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def actions(tool: str, args: Mapping[str, Any], cwd: str, workspace: str) -> list[Action]:
    """What a call of the agent's tool does; none for a quiet one."""
    if tool in QUIET:
        return []
    if tool == "apply_patch":
        patch = next((args[name] for name in ("command", "input", "patch") if name in args), None)
        found = list(_patched(str(patch), cwd))
        return found or [Action("apply_patch", {"patch": patch})]
    if tool not in _NATIVE:
        return [Action(tool, args)]
    name, wanted = _NATIVE[tool]
    made = {}
    for ours, theirs in wanted.items():
        value = next((args[one] for one in theirs if args.get(one) is not None), None)
        if value is not None:
            made[ours] = os.path.join(cwd, value) if ours == "path" and isinstance(value, str) else value  # noqa: PTH118
    if name in ("list_files", "grep"):
        made.setdefault("path", cwd)
    if name == "shell":
        there = os.path.relpath(cwd, workspace)
        if there != os.curdir:
            made["working_dir"] = there
    return [Action(name, made)]


def _patched(patch: str, cwd: str) -> Iterator[Action]:
    """Of a patch in the form of Codex: each file that it names."""
    for how, path in _PATCHED.findall(patch):
        tool = "delete_file" if how == "Delete" else "write_file"
        yield Action(tool, {"path": os.path.join(cwd, path.strip())})  # noqa: PTH118
