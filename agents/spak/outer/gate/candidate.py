"""A candidate: typed edits of a base spec, with who proposes them and why.

Free text never gets into a spec. A unified diff is applied aside, compared by meaning, and turned into typed
edits; one that no typed edits reproduce, hash for hash, is refused (`outer.untyped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.errors import OuterError, UserError
from spak.lang import parse
from spak.lang.diagnostics import Severity
from spak.lang.diff import Change, compare
from spak.lang.edit import Op, apply_all, from_json, ops, to_json
from spak.patch import PatchRefused
from spak.patch import apply as apply_patch

MAX_OPS = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """`edits` make the new spec of a base; `records` are those that the proposer names as its reason."""

    edits: tuple[Op, ...]
    proposer: str
    rationale: str = ""
    records: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By run."""
    grammar_patch: str = ""

    @property
    def hash(self) -> str:
        """The hash of what it changes, whoever proposed it."""
        return canon.content_hash([[to_json(op) for op in self.edits], self.grammar_patch])

    def text(self, base: str) -> str:
        """The new spec. Raises: EditRefused, SpecError `lang.invalid`."""
        return apply_all(base, self.edits).text

    def to_json(self) -> dict[str, Any]:
        """The candidate as records have it."""
        return {
            "edits": [to_json(op) for op in self.edits],
            "proposer": self.proposer,
            "rationale": self.rationale,
            "records": {run: list(numbers) for run, numbers in self.records.items()},
            "grammar_patch": self.grammar_patch,
        }

    @classmethod
    def from_json(cls, value: Any) -> Candidate:
        """Raises: OuterError `outer.candidate`, EditRefused for an edit that is none."""
        if not isinstance(value, dict) or not isinstance(value.get("edits"), list):
            raise OuterError(
                "outer.candidate", "a candidate has no list of edits", "docs/outer-loop.md has the form"
            )
        if len(value["edits"]) > MAX_OPS:
            raise OuterError(
                "outer.candidate", f"a candidate has more than {MAX_OPS} edits", "propose fewer at a time"
            )
        edits = tuple(from_json(item) for item in value["edits"])
        if any(isinstance(op, ops.Patch) for op in edits):
            raise OuterError("outer.untyped", "a patch of the text is not a typed edit", _HINT)
        texts = [value.get(name, "") for name in ("proposer", "rationale", "grammar_patch")]
        records = value.get("records", {})
        if not all(isinstance(item, str) for item in texts) or not _are_numbers_by_run(records):
            raise OuterError(
                "outer.candidate",
                "proposer, rationale or grammar_patch is not text, or records are no numbers by run",
                "docs/outer-loop.md has the form",
            )
        return cls(
            edits,
            texts[0] or "person",
            texts[1],
            {run: tuple(numbers) for run, numbers in records.items()},
            texts[2],
        )


def _are_numbers_by_run(records: Any) -> bool:
    return isinstance(records, dict) and all(
        isinstance(numbers, (list, tuple)) and all(type(number) is int for number in numbers)
        for numbers in records.values()
    )


def of_diff(base: str, diff: str, proposer: str, rationale: str = "", grammar_patch: str = "") -> Candidate:
    """The candidate that a unified diff of a spec means.

    Raises: OuterError `outer.untyped` when it does not apply to the base, or does what no typed edits do.
    """
    applied = apply_patch(diff, lambda path: base.encode())
    if isinstance(applied, PatchRefused):
        raise OuterError(
            "outer.untyped",
            f"the diff does not apply: {applied.message} [{applied.code}]",
            "make it of this base",
        )
    if len(applied) != 1 or applied[0].after is None:
        raise OuterError("outer.untyped", "the diff is not of one file", "a diff of the spec alone")
    text = applied[0].after.decode("utf-8", "replace")
    old, wanted = parse(base), parse(text)
    if any(item.severity == Severity.ERROR for item in wanted.diagnostics):
        raise OuterError("outer.untyped", "what the diff makes does not parse", _HINT)
    made: list[Op] = []
    for change in compare(old, wanted).changes:
        made += _typed(change)
    found = Candidate(tuple(made), proposer, rationale, grammar_patch=grammar_patch)
    try:
        same = bool(made) and parse(found.text(base)).spec.hash == wanted.spec.hash
    except UserError as error:
        raise OuterError("outer.untyped", f"no typed edits do that: {error.message}", _HINT) from error
    if not same:
        raise OuterError("outer.untyped", "no typed edits do what the diff does", _HINT)
    return found


_HINT = "propose edits (docs/editing.md), or change settings, heuristics and edges alone"


def _typed(change: Change) -> list[Op]:
    """The edits of one change. Raises: OuterError `outer.untyped`."""
    parts = change.path.split("/")
    match change.op, parts:
        case ("add", ["SYSTEM_MODEL", "heuristic", number]):
            text, when = _heuristic(change.after)
            return [ops.AddModelItem("heuristic", text, when, int(number) - 1)]
        case ("remove", ["SYSTEM_MODEL", "heuristic", number]):
            return [ops.RemoveModelItem("heuristic", int(number))]
        case ("change", ["SYSTEM_MODEL", "heuristic", number]):
            text, when = _heuristic(change.after)
            return [ops.EditModelItem("heuristic", int(number), text, when)]
        case ("add", ["tasks", task, "NEXT", trigger]) if isinstance(change.after, str):
            return [ops.AddEdge(task, trigger, change.after)]
        case ("change", ["tasks", task, "NEXT", trigger]) if isinstance(change.after, str):
            return [ops.RetargetEdge(task, trigger, change.after)]
        case ("remove", ["tasks", task, "NEXT", trigger]):
            return [ops.RemoveEdge(task, trigger)]
        case ("add" | "change", ["tasks", task, *key]) if key and key[0].isupper():
            return [ops.Set(".".join(key), change.after, task)]
        case ("add" | "change", ["CONFIG", *key]) if key:
            return [ops.Set(".".join(["CONFIG", *key]), change.after)]
        case ("remove", ["tasks", task, *key]) if key and key[0].isupper():
            return [ops.Clear(".".join(key), task)]
        case ("remove", ["tasks", task, "steps", step]):
            return [ops.RemoveStep(task, step)]
    raise OuterError("outer.untyped", f"no typed edit for {change.op} {change.path}", _HINT)


def _heuristic(value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return value, ""
    if isinstance(value, dict):
        return str(value.get("text", "")), str(value.get("when") or "")
    raise OuterError("outer.untyped", "a heuristic that is not text", _HINT)
