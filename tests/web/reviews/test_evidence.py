"""What a patch is judged by, what its version keeps of it, and what a person says about its lines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from bench.scripted import exited, ledger
from run_rows_kit import begun, rows
from spak import canon
from spak.outer import spec_history
from spakweb.errors import Refused
from spakweb.reviews import actions, blame, checks, history, jobs, page, rules, talk
from spakweb.reviews.models import Check, HistoryRecord, Patch
from spakweb.reviews.protection import protect
from spakweb.runs.models import Run
from spakweb.specs.actions import archive, create_spec, save_version
from spakweb.specs.models import SpecVersion

ONE, TWO = 'step one: tool.list_files { path: "." }', 'step two: tool.list_files { path: "." }'
OTHER, LAST = ONE.replace('"."', '"tests"'), TWO.replace('"."', '"docs"')


HOUSE = """\
TASK shared {
  step two: tool.list_files { path: "." }
}
"""
IMPORTS = """\
AGENT Imports LEVEL 1 {
  IMPORT "house.spak"
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> shared }
  }
}
"""


def refused(code: str) -> Any:
    return pytest.raises(Refused, check=lambda why: why.code == code)


@pytest.fixture
def patch(cast: Any) -> Patch:
    text = cast.spec.head.text.replace(ONE, OTHER).replace(TWO, LAST)
    return actions.propose(cast["bob"], cast.spec, text, 1, "Look elsewhere", "It is faster.")


def ran(cast: Any, key: str, first: int = 0) -> None:
    """A recorded run of the spec that succeeded; with `first` the records before it are gone."""
    records = ledger(cast.spec.head.text, lambda effect, count: exited(0, "a"))[first:]
    run = Run.objects.create(
        team=cast.team,
        version=cast.spec.head,
        key=key,
        name="kit",
        state="succeeded",
        ended_at=timezone.now(),
    )
    Run.objects.filter(pk=run.pk).update(count=len(records), head=rows(run, records))


def checked(patch: Patch) -> dict[str, tuple[str, str]]:
    checks.check(patch.latest.pk)
    return {one.name: (one.state, one.words) for one in patch.latest.checks.all()}


# ---- checks


def test_a_text_with_errors_fails_and_holds_the_merge(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, required=["text", "none such"])
    patch.refresh_from_db()
    actions.judge(cast["rita"], patch, 1, True)
    assert "a check to end: the text is free of errors" in rules.missing(patch)
    assert checked(patch)["text"] == ("passed", "It has no errors.")
    assert rules.missing(patch) == []
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace("-> done", "-> nowhere"))
    assert checked(patch)["text"][0] == "failed"
    assert "a check to pass: the text is free of errors" in rules.missing(patch)
    body = cast.client("bob").get(reverse("spak-patch", args=[cast.team.slug, "small", 1]))
    assert "nowhere" in body.content.decode() and "it could not run" in body.content.decode()


def test_without_runs_there_is_nothing_to_judge(cast: Any, patch: Patch) -> None:
    found = checked(patch)
    assert found["actions"] == ("nothing", "No run of the spec has recorded an action yet.")
    assert found["replay"] == ("nothing", "No run of the spec can be replayed yet.")


def test_a_law_that_changed_makes_evidence_stale(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, required=["text"])
    actions.judge(cast["rita"], patch, 1, True)
    checked(patch)
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == []
    cast.team.rules = 'allowed_host("x.example").'
    cast.team.save(update_fields=["rules"])
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == ["a check to run again: the text is free of errors"]
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []


def test_a_file_that_is_imported_and_changed_makes_evidence_stale(cast: Any) -> None:
    """The patch is as it was, and no longer free of errors; a version of another spec changes nothing."""
    house = create_spec(cast["alice"], cast.team, "house", HOUSE)
    spec = create_spec(cast["alice"], cast.team, "imports", IMPORTS)
    protect(cast["alice"], spec, 1, required=["text"])
    patch = actions.propose(cast["bob"], spec, IMPORTS.replace('"."', '"tests"'), 1, "Elsewhere")
    assert checked(patch)["text"][0] == "passed"
    actions.judge(cast["alice"], Patch.objects.get(pk=patch.pk), 1, True)
    save_version(cast["alice"], cast.spec, cast.spec.head.text + "// more\n", 1)
    assert rules.missing(Patch.objects.get(pk=patch.pk)) == []
    save_version(cast["alice"], house, HOUSE.replace("TASK shared", "TASK other"), 1)
    patch = Patch.objects.get(pk=patch.pk)
    assert rules.missing(patch) == ["a check to run again: the text is free of errors"]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], patch, 1)
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    assert checked(patch)["text"][0] == "failed"


def test_a_check_of_an_older_revision_or_a_closed_patch_is_left(cast: Any, patch: Patch) -> None:
    first = patch.latest
    actions.revise(cast["bob"], patch, 1, patch.latest.text + "// more\n")
    checks.check(first.pk)
    assert set(first.checks.values_list("state", flat=True)) == {Check.State.QUEUED}
    actions.close(cast["bob"], patch, 2)
    assert set(checked(patch).values()) == {("queued", "")}
    checks.check(0)  # a revision that is not there


def test_a_merge_waits_until_it_is_known_what_it_permits(cast: Any, patch: Patch) -> None:
    """Else a patch that is merged before the check ends needs no admin. Where an admin approved it that is
    decided already."""
    ran(cast, "odd")
    wait = "a check to end, or an admin to approve it: recorded actions under both texts"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == [wait]
    with refused("web.patch_waits"):
        actions.merge(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []
    patch.latest.checks.update(law="another")
    assert rules.missing(patch) == [wait]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_recorded_actions_that_could_not_be_judged_need_an_admin(cast: Any) -> None:
    """What it newly permits is not known then, as before the check ends."""
    run = begun(cast.team, cast.spec.head, "odd", state="succeeded")
    type(run).objects.filter(pk=run.pk).update(count=5)
    text = cast.spec.head.text.replace("success ->", "success -> nowhere, timeout ->", 1)
    patch = actions.propose(cast["bob"], cast.spec, text, 1, "Elsewhere")
    assert checked(patch)["actions"][0] == "failed"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == ["an admin to approve it, since its recorded actions could not be judged"]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_the_first_runs_after_the_check_are_judged_before_the_merge(cast: Any, patch: Patch) -> None:
    """It found nothing to judge then; what the patch newly permits is known from these runs alone."""
    assert checked(patch)["actions"][0] == "nothing"
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == []
    ran(cast, "late")
    assert rules.missing(patch) == [
        "a check to end, or an admin to approve it: recorded actions under both texts"
    ]
    assert page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    checked(patch)
    assert rules.missing(patch) == []


def test_what_cannot_be_read_is_said_and_fails_no_worker(cast: Any, patch: Patch) -> None:
    """A run whose records are damaged is left out of the actions, and unusable for a replay. Where no other
    is there it is not known what is newly permitted."""
    ran(cast, "odd", first=1)
    found = checked(patch)
    assert found["actions"] == ("look", "No recorded action could be judged: 1 run left out.")
    assert found["replay"][0] == "nothing"
    assert (
        "1 run left out, such as odd: "
        in cast.client("rita").get(reverse("spak-patch", args=[cast.team.slug, "small", 1])).content.decode()
    )
    assert "an admin to approve it, since it may permit actions that were denied" in rules.missing(patch)
    result = patch.latest.checks.get(name="replay").result
    assert [one["run"] for one in result["unusable"]] == ["odd"]
    ran(cast, "whole")
    actions.repeat_check(cast["bob"], patch, 1)
    found = checked(patch)
    assert found["actions"][0] == "passed" and found["actions"][1].endswith(", 0 not judged. 1 run left out.")
    assert found["replay"][1].startswith("1 recorded run, ")


# ---- what a version keeps


def test_a_merge_is_signed_in_the_history_of_the_spec(cast: Any, patch: Patch) -> None:
    checked(patch)
    actions.judge(cast["rita"], patch, 1, True, "Good.")
    version = actions.merge(cast["bob"], patch, 1)
    kept, record = version.provenance, HistoryRecord.objects.get()
    assert (kept["patch"], kept["revision"], kept["proposer"], kept["merged_by"]) == (1, 1, "bob", "bob")
    assert [(one["by"], one["role"]) for one in kept["approved"]] == [("rita", "reviewer")]
    assert [one["name"] for one in kept["checks"]] == ["text", "actions", "replay"]
    assert (kept["record"], kept["record_hash"]) == (1, record.hash)
    told = history.read(record)
    assert told["body"]["after"] == canon.digest(version.text.encode()) and told["what"] == "merge"
    assert history.verify(cast.spec) == []
    for change, words in (
        ({"hash": "x"}, "record 1 is not the one that was written"),
        ({"signature": "AAAA"}, "record 1 is not signed with this key"),
        ({"line": b"{}"}, "record 1 is damaged"),
    ):
        forged = HistoryRecord(**{**_columns(record), **change})
        assert history.verify(_Spec([forged])) == [words]  # type: ignore[arg-type]


class _Spec:
    """A spec with a history that the database would not let in."""

    def __init__(self, records: list[HistoryRecord]) -> None:
        self.records = records

    @property
    def history(self) -> Any:
        return self

    def order_by(self, name: str) -> list[HistoryRecord]:
        return self.records


def _columns(record: HistoryRecord) -> dict[str, Any]:
    return {field.attname: getattr(record, field.attname) for field in record._meta.concrete_fields}


def test_blame_names_patch_and_person_of_each_line(cast: Any, patch: Patch) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    actions.merge(cast["bob"], patch, 1)
    cast.spec.refresh_from_db()
    rows = blame.context(cast.spec)["rows"]
    by = {row["line"].strip(): row["version"].number for row in rows}
    assert (by[OTHER], by["START -> look"]) == (2, 1)
    body = cast.client("vera").get(reverse("spak-spec-blame", args=[cast.team.slug, "small"]))
    text = body.content.decode()
    assert "approved by rita" in text and "verified" in text and "patch 1</a> Look elsewhere" in text
    by_field = {row["path"]: row["version"].number for row in blame.context(cast.spec)["fields"]}
    assert (by_field["tasks/look/steps/one/path"], by_field["START"]) == (2, 1)


def test_the_history_of_a_spec_is_verified_without_the_platform(cast: Any, patch: Patch) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    actions.merge(cast["bob"], patch, 1)
    address = reverse("spak-spec-history-file", args=[cast.team.slug, "small"])
    text = cast.client("vera").get(address).content.decode()
    found = spec_history.read(text)
    assert (found.wrong, found.records, len(found.versions)) == ((), 1, 2)
    assert found.versions[1].merge and found.versions[1].merge["approved"][0]["by"] == "rita"
    forged = spec_history.read(text.replace(r"\"docs\"", r"\"src\""))
    assert forged.wrong == ("version 2 has another text than the one that was merged",)


def test_lines_keep_their_origin_through_versions() -> None:
    assert blame.lines(["a\nb\n"]) == [0, 0]
    assert blame.lines(["a\nb\n", "a\nx\nb\n", "a\nx\nc\n"]) == [0, 1, 2]
    assert blame.lines(["", "a\n"]) == [1]


# ---- comments


def test_a_comment_on_a_line_stays_and_is_outdated_when_the_line_goes(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    made = talk.comment(cast["rita"], patch, "Why tests?", line=at, seen=1)
    answer = talk.comment(cast["bob"], patch, "They are small.", answers=made.pk)
    deeper = talk.comment(cast["rita"], patch, "Fine.", answers=answer.pk)
    assert deeper.parent == made and made.quote == f"    {OTHER}"
    actions.revise(cast["bob"], patch, 1, "// first\n" + patch.latest.text)
    thread = page.context(cast["rita"], patch)["threads"][0]
    assert (thread.outdated, thread.now) == (False, at + 1)
    assert [one.text for one in thread.replies] == ["They are small.", "Fine."]
    actions.revise(cast["bob"], patch, 2, patch.latest.text.replace('"tests"', '"src"'))
    thread = page.context(cast["rita"], patch)["threads"][0]
    assert thread.outdated and thread.text == "Why tests?"
    for place in ({"line": 99}, {"answers": 999}, {"seen": 9}):
        with refused("web.comment_place"):
            talk.comment(cast["rita"], patch, "x", **place)


def test_a_suggestion_becomes_an_edit(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    wanted = f"    {OTHER.replace('tests', 'src')}"
    made = talk.comment(cast["rita"], patch, "", line=at, seen=1, suggestion=wanted)
    revision = talk.take(cast["bob"], patch, 1, made.pk)
    assert wanted in revision.text and OTHER not in revision.text
    assert revision.why == f"Suggestion of rita, line {at}"
    made.refresh_from_db()
    assert made.resolved_at is not None
    with refused("web.suggestion"):
        talk.take(cast["bob"], patch, 2, made.pk)
    with refused("web.comment"):
        talk.comment(cast["rita"], patch, "x" * 1_000_000)


def test_a_suggestion_needs_a_line(cast: Any, patch: Patch) -> None:
    with refused("web.comment_place"):
        talk.comment(cast["rita"], patch, "So?", suggestion="// so")
    assert not patch.comments.exists()


def test_a_suggestion_is_applied_by_its_button(cast: Any, patch: Patch) -> None:
    at = patch.latest.text.split("\n").index(f"    {OTHER}") + 1
    args, bob, rita = [cast.team.slug, "small", 1], cast.client("bob"), cast.client("rita")
    do, where = reverse("spak-patch-do", args=args), reverse("spak-patch", args=args)
    assert f'href="?line={at}#comment"' in rita.get(where).content.decode(), "a comment on the edit"
    form = {"do": "comment", "revision": "1", "line": str(at), "text": "Better:", "suggestion": "    // gone"}
    assert rita.post(do, form).status_code == 302
    body = bob.get(where).content.decode()
    assert "Apply suggestion" in body and "    // gone" in body
    key = str(patch.comments.get().pk)
    assert bob.post(do, {"do": "take", "revision": "1", "comment": key}).status_code == 302
    assert patch.latest.text.split("\n")[at - 1] == "    // gone" and patch.latest.number == 2
    assert bob.post(do, {"do": "take", "revision": "2", "comment": key}).status_code == 409


def test_a_comment_on_a_step_stays_with_its_task_until_the_step_is_as_it_was(cast: Any, patch: Patch) -> None:
    made = talk.comment(cast["rita"], patch, "Why tests?", "tasks/look/steps/one/path")
    by_part = {one.name: one.comments for one in page.context(cast["rita"], patch)["parts"]}
    assert by_part["tasks/look"] == [made] and by_part["tasks/done"] == []
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace('"docs"', '"src"'))
    assert not page.context(cast["rita"], patch)["threads"][0].outdated
    actions.revise(cast["bob"], patch, 2, patch.latest.text.replace(OTHER, ONE))
    assert page.context(cast["rita"], patch)["threads"][0].outdated


def test_viewed_falls_when_that_part_changes_and_no_other(cast: Any, patch: Patch) -> None:
    def seen() -> dict[str, bool]:
        return {one.name: one.viewed for one in page.context(cast["rita"], patch)["parts"]}

    for part in page.context(cast["rita"], patch)["parts"]:
        talk.view(cast["rita"], patch, part.name, part.digest)
    assert seen() == {"tasks/look": True, "tasks/done": True}
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace('"docs"', '"src"'))
    assert seen() == {"tasks/look": True, "tasks/done": False}
    talk.view(cast["rita"], patch, "tasks/look", "", viewed=False)
    assert seen() == {"tasks/look": False, "tasks/done": False}


# ---- conflicts, forks, archived specs, mail


def test_conflicts_are_decided_by_task(cast: Any, patch: Patch) -> None:
    theirs = cast.spec.head.text.replace(TWO, TWO.replace('"."', '"src"'))
    save_version(cast["alice"], cast.spec, theirs, 1)
    args, bob = [cast.team.slug, "small", 1], cast.client("bob")
    do = reverse("spak-patch-do", args=args)
    answer = bob.post(do, {"do": "update", "revision": "1"})
    assert answer["Location"] == reverse("spak-patch-conflicts", args=args)
    body = bob.get(answer["Location"]).content.decode()
    assert "1 conflict of patch" in body and "Task <code>done</code>" in body
    form = {"do": "decide", "revision": "1", "head": "2", "part-0": "done", "side-0": "theirs"}
    assert bob.post(do, {**form, "side-0": ""}).status_code == 409
    assert bob.post(do, {**form, "head": "1"}).status_code == 409
    assert patch.revisions.count() == 1
    assert bob.post(do, form).status_code == 302
    made = patch.latest
    assert (made.base.number, made.text) == (2, theirs.replace(ONE, OTHER))


def test_neighbouring_tasks_of_two_people_need_no_decision(cast: Any, patch: Patch) -> None:
    first = cast.spec.head.text.replace(ONE, OTHER)
    mine = actions.propose(cast["bob"], cast.spec, first, 1, "First")
    save_version(cast["alice"], cast.spec, cast.spec.head.text.replace(TWO, LAST), 1)
    assert actions.update(cast["bob"], mine, 1).text == patch.latest.text


def test_a_fork_begins_with_the_newest_revision(cast: Any, patch: Patch) -> None:
    made = actions.fork(cast["rita"], patch, "", "")
    assert (made.number, made.author, made.latest.text) == (2, cast["rita"], patch.latest.text)
    assert made.title == "Look elsewhere (from patch 1)"


def test_a_spec_that_was_archived_meanwhile_takes_no_merge(cast: Any, patch: Patch) -> None:
    actions.judge(cast["rita"], patch, 1, True)
    archive(cast["alice"], cast.spec)
    with refused("web.archived"):
        actions.merge(cast["bob"], patch, 1)
    assert not HistoryRecord.objects.exists() and SpecVersion.objects.filter(spec=cast.spec).count() == 1
    body = cast.client("bob").get(reverse("spak-patch", args=[cast.team.slug, "small", 1])).content.decode()
    assert "is archived: nothing is merged" in body


def test_privileged_changes_can_ask_for_an_admin(cast: Any, patch: Patch) -> None:
    protect(cast["alice"], cast.spec, 1, by_admin=True)
    patch = Patch.objects.get(pk=patch.pk)
    actions.judge(cast["rita"], patch, 1, True)
    assert rules.missing(patch) == ["an admin to approve it, since it makes 2 privileged changes"]
    actions.judge(cast["alice"], patch, 1, True)
    assert rules.missing(patch) == []


def test_mail_goes_to_those_who_must_act(
    cast: Any, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.REVIEW_MAIL = True
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
    settings.REVIEW_MAIL = True
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


# ---- checks that are lost


def test_checks_whose_worker_was_killed_are_sent_again_by_the_sweep(
    cast: Any, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few times; then a person decides, since the check may be what kills the workers."""
    sent: list[int] = []
    monkeypatch.setattr(checks, "send", sent.append)
    late = timezone.now() - timedelta(seconds=checks.LOST_S + 1)
    rows, key = Check.objects.filter(revision=patch.latest), patch.latest.pk

    def swept() -> list[int]:
        sent.clear()
        jobs.cache.delete("reviews.checks")
        jobs.put_back()
        return list(sent)

    assert swept() == []
    rows.filter(name="text").update(state="running", made_at=late)
    assert swept() == [], "the others wait for a worker"
    for _ in range(checks.SENT_AGAIN):
        rows.update(made_at=late)
        assert swept() == [key] and swept() == []
    rows.update(made_at=late)
    assert swept() == [] and page.status(cast["bob"], patch)["again"]
    actions.repeat_check(cast["bob"], patch, 1)
    rows.update(made_at=late)
    assert swept() == [key]
    actions.revise(cast["bob"], patch, 1, patch.latest.text + "// more\n")
    rows.update(made_at=late)
    assert swept() == [], "nobody asks for an older revision"


def test_a_check_that_goes_on_gives_signs_of_life(
    cast: Any, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "REPORT_S", 0)
    monkeypatch.setattr(checks, "records_of", lambda run: iter("ab"))
    row = patch.latest.checks.get(name="actions")
    progress = checks.Progress(row, 1)
    for _ in progress.records_of(None):  # type: ignore[arg-type]
        row.refresh_from_db()
        assert not checks.is_lost(row)
        patch.latest.checks.update(made_at=timezone.now() - timedelta(seconds=checks.LOST_S + 1))
    row.refresh_from_db()
    assert checks.is_lost(row)
