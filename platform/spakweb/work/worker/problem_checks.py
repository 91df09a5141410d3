"""Checks of a team's problems: what `spak problem check` finds, by a worker, in its sandbox.

A check may be repeated and may be lost: the job is done again, a few times. Its result counts only for the
text that was checked.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from spak import config
from spak.errors import UserError
from spak.files.scratch import Scratch
from spak.validators.problems import check as problem_check
from spakweb.ground.host_faults import is_fault
from spakweb.store.jobs.pauses import doubling
from spakweb.store.specs.models import ProblemFile
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Kind
from spakweb.work.jobs.queue import to_do
from spakweb.work.specs import problem_files

LONGEST = 2000
"""Characters of a message that are kept."""


def find() -> list[tuple[str, int]]:
    """Problems that wait for their check, each with its team."""
    return to_do(problem_files.CHECK, ProblemFile.objects.filter(state=ProblemFile.State.QUEUED))


def act(hold: Hold) -> dict[str, Any] | None:
    """Check a problem that waits for it. Raises: UserError of the host; Lost."""
    row = ProblemFile.objects.filter(pk=int(hold.key), state=ProblemFile.State.QUEUED).first()
    if row is None:
        return None
    try:
        found = findings(row.text)
    except UserError as error:
        if is_fault(error):
            raise
        found = [
            {"code": error.code, "severity": "error", "message": error.message[:LONGEST], "hint": error.hint}
        ]
    with hold.writing():
        _ended(row, found)
    return {"found": len(found)}


def failed(key: str, error: str) -> None:
    """It is said that the check was lost: it may be what ends workers."""
    lost = "The check was lost several times. Check it again, or with spak problem check."
    row = ProblemFile.objects.filter(pk=int(key)).first()
    if row is not None:
        _ended(row, [{"code": "web.problem_lost", "severity": "error", "message": lost, "hint": ""}])


def reopen(key: str) -> bool:
    """Have it checked anew."""
    return bool(ProblemFile.objects.filter(pk=int(key)).update(state=ProblemFile.State.QUEUED))


def findings(text: str) -> list[dict[str, str]]:
    """What is wrong with a problem's text. Raises: UnavailableError."""
    settings = config.settings()
    with Scratch("problem") as folder:
        folder.chmod(0o755)
        bench = problem_check.Bench(
            config.box(settings), config.toolchain(settings.binds), settings.limits, folder
        )
        return [
            {
                "code": item.code, "severity": item.severity,
                "message": item.message.replace("\0", "")[:LONGEST], "hint": item.hint,
            }
            for item in problem_check.check(text, bench)
        ]  # fmt: skip


def _ended(row: ProblemFile, found: list[dict[str, str]]) -> None:
    bad = any(item["severity"] == "error" for item in found)
    ProblemFile.objects.filter(pk=row.pk, sha256=row.sha256, state=ProblemFile.State.QUEUED).update(
        state=ProblemFile.State.BAD if bad else ProblemFile.State.GOOD, found=found, checked_at=timezone.now()
    )


KIND = Kind(
    name=problem_files.CHECK, title="Problems to check", act=act, find=find, failed=failed, reopen=reopen,
    waits=doubling(10, 3),
)  # fmt: skip
