"""An agent for tests that asks hooks as Claude Code does: of the kind `command`, before each call of a tool.

It asks its model by the Messages API, streamed, and has the tool `Bash`. Without `onFailure` a hook that
fails lets the call through, and settings that it cannot read have no hooks.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

if "--version" in sys.argv:
    print("9.9.9 (an agent for tests)")
    sys.exit(0)


def asked(messages):
    """What the model answers: the input of a call, or None."""
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({"model": "m", "messages": messages, "tools": [{"name": "Bash"}]}).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]},
    )
    with urllib.request.urlopen(request) as reply:
        events = [json.loads(line[5:]) for line in reply.read().splitlines() if line.startswith(b"data:")]
    parts = [event["delta"]["partial_json"] for event in events if "partial_json" in event.get("delta", {})]
    return json.loads("".join(parts)) if parts else None


def hooks(event):
    """Those of the project."""
    try:
        found = json.loads(Path(".claude/settings.local.json").read_text())["hooks"].get(event, [])
    except (OSError, ValueError, KeyError):
        return []
    return [hook for group in found for hook in group["hooks"] if hook["type"] == "command"]


def refused(hook, given):
    """Whether the hook does not let the call through."""
    fails = hook.get("onFailure") == "block"
    try:
        done = subprocess.run(
            hook["command"], shell=True, input=given, capture_output=True, timeout=hook["timeout"]
        )
    except subprocess.TimeoutExpired:
        return fails
    if done.returncode == 2:
        return True
    if done.returncode:
        return fails
    try:
        return json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] in ("deny", "ask")
    except (ValueError, KeyError):
        return False


messages = [{"role": "user", "content": "go"}]
number = 0
while (call := asked(messages)) is not None:
    event = {"session_id": "s", "tool_use_id": str(number), "tool_name": "Bash", "tool_input": call}
    given = json.dumps({**event, "cwd": str(Path.cwd())}).encode()
    if any(refused(hook, given) for hook in hooks("PreToolUse")):
        result = "refused"
    else:
        done = subprocess.run(["/bin/sh", "-c", call["command"]], capture_output=True, text=True)
        result = done.stdout + done.stderr
        for hook in hooks("PostToolUse"):
            subprocess.run(hook["command"], shell=True, input=given, capture_output=True)
    number += 1
    messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": result}]
