"""Markup and marks of direction in every field of a patch stay words on every page that shows them."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest
from django.urls import reverse

from spakweb.ground.unsafe_text import reveal
from spakweb.store.reviews.models import Patch
from spakweb.work.reviews import actions, talk
from spakweb.work.reviews.protection import protect, protect_team
from spakweb.work.specs.actions import create_spec, save_version, set_tag
from spakweb.work.teams import named_roles

HOSTILE = "\"><img src=x onerror=alert(1)>'{{7*7}}\u202e"
RAW = "<img src=x"
ONE = 'step one: tool.list_files { path: "." }'
OTHER = 'step one: tool.list_files { path: "<img src=x onerror=alert(1)>" }'


def test_a_hostile_name_in_every_field(cast: Any) -> None:
    alice, bob, rita = (cast[name] for name in ("alice", "bob", "rita"))
    spec = create_spec(alice, cast.team, f"Sp {HOSTILE}", cast.spec.head.text)
    role = named_roles.keep(alice, cast.team, HOSTILE, [])
    protect(alice, spec, 1, roles={"any": role.name})
    protect_team(alice, cast.team, 1, roles={"tools": role.name})
    spec.refresh_from_db()
    text = spec.head.text.replace(ONE, OTHER) + f"// {HOSTILE}\n"
    patch = actions.propose(bob, spec, text, 1, HOSTILE, HOSTILE, campaign=HOSTILE)
    made = talk.comment(rita, patch, HOSTILE, line=1, seen=1, suggestion=f"// {HOSTILE}")
    talk.comment(bob, patch, HOSTILE, answers=made.pk)
    talk.comment(rita, patch, HOSTILE, HOSTILE)
    actions.drop_edit(bob, patch, 1, 1, HOSTILE)
    actions.judge(alice, patch, 2, False, HOSTILE)
    pages = {
        "spak-patch": (patch.number,), "spak-patch-status": (patch.number,), "spak-patch-list": (),
        "spak-patch-conflicts": (patch.number,), "spak-spec-blame": (), "spak-spec-history": (),
    }  # fmt: skip
    found = _shown(cast, spec.slug, pages)
    assert {name for name, body in found.items() if "onerror" in body} >= {"spak-patch", "spak-patch-list"}
    protect(alice, spec, 1)
    actions.revise(bob, patch, 2, text, HOSTILE)
    patch = Patch.objects.get(pk=patch.pk)
    actions.judge(rita, patch, 3, True, HOSTILE)
    actions.judge(alice, patch, 3, True, HOSTILE)
    version = actions.merge(alice, patch, 3)
    assert version.text == text, "byte for byte"
    set_tag(rita, version, "staging")
    merged = _shown(cast, spec.slug, pages)
    assert "onerror" in merged["spak-spec-blame"] and "onerror" in merged["spak-patch"]


def test_hostile_words_on_the_page_of_conflicts(cast: Any) -> None:
    spec = cast.spec
    patch = actions.propose(cast["bob"], spec, spec.head.text.replace(ONE, OTHER), 1, HOSTILE)
    theirs = spec.head.text.replace(ONE, OTHER.replace("src=x", "src=x id=y"))
    save_version(cast["alice"], spec, theirs, 1, HOSTILE)
    found = _shown(cast, spec.slug, {"spak-patch-conflicts": (patch.number,), "spak-patch": (patch.number,)})
    assert "onerror" in found["spak-patch-conflicts"]


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\x1b", "\u200f", "\u200b"])
def test_marks_of_direction_in_a_text_are_seen_where_it_is_reviewed(cast: Any, sign: str) -> None:
    """Else a line is read in another order than it has; what is exported and edited is as it is."""
    text = cast.spec.head.text.replace(ONE, ONE.replace('"."', f'"{sign}a"'))
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere")
    line = text.split("\n").index(f"    {ONE}".replace('"."', f'"{sign}a"')) + 1
    talk.comment(cast["rita"], patch, "Why?", line=line, seen=1, suggestion=f"    // {sign}")
    args = [cast.team.slug, "small", patch.number]
    where, alice = reverse("spak-patch", args=args), cast.client("alice")
    for query in ("", "?view=unified"):
        body = alice.get(where + query).content.decode()
        assert sign not in body and body.count(reveal(sign)) >= 4
    actions.revise(cast["bob"], patch, 1, text.replace(f"{sign}a", f"{sign}b"))
    assert sign not in alice.get(where).content.decode(), "in the line that a comment quotes"
    assert sign in alice.get(reverse("spak-patch-text", args=args)).content.decode()
    save_version(cast["alice"], cast.spec, text.replace(f"{sign}a", f"{sign}c"), 1)
    body = alice.get(reverse("spak-patch-conflicts", args=args)).content.decode()
    form = re.sub(r"<textarea.*?</textarea>", "", body, flags=re.S)
    assert sign not in form and reveal(sign) in form and sign in body
    blame = alice.get(reverse("spak-spec-blame", args=args[:2])).content.decode()
    assert sign not in blame and reveal(sign) in blame
    shown = alice.get(reverse("spak-spec-compare", args=args[:2]) + "?old=1&new=2").content.decode()
    assert sign not in shown and reveal(sign) in shown


def test_marks_of_direction_in_words_about_a_patch_are_seen(cast: Any) -> None:
    """In the reason, in comments and answers, and where a program said it; also in what is sent packed."""
    hidden = "safe\u202e\u200b"
    text = cast.spec.head.text.replace(ONE, OTHER)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere", f"Reason {hidden}")
    made = talk.comment(cast["rita"], patch, f"Said {hidden}")
    talk.comment(cast["bob"], patch, f"Answered {hidden}", answers=made.pk)
    patch.latest.checks.update(words=f"Judged {hidden}")
    args = [cast.team.slug, "small", patch.number]
    for name, told in (("spak-patch", 4), ("spak-patch-status", 1)):
        answer = cast.client("alice").get(reverse(name, args=args), headers={"Accept-Encoding": "gzip"})
        packed = answer.headers.get("Content-Encoding") == "gzip"
        body = (gzip.decompress(answer.content) if packed else answer.content).decode()
        assert packed is (name == "spak-patch")
        assert "\u202e" not in body and "\u200b" not in body and body.count(reveal(hidden)) >= told


def _shown(cast: Any, spec: str, pages: dict[str, tuple[int, ...]]) -> dict[str, str]:
    """Each page as alice sees it, with those of the team; none has the markup as markup."""
    found, team = {}, cast.team.slug
    where = {name: reverse(name, args=[team, spec, *args]) for name, args in pages.items()}
    more = ("spak-reviews", "spak-team-home", "spak-audit", "spak-team-members", "spak-review-rules")
    where |= {name: reverse(name, args=[team]) for name in more}
    for name, address in where.items():
        answer = cast.client("alice").get(address)
        assert answer.status_code == 200, name
        found[name] = answer.content.decode()
        assert RAW not in found[name], name
    return found
