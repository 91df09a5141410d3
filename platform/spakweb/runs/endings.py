"""Why a run ended without success, in words: a phrase for each code that a run can end with.

docs/errors.md has a paragraph for each; the cause with its records comes from `spak.runner.views.causes`.
"""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WORDS = {
    "run.cancelled": "somebody cancelled it",
    "run.empty": "the name of the program that a step should run is empty",
    "run.env": "a step sets a variable that no environment can hold",
    "run.empty_task": "the task has nothing to do",
    "run.imported": "it was imported, and its rules are not those of this platform",
    "run.fork": "there is no such record to fork at",
    "run.interrupted": "it was interrupted",
    "run.invariant": "a step broke the task's invariant, and its changes were undone",
    "run.no_approval": "it waits for no approval",
    "run.no_candidates": "there was nothing left to try",
    "run.no_route": "the task failed, and the spec names no task to go on with then",
    "run.not_waiting": "it waits for no answer",
    "run.not_a_number": "a condition compares a text with a number",
    "run.poll_limit": "what a step waited for did not come in as many tries as it may make",
    "run.rollbacks": "the same thing failed and was undone too many times in a row",
    "run.success_unmet": "all steps were done, and the success conditions do not hold",
    "run.unbound_variable": "a step needs a variable that has no value",
    "run.unhandled_trigger": "the task ended in a way for which the spec names no task to go on with",
    "run.watchdog_loop": "it went round in a loop: the same steps with the same results, without progress",
    "run.no_spec": "the version of its spec is gone",
    "budget.elapsed": "its time is used up",
    "budget.retries": "the task failed as often as it may be tried",
    "budget.steps": "it made as many steps as it may",
    "budget.cost": "its money is used up, or the next call could pass it",
    "budget.tokens": "its tokens are used up, or the next prompt would use them up",
    "budget.window": "a prompt does not fit the model's window",
    "policy.changed": "what was permitted changed before it was done",
    "policy.denied": "no rule permits what it wanted to do",
    "policy.forbidden": "a rule forbids what it wanted to do",
    "policy.observation": "what was seen of the files or hosts makes no sense",
    "policy.rounds": "the rules had ever more questions about one action",
    "policy.not_in_tools": "a plan asked for a tool that the task does not list",
    "policy.unknown_tool": "a plan asked for a tool that does not exist",
    "secret.unknown": "a secret that it names is not known on this host",
    "secret.judged": "a secret was named where its value would have had to be judged",
    "plan.malformed": "a plan could not be read",
    "answer.atom": "an answer that should be a fact is none",
    "tool.crash": "a tool crashed, and its changes were undone",
    "tool.exit": "a command did not end with exit 0",
    "tool.launcher": "the sandbox could not start a tool",
    "tool.limit": "a tool passed a limit of its sandbox, and its changes were undone",
    "tool.oom": "a tool used more memory than it may, and its changes were undone",
    "tool.timeout": "a tool took longer than it may, and its changes were undone",
    "tool.unknown": "it is unknown how a tool ended, and its changes were undone",
    "validator.void": "a measurement could not be made",
}
FAMILIES = {
    "answer": "an answer could not be used",
    "approval": "an approval was not valid",
    "budget": "a limit of the spec is reached",
    "llm": "the model gave no answer",
    "ledger": "its records could not be written or read",
    "measure": "a measurement failed",
    "patch": "a patch could not be applied",
    "plan": "a plan could not be used",
    "policy": "the rules do not permit what it wanted to do",
    "recall": "what was recalled from memory does not exist",
    "tool": "a tool failed",
    "unavailable": "something that it needs is unavailable",
    "upload": "the files that were brought for it cannot be used",
    "validator": "a validator failed",
    "workspace": "its files could not be read or written",
}
_NUMBERS = re.compile(r"(?<=\brecord )\d+|(?<=\brecords )\d+(?:(?:-|, | to )\d+)*")


def words(code: str) -> str:
    """The phrase; of an unknown code nothing."""
    return WORDS.get(code) or FAMILIES.get(code.partition(".")[0], "")


def in_words(reason: str) -> str:
    """A reason that begins with a code, with the code's phrase before it."""
    phrase = words(reason.partition(":")[0].partition(",")[0].strip())
    return f"{phrase[:1].upper()}{phrase[1:]} ({reason})" if phrase else reason


def sentence(word: str, task: str, codes: list[str], cause: str) -> str:
    """`Failed in repair: a phrase. The cause with its records.`"""
    where = f"{word} in {task}" if task else word
    phrases = list(dict.fromkeys(filter(None, map(words, codes)))) or codes or ["no reason is recorded"]
    first = cause.partition(" ")[0]
    shown = cause if "_" in first else f"{cause[:1].upper()}{cause[1:]}"  # the name of a tool stays as it is
    why = f" {shown.rstrip('.')}." if cause else ""
    return f"{where}: {'; '.join(phrases)}.{why}"


def linked(text: str, address: str) -> SafeString:
    """The text with links from its record numbers to the records."""
    parts: list[Any] = []
    at = 0
    for found in _NUMBERS.finditer(text):
        parts.append(format_html("{}", text[at : found.start()]))
        numbers = re.split(r"(\d+)", found[0])
        parts += [
            format_html('<a href="{}?tab=records&amp;seq={}#record">{}</a>', address, piece, piece)
            if piece.isdigit() else format_html("{}", piece)
            for piece in numbers
        ]  # fmt: skip
        at = found.end()
    return format_html_join("", "{}", ((part,) for part in [*parts, format_html("{}", text[at:])]))
