"""Campaigns that should continue, and how they stand.

One should continue when it is running, and no run that it requested is under way or is to be judged.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from spakweb.store.campaigns.models import Campaign, CampaignRun, State
from spakweb.store.runs.models import ENDED
from spakweb.work.jobs import queue as jobs
from spakweb.work.suites import case_runs

STEP = "campaigns.step"
"""The kind of job that advances one."""


def want(campaign: Campaign) -> None:
    """Ask for a step."""
    jobs.want(STEP, campaign.pk, campaign.team_id)


def due() -> list[tuple[str, int]]:
    """Campaigns that should continue, each with its team."""
    going = CampaignRun.objects.filter(campaign=OuterRef("pk"), run__deleted_at=None)
    unjudged = going.filter(run__of_case__isnull=False, run__of_case__judgement=None)
    over = (*ENDED, "waiting")  # what waits for a person has no result
    open_ones = Exists(going.exclude(run__state__in=over)) | Exists(unjudged.exclude(run__state="cancelled"))
    return jobs.to_do(STEP, Campaign.objects.filter(~open_ones, state=State.RUNNING))


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
