"""A candidate: typed edits of a base spec, with who proposes them and why.

Free text never gets into a spec. A unified diff is applied aside, compared by meaning, and turned into typed
edits that make a spec of the same hash; one that does not parse is refused (`outer.untyped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.errors import OuterError
from spak.lang import parse
from spak.lang.diagnostics import Severity
from spak.lang.edit import Op, apply_all, from_json, ops, to_json
from spak.lang.edit.between import between
from spak.patch import PatchRefused, apply_to

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
    """Text for a person, never applied: a candidate that has one is refused."""

    @property
    def hash(self) -> str:
        """The hash of what it changes, whoever proposed it."""
        return canon.content_hash([[to_json(op) for op in self.edits], self.grammar_patch])

    def text(self, base: str) -> str:
        """The new spec. Raises: EditRefused, SpecError `lang.invalid`, OuterError `outer.grammar`."""
        if self.grammar_patch:
            raise OuterError(
                "outer.grammar",
                "a grammar patch is kept for a person and not applied: the grammar changes with a release of "
                "spak alone",
                "propose the edits without it",
            )
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
    """The candidate that a unified diff of a spec means, whatever it calls the two, or a whole spec.

    Raises: OuterError `outer.untyped` when it does not apply to the base, or makes no other spec of it.
    """
    old, wanted = parse(base), parse(diff)
    if not wanted.ok:
        applied = apply_to(diff, base)
        if isinstance(applied, PatchRefused):
            message = f"the diff does not apply: {applied.message} [{applied.code}]"
            raise OuterError("outer.untyped", message, "make it of this base, or give the whole spec")
        wanted = parse(applied)
    if any(item.severity == Severity.ERROR for item in wanted.diagnostics):
        raise OuterError("outer.untyped", "what the diff makes does not parse", _HINT)
    edits = between(old, wanted)
    if not edits:
        raise OuterError("outer.untyped", "the diff changes nothing but layout", _HINT)
    made = edits if len(edits) <= MAX_OPS else (ops.Rewrite(wanted.text),)
    return Candidate(made, proposer, rationale, grammar_patch=grammar_patch)


_HINT = "propose edits (docs/typed-edits.md), or a diff of the spec that parses and changes what it means"
