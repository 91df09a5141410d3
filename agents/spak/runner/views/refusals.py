"""The report of a run that ended without success: why, on which records, and what would let it go on.

Takes the ended state, the cause in a sentence (causes.py) and the records; gives JSON:

    {state, codes, sentence, cause, evidence, records: [{seq, kind, hash}], knob, error}

Codes and knob are the kernel's, the sentence is a phrase of the table below, the cause one of causes.py. All
of them are templates, filled in with names and numbers of the ledger; no model puts them in other words.
`records` has the record that ended the run and those that it rests on, by the hashes of their chain, so that
whoever has the report can find them in the ledger and in a checkpoint of it.
Source: seed 003 section 7 (RefusalReport).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spak.kernel.state import State
from spak.records import Authority, Kind, Record
from spak.runner.views.causes import numbers

LISTED = 64
"""Records that a report names."""

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
    "budget.cap": "more would be added to a budget than may be added in the run",
    "budget.extension": "an extension names no budget of the run, or no number above 0",
    "budget.not_extended": "the law extends no such budget",
    "budget.used_up": "a budget that is used up is not extended",
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
    "tune": "a tuned kernel was found, and something after that failed",
    "unavailable": "something that it needs is unavailable",
    "upload": "its files cannot be used",
    "validator": "a validator failed",
    "workspace": "its files could not be read or written",
}


def words(code: str) -> str:
    """The phrase of a code; of an unknown one nothing."""
    return WORDS.get(code) or FAMILIES.get(code.partition(".")[0], "")


def refusal(
    state: State, cause: str = "", records: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any] | None:
    """Why a run ended that did not succeed; None for any other."""
    if not state.ended or state.status == "succeeded":
        return None
    r7 = state.r7
    return {
        "state": state.status,
        "codes": list(r7.codes),
        "sentence": "; ".join(dict.fromkeys(filter(None, map(words, r7.codes)))),
        "cause": cause,
        "evidence": list(r7.evidence),
        "records": [dict(record) for record in records],
        "knob": r7.knob,
        "error": state.r4,
    }


def evidence(records: Iterable[Record], cause: str) -> tuple[dict[str, Any], ...]:
    """The records that the end of a run rests on: those that the cause names, the decisions that the last
    commit refers to with the proposals that answered them, and that commit. `records` may be a tail."""
    named, contents = set(numbers(cause)), dict[str, int]()
    answers: dict[str, list[int]] = {}
    seen: dict[int, tuple[str, str]] = {}
    end: Record | None = None
    for record in records:
        if record.authority == Authority.HOST:
            continue
        seen[record.seq] = record.kind, record.hash  # without the body: a run may be long
        if record.authority == Authority.COMMIT:
            contents[record.content] = record.seq
        elif isinstance(of := record.body.get("of"), str):
            answers.setdefault(of, []).append(record.seq)
        end = record if record.kind == Kind.END else end
    if end is None:
        return ()
    wanted = {seq for seq in named if seq in seen} | {end.seq}
    for content in end.body.get("evidence") or ():
        wanted |= {contents[content]} if content in contents else set()
        wanted |= set(answers.get(content, ()))
    found = [(seq, *seen[seq]) for seq in sorted(wanted)[-LISTED:]]
    return tuple({"seq": seq, "kind": kind, "hash": digest} for seq, kind, digest in found)
