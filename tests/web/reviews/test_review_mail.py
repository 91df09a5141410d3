"""Mail to those who must act on a patch."""

from __future__ import annotations

from typing import Any

from django.core import mail

from reviews_kit import LAST, ONE, OTHER, TWO
from spakweb.store.reviews.models import Patch
from spakweb.work.reviews import actions, talk
from spakweb.work.specs.actions import save_version


def test_mail_goes_to_those_who_must_act(
    cast: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.SENDS_MAIL = True
    text = cast.spec.head.text.replace(ONE, OTHER)
    with django_capture_on_commit_callbacks(execute=True):
        patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere")
    with django_capture_on_commit_callbacks(execute=True):
        actions.judge(cast["rita"], patch, 1, False, "Why?")
        talk.comment(cast["rita"], patch, "So \u202eand not")
    asked, answered, said = mail.outbox
    assert "rita wrote: So \u27e8U+202E\u27e9and not" in said.body
    assert asked.bcc == ["alice@spak.example", "rita@spak.example"] and "bob asks" in asked.body
    assert answered.bcc == ["bob@spak.example"] and "Why?" in answered.body
    assert "/specs/small/patches/1/" in answered.body


def test_mail_asks_those_again_whose_verdict_no_longer_counts(
    cast: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    """After another meaning, and after bringing it up to date; not after formatting, nor those who left."""
    settings.SENDS_MAIL = True
    text = cast.spec.head.text.replace(ONE, OTHER)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere")
    actions.judge(cast["rita"], patch, 1, False, "Why?")
    actions.judge(cast["alice"], patch, 1, True)
    text = text.replace(TWO, LAST)

    def sent(act: Any) -> list[tuple[list[str], str]]:
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            act()
        return [(one.bcc, one.body.partition("\n")[0]) for one in mail.outbox]

    again = "bob made revision 2: your verdict was on an earlier one. The docs too"
    revised = sent(lambda: actions.revise(cast["bob"], patch, 1, text, "The docs too"))
    assert revised == [(["alice@spak.example", "rita@spak.example"], again)]
    actions.judge(cast["rita"], patch, 2, True)
    save_version(cast["alice"], cast.spec, "// first\n" + cast.spec.head.text, 1)
    patch = Patch.objects.get(pk=patch.pk)
    again = "vera made revision 3: your verdict was on an earlier one. Brought up to version 2"
    cast.team.memberships.filter(user=cast["vera"]).update(role="editor")
    assert sent(lambda: actions.update(cast["vera"], patch, 2)) == [
        (["alice@spak.example", "rita@spak.example"], again)
    ]
    actions.judge(cast["rita"], patch, 3, True)
    cast.team.memberships.filter(user=cast["alice"]).delete()
    indented = patch.latest.text.replace("  START", "    START")
    assert sent(lambda: actions.revise(cast["bob"], patch, 3, indented, "Indented")) == []
