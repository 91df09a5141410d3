"""A protected spec says which specs it imports without protection; one click of an admin gives it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, rules
from spakweb.work.reviews.protection import follow_team, protect, protect_imports, unprotected_imports
from spakweb.work.specs.actions import create_spec, save_version
from spakweb.work.teams import named_roles

MAIN = """\
AGENT Main LEVEL 2 {
  IMPORT "middle.spak"
  START -> go
  TASK go { step look: tool.list_files { path: "." } }
}
"""
MIDDLE = 'IMPORT "end.spak"\nTASK between { step look: tool.list_files { path: "." } }\n'
END = 'TASK finish { step look: tool.list_files { path: "." } }\n'


@pytest.fixture
def main(cast: Any) -> Spec:
    for name, text in (("end", END), ("middle", MIDDLE), ("beside", END.replace("finish", "other"))):
        create_spec(cast["bob"], cast.team, name, text)
    return create_spec(cast["bob"], cast.team, "Main", MAIN)


def again(spec: Spec) -> Spec:
    return Spec.objects.select_related("team", "head").get(pk=spec.pk)


def names(spec: Spec) -> list[str]:
    return [one.name for one in unprotected_imports(again(spec), again(spec).head.text)]


def test_what_is_imported_and_not_protected_is_named(cast: Any, main: Spec) -> None:
    """Also through imports of imports; only once the spec itself is protected, and only to who may protect
    with a button."""
    assert names(main) == []
    protect(cast["alice"], main, 1)
    assert names(main) == ["end", "middle"]
    args = [cast.team.slug, main.slug]
    page = reverse("spak-patch-list", args=args)
    seen = {name: cast.client(name).get(page).content.decode() for name in ("alice", "bob")}
    assert all("Not protected, and imported by Main" in body for body in seen.values())
    assert [("Protect what it imports" in body) for body in seen.values()] == [True, False]
    protect(cast["alice"], Spec.objects.get(slug="middle", team=cast.team), 1)
    assert names(main) == ["end"]


def test_a_patch_that_imports_more_says_so(cast: Any, main: Spec) -> None:
    protect(cast["alice"], main, 1)
    protect_imports(cast["alice"], again(main))
    more = MAIN.replace('IMPORT "middle.spak"', 'IMPORT "middle.spak"\n  IMPORT "beside.spak"')
    made = actions.propose(cast["bob"], again(main), more, 1, "More")
    page = reverse("spak-patch", args=[cast.team.slug, main.slug, made.number])
    body = cast.client("rita").get(page).content.decode()
    assert "Not protected, and imported by Main" in body and ">beside</a>" in body and ">end</a>" not in body
    actions.close(cast["bob"], Patch.objects.get(pk=made.pk), 1)
    assert "Not protected, and imported" not in cast.client("rita").get(page).content.decode()


def test_one_click_gives_what_is_imported_the_same_rules(cast: Any, main: Spec) -> None:
    role = named_roles.keep(cast["alice"], cast.team, "security", [])
    given: Any = {"by_admin": True, "required": ["text"], "roles": {"tools": role.name}}
    protect(cast["alice"], main, 2, **given, queue=True, follow=True)
    page = reverse("spak-spec-protect", args=[cast.team.slug, main.slug])
    assert cast.client("bob").post(page, {"do": "imports"}).status_code == 403
    with pytest.raises(PermissionDenied):
        protect_imports(cast["bob"], again(main))
    assert names(main) == ["end", "middle"]
    assert cast.client("alice").post(page, {"do": "imports"}).status_code == 302
    assert names(main) == []
    for slug in ("end", "middle"):
        spec = Spec.objects.get(team=cast.team, slug=slug)
        ruled = spec.review_rules
        assert spec.own_rules and (ruled.approvals, ruled.privileged_by_admin, ruled.required_checks) == (
            2, True, ["text"],
        )  # fmt: skip
        assert ruled.merge_queue and ruled.approvals_follow
        assert [(one.kind, one.role) for one in rules.by_kind(spec)] == [("tools", role)]
        with pytest.raises(Refused, check=lambda why: why.code == "web.protected"):
            save_version(cast["bob"], spec, spec.head.text + "// more\n", 1)
    assert not Spec.objects.get(team=cast.team, slug="beside").own_rules
    assert Event.objects.filter(team=cast.team, action="spec.protected").count() == 3
    follow_team(cast["alice"], main)
    assert names(main) == [], "it is not protected itself"
