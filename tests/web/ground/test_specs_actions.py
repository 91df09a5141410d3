"""Versions, drafts, tags: what is kept, what is refused, what two people at once get."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, connections, transaction
from django.db.utils import IntegrityError
from django.http import Http404

from process_kit import WAIT_S
from spak import canon
from spakweb.ground.audit.models import Event
from spakweb.ground.database import appendonly
from spakweb.ground.errors import Refused
from spakweb.ground.text import clean
from spakweb.store.specs.models import Draft, Spec, SpecVersion, Tag
from spakweb.work.reviews.protection import protect_team
from spakweb.work.specs import actions, widening
from spakweb.work.specs.actions import Stale

MORE = 'task A { step b: tool.run { cmd: "true" } }\n'


def test_a_saved_version_has_everything(cast: Any, saved: Callable[..., Any]) -> None:
    made = saved(MORE, message="  Begin\nagain ")
    assert (made.number, made.text, made.message, made.author) == (2, MORE, "Begin again", cast["alice"])
    assert made.content_hash == canon.digest(MORE.encode())
    assert made.facts["tasks"] == ["A"]
    assert Spec.objects.get(pk=cast.spec.pk).head == made
    event = Event.objects.filter(action="spec.saved").get()
    assert (event.before, event.after) == (cast.spec.head.content_hash, made.content_hash)


@pytest.mark.findings("F10")
def test_a_text_is_read_before_the_transaction_that_saves_it(
    cast: Any, saved: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds for a long one, and the rows of the team and the spec are locked meanwhile."""
    depths: list[int] = []

    def noted(usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            depths.append(len(connection.savepoint_ids))
            return usual(*given)

        return call

    protect_team(cast["alice"], cast.team, 0, widening="shared")
    monkeypatch.setattr(actions, "facts_of", noted(actions.facts_of))
    monkeypatch.setattr(widening, "compare", noted(widening.compare))
    outside = len(connection.savepoint_ids)
    text = cast.spec.head.text
    with pytest.raises(Refused, match="widens"):
        saved(text.replace("list_files", "http_request"))
    assert saved(text + "// and no more\n").facts["tasks"] == ["look", "done"]
    assert actions.restore(cast["bob"], cast.spec.head).number == 3
    assert actions.create_spec(cast["bob"], cast.team, "Another", MORE).head.facts["tasks"] == ["A"]
    assert depths == [outside] * 7


def test_a_restore_goes_by_the_head_that_it_meets(
    cast: Any, saved: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody saves after it has read the head."""
    saved(MORE)
    usual = widening.asked

    def late(*given: Any) -> Any:
        monkeypatch.setattr(widening, "asked", usual)
        saved(MORE + "// theirs\n", by="bob", base=2)
        return usual(*given)

    monkeypatch.setattr(widening, "asked", late)
    made = actions.restore(cast["alice"], cast.spec.versions.get(number=1))
    assert (made.number, made.text) == (4, cast.spec.head.text)


def test_the_same_text_makes_no_version(cast: Any, saved: Callable[..., Any]) -> None:
    assert saved(cast.spec.head.text, base=1) == cast.spec.head
    assert saved(cast.spec.head.text.replace("\n", "\r\n"), base=77) == cast.spec.head
    assert cast.spec.versions.count() == 1


def test_a_stale_base_saves_nothing_and_shows_both(cast: Any, saved: Callable[..., Any]) -> None:
    text = cast.spec.head.text
    theirs = text.replace("LEVEL 1", "LEVEL 2")
    saved(theirs, by="bob")
    mine = text.replace("done", "finish")
    found = saved(mine, base=1)
    assert isinstance(found, Stale)
    assert found.merge.clean
    assert found.merge.text == theirs.replace("done", "finish")
    assert cast.spec.versions.count() == 2
    assert found.to_json()["head_version"] == 2
    assert saved(found.merge.text, base=2).number == 3


@pytest.mark.parametrize("base", [0, 5, 10**9])
def test_a_base_that_never_was_is_stale(cast: Any, saved: Callable[..., Any], base: int) -> None:
    found = saved(MORE, base=base)
    assert isinstance(found, Stale)
    assert found.base is None
    assert cast.spec.versions.count() == 1


def test_a_restored_version_says_from_where(cast: Any, saved: Callable[..., Any]) -> None:
    saved(MORE)
    made = actions.restore(cast["bob"], cast.spec.versions.get(number=1))
    assert (made.number, made.restored_from.number, made.text) == (3, 1, cast.spec.head.text)
    assert actions.restore(cast["bob"], made) == made


def test_a_draft_is_ones_own_and_goes_with_the_save(cast: Any, saved: Callable[..., Any]) -> None:
    actions.save_draft(cast["alice"], cast.spec, "typing", 1)
    actions.save_draft(cast["alice"], cast.spec, "typing on", 1)
    actions.save_draft(cast["bob"], cast.spec, "other", 1)
    assert Draft.objects.get(user=cast["alice"]).text == "typing on"
    saved(MORE)
    assert [draft.user for draft in Draft.objects.all()] == [cast["bob"]]
    assert actions.drop_draft(cast["bob"], cast.spec)
    assert not actions.drop_draft(cast["bob"], cast.spec)


def test_a_tag_moves(cast: Any, saved: Callable[..., Any]) -> None:
    actions.set_tag(cast["rita"], cast.spec.head, "stable")
    second = saved(MORE)
    actions.set_tag(cast["rita"], second, "stable")
    assert Tag.objects.get().version == second
    actions.remove_tag(cast["rita"], Tag.objects.get())
    done = list(Event.objects.values_list("action", flat=True)[:4])
    assert done == ["spec.untagged", "spec.tagged", "spec.saved", "spec.tagged"]


@pytest.mark.parametrize("name", ["", "-x", "a b", "ä", "x" * 41, "a/b", "a\n"])
def test_a_tag_has_a_plain_name(cast: Any, name: str) -> None:
    with pytest.raises(Refused, match="not a name for a tag"):
        actions.set_tag(cast["rita"], cast.spec.head, name)
    assert not Tag.objects.exists()


def test_an_archived_spec_takes_no_version(cast: Any, saved: Callable[..., Any]) -> None:
    actions.archive(cast["alice"], cast.spec)
    with pytest.raises(Refused, match="archived"):
        saved(MORE)
    actions.archive(cast["alice"], cast.spec, False)
    assert saved(MORE).number == 2


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xfe", "web.text"),
        (b"\x7fELF\x00", "web.text"),
        ("a\0b", "web.text"),
        ("\ud800", "web.text"),
        ("x" * (256 * 1024 + 1), "web.text_size"),
        ("ä" * (128 * 1024 + 1), "web.text_size"),
    ],
    ids=["utf16", "binary", "nul", "surrogate", "large", "large in bytes"],
)
def test_what_is_no_text(cast: Any, saved: Callable[..., Any], data: Any, code: str) -> None:
    with pytest.raises(Refused) as refused:
        clean(data)
    assert refused.value.code == code
    if isinstance(data, str):
        with pytest.raises(Refused):
            saved(data)
        with pytest.raises(Refused):
            actions.save_draft(cast["alice"], cast.spec, data, 1)
    assert cast.spec.versions.count() == 1


def test_newlines_become_one_kind() -> None:
    assert clean("a\r\nb\rc\n") == "a\nb\nc\n"
    assert clean(b"\xef\xbb\xbfa\r\n") == "a\n"


@pytest.mark.parametrize(
    "text", ["", "{" * 5000, "\u2028" * 100, "task " * 30000, "<script>alert(1)</script>"]
)
def test_any_text_may_be_kept(cast: Any, saved: Callable[..., Any], text: str) -> None:
    """A spec with mistakes is still a version: it says how many it has."""
    made = saved(text)
    assert made.text == text
    assert made.facts["errors"] >= 1


def test_names_of_specs_do_not_collide(cast: Any) -> None:
    slugs = [actions.create_spec(cast["bob"], cast.team, "small", MORE).slug for _ in range(3)]
    assert slugs == ["small-2", "small-3", "small-4"]
    assert actions.create_spec(cast["bob"], cast.team, "New", MORE).slug == "new-2"
    with pytest.raises(Refused, match="needs a name"):
        actions.create_spec(cast["bob"], cast.team, " !! ", MORE)


def test_rights_are_asked_by_the_action_itself(cast: Any, saved: Callable[..., Any]) -> None:
    for name, error in (("vera", PermissionDenied), ("charlie", Http404), ("nobody", Http404)):
        with pytest.raises(error):
            saved(MORE, by=name)
        with pytest.raises(error):
            actions.save_draft(cast[name], cast.spec, MORE, 1)
        with pytest.raises(error):
            actions.set_tag(cast[name], cast.spec.head, "x")
        with pytest.raises(error):
            actions.archive(cast[name], cast.spec)
        with pytest.raises(error):
            actions.restore(cast[name], cast.spec.head)
    assert cast.spec.versions.count() == 1


# ---- what the database itself refuses


def test_the_model_has_no_way_to_change_a_version(cast: Any) -> None:
    version = cast.spec.head
    version.text = "other"
    with pytest.raises(appendonly.AppendOnlyError):
        version.save()
    with pytest.raises(appendonly.AppendOnlyError):
        version.delete()
    with pytest.raises(appendonly.AppendOnlyError):
        SpecVersion.objects.update(text="other")
    with pytest.raises(appendonly.AppendOnlyError):
        Event.objects.all().delete()


@pytest.mark.parametrize("table", ["specs_specversion", "audit_event"])
def test_sql_is_refused_too(cast: Any, table: str) -> None:
    column = "message" if table == "specs_specversion" else "thing"
    statements = [f"UPDATE {table} SET {column} = 'x'", f"DELETE FROM {table}"]
    if connection.vendor == "postgresql":
        statements.append(f"TRUNCATE {table} CASCADE")
    else:
        statements.append(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    for statement in statements:
        connection.check_constraints()  # PostgreSQL truncates no table with constraints still to be looked at
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def test_every_table_that_only_grows_has_its_triggers(db: None) -> None:
    assert {"audit_event", "specs_specversion"} <= set(appendonly.tables())
    assert appendonly.missing(connection) == []


def test_numbers_are_unique(cast: Any) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        SpecVersion.objects.create(spec=cast.spec, number=1, text="", content_hash="", author=cast["alice"])


@pytest.mark.django_db(transaction=True)
def test_of_many_savers_at_once_one_wins(transactional_db: None, request: pytest.FixtureRequest) -> None:
    """Eight people save different texts on one base: one version, seven that are told to merge."""
    request.addfinalizer(lambda: appendonly.remove(connection))  # so that the tables can be emptied
    appendonly.install(connection)
    cast = request.getfixturevalue("cast")
    found: list[Any] = []

    def save(text: str) -> None:
        found.append(actions.save_version(cast["alice"], cast.spec, text, 1))
        connections.close_all()

    threads = [threading.Thread(target=save, args=(f"{MORE}// {number}\n",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert sum(isinstance(item, SpecVersion) for item in found) == 1
    assert sum(isinstance(item, Stale) for item in found) == 7
    assert cast.spec.versions.count() == 2
