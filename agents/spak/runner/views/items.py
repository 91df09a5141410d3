"""A run's prompts and answers as Open Responses items: messages, reasoning, function calls and their outputs.

Takes records and blobs; gives items in order, by replay. A prompt's items that the prompt before it showed
alike are left out, so that the list reads as a conversation. A call that did not fit or was denied gets its
R4 as output, as the proposer got it. Source: seed 000 sections 3.2 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spak import canon
from spak.kernel.state import Effect
from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand, prompt_of
from spak.runner.views.turns import Turn, turns


def items(records: Iterable[Record], blobs: Blobs) -> Iterator[dict[str, Any]]:
    """The items of a run; a prompt that waits for its answer is among them. Raises: LedgerError."""
    made, last = Items(blobs), None
    for turn in turns(records):
        last = turn
        yield from made.of(turn)
    pending = last.after.r6 if last is not None else None
    if last is not None and pending is not None and pending.items:
        yield from made.prompt(pending, last)


class Items:
    """Makes the items of one run, turn by turn; ids and calls are counted over all of them."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.count = 0
        self.shown: frozenset[tuple[str, str, str]] = frozenset()
        self.open = ""
        """The call of a plan that has no output yet."""

    def of(self, turn: Turn) -> Iterator[dict[str, Any]]:
        """What a turn adds: the new part of its prompt, then its answer or its call."""
        if turn.done is not None and turn.done.act in ("ask", "plan") and turn.done.items:
            yield from self.prompt(turn.done, turn)
        yield from self.answer(turn)

    def answer(self, turn: Turn) -> Iterator[dict[str, Any]]:
        """What came back in a turn, without the prompt."""
        effect = turn.done
        if effect is None or effect.act not in ("ask", "plan", "tool"):
            return
        if effect.act == "tool":
            yield from self._tool(effect, turn)
            return
        if turn.proposal.kind == Kind.PLAN:
            yield from self._plan(turn)
        else:
            yield self._message(
                "assistant", self._text(turn.proposal.body.get("out", "")), not turn.rolled_back
            )

    def prompt(self, effect: Effect, turn: Turn) -> Iterator[dict[str, Any]]:
        """The items of a prompt that the prompt before it did not show."""
        prompt = prompt_of(effect, self.blobs, turn.rules)
        now = [(str(item["role"]), str(item["name"]), str(item["text"])) for item in prompt.items]
        for role, name, text in now:
            if (role, name, text) not in self.shown:
                yield self._message(role, text)
        self.shown = frozenset(now)

    def _plan(self, turn: Turn) -> Iterator[dict[str, Any]]:
        body, selected = turn.proposal.body, turn.first(Kind.SELECT)
        if body.get("reasoning"):
            text = self._text(body["reasoning"])
            content = [{"type": "reasoning_text", "text": text}]
            yield self._item("reasoning", summary=[], content=content)
        index = selected.body.get("i", -1) if selected is not None else -1
        candidates = body.get("candidates")
        listed = candidates if isinstance(candidates, list) else []
        for number, candidate in enumerate(listed):
            if number == max(index, 0) and isinstance(candidate, dict):
                yield self._call(str(candidate.get("tool", "")), candidate.get("args", {}), index >= 0)
        if body.get("surface"):
            yield self._message("assistant", self._text(body["surface"]))
        denied = any(
            record.body.get("allow") is False for record in turn.commits if record.kind == Kind.PERMIT
        )
        if self.open and (index < 0 or denied):
            yield self._output(canon.dumps(turn.after.r4).decode(), False)

    def _tool(self, effect: Effect, turn: Turn) -> Iterator[dict[str, Any]]:
        if not self.open:
            yield self._call(effect.name, effect.args)
        body = turn.proposal.body
        if turn.rolled_back:
            yield self._output(canon.dumps(turn.after.r4).decode(), False)
        else:
            yield self._output(self._text(body.get("out", "")))

    # ---- one item

    def _item(self, type_: str, **more: Any) -> dict[str, Any]:
        self.count += 1
        return {"type": type_, "id": f"item_{self.count}", **more}

    def _message(self, role: str, text: str, whole: bool = True) -> dict[str, Any]:
        content: dict[str, Any] = {"type": "input_text", "text": text}
        if role == "assistant":
            content = {"type": "output_text", "text": text, "annotations": []}
        return self._item("message", role=role, status=_status(whole), content=[content])

    def _call(self, name: str, args: Any, whole: bool = True) -> dict[str, Any]:
        self.open = f"call_{self.count + 1}"
        arguments = canon.dumps(expand(args, self.blobs)).decode()
        status = _status(whole)
        return self._item("function_call", call_id=self.open, name=name, arguments=arguments, status=status)

    def _output(self, text: str, whole: bool = True) -> dict[str, Any]:
        call, self.open = self.open, ""
        return self._item("function_call_output", call_id=call, output=text, status=_status(whole))

    def _text(self, value: Any) -> str:
        return str(expand(value, self.blobs))


def _status(whole: bool) -> str:
    return "completed" if whole else "incomplete"
