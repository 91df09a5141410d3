"""What comes from odd or late forms: told in words, nothing lost, nothing merged twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.urls import reverse

from spakweb.face.reviews import page
from spakweb.ground.errors import Refused
from spakweb.store.reviews.models import Comment, Patch, Viewed
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions
from spakweb.work.reviews.parts import edits_of

ONE, OTHER = 'tool.list_files { path: "." }', 'tool.list_files { path: "tests" }'


@pytest.fixture
def patch(cast: Any) -> Patch:
    return actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace(ONE, OTHER), 1, "Elsewhere")


@pytest.mark.parametrize("revision", ["2", "999999999", "-1", "x", "", "1" * 50])
@pytest.mark.parametrize("do", ["approve", "merge", "drop", "update", "decide", "close", "take", "check"])
def test_a_forged_revision_does_nothing(cast: Any, patch: Patch, do: str, revision: str) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    where = reverse("spak-patch-do", args=[cast.team.slug, "small", 1])
    answer = cast.client("alice").post(where, {"do": do, "revision": revision, "edit": "1"})
    words = "The line that it was made for is not there" if do == "take" else "; the newest is 1."
    assert answer.status_code == 409 and words in answer.content.decode()
    patch.refresh_from_db()
    assert (patch.state, patch.revisions.count()) == ("open", 1)
    assert SpecVersion.objects.filter(spec=cast.spec).count() == 1


def test_a_text_as_large_as_a_spec_may_be_and_one_byte_more(cast: Any) -> None:
    where, bob = reverse("spak-patch-propose", args=[cast.team.slug, "small"]), cast.client("bob")
    text = cast.spec.head.text
    text += "//" + "x" * (settings.UPLOAD_BYTES - len(text) - 3) + "\n"
    form = {"title": "Large", "text": text, "base_version": "1"}
    made = bob.post(where, form)
    assert made.status_code == 302 and bob.get(made["Location"]).status_code == 200
    refused = bob.post(where, {**form, "text": f"{text}x"})
    assert refused.status_code == 413 and "a spec has at most" in refused.content.decode()
    assert Patch.objects.count() == 1


def test_a_comment_of_a_megabyte_is_refused_in_words(cast: Any, patch: Patch) -> None:
    where = reverse("spak-patch-do", args=[cast.team.slug, "small", 1])
    answer = cast.client("rita").post(where, {"do": "comment", "revision": "1", "text": "x" * 1_000_000})
    assert answer.status_code == 413 and "1 to 4000 characters" in answer.content.decode()
    assert not Comment.objects.exists()


def test_a_proposer_who_left_leaves_the_patch_to_others(cast: Any, patch: Patch) -> None:
    cast.team.memberships.filter(user=cast["bob"]).delete()
    type(cast["bob"]).objects.filter(pk=cast["bob"].pk).update(is_active=False)
    actions.judge(cast["rita"], patch, 1, True)
    version = actions.merge(cast["alice"], patch, 1)
    assert (version.text, version.provenance["proposer"]) == (patch.latest.text, "bob")


@pytest.mark.parametrize("sign", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85"])
def test_edits_have_the_line_numbers_of_the_text(cast: Any, sign: str) -> None:
    """Only LF ends a line, as in the text below the edits and in comments on its lines."""
    base = cast.spec.head.text
    text = base.replace("  START", f"  // a{sign}b\n  START").replace("TASK done {", "TASK done { // more")
    found, lines = edits_of(base, text), text.split("\n")
    assert [lines[one.new_line - 1 : one.new_line - 1 + len(one.new)] for one in found] == [
        list(one.new) for one in found
    ]
    assert [one.new_line for one in found] == [2, 8]
    made = actions.propose(cast["bob"], cast.spec, text, 1, "Signs")
    assert actions.drop_edit(cast["bob"], made, 1, 0).text == text.replace(f"  // a{sign}b\n", "")
    assert actions.keep_edit(cast["bob"], made, 2, 0).number == 3


def test_a_rationale_is_counted_in_characters_and_refused_in_its_own_words(cast: Any) -> None:
    text = cast.spec.head.text + "// more\n"
    assert (
        actions.propose(cast["bob"], cast.spec, text, 1, "Long", "\u044f" * 20_000).rationale[0] == "\u044f"
    )
    with pytest.raises(Refused) as why:
        actions.propose(cast["bob"], cast.spec, text, 1, "Long", "x" * 20_001)
    assert (why.value.code, why.value.status) == ("web.comment", 413)
    assert "20,000 characters" in why.value.message and Patch.objects.count() == 1


def test_what_is_viewed_holds_no_sign_that_a_database_refuses(cast: Any, patch: Patch) -> None:
    where = reverse("spak-patch-viewed", args=[cast.team.slug, "small", 1])
    assert (
        cast.client("vera").post(where, {"part": "tasks/\0" + "x" * 300, "digest": "\0y"}).status_code == 302
    )
    row = Viewed.objects.get()
    assert len(row.part) == 200 and "\0" not in row.part + row.digest


def test_very_many_comments_come_in_pages(cast: Any, patch: Patch) -> None:
    """The newest threads are shown, with their answers; the others are a link away."""
    rows = [
        Comment(patch=patch, revision=patch.latest, text=f"said {number}.", author=cast["bob"])
        for number in range(page.THREADS * 2 + 5)
    ]
    first, *_, last = Comment.objects.bulk_create(rows)
    for thread in (first, last):
        Comment.objects.create(
            patch=patch, revision=patch.latest, parent=thread, text=f"answer to {thread.text}",
            author=cast["bob"],
        )  # fmt: skip
    where, client = reverse("spak-patch", args=[cast.team.slug, "small", 1]), cast.client("rita")
    seen: list[str] = []
    address = where
    for expected in (page.THREADS, page.THREADS, 5):
        body = client.get(address).content.decode()
        assert body.count('<article class="thread') == expected and "205 open comments" in body
        seen += [one.text for one in rows if f"<p>{one.text}</p>" in body]
        if expected != 5:
            key = client.get(address).context["older"]
            assert f'href="?said={key}#conversation"' in body
            address = f"{where}?said={key}"
    assert sorted(seen) == sorted(one.text for one in rows)
    assert "answer to said 0." in body and "earlier comments" not in body
    assert (
        client.get(f"{where}?said=x").status_code == client.get(f"{where}?said=999999999").status_code == 200
    )
