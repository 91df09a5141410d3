"""Model backends, one file per kind, and their table. A backend answers a prompt, or leaves it to a person.

`BACKENDS[name]()` makes one without settings, for its entry; `open_backend` makes those that a run uses, with
the settings of `[llm]`, per role and per task. Client libraries are loaded by the first call, not from here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from spak.costs.prices import load
from spak.llm.anthropic_ import Anthropic
from spak.llm.choose import Chooser
from spak.llm.gemini_cli import GeminiCli
from spak.llm.local import Local
from spak.llm.manual import Manual
from spak.llm.ollama import Ollama
from spak.llm.openai_compatible import OpenAICompatible
from spak.llm.recorded import Recorded, prompt_hash
from spak.llm.settings import Choice, LlmSettings
from spak.ports import Backend
from spak.secrets.redact import Redactor

_MAKERS: Mapping[str, Callable[[Choice | None], Backend]] = {
    "manual": lambda choice: Manual(),
    "recorded": Recorded,
    "ollama": Ollama,
    "anthropic": Anthropic,
    "openai_compatible": OpenAICompatible,
    "gemini_cli": GeminiCli,
    "local": Local,
}


def _bare(make: Callable[[Choice | None], Backend]) -> Callable[[], Backend]:
    return lambda: make(None)


BACKENDS: Mapping[str, Callable[[], Backend]] = {name: _bare(make) for name, make in _MAKERS.items()}


def open_backend(
    mode: str,
    settings: LlmSettings,
    forced: bool = False,
    own: Mapping[str, Backend] = MappingProxyType({}),
) -> Chooser:
    """The backend that a run uses; `forced` when a flag named it, `own` are those of the operator.

    Raises: UnavailableError `unavailable.backend`, `llm.key_file`; UsageError `usage.config` for the prices.
    """
    table = {**{name: _as_made(made) for name, made in own.items()}, **_MAKERS}
    return Chooser(mode, settings, table, load(settings.prices), forced)


def _as_made(made: Backend) -> Callable[[Choice | None], Backend]:
    return lambda choice: made


def redactor(settings: LlmSettings) -> Redactor:
    """What keeps the configured keys, and whatever looks like one, out of records."""
    return Redactor(settings.secrets())


__all__ = ["BACKENDS", "Chooser", "LlmSettings", "Redactor", "open_backend", "prompt_hash", "redactor"]
