"""A small MCP server on standard input and output, in plain JSON lines, for tests: honest or hostile.

Its one argument is a folder with `tools.json` (the definitions that it lists) and `how.json`: what it does
otherwise than an honest server, by the name of the method. It imports nothing of ours and needs no package.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()


def read(name: str, usual: Any) -> Any:
    path = FOLDER / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else usual


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answered(method: str, params: dict[str, Any], calls: int) -> dict[str, Any] | None:
    """The result of a request; None for a method that it does not know."""
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "small", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": read("tools.json", [])}
    if method == "tools/call":
        said = params.get("arguments", {}).get("text", "")
        return {"content": [{"type": "text", "text": f"{params['name']} {calls}: {said}"}]}
    return None


def main() -> None:
    calls = 0
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method", ""), message.get("id")
        if number is None:
            continue
        how = read("how.json", {}).get(method, "")
        calls += method == "tools/call"
        result = answered(method, message.get("params") or {}, calls)
        if how == "hang":
            continue
        if how == "end":
            return
        if how == "other_id":
            number = 4711
        elif how == "long":
            sys.stdout.write("x" * 51_000_000 + "\n")
        elif how == "noise":
            sys.stdout.write("starting up...\n{broken\n")
        elif how == "announce":
            say({"method": "notifications/tools/list_changed"})
        elif how == "error":
            say({"id": number, "error": {"code": -32000, "message": "it is\u202e broken"}})
            continue
        elif isinstance(how, dict):
            result = how
        if result is None:
            say({"id": number, "error": {"code": -32601, "message": "no such method"}})
        else:
            say({"id": number, "result": result})


if __name__ == "__main__":
    main()
