"""Why a run ended that did not succeed, as one sentence with record numbers.

Takes the records of a run in order, or the newest of them; gives a sentence, empty where there is nothing to
say. `step` knows no record numbers, so that they are found here, from the ledger alone and without a replay:
the `end` commit holds the cause as data the records before it what it rests on.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spak import canon
from spak.kernel import watchdog
from spak.records import Authority, Kind, Record

TAIL = 1000
"""Records that are read for the cause of an end where reading all of them would take too long."""

LISTED = 12
"""Record numbers in a sentence; of more, the first and the last."""


def sentence(records: Iterable[Record]) -> str:
    """The cause of the end, from the records of the run or its last TAIL of them."""
    trail = Trail()
    for record in records:
        trail.feed(record)
    return trail.sentence()


class Deed(NamedTuple):
    """A result that was committed, by the record that holds it."""

    seq: int
    name: str
    mark: str


class Setback(NamedTuple):
    """Something that was rolled back, by the record that says so."""

    seq: int
    code: str


class Exit(NamedTuple):
    """A step whose last tool call did not end with exit 0, by the record of the result."""

    seq: int
    code: int


class Failure(NamedTuple):
    """A step that failed, by the record of its result; `why` is what the result says of it."""

    seq: int
    task: str
    step: str
    name: str
    code: str
    why: str
    judged: tuple[str, ...] = ()
    """Of a validator's result: the codes of its checks that failed."""


@dataclass(slots=True)
class Trail:
    """Feed it records in order; `sentence` says why the last one is an end. Bounded."""

    deeds: deque[Deed] = field(default_factory=lambda: deque(maxlen=watchdog.MOST))
    setbacks: deque[Setback] = field(default_factory=lambda: deque(maxlen=watchdog.MOST))
    polls: deque[int] = field(default_factory=lambda: deque(maxlen=watchdog.MOST))
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=watchdog.MOST))
    exits: dict[str, Exit] = field(default_factory=dict)
    """Of the task that was entered last: its steps whose last exit was not 0, at most watchdog.MOST."""
    end: Record | None = None
    _permit: Record | None = None
    _act: Record | None = None
    _refused: Record | None = None
    """The plan of the last search that ended without a candidate."""
    _routed: int = 0
    _root: str = ""

    def feed(self, record: Record) -> None:
        """Take the next record."""
        if record.authority == Authority.HOST:
            return
        match record.kind:
            case Kind.PERMIT:
                self._permit = record
            case Kind.ACT | Kind.PLAN:
                self._act = record
                self._refused = record if "refusal" in record.body else self._refused
            case Kind.ROUTE:
                self._route(record)
            case Kind.END:
                self.end = record

    def sentence(self) -> str:
        """One sentence, or nothing for a run that has not ended, succeeded or was cancelled."""
        if self.end is None:
            return ""
        body = self.end.body
        codes = body.get("codes") or [""]
        cause = body.get("cause")
        code = str(codes[0])
        found = _SENTENCES.get(code, _SENTENCES_BY_FAMILY.get(code.partition(".")[0]))
        judged = self.failures[-1].judged if self.failures else ()
        if found is None and judged and (code in judged or code.startswith("validator.")):
            found = Trail.failed  # the code is one of the validator's whose result ended the run
        return found(self, cause if isinstance(cause, Mapping) else {}) if found is not None else ""

    def _route(self, route: Record) -> None:
        permit, act, body = self._permit, self._act, route.body
        self._act, self._routed = None, route.seq
        if act is not None and permit is not None:
            self._exited(permit, act)
            if body.get("signal") in ("fail", "timeout"):
                self.failures.append(_failure(permit, act, self.exits))
        if str(body.get("to", "")).endswith("/"):
            self.exits.clear()
        if "poll" in body:
            self.polls.append(act.seq if act is not None else route.seq)
        outcome = act.body.get("outcome") if act is not None else None
        if "r4" in body or (outcome is not None and outcome not in ("exited", "answered")):
            self.setbacks.append(Setback(route.seq, str(body.get("code", ""))))
            return
        if act is None or permit is None or outcome is None or body.get("txn") == "rollback":
            return
        root = body.get("r3")
        self._root = root if isinstance(root, str) else self._root
        asked = permit.body.get("act")
        if asked in ("tool", "validate"):
            self.setbacks.clear()
        if asked not in ("tool", "validate", "ask") or "poll" in body:
            return
        name = str(permit.body.get("name", asked))
        key = canon.content_hash(act.body.get("out", "")) if asked == "ask" else act.body.get("key")
        action = canon.content_hash([name, permit.body.get("args", {})])
        mark = watchdog.mark(permit.task, action, key if isinstance(key, str) else "", self._root)
        self.deeds.append(Deed(act.seq, name, mark))

    def _exited(self, permit: Record, act: Record) -> None:
        code = act.body.get("exit")
        if permit.body.get("act") != "tool" or type(code) is not int:
            return
        self.exits.pop(permit.step, None)
        if code and len(self.exits) < watchdog.MOST:
            self.exits[permit.step] = Exit(act.seq, code)

    # ---- sentences

    def loop(self, cause: Mapping[str, Any]) -> str:
        """The sentence about a run that the watchdog ended, with the records that repeat."""
        deeds = list(self.deeds)
        length, times = cause.get("turn"), cause.get("times")
        if type(length) is not int or type(times) is not int:
            return ""
        taken = deeds[-length * times :] if length > 0 else []
        if length == 1 and taken:
            return _same(taken[-1].name, [deed.seq for deed in taken])
        turns = [taken[start : start + length] for start in range(0, len(taken), length)]
        repeated = {deed.name for deed in taken}
        names = ", ".join(dict.fromkeys(deed.name for deed in deeds if deed.name in repeated))
        spans = [f"{turn[0].seq}-{turn[-1].seq}" for turn in turns if turn]
        return f"the same steps ({names}) gave the same results {times} times: records {_listed(spans)}"

    def rollbacks(self, cause: Mapping[str, Any]) -> str:
        """The sentence about rollbacks in a row, with their codes and records."""
        times = cause.get("times")
        last = list(self.setbacks)[-times:] if type(times) is int and times > 0 else list(self.setbacks)
        if not last:
            return ""
        codes = ", ".join(dict.fromkeys(item.code for item in last if item.code))
        name = cause.get("name")
        if name == UNREADABLE:
            what = f"{len(last)} answers in a row could not be used"
        else:
            what = f"{name or 'what was proposed'} was rolled back {len(last)} times in a row"
        return f"{what} ({codes}): records {_listed([item.seq for item in last])}"

    def denial(self, cause: Mapping[str, Any]) -> str:
        """The sentence about an action that was denied."""
        permit = self._permit
        if permit is None or not cause.get("reason"):
            return ""
        code = f" [{permit.body.get('code')}]"  # which is shown beside it
        reason = str(cause["reason"]).replace(code, "")
        return f"{cause.get('name') or 'it'} was denied: {reason}: record {permit.seq}"

    def exit(self, cause: Mapping[str, Any]) -> str:
        """The sentence about a tool that did not end with exit 0."""
        deed = self.deeds[-1] if self.deeds else None
        if deed is None or self.end is None:
            return ""
        return f"{deed.name} in step {self.end.step} did not end with exit 0: record {deed.seq}"

    def failed(self, cause: Mapping[str, Any]) -> str:
        """What failed last, and how often in the same way."""
        last = self.failures[-1] if self.failures else None
        if last is None or self.end is None or last.task != self.end.task:
            return ""
        alike = [one for one in self.failures if one[1:5] == last[1:5]]
        seqs = _listed([one.seq for one in alike])
        records = f"record {seqs}" if len(alike) == 1 else f"records {seqs}"
        if last.name == CHECK:
            often = "" if len(alike) == 1 else f", {len(alike)} times"
            return f"{CHECK} do not hold{often}{f' ({last.why})' if last.why else ''}: {records}"
        if last.code.startswith("patch."):
            what = "a patch did not fit" if len(alike) == 1 else f"{len(alike)} patches did not fit"
            return f"{what}: {records}. The last one: {last.why}" if last.why else f"{what}: {records}"
        times = "" if len(alike) == 1 else f" {len(alike)} times"
        stepped = last.step and not last.judged
        what = f"{last.name} in step {last.step}" if stepped else last.name
        return f"{what} failed{times}{f' ({last.why})' if last.why else ''}: {records}"

    def polled(self, cause: Mapping[str, Any]) -> str:
        """The sentence about a step whose polls were used up."""
        deed = self.deeds[-1] if self.deeds else None
        times = cause.get("times")
        if deed is None or self.end is None or type(times) is not int:
            return ""
        polls = [*self.polls, deed.seq][-times:]
        return f"step {self.end.step} did not end with exit 0 in {times} polls: records {_listed(polls)}"

    def searched(self, cause: Mapping[str, Any]) -> str:
        """The sentence about a search that ended without a candidate: what the search says."""
        plan = self._refused
        refusal = None if plan is None else plan.body["refusal"]
        if plan is None or not isinstance(refusal, Mapping):
            return ""
        return f"{_short(_head(refusal.get('message')))}: record {plan.seq}"

    def underived(self, cause: Mapping[str, Any]) -> str:
        """The sentence about a task whose next move the law left open."""
        names = cause.get("actions")
        if self.end is None or not isinstance(names, list):
            return ""
        when = f"when TASK {cause.get('task')} ends with {cause.get('signal')}: record {self._routed}"
        if trouble := cause.get("trouble"):
            return f"no next_action can be derived {when} ({trouble})"
        if len(names) == 1:
            return f"the law derives {names[0]} {when}, and its NEXT does not name it"
        return f"the law derives {' and '.join(map(str, names)) or 'no next_action'} {when}"

    def sealed(self, cause: Mapping[str, Any]) -> str:
        """The sentence about sealed checks that do not hold: their record has nothing of what they ask."""
        act = self._act
        checks = [] if act is None else act.body.get("checks")
        if act is None or not isinstance(checks, list):
            return ""
        wrong = len(_wrong(checks))
        return f"{wrong} of {len(checks)} sealed checks do not hold: record {act.seq}"


UNREADABLE = "answer"
"""What spak.kernel.step counts answers under that nobody could read."""

_SENTENCES: Mapping[str, Callable[[Trail, Mapping[str, Any]], str]] = {
    "run.watchdog_loop": Trail.loop,
    "run.rollbacks": Trail.rollbacks,
    "run.poll_limit": Trail.polled,
    "tool.exit": Trail.exit,
    "tool.launcher": Trail.failed,
    "budget.retries": Trail.failed,
    "run.no_route": Trail.failed,
    "run.success_unmet": Trail.failed,
    "run.sealed_checks": Trail.sealed,
    "run.unhandled_trigger": Trail.failed,
    "run.next_action": Trail.underived,
    "run.unhandled_action": Trail.underived,
}
_SENTENCES_BY_FAMILY: Mapping[str, Callable[[Trail, Mapping[str, Any]], str]] = {
    "policy": Trail.denial,
    "patch": Trail.denial,
    "repair": Trail.searched,
}


CHECK = "the success conditions"
WHY = 160
"""Characters of what a result says."""
SHOWN = 3
"""Conditions and steps that are named of success conditions that do not hold."""


def _failure(permit: Record, act: Record, exits: Mapping[str, Exit]) -> Failure:
    body = act.body
    name, code, why = str(permit.body.get("name") or permit.body.get("act")), str(body.get("code") or ""), ""
    wrong = _wrong(body.get("checks"))
    judged = tuple(str(check.get("code", "")) for check in wrong)
    given = body.get("diagnostics")
    first = given[0] if isinstance(given, list) and given and isinstance(given[0], Mapping) else {}
    if first.get("message"):
        code, why = str(first.get("code") or code), str(first["message"])
    elif isinstance(facts := body.get("facts"), list):
        return Failure(act.seq, permit.task, permit.step, CHECK, code, _unmet(permit, facts, exits), judged)
    elif wrong:
        code, why = judged[0], _detail(act.side, str(wrong[0].get("name", "")))
    elif body.get("outcome") == "launcher":
        why = f"the sandbox did not start: {_head(body.get('out'))}"
    elif body.get("exit") not in (None, 0):
        why = f"exit {body['exit']}"
    return Failure(act.seq, permit.task, permit.step, name, code, _short(why), judged)


def _unmet(permit: Record, facts: Sequence[Any], exits: Mapping[str, Exit]) -> str:
    """Which file conditions do not hold, and which steps of the task did not end with exit 0."""
    args = permit.body.get("args")
    asked = args.get("atoms") if isinstance(args, Mapping) else None
    conditions = asked if isinstance(asked, list) else []
    lines = [
        f"{_condition(one)} does not hold"
        for one, fact in zip(conditions, facts, strict=False)
        if fact is not True
    ]
    lines += [f"step {step} ended with exit {last.code}, record {last.seq}" for step, last in exits.items()]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "; ".join([*map(_short, lines[:SHOWN]), *more])


def _condition(atom: Any) -> str:
    """`file_contains("a.txt", "x")`, of what a permit holds of it."""
    if not isinstance(atom, Mapping):
        return "a condition"
    args = atom.get("args")
    given = (
        ", ".join(json.dumps(arg, ensure_ascii=False) for arg in args if isinstance(arg, str | int))
        if isinstance(args, list)
        else ""
    )
    return f"{atom.get('function')}({given})"


def _wrong(checks: Any) -> list[Mapping[str, Any]]:
    """The checks of a measurement that are not ok."""
    given = checks if isinstance(checks, list) else []
    return [check for check in given if isinstance(check, Mapping) and check.get("ok") is not True]


def _detail(side: Mapping[str, Any], check: str) -> str:
    """What a validator says of a check, for people; of a text that is a blob the beginning."""
    details = side.get("details")
    detail = details.get(check, "") if isinstance(details, Mapping) else ""
    return _head(detail)


def _head(text: Any) -> str:
    """A text of a record; of one that is a blob the beginning."""
    found = text.get("head", "") if isinstance(text, Mapping) else text
    return found if isinstance(found, str) else ""


def _short(why: str) -> str:
    """One line of about WHY characters, without its last dot: of a longer one both ends."""
    line = " ".join(why.split()).rstrip(".: ")
    if len(line) <= WHY:
        return line
    return f"{line[: WHY // 3].rstrip()} ... {line[-WHY // 2 :].lstrip()}"


def _same(name: str, seqs: Sequence[int]) -> str:
    return f"{name} gave the same result {len(seqs)} times: records {_listed(seqs)}"


def _listed(items: Sequence[object]) -> str:
    if len(items) > LISTED:
        return f"{items[0]} to {items[-1]}"
    return ", ".join(map(str, items))


def numbers(sentence: str) -> list[int]:
    """The records that a sentence names, spans filled in."""
    found: list[int] = []
    for listed in NUMBERS.findall(sentence):
        for part in listed.split(", "):
            first, _, last = part.replace(" to ", "-").partition("-")
            begin, end = int(first), int(last or first)
            found += range(begin, min(end, begin + watchdog.MOST) + 1)
    return found


NUMBERS = re.compile(r"(?<=\brecord )\d+|(?<=\brecords )\d+(?:(?:-|, | to )\d+)*")
"""Where a sentence names records."""
