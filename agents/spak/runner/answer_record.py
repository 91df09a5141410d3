"""How an answer of a model came about, as it is recorded with the answer, and who cannot be asked."""

from __future__ import annotations

from math import isfinite
from typing import Any

from spak import canon, tokens
from spak.errors import UnavailableError
from spak.ports import Answer, Blobs, Prompt
from spak.runner.views import quality


def about(answer: Answer, blobs: Blobs, prompt: Prompt) -> dict[str, Any]:
    """Usage, parameters, latency, cost, log-probabilities. It decides nothing but budgets."""
    known: dict[str, Any] = {
        "tokens": answer.tokens,
        "usage": dict(answer.usage),
        "params": dict(answer.params),
        "finish": answer.finish,
        "latency_ms": answer.latency_ms,
        "tries": answer.tries if answer.tries > 1 else 0,
        "recorded": dict(answer.recorded),
    }
    found = {name: value for name, value in known.items() if value}
    if answer.cost_nanousd is not None:
        found["cost_nanousd"] = answer.cost_nanousd
    if answer.logprobs and all(map(isfinite, answer.logprobs)):
        listed = list(answer.logprobs)
        found["logprobs"] = {"$blob": blobs.put(canon.dumps(listed)), **quality.score(listed)}
    elif answer.model:
        found["logprobs"] = "not available"
    if not answer.complete_usage:  # or a BUDGET of tokens would have no end here
        found["tokens"] = tokens.count(prompt.items) + tokens.of_text(answer.text)
    return found


def no_judge(validator: str, task: str) -> UnavailableError:
    """A validator that asks a model, where no model can be asked."""
    return UnavailableError(
        "unavailable.judge",
        f"the validator {validator} of TASK {task} asks a model, and no model is configured",
        "name one: --backend NAME, or [llm] mode in spak.toml; a person cannot answer for it",
    )


def no_model(proposer: str, task: str) -> UnavailableError:
    """A proposer that asks a model, where no model can be asked."""
    return UnavailableError(
        "unavailable.model",
        f"PROPOSER {proposer} of TASK {task} asks a model, and no model is configured",
        "name one: --backend NAME, --from RECORDING, or [llm] mode; a person cannot answer for it",
    )
