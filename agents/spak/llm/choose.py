"""The backend that a run uses: for each call the one that its task and role name, with its price.

Made once per run from the settings; what it makes is kept, so that a local model is loaded once. It also
says beforehand what a call goes by and the most it can cost, for budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from spak.cancel import Cancel
from spak.costs.prices import Prices
from spak.errors import UnavailableError
from spak.llm.settings import LOCAL_WINDOW, Choice, LlmSettings
from spak.ports import Answer, Backend, Prompt

FREE = frozenset({"manual", "recorded", "ollama", "local"})
"""Backends whose calls cost no money."""

Make = Callable[[Choice], Backend]


@runtime_checkable
class Closing(Protocol):
    """A backend that holds something, such as a process."""

    def close(self) -> None: ...


class Chooser:
    """A Backend that hands each prompt to the one that is configured for it."""

    def __init__(
        self,
        mode: str,
        settings: LlmSettings,
        table: Mapping[str, Make],
        prices: Prices,
        forced: bool = False,
    ) -> None:
        self._mode = mode
        self._settings = settings
        self._table = table
        self._prices = prices
        self._forced = forced
        self._made: list[tuple[Choice, Backend]] = []
        self.entry = self._backend(settings.choice(mode, forced=forced)).entry

    def choice(self, prompt: Prompt) -> Choice:
        """What the call of a prompt goes by: backend, model, limits, window."""
        found = self._settings.choice(self._mode, prompt.task, prompt.role, self._forced)
        window = found.window or (LOCAL_WINDOW if found.mode == "local" else 0)
        return replace(found, model=prompt.model or found.model, window=window)

    def window(self, prompt: Prompt) -> int:
        """The window of the model that a prompt goes to, as the settings state it."""
        return self.choice(prompt).window

    def bound(self, prompt: Prompt, input_tokens: int) -> int | None:
        """The most nano-dollars that a call can cost; None when its model has no known price."""
        chosen = self.choice(prompt)
        if chosen.mode in FREE:
            return 0
        return self._prices.bound(chosen.model, input_tokens, prompt.max_tokens or chosen.longest)

    @property
    def made(self) -> tuple[Backend, ...]:
        """The backends that were made so far, for roles and tasks."""
        return tuple(backend for _, backend in self._made)

    def check(self) -> None:
        """Raises: UnavailableError `llm.*` when a backend that some role or task names cannot answer."""
        whole = self._settings
        for role in ("", *whole.roles):
            self._backend(whole.choice(self._mode, "", role, self._forced))
        for task in whole.tasks:
            self._backend(whole.choice(self._mode, task, "", self._forced))
        for _, made in self._made:
            made.check()

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer | None:
        chosen = self._settings.choice(self._mode, prompt.task, prompt.role, self._forced)
        answer = self._backend(chosen).answer(prompt, on_text, cancel)
        if answer is None:
            return None
        if chosen.mode != "recorded" and not {"input", "output"} <= set(answer.usage):
            answer = replace(answer, complete_usage=False)
        if answer.cost_nanousd is not None:
            return answer
        if chosen.mode in FREE:
            return replace(answer, cost_nanousd=0)
        known = (answer.model, prompt.model or chosen.model)
        costs = (self._prices.cost(model, answer.usage) for model in known)
        return replace(answer, cost_nanousd=next((cost for cost in costs if cost is not None), None))

    def close(self) -> None:
        """Give back what the backends hold."""
        for _, made in self._made:
            if isinstance(made, Closing):
                made.close()
        self._made.clear()

    def _backend(self, chosen: Choice) -> Backend:
        """The one that was made for this choice, or a new one."""
        for known, made in self._made:
            if known == chosen:
                return made
        make = self._table.get(chosen.mode)
        if make is None:
            raise UnavailableError(
                "unavailable.backend",
                f"there is no backend {chosen.mode!r} here",
                f"known backends: {', '.join(sorted(self._table))}",
            )
        self._made.append((chosen, make(chosen)))
        return self._made[-1][1]
