"""Tags that move by rules in a protected spec, and runs that name a tag."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, history
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import remove_tag, set_tag

ONE, OTHER = 'tool.list_files { path: "." }', 'tool.list_files { path: "tests" }'


@pytest.fixture
def merged(cast: Any) -> SpecVersion:
    """A protected spec's version by bob's patch."""
    protect(cast["alice"], cast.spec, 1)
    patch = actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, OTHER), 1, "Elsewhere")
    actions.judge(cast["rita"], patch, 1, True)
    return actions.merge(cast["bob"], patch, 1)


def refused(words: str) -> Any:
    return pytest.raises(Refused, match=words, check=lambda why: why.code == "web.tag_rule")


def test_staging_comes_before_production(cast: Any, merged: SpecVersion) -> None:
    rita = cast["rita"]
    with refused("it is not tagged staging"):
        set_tag(rita, merged, "production")
    set_tag(rita, merged, "staging")
    set_tag(rita, merged, "production")
    told = [history.read(one) for one in cast.spec.history.order_by("number")]
    assert [(one["what"], one["body"].get("tag")) for one in told[1:]] == [
        ("tag", "staging"),
        ("tag", "production"),
    ]
    assert history.verify(cast.spec) == []


def test_what_nobody_reviewed_is_not_promoted(cast: Any, merged: SpecVersion) -> None:
    with refused("no review made it"):
        set_tag(cast["rita"], cast.spec.versions.get(number=1), "staging")
    cast.team.memberships.filter(user=cast["bob"]).update(role="reviewer")
    with refused("who wrote it does not promote it"):
        set_tag(cast["bob"], merged, "staging")
    assert set_tag(cast["bob"], merged, "mine").name == "mine"  # any other tag moves as before
    with pytest.raises(Refused, check=lambda why: why.code == "web.tag"):
        set_tag(cast["bob"], merged, "Production")


def test_who_wrote_a_revision_does_not_promote_it_either(cast: Any) -> None:
    protect(cast["alice"], cast.spec, 1)
    patch = actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, OTHER), 1, "Elsewhere")
    actions.revise(cast["rita"], patch, 1, patch.latest.text.replace('"tests"', '"src"'))
    actions.judge(cast["alice"], patch, 2, True)
    version = actions.merge(cast["bob"], patch, 2)
    assert version.provenance["authors"] == ["bob", "rita"]
    with refused("who wrote it does not promote it"):
        set_tag(cast["rita"], version, "staging")
    set_tag(cast["alice"], version, "staging")


def test_only_an_admin_removes_them(cast: Any, merged: SpecVersion) -> None:
    tag = set_tag(cast["rita"], merged, "staging")
    with pytest.raises(PermissionDenied):
        remove_tag(cast["rita"], tag)
    remove_tag(cast["alice"], tag)
    assert history.read(cast.spec.history.get(number=3))["body"]["version"] is None


def test_a_spec_that_is_not_protected_has_no_rules(cast: Any) -> None:
    assert set_tag(cast["rita"], cast.spec.head, "production").version.number == 1


def test_a_run_names_a_tag(cast: Any, merged: SpecVersion) -> None:
    set_tag(cast["rita"], merged, "staging")
    bob, args = cast.client("bob"), [cast.team.slug, "small"]
    form = bob.get(reverse("spak-run-new", args=args) + "?version=staging").content.decode()
    assert '<option value="staging" selected>staging: v2</option>' in form
    sent = bob.post(reverse("spak-run-start", args=args), {"version": "staging"})
    assert sent.status_code == 302 and Run.objects.get().version == merged
    assert bob.post(reverse("spak-run-start", args=args), {"version": "gone"}).status_code == 404
