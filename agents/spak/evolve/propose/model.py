"""Candidates from a model: what it is asked, and how its answer is read. Source: seed 002 section 6.1.

The answer is one JSON object and nothing else, with `grammar_patch`, `dsl_patch` and `rationale`. `dsl_patch`
is a list of edits (docs/typed-edits.md) or a unified diff of the spec, which becomes edits or is refused.
Prose around the object, other members and numbers that are none are refused (`outer.contract`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak import canon
from spak.errors import OuterError, UserError
from spak.evolve.analyze import Finding
from spak.evolve.gate.candidate import Candidate, of_diff
from spak.ports import Backend, Prompt

TRIES = 3
"""Answers that may break the contract, one after the other."""
MEMBERS = {"grammar_patch", "dsl_patch", "rationale"}
MAX_ANSWER = 1 << 20
SHOWN = 20
FORMAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "grammar_patch": {"type": "string"},
        "dsl_patch": {},
        "rationale": {"type": "string"},
    },
    "required": ["grammar_patch", "dsl_patch", "rationale"],
    "additionalProperties": False,
}


def asked(
    answering: Backend, base: str, known: Sequence[Candidate], refused: Sequence[str] = ()
) -> list[Candidate]:
    """A model's candidate; `known` are those that follow from findings. An answer that breaks the contract is
    asked for again, with the reason. Raises: OuterError `outer.contract`, `outer.untyped`, EditRefused."""
    listed = [Finding("finding", "", "", (), item.rationale) for item in known]
    refusals, error = list(refused), None
    for number in range(TRIES):
        items = tuple(prompt(base, listed, refusals))
        answer = answering.answer(Prompt(f"propose-{number}", items, role="proposer", schema=FORMAT))
        if answer is None:
            break
        try:
            return [contract(answer.text, base)]
        except UserError as caught:
            error = caught
            refusals.append(f"{caught.message} [{caught.code}]")
    raise error or OuterError("outer.contract", "the model gave no answer", "ask again, or use rules")


def prompt(base: str, findings: Sequence[Finding], refused: Sequence[str] = ()) -> list[dict[str, str]]:
    """The items that a model is asked: the spec, findings with their records, what was refused before."""
    listed = "\n".join(f"- {item.code} in TASK {item.task}: {item.message}" for item in findings[:SHOWN])
    items = [
        {"role": "system", "name": "contract", "text": _CONTRACT},
        {"role": "user", "name": "spec", "text": base},
        {"role": "user", "name": "findings", "text": listed or "Nothing was found."},
    ]
    if refused:
        items.append({"role": "user", "name": "refused", "text": "Refused before:\n" + "\n".join(refused)})
    return items


def contract(answer: str, base: str) -> Candidate:
    """What an answer proposes. Raises: OuterError `outer.contract`, `outer.untyped`; EditRefused."""
    text = answer.strip()
    if len(text) > MAX_ANSWER or not (text.startswith("{") and text.endswith("}")):
        raise _broken("it is not one JSON object and nothing else")
    try:
        value = canon.loads(text)
    except UserError as error:
        raise _broken(error.message) from error
    if not isinstance(value, dict) or set(value) != MEMBERS:
        raise _broken(f"its members are not {', '.join(sorted(MEMBERS))}")
    patch, rationale, grammar = value["dsl_patch"], value["rationale"], value["grammar_patch"]
    if not isinstance(rationale, str) or not isinstance(grammar, str):
        raise _broken("rationale or grammar_patch is not text")
    if isinstance(patch, str):
        return of_diff(base, patch, "model", rationale, grammar)
    if not isinstance(patch, list):
        raise _broken("dsl_patch is neither a list of edits nor a diff")
    return Candidate.from_json(
        {"edits": patch, "proposer": "model", "rationale": rationale, "grammar_patch": grammar}
    )


def _broken(why: str) -> OuterError:
    return OuterError(
        "outer.contract", f"the model's answer breaks the contract: {why}", "ask again, or use rules"
    )


_CONTRACT = """You improve an agent's spec. Answer with one JSON object and nothing else:
{"grammar_patch": "", "dsl_patch": [EDIT, ...], "rationale": TEXT}
EDIT is a typed operation, for example
{"op": "set", "key": "RETRIES", "value": 2, "task": NAME}
{"op": "set", "key": "GOAL", "value": TEXT, "task": NAME}
{"op": "remove_model_item", "kind": "heuristic", "number": 1}
grammar_patch is empty: a grammar patch is kept for a person, and the candidate is refused.
Validators, conditions, axioms, policy, tools gained, budgets upwards, sandbox, level, mode and
grammar need a person."""
