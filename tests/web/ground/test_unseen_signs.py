"""Pages on which somebody decides show signs that nobody sees; what their forms send back stays as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail

from spak.unseen import SIGNS
from spakweb.ground.unsafe_text import reveal, reveal_around_tags
from spakweb.work.reviews import actions
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.teams.actions import invite

HIDDEN = "a\u202eb\u200bc\U000e0041\x9bd"
TEAM = "/t/kernel-tuners"


def outside_of_forms(page: str) -> str:
    return re.sub(r"(?s)<textarea.*?</textarea>|<script.*?</script>|<[^>]*>", "", page)


@pytest.mark.django_db
def test_every_page_shows_them(cast: Any) -> None:
    text = cast.spec.head.text
    spec = create_spec(cast["bob"], cast.team, "Odd", f"// {HIDDEN}\n{text}", HIDDEN)
    save_version(cast["bob"], spec, f"// two {HIDDEN}\n{text}", 1, HIDDEN)
    actions.propose(cast["bob"], spec, f"// three {HIDDEN}\n{text}", 2, f"Title {HIDDEN}", HIDDEN)
    invite(cast["alice"], cast.team, "viewer", HIDDEN)
    type(cast.team).objects.filter(pk=cast.team.pk).update(name=f"Team {HIDDEN}", rules=f"# {HIDDEN}\n")
    here, alice, shown = f"{TEAM}/specs/{spec.slug}", cast.client("alice"), 0
    pages = [
        *("/me/", f"{TEAM}/", f"{TEAM}/specs/", f"{TEAM}/members/", f"{TEAM}/audit/", f"{TEAM}/rules/"),
        *(f"{TEAM}/reviews/", f"{here}/", f"{here}/history/", f"{here}/v/1/", f"{here}/patches/"),
        *(f"{here}/compare/?old=1&new=2", f"{here}/compare/?old=1&new=2&view=unified", f"{here}/edit/"),
        *(f"{here}/patches/1/", f"{here}/patches/1/graph/", f"{here}/blame/", f"{here}/run/"),
    ]
    for path in pages:
        answer = alice.get(path)
        assert answer.status_code == 200, path
        page = outside_of_forms(answer.content.decode())
        assert not SIGNS.search(page), path
        shown += reveal("\u202e") in page
    assert shown >= 10


@pytest.mark.parametrize("kept", ['<p title="{}">', "<textarea rows=2>{} </TEXTAREA>", '<input value="{}">',
                                  '<script type="application/json">"{}"</script>'])  # fmt: skip
def test_what_a_form_sends_back_stays_as_it_is(kept: str) -> None:
    kept = kept.format(HIDDEN)
    assert reveal_around_tags(f"{HIDDEN}{kept}{HIDDEN}") == f"{reveal(HIDDEN)}{kept}{reveal(HIDDEN)}"


@pytest.mark.django_db
def test_mail_shows_them(cast: Any, settings: Any, django_capture_on_commit_callbacks: Any) -> None:
    settings.SENDS_MAIL = True
    cast["rita"].email = "rita@x.example"
    cast["rita"].save()
    text = f"// {HIDDEN}\n{cast.spec.head.text}"
    type(cast.spec).objects.filter(pk=cast.spec.pk).update(name=f"Small {HIDDEN}")
    cast.spec.refresh_from_db()
    with django_capture_on_commit_callbacks(execute=True):
        actions.propose(cast["bob"], cast.spec, text, 1, "Title", f"Why {HIDDEN}")
    assert mail.outbox and not any(SIGNS.search(f"{one.subject} {one.body}") for one in mail.outbox)
    assert reveal(HIDDEN) in mail.outbox[0].subject
