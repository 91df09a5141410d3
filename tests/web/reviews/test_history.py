"""What a version keeps of its patch: a signed record, and who gave each line."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from reviews_kit import OTHER, checked
from spak import canon
from spak.evolve import spec_history
from spakweb.face.reviews import blame
from spakweb.store.reviews.models import HistoryRecord, Patch
from spakweb.store.specs.models import SpecVersion
from spakweb.work.reviews import actions, history


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


def test_a_merged_text_is_its_proposers_wherever_versions_are_shown(cast: Any, patch: Patch) -> None:
    """Who merged it is named as such; a campaign's patch is the campaign's."""
    checked(patch)
    actions.judge(cast["alice"], patch, 1, True, "Good.")
    version = actions.merge(cast["alice"], patch, 1)
    assert (version.author, version.writer, version.merged_by) == (cast["bob"], "bob", "alice")
    older = SpecVersion(author=cast["alice"], provenance=version.provenance)
    assert (older.writer, older.saved_by) == ("bob", "alice")
    assert SpecVersion(author=cast["bob"], provenance={"campaign": "faster"}).writer == "campaign faster"
    client, here = cast.client("alice"), [cast.team.slug, cast.spec.slug]
    for page in (reverse("spak-spec-history", args=here), reverse("spak-version-detail", args=[*here, 2])):
        assert "bob, merged by alice" in client.get(page).content.decode(), page
    blamed = client.get(reverse("spak-spec-blame", args=here)).content.decode()
    assert "</a> bob, " in blamed and "approved by alice; merged by alice" in blamed
    for page in (reverse("spak-spec-list", args=here[:1]), reverse("spak-team-home", args=here[:1])):
        assert "alice, " not in client.get(page).content.decode(), page
    found = spec_history.read(history.export(cast.spec)).versions[1]
    assert found.merge and (found.merge["proposer"], found.merge["merged_by"]) == ("bob", "alice")
    for name in ("spak-api-version", "spak-api-versions"):
        told = client.get(reverse(name, args=[*here, 2][: 3 if name.endswith("n") else 2])).json()
        row = told.get("versions", [told])[0]
        assert (row["author"], row["merged_by"]) == ("bob", "alice")
