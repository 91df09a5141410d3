"""What a guarded session waits for from people: approvals of exact calls, and answers to its questions.

Takes what the run asks and what people say, in any order and from any thread. Nobody waits here for long: a
call that a person has to decide is denied as `policy.approval_later`, and the same call, proposed again once
the answer is there, is judged with it. It verifies nothing: the kernel does (spak.policy.approval).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spak import canon
from spak.errors import RunError
from spak.kernel.state import Effect
from spak.policy import approval
from spak.ports import Call, ToolResult
from spak.tools import results

LATER = "policy.approval_later"
MOST_QUESTIONS = 16
MOST_APPROVALS = 64
"""Open ones; the oldest is forgotten, and asked for again by the next call."""


@dataclass(slots=True)
class Question:
    """One that the agent asks."""

    text: str
    answer: str | None = None


class People:
    """Of one session."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._asking: dict[str, dict[str, Any]] = {}
        """By permit: the action that waits, newest last."""
        self._answers: dict[str, Mapping[str, Any]] = {}
        """By action: the signed answer."""
        self._questions: dict[str, Question] = {}
        self._count = 0

    # ---- for the run -----------------------------------------------------------------------------------

    def answer_to(self, effect: Effect) -> Mapping[str, Any]:
        """The answer to what the run waits for: the signed one, or that nobody has answered yet."""
        args = effect.args["args"]
        action = approval.action_hash(effect.name, args)
        with self._lock:
            found = self._answers.pop(action, None)
            if found is None:
                self._asking[effect.id] = {
                    "of": effect.id, "action": action, "act": effect.args["act"], "tool": effect.name,
                    "args": args, "step": f"{effect.task}/{effect.step}",
                }  # fmt: skip
                while len(self._asking) > MOST_APPROVALS:
                    del self._asking[next(iter(self._asking))]
                return {"of": effect.id, "decision": approval.LATER}
            for permit in [one for one, asked in self._asking.items() if asked["action"] == action]:
                del self._asking[permit]
            return found

    def asked(self, call: Call) -> ToolResult:
        """The tool `ask_person`: the answer, or how to go on until there is one."""
        text = str(call.args["question"])
        with self._lock:
            found = next((key for key, one in self._questions.items() if one.text == text), None)
            if found is None:
                if len(self._questions) >= MOST_QUESTIONS:
                    return results.failed("guard.questions", f"{MOST_QUESTIONS} questions wait for a person")
                self._count += 1
                found = f"q{self._count}"
                self._questions[found] = Question(text)
            question = self._questions[found]
            if question.answer is None:
                return results.done(
                    f"waiting ({found}): the person has not answered yet. Ask the same again later, or go on"
                    " with something else.\n",
                    waiting=found,
                )
            del self._questions[found]
            return results.done(question.answer + "\n", answered=found)

    # ---- for who proposes ------------------------------------------------------------------------------

    def heard(self, action: str, patience: float) -> bool:
        """Wait until somebody has answered about this action, at most so many seconds; whether so."""
        with self._lock:
            return self._lock.wait_for(lambda: action in self._answers, patience)

    def replied(self, question: object, patience: float) -> bool:
        """The same of a question; False at once where it does not wait."""
        with self._lock:
            found = next((one for one in self._questions.values() if one.text == question), None)
            return found is not None and self._lock.wait_for(lambda: found.answer is not None, patience)

    # ---- for people ------------------------------------------------------------------------------------

    def waiting(self) -> dict[str, Any]:
        """What waits for a person, oldest first: approvals (permit, action, tool, arguments, step) and
        questions."""
        with self._lock:
            return {
                "approvals": [one for one in self._asking.values() if one["action"] not in self._answers],
                "questions": [
                    {"id": key, "text": one.text}
                    for key, one in self._questions.items()
                    if one.answer is None
                ],
            }

    def decided(self, body: Mapping[str, Any]) -> None:
        """A signed answer to one of the approvals. Raises: RunError `guard.no_question`."""
        with self._lock:
            found = self._asking.get(str(body.get("of")))
            if found is None:
                raise _no_question()
            self._answers[found["action"]] = dict(body)
            self._lock.notify_all()

    def answered(self, question: str, text: str) -> None:
        """An answer to one of the questions. Raises: RunError `guard.no_question`."""
        with self._lock:
            found = self._questions.get(question)
            if found is None or found.answer is not None:
                raise _no_question()
            found.answer = text
            self._lock.notify_all()


def left_open(act: Mapping[str, Any]) -> str:
    """The id of the question that a recorded call of `ask_person` left open; empty where it has its answer or
    failed. An answer that reads like a waiting call has another key."""
    found = re.match(r"waiting \((q\d{1,9})\)", str(act.get("out", "")))
    if found is None or act.get("key") != canon.content_hash(["exited", 0, {"exit": 0, "waiting": found[1]}]):
        return ""
    return found[1]


def _no_question() -> RunError:
    return RunError("guard.no_question", "the session does not wait for that", "spak guard asks RUN lists it")
