"""Every write to the problems of a team, the files that `problem: "problems/rmsnorm.py"` names.

`save` keeps a text and asks for its check, which a worker makes in a sandbox: the same as `spak problem
check`. A text that is no Python is refused; a problem that has other errors is kept, and shown with them; a
run that measures by it ends as docs/errors.md says. The texts before are kept too. Nothing of a text is
executed here.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from typing import Any

from django.db import transaction
from django.utils import timezone

from spak import canon
from spak.lang.limits import MAX_BYTES as MOST_TEXT
from spak.validators.problems import MAX_BYTES
from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.specs.models import ProblemFile
from spakweb.work.jobs import queue as jobs

MOST = 200
"""Problems of one team."""
MOST_EARLIER = 50
"""Earlier texts of a problem that are kept, the newest."""
MOST_BYTES = min(MAX_BYTES, MOST_TEXT)
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.py")
LONGEST = 100
CHECK = "problems.check"
"""The kind of job that checks one."""


def save(user: Any, team: Team, name: str, text: str | bytes, replaces: str | None = None) -> ProblemFile:
    """Keep a text under a name, and have it checked. `replaces` is the SHA-256 of the text whose place it
    takes, empty for none; None where it takes the place of any.

    Raises: Refused `web.problem_name`, `web.problem_text`, `web.problem_many`, `web.problem_judges`,
    `web.problem_exists`.
    """
    access.require(user, "spec.edit", team)
    name = name.strip()
    if len(name) > LONGEST or not NAME.fullmatch(name):
        raise Refused(
            "web.problem_name", f"{name[:60]!r} is no name of a problem.",
            f"A path that ends in .py, as problems/rmsnorm.py: letters, digits and ._-/, {LONGEST} at most.",
        )  # fmt: skip
    kept = _text(text)
    with transaction.atomic():
        list(Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values_list("pk"))
        old = ProblemFile.objects.filter(team=team, name=name).first()
        if old is None and ProblemFile.objects.filter(team=team).count() >= MOST:
            raise Refused("web.problem_many", f"A team has at most {MOST} problems.", "Remove one.", 409)
        if old is not None and old.text != kept:
            if replaces is not None and replaces != old.sha256:
                raise _exists(old, replaces)
            _may_change(user, old)
            _keep_earlier(old)
        digest = hashlib.sha256(kept.encode()).hexdigest()
        fields = {
            "text": kept, "sha256": digest, "state": ProblemFile.State.QUEUED, "found": [],
            "saved_by": user, "saved_at": timezone.now(), "checked_at": None,
        }  # fmt: skip
        made, _ = ProblemFile.objects.update_or_create(team=team, name=name, defaults=fields)
        record(user, "problem.saved", name, team, before=_short(old), after=_short(made))
        jobs.want(CHECK, made.pk, team.pk)
    return made


def restore(user: Any, problem: ProblemFile, earlier: int) -> ProblemFile:
    """Save a text that it had before once more. Raises: Refused as `save`, `web.problem_do`."""
    row = problem.earlier.filter(pk=earlier).first()
    if row is None:
        hint = f"The newest {MOST_EARLIER} are kept: choose one on the page."
        raise Refused("web.problem_do", "The problem has no such text.", hint, 404)
    return save(user, problem.team, problem.name, row.text)


def _keep_earlier(old: ProblemFile) -> None:
    old.earlier.create(text=old.text, sha256=old.sha256, saved_by=old.saved_by, saved_at=old.saved_at)
    kept = old.earlier.values_list("pk", flat=True)[:MOST_EARLIER]
    old.earlier.exclude(pk__in=list(kept)).delete()


def _exists(old: ProblemFile, replaces: str) -> Refused:
    if replaces:
        words = f"{old.saved_by} saved another text of {old.name} meanwhile."
        return Refused("web.problem_exists", words, "Open its page anew, and edit that text.", 409)
    words = f"There is a problem {old.name} already, saved by {old.saved_by}: nothing was replaced."
    return Refused("web.problem_exists", words, "Edit it on its page, or choose another name.", 409)


def check_again(user: Any, problem: ProblemFile) -> None:
    """Have it checked once more, as after the worker's toolchain changed."""
    access.require(user, "spec.edit", problem)
    with transaction.atomic():
        rows = ProblemFile.objects.filter(pk=problem.pk).exclude(state=ProblemFile.State.QUEUED)
        if rows.update(state=ProblemFile.State.QUEUED, found=[], checked_at=None):
            jobs.want(CHECK, problem.pk, problem.team_id)


def remove(user: Any, problem: ProblemFile) -> None:
    """Remove it. Runs that began keep its text; specs that name it find it no more.

    Raises: Refused `web.problem_judges`.
    """
    access.require(user, "spec.edit", problem)
    _may_change(user, problem)
    with transaction.atomic():
        record(user, "problem.removed", problem.name, problem.team, before=_short(problem))
        problem.delete()


def _may_change(user: Any, problem: ProblemFile) -> None:
    """A problem judges the kernels of every spec that names it: another one can let more pass."""
    if problem.team.guards(problem.team) and not access.can(user, "spec.widen", problem.team):
        raise Refused(
            "web.problem_judges", f"{problem.name} judges kernels: another text may let more of them pass.",
            "Save it under another name and propose a patch that names it, or ask an admin of the team.", 403,
        )  # fmt: skip


def _short(problem: ProblemFile | None) -> str:
    """Its SHA-256 as the log of who did what writes hashes: base64url, 43 characters."""
    return canon.digest(problem.text.encode()) if problem is not None else ""


def _text(given: str | bytes) -> str:
    """Raises: Refused `web.problem_text`."""
    hint = f"A Python file in UTF-8 of at most {MOST_BYTES // 1024} KB."
    try:
        raw = given if isinstance(given, bytes) else given.encode()
        text = raw.decode()
    except UnicodeError as error:
        raise Refused("web.problem_text", "The file is no text.", hint) from error
    if len(raw) > MOST_BYTES:
        raise Refused("web.problem_text", f"The file has {len(raw):,} bytes.", hint, 413)
    if "\0" in text or not text.strip():
        raise Refused("web.problem_text", "The file is no text.", hint)
    text = text.replace("\r\n", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        place = (
            f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else "it nests too deeply"
        )
        raise Refused(
            "web.problem_text", f"This is no Python: {place}. Nothing was saved.", hint, 422
        ) from error
    return text
