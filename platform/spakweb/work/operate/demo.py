"""The demo team: Alice (admin) and Bob (reviewer), who own the specs that ship. `seed()` makes it once.

It is for one's own machine: the password is in the documentation, so `up` serves it on loopback only.
"""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from spak.lang import parse
from spakweb.ground.teams.models import Membership, Role, Team, User
from spakweb.store.specs.examples import examples
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team

USER, PASSWORD = "alice", "spak-demo"
TEAM, SLUG = "Demo team", "demo-team"


@transaction.atomic
def seed() -> bool:
    """False when the team is there already."""
    if settings.PRODUCTION:
        raise ImproperlyConfigured("the demo team has a known password; it is not made in production")
    if Team.objects.filter(slug=SLUG).exists():
        return False
    alice = User.objects.create_user(USER, "alice@spak.example", PASSWORD, first_name="Alice")
    bob = User.objects.create_user("bob", "bob@spak.example", PASSWORD, first_name="Bob")
    team = create_team(alice, TEAM)
    Membership.objects.create(team=team, user=bob, role=Role.REVIEWER)
    shipped = examples()
    for name, text in reversed(shipped.items()):
        create_spec(alice, team, name, text, "As it ships with SPAK")
    create_spec(bob, team, "first_draft", first_draft(shipped["cuda_optimizer"]), "Begin a CUDA optimizer")
    return True


def first_draft(text: str) -> str:
    """The CUDA example as it was first written down: its last task is named and not there."""
    parsed = parse(text)
    last = list(parsed.spec.tasks())[-1]
    return f"{text[: parsed.spec.source.offsets(last.start, last.end)[0]].rstrip()}\n}}\n".replace(
        "Cuda_Optimizer", "First_Draft"
    )
