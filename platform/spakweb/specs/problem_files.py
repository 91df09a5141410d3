"""Every write to the problems of a team, the files that `problem: "problems/rmsnorm.py"` names.

`save` keeps a text and asks for its check, which a worker makes in a sandbox (worker/problem_checks.py): the
same as `spak problem check`. A problem that has errors is kept, and shown with them; a run that measures by
it ends as docs/errors.md says. Nothing of a text is executed here.
"""

from __future__ import annotations

import hashlib
import logging
import re
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from kombu.exceptions import KombuError

from spak import canon
from spak.lang.limits import MAX_BYTES as MOST_TEXT
from spak.validators.problems import MAX_BYTES
from spakweb import access
from spakweb.audit.actions import record
from spakweb.errors import Refused
from spakweb.specs.models import ProblemFile
from spakweb.teams.models import Team

MOST = 200
"""Problems of one team."""
MOST_BYTES = min(MAX_BYTES, MOST_TEXT)
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.py")
LONGEST = 100
TASK = "problems.check"

log = logging.getLogger(__name__)


def save(user: Any, team: Team, name: str, text: str | bytes) -> ProblemFile:
    """Keep a text under a name, in the place of an earlier one, and have it checked.

    Raises: Refused `web.problem_name`, `web.problem_text`, `web.problem_many`, `web.problem_judges`.
    """
    access.require(user, "spec.edit", team)
    name = name.strip()
    if len(name) > LONGEST or not NAME.fullmatch(name):
        raise Refused(
            "web.problem_name", f"{name[:60]!a} is no name of a problem.",
            f"A path that ends in .py, as problems/rmsnorm.py: letters, digits and ._-/, {LONGEST} at most.",
        )  # fmt: skip
    kept = _text(text)
    with transaction.atomic():
        list(Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values_list("pk"))
        old = ProblemFile.objects.filter(team=team, name=name).first()
        if old is None and ProblemFile.objects.filter(team=team).count() >= MOST:
            raise Refused("web.problem_many", f"A team has at most {MOST} problems.", "Remove one.", 409)
        if old is not None and old.text != kept:
            _may_change(user, old)
        digest = hashlib.sha256(kept.encode()).hexdigest()
        fields = {
            "text": kept, "sha256": digest, "state": ProblemFile.State.QUEUED, "found": [], "sent": 0,
            "saved_by": user, "saved_at": timezone.now(), "checked_at": None,
        }  # fmt: skip
        made, _ = ProblemFile.objects.update_or_create(team=team, name=name, defaults=fields)
        record(user, "problem.saved", name, team, before=_short(old), after=_short(made))
        ask(made)
    return made


def check_again(user: Any, problem: ProblemFile) -> None:
    """Have it checked once more, as after the worker's toolchain changed."""
    access.require(user, "spec.edit", problem)
    with transaction.atomic():
        rows = ProblemFile.objects.filter(pk=problem.pk).exclude(state=ProblemFile.State.QUEUED)
        if rows.update(state=ProblemFile.State.QUEUED, found=[], sent=0, checked_at=None):
            ask(problem)


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


def ask(problem: ProblemFile) -> None:
    """Send its check when the transaction commits. A lost message is sent again by a sweep."""
    key = problem.pk
    transaction.on_commit(lambda: send(key))


def send(key: int) -> None:
    """A broker that is away is logged and no error: the sweep tries again."""
    from spakweb.celery import app

    ProblemFile.objects.filter(pk=key).update(sent=F("sent") + 1)
    try:
        app.send_task(TASK, (key,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("the check of problem %s was not queued: %s", key, type(error).__name__)


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
    return text.replace("\r\n", "\n")
