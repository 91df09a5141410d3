"""Runs of a team to delete: waiting, ended, aged, and what is left of one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from spakweb.ground import clock
from spakweb.ground.teams.models import Team, User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.blobs import name_of
from spakweb.store.runs.models import Command, Run, RunBlob, RunRecord, State
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

LONG = "x" * 70_000
TALK = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


def asking(user: User, team: Team) -> Run:
    """A run that waits for an answer."""
    spec = create_spec(user, team, f"talk {team.specs.count()}", TALK)
    run = actions.start(user, spec, labels=["one"])
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def ended(user: User, team: Team, text: str = LONG) -> Run:
    """A run that ended well, with an answer that is a blob."""
    run = asking(user, team)
    actions.ask(user, run, "answer", run.summary["waiting"]["id"], text=text)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED and RunBlob.objects.filter(run=run).exists()
    return run


def aged(run: Run, days: float) -> None:
    Run.objects.filter(pk=run.pk).update(ended_at=clock.now() - timedelta(days=days))


def files(run: Run) -> list[str]:
    return [name_of(digest) for digest in RunBlob.objects.filter(run=run).values_list("digest", flat=True)]


def erased(run: Run) -> bool:
    """Whether nothing is left but the row."""
    run.refresh_from_db()
    rows = [RunRecord, RunBlob, Command]
    left = [model.__name__ for model in rows if model.objects.filter(run=run).exists()]
    assert (run.erased_at is None) == bool(left or workspaces.folder_of(run.key).exists()), left
    return run.erased_at is not None


def page(user: User, view: str, run: Run, method: str = "get", accept: str = "text/html", **more: Any) -> Any:
    client = Client(headers={"Accept": accept})
    client.force_login(user)
    address = reverse(view, kwargs={"team": run.team.slug, "run": run.key, **more})
    return getattr(client, method)(address)
