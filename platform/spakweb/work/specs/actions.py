"""Every write to the tables of specs; pages, API and tasks call these alike.

Rights are asked here, so that no caller can forget: a stranger gets Http404, too low a role PermissionDenied.
Texts that cannot be kept raise Refused and change nothing. Versions are only ever added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal
from django.utils import timezone

from spak.merge import MINE, THEIRS, Merge, merge
from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import law_of
from spakweb.ground.teams.models import Team
from spakweb.ground.text import clean, digest, one_line
from spakweb.store.specs.facts import facts_of
from spakweb.store.specs.models import TAG, Draft, Spec, SpecVersion, Tag
from spakweb.store.specs.team_files import TeamFiles, slug_of
from spakweb.work.specs import widening

RESERVED = frozenset({"new", "import", "gallery"})
"""Words that stand where a spec's slug stands in addresses."""
PROMOTED = {"staging": "", "production": "staging"}
"""Tags that move by rules where a spec is protected, and the tag that a version must have before."""
tag_moved = Signal()
"""Sent inside the transaction that moves or removes a tag, with `user`, `tag`, `old` and maybe `gone`."""
saved = Signal()
"""Sent inside the transaction that makes a version, with `version`."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Someone saved in between: nothing was saved. `merge` has both changes in one text."""

    base: SpecVersion | None
    head: SpecVersion
    mine: str
    merge: Merge

    def to_json(self) -> dict[str, Any]:
        """The versions between which somebody has to choose, as the editor gets them."""
        return {
            "code": "web.stale",
            "message": f"{self.head.saved_by} saved version {self.head.number} in between.",
            "base_version": self.base.number if self.base else 0,
            "base": self.base.text if self.base else "",
            "head_version": self.head.number,
            "head": self.head.text,
            "mine": self.mine,
            "merge": self.merge.to_json(),
        }


def create_spec(
    user: Any, team: Team, name: str, text: str, message: str = "", origin: Mapping[str, Any] | None = None
) -> Spec:
    """A spec with its first version; `origin` says which file of a repository it comes from.

    Raises: Refused `web.name`, `web.text`, `web.text_size`.
    """
    access.require(user, "spec.edit", team)
    name = one_line(name, 80)
    slug = slug_of(name)
    if not slug:
        raise Refused("web.name", "A spec needs a name with at least one letter or digit.", "Type a name.")
    text, made = clean(text, settings.UPLOAD_BYTES), None
    facts = _facts(team, slug, text)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # two at once would find one slug free
        if (free := _free_slug(team, slug)) != slug:
            slug, facts = free, _facts(team, free, text)
        made = Spec.objects.create(team=team, slug=slug, name=name, made_by=user)
        version = _append(made, user, text, facts, message or "First version", provenance=_from(origin))
        record(user, "spec.created", str(version), team, after=version.content_hash)
    return made


def save_version(
    user: Any,
    spec: Spec,
    text: str,
    base_version: int,
    message: str = "",
    restored_from: SpecVersion | None = None,
    *,
    typed: bool = True,
    reviewed: Mapping[str, Any] | None = None,
    author: Any = None,
    origin: Mapping[str, Any] | None = None,
    confirmed: str = "",
) -> SpecVersion | Stale:
    """The new version; the head itself when the text is the head's; Stale when the base is not the head.

    The person's draft is dropped with the save, in one transaction; not so when the text is no `typed` one
    but a file or an old version. A protected spec takes `reviewed` texts alone, with their provenance and
    their `author`, where that is not the user. Of a text from a repository `origin` says where it is from.
    One that widens is `confirmed` (widening.py).
    Raises: Refused `web.text`, `web.text_size`, `web.markers`, `web.archived`, `web.protected`, `web.widens`.
    """
    access.require(user, "spec.edit" if reviewed is None else "spec.merge", spec)
    text = clean(text, settings.UPLOAD_BYTES)
    if reviewed is None and any(line.startswith((MINE, THEIRS)) for line in text.splitlines()):
        raise Refused(
            "web.markers",
            "The text still holds marks of a conflict.",
            "Keep one side of each, and take out the marks.",
        )
    facts = _facts(spec.team, spec.slug, text)
    newest = spec.versions.first()
    asked = widening.asked(spec, text) if reviewed is None else []
    with transaction.atomic():
        spec = _locked(spec.pk)
        if spec.archived_at:
            raise Refused(
                "web.archived", f"{spec.name} is archived.", "Take it out of the archive first.", 409
            )
        head, draft = spec.head, draft_of(user, spec)
        if digest(text) == head.content_hash:
            if typed:
                draft.delete()
            return head
        if spec.review_rules.approvals and reviewed is None:
            raise Refused("web.protected", f"{spec.name} is protected.", "Propose the text as a patch.", 409)
        if base_version != head.number:
            base = spec.versions.filter(number=base_version).first()
            return Stale(base, head, text, merge(base.text if base else "", text, head.text))
        if head != newest and reviewed is None:  # saved while the texts were compared
            asked = widening.asked(spec, text)
        widened = widening.permitted(user, spec, text, confirmed, asked)
        provenance = {**(reviewed or _from(origin)), **widened}
        version = _append(spec, author or user, text, facts, message, restored_from, provenance)
        if typed:
            draft.delete()
        record(
            user, "spec.saved", str(version), spec.team,
            before=head.content_hash, after=version.content_hash, **widened,
        )  # fmt: skip
    return version


def restore(user: Any, version: SpecVersion, confirmed: str = "") -> SpecVersion:
    """An old version's text as a new version; the head itself when that is its text already. Raises: as
    `save_version`."""
    message, saved = f"Restore version {version.number}", None
    while not isinstance(saved, SpecVersion):  # again where somebody else saved meanwhile
        spec = Spec.objects.select_related("team", "head").get(pk=version.spec_id)
        saved = save_version(
            user, spec, version.text, spec.head.number, message, version, typed=False, confirmed=confirmed
        )
    return saved


def draft_of(user: Any, spec: Spec, patch: int = 0) -> QuerySet[Draft]:
    """The person's draft of the spec, or of the patch with that number."""
    return Draft.objects.filter(spec=spec, user=user, patch=patch)


def unsaved_draft(user: Any, spec: Spec) -> Draft | None:
    """The person's draft of the spec, where its text is not that of the newest version."""
    draft = draft_of(user, spec).first()
    return draft if draft is not None and spec.head is not None and draft.text != spec.head.text else None


def save_draft(user: Any, spec: Spec, text: str, base_version: int, patch: int = 0) -> Draft:
    """The person's draft, the last write wins: it is only theirs. Raises: Refused as for a version."""
    access.require(user, "spec.edit", spec)
    text = clean(text, settings.UPLOAD_BYTES)
    draft, _ = Draft.objects.update_or_create(
        spec=spec,
        user=user,
        patch=patch,
        defaults={"text": text, "base_version": base_version, "saved_at": timezone.now()},
    )
    return draft


def draft_moved(user: Any, spec: Spec, text: str, seen: object, patch: int = 0) -> bool:
    """Whether the person's draft is neither this text nor the one that their page saw last: `seen` says when
    that was saved, and is empty for none. A page that says nothing knows of it."""
    draft = draft_of(user, spec, patch).first() if isinstance(seen, str) else None
    return draft is not None and draft.text != text and draft.saved_at.isoformat() != seen


def drop_draft(user: Any, spec: Spec, patch: int = 0) -> bool:
    """True when there was one."""
    access.require(user, "spec.view", spec)
    return bool(draft_of(user, spec, patch).delete()[0])


def set_tag(user: Any, version: SpecVersion, name: str) -> Tag:
    """The tag, made or moved to this version; in a protected spec those of PROMOTED move by its rules.

    Raises: Refused `web.tag`, `web.tag_rule`.
    """
    access.require(user, "spec.tag", version)
    try:
        TAG(name)
    except ValidationError as error:
        raise Refused("web.tag", f"{name[:60]!r} is not a name for a tag.", error.message) from error
    if name not in PROMOTED and name.lower() in PROMOTED:
        raise Refused("web.tag", f"{name!r} would be taken for {name.lower()}.", f"Write {name.lower()}.")
    with transaction.atomic():
        spec = _locked(version.spec_id)
        if name in PROMOTED and spec.review_rules.approvals and (why := _not_promoted(user, version, name)):
            raise Refused("web.tag_rule", f"{name} does not move to version {version.number}: {why}.",
                          "The page Reviews of the documentation has the rules.", 409)  # fmt: skip
        old = Tag.objects.filter(spec=version.spec, name=name).select_related("version").first()
        tag, _ = Tag.objects.update_or_create(spec=version.spec, name=name, defaults={"version": version})
        record(
            user, "spec.tagged", f"{version} as {name}", version.spec.team,
            before=old.version.content_hash if old else "", after=version.content_hash,
        )  # fmt: skip
        tag_moved.send(Tag, user=user, tag=tag, old=old.version if old else None)
    return tag


def _not_promoted(user: Any, version: SpecVersion, name: str) -> str:
    """Why a tag of PROMOTED may not move to a version; empty where it may."""
    if version.facts.get("errors"):
        return "it has errors"
    if not version.provenance.get("patch"):
        return "no review made it"
    if user.get_username() in (version.provenance["proposer"], *version.provenance.get("authors", ())):
        return "who wrote it does not promote it"
    before = PROMOTED[name]
    if before and not version.tags.filter(name=before).exists():
        return f"it is not tagged {before}"
    return ""


def remove_tag(user: Any, tag: Tag) -> None:
    """Remove a tag of a version; nothing where it is gone. Raises: PermissionDenied, Http404 where the person
    may not."""
    needed = "spec.protect" if tag.name in PROMOTED and tag.spec.review_rules.approvals else "spec.tag"
    access.require(user, needed, tag)
    with transaction.atomic():
        _locked(tag.spec_id)
        tag = Tag.objects.select_related("version", "spec__team").filter(pk=tag.pk).first()
        if tag is None:
            return
        record(
            user,
            "spec.untagged",
            f"{tag.version} as {tag.name}",
            tag.spec.team,
            before=tag.version.content_hash,
        )
        tag_moved.send(Tag, user=user, tag=tag, old=tag.version, gone=True)
        tag.delete()


def archive(user: Any, spec: Spec, archived: bool = True) -> None:
    """Hide a spec from lists, or show it again; its versions stay."""
    access.require(user, "spec.archive", spec)
    with transaction.atomic():
        Spec.objects.filter(pk=spec.pk).update(archived_at=timezone.now() if archived else None)
        record(user, "spec.archived" if archived else "spec.unarchived", spec.slug, spec.team)


def _locked(key: int) -> Spec:
    """The spec, which nobody else saves until the transaction ends. The head is read afterwards, by itself:
    PostgreSQL would join the row it waited for with a head as old as the statement, and find nothing."""
    return Spec.objects.select_for_update().get(pk=key)


def _from(origin: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"origin": dict(origin)} if origin else {}


def _append(
    spec: Spec,
    user: Any,
    text: str,
    facts: Mapping[str, Any],
    message: str,
    restored_from: SpecVersion | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> SpecVersion:
    version = SpecVersion.objects.create(
        spec=spec,
        number=spec.head.number + 1 if spec.head else 1,
        text=text,
        content_hash=digest(text),
        message=one_line(message, 500),
        author=user,
        restored_from=restored_from,
        facts=dict(facts),
        provenance=dict(provenance or {}),
    )
    spec.head = version
    spec.save(update_fields=["head"])
    saved.send(SpecVersion, version=version)
    return version


def _facts(team: Team, slug: str, text: str) -> dict[str, Any]:
    """What is known of a text; found before the transaction that saves it, since it can take seconds."""
    return facts_of(TeamFiles(team, slug).whole(text), law_of(team))


def _free_slug(team: Team, slug: str) -> str:
    """The slug, or the first of slug-2, slug-3, ... that no spec of the team has."""
    taken = (
        set(Spec.objects.filter(team=team, slug__startswith=slug).values_list("slug", flat=True)) | RESERVED
    )
    numbers = (f"{slug[:55]}-{number}" for number in range(2, len(taken) + 3))
    return slug if slug not in taken else next(name for name in numbers if name not in taken)
