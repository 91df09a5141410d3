"""Which backends and models work here, found out by asking each once, and the line that mends the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spak.errors import SpakError
from spak.llm import _MAKERS
from spak.llm.http_backend import HttpBackend
from spak.llm.local import Local
from spak.llm.pull import PULLABLE, held
from spak.llm.settings import Choice, LlmSettings
from spak.ports import Backend

LIMIT_S = 5.0
CONNECT_S = 3.0


@dataclass(frozen=True, slots=True)
class Row:
    """A backend as `spak models` lists it; `code` and `mend` say why it cannot be used."""

    name: str
    summary: str
    ok: bool
    detail: str
    mend: str = ""
    code: str = ""
    models: tuple[str, ...] = ()
    model: str = ""
    """The configured one."""
    configured: bool = False
    """Whether `[llm]`, a role or a task names this backend."""


def survey(settings: LlmSettings) -> list[Row]:
    """A row per backend, in the order of the table, and one for each that is named and does not exist."""
    named = settings.backends()
    known = f"known backends: {', '.join(sorted(_MAKERS))}"
    return [_row(name, settings.choice(name), name in named) for name in _MAKERS] + [
        Row(
            name,
            "named in [llm]",
            False,
            f"there is no backend {name!r}",
            known,
            "unavailable.backend",
            configured=True,
        )
        for name in named
        if name not in _MAKERS
    ]


def _row(name: str, chosen: Choice, configured: bool) -> Row:
    quick = replace(
        chosen,
        timeout_s=min(chosen.timeout_s, LIMIT_S),
        connect_s=min(chosen.connect_s, CONNECT_S),
        retries=0,
    )
    made = _MAKERS[name](quick)
    summary = made.entry.summary
    try:
        detail, models = _ask(name, made, chosen, configured)
    except SpakError as error:
        return Row(name, summary, False, error.message, error.hint, error.code, (), chosen.model, configured)
    return Row(name, summary, True, detail, "", "", tuple(models), chosen.model, configured)


def _ask(name: str, made: Backend, chosen: Choice, configured: bool) -> tuple[str, Sequence[str]]:
    """What works, and the models. Raises: SpakError when it does not."""
    if name == "recorded" and not chosen.recording:
        return "works with a recorded run", ()
    if not isinstance(made, HttpBackend):
        made.check()
        if isinstance(made, Local):
            here = [name for name in PULLABLE if held(chosen.cache, name).is_file()]
            return "works, " + (f"model {chosen.model}" if chosen.model else f"model {here[0]}"), here
        return "works", ()
    if configured or chosen.model:
        made.check()
    listed = made.listed()
    return f"reached, {len(listed)} model{'' if len(listed) == 1 else 's'}", listed
