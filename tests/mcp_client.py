"""A client of MCP for tests, inside a guarded session: `python3 mcp_client.py TOOL JSON` says what came of a
call, `python3 mcp_client.py` what tools there are."""

import json
import os
import sys
import urllib.request


def ask(method, params):
    base = os.environ["ANTHROPIC_BASE_URL"].removesuffix("/anthropic")
    request = urllib.request.Request(
        base + "/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode(),
        {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        },
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


if len(sys.argv) == 1:
    print(json.dumps(ask("tools/list", {}).get("result")))
else:
    found = ask("tools/call", {"name": sys.argv[1], "arguments": json.loads(sys.argv[2])})
    result = found.get("result") or {"isError": True, "content": [{"text": json.dumps(found)}]}
    print("failed:" if result["isError"] else "done:", result["content"][0]["text"])
    print(json.dumps(result.get("_meta")))
