"""Every write to patches: propose, revise, drop an edit, judge, comment, bring up to date, merge, revert.

Rights are asked here. A merge makes a version that is byte-equal to the newest revision, once: the rows of
patch and spec are locked, and a form names the revision that its page showed. Refused changes nothing.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from spak.lang.diff import compare
from spak.patch import PatchRefused, apply
from spakweb import access
from spakweb.audit.actions import record
from spakweb.errors import Refused
from spakweb.reviews.models import Comment, Patch, Revision, Verdict
from spakweb.specs.actions import save_version
from spakweb.specs.beside import Beside
from spakweb.specs.facts import catalog
from spakweb.specs.merge import merge as merged_text
from spakweb.specs.merge import opcodes
from spakweb.specs.models import Draft, Spec, SpecVersion
from spakweb.teams.models import Role
from spakweb.text import clean, digest, one_line

REVIEW_CHARS, COMMENT_CHARS, VERDICT_CHARS = 20_000, 4_000, 2_000


def protect(user: Any, spec: Spec, approvals: int) -> None:
    """So many people must approve what changes the spec; 0: who may edit saves. Raises: Refused."""
    access.demand(user, "spec.protect", spec)
    if not 0 <= approvals <= 9:
        raise Refused("web.approvals", "Between 0 and 9 people can be asked to approve.", "Type a number.")
    with transaction.atomic():
        Spec.objects.filter(pk=spec.pk).update(approvals=approvals)
        record(user, "spec.protected", f"{spec.slug}: {approvals} approvals", spec.team)


def propose(
    user: Any,
    spec: Spec,
    text: str,
    base_version: int,
    title: str,
    rationale: str = "",
    reverts: Patch | None = None,
    *,
    typed: bool = False,
) -> Patch:
    """An open patch with its first revision. `text` is a whole spec or a unified diff against the base.

    The person's draft is dropped when it is the `typed` text that is proposed; any other draft stays.

    Raises: Refused `web.patch_base`, `web.patch_text`, `web.patch_empty`, `web.archived`, as for a version.
    """
    access.demand(user, "spec.propose", spec)
    base = spec.versions.filter(number=base_version).first()
    if base is None:
        raise Refused("web.patch_base", "The version that it was made from is not there.", "Reload.", 409)
    title = one_line(title, 120) or "A change"
    with transaction.atomic():
        spec = Spec.objects.select_for_update().get(pk=spec.pk)
        if spec.archived_at:
            raise Refused("web.archived", f"{spec.name} is archived.", "Take it out of the archive.", 409)
        number = (spec.patches.values_list("number", flat=True).order_by("-number").first() or 0) + 1
        rationale = clean(rationale, REVIEW_CHARS) if rationale else ""
        made = Patch.objects.create(
            spec=spec, number=number, title=title, rationale=rationale, author=user, reverts=reverts
        )
        first = _revise(made, user, base, patched(base.text, text), "First revision")
        if typed:
            Draft.objects.filter(spec=spec, user=user, text=first.text).delete()
        record(user, "patch.proposed", str(made), spec.team, after=made.latest.content_hash)
    return made


def patched(base: str, text: str) -> str:
    """The text that a unified diff makes of the base; any other text is itself."""
    if not text.lstrip().startswith(("--- ", "diff --git ")):
        return clean(text, settings.UPLOAD_BYTES)
    found = apply(clean(text, settings.UPLOAD_BYTES), lambda path: base.encode())
    if isinstance(found, PatchRefused):
        raise Refused("web.patch_text", f"The diff does not fit: {found.message}.", "Make it from the base.")
    if len(found) != 1 or found[0].after is None:
        raise Refused("web.patch_text", "The diff has to change one file.", "Take the others out of it.")
    return clean(found[0].after, settings.UPLOAD_BYTES)


def revise(user: Any, patch: Patch, seen: int, text: str, why: str = "") -> Revision:
    """A new revision on the same base. Raises: Refused, also `web.patch_moved`, `web.patch_closed`."""
    access.demand(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        made = _revise(patch, user, latest.base, clean(text, settings.UPLOAD_BYTES), why)
        record(user, "patch.revised", f"{patch} r{made.number}", patch.spec.team, after=made.content_hash)
    return made


def edits(revision: Revision) -> list[tuple[str, str]]:
    """The stretches of lines that it changes, before and after, in order."""
    old, new = (text.splitlines(keepends=True) for text in (revision.base.text, revision.text))
    found = [one for one in opcodes(old, new) if one[0] != "equal"]
    return [("".join(old[a:b]), "".join(new[c:d])) for _, a, b, c, d in found]


def drop_edit(user: Any, patch: Patch, seen: int, place: int, why: str = "") -> Revision:
    """A new revision without the edit at this place of `edits`. Raises: Refused `web.patch_edit`."""
    access.demand(user, "spec.propose", patch)
    latest = patch.latest
    old, new = (text.splitlines(keepends=True) for text in (latest.base.text, latest.text))
    found = [one for one in opcodes(old, new) if one[0] != "equal"]
    if not 0 <= place < len(found):
        raise Refused("web.patch_edit", "The revision has no such edit.", "Reload the page.", 409)
    _, a, b, c, d = found[place]
    text = "".join([*new[:c], *old[a:b], *new[d:]])
    return revise(user, patch, seen, text, why or f"Without edit {place + 1}")


def judge(user: Any, patch: Patch, seen: int, approves: bool, text: str = "") -> Verdict:
    """Approve the newest revision, or ask for changes. The authors of its texts do not approve them."""
    access.demand(user, "spec.review", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        if approves and user.pk in authors(patch):
            raise PermissionDenied("Who wrote a revision of a patch does not approve it.")
        made = Verdict.objects.create(
            revision=latest, user=user, approves=approves, text=one_line(text, VERDICT_CHARS)
        )
        action = "patch.approved" if approves else "patch.refused"
        record(user, action, f"{patch} r{latest.number}", patch.spec.team, after=latest.content_hash)
    return made


def authors(patch: Patch) -> set[int]:
    return {patch.author_id, *patch.revisions.values_list("author", flat=True)}


def comment(user: Any, patch: Patch, text: str, path: str = "") -> Comment:
    """Raises: Refused `web.comment`."""
    access.demand(user, "spec.propose", patch)
    text = clean(text, COMMENT_CHARS * 4).strip()
    if not text or len(text) > COMMENT_CHARS:
        raise Refused(
            "web.comment", f"A comment has 1 to {COMMENT_CHARS} characters.", "Write it shorter.", 413
        )
    return Comment.objects.create(
        patch=patch, revision=patch.latest, path=one_line(path, 200), text=text, author=user
    )


def resolve(user: Any, patch: Patch, key: int, resolved: bool = True) -> None:
    access.demand(user, "spec.propose", patch)
    patch.comments.filter(pk=key).update(resolved_at=timezone.now() if resolved else None)


def standing_approvals(patch: Patch) -> list[Verdict]:
    """The approvals that count for the newest revision: of each person the last verdict, where the text that
    they judged and the newest differ in formatting at most, who wrote no revision and may still review."""
    latest, wrote, last = patch.latest, authors(patch), {}
    rows = Verdict.objects.filter(revision__patch=patch).select_related("revision__base", "user")
    for verdict in rows.order_by("pk"):
        last[verdict.user_id] = verdict
    return [
        one
        for one in last.values()
        if one.approves
        and one.user_id not in wrote
        and access.can(one.user, "spec.review", patch)
        and one.revision.base_id == latest.base_id
        and _same_meaning(patch.spec, one.revision.text, latest.text)
    ]


def missing(patch: Patch) -> list[str]:
    """What a merge still waits for, in words; empty when it may be merged."""
    approvals, latest, found = standing_approvals(patch), patch.latest, []
    if len(approvals) < (needed := max(1, patch.spec.approvals)):
        found.append(f"{needed - len(approvals)} more to approve it")
    admins = [one for one in approvals if access.role_in(one.user, patch.spec.team) == Role.ADMIN]
    if not admins and widens(patch.spec, latest):
        found.append("an admin to approve it, since it widens what the spec may do")
    last = {one.user_id: one for one in Verdict.objects.filter(revision=latest).order_by("pk")}
    if any(not one.approves for one in last.values()):
        found.append("who asked for changes to approve it, or a new revision")
    if latest.base_id != patch.spec.head_id:
        found.append("to be brought up to date: the spec has a newer version")
    return found


def widens(spec: Spec, revision: Revision) -> bool:
    """Whether the spec may do more with it, or it cannot be told."""
    beside = Beside.of(spec)
    found = compare(beside.whole(revision.base.text).parsed, beside.whole(revision.text).parsed, catalog())
    return any(one.widens is not False for one in found.capabilities) or any(
        one.flag == "widens" for one in found.flags
    )


def update(user: Any, patch: Patch, seen: int) -> Revision:
    """A revision on the spec's newest version, with both changes. Raises: Refused `web.patch_conflict`."""
    access.demand(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        head = patch.spec.head
        both = merged_text(latest.base.text, latest.text, head.text)
        if not both.clean:
            raise _conflict(both.conflicts)
        made = _revise(patch, user, head, both.text, f"Brought up to version {head.number}")
        record(user, "patch.revised", f"{patch} r{made.number}", patch.spec.team, after=made.content_hash)
    return made


def merge(user: Any, patch: Patch, seen: int) -> SpecVersion:
    """The version that has exactly the reviewed text.

    Raises: Refused `web.patch_closed`, `web.patch_moved`, `web.patch_waits`, `web.archived`.
    """
    access.demand(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        Spec.objects.select_for_update().get(pk=patch.spec_id)
        patch.spec.refresh_from_db()
        if waits := missing(patch):
            raise Refused("web.patch_waits", f"The patch still needs {waits[0]}.", "Ask for it.", 409)
        message = f"Patch {patch.number}, revision {latest.number}: {patch.title}"
        version = save_version(
            user, patch.spec, latest.text, latest.base.number, message, typed=False, reviewed=True
        )
        assert isinstance(version, SpecVersion)  # the head is the base while its row is locked
        patch.state, patch.merged = Patch.State.MERGED, version
        patch.save(update_fields=["state", "merged"])
        names = ", ".join(sorted(one.user.get_username() for one in standing_approvals(patch)))
        what = f"{patch} r{latest.number}, approved by {names}"
        record(
            user, "patch.merged", what, patch.spec.team,
            before=latest.base.content_hash, after=version.content_hash,
        )  # fmt: skip
    return version


def close(user: Any, patch: Patch, seen: int) -> None:
    access.demand(user, "spec.propose", patch)
    with transaction.atomic():
        patch, _ = _open(patch, seen)
        Patch.objects.filter(pk=patch.pk).update(state=Patch.State.CLOSED)
        record(user, "patch.closed", str(patch), patch.spec.team)


def revert(user: Any, patch: Patch) -> Patch:
    """A patch that takes back what a merged one changed.

    Raises: Refused `web.patch_closed`, `web.patch_conflict`.
    """
    access.demand(user, "spec.propose", patch)
    if patch.merged is None:
        raise Refused("web.patch_closed", "It was not merged.", "Close it instead.", 409)
    latest, head = patch.latest, patch.spec.head
    both = merged_text(patch.merged.text, latest.base.text, head.text)
    if not both.clean:
        raise _conflict(both.conflicts)
    title = f"Revert patch {patch.number}: {patch.title}"
    return propose(user, patch.spec, both.text, head.number, title, reverts=patch)


def _conflict(count: int) -> Refused:
    words = f"Both changed the same lines, in {count} place{'' if count == 1 else 's'}."
    return Refused("web.patch_conflict", words, "Send a revision made from the newest version.", 409)


def _open(patch: Patch, seen: int) -> tuple[Patch, Revision]:
    """The patch, locked, and its newest revision, which is the one that the person saw."""
    Patch.objects.select_for_update().get(pk=patch.pk)
    patch = Patch.objects.select_related("spec__team", "spec__head").get(pk=patch.pk)
    if patch.state != Patch.State.OPEN:
        raise Refused("web.patch_closed", f"Patch {patch.number} is {patch.state}.", "Reload.", 409)
    latest = patch.latest
    if latest.number != seen:
        words = f"Revision {latest.number} came in between."
        raise Refused("web.patch_moved", words, "Reload the page and look at it.", 409)
    return patch, latest


def _revise(patch: Patch, user: Any, base: SpecVersion, text: str, why: str) -> Revision:
    if digest(text) == base.content_hash:
        raise Refused("web.patch_empty", "It changes nothing.", "Change the text, or close the patch.", 409)
    last = patch.revisions.order_by("-number").first()
    number = last.number + 1 if last else 1
    return Revision.objects.create(
        patch=patch, number=number, base=base, text=text, content_hash=digest(text), author=user,
        why=one_line(why, 500),
    )  # fmt: skip


def _same_meaning(spec: Spec, one: str, two: str) -> bool:
    if one == two:
        return True
    beside = Beside.of(spec)
    found = compare(beside.whole(one).parsed, beside.whole(two).parsed, catalog())
    return found.formatting_only
