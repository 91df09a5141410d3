"""The sign-in of an agent itself, where there is no API key: read on the host each time that it is sent.

Takes the name of the agent's program and the person's environment; gives the provider and a SignIn, whose
`token` reads the agent's file of credentials. The sandbox does not see that file, and nothing here writes or
renews it: an agent that runs outside of the guard does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spak.errors import UsageError
from spak.inputs import read_at_most
from spak.secrets.secret import Secret

MOST = 1 << 20
"""Bytes of a file of credentials."""
OAUTH = "oauth-2025-04-20"
"""What Anthropic's interface wants in `anthropic-beta` beside such a token."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where an agent keeps its credentials."""

    agent: str
    file: Path

    def token(self) -> Secret | None:
        """What it signs in with now; None where nobody has signed in.

        Raises: UsageError `guard.sign_in` where that cannot be used."""
        try:
            data = read_at_most(self.file, MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        try:
            found = json.loads(data or b"")
            if not isinstance(found, dict):
                raise ValueError
        except (ValueError, RecursionError) as error:
            raise self._unusable("is not as the agent writes it") from error
        value = self._claude(found) if self.agent == "claude" else self._codex(found)
        if value is None:
            return None
        if not value.isascii() or not value.isprintable() or len(value) < 16:
            raise self._unusable("holds no token")
        return Secret(value)

    def _claude(self, found: Mapping[str, Any]) -> str | None:
        signed = found.get("claudeAiOauth")
        if signed is None:
            return None
        value = signed.get("accessToken") if isinstance(signed, dict) else None
        if not isinstance(value, str):
            raise self._unusable("holds no token")
        ends = signed.get("expiresAt")
        if isinstance(ends, (int, float)) and ends <= time.time() * 1000:
            raise self._unusable("has expired")
        return value

    def _codex(self, found: Mapping[str, Any]) -> str | None:
        value = found.get("OPENAI_API_KEY")
        if isinstance(value, str) and value:
            return value
        if found.get("tokens"):
            raise UsageError(
                "guard.sign_in",
                "codex is signed in with ChatGPT, which has another address than the guard sends to",
                "sign in with a key outside of the guard: codex login --with-api-key, or set OPENAI_API_KEY",
            )
        return None

    def _unusable(self, why: str) -> UsageError:
        hint = f"start {self.agent} once outside of the guard and sign in there, or set an API key"
        return UsageError("guard.sign_in", f"the sign-in of {self.agent} in {self.file} {why}", hint)


def sign_in(agent: str, variables: Mapping[str, str]) -> SignIn | None:
    """Where that agent's credentials are; None for one of which nothing is known."""
    places = {
        "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        "codex": ("CODEX_HOME", ".codex", "auth.json"),
    }
    if agent not in places:
        return None
    variable, usual, file = places[agent]
    folder = variables.get(variable)
    return SignIn(agent, (Path(folder) if folder else Path(variables.get("HOME", "/")) / usual) / file)
