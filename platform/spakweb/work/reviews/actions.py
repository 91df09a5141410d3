"""Every write to patches: propose, revise, drop an edit, judge, bring up to date, queue, merge, revert.

Rights are asked here. A merge makes a version that is byte-equal to the newest revision, once: the rows of
patch and spec are locked, and a form names the revision that its page showed. An action that is refused
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction

from spak import canon
from spak.merge import Opcode
from spak.patch import PatchRefused, apply
from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.text import clean, digest, one_line
from spakweb.store.reviews.models import Patch, Queued, Revision, TakenBack, Verdict
from spakweb.store.specs.models import Draft, Spec, SpecVersion
from spakweb.work.reviews import by_task, checks, history, merge_queue, notices, rules
from spakweb.work.reviews.parts import digest_of, loosened_by, stretches
from spakweb.work.reviews.reading import read
from spakweb.work.specs.actions import draft_of, save_version

REVIEW_CHARS, VERDICT_CHARS = 20_000, 2_000


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
    campaign: str = "",
    origin: Mapping[str, Any] | None = None,
    began_from: Patch | None = None,
) -> Patch:
    """An open patch with its first revision. `text` is a whole spec or a unified diff against the base. Of a
    text from a repository `origin` says where it is from. Who wrote the patch that it `began_from` is
    an author too.

    The person's draft is dropped when it is the `typed` text that is proposed; any other draft stays.

    Raises: Refused `web.patch_base`, `web.patch_text`, `web.patch_empty`, `web.archived`, as for a version.
    """
    access.require(user, "spec.propose", spec)
    base = spec.versions.filter(number=base_version).first()
    if base is None:
        raise Refused("web.patch_base", "The version that it was made from is not there.", "Reload.", 409)
    title = one_line(title, 120) or "A change"
    with transaction.atomic():
        spec = Spec.objects.select_for_update().get(pk=spec.pk)
        if spec.archived_at:
            raise _archived(spec)
        number = (spec.patches.values_list("number", flat=True).order_by("-number").first() or 0) + 1
        rationale = _rationale(rationale)
        made = Patch.objects.create(
            spec=spec, number=number, title=title, rationale=rationale, author=user, reverts=reverts,
            campaign=one_line(campaign, 120), origin=dict(origin or {}),
        )  # fmt: skip
        also_by = rules.authors(began_from) if began_from is not None else ()
        whole = patched(base.text, text)
        first = _revise(made, user, base, whole, "First revision", also_by=also_by)
        if typed:
            Draft.objects.filter(spec=spec, user=user, text=first.text).delete()
        record(user, "patch.proposed", str(made), spec.team, after=first.content_hash)
        notices.proposed(made, user)
    return made


def _rationale(text: str) -> str:
    """Raises: Refused `web.comment`, and `web.text` for what is no text."""
    if len(text) > REVIEW_CHARS:
        words = f"The reason has more than {REVIEW_CHARS:,} characters."
        raise Refused("web.comment", words, "Write it shorter.", 413)
    return clean(text, REVIEW_CHARS * 4) if text else ""


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


def revise(
    user: Any,
    patch: Patch,
    seen: int,
    text: str,
    why: str = "",
    origin: Mapping[str, Any] | None = None,
    also_by: Iterable[int] = (),
) -> Revision:
    """A new revision on the same base; the person's draft of that text goes with it. With `origin` the text
    is from a repository, as the patch is from now on; `also_by` are others who wrote a part of it. Raises:
    Refused, also `web.patch_moved`, `web.patch_closed`."""
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        made = _revise(patch, user, latest.base, patched(latest.base.text, text), why, also_by=also_by)
        if origin:
            Patch.objects.filter(pk=patch.pk).update(origin=dict(origin))
        draft_of(user, patch.spec, patch.number).filter(text=made.text).delete()
        record(user, "patch.revised", f"{patch} r{made.number}", patch.spec.team, after=made.content_hash)
        notices.revised(made, user)
    return made


def joined(patch: Patch, seen: int, text: str) -> str | None:
    """The text of a person who began with revision `seen`, with what the newest revision changed since; None
    where both changed the same, or there is no such revision."""
    began = patch.revisions.filter(number=seen).first()
    if began is None:
        return None
    both = by_task.merge(began.text, text, patch.latest.text)
    return both.decided({}) if both.clean else None


def drop_edit(user: Any, patch: Patch, seen: int, place: int, why: str = "") -> Revision:
    """A new revision without the edit at this place of `edits`. Raises: Refused `web.patch_edit`."""
    access.require(user, "spec.propose", patch)
    old, new, (_, a, b, c, d) = _edit(patch, seen, place)
    text = "".join([*new[:c], *old[a:b], *new[d:]])
    kept = f"Without edit {place + 1}"
    return revise(user, patch, seen, text, f"{kept}: {why}" if why else kept)


def keep_edit(user: Any, patch: Patch, seen: int, place: int, why: str = "") -> Revision:
    """A new revision with this edit alone. Raises: Refused `web.patch_edit`."""
    access.require(user, "spec.propose", patch)
    old, new, (_, a, b, c, d) = _edit(patch, seen, place)
    text = "".join([*old[:a], *new[c:d], *old[b:]])
    kept = f"Only edit {place + 1}"
    return revise(user, patch, seen, text, f"{kept}: {why}" if why else kept)


def _edit(patch: Patch, seen: int, place: int) -> tuple[list[str], list[str], Opcode]:
    """The lines of base and revision `seen`, and the edit at a place. Raises: Refused `web.patch_edit`, and
    `web.patch_moved` where there is no such revision."""
    revision = patch.revisions.select_related("base").filter(number=seen).first()
    if revision is None:
        raise _moved(patch.latest, seen)
    old, new, found = stretches(revision.base.text, revision.text)
    if not 0 <= place < len(found):
        raise Refused("web.patch_edit", "The revision has no such edit.", "Reload the page.", 409)
    return old, new, found[place]


def repeat_check(user: Any, patch: Patch, seen: int) -> None:
    """Run the checks of the newest revision again: their evidence is stale, or was lost."""
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        checks.begin(latest)
        record(user, "patch.checked", f"{patch} r{latest.number}", patch.spec.team)


def judge(
    user: Any, patch: Patch, seen: int, approves: bool, text: str = "", ticked: str | None = None
) -> Verdict:
    """Approve the newest revision, or ask for changes. The authors of its texts do not approve them. `ticked`
    is what the form says of changes that loosen the spec: the digest of those that the person saw.

    Raises: Refused `web.patch_closed`, `web.patch_moved`, `web.patch_ticked`.
    """
    access.require(user, "spec.review", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        if approves and user.pk in rules.authors(patch):
            raise PermissionDenied("Who wrote a revision of a patch does not approve it.")
        loosened = digest_of(loosened_by(read(patch.spec, latest.base.text, latest.text)))
        if approves and ticked is not None and ticked != loosened:
            words = "What the patch loosens was not ticked."
            raise Refused("web.patch_ticked", words, "Look at those changes, and tick that you did.", 409)
        made = Verdict.objects.create(
            revision=latest, user=user, approves=approves, text=one_line(text, VERDICT_CHARS)
        )
        action = "patch.approved" if approves else "patch.refused"
        record(user, action, f"{patch} r{latest.number}", patch.spec.team, after=latest.content_hash)
        notices.judged(made)
    return made


def take_back(user: Any, patch: Patch, seen: int) -> None:
    """Undo the person's last verdict on an open patch; nothing where there is none.

    Raises: Refused `web.patch_closed`, `web.patch_moved`.
    """
    access.require(user, "spec.review", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        last = Verdict.standing().filter(revision__patch=patch, user=user).last()
        if last is not None:
            TakenBack.objects.create(verdict=last)
            record(user, "patch.taken_back", f"{patch} r{latest.number}", patch.spec.team)


def update(user: Any, patch: Patch, seen: int) -> Revision:
    """A revision on the spec's newest version, with both changes; the newest one where it is on that already.

    Raises: Refused `web.patch_conflict`.
    """
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        head = patch.spec.head
        if latest.base_id == head.pk:
            return latest
        both = by_task.merge(latest.base.text, latest.text, head.text)
        if not both.clean:
            raise _conflict(len(both.conflicts))
        made = rebase_held(user, patch, latest, head, both.decided({}))
        merge_queue.leave(patch, Queued.State.LEFT, f"{user} brought it up to version {head.number}")
    return made


def rebase_held(user: Any, patch: Patch, latest: Revision, head: SpecVersion, text: str) -> Revision:
    """The text of a merge without conflicts as a revision on the newest version, which no person wrote; the
    caller holds the rows of patch and spec. Raises: Refused `web.patch_empty`."""
    made = _revise(patch, user, head, text, f"Brought up to version {head.number}", rebases=latest)
    record(user, "patch.revised", f"{patch} r{made.number}", patch.spec.team, after=made.content_hash)
    notices.revised(made, user)
    return made


def conflicts(patch: Patch) -> by_task.Merged:
    """The newest revision and the spec's newest version, both against the base of the revision."""
    latest = patch.latest
    return by_task.merge(latest.base.text, latest.text, patch.spec.head.text)


def decide(user: Any, patch: Patch, seen: int, head: int, choices: Mapping[str, str]) -> Revision:
    """A revision on the spec's newest version, with the chosen text of each part in conflict.

    Raises: Refused `web.patch_moved` when `head` is the newest version no more, `web.patch_conflict`.
    """
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        patch, _ = _open(patch, seen)
        newest = patch.spec.head
        if newest.number != head:
            words = f"Version {newest.number} came in between."
            raise Refused("web.patch_moved", words, "Reload the page and look at it.", 409)
        both = conflicts(patch)
        if any(one.part not in choices for one in both.conflicts):
            raise _conflict(len(both.conflicts))
        text = clean(both.decided(choices), settings.UPLOAD_BYTES)
        made = _revise(patch, user, newest, text, f"Conflicts with version {newest.number} resolved")
        record(user, "patch.revised", f"{patch} r{made.number}", patch.spec.team, after=made.content_hash)
        notices.revised(made, user)
    return made


def fork(user: Any, patch: Patch, text: str, title: str = "") -> Patch:
    """A patch of one's own that begins with the newest revision of another, or with a text made of it."""
    latest = patch.latest
    title = title or f"{patch.title} (from patch {patch.number})"
    return propose(
        user, patch.spec, text or latest.text, latest.base.number, title, patch.rationale, began_from=patch
    )


def merge(user: Any, patch: Patch, seen: int) -> SpecVersion:
    """The version that has exactly the reviewed text.

    Raises: Refused `web.patch_closed`, `web.patch_moved`, `web.patch_waits`, `web.patch_queue`,
    `web.archived`.
    """
    access.require(user, "spec.merge", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        _hold(patch)
        if patch.spec.review_rules.merge_queue:
            words = f"Patches of {patch.spec.name} are merged by the queue."
            raise Refused("web.patch_queue", words, "Queue the patch.", 409)
        return merge_held(user, patch, latest)


def merge_held(user: Any, patch: Patch, latest: Revision, *, by_queue: bool = False) -> SpecVersion:
    """The same, where the caller holds the rows of patch and spec. Raises: Refused."""
    if waits := rules.missing(patch):
        raise Refused("web.patch_waits", f"The patch still needs {waits[0]}.", "Ask for it.", 409)
    message = f"Patch {patch.number}, revision {latest.number}: {patch.title}"
    approvals = rules.standing_approvals(patch)
    body = provenance(user, patch, latest, approvals, by_queue)
    written = history.append(patch.spec, "merge", body)
    kept = {**body, "record": written.number, "record_hash": written.hash}
    version = save_version(
        user, patch.spec, latest.text, latest.base.number, message,
        typed=False, reviewed=kept, author=patch.author,
    )  # fmt: skip
    assert isinstance(version, SpecVersion)  # the head is the base while its row is locked
    patch.state, patch.merged = Patch.State.MERGED, version
    patch.save(update_fields=["state", "merged"])
    merge_queue.leave(patch, Queued.State.MERGED, f"Merged as version {version.number}")
    names = ", ".join(sorted(one.user.get_username() for one in approvals))
    what = f"{patch} r{latest.number}, approved by {names}"
    record(
        user, "patch.merged", what, patch.spec.team,
        before=latest.base.content_hash, after=version.content_hash,
    )  # fmt: skip
    notices.merged(patch, None if by_queue else user)
    return version


def queue(user: Any, patch: Patch, seen: int) -> Queued:
    """Its place in the merge queue; the one that it has already. What people decide has to be there; checks
    run again where the queue brings the patch up to date.

    Raises: Refused `web.patch_closed`, `web.patch_moved`, `web.patch_waits`, `web.patch_queue`,
    `web.archived`.
    """
    access.require(user, "spec.merge", patch)
    with transaction.atomic():
        patch, latest = _open(patch, seen)
        _hold(patch)
        if patch.spec.archived_at:
            raise _archived(patch.spec)
        if not patch.spec.review_rules.merge_queue:
            words = f"{patch.spec.name} has no merge queue."
            raise Refused("web.patch_queue", words, "Merge the patch.", 409)
        if waits := rules.before_queue(patch):
            raise Refused("web.patch_waits", f"The patch still needs {waits[0]}.", "Ask for it.", 409)
        if (there := merge_queue.entry_of(patch)) is not None:
            return there
        made = Queued.objects.create(patch=patch, revision=latest, user=user)
        record(user, "patch.queued", f"{patch} r{latest.number}", patch.spec.team, after=latest.content_hash)
        merge_queue.ask(patch.spec)
    return made


def unqueue(user: Any, patch: Patch) -> None:
    """Take a patch out of the merge queue; idempotent."""
    access.require(user, "spec.merge", patch)
    with transaction.atomic():
        Patch.objects.select_for_update().get(pk=patch.pk)
        if merge_queue.leave(patch, Queued.State.LEFT, f"{user} took it out"):
            record(user, "patch.unqueued", str(patch), patch.spec.team)


def _hold(patch: Patch) -> None:
    """Lock the spec until the transaction ends, and read `patch.spec` again."""
    Spec.objects.select_for_update().get(pk=patch.spec_id)
    patch.spec.refresh_from_db()


def _archived(spec: Spec) -> Refused:
    return Refused("web.archived", f"{spec.name} is archived.", "Take it out of the archive.", 409)


def provenance(
    user: Any, patch: Patch, revision: Revision, approvals: list[Verdict], by_queue: bool = False
) -> dict[str, Any]:
    """What a version keeps of the patch that it was merged from, and the history signs."""
    return {
        "patch": patch.number,
        "revision": revision.number,
        "title": patch.title,
        "rationale": patch.rationale,
        "proposer": patch.author.get_username(),
        "authors": rules.author_names(patch),
        "campaign": patch.campaign,
        "reverts": patch.reverts.number if patch.reverts else None,
        "base": revision.base.number,
        "before": revision.base.content_hash,
        "after": revision.content_hash,
        "approved": [
            {
                "by": one.user.get_username(),
                "role": str(access.role_in(one.user, patch.spec.team)),
                "named_roles": rules.named_roles(one.user, patch.spec),
                "revision": one.revision.number,
                "text": one.revision.content_hash,
                "verdict": one.pk,
            }
            for one in approvals
        ],
        "checks": [
            {
                "name": one.name,
                "state": one.state,
                "words": one.words,
                "law": one.law,
                "result": canon.content_hash(one.result),
            }
            for one in revision.checks.all()
        ],
        "merged_by": user.get_username(),
        "by_queue": by_queue,
        **({"origin": patch.origin} if patch.origin else {}),
    }


def close(user: Any, patch: Patch, seen: int) -> None:
    """Close a patch without merging it. Raises: Refused where it changed since the person saw it."""
    access.require(user, "spec.propose", patch)
    with transaction.atomic():
        patch, _ = _open(patch, seen)
        Patch.objects.filter(pk=patch.pk).update(state=Patch.State.CLOSED)
        merge_queue.leave(patch, Queued.State.LEFT, f"{user} closed it")
        record(user, "patch.closed", str(patch), patch.spec.team)


def revert(user: Any, patch: Patch) -> Patch:
    """A patch that takes back what a merged one changed: on the newest version, or, where that changed the
    same since, on the merged one, so that the page of conflicts can decide.

    Raises: Refused `web.patch_closed`, `web.patch_empty`.
    """
    access.require(user, "spec.propose", patch)
    if patch.merged is None:
        raise Refused("web.patch_closed", "It was not merged.", "Close it instead.", 409)
    merged, before, head = patch.merged, patch.latest.base.text, patch.spec.head
    both = by_task.merge(merged.text, before, head.text)
    text, base = (both.decided({}), head) if both.clean else (before, merged)
    title = f"Revert patch {patch.number}: {patch.title}"
    return propose(user, patch.spec, text, base.number, title, reverts=patch)


def _conflict(count: int) -> Refused:
    words = f"Both changed the same part, in {count} place{'' if count == 1 else 's'}."
    return Refused("web.patch_conflict", words, "Resolve it on the page of conflicts.", 409)


def _open(patch: Patch, seen: int) -> tuple[Patch, Revision]:
    """The patch, locked, and its newest revision, which is the one that the person saw."""
    Patch.objects.select_for_update().get(pk=patch.pk)
    patch = Patch.objects.select_related("spec__team", "spec__head").get(pk=patch.pk)
    if patch.state != Patch.State.OPEN:
        raise Refused("web.patch_closed", f"Patch {patch.number} is already {patch.state}.", "Reload.", 409)
    latest = patch.latest
    if latest.number != seen:
        raise _moved(latest, seen)
    return patch, latest


def _moved(latest: Revision, seen: int) -> Refused:
    words = f"Revision {latest.number} came in between."
    if not 0 < seen < latest.number:
        words = f"There is no revision {seen}; the newest is {latest.number}."
    return Refused("web.patch_moved", words, "Reload the page and look at it.", 409)


def _revise(
    patch: Patch,
    user: Any,
    base: SpecVersion,
    text: str,
    why: str,
    rebases: Revision | None = None,
    also_by: Iterable[int] = (),
) -> Revision:
    if digest(text) == base.content_hash:
        raise Refused("web.patch_empty", "It changes nothing.", "Change the text, or close the patch.", 409)
    last = patch.revisions.order_by("-number").first()
    number = last.number + 1 if last else 1
    made = Revision.objects.create(
        patch=patch, number=number, base=base, text=text, content_hash=digest(text), author=user,
        why=one_line(why, 500), rebases=rebases, also_by=sorted(set(also_by) - {user.pk}),
    )  # fmt: skip
    if rebases is None:
        merge_queue.leave(patch, Queued.State.LEFT, f"{user} made revision {number}")
    checks.begin(made)
    return made
