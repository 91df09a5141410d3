"""The five checks that a patch meets before a run proposes it, and why there is none.

    visible         every visible test of its function passes
    hidden          every hidden test of its function passes, and at least two run the function
    agrees          every patch that is left answers alike on recorded and generated inputs, and outside of
                    the tests it answers as in them
    no_new_failure  where the code before returned on such an input, the patched code does not raise or hang
    minimal         one function, no test, no configuration; nothing that the file did not reach before; no
                    part of it passes alone; at most twice the lines run by the tests that passed

Takes what the guest said of each candidate; gives an Outcome. An input on which the code before fails, and
most patches too, counts for neither side: what a function may be given is not known. Pure.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak.proposers.repair.candidates import Candidate, Edit
from spak.proposers.repair.functions import Function
from spak.proposers.repair.lab import Heard
from spak.proposers.repair.refusals import Refusal

NAMES = ("visible", "hidden", "agrees", "no_new_failure", "minimal")
LEAST_HIDDEN = 2
ENOUGH = 100
"""Inputs on which patches have to agree, where so many can be generated."""
DEARER, SLACK = 2, 500
"""A patch may run so many times the lines of before, and so many more: code that gave up early ran few."""
FORBIDDEN = frozenset(
    {
        *("exec", "eval", "compile", "open", "globals", "locals", "vars", "setattr", "delattr", "getattr"),
        *("input", "breakpoint", "exit", "quit", "__import__", "memoryview", "help", "print"),
    }
)
PLAIN = frozenset(
    name
    for kind in (str, bytes, int, float, complex, list, tuple, dict, set, frozenset)
    for name in dir(kind)
    if not name.startswith("_")
)
"""Methods of plain values, which reach nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says of a patch."""

    name: str
    ok: bool
    code: str = ""
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        return {"name": self.name, "ok": self.ok, "code": self.code, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One accepted candidate with its verdicts, or a refusal."""

    candidate: Candidate | None = None
    verdicts: tuple[Verdict, ...] = ()
    refusal: Refusal | None = None
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Patch:
    """What is known of a candidate that passes the visible tests."""

    place: int
    candidate: Candidate
    hidden_tests: int
    visible_tests: int
    hidden_bad: Sequence[str] | None
    answers: Sequence[str] = ()
    alike: tuple[int, Sequence[Sequence[str]]] = (0, ())
    steps: tuple[int, int] = (0, 0)
    new_failure: str = ""
    unfit: str = ""


def external(edits: Mapping[str, str], places: Sequence[Function]) -> Candidate | Refusal:
    """A patch from elsewhere as a candidate: the new text of one file, which differs in one function."""
    scope = Refusal(
        "repair.scope",
        "the patch changes more than one function that a failing test runs",
        "change one function of one file",
    )
    if len(edits) != 1:
        return scope
    path, text = next(iter(edits.items()))
    for place in places:
        if place.path != path:
            continue
        before, after = "".join(place.lines[: place.first - 1]), "".join(place.lines[place.last :])
        middle = text[len(before) : len(text) - len(after)]
        fits = text.startswith(before) and text.endswith(after) and len(before) + len(after) <= len(text)
        if fits and middle != place.text and place.parsed(middle) is not None:
            return Candidate(place, Edit("given", 1, place.first, middle))
    return scope


def judge(
    tried: Sequence[Candidate],
    tables: Sequence[Mapping[str, Any]],
    heard: Heard,
    off: frozenset[str] = frozenset(),
) -> Outcome:
    """The accepted candidate, or a refusal; `off` leaves checks out, for benches."""
    patches = _patches(tried, tables, heard)
    counts: dict[str, Any] = {"looks": len(patches)}
    good = patches if "hidden" in off else [one for one in patches if one.hidden_bad is None]
    counts["passing_hidden"] = len(good)
    if not good:
        return Outcome(refusal=_overfit(patches), counts=counts)
    compared = heard.of("compared")
    lines = compared[0]["compared"] if compared else []
    shown: list[str] = next((line["shown"] for line in lines if "shown" in line), [])
    before: list[str] = next((line["before"] for line in lines if "before" in line), [])
    of = [_about(one, tables) for line in lines for one in line.get("of", ())]
    _compared(good, lines, before, shown)
    counts |= {
        "inputs": len(shown),
        "recorded": next((line["recorded"] for line in lines if "recorded" in line), 0),
    }
    left = [one for one in good if "no_new_failure" in off or not one.new_failure]
    if not left:
        return Outcome(refusal=_fails_anew(good), counts=counts)
    left = [one for one in left if "agrees" in off or not _odd(one, left)]
    for one in left:
        one.unfit = unfit(one)
    left = [one for one in left if "minimal" in off or not one.unfit]
    if not left:
        return Outcome(
            refusal=Refusal(
                "repair.not_minimal",
                good[0].unfit or "no patch is minimal",
                "no patch is proposed that reaches further than the code before",
            ),
            counts=counts,
        )
    counts["left"] = len(left)
    checked = [one for one in left if "hidden" in off or one.hidden_tests >= LEAST_HIDDEN]
    if not checked:
        return Outcome(refusal=_unchecked(left), counts=counts)
    refusal, said = _agreed(left, before, shown, of)
    counts["classes"] = len({tuple(one.answers) for one in left})
    if refusal is not None and "agrees" not in off:
        return Outcome(refusal=refusal, counts=counts)
    best = min(checked, key=_size)
    return Outcome(best.candidate, _verdicts(best, said, len(left)), counts=counts)


def _size(one: _Patch) -> tuple[int, int]:
    """Of patches that agree the shortest program, then the one that was tried first."""
    tree = one.candidate.function.parsed(one.candidate.edit.text)
    return sum(1 for _ in ast.walk(tree)) if tree is not None else 0, one.place


def _patches(tried: Sequence[Candidate], tables: Sequence[Mapping[str, Any]], heard: Heard) -> list[_Patch]:
    table = {(one["path"], one["qual"]): one for one in tables}
    found = []
    for message in heard.of("hidden"):
        candidate = tried[message["hidden"]]
        about = table[candidate.function.path, candidate.function.qual]
        found.append(
            _Patch(message["hidden"], candidate, len(about["hidden"]), len(about["visible"]), message["bad"])
        )
    return found


def _compared(
    good: Sequence[_Patch], lines: Sequence[Mapping[str, Any]], before: Sequence[str], shown: Sequence[str]
) -> None:
    """What the guest saw of each patch on inputs."""
    said = {line["place"]: line for line in lines if "place" in line}
    for one in good:
        line = said.get(one.place)
        if line is None:  # the comparison ended before it came to this patch
            one.new_failure = "it could not be compared" if shown or not lines else ""
            continue
        one.answers = [_equal(answer) for answer in line["answers"]]
        one.alike = line["alike"][0], line["alike"][1]
        one.steps = line["steps"][0], line["steps"][1]
        for place, answer in enumerate(one.answers):
            if not _fails(before[place]) and _fails(answer):
                one.new_failure = f"{shown[place]}: {_short(answer)}; before: {_short(before[place])}"
                break


def _equal(answer: str) -> str:
    """An answer as `==` sees it: True is 1."""
    return re.sub(r"\bTrue\b", "1", re.sub(r"\bFalse\b", "0", answer))


def _fails(answer: str) -> bool:
    return not answer.startswith("= ")


def _short(answer: str) -> str:
    """An answer without what became of the arguments."""
    return _returned(answer)[:300]


def _returned(answer: str) -> str:
    return answer.removeprefix("= ").partition(" | ")[0]


def _odd(one: _Patch, left: Sequence[_Patch]) -> bool:
    """Whether a patch fails on an input where more than half of the patches answer alike."""
    for place, answer in enumerate(one.answers):
        if _fails(answer):
            others = Counter(other.answers[place] for other in left if not _fails(other.answers[place]))
            if others and 2 * max(others.values()) > len(left):
                return True
    return False


def _agreed(
    left: Sequence[_Patch], before: Sequence[str], shown: Sequence[str], of: Sequence[Mapping[str, str]]
) -> tuple[Refusal | None, str]:
    """Why the patches do not agree, or how far they do."""
    if not shown:
        if len(left) == 1:
            return None, "no input could be generated; it is the only patch"
        return Refusal(
            "repair.unchecked",
            f"{len(left)} patches pass, and no input could be generated to compare them",
            "write more tests of the function",
            {"patches": [one.candidate.patch for one in left[:3]]},
        ), ""
    valid = [
        place for place in range(len(shown))
        if not _fails(before[place]) or sum(_fails(one.answers[place]) for one in left) * 2 <= len(left)
    ]  # fmt: skip
    different = [place for place in valid if len({one.answers[place] for one in left}) > 1]
    if different:
        return _ambiguous(left, shown, different, of), ""
    odd = next((one for one in left if one.alike[1]), None)
    if odd is not None:
        call, inside, outside = odd.alike[1][0]
        return Refusal(
            "repair.overfit",
            f"outside of the tests {call} gives {outside}, in them {inside}",
            "the patch tells tests from other callers",
        ), ""
    if len(valid) < min(ENOUGH, len(shown) // 2):
        return Refusal(
            "repair.unchecked",
            f"only {len(valid)} of {len(shown)} generated inputs are valid",
            "write more tests of the function",
        ), ""
    alike = "1 patch answers" if len(left) == 1 else f"{len(left)} patches answer alike"
    return None, f"{alike} on {len(valid)} inputs"


def _ambiguous(
    left: Sequence[_Patch], shown: Sequence[str], different: Sequence[int], of: Sequence[Mapping[str, str]]
) -> Refusal:
    """The question: the smallest input on which the patches return different values, else on which different
    things become of the arguments."""

    def returned(place: int) -> set[str]:
        return {_returned(one.answers[place]) for one in left}

    place = min(different, key=lambda place: (len(returned(place)) == 1, len(shown[place]), place))
    value = len(returned(place)) > 1
    answers: dict[str, list[_Patch]] = {}
    for one in left:
        answers.setdefault(one.answers[place], []).append(one)
    listed = [
        {
            "answer": _short(answer) if value else answer.removeprefix("= ")[:300],
            "patches": len(group),
            "patch": group[0].candidate.patch,
        }
        for answer, group in answers.items()
    ]
    differ = "value" if value else "arguments"
    question = {"call": shown[place], **of[place], "differ": differ, "answers": listed[:5]}
    return Refusal(
        "repair.ambiguous",
        f"{len(left)} patches pass, and differ on {shown[place]}",
        f"what should {shown[place]} give? `spak repair --answer VALUE` makes your answer a test and goes on",
        {"question": question},
    )


def _about(one: Sequence[str], tables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of an input's function its file, name and module, and a file of tests that runs it."""
    path, function, module = map(str, one)
    tests = next((each["visible"] for each in tables if (each["path"], each["qual"]) == (path, function)), ())
    file = tests[0].partition("::")[0] if tests else ""
    return {"path": path, "function": function, "module": module, "tests": file}


def _overfit(patches: Sequence[_Patch]) -> Refusal:
    first = patches[0]
    failed = [one.hidden_bad[0] for one in patches if one.hidden_bad]
    return Refusal(
        "repair.overfit",
        f"{len(patches)} patches pass the visible tests and none the hidden ones",
        "the tests that failed are not of one mistake, or it is larger than one edit; --test names one",
        {"failed": list(dict.fromkeys(failed))[:5], "patch": first.candidate.patch},
    )


def _fails_anew(good: Sequence[_Patch]) -> Refusal:
    return Refusal(
        "repair.new_failure",
        f"each of {len(good)} patches fails where the code before returned: {good[0].new_failure}",
        "where that should fail, write it as a test",
        {"patch": good[0].candidate.patch},
    )


def _unchecked(left: Sequence[_Patch]) -> Refusal:
    first = left[0]
    name = first.candidate.function.qual
    return Refusal(
        "repair.unchecked",
        f"{first.hidden_tests} hidden tests run {name}, at least {LEAST_HIDDEN} are needed",
        f"write more tests of {name}; the patch below passes those there are and is checked by nothing else",
        {"patch": first.candidate.patch},
    )


def _verdicts(one: _Patch, said: str, left: int) -> tuple[Verdict, ...]:
    steps = f"{one.steps[1]} lines run by the tests that passed, {one.steps[0]} before"
    return (
        Verdict("visible", True, detail=f"{one.visible_tests} tests"),
        Verdict(
            "hidden",
            one.hidden_bad is None,
            "" if one.hidden_bad is None else "hidden",
            f"{one.hidden_tests} tests",
        ),
        Verdict("agrees", bool(said) or left == 1, "" if said or left == 1 else "differs", said),
        Verdict(
            "no_new_failure", not one.new_failure, "new_failure" if one.new_failure else "", one.new_failure
        ),
        Verdict("minimal", not one.unfit, "not_minimal" if one.unfit else "", one.unfit or steps),
    )


# ---- minimal -------------------------------------------------------------------------------------------


def unfit(one: _Patch) -> str:
    """Why a patch is not minimal; empty where it is."""
    function, text = one.candidate.function, one.candidate.edit.text
    reached = reach(function, text)
    if reached:
        return reached
    if one.steps[1] > DEARER * one.steps[0] + SLACK:
        return f"the tests that passed run {one.steps[1]} lines, {one.steps[0]} before"
    return ""


def reach(function: Function, text: str) -> str:
    """What a new text of a function uses that its file did not; empty where nothing."""
    tree = function.parsed(text)
    if tree is None:
        return "it is not one function"
    if ast.dump(tree.args) != ast.dump(function.node.args):
        return "it changes the parameters"
    allowed = _used(ast.parse(function.source)) | _used_locally(tree) | PLAIN
    allowed |= {name for name in dir(builtins) if name not in FORBIDDEN}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global)) and not _had(function, node):
            return "it imports or reaches for globals"
    new = sorted(_used(tree) - allowed)
    if new:
        return f"it reaches for {new[0]}, which the file did not use"
    stored = _stores(tree) - _stores(function.node)
    return f"it writes to {sorted(stored)[0]}, which the function did not" if stored else ""


def _used(tree: ast.AST) -> frozenset[str]:
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    attributes = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
    return frozenset(names | attributes)


def _used_locally(tree: ast.AST) -> frozenset[str]:
    stored = {
        one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    return frozenset(stored | {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)})


def _stores(tree: ast.AST) -> frozenset[str]:
    """Attributes that are assigned to or deleted, with what they belong to."""
    found = (
        one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load)
    )
    return frozenset(ast.unparse(one) for one in found)


def _had(function: Function, node: ast.AST) -> bool:
    return any(ast.dump(one) == ast.dump(node) for one in ast.walk(function.node) if type(one) is type(node))
