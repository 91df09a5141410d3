"""What agents get where they run behind the guard, by the name of their program: variables, first
options, and what lies in their home, so that they find the model and our tools and begin without questions.

In all of it the guest puts the port for `{spak-port}` and the folder for `{spak-folder}`. No key is among it.
It starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

STAND_IN = "behind-spak-guard"
GUARDED, ASKS = "SPAK_GUARDED", "SPAK_ASKS"
"""Variables of the agent: that it is behind the walls; and the command by which its hooks ask the guard."""
ENVIRONMENT: Mapping[str, str] = {
    GUARDED: "1",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:{spak-port}/anthropic",
    "ANTHROPIC_API_KEY": STAND_IN,
    "OPENAI_BASE_URL": "http://127.0.0.1:{spak-port}/openai/v1",
    "OPENAI_API_KEY": STAND_IN,
    "HTTPS_PROXY": "http://127.0.0.1:{spak-port}",
    "HTTP_PROXY": "http://127.0.0.1:{spak-port}",
    "NO_PROXY": "127.0.0.1,localhost",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
"""For every agent."""
MODEL_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "codex": (
        *("-c", 'model_provider="spak"', "-c", 'model_providers.spak.name="spak"'),
        *("-c", 'model_providers.spak.base_url="http://127.0.0.1:{spak-port}/openai/v1"'),
        *("-c", 'model_providers.spak.env_key="OPENAI_API_KEY"'),
        *("-c", 'model_providers.spak.wire_api="responses"'),
    ),
}
"""Where the model is for agents that do not read it from the environment, by the name of the program."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "claude": (
        *("--mcp-config", '{"mcpServers":{"spak":{"type":"http","url":"http://127.0.0.1:{spak-port}/mcp"}}}'),
        *("--settings", '{"permissions":{"allow":["mcp__spak"]}}'),
    ),
    "codex": (
        *("-c", 'mcp_servers.spak.url="http://127.0.0.1:{spak-port}/mcp"'),
        *("-c", "mcp_servers.spak.required=true", "-c", "mcp_servers.spak.tool_timeout_sec=3600"),
        *("-c", 'sandbox_mode="danger-full-access"'),  # its own cannot be made within ours
        *("-c", 'projects={"{spak-folder}"={trust_level="trusted"}}'),
        *MODEL_OPTIONS["codex"],
    ),
    "qwen": (
        "--mcp-config",
        '{"mcpServers":{"spak":{"httpUrl":"http://127.0.0.1:{spak-port}/mcp","trust":true}}}',
    ),
}
"""First options of agents, by the name of the program: our tools, and where the model is."""

STATE: Mapping[str, Mapping[str, Any]] = {
    "claude": {
        ".claude.json": {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [STAND_IN]},
            "projects": {"{spak-folder}": {"hasTrustDialogAccepted": True}},
        },
    },
}
"""Files of an agent's home: else its first start asks for a theme, a sign-in and its own servers."""


_HOOK = {"hooks": [{"type": "http", "url": "http://127.0.0.1:{spak-port}/hook"}]}


def options(program: str, *, hooks: bool) -> tuple[str, ...]:
    """Those of an agent; with `hooks` it asks the guard before each call, where it can be told so."""
    found = OPTIONS.get(program, ())
    if not (hooks and program == "claude"):
        return found
    return (*found[:-1], json.dumps({**json.loads(found[-1]), "hooks": {"PreToolUse": [_HOOK]}}))


def home(agent: str) -> str:
    """The files of its home, as JSON: texts by their names."""
    return json.dumps({name: json.dumps(one) for name, one in STATE.get(agent, {}).items()})
