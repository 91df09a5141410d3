"""A repository that is away for a while: runs and pushes ask it again, later each time, and then give up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sources_kit import Host, Repository
from spakweb.runs.actions import start
from spakweb.runs.models import Run
from spakweb.sources import actions, branches, freeze
from spakweb.sources.models import Branch, RunSource, Source
from spakweb.worker import execute, queue

RunFrom = Callable[..., Run]
TEXT = """\
task Change {
  step new: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_exists("hello.txt")
}
"""


def again(run: Run) -> Run:
    """The run, once its pause is over."""
    Run.objects.filter(pk=run.pk).update(not_before=None)
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def test_a_run_begins_when_the_repository_is_back(
    cast: Any, source: Source, repository: Repository, host: Host
) -> None:
    repository.commit({"a": b"a"})
    host.instead = lambda path: 503
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app"))
    before = freeze.clock.now()
    assert again(run).state == "queued" and run.reason.startswith("git.unreachable")
    assert run.not_before is not None and run.not_before - before >= freeze.PAUSE
    assert queue.pick("default") is None  # it rests
    host.instead = lambda path: None
    assert again(run).state == "succeeded"
    assert RunSource.objects.get(run=run).tries == 1


def test_pauses_grow_and_end(
    cast: Any, source: Source, repository: Repository, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freeze, "TRIES", 3)
    host.instead = lambda path: 503
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app"))
    pauses = []
    while again(run).state == "queued":
        assert run.not_before is not None
        pauses.append((run.not_before - freeze.clock.now()).total_seconds())
    assert [round(pause / freeze.PAUSE.total_seconds()) for pause in pauses] == [1, 2, 4]
    assert (run.state, run.count) == ("failed", 0)
    assert run.summary["error"]["code"] == "git.unreachable"


@pytest.mark.parametrize("status", [401, 404, 302])
def test_what_does_not_mend_itself_is_not_asked_again(
    source: Source, repository: Repository, host: Host, run_from: RunFrom, status: int
) -> None:
    repository.commit({"a": b"a"})
    host.instead = lambda path: status
    run = run_from()
    assert (run.state, RunSource.objects.get(run=run).tries) == ("failed", 0)


def test_a_branch_is_pushed_when_the_repository_is_back(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    row = branches.ask(cast["rita"], run_from(text=TEXT), approve=True)
    host.instead = lambda path: 503
    branches.push(row.pk)
    row.refresh_from_db()
    assert (row.state, row.tries, row.error) == ("approved", 1, "")
    branches.push(row.pk)  # it rests
    row.refresh_from_db()
    assert row.tries == 1
    host.instead = lambda path: None
    Branch.objects.filter(pk=row.pk).update(not_before=None)
    branches.push(row.pk)
    row.refresh_from_db()
    assert row.state == "pushed"


def test_a_push_gives_up(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    row = branches.ask(cast["rita"], run_from(text=TEXT), approve=True)
    Branch.objects.filter(pk=row.pk).update(tries=freeze.TRIES)
    host.close()
    branches.push(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error.split(":")[0]) == ("failed", "git.unreachable")
