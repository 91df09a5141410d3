"""Cancelling each kind of work: it ends within two seconds of the token, and leaves nothing behind."""

from __future__ import annotations

import os
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpu_calls import Lab
from host_kit import TUNING, reopen, start
from spak import cancel
from spak.cancel import Cancelled, Token, apart
from spak.datalog.externals import Request
from spak.kernel.replay import replay
from spak.ports import Call, Child, Job, MeasureCall, Measurement, Outcome, PlanRequest, Trial
from spak.ports.predicates import Look
from spak.proposers.tuner import Tuner
from spak.sandbox import live
from spak.sandbox.docker_warm import Warm
from spak.sandbox.restricted import Restricted
from spak.tools import TOOLS
from spak.tools.observe import code, paths, predicates
from spak.validators import VALIDATORS, cpu_build
from spak.validators.problems import shipped
from spak.workspace import Workspace
from validator_calls import call as measure_call
from validator_calls import toolchain, write

WITHIN_S = 2.0
WAIT_S = 30.0


def stopped(work: Callable[[Token], object], under_way: Callable[[], bool] | None = None) -> None:
    """Start the work in a thread of its own, cancel it when it is under way, see it end in time."""
    token, seen = Token(), []

    def run() -> None:
        try:
            work(token)
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until = time.monotonic() + WAIT_S
    time.sleep(0.3)
    while under_way and thread.is_alive() and not under_way() and time.monotonic() < until:
        time.sleep(0.01)
    assert thread.is_alive(), f"it ended by itself: {seen}"
    assert under_way is None or under_way(), "it was never under way"
    began = time.monotonic()
    token.set()
    thread.join(WAIT_S)
    took = time.monotonic() - began
    assert not thread.is_alive() and isinstance(seen[0], Cancelled), seen
    assert took < WITHIN_S, f"{took:.1f} s"


def lives(mark: str, workspace: os.stat_result | None = None) -> bool:
    """Whether a process with the mark in its command line lives; with a workspace, one that has it at /ws."""
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() not in (entry / "cmdline").read_bytes() or entry.name == str(os.getpid()):
                continue
            if workspace is None or os.path.samestat((entry / "root/ws").stat(), workspace):
                return True
        except OSError:
            continue
    return False


def shared(folder: Path) -> Path:
    folder.chmod(0o777)
    return folder


# ---- the launcher --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 7{n}",
        "trap '' TERM INT HUP; (setsid sleep 7{n} &) ; while :; do sleep 7{n}; done",
        "yes 7{n} & exec sleep 7{n}",
    ],
    ids=["sleeps", "ignores signals", "writes"],
)
def test_a_job_ends_with_all_that_it_started(tmp_path: Path, script: str) -> None:
    number = f"{random.randrange(10**8):08}"
    argv = ("/bin/sh", "-c", script.replace("{n}", number))

    def work(token: Token) -> Outcome:
        return Restricted().run(Job(argv, shared(tmp_path), cancel=token))

    mark = f"sleep\0007{number}"
    stopped(work, lambda: lives(mark))
    assert not lives(mark)


def test_a_sandbox_that_never_comes_up_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        slow = folder / "bwrap"
        slow.write_text("#!/bin/sh\nexec /bin/sleep 71717\n")
        slow.chmod(0o755)
        launcher = Restricted()
        monkeypatch.setattr(launcher, "_programs", replace(launcher._programs, bwrap=str(slow)))
        stopped(
            lambda token: launcher.run(Job(("/bin/true",), shared(tmp_path), cancel=token)),
            lambda: lives("sleep\00071717"),
        )
    assert not lives("sleep\00071717") and live.START_S > WITHIN_S


def test_an_engine_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the docker launcher: the engine is asked in a thread of its own; what it still gives is closed."""
    asked, go, late = threading.Event(), threading.Event(), []

    def hangs() -> str:
        asked.set()
        go.wait(WAIT_S)
        return "a stream"

    stopped(lambda token: apart(hangs, token, late=late.append), asked.is_set)
    assert late == []
    go.set()
    until = time.monotonic() + WAIT_S
    while not late and time.monotonic() < until:
        time.sleep(0.01)
    assert late == ["a stream"]
    assert "cancel" in Warm.step.__annotations__


# ---- tools ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("run", {"cmd": ["sleep", "7272"]}),
        ("python_repl", {"code": "import time\ntime.sleep(7272)"}),
        ("python_repl", {"code": "while True: pass"}),
    ],
    ids=["run", "python sleeps", "python computes"],
)
def test_a_tool_of_the_sandbox_ends(tmp_path: Path, tool: str, args: dict[str, Any]) -> None:
    def work(token: Token) -> object:
        call = Call("e1", tool, args, shared(tmp_path), Restricted(), toolchain=toolchain(), cancel=token)
        return TOOLS[tool].run(call)

    stopped(work)
    assert not lives("sleep\0007272")


@contextmanager
def silent(backlog: int | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """A server that takes a request and never answers; with a backlog, one whose queue is full."""
    heard: list[bytes] = []
    held: list[socket.socket] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0 if backlog is not None else 8)
        port = server.getsockname()[1]
        if backlog is not None:  # these take all its places: who comes now waits for a place
            for _ in range(backlog):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
                held.append(one)
        else:

            def take() -> None:
                try:
                    while True:
                        one, _ = server.accept()
                        held.append(one)
                        heard.append(one.recv(65_536))
                except OSError:
                    return

            threading.Thread(target=take, daemon=True).start()
        try:
            yield port, heard
        finally:
            for one in held:
                one.close()


def request(port: int, token: Token) -> object:
    observed = {"hosts": [["api.example", ["127.0.0.1"]]]}
    args = {"url": f"http://api.example:{port}/x", "timeout_s": 60.0}
    call = Call(
        "e1", "http_request", args, Path("/"), None, observed=observed, reach=("loopback",), cancel=token
    )
    return TOOLS["http_request"].run(call)


def test_a_request_ends_while_nobody_answers() -> None:
    with silent() as (port, heard):
        stopped(lambda token: request(port, token), lambda: bool(heard))


def test_a_request_ends_while_it_connects_and_is_not_sent() -> None:
    with silent(backlog=4) as (port, heard):
        stopped(lambda token: request(port, token))
    assert heard == []


def test_looking_a_name_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def hangs(*ignored: object, **also: object) -> list[Any]:
        asked.set()
        time.sleep(5)
        return []

    monkeypatch.setattr(paths.socket, "getaddrinfo", hangs)
    stopped(lambda token: paths.resolve("slow.example", token), asked.is_set)


def test_reading_the_workspaces_code_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        (tmp_path / f"m{number}.py").write_text("import os\n")
    parsed = code._parsed

    def slow(text: str) -> Any:
        time.sleep(0.1)
        return parsed(text)

    monkeypatch.setattr(code, "_parsed", slow)
    monkeypatch.setattr(code, "_known", {})
    monkeypatch.setattr(code.canon, "digest", lambda data: str(random.random()))
    asked = [Request("dependency_link", (None, None, None))]
    stopped(lambda token: predicates.answers(asked, Look(tmp_path, token)))


# ---- validators and proposers --------------------------------------------------------------------------


def test_a_validator_of_the_sandbox_ends(tmp_path: Path) -> None:
    write(tmp_path, test_slow__py="import time\ndef test_slow():\n    time.sleep(7373)\n")

    def work(token: Token) -> Measurement:
        return VALIDATORS["PyTest"]().measure(measure_call(tmp_path, {}, cancel=token))

    stopped(work, lambda: lives("pytest"))


@pytest.mark.parametrize(("hack", "program"), [("hangs", "/ws/driver"), ("honest", "/ws/guest.py")])
def test_a_profiled_candidate_or_a_problem_that_hangs_is_ended(
    tmp_path: Path, hack: str, program: str
) -> None:
    lab = Lab(shared(tmp_path))
    binary = lab.hack(hack)
    seen: list[os.stat_result] = []
    text = shipped()["attention"] if hack == "hangs" else "while True: pass"

    class Noting(Restricted):
        def start(self, job: Job, *given: Any, **also: Any) -> Child:
            child = super().start(job, *given, **also)
            if program in job.argv:
                seen.append(job.workspace.stat())
            return child

    def work(token: Token) -> Measurement:
        options = {"problem": "attention", "binary": binary, "role": "baseline", "n": 64}
        call = MeasureCall(
            "m1", "CpuProfiler", options, tmp_path, Noting(),
            toolchain=toolchain(), cancel=token, problems={"attention": text},
        )  # fmt: skip
        return lab.profiler.measure(call)

    stopped(work, lambda: bool(seen) and lives(program, seen[0]))  # other tests have such processes too
    assert not lives(program, seen[0])


def test_the_profilers_own_programs_end() -> None:
    stopped(
        lambda token: cpu_build.run_trusted(["/bin/sleep", "7474"], token), lambda: lives("sleep\0007474")
    )
    assert not lives("sleep\0007474")


def test_a_search_of_a_large_space_ends() -> None:
    """Its neighbours, of many points, take minutes."""
    space: dict[str, Any] = {f"P{number}": {"range": [0, 140]} for number in range(4)}
    space["require"] = ["(P0 + P1) % 2 == 0", "(P2 + P3) % 2 == 0"]
    trials = [
        trial(point, number)
        for number, point in enumerate(
            {"P0": a, "P1": a, "P2": b, "P3": b} for a in range(0, 40, 2) for b in range(0, 40, 2)
        )
    ]

    def work(token: Token) -> object:
        request = PlanRequest(
            "p", "t", "s", 7, 1, {"tool": "x", "batch": 16}, space, {}, trials, cancel=token
        )
        return Tuner().propose(request)

    stopped(work)


def trial(point: dict[str, int], value: int) -> Any:
    return Trial({"params": point}, point, "measured", 1.0 + value)


# ---- the workspace -------------------------------------------------------------------------------------


def test_a_snapshot_ends_and_nothing_was_begun(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    with space.lock():
        pass
    for number in range(300):
        (space.directory / f"f{number}").write_text(str(number))
    reading = space._scanner.disk.open_file

    def slow(*given: Any) -> int:
        time.sleep(0.05)
        return reading(*given)

    space._scanner.disk.open_file = slow  # type: ignore[method-assign]
    stopped(lambda token: space.begin("e1", token))
    space._scanner.disk.open_file = reading  # type: ignore[method-assign]
    assert space.pending() is None
    space.begin("e2")
    assert space.rollback() == []


def test_waiting_for_a_held_workspace_ends(tmp_path: Path) -> None:
    mine = Workspace(tmp_path / "ws", tmp_path / "store", wait_s=60)
    other = Workspace(tmp_path / "ws", tmp_path / "store")

    def work(token: Token) -> None:
        with mine.lock(token):
            raise AssertionError("it was held")

    with other.lock():
        stopped(work)
    with mine.lock():
        pass


def test_what_a_transaction_did_not_commit_is_undone(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "ws", tmp_path / "store")
    with space.transaction("e1"):
        (space.directory / "kept").write_text("1")
        kept = space.commit()
    space.settle()
    with space.transaction("e2"):
        (space.directory / "refused").write_text("2")
    with pytest.raises(Cancelled), space.transaction("e3"):
        (space.directory / "broken-off").write_text("3")
        raise Cancelled
    with pytest.raises(OSError), space.transaction("e4"):
        (space.directory / "after").write_text("4")
        space.commit()
        raise OSError("the outcome could not be kept")
    assert space.snapshot() == kept
    assert [path.name for path in space.directory.iterdir()] == ["kept"]


# ---- the token -----------------------------------------------------------------------------------------


def test_sleeping_and_working_apart_end_with_the_token() -> None:
    stopped(lambda token: cancel.sleep(60, token))
    token = Token()
    token.set()
    began: list[int] = []
    with pytest.raises(Cancelled):
        apart(lambda: began.append(1), token)
    assert began == []
    assert apart(lambda: 7, None) == 7
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0, Token())
    with pytest.raises(TimeoutError):
        apart(lambda: time.sleep(3), Token(), limit_s=0.01)


TUNES = TUNING.replace("BUDGET { steps: 500 }", "BUDGET { steps: 40 }")


@pytest.mark.parametrize("kind", ["tools", "validators", "proposers"])
def test_a_run_whose_adapter_is_cancelled_does_that_step_again(tmp_path: Path, kind: str) -> None:
    """The adapter gets the run's token; nothing of the broken-off step is recorded or stays."""
    run = start(tmp_path, TUNES)
    adapters = dict(getattr(run.performer.host, kind))
    (name,) = [one for one in adapters if one in ("write", "Timer", "shrink")]
    verb = {"tools": "run", "validators": "measure", "proposers": "propose"}[kind]

    class BrokenOff:
        entry = adapters[name].entry

        def __getattr__(self, asked: str) -> Any:
            if asked != verb:
                raise AttributeError(asked)

            def call(request: Any) -> Any:
                assert request.cancel is run.performer.cancel
                if kind == "tools":
                    (request.workspace / "half").write_text("half a step")
                run.performer.cancel.set()
                cancel.check(request.cancel)

            return call

    whole = run.performer.host
    run.performer.host = replace(whole, **{kind: {**adapters, name: BrokenOff()}})
    assert run.advance("full_auto") == "interrupted"
    pending, count = run.pending(), run.ledger.count
    assert pending.name == name and not (run.workspace.directory / "half").exists()
    assert run.workspace.pending() is None
    run.close()
    again = reopen(tmp_path)
    assert again.pending().id == pending.id
    assert again.advance("full_auto") == "ended" and again.state.status == "succeeded"
    records = [record for record, _ in again.ledger.read()]
    assert sum(record.body.get("of") == pending.id for record in records[count:]) == 1
    assert replay(records).difference is None
    again.close()
