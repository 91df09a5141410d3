"""Ollama: `/api/chat` with one JSON object per line, the schema as `format`.

`truncate: false` and `shift: false` ask the server to refuse a prompt over its window instead of cutting it
in silence; versions that do not know them ignore them, so set `window` (sent as `num_ctx`) for those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.lang.catalog import NamedEntry
from spak.llm import http, messages, retry
from spak.llm.http_backend import HttpBackend
from spak.llm.retry import Put, Reply
from spak.ports import Finish, Prompt

_FINISH: Mapping[str, Finish] = {"stop": "stop", "length": "length"}


class Ollama(HttpBackend):
    """Models of an Ollama server."""

    entry = NamedEntry("ollama", "a model that Ollama serves")
    address = "http://127.0.0.1:11434"

    async def models(self) -> tuple[str, ...]:
        """The models that the server holds."""
        self.guard()
        found = await http.fetched(self.choice, f"{self.choice.base_url}/api/tags")
        listed = found.get("models") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            raise http.protocol(self.choice, "no list of models")
        return tuple(str(item["name"]) for item in listed if isinstance(item, dict) and "name" in item)

    def has(self, model: str, listed: tuple[str, ...]) -> bool:
        return model in listed or f"{model}:latest" in listed

    def mend(self, model: str) -> str:
        """The command that fetches a model."""
        return f"ollama pull {model}"

    def body(self, prompt: Prompt, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is sent."""
        options = {"num_predict" if name == "max_tokens" else name: value for name, value in params.items()}
        if self.choice.window:
            options["num_ctx"] = self.choice.window
        body: dict[str, Any] = {
            "model": self.model(prompt),
            "messages": messages.chat(prompt),
            "stream": True,
            "options": options,
            "truncate": False,
            "shift": False,
        }
        if self.choice.logprobs:
            body["logprobs"] = True
        if prompt.schema is not None and self.choice.structured:
            body["format"] = messages.masked(prompt.schema)
        return body

    async def attempt(self, body: Mapping[str, Any], put: Put) -> Reply:
        """Send a request and read its stream. Raises: Trouble."""
        text: list[str] = []
        logs: list[float] = []
        kinds = ("application/x-ndjson", "application/json")
        async with http.streamed(
            self.choice, "POST", f"{self.choice.base_url}/api/chat", body, kinds
        ) as lines:
            async for line in lines:
                if not line.strip():
                    continue
                part = http.parsed(self.choice, line)
                if not isinstance(part, dict):
                    raise http.protocol(self.choice, "a line that is not an object")
                if "error" in part:
                    raise http.complained(self.choice, part)
                message = part.get("message", {})
                piece = message.get("content", "") if isinstance(message, dict) else None
                if not isinstance(piece, str) or not isinstance(part.get("done", False), bool):
                    raise http.protocol(self.choice, "a message in another shape")
                text.append(piece)
                put(piece)
                logs += retry.logprobs(part.get("logprobs"))
                if part.get("done"):
                    return Reply(
                        "".join(text),
                        _FINISH.get(str(part.get("done_reason")), ""),
                        str(part.get("model", "")),
                        retry.tokens(input=part.get("prompt_eval_count"), output=part.get("eval_count")),
                        tuple(logs) or None,
                    )
        raise http.cut(self.choice)
