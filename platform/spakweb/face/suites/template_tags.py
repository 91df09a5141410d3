"""Template tag: the suites of a team, for the form that keeps a run."""

from __future__ import annotations

from django import template
from django.db.models import QuerySet

from spakweb.ground.teams.models import Team
from spakweb.store.suites.models import Suite

register = template.Library()


@register.simple_tag
def suites_of(team: Team) -> QuerySet[Suite]:
    """The suites of a team, by name."""
    return Suite.objects.filter(team=team)
