"""Packages of the operator on the platform: none without the setting; a run goes on with the same ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import own_kit
from spakweb.ground.teams.models import User
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.store.specs import facts
from spakweb.work.runs.actions import ask
from spakweb.work.worker import execute
from worker_kit import begun

CODE = """
from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import PredicateEntry
from spak.tools import results

class Transfer:
    schema = parts.members(["to"], to=parts.text("Who.", 40))
    entry = ToolEntry("transfer", 1, "Moves money.", schema, writes=False, sandboxed=False)

    def run(self, call):
        return results.done("moved")

class Customer:
    entry = PredicateEntry("customer", 1, "Customers.", ("Id", "Plan"), ("+-",))

    def rows(self, args, look):
        return [("alice", "paid"), ("bob", "free")]
"""
POINTS = "[spak.tools]\ntransfer = acme_web:Transfer\n[spak.predicates]\ncustomer = acme_web:Customer\n"
LAW = """
Decl customer(Id, Plan) descr [external(), mode("+", "-")] bound [/string, /string].
permitted(A) :- tool(A, /transfer), argument(A, "to", Id), customer(Id, "paid").
"""
PAY = """\
task Pay {{
  step ask: llm.query {{ role: "coder" prompt: "Go?" output_var: word }}
  step move: tool.transfer {{ to: "{}" }}
}}
"""


@pytest.fixture
def acme(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(own_kit.install(tmp_path, "acme-web", CODE, POINTS)))
    monkeypatch.delitem(sys.modules, "acme_web", raising=False)
    settings.PACKAGES, settings.LAW = ["acme-web"], {"crm.mg": LAW}
    forget()
    yield tmp_path
    settings.PACKAGES = []
    forget()


def forget() -> None:
    facts.ours.cache_clear()
    facts.catalog.cache_clear()


def waiting(user: User, to: str) -> Run:
    """A run that waits for an answer before it moves money."""
    run = begun(user, PAY.format(to))
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.WAITING, run.reason
    return run


def answered(user: User, run: Run) -> Run:
    ask(user, run, "answer", run.summary["waiting"]["id"], text="Go.")
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def test_without_the_setting_nothing_of_it_is_there(user: User) -> None:
    assert "transfer" not in facts.catalog().tools and facts.ours().marks == {}


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(("to", "state"), [("alice", State.SUCCEEDED), ("bob", State.REFUSED)])
def test_a_run_uses_them_under_the_operators_law(user: User, to: str, state: State) -> None:
    run = answered(user, waiting(user, to))
    assert run.state == state, run.reason
    genesis = next(iter(DatabaseLedgers().reader(run.key).read()))[0]
    assert genesis.body["host"]["own"] == {
        "predicate customer": "acme-web 1.2",
        "transfer": "acme-web 1.2",
    }


def test_a_run_does_not_go_on_with_another_version(user: User, acme: Path) -> None:
    run = waiting(user, "alice")
    own_kit.install(acme, "acme-web", CODE, POINTS, version="1.3")
    forget()
    run = answered(user, run)
    assert run.reason.startswith("unavailable.predicate: predicate customer is not the one"), run.reason
    assert run.state not in (State.SUCCEEDED, State.FAILED)
    own_kit.install(acme, "acme-web", CODE, POINTS)
    forget()
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED, run.reason
