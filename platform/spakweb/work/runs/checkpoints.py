"""Signed checkpoints of a team's runs: now and then by a job of each team, at once by `manage.py checkpoint`.

Where the operator names a log (SPAK_WEB_CHECKPOINT_LOG) each team has one, `NAME/team-N`, with a key that is
derived from the platform's own. The leaves that are due are added, the log is signed, witnesses are asked,
and the file goes to the team's part of each place. The last one can be downloaded in any case.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from spak.errors import LedgerError
from spak.ledger.note import own_verifier, read
from spak.ledger.places import place
from spak.ledger.publish import publish
from spakweb.ground import clock
from spakweb.ground.teams.models import Team
from spakweb.store.ledger.log import DatabaseLog
from spakweb.store.runs.models import LogCheckpoint, Run
from spakweb.store.runs.signing import private_key
from spakweb.work.jobs.hold import Hold
from spakweb.work.jobs.kinds import Again, Kind

WRITE = "runs.checkpoint"
EVERY = timedelta(seconds=settings.CHECKPOINT_EVERY_S)

log = logging.getLogger(__name__)


def name_of(team: Team) -> str:
    """The name of the team's log; empty where the operator names none."""
    return f"{settings.CHECKPOINTS.log}/team-{team.pk}" if settings.CHECKPOINTS.log else ""


def key_of(team: Team) -> bytes:
    """The private key of the team's log."""
    return hmac.digest(private_key(), f"checkpoint {team.pk}".encode(), "sha256")


def public_key(team: Team) -> str:
    """What verifies the team's checkpoints."""
    return str(own_verifier(name_of(team), key_of(team)))


def write(
    team: Team, writing: Callable[[], AbstractContextManager[None]] = transaction.atomic
) -> LogCheckpoint:
    """A checkpoint of what the team's runs are now; its rows are written within `writing`.

    Raises: LedgerError `ledger.forked` where the log is not the one that was signed, `ledger.busy`.
    """
    leaves = DatabaseLog(team)
    due, wrong = leaves.due()
    if due:
        with writing():
            leaves.append(due)
    kept = LogCheckpoint.objects.filter(team=team).first()
    places = [place(_part(text, team), settings.CHECKPOINT_TOKEN) for text in settings.CHECKPOINTS.to]
    made = publish(
        leaves, name_of(team), key_of(team), None if kept is None else read(kept.note.encode()),
        settings.CHECKPOINTS.witnesses, places,
    )  # fmt: skip
    problems = [*wrong, *made.problems]
    values = {"note": made.note.text(), "size": leaves.size, "key": made.key}
    with writing():
        row, _ = LogCheckpoint.objects.update_or_create(
            team=team, defaults={**values, "made_at": clock.now(), "problems": problems}
        )
    for line in problems:
        log.warning("checkpoint of team %s: %s", team.slug, line)
    return row


def find() -> list[tuple[str, int]]:
    """The teams that have runs and no recent checkpoint, where there are logs."""
    if not settings.CHECKPOINTS.log:
        return []
    recent = LogCheckpoint.objects.filter(made_at__gt=clock.now() - EVERY).values("team")
    teams = Team.objects.filter(Exists(Run.objects.filter(team=OuterRef("pk"), count__gt=0)))
    pks = teams.exclude(pk__in=recent).order_by("pk").values_list("pk", flat=True)
    return [(str(pk), pk) for pk in pks]


def act(hold: Hold) -> dict[str, Any] | None:
    """Write the checkpoint of one team. Raises: Again."""
    team = Team.objects.filter(pk=hold.key).first()
    if team is None or not settings.CHECKPOINTS.log:
        return None
    try:
        row = write(team, hold.writing)
    except LedgerError as error:
        if error.code == "ledger.busy":
            raise Again(error.message) from error
        log.error("checkpoint of team %s: %s", team.slug, error.message)
        with hold.writing():
            LogCheckpoint.objects.filter(team=team).update(problems=[error.message])
        return {"error": error.message}
    return {"size": row.size, "problems": len(row.problems)}


def _part(text: str, team: Team) -> str:
    """The team's part of a place."""
    end = f"team-{team.pk}"
    if text.startswith("git+"):
        return f"{text}#{end}"
    address, question, query = text.partition("?")
    return f"{address.rstrip('/')}/{end}{question}{query}"


KIND = Kind(name=WRITE, title="Checkpoints of runs", act=act, find=find, every=EVERY)
