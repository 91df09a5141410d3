"""What backends over HTTP have in common: a call, its key, and which models are there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from spak.cancel import Cancel
from spak.errors import UnavailableError
from spak.lang.catalog import NamedEntry
from spak.llm import http, messages, retry
from spak.llm.retry import Put, Reply
from spak.llm.settings import STANDARD_KEYS, Choice
from spak.ports import Answer, Prompt

PROBE_S = 10.0


class HttpBackend(ABC):
    """A backend that knows which models it has. Each says how it lists, writes and sends."""

    entry: NamedEntry
    address: str
    """The maker's, where none is set."""

    def __init__(self, choice: Choice | None = None) -> None:
        chosen = choice or Choice(mode=self.entry.name)
        self.choice = replace(chosen, base_url=chosen.base_url or self.address)

    @abstractmethod
    async def models(self) -> tuple[str, ...]:
        """The models that are there. Raises: Trouble."""

    @abstractmethod
    def body(self, prompt: Prompt, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is sent."""

    @abstractmethod
    async def attempt(self, body: Mapping[str, Any], put: Put) -> Reply:
        """Send it and read the reply. Raises: Trouble."""

    def params(self, prompt: Prompt) -> dict[str, Any]:
        """What the answer is drawn with."""
        return messages.sampling(prompt, self.choice)

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        self.guard()
        params = self.params(prompt)
        body = self.body(prompt, params)

        async def attempt(put: Put) -> Reply:
            return await self.attempt(body, put)

        return retry.ask(attempt, prompt, self.choice, params, on_text, cancel)

    def guard(self) -> None:
        """Raises: UnavailableError `llm.no_key`, `llm.insecure`."""
        usual = STANDARD_KEYS.get(self.choice.mode, "") if self.choice.base_url == self.address else ""
        name = self.choice.key_env or usual
        if name and self.choice.secret is None:
            raise UnavailableError(
                "llm.no_key",
                f"there is no key for {self.choice.mode}",
                f'export {name}=..., or in spak.toml: [llm] key_file = "..." (a file with mode 600)',
            )
        http.guard(self.choice)

    def has(self, model: str, listed: tuple[str, ...]) -> bool:
        return model in listed

    def mend(self, model: str) -> str:
        """What helps where a model is not there."""
        return "`spak models` lists those that are there; set [llm] model"

    def model(self, prompt: Prompt) -> str:
        """The model that a prompt goes to. Raises: UnavailableError `llm.no_model`."""
        name = prompt.model or self.choice.model
        if not name:
            raise UnavailableError(
                "llm.no_model",
                f"no model is named for {self.choice.mode}",
                'in spak.toml: [llm] model = "..."; `spak models` lists those that are there',
            )
        return name

    def listed(self) -> tuple[str, ...]:
        """The models there now, sorted. Raises: UnavailableError `llm.*`."""
        found: list[str] = []

        async def attempt(put: Put) -> Reply:
            found[:] = await self.models()
            return Reply("")

        limit = min(max(PROBE_S, self.choice.connect_s), self.choice.timeout_s)
        chosen = replace(self.choice, retries=0, timeout_s=limit)
        retry.ask(attempt, Prompt("", ()), chosen, {})
        return tuple(sorted(found))

    def check(self) -> None:
        """Raises: UnavailableError `llm.*`: no key, not reachable, no such model."""
        self.guard()
        name = self.model(Prompt("", ()))
        listed = self.listed()
        if not self.has(name, listed):
            raise UnavailableError(
                "llm.unknown_model", f"{self.choice.mode} has no model {name!r}", self.mend(name)
            )
