"""A repository that is away for a while: runs and pushes ask it again, later each time, and then give up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobs_kit import at_once, job, worked
from sources_kit import Host, Repository
from spakweb.store.runs.models import Run
from spakweb.store.sources import freeze
from spakweb.store.sources.models import Source
from spakweb.work.jobs import show
from spakweb.work.runs.actions import start
from spakweb.work.sources import actions, branches
from spakweb.work.worker import execute, queue

RunFrom = Callable[..., Run]
TEXT = """\
task Change {
  step new: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_exists("hello.txt")
}
"""


def again(run: Run) -> Run:
    """The run, once its pause is over."""
    Run.objects.filter(pk=run.pk).update(due=None)
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
    assert run.due is not None and run.due - before >= timedelta(seconds=freeze.AWAY_WAITS[0])
    assert queue.pick("default") is None  # it rests
    host.instead = lambda path: None
    assert again(run).state == "succeeded"
    assert run.tries == 0, "it got on"


def test_pauses_grow_and_end(
    cast: Any, source: Source, repository: Repository, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freeze, "AWAY_WAITS", freeze.doubling(5, 3))
    host.instead = lambda path: 503
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app"))
    pauses = []
    while again(run).state == "queued":
        assert run.due is not None
        pauses.append((run.due - freeze.clock.now()).total_seconds())
    assert [round(pause / 5) for pause in pauses] == [1, 2, 4]
    assert (run.state, run.count) == ("failed", 0)
    assert run.summary["error"]["code"] == "git.unreachable"


@pytest.mark.parametrize("status", [401, 404, 302])
def test_what_does_not_mend_itself_is_not_asked_again(
    source: Source, repository: Repository, host: Host, run_from: RunFrom, status: int
) -> None:
    repository.commit({"a": b"a"})
    host.instead = lambda path: status
    run = run_from()
    assert (run.state, run.tries) == ("failed", 0)


def test_a_branch_is_pushed_when_the_repository_is_back(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    row = branches.ask(cast["rita"], run_from(text=TEXT), approve=True)
    host.instead = lambda path: 503
    worked(branches.PUSH)
    row.refresh_from_db()
    assert (row.state, job(branches.PUSH).tries) == ("approved", 1)
    assert row.error.startswith("git.unreachable: the repository's server answered 503; tried again after ")
    assert worked(branches.PUSH) == []  # it rests
    host.instead = lambda path: None
    at_once(branches.PUSH)
    row.refresh_from_db()
    assert (row.state, row.error) == ("pushed", "")


def test_a_push_gives_up_until_an_admin_tries_it_again(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    row = branches.ask(cast["rita"], run_from(text=TEXT), approve=True)
    host.instead = lambda path: 503
    for _ in range(len(freeze.AWAY_WAITS) + 1):
        at_once(branches.PUSH)
    row.refresh_from_db()
    assert (row.state, row.error.split(":")[0]) == ("failed", "git.unreachable")
    host.instead = lambda path: None
    show.retry(cast["alice"], job(branches.PUSH))  # an admin, on the page Work
    worked(branches.PUSH)
    row.refresh_from_db()
    assert (row.state, row.error) == ("pushed", "")
