"""Our tools in the hands of real agents, and the conformance of our server and our client of MCP. Used by
bench_agents.

A scripted model has the agent call our tools: a file is written, a host and a command need a person,
who signs later, and the same call is then done; a tool of an MCP server of others (`--mcp`) answers. The
conformance suite is asked of `spak mcp --port 0`; `BEYOND` are its scenarios for what we do not offer. Of its
servers for clients each is listed, and each of its tools called, by `python -m bench.agents_mcp URL`;
`BEYOND_CLIENT` are its scenarios for what our client does not have: it signs in nowhere (OAuth), and declines
every question of a server. The pins hold the SDK of the suite at 1.25.2: with a later one its server of
`tools_call` answers a single request of any client.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import mcp_kit  # noqa: E402
from spak import config  # noqa: E402
from spak.guard.scripted import Scripted, ToolCall  # noqa: E402
from spak.mcp import pins  # noqa: E402
from spak.mcp.pins import Server  # noqa: E402
from spak.own import starting  # noqa: E402
from spak.ports import Call  # noqa: E402
from spak.tools.served import Servers, url_of  # noqa: E402

SPAK = str(Path(sys.executable).with_name("spak"))
LAW = 'forbidden(A) :- tool(A, /run), !approved(A).\nmcp_may("small", "say").\n'
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
BEYOND_CLIENT = {
    "elicitation-sep1034-client-defaults",
    *("auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3"),
    *("auth/basic-cimd", "auth/2025-03-26-oauth-metadata-backcompat"),
    *("auth/2025-03-26-oauth-endpoint-fallback", "auth/scope-from-www-authenticate"),
    *("auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up"),
    *("auth/scope-retry-limit", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post"),
    *("auth/token-endpoint-auth-none", "auth/client-credentials-jwt", "auth/client-credentials-basic"),
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
            if item.get("type") == "function_call" and item["name"].startswith("mcp__"):
                script = f"text(await tools.{item['name']}({item['arguments']}))"
                event["item"] = {
                    "type": "custom_tool_call", "id": item["id"], "call_id": item["call_id"], "name": "exec",
                    "input": script,
                }  # fmt: skip
        return found


def session(name: str, program: Path, args: Sequence[str], kind: type[Scripted]) -> tuple[int, int]:
    """How much of a session with our tools went wrong, and of how much."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        project, home = Path(place) / "project", {"XDG_CONFIG_HOME": f"{place}/home"}
        project.mkdir()
        (project / "a.txt").write_text("one\n")
        (project / "law.mg").write_text(LAW)
        mcp_kit.pin(project, "small")
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
            ToolCall("mcp__spak__small__say", {"text": "hi"}),
        ]
        with kind(calls).serving() as model:
            line = ("guard", "--json", "--wait", "0", "--mcp", "small", "--", str(program), *args)
            done = spak(project, {**home, **model.env}, *line)
        print(done.stderr[-1500:], file=sys.stderr)
        run = json.loads(done.stdout)
        said = [*model.results, *[""] * 7]
        wrong = {
            "it did not end well": done.returncode != 0 or run["state"] != "succeeded",
            "not every call was made": len(model.results) != len(calls) + 1,
            "the file was not written": "new.txt: 5 bytes" not in said[1],
            "nobody was asked about the host": "policy.approval_later" not in said[2],
            "nobody was asked": "policy.approval_later" not in said[3],
            "it did not go on": "one" not in said[4],
            "the later answer was not found": "policy." in said[5] or "made" not in str(run["artifacts"]),
            "the MCP server did not answer": "MCP server small, not instructions" not in said[6]
            or "say 1: hi" not in said[6],
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


def client_conformance(place: Path) -> tuple[int, int]:
    """The same for our client. A name in BEYOND_CLIENT that the suite does not have counts as failed."""
    program = str(place / "node_modules/.bin/conformance")
    listed = subprocess.run([program, "list", "--client"], capture_output=True, text=True, timeout=60)
    known = {line.removeprefix("  - ") for line in listed.stdout.splitlines() if line.startswith("  - ")}
    applies = sorted(known - BEYOND_CLIENT)
    failed = sorted(BEYOND_CLIENT - known)
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        for name in applies:
            ours = f"{sys.executable} -m {__spec__.name}"
            line = [program, "client", "--command", ours, "--scenario", name, "-o", folder]
            if subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120).returncode:
                failed.append(name)
    for name in failed:
        print(f"conformance of our client: {name}", file=sys.stderr)
    return len(failed) if applies else 1, len(applies)


def client(url: str) -> int:
    """List the tools of a server on this machine, and call each; 1 where a call failed."""
    start = starting(replace(config.Settings(), reach=("loopback",)), Path())
    servers = Servers({"suite": Server("suite", url=url)}, start)
    host = url_of(url).host
    try:
        found = servers.definitions("suite")
        tools = {one["name"]: pins.pinned(one) for one in found}
        servers.approved["suite"] = replace(servers.approved["suite"], tools=tools)
        failed = 0
        for name, tool in servers.tools().items():
            args = dict.fromkeys(tool.entry.schema["required"], 1)
            seen = {"hosts": [[host, ["127.0.0.1"]]]}
            done = tool.run(Call("1", name, args, Path(), None, reach=("loopback",), observed=seen))
            failed += done.exit != 0
        return int(failed > 0)
    finally:
        servers.close()


def spak(folder: Path, env: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    """The command, in that folder."""
    line = [SPAK, *args]
    return subprocess.run(
        line, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=300
    )


if __name__ == "__main__":
    sys.exit(client(sys.argv[1]))
