"""Our tools in the hands of real agents, and the conformance of our server of MCP. Used by bench_agents.

A scripted model has the agent call our tools: a file is written, a host and a command need a person,
who signs later, and the same call is then done. The conformance suite is asked of `spak mcp --port 0`;
`BEYOND` are its scenarios for what we do not offer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spak.guard.scripted import Scripted, ToolCall

SPAK = str(Path(sys.executable).with_name("spak"))
LAW = "forbidden(A) :- tool(A, /run), !approved(A).\n"
BEYOND = {
    *("logging-set-level", "completion-complete", "tools-call-image", "tools-call-audio"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-logging"),
    *("tools-call-with-progress", "tools-call-sampling", "tools-call-elicitation"),
    *("elicitation-sep1034-defaults", "elicitation-sep1330-enums", "json-schema-2020-12"),
    *("server-sse-polling", "resources-list", "resources-read-text", "resources-read-binary"),
    *("resources-templates-read", "resources-subscribe", "resources-unsubscribe", "prompts-list"),
    *("prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource"),
    "prompts-get-with-image",
}


class Model(Scripted):
    """One that calls a tool of MCP as the agent has it: Codex in a script of its own language, Claude Code
    although it has not looked the tool up."""

    def events(self, asked: Mapping[str, Any], key: str, number: int) -> list[dict[str, Any]]:
        """As of any scripted model."""
        if "Bash" in str(asked.get("tools")):
            asked = {**asked, "tools": [call.tool for call in self.calls]}
        found = super().events(asked, key, number)
        for event in found:
            item = event.get("item", {})
            if item.get("type") == "function_call":
                script = f"text(await tools.{item['name']}({item['arguments']}))"
                event["item"] = {
                    "type": "custom_tool_call", "id": item["id"], "call_id": item["call_id"], "name": "exec",
                    "input": script,
                }  # fmt: skip
        return found


def session(name: str, program: Path, args: Sequence[str]) -> tuple[int, int]:
    """How much of a session with our tools went wrong, and of how much."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        project, home = Path(place) / "project", {"XDG_CONFIG_HOME": f"{place}/home"}
        project.mkdir()
        (project / "a.txt").write_text("one\n")
        (project / "law.mg").write_text(LAW)
        keys = spak(project, home, "keys", "make", "alice").stdout
        (project / "spak.toml").write_text(f'[policy]\nlaw = ["law.mg"]\n{keys}')
        command = {"cmd": ["touch", "made"]}

        def signed(_: str) -> Mapping[str, Any]:
            waits = json.loads(spak(project, home, "guard", "asks", "latest", "--json").stdout)["approvals"]
            one = next(asked["of"] for asked in waits if asked["tool"] == "run")
            spak(project, home, "approve", "latest", "--of", one)
            return command

        calls = [
            ToolCall("mcp__spak__write_file", {"path": "new.txt", "content": "hello"}),
            ToolCall("mcp__spak__http_request", {"url": "https://example.org/"}),
            ToolCall("mcp__spak__run", command),
            ToolCall("mcp__spak__read_file", {"path": "a.txt"}),
            ToolCall("mcp__spak__run", signed),
        ]
        with Model(calls).serving() as model:
            line = ("guard", "--json", "--wait", "0", "--", str(program), *args)
            done = spak(project, {**home, **model.env}, *line)
        print(done.stderr[-1500:], file=sys.stderr)
        run = json.loads(done.stdout)
        said = [*model.results, *[""] * 6]
        wrong = {
            "it did not end well": done.returncode != 0 or run["state"] != "succeeded",
            "not every call was made": len(model.results) != len(calls) + 1,
            "the file was not written": "new.txt: 5 bytes" not in said[1],
            "nobody was asked about the host": "policy.approval_later" not in said[2],
            "nobody was asked": "policy.approval_later" not in said[3],
            "it did not go on": "one" not in said[4],
            "the later answer was not found": "policy." in said[5] or "made" not in str(run["artifacts"]),
            "replay failed": spak(project, home, "replay", run["run"]).returncode != 0,
        }
        for what in (what for what, so in wrong.items() if so):
            print(f"{name} with our tools: {what}", file=sys.stderr)
        return sum(wrong.values()), len(wrong)


def conformance(place: Path) -> tuple[int, int]:
    """How many scenarios that apply fail, and how many apply."""
    program = place / "node_modules/.bin/conformance"
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        line = [SPAK, "mcp", "--port", "0"]
        with subprocess.Popen(line, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            url = next(said.split()[1] for said in server.stderr if "http://" in said)
            asked = [str(program), "server", "--url", url]
            done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=300)
            server.send_signal(signal.SIGINT)
            server.communicate()
    rows = [said.split(":")[0].split() for said in done.stdout.splitlines() if said[:1] in ("✓", "✗")]
    applies = [(mark, name) for mark, name in rows if name not in BEYOND]
    failed = [name for mark, name in applies if mark == "✗"]
    for name in failed:
        print(f"conformance: {name}", file=sys.stderr)
    return len(failed) if applies else 1, len(applies)


def spak(folder: Path, env: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    """The command, in that folder."""
    line = [SPAK, *args]
    return subprocess.run(
        line, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=300
    )
