"""`{% campaign_of patch evidence as tried %}`: the team's campaign that a patch is from, for its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from spakweb.store.campaigns.models import Campaign
from spakweb.store.reviews.models import Patch

register = template.Library()


@register.simple_tag
def campaign_of(patch: Patch, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """`row`, the campaign, None of a brought one; `points` as they are now, or as they were brought."""
    points = evidence.get("front", [])
    number = evidence.get("campaign")
    row = Campaign.objects.filter(team=patch.spec.team_id, number=number).first() if number else None
    return {"row": row, "points": row.shown.get("front", points) if row else points}
