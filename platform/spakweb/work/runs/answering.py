"""Answers of people to a step that wants a patch: made from edited files, or looked at before they are taken.

`patch_wanted` says whether what a run waits for becomes a patch, and which files the spec keeps from it.
`made` turns edited files into the patch; `demand` refuses a patch that would not fit, in words: which line,
and how the file is. Nothing is recorded then and the run waits on. What fits may still be refused by the
run's policy, which records decide.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from spak.errors import UserError
from spak.kernel.rules import Rules
from spak.patch import PatchRefused, apply
from spak.patch.make import make
from spak.patch.model import Refusal, checked_path
from spak.program import Ref, Template
from spak.program.model import Step
from spak.records import decode
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.runs import files

EDITABLE = 256 * 1024
"""Bytes of a file that a page edits."""
LISTED = 500
"""Files that a form offers."""
SHOWN = 20_000
"""Characters of a file beside a patch that does not fit it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A patch that step `by` applies; `protect` are files and folders that it must leave."""

    by: str
    protect: tuple[str, ...] = ()

    def keeps(self, path: str) -> bool:
        """Whether the question protects a path from the patch that answers it."""
        return any(path == kept or path.startswith(f"{kept}/") for kept in self.protect)


class NoFit(Refused):
    """`web.answer_patch`, with the place in the patch and the file as it is."""

    def __init__(self, found: PatchRefused, text: str, now: str | None) -> None:
        lines = text.splitlines()
        self.line = found.line
        self.quoted = lines[found.line - 1][:200] if 0 < found.line <= len(lines) else ""
        self.path = found.path
        self.now = now[:SHOWN] if now is not None else None
        where = f"Line {found.line} of the patch: " if found.line else "The patch: "
        hint = f"{found.hint[:1].upper()}{found.hint[1:]}." if found.hint else ""
        super().__init__("web.answer_patch", f"{where}{found.message}.", hint, 422)


def patch_wanted(run: Run, asked: dict[str, Any] | None) -> Wanted | None:
    """What the run waits for, when its answer is given to `apply_patch` and to nothing else."""
    if not asked or asked.get("kind") != "llm.query":
        return None
    try:
        return _wanted(run.pk, str(asked.get("task")), str(asked.get("step")))
    except (UserError, LookupError):  # a genesis that this version does not read
        return None


@lru_cache(maxsize=64)
def _wanted(run: int, task: str, step: str) -> Wanted | None:
    first = RunRecord.objects.filter(run=run, seq=0).first()
    if first is None:
        raise LookupError
    steps = Rules.of(decode(bytes(first.line)).body).program.tasks[task].steps
    variable = next((one.output_var for one in steps if one.id == step), "")
    for one in steps:
        if variable and one.name == "apply_patch" and _only(one, variable):
            kept = one.args.get("protect")
            names = [name for name in kept if isinstance(name, str)] if isinstance(kept, tuple) else []
            return Wanted(one.id, tuple(posixpath.normpath(name) for name in names))
    return None


def _only(step: Step, variable: str) -> bool:
    value = step.args.get("patch")
    parts = [part for part in value.parts if part != ""] if isinstance(value, Template) else [value]
    return parts == [Ref(variable)]


def made(run: Run, edits: Sequence[tuple[str, str]]) -> str:
    """The patch that makes the run's files read so. Raises: Refused `web.answer_edit`."""
    found = {}
    for path, text in edits:
        try:
            checked_path(path, 0)
        except Refusal as why:
            raise _unedited(f"{path[:80]!r} is not a name for a file here", why.refused.hint) from why
        now = files.read(run, path)
        before = None if now is None else files.as_text(now)
        if now is not None and before is None:
            raise _unedited(f"{path} is not text", "It cannot be edited on a page.")
        if now is None and not text:
            continue
        found[path] = (now, _ended(text, before).encode())
    patch = make((path, *contents) for path, contents in found.items())
    if not patch:
        raise _unedited("Nothing is changed in the files", "Edit one of them, or paste a patch.")
    return patch


def changed(run: Run, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether the edits would change anything."""
    try:
        return bool(made(run, edits))
    except Refused:
        return False


def _ended(text: str, before: str | None) -> str:
    """With the line ends of the file: a form sends other ones."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = (before or "").split("\n")[:-1]
    return plain.replace("\n", "\r\n") if lines and all(line.endswith("\r") for line in lines) else plain


def _unedited(message: str, hint: str) -> Refused:
    return Refused("web.answer_edit", f"{message}.", hint)


def require_fit(run: Run, wanted: Wanted, text: str) -> None:
    """Nothing, when the patch fits the files as they are. Raises: NoFit."""
    found = apply(text, partial(files.read, run))
    if isinstance(found, PatchRefused):
        now = files.read(run, found.path) if found.path else None
        raise NoFit(found, text, files.as_text(now) if now is not None else None)
    for change in found:
        if wanted.keeps(change.path):
            why = PatchRefused(
                "patch.protected", f"{change.path} must stay as it is: the spec protects it",
                "leave this file out of the patch", 0, change.path,
            )  # fmt: skip
            raise NoFit(why, text, None)


def editable(run: Run, wanted: Wanted) -> list[dict[str, Any]]:
    """The files that a person may edit for the patch, and those that the spec keeps from it."""
    return [
        {"path": file.path, "key": file.key, "size": file.size, "kept": wanted.keeps(file.path)}
        for file in files.files_of(run)
        if file.readable and file.size <= EDITABLE and not _hidden(file.path)
    ]


def _hidden(path: str) -> bool:
    return any(part[0] == "." or part == "__pycache__" for part in path.split("/"))


def rows(text: str) -> int:
    """Lines of a field in which a text is edited."""
    return min(28, max(6, text.count("\n") + 2))


def opened(run: Run, wanted: Wanted, path: str) -> dict[str, Any] | None:
    """A file with its text, ready to be edited; None where it is none."""
    if wanted.keeps(path):
        return None
    data = files.read(run, path)
    text = files.as_text(data) if data is not None and len(data) <= EDITABLE else None
    return None if text is None else {"path": path, "text": text, "rows": rows(text)}


def last_refusal(run: Run, wanted: Wanted, asked: int) -> dict[str, Any] | None:
    """Why the patch before this question was not applied, as the records say it: a sentence, its record, and
    the file that it was about."""
    rows = RunRecord.objects.filter(run=run, seq__lt=asked, step=wanted.by, kind__in=("act", "permit"))
    row = rows.order_by("-seq").first()
    if row is None:
        return None
    body = decode(bytes(row.line)).body
    given = body.get("diagnostics")
    found = given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else {}
    if body.get("allow") is False:
        return {"seq": row.seq, "said": "The policy denied the patch.", "path": "", "denied": True}
    if not found or body.get("exit") == 0:
        return None
    hint = str(found.get("hint") or "")
    message = str(found.get("message", "")).rstrip(".")
    text = f"{message}.{f' {hint[:1].upper()}{hint[1:]}.' if hint else ''}"
    return {"seq": row.seq, "said": f"{text[:1].upper()}{text[1:]}", "path": str(found.get("file") or "")}


def asked_for(run: Run, asked: dict[str, Any], edits: list[dict[str, Any]]) -> dict[str, Any]:
    """What the form of a question shows beside its prompt; `edits` are the files that are open in it."""
    wanted = patch_wanted(run, asked)
    if wanted is None:
        return {"wanted": None}
    offered = editable(run, wanted)
    free = [item["path"] for item in offered if not item["kept"]]
    if not edits and len(free) == 1:
        only = opened(run, wanted, free[0])
        edits = [only] if only else []
    refusal = last_refusal(run, wanted, asked.get("seq") or 0)
    return {"wanted": wanted, "offered": offered[:LISTED], "more": len(offered[LISTED:]), "edits": edits,
            "last": refusal}  # fmt: skip
