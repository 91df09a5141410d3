"""Campaigns that should continue, and the message that says so.

One should continue when it is running, nobody holds it, and no run that it requested is under way or is to be
judged.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q
from kombu.exceptions import KombuError

from spakweb import clock
from spakweb.campaigns.models import Campaign, CampaignRun, State
from spakweb.runs.leases import APART, free
from spakweb.runs.models import ENDED
from spakweb.suites import case_runs

RESEND_AFTER = timedelta(seconds=30)
"""After so long a message counts as lost."""
AT_ONCE = 20
"""Campaigns that one sweep puts back."""

log = logging.getLogger(__name__)


def due() -> list[int]:
    """Campaigns that should continue and for which no message is under way."""
    now = clock.now()
    going = CampaignRun.objects.filter(campaign=OuterRef("pk"), run__deleted_at=None)
    unjudged = going.filter(run__of_case__isnull=False, run__of_case__judgement=None)
    over = (*ENDED, "waiting")  # what waits for a person has no result
    open_ones = Exists(going.exclude(run__state__in=over)) | Exists(unjudged.exclude(run__state="cancelled"))
    rows = Campaign.objects.filter(free(now), ~open_ones, state=State.RUNNING)
    unsent = Q(enqueued_at=None) | Q(enqueued_at__lt=now - RESEND_AFTER) | Q(enqueued_at__gt=now + APART)
    return list(rows.filter(unsent).order_by("enqueued_at", "pk").values_list("pk", flat=True)[:AT_ONCE])


def held_up() -> Q:
    """Running campaigns that wait until something is back: for a run of theirs, or for their proposer."""
    rests = Exists(CampaignRun.objects.filter(case_runs.resting(), campaign=OuterRef("pk")))
    return Q(state=State.RUNNING) & (~Q(why="") | rests)


def standing(campaign: Campaign) -> tuple[str, str]:
    """Its state as people see it, and why: one that is held up is paused, and goes on by itself."""
    if campaign.state != State.RUNNING:
        return str(campaign.state), campaign.why
    why = campaign.why or case_runs.held_up(campaign.asked)
    return (str(State.PAUSED), why) if why else (str(campaign.state), "")


def send(pk: int) -> None:
    """Send the message. A broker that is unavailable is logged: the next sweep sends it."""
    from spakweb.celery import app

    Campaign.objects.filter(pk=pk).update(enqueued_at=clock.now())
    try:
        app.send_task("campaigns.step", (pk,), retry=False)
    except (OSError, KombuError) as error:
        log.warning("campaign %s was not queued: %s", pk, type(error).__name__)
        Campaign.objects.filter(pk=pk).update(enqueued_at=None)
