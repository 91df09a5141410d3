"""What backends with a list of models have in common: is the server there, does it hold the model."""

from __future__ import annotations

from dataclasses import replace

from spak.errors import UnavailableError
from spak.llm import call, http
from spak.llm.call import Put, Reply
from spak.llm.settings import Choice
from spak.ports import Prompt

PROBE_S = 10.0


class Models:
    """A backend that knows which models it has. Subclasses give `models`, and `mend` for one it lacks."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    async def models(self) -> tuple[str, ...]:
        raise NotImplementedError

    def guard(self) -> None:
        """Raises: UnavailableError `llm.no_key`, `llm.insecure`."""
        http.guard(self.choice)

    def has(self, model: str, listed: tuple[str, ...]) -> bool:
        return model in listed

    def mend(self, model: str) -> str:
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
        call.ask(attempt, Prompt("", ()), chosen, {})
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
