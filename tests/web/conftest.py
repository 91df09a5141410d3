"""One cast for all pages: alice is an admin, bob an editor, rita a reviewer, vera a viewer; charlie is a
stranger, the admin of another team.

Nothing here asks anything outside: the database is the test's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.db.models import CharField
from django.test import Client

from database_kit import filled, rows_of
from spakweb.ground.teams.models import Membership, ReviewRules, Role, Team, User
from spakweb.store.specs.models import Spec
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team

TEXT = """\
AGENT Small LEVEL 1 {
  START -> look
  TASK look {
    step one: tool.list_files { path: "." }
    NEXT { success -> done }
  }
  TASK done {
    step two: tool.list_files { path: "." }
  }
}
"""


@dataclass
class Cast:
    """The people, their team, its spec, and the team next door."""

    people: dict[str, User]
    team: Team
    spec: Spec
    other_team: Team
    other_spec: Spec
    clients: dict[str, Client] = field(default_factory=dict)

    def __getitem__(self, name: str) -> User:
        return self.people[name]

    def client(self, name: str = "") -> Client:
        """A browser that is signed in as them; without a name, nobody's."""
        client = Client()
        if name:
            client.force_login(self.people[name])
        return client


def made() -> Cast:
    people = {
        name: User.objects.create_user(name, f"{name}@spak.example", "a long secret")
        for name in ("alice", "bob", "rita", "vera", "charlie", "nobody")
    }
    team, other = create_team(people["alice"], "Kernel tuners"), create_team(people["charlie"], "Next door")
    roles = {"bob": Role.EDITOR, "rita": Role.REVIEWER, "vera": Role.VIEWER}
    for name, role in roles.items():
        Membership.objects.create(team=team, user=people[name], role=role)
    for one in (team, other):
        one.widening = ReviewRules.Widening.NEVER  # tests of the rule switch it on
        one.save(update_fields=["widening"])
    spec = create_spec(people["alice"], team, "small", TEXT)
    return Cast(people, team, spec, other, create_spec(people["charlie"], other, "small", TEXT))


@pytest.fixture(autouse=True, scope="session")
def texts_fit_their_columns() -> Iterator[None]:
    """SQLite keeps a text of any length; PostgreSQL, where teams run, refuses one that is too long."""
    prepared = CharField.get_db_prep_save

    def checked(column: Any, value: Any, connection: Any) -> Any:
        found = prepared(column, value, connection)
        if isinstance(found, str) and column.max_length is not None:
            assert len(found) <= column.max_length, f"{column}: {len(found)} of {column.max_length}"
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CharField, "get_db_prep_save", checked)
        yield


@pytest.fixture(autouse=True)
def nothing_counted_yet() -> None:
    """The cache counts attempts by people's numbers, which those of other tests had too."""
    cache.clear()


@dataclass
class Kept:
    """A cast that was made in empty tables, and its rows: to put them there again takes a tenth of the time.
    It is made again after a minute: no test has people of long ago. PostgreSQL never gives a number twice, so
    those of these rows are free."""

    cast: Cast | None = None
    rows: list[str] = field(default_factory=list)
    until: float = 0

    def again(self) -> Cast:
        if not connection.in_atomic_block:
            return made()  # what follows a commit follows here too
        if self.cast is None or time.monotonic() > self.until:
            return self.anew()
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for row in self.rows:
                    cursor.execute(row)
        except IntegrityError:  # the tables are not empty
            return made()
        return deepcopy(self.cast)

    def anew(self) -> Cast:
        empty, cast = not filled(), made()
        if empty:
            self.cast, self.rows, self.until = deepcopy(cast), rows_of(filled()), time.monotonic() + 60
        return cast


kept = Kept()


@pytest.fixture
def cast(db: None) -> Cast:
    return kept.again()


@pytest.fixture(scope="module")
def lasting(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A transaction around all tests of a module: what is made in it is there for each, which undoes its own.
    Not for a module with tests whose tables other threads see."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def first_cast(lasting: None) -> Cast:
    """The cast of a module; give each test a deep copy."""
    return made()


@pytest.fixture
def saved(cast: Cast) -> Callable[..., object]:
    """`saved(text, base=1, by="alice")`: what saving gives."""
    from spakweb.work.specs.actions import save_version

    def save(text: str, base: int = 1, by: str = "alice", message: str = "") -> object:
        return save_version(cast[by], Spec.objects.get(pk=cast.spec.pk), text, base, message)

    return save
