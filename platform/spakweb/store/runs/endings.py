"""Why a run ended without success, in words: a phrase for each code that a run can end with.

docs/errors.md has a paragraph for each; the cause with its records comes from `spak.runner.views.causes`.
"""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WORDS = {
    "run.cancelled": "it was cancelled",
    "run.empty": "a step names no program to run",
    "run.env": "a step sets an environment variable that the system does not accept",
    "run.empty_task": "the task has nothing to do",
    "run.imported": "it was imported, and its rules differ from those of this platform",
    "run.escalated": "the law gave up, and a person goes on",
    "run.fork": "the record to fork at does not exist",
    "run.interrupted": "it was interrupted",
    "run.invariant": "a step broke the task's invariant, and its changes were rolled back",
    "run.no_approval": "it is not waiting for an approval",
    "run.next_action": "the law derives no single next action for the end of the task",
    "run.no_candidates": "there were no candidates left to try",
    "run.no_route": "the task failed, and the spec has no next task for that",
    "run.not_waiting": "it is not waiting for an answer",
    "run.not_a_number": "a condition compares a text with a number",
    "run.poll_limit": "a step polled as often as it may, and what it waited for did not come",
    "run.rollbacks": "the same thing failed and was rolled back too many times in a row",
    "run.sealed_changed": "its sealed checks are not there as they were when it began",
    "run.sealed_checks": "its sealed checks do not hold",
    "run.success_unmet": "the success conditions do not hold",
    "run.text_too_long": "the texts of one step are too long together",
    "run.unbound_variable": "a step uses a variable that has no value",
    "run.unhandled_action": "the law derives an action for which the spec has no edge",
    "run.unhandled_trigger": "the task ended with a trigger for which the spec has no edge",
    "run.watchdog_loop": "it was in a loop: the same steps gave the same results, without progress",
    "ledger.semantics": "an earlier kernel made it, and this one does not replay it",
    "run.no_spec": "the version of its spec no longer exists",
    "budget.elapsed": "its time limit is reached",
    "budget.retries": "the task was retried as often as it may be",
    "budget.steps": "its step limit is reached",
    "budget.cost": "its cost limit is reached, or the next call could exceed it",
    "budget.tokens": "its token limit is reached, or the next prompt would exceed it",
    "budget.window": "a prompt does not fit into the model's context window",
    "policy.changed": "what is permitted changed before the action ran",
    "policy.denied": "no rule permits an action that it proposed",
    "policy.forbidden": "a rule forbids an action that it proposed",
    "policy.observation": "an observation of files or hosts is not valid",
    "policy.rounds": "the policy asked for more observations about one action than it may",
    "policy.not_in_tools": "a plan uses a tool that the task does not list",
    "policy.unknown_tool": "a plan uses a tool that does not exist",
    "secret.unknown": "a secret that it uses does not exist on this host",
    "secret.judged": "a secret is used where the policy would have to read its value",
    "secret.long_text": "a secret stands in a text that is too long, or put together, to fill it in",
    "plan.malformed": "a plan could not be parsed",
    "answer.atom": "an answer is not the fact that was asked for",
    "tool.crash": "a tool crashed, and its changes were rolled back",
    "tool.exit": "a command did not end with exit 0",
    "tool.launcher": "the sandbox could not start a tool",
    "tool.limit": "a tool exceeded a limit of its sandbox, and its changes were rolled back",
    "tool.oom": "a tool exceeded its memory limit, and its changes were rolled back",
    "tool.timeout": "a tool exceeded its time limit, and its changes were rolled back",
    "tool.unknown": "it is unknown how a tool ended, and its changes were rolled back",
    "validator.void": "a measurement could not be made",
}
FAMILIES = {
    "answer": "an answer could not be used",
    "approval": "an approval was not valid",
    "blocks": "the marked blocks of the source cannot be read",
    "budget": "a limit of the spec is reached",
    "evolve": "an answer had no usable text for the marked blocks",
    "llm": "the model gave no answer",
    "lang": "the spec has errors",
    "ledger": "its records could not be written or read",
    "measure": "a measurement failed",
    "migrate": "no migration was found that keeps all rows",
    "patch": "a patch could not be applied",
    "pins": "no answers of untested code can be pinned",
    "plan": "a plan could not be used",
    "policy": "the rules do not permit an action that it proposed",
    "repair": "the search found no patch that passes all checks",
    "recall": "something that it recalled from memory does not exist",
    "tool": "a tool failed",
    "unavailable": "something that it needs is unavailable",
    "upload": "its files cannot be used",
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
    """`Failed in repair: a phrase. The cause with its records.` A cause that says what the phrase does stands
    alone."""
    where = f"{word} in {task}" if task else word
    phrases = list(dict.fromkeys(filter(None, map(words, codes)))) or codes or ["no reason is recorded"]
    why = cause.rstrip(".")
    if len(phrases) == 1 and why.startswith(phrases[0]):
        return f"{where}: {why}."
    first = why.partition(" ")[0]
    shown = why if "_" in first else f"{why[:1].upper()}{why[1:]}"  # the name of a tool stays as it is
    return f"{where}: {'; '.join(phrases)}.{f' {shown}.' if why else ''}"


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
