"""Values too long for a record: out into blobs on the way in, back into text on the way out.

`{"$blob": sha, "size": n, "head": text}` stands for a long text, `{"$text": [parts]}` for text with such
values inside. The kernel carries both untouched. `prompt_of` fills them in where a model is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from spak.errors import RunError
from spak.kernel import packet
from spak.kernel.rules import INLINE, MAX_FILLED, Rules
from spak.kernel.state import Effect
from spak.policy.law import SPEC
from spak.ports import Blobs, Prompt

MAX_EXPANDED = 2 * MAX_FILLED
"""Bytes of the blobs that one value is expanded with: what the kernel bounds is less."""
_HEAD = 200


def keep(text: str, blobs: Blobs) -> Any:
    """The text itself, or a reference when it is longer than a variable may hold."""
    data = text.encode("utf-8", "replace")
    if len(data) <= INLINE:
        return data.decode("utf-8")
    return {"$blob": blobs.put(data), "size": len(data), "head": text[:_HEAD]}


def shrink(value: Any, blobs: Blobs) -> Any:
    """A JSON value with every long text in it replaced by a reference."""
    if isinstance(value, str):
        return keep(value, blobs)
    if isinstance(value, Mapping):
        return {name: shrink(item, blobs) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shrink(item, blobs) for item in value]
    return value


def expand(value: Any, blobs: Blobs) -> Any:
    """A JSON value with every reference in it replaced by its text.

    Raises: RunError `run.text_too_long`; what `blobs.get` raises.
    """
    room = MAX_EXPANDED

    def expanded(value: Any) -> Any:
        nonlocal room
        if isinstance(value, Mapping):
            if "$blob" in value:
                data = blobs.get(value["$blob"])
                room -= len(data)
                if room < 0:
                    raise RunError(
                        "run.text_too_long",
                        f"the texts of one step come to more than {MAX_EXPANDED >> 20} MiB",
                        "use a long variable less often in one step",
                    )
                return data.decode("utf-8", "replace")
            if "$text" in value:
                return "".join(str(expanded(part)) for part in value["$text"])
            return {name: expanded(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [expanded(item) for item in value]
        return value

    return expanded(value)


def prompt_of(effect: Effect, blobs: Blobs, rules: Rules) -> Prompt:
    """The prompt of an ask or a plan, with long values filled in, and what its answer has to fit."""
    items = tuple(
        {"role": item["role"], "name": item["name"], "text": str(expand(item["text"], blobs))}
        for item in effect.items
    )
    plan = effect.act == "plan"
    schema = form_of(effect, rules).schema() if plan else None
    kind: Literal["ask", "plan"] = "plan" if plan else "ask"
    step = rules.program.tasks[effect.task].step(effect.step)
    role = (step.name if step is not None else "") or effect.name
    return Prompt(effect.id, items, role, kind, effect.task, schema, effect.prefix, step=effect.step)


def form_of(effect: Effect, rules: Rules) -> packet.Form:
    """What an answer of a plan has to fit. Where the POLICY declares predicates, atoms use no others."""
    decls = rules.gate.policy.decls
    verbs = sorted({decl.atom.pred for decl in decls.values() if decl.place.file == SPEC})
    return packet.form(rules.program, rules.program.tasks[effect.task], rules.catalog, verbs)
