"""A spec walked through by hand: the kernel decides, a person says what came of each effect, nothing is run.

Takes the text and the answers given so far; gives the records, and the effect that waits for the next answer.
Each request walks the whole way again from the text, so that nothing is kept between two of them. What the
policy asks of the world is answered by an empty workspace; hosts and devices are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from spak import canon
from spak.files.scratch import Scratch
from spak.kernel.state import Effect, State
from spak.kernel.step import step
from spak.records import Authority, Kind, Record
from spak.runner.observe import observe
from spakweb.face.editor.compiled import json_value, rules_of
from spakweb.face.editor.services import see
from spakweb.ground.errors import Refused
from spakweb.store.specs.team_files import TeamFiles

MAX_ANSWERS = 200
MAX_OBSERVATIONS = 8
"""Questions of the policy in a row, for one effect."""
MAX_SHOWN = 300

TIMEOUT = ("timeout", "by its time limit")
EXITS = (("well", "with exit code 0"), ("failed", "with exit code 1"), TIMEOUT)
MEASURES = (("well", "all checks are well"), ("failed", "a check fails"), TIMEOUT)
HOLDS = (("well", "the condition holds"), ("failed", "it does not hold"))


def attempt(request: Mapping[str, Any], team_files: TeamFiles | None = None) -> dict[str, Any]:
    """Raises: SpecError when the text does not compile, Refused for answers that are none."""
    answers = request.get("answers", [])
    if not isinstance(answers, list) or len(answers) > MAX_ANSWERS:
        raise Refused("web.request", f"Answers are a list, of at most {MAX_ANSWERS}.")
    walk = _Walk(request.get("text"), team_files)
    for answer in answers:
        walk.answer(answer)
    state = walk.state
    return {
        "records": [_record_as_json(record) for record in walk.records],
        "status": state.status,
        "why": ", ".join(state.r7.codes[-1:]) if state.ended else "",
        "effect": _effect(state.r6) if state.r6 is not None and not state.ended else None,
    }


class _Walk:
    def __init__(self, text: object, team_files: TeamFiles | None) -> None:
        self.rules = rules_of(see(text, team_files))
        self.state = State()
        self.records: list[Record] = []
        self.feed(Kind.GENESIS, {})

    def feed(self, kind: str, body: Mapping[str, Any]) -> None:
        place = self.state.r0
        record = Record(kind, Authority.PROPOSAL, body, place.task, place.step, place.attempt)
        stepped = step(self.rules, self.state, record)
        self.state = stepped.state
        if kind not in (Kind.GENESIS, Kind.OBSERVE):
            self.records.append(record)
        self.records += stepped.commits
        self.look()

    def look(self) -> None:
        """Answer what the policy asks of the world: here it is empty."""
        for _ in range(MAX_OBSERVATIONS):
            effect = self.state.r6
            if self.state.ended or effect is None or effect.act != "observe":
                return
            with Scratch("try") as folder:
                seen = observe(effect.args["questions"], folder)
            body = canon.loads(canon.dumps({"of": effect.id, "facts": seen}))
            record = Record(Kind.OBSERVE, Authority.PROPOSAL, body)
            stepped = step(self.rules, self.state, record)
            self.state = stepped.state
            self.records += stepped.commits

    def answer(self, answer: object) -> None:
        effect = self.state.r6
        if self.state.ended or effect is None:
            raise Refused("web.request", "The walk has ended already.", "Begin again.")
        if not isinstance(answer, Mapping) or not isinstance(answer.get("value"), str):
            raise Refused("web.request", "An answer has an outcome and a value.")
        kind, body = _proposal(effect, str(answer.get("outcome", "")), answer["value"], len(self.records))
        before = self.state
        self.feed(kind, {"of": effect.id, **body})
        if self.state is before:
            raise Refused(
                "web.request", "The kernel took no notice of this answer.", "Answer as the form says."
            )


def _proposal(effect: Effect, outcome: str, text: str, number: int) -> tuple[str, dict[str, Any]]:
    """What a person typed, as the proposal that a runner would bring back."""
    key = f"answer-{number}"
    match effect.act:
        case "plan":
            candidates = _candidates(text)
            if candidates is None:
                return Kind.ACT, {"outcome": "malformed", "code": "plan.malformed"}
            return Kind.PLAN, {"by": "person", "candidates": candidates}
        case "ask":
            return Kind.ACT, {"outcome": "answered", "out": text}
        case "check":
            return Kind.ACT, {"facts": [outcome != "failed" for _ in effect.args.get("atoms", ())]}
        case "validate":
            ok = outcome != "failed"
            checks = [{"name": "by hand", "ok": ok, "code": "" if ok else "validator.failed"}]
            metrics = _object(text or "{}")
            status = "measured" if metrics else "checked"
            body = {"status": status, "checks": checks, "metrics": metrics, "pairs": [], "key": key}
            return Kind.ACT, {"outcome": "timeout"} if outcome == "timeout" else {"outcome": "exited", **body}
        case "approve":
            raise Refused(
                "web.request", "The policy wants an approval here; none is given in a walk by hand."
            )
        case _:
            if outcome == "timeout":
                return Kind.ACT, {"outcome": "timeout"}
            found = {"outcome": "exited", "exit": int(outcome == "failed"), "out": text, "key": key}
            watched = {"facts": [True for _ in effect.watch]} if effect.watch else {}
            return Kind.ACT, found | watched


def _candidates(text: str) -> list[Any] | None:
    """The calls of a plan, in each form that the kernel's prompt allows; None where there are none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    packet = value.get("control_packet") if isinstance(value, dict) else None
    if isinstance(packet, dict):
        value = {"candidates": packet.get("tool_calls")}
    elif isinstance(value, dict) and "tool" in value:
        value = {"candidates": [value]}
    found = value.get("candidates") if isinstance(value, dict) else None
    return found if isinstance(found, list) else None


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise Refused("web.request", "The metrics are no JSON object.", 'For example {"latency_ns": 1500}.')
    return value


def _effect(effect: Effect) -> dict[str, Any]:
    texts = {
        "tool": (f"It would run {effect.name}", "What it prints", "", EXITS),
        "ask": ("It would ask a model", "Your answer in the model's place", "", ()),
        "plan": ("It would ask for a plan", "The plan, as JSON", "", ()),
        "check": ("It would look whether the task has succeeded", "A note (not used)", "", HOLDS),
        "validate": (f"It would measure with {effect.name}", "Metrics as JSON", "{}", MEASURES),
    }
    texts["approve"] = ("The policy asks for an approval", "Nobody can give one here", "", ())
    title, note, suggestion, outcomes = texts[effect.act] if effect.act in texts else texts["tool"]
    return {
        "act": effect.act,
        "title": f"{title} (task {effect.task}{f', step {effect.step}' if effect.step else ''})",
        "label": note,
        "suggestion": suggestion,
        "outcomes": [{"value": value, "label": label} for value, label in outcomes],
        "args": json_value(effect.args),
        "items": [dict(item) for item in effect.items],
    }


def _record_as_json(record: Record) -> dict[str, Any]:
    body = orjson.dumps(json_value(record.body), default=str).decode()
    return {
        "kind": record.kind,
        "authority": record.authority,
        "task": record.task,
        "step": record.step,
        "said": body if len(body) <= MAX_SHOWN else body[: MAX_SHOWN - 1] + "…",
    }
