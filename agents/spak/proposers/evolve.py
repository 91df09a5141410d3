"""The proposer `evolve`: new texts of marked blocks, asked of a model, in a file that is otherwise unchanged.

Takes a PlanRequest with the source that the run measured as its baseline; gives a Question for the model, and
of its answer a call of `write_file` with the whole file. Both are functions of the request alone: the archive
is folded from the history anew each time, and every draw is seeded. It opens no file and accepts nothing: a
candidate is judged like any other.

    path        the file that candidates are written to
    better      lower or higher metric (lower)
    islands     islands of the archive (2), and how many candidates each keeps: population (6)
    migrate     tries between two migrations (8)
    crossover   in how many of 100 questions two parents are shown (30)
    failures    failures that a question shows (3)
    tokens      the longest answer, 0 for the backend's own limit (0)
    block       characters of a block (8192)

What may change and how a model answers: docs/evolve.md, ADR 0069.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spak.errors import UserError
from spak.kernel.packet import Misfit, json_of, unfit
from spak.lang.catalog import NamedEntry
from spak.patch import blocks
from spak.ports import Candidate, PlanRequest, Question
from spak.proposers.evolving import options as options_
from spak.proposers.evolving import question as questions
from spak.proposers.evolving.archive import drawn, fold, key
from spak.proposers.evolving.options import Options

TOOL = "write_file"


class Evolve:
    """The proposer that evolves marked blocks of a source."""

    entry = NamedEntry("evolve", "asks a model for new texts of marked blocks", options_.SCHEMA)

    def question(self, request: PlanRequest) -> Question | Misfit:
        """What the model is asked; a Misfit where no source with marked blocks was measured as a baseline.

        Raises: UsageError `evolve.options`.
        """
        options = options_.parse(request.options)
        marked = _start(request)
        if isinstance(marked, Misfit):
            return marked
        archive = fold(marked, request.history, options)
        return questions.question(request, marked, archive, drawn(archive, request.seed, options), options)

    def read(self, request: PlanRequest, answer: str) -> Sequence[Candidate] | Misfit:
        """The candidate of an answer. Raises: UsageError `evolve.options`."""
        options = options_.parse(request.options)
        marked = _start(request)
        if isinstance(marked, Misfit):
            return marked
        archive = fold(marked, request.history, options)
        origin = drawn(archive, request.seed, options)
        texts = _texts(answer, marked, options)
        if isinstance(texts, Misfit):
            return texts
        texts = {**origin.parent.texts, **texts}
        if key(texts) in archive.known:
            return Misfit("evolve.known", "a new version", "one that was tried", "change something else")
        content = marked.filled(texts)
        if len(content) > blocks.MAX_TEXT:
            most = f"a file of at most {blocks.MAX_TEXT} characters"
            return Misfit("evolve.too_long", most, str(len(content)), "write shorter blocks")
        return [Candidate(TOOL, {"path": options.path, "content": content}, params=origin.params)]


def _start(request: PlanRequest) -> blocks.Marked | Misfit:
    if request.baseline is None:
        hint = "measure the source with the marked blocks before this task, with role: baseline"
        return Misfit("evolve.start", "a measured baseline", "none", hint)
    try:
        return blocks.read(request.baseline)
    except UserError as error:
        return Misfit(error.code, "a source with marked blocks", error.message, error.hint)


def _texts(answer: str, marked: blocks.Marked, options: Options) -> dict[str, str] | Misfit:
    """The new texts of an answer, each ending with a line feed."""
    value = json_of(answer)
    if isinstance(value, Misfit):
        return value
    wrong = unfit(questions.schema(marked, options), value)
    if wrong is not None:
        return wrong
    given: Mapping[str, Any] = value["blocks"]
    if not given:
        return Misfit("evolve.empty", "the text of a block", "none", "name a block and give its text")
    found = {}
    for name, text in given.items():
        wrong = _wrong(name, text)
        if wrong is not None:
            return wrong
        found[name] = _as_in(marked.blocks[name], text)
    return found


def _wrong(name: str, text: Any) -> Misfit | None:
    if not isinstance(text, str):  # a reference, which only the runner makes
        return Misfit("schema.type", "string", "object", f"/blocks/{name}: write the text itself")
    if not text.strip():
        return Misfit("evolve.empty", "the text of a block", name, f"the block {name} cannot be empty")
    if blocks.MARK in text.upper():
        return Misfit("evolve.marker", "a text without markers", name, f"leave {blocks.MARK} lines out")
    odd = blocks.odd_character(text)
    if odd:
        return Misfit("evolve.character", "text, tabs and line feeds", odd, f"leave it out of {name}")
    return None


def _as_in(before: str, text: str) -> str:
    """The text with its lines ending as those of the block before."""
    text = text.replace("\r\n", "\n")
    text = text if text.endswith("\n") else text + "\n"
    return text.replace("\n", "\r\n") if "\r\n" in before else text
