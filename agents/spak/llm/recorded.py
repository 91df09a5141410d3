"""The backend that repeats what was answered before: from a run's ledger, an exported run, or a plain file.

Takes the lines of one of these and gives each prompt the answer that was given to it. A ledger names the
question of an answer by its effect id, which is the content of its permit: the same prompt at the same place
of the same run. `strict` takes an answer only for its own question; otherwise the next one in order is taken
and the answer's model says so (`recorded, another prompt`), if it was given to the same step. A plain file
has one answer per line:

    {"prompt": "<prompt_hash>", "text": "...", "model": "...", "usage": {"input": 10, "output": 2}}

with `finish` (`length`: it was cut) where that is known, `prompt` left out for answers that go by order
alone, and `task`, `step` and `role` where only that question may get the answer. The file is read as data;
nothing in it is checked against the chain (`spak ledger verify` does that).

It keeps no count of what it has given: each answer says which one it is (`Answer.recorded`), the run's ledger
keeps that, and each prompt brings it back (`Prompt.given`). A run that was stopped goes on with the next one.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spak import canon
from spak.cancel import Cancel
from spak.errors import RunError, SpakError, UnavailableError, UsageError
from spak.inputs import read_at_most
from spak.lang.catalog import NamedEntry
from spak.llm.retry import tokens
from spak.llm.settings import Choice
from spak.ports import Answer, Finish, Prompt

MAX_FILE = 256 << 20
OTHER_PROMPT = " (recorded, another prompt)"
"""What the model of an answer ends with that was recorded for another prompt of the same step."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded answer and the hash of the prompt that it answered."""

    text: str
    of: str = ""
    """The effect id, or the prompt's hash, that it answers."""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    finish: Finish = ""
    task: str = ""
    """With `step` and `role` the place that it was given at, each where it is known."""
    step: str = ""
    role: str = ""

    @property
    def hash(self) -> str:
        """What the answer is recorded as when it is used."""
        return canon.content_hash([self.of, self.text])

    def to_json(self) -> dict[str, Any]:
        """As a line of a plain file."""
        known = {
            "prompt": self.of, "model": self.model, "usage": dict(self.usage), "finish": self.finish,
            "task": self.task, "step": self.step, "role": self.role,
        }  # fmt: skip
        return {"text": self.text, **{name: value for name, value in known.items() if value}}

    def misplaced(self, prompt: Prompt) -> bool:
        """Whether it was given to another step than the one that asks."""
        places = (self.task, prompt.task), (self.step, prompt.step), (self.role, prompt.role)
        return any(mine and mine != asked for mine, asked in places)


def prompt_hash(prompt: Prompt) -> str:
    """The content of what is asked: its items and its schema, wherever and by whomever it is asked."""
    items = [{key: item[key] for key in ("role", "name", "text")} for item in prompt.items]
    return canon.content_hash([items, prompt.schema])


class Recorded:
    """A backend that gives the answers of a recording."""

    entry = NamedEntry("recorded", "the answers of an earlier run or of a file, again")

    def __init__(
        self, choice: Choice | None = None, recordings: Iterable[Recording] | None = None, name: str = ""
    ) -> None:
        """`recordings` take the place of the configured file, and `name` that of its name."""
        self.choice = choice or Choice(mode="recorded")
        self.name = name or Path(self.choice.recording).name
        self._known: Sequence[Recording] | None = None if recordings is None else tuple(recordings)

    @property
    def count(self) -> int:
        """How many answers it has; 0 until they are read."""
        return len(self._known or ())

    def check(self) -> None:
        """Raises: UnavailableError `llm.recorded`: no file is named, it cannot be read or holds no answer."""
        if not self._answers():
            raise UnavailableError(
                "llm.recorded", "the recording holds no answer", "record a run with another backend first"
            )

    def bound(self, prompt: Prompt, input_tokens: int) -> int:
        """Nothing is paid twice."""
        return 0

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        """Raises: RunError `llm.exhausted`, `llm.another_prompt`, `llm.another_question`,
        `llm.another_recording`; UnavailableError `llm.recorded`."""
        if cancel is not None and cancel.is_set():
            raise RunError("llm.cancelled", "the call of the model was cancelled", "spak resume continues it")
        known = self._answers()
        left = self._left(known, prompt.given)
        number, own = self._choose(known, left, prompt)
        found = known[number]
        if on_text is not None:
            on_text(found.text)
        model = found.model or "recorded"
        model = model if own else model + OTHER_PROMPT
        noted = {"name": self.name, "line": number + 1, "hash": found.hash}
        return Answer(found.text, found.usage, model, finish=found.finish, recorded=noted)

    def _left(self, known: Sequence[Recording], given: Iterable[Mapping[str, Any]]) -> list[int]:
        """The places of the answers that the run has not been given, in order.

        Raises: RunError `llm.another_recording`.
        """
        used = set()
        for noted in given:
            if noted.get("name") != self.name:
                continue
            line = noted.get("line")
            index = line - 1 if type(line) is int else -1
            if not 0 <= index < len(known) or known[index].hash != noted.get("hash"):
                raise RunError(
                    "llm.another_recording",
                    f"answer {line} of the recording {self.name} is not the one that this run was given",
                    f"restore the recording, or use another one: {_OTHERWISE}",
                )
            used.add(index)
        return [index for index in range(len(known)) if index not in used]

    def _choose(self, known: Sequence[Recording], left: Sequence[int], prompt: Prompt) -> tuple[int, bool]:
        """The place of the answer for a prompt, and whether it belongs to it.

        Raises: RunError `llm.exhausted`, `llm.another_prompt`, `llm.another_question`.
        """
        names = {prompt.id, prompt_hash(prompt)}
        own = next((index for index in left if known[index].of in names), None)
        if own is not None:
            return own, True
        asked = f"step {prompt.step} of TASK {prompt.task}" if prompt.step else "this prompt"
        if not left:
            raise RunError(
                "llm.exhausted",
                f"all {len(known)} recorded answers were given, and {asked} asks for another one",
                f"add answers to {self.name} and spak resume RUN, or {_OTHERWISE}"
                if self.choice.recording
                else _LONGER,
            )
        following = next((index for index in left if not (known[index].of and self.choice.strict)), None)
        if following is None:
            raise RunError(
                "llm.another_prompt",
                f"no recorded answer was given to {asked}: its prompt differs; {len(left)} others are left",
                f"the spec or the world differs from the recorded run; strict = false takes them in order; "
                f"{_OTHERWISE}",
            )
        item = known[following]
        if item.misplaced(prompt):
            place = [("step", item.step), ("TASK", item.task), ("role", item.role)]
            given = " of ".join(f"{kind} {name}" for kind, name in place if name)
            raise RunError(
                "llm.another_question",
                f"the next recorded answer, number {following + 1}, was given to {given}, not to {asked}"
                + (f" in role {prompt.role}" if item.role and item.role != prompt.role else ""),
                f"use a recording of this spec, or {_OTHERWISE}",
            )
        return following, not item.of

    def _answers(self) -> Sequence[Recording]:
        if self._known is None:
            if not self.choice.recording:
                raise UnavailableError(
                    "llm.recorded",
                    "no recording is named",
                    "spak run, step or resume with --backend recorded --from RUN, or [llm] recording",
                )
            path = self.choice.path(self.choice.recording)
            self._known = read(contents(path).splitlines())
        return self._known


_OTHERWISE = (
    "spak step RUN --answer-file FILE answers by hand; spak resume RUN takes --from RUN2 or --backend NAME"
)
"""What to do where the recording has no answer."""
_LONGER = (
    "spak resume RUN --from RUN2 takes a longer recording, --backend NAME asks a model; "
    "spak step RUN --answer-file FILE answers by hand"
)


def contents(path: Path) -> bytes:
    """The bytes of a recording. Raises: UnavailableError `llm.recorded`."""
    try:
        data = read_at_most(path, MAX_FILE)
    except OSError as error:
        raise UnavailableError(
            "llm.recorded", f"the recording {path} cannot be read: {error.strerror}", "check the path"
        ) from None
    if data is None:
        raise UnavailableError("llm.recorded", f"the recording {path} is too large", "shorten it")
    return data


def read(lines: Iterable[bytes], blob: Callable[[str], bytes] | None = None) -> list[Recording]:
    """The answers in the lines of a ledger, an exported run or a plain file, in their order.

    `blob` gives the long values of a ledger; an exported run carries its own.
    Raises: UsageError `usage.input`.
    """
    found: list[tuple[Any, Recording]] = []
    held: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = canon.loads(line)
            if not isinstance(value, dict):
                raise ValueError
            if "blob" in value and "data" in value:
                held[str(value["blob"])] = b64decode(str(value["data"]), validate=True)
        except (SpakError, ValueError):
            raise UsageError(
                "usage.input",
                f"line {number} of the recording is not a record",
                "name what `spak export` wrote, or a file with one answer a line (docs/models.md)",
            ) from None
        if "data" in value and "blob" in value:
            continue
        item = _answer(value)
        if item is not None:
            found.append(item)

    def get(name: str) -> bytes:
        if name in held:
            return held[name]
        if blob is None:
            raise UsageError("usage.input", "the recording lacks a long value", "export the run: spak export")
        return blob(name)

    return [_whole(raw, recording, get) for raw, recording in found]


def _answer(value: Mapping[str, Any]) -> tuple[Any, Recording] | None:
    """A line's answer, its text still as the record holds it; None when the line is none."""
    place = {name: str(value.get(name, "")) for name in ("task", "step", "role")}
    if isinstance(value.get("text"), str) and "kind" not in value:
        usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
        model, of = str(value.get("model", "")), str(value.get("prompt", ""))
        return value["text"], Recording("", of, model, tokens(**(usage or {})), _finish(value), **place)
    body, side = value.get("body"), value.get("side") or {}
    if value.get("authority") != "proposal" or not isinstance(body, dict) or not isinstance(side, dict):
        return None
    usage = side.get("usage")
    counts = tokens(**usage) if isinstance(usage, dict) else {}
    model = str(side.get("model") or side.get("by") or "")
    recording = Recording("", str(body.get("of", "")), model, counts, _finish(side), **place)
    if value.get("kind") == "act" and body.get("outcome") in ("answered", "malformed"):
        return body.get("out", ""), recording
    evidence = body.get("evidence")
    if value.get("kind") == "act" and isinstance(evidence, dict) and "judge_answer" in evidence:
        return evidence["judge_answer"], recording
    if value.get("kind") == "plan" and body.get("by") == "model":
        return _packet(body), recording
    if value.get("kind") == "plan" and "answer" in body:
        return body["answer"], recording
    return None


def _finish(value: Mapping[str, Any]) -> Finish:
    """Why an answer ended: one that was cut is judged as cut when it is given again."""
    found = value.get("finish")
    return found if found in ("stop", "length", "refused") else ""


def _packet(body: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's answer again, all that was read in it."""
    control = {name: body[kept] for name, kept in _CONTROL.items() if kept in body}
    surface = {"surface_response": body["surface"]} if "surface" in body else {}
    return {"control_packet": {"tool_calls": [], **control}, **surface}


_CONTROL: Mapping[str, str] = {
    "reasoning_trace": "reasoning",
    "tool_calls": "candidates",
    "mangle_updates": "atoms",
    "memory_operations": "memory",
    "self_correction": "correction",
}
"""What each member of a control packet is called in a record."""


def _whole(raw: Any, recording: Recording, get: Callable[[str], bytes]) -> Recording:
    full = _expand(raw, get)
    text = full if isinstance(full, str) else canon.dumps(full).decode()
    return replace(recording, text=text)


def _expand(value: Any, get: Callable[[str], bytes]) -> Any:
    """The value with every reference to a long text replaced by the text."""
    if isinstance(value, dict):
        if "$blob" in value:
            return get(str(value["$blob"])).decode("utf-8", "replace")
        return {name: _expand(item, get) for name, item in value.items()}
    return [_expand(item, get) for item in value] if isinstance(value, list) else value
