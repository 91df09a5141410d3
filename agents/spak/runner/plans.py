"""Plans of proposers and models: what a proposer is asked, and what its answer is as the body of a proposal.

Takes an effect and what its run knows; gives a PlanRequest or a record's body. It performs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spak.kernel import packet
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.patch import PatchRefused, read_patch
from spak.ports import Asked, Blobs, Candidate, PlanRequest, Prompt, Question, Search
from spak.runner import searches
from spak.runner.blobs import expand, keep, shrink
from spak.runner.history import History
from spak.runner.host import Host


@dataclass(slots=True)
class Asks:
    """The question that a search may put to a model (`MeasureCall.ask`), and what its plan keeps of it."""

    effect: Effect
    history: History
    blobs: Blobs
    clean: Callable[[Any], Any]
    put: Callable[[Prompt], tuple[str, dict[str, Any]] | None]
    """Gives the answer and how it came about; None where a person would have to answer."""
    kept: dict[str, Any] = field(default_factory=dict)
    side: dict[str, Any] = field(default_factory=dict)

    def __call__(self, items: Sequence[Asked], schema: Mapping[str, Any]) -> str:
        """The answer without secrets; empty where nobody gives one now. Raises: as `put`."""
        effect = self.effect
        usual = Prompt(effect.id, (), "coder", "plan", effect.task, step=effect.step)
        prompt = prompt_for(Question(tuple(items), schema), usual, self.history, self.clean)
        answer = self.put(prompt)
        if answer is None:
            return ""
        text, self.side = answer
        self.kept = {"model": self.side["by"], "answer": keep(text, self.blobs)}
        self.kept["asked"] = keep(prompt.text, self.blobs)
        return text


def request(effect: Effect, rules: Rules, host: Host, history: History) -> PlanRequest:
    """What a proposer is asked for an effect."""
    task = rules.program.tasks[effect.task]
    search = rules.searches.get(effect.task, {})
    return PlanRequest(
        id=effect.id,
        task=effect.task,
        step=effect.step,
        turn=effect.turn,
        seed=effect.seed,
        options={**search.get("defaults", {}), **task.proposing.options},
        space=task.proposing.space,
        tools={name: host.tools[name].entry for name in task.tools if name in host.tools},
        history=history.of(effect.task),
        prior=searches.trials(search),
    )


def with_texts(
    asked: PlanRequest, effect: Effect, prompt: Prompt, blobs: Blobs, clean: Callable[[Any], Any]
) -> PlanRequest:
    """The request with what a question to a model is made of: prompt items, tried files, the baseline."""
    source = effect.rivals.get("baseline", {}).get("source")
    return replace(
        asked,
        history=[replace(trial, args=expand(trial.args, blobs)) for trial in asked.history],
        items=prompt.items,
        baseline=None if source is None else clean(blobs.get(source).decode("utf-8", "replace")),
    )


def prompt_for(question: Question, prompt: Prompt, history: History, clean: Callable[[Any], Any]) -> Prompt:
    """The prompt of a proposer's question, in the place of the kernel's, without secrets."""
    return replace(
        prompt,
        items=tuple({**item, "text": clean(item["text"])} for item in question.items),
        schema=question.schema,
        prefix=question.prefix,
        max_tokens=question.max_tokens,
        given=tuple(history.given),
    )


def called(call: packet.ToolCall) -> dict[str, Any]:
    """A call of a model's answer as a candidate."""
    made: dict[str, Any] = {"tool": call.tool, "args": dict(call.args)}
    return {**made, "score": call.score} if call.score else made


def proposed(effect: Effect, candidates: Sequence[Candidate], blobs: Blobs) -> dict[str, Any]:
    """The body of a proposer's plan."""
    listed = []
    for candidate in candidates:
        item: dict[str, Any] = {"tool": candidate.tool, "args": dict(candidate.args)}
        if candidate.score:
            item["score"] = candidate.score
        if candidate.params and candidate.args.get("params") != candidate.params:
            item["params"] = dict(candidate.params)
        if candidate.checks:
            item["checks"] = [dict(check) for check in candidate.checks]
        listed.append(item)
    return {"of": effect.id, "by": effect.name, "candidates": shrink(listed, blobs)}


def searched(effect: Effect, found: Search, blobs: Blobs) -> dict[str, Any]:
    """The body of a plan that a search ended with: its candidates, or its refusal."""
    body = {**proposed(effect, found.candidates, blobs), "search": shrink(dict(found.record), blobs)}
    if found.refusal is not None:
        body["refusal"] = shrink(dict(found.refusal), blobs)
    return body


def body_of(effect: Effect, found: Sequence[Candidate] | Search, blobs: Blobs) -> dict[str, Any]:
    """The body of whatever a proposer gave."""
    return searched(effect, found, blobs) if isinstance(found, Search) else proposed(effect, found, blobs)


def read(text: str, wanted: packet.Form) -> packet.Answer | packet.Misfit:
    """The answer that a text is. One that is nothing but a patch is a call of `apply_patch`, where the task
    has that tool: a person has a diff at hand, and models write one."""
    found = packet.parse(text, wanted, calls=False)
    if isinstance(found, packet.Answer) or "apply_patch" not in wanted.tools:
        return found
    if isinstance(read_patch(text), PatchRefused):
        return found
    call = json.dumps({"tool": "apply_patch", "args": {"patch": text}}, ensure_ascii=False)
    return packet.parse(call, wanted, calls=False)


def unusable(
    effect: Effect, text: str, found: packet.Misfit, side: Mapping[str, Any], blobs: Blobs
) -> dict[str, Any]:
    """The body of an answer that is no plan, with why; of one that was cut, that it was."""
    found = packet.CUT if side.get("finish") == "length" else found
    tried = keep(text[: packet.LIMIT], blobs)
    return {"of": effect.id, "outcome": "malformed", "out": tried, **found.to_json()}
