"""What was seen of a task, compared with what its part expects: sentences about what is wrong.

Takes a Seen and the members of `expect`, which are the names in CHECKS; gives a list, empty where all holds.
It starts nothing and looks at nothing but what it is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak.compliance.tree import Tree, difference, texts

R4 = frozenset({"code", "expected", "received", "hint"})
"""What the error register has at least."""


@dataclass(slots=True)
class Seen:
    """What the kit saw of one task."""

    task: str
    workspace: str = ""
    log: str = ""
    begun: Tree = field(default_factory=dict)
    """The files that the task began with."""
    prompts: list[str] = field(default_factory=list)
    registers: list[Mapping[str, Any]] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    """The workspace at each question."""
    tree: Tree = field(default_factory=dict)
    """The workspace at the end."""
    tokens: int = 0
    """Words of the prompts and of the answers, as the kit counted and said."""
    end: Mapping[str, Any] = field(default_factory=dict)


def problems(seen: Seen, expect: Mapping[str, Any]) -> list[str]:
    """What of the expectation does not hold."""
    found = [CHECKS[name](seen, wanted) for name, wanted in expect.items() if name in CHECKS]
    return [problem for problem in found if problem]


def _end(seen: Seen, wanted: Mapping[str, str]) -> str:
    for name, value in wanted.items():
        got = seen.end.get(name)
        if name == "knob":
            if not isinstance(got, str) or value not in got:
                return f"the end names no limit with {value} in it: {got!a}"
        elif got != value:
            return f"ends with {name} {got!a} instead of {value}" + _said(seen)
    return ""


def _said(seen: Seen) -> str:
    code, message = seen.end.get("code"), seen.end.get("message")
    return f" ({code}: {message})" if code else ""


def _asks(seen: Seen, wanted: int) -> str:
    return "" if len(seen.prompts) == wanted else f"asks {len(seen.prompts)} times instead of {wanted}"


def _asks_at_least(seen: Seen, wanted: int) -> str:
    return "" if len(seen.prompts) >= wanted else f"asks {len(seen.prompts)} times, fewer than {wanted}"


def _words(seen: Seen, most: int) -> str:
    return "" if seen.tokens <= most else f"{seen.tokens} words were exchanged with the model, limit {most}"


def _tree(seen: Seen, wanted: str | Mapping[str, str]) -> str:
    return _same(seen, seen.tree, wanted, "in the end")


def _tree_at(seen: Seen, wanted: Mapping[int, str | Mapping[str, str]]) -> str:
    for ask, tree in wanted.items():
        if ask > len(seen.trees):
            return f"there is no question {ask}"
        if problem := _same(seen, seen.trees[ask - 1], tree, f"at question {ask}"):
            return problem
    return ""


def _same(seen: Seen, tree: Tree, wanted: str | Mapping[str, str], when: str) -> str:
    if wanted == "begun":
        found = difference(seen.begun, tree)
    elif (files := texts(tree)) != wanted:
        assert isinstance(wanted, Mapping)
        path = next(path for path in sorted({*files, *wanted}) if files.get(path) != wanted.get(path))
        found = f"{path} is {files.get(path, 'not there')[:40]!a}"
    else:
        found = ""
    return f"{when}: {found}" if found else ""


def _error(seen: Seen, wanted: Mapping[int, Sequence[str]]) -> str:
    for ask, words in wanted.items():
        if ask > len(seen.prompts):
            return f"there is no question {ask}"
        r4, prompt = seen.registers[ask - 1].get("R4"), seen.prompts[ask - 1]
        if not isinstance(r4, Mapping) or not r4.keys() >= R4:
            return f"at question {ask} R4 is no object with {', '.join(sorted(R4))}"
        if not all(isinstance(r4[name], str) and r4[name].strip() for name in ("code", "hint")):
            return f"at question {ask} code and hint in R4 are no texts"
        if r4["code"] not in prompt:
            return f"the prompt of question {ask} does not show the code in R4"
        for word in words:
            if word not in json.dumps(r4) or word not in prompt:
                return f"R4 at question {ask}, or the prompt, does not say {word!a}"
    return ""


def _other_codes(seen: Seen, asks: list[int]) -> str:
    errors = [seen.registers[ask - 1].get("R4") for ask in asks if ask <= len(seen.prompts)]
    codes = [str(error.get("code")) for error in errors if isinstance(error, Mapping)]
    return "" if len({*codes}) == len(asks) else f"the errors at questions {asks} have the codes {codes}"


def _either(seen: Seen, ways: Sequence[Mapping[str, Any]]) -> str:
    found = [problems(seen, way) for way in ways]
    return "" if [] in found else " or ".join(problem[0] for problem in found)


CHECKS: Mapping[str, Callable[[Seen, Any], str]] = {
    "end": _end,
    "either": _either,
    "asks": _asks,
    "asks_at_least": _asks_at_least,
    "words_at_most": _words,
    "tree": _tree,
    "tree_at_ask": _tree_at,
    "error_at_ask": _error,
    "other_codes_at_asks": _other_codes,
}
"""What a part may expect of every kind of task; the other members of `expect` are its kind's own."""
