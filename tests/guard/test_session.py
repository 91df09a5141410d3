"""A guarded session without a sandbox: what holds its agent still, who waits for whom, and when it stops."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aep_oracle import verdict
from spak import data
from spak.cli import session as sessions
from spak.costs import prices
from spak.errors import RunError
from spak.guard import control
from spak.guard.proxy import Proxy
from spak.guard.session import Session, advancing
from spak.records import Kind
from spak.runner import Run
from spak.runner.repositories import Repositories
from spak.runner.secret_guard import SecretGuard
from spak.secrets.redact import Redactor
from spak.workspace import Workspace

SPEC = "specs/guard/guest.spak"
Guarded = Callable[[Callable[[Session], None]], str]


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """Runs a session while an agent, a function, does something; gives how the run ended."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    monkeypatch.chdir(folder)
    held = sessions.begin(
        data.path(SPEC), tmp_path / "runs", mode="full_auto", workspace=folder, labels={"agent": "test"}
    )
    copy = Workspace(held.folder / "agent", held.folder / "agent-store")
    copy.restore(held.run.state.r3, held.run.workspace.store)
    secrets = SecretGuard(held.run.performer.host, copy, held.run.rules.r3)
    secrets.look(fresh=True)
    Repositories(copy, held.run.rules, lambda: secrets).before_job()

    def run(agent: Callable[[Session], None]) -> str:
        made = Session(held.run, copy)
        made.patience = 0
        made.begin()
        failed: list[BaseException] = []

        def work() -> None:
            try:
                agent(made)
            except BaseException as error:
                failed.append(error)
            made.end()

        thread = threading.Thread(target=work)
        with advancing(made):
            thread.start()
            held.advance()
        thread.join()
        assert not failed, failed
        return held.view().state

    yield run
    held.close()


def test_an_agent_is_held_still_only_while_no_answer_streams_to_it(guarded: Guarded) -> None:
    held: list[bool] = []

    def agent(made: Session) -> None:
        @contextmanager
        def frozen() -> Iterator[None]:
            held.append(made.talk.locked())
            yield

        made.frozen = frozen
        for tool, args in (
            ("read_file", {"path": "a.txt"}),
            ("write_file", {"path": "b.txt", "content": "b"}),
        ):
            (made.copy.directory / "a.txt").write_text(f"{tool}\n")
            assert made.call(tool, args).verdict == "done"

    assert guarded(agent) == "succeeded"
    assert len(held) >= 2 and all(held)


def test_its_export_is_what_outside_oracles_accept(guarded: Guarded) -> None:
    """Calls that are done, denied and malformed, and changes of the agent's own."""
    runs: list[Run] = []

    def agent(made: Session) -> None:
        runs.append(made.run)
        calls = (
            ("read_file", {"path": "a.txt"}),
            ("write_file", {"path": "b.txt", "content": "b"}),
            ("write_file", {"path": "../out.txt", "content": "b"}),
            ("write_file", {"path": 7}),
        )
        said = [made.call(tool, args).verdict for tool, args in calls]
        assert said[:2] == ["done", "done"] and "done" not in said[2:]
        (made.copy.directory / "c.txt").write_text("c\n")
        made.turn()

    assert guarded(agent) == "succeeded"
    records = [record for record, _ in runs[0].ledger.read()]
    assert {record.kind for record in records} >= {Kind.PLAN, Kind.ACT, Kind.END}
    assert verdict(records) == ""


def test_a_request_that_comes_slowly_keeps_nobody_waiting(guarded: Guarded) -> None:
    head = b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n"

    def agent(made: Session) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            Proxy(made, listener, {}, Redactor(), prices.load()).serving(),
            socket.create_connection(listener.getsockname()) as slow,
            socket.create_connection(listener.getsockname()) as other,
        ):
            slow.sendall(head + b"expect: 100-continue\r\n\r\n{")
            assert slow.recv(1 << 16).startswith(b"HTTP/1.1 100")
            other.sendall(head + b'\r\n{"a":"b"}')
            assert other.recv(1 << 16).startswith(b"HTTP/1.1 404")

    assert guarded(agent) == "succeeded"


def test_a_session_whose_copy_cannot_follow_stops(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the copy lacks is not taken for changes of the agent afterwards."""

    def full(*_: object) -> None:
        raise RunError("workspace.io", "the disk is full", "")

    def agent(made: Session) -> None:
        monkeypatch.setattr(made.copy, "bring", full)
        with pytest.raises(RunError, match="the disk is full"):
            made.call("write_file", {"path": "b.txt", "content": "b"})
        with pytest.raises(RunError, match="the disk is full"):
            made.turn()
            made.propose("ask_person", {"question": "?"}, made.people.asked)
        assert made.run.workspace.directory.joinpath("b.txt").read_text() == "b"

    with pytest.raises(RunError, match="the disk is full"):
        guarded(agent)


def test_a_session_stops_when_its_run_has_other_files_than_the_copy(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent(made: Session) -> None:
        monkeypatch.setattr(made.run.workspace, "bring", lambda other: None)
        (made.copy.directory / "b.txt").write_text("b")
        with pytest.raises(RunError, match="not what the run has"):
            made.turn()

    with pytest.raises(RunError, match="not what the run has"):
        guarded(agent)


def test_a_call_that_comes_after_the_last_transaction_is_refused(guarded: Guarded) -> None:
    """The agent was killed while its call was read."""
    sessions: list[Session] = []
    assert guarded(sessions.append) == "succeeded"
    for late in (
        lambda made: made.call("read_file", {"path": "a.txt"}),
        lambda made: made.turn(),
        lambda made: made.take_back(made.run.state.r3),
    ):
        with pytest.raises(RunError) as refused:
            late(sessions[0])
        assert refused.value.code == "guard.stopped"


def test_all_that_waits_for_a_person_is_told_however_long(tmp_path: Path) -> None:
    asks = {"approvals": [{"of": str(one), "args": {"content": "x" * 16_000}} for one in range(100)]}
    with control.listening(tmp_path, lambda request: asks):
        assert control.ask(tmp_path, {"do": "asks"}) == json.loads(json.dumps(asks))
