"""The restricted launcher: what a job sees, how each end is named, and that nothing is left of it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from process_kit import WAIT_S, happens, until
from sandbox_kit import living, sh
from spak import sandbox
from spak.cancel import Cancelled
from spak.errors import UnavailableError
from spak.ports import MIB, Job, Limits, Outcome
from spak.sandbox import Restricted, cgroup, chain, live, restricted, slots

pytestmark = pytest.mark.sandbox

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def launcher() -> Restricted:
    return Restricted()


def gone(mark: str) -> bool:
    return happens(lambda: not living(mark))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_host_that_is_short_of_something_says_nothing_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def short(*words: object, **more: object) -> None:
        raise OSError(number, os.strerror(number))

    restricted._version.cache_clear()  # else nothing is asked of a program that was asked before
    monkeypatch.setattr(restricted.subprocess, "run", short)
    with pytest.raises(UnavailableError) as caught:
        Restricted()
    assert caught.value.code == "unavailable.host" and os.strerror(number) in caught.value.message


# ---- ordinary work


def test_odd_names(launcher: Restricted, workspace: Path) -> None:
    odd = workspace / os.fsdecode(b"a b\nc'\"$(id)\xff -- *")
    odd.mkdir()
    outcome = launcher.run(sh('echo content > "$1" && cat "$1"', odd))
    assert outcome.status == "exited"
    outcome = launcher.run(Job(("touch", "--", "-n\n"), odd))
    assert outcome.exit == 0 and (odd / "-n\n").exists()


def test_a_virtual_environment_works_where_only_its_owner_can_go(
    launcher: Restricted, tmp_path: Path
) -> None:
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    (private / "ws").mkdir()
    (private / "ws" / "test_it.py").write_text("def test_it():\n    assert 6 * 7 == 42\n")
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    binds = (Path(sys.prefix), Path(sys.base_prefix))
    plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    outcome = launcher.run(Job(argv, private / "ws", binds=binds, env=plain))
    assert outcome.exit == 0, outcome
    assert b"1 passed" in outcome.stdout.data
    outcome = launcher.run(sh(f"touch {sys.prefix}/probe", private / "ws", binds=binds))
    assert outcome.exit != 0 and not Path(sys.prefix, "probe").exists()


# ---- limits and ends


EATER = "x = [bytearray(16 << 20) for _ in range(1000)]"


@pytest.mark.parametrize("grouped", [True, False], ids=["control group", "watched"])
def test_memory(
    launcher: Restricted, workspace: Path, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    if not grouped:
        monkeypatch.setattr(cgroup, "create", lambda memory_bytes: None)
    binds = (Path(sys.prefix), Path(sys.base_prefix))
    limits = Limits(wall_s=WAIT_S, memory_bytes=256 * MIB)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The watched eater stays below the wide limit on its data, so the watcher has to find it.
    code = EATER if grouped else "import time; x = [bytearray(16 << 20) for _ in range(40)]; time.sleep(300)"
    outcome = launcher.run(Job((sys.executable, "-I", "-c", code), workspace, limits=limits, binds=binds))
    assert outcome.status == "oom" and outcome.detail
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss < 50_000


def test_memory_of_a_child_that_is_replaced_again_and_again(launcher: Restricted, workspace: Path) -> None:
    text = f"while :; do {sys.executable} -I -c '{EATER}'; done"
    limits = Limits(wall_s=WAIT_S, cpu_s=int(WAIT_S), memory_bytes=128 * MIB)
    outcome = launcher.run(
        sh(text, workspace, limits=limits, binds=(Path(sys.prefix), Path(sys.base_prefix)))
    )
    assert outcome.status == "oom"


def test_fork_bomb(launcher: Restricted, workspace: Path) -> None:
    mark = f"bomb{os.getpid()}{random.randrange(10**6)}"
    done: list[Outcome] = []
    limits = Limits(wall_s=2, processes=64)
    job = Job(
        ("/bin/bash", "-c", "bomb() { bomb | bomb & }; while :; do bomb; done", mark),
        workspace,
        limits=limits,
    )
    thread = threading.Thread(target=lambda: done.append(launcher.run(job)))
    thread.start()
    while thread.is_alive():
        assert subprocess.run(["true"]).returncode == 0
        time.sleep(0.05)
    thread.join()
    assert done[0].status in ("timeout", "limit")
    assert gone(mark)
    assert launcher.run(sh("true | true", workspace)).exit == 0


@pytest.mark.parametrize("size", [10**8, pytest.param(10**9, marks=[pytest.mark.slow, pytest.mark.faults])])
def test_much_output(launcher: Restricted, workspace: Path, size: int) -> None:
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = f"echo first; head -c {size} /dev/zero; echo last"
    outcome = launcher.run(sh(text, workspace, limits=Limits(wall_s=100)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss < 50_000
    stream = outcome.stdout
    assert outcome.exit == 0 and stream.truncated and len(stream.data) == MIB
    assert stream.size == size + 11
    assert stream.data.startswith(b"first\n\0") and stream.data.endswith(b"\0last\n")
    sha = hashlib.sha256(b"first\n")
    for _ in range(size // 10**6):
        sha.update(bytes(10**6))
    sha.update(b"last\n")
    assert stream.sha256 == urlsafe_b64encode(sha.digest())[:43].decode()


def test_file_size_and_cpu_time(launcher: Restricted, workspace: Path) -> None:
    limits = Limits(wall_s=30, cpu_s=1, file_bytes=MIB)
    outcome = launcher.run(sh("exec head -c 2M /dev/zero > big", workspace, limits=limits))
    assert outcome.status == "limit" and "SIGXFSZ" in outcome.detail
    for text in ("while :; do :; done", "trap '' XCPU; while :; do :; done"):
        outcome = launcher.run(sh(text, workspace, limits=limits))
        assert outcome.status == "limit", outcome
        # The kernel's limit counts ticks, the control group nanoseconds: they part on a busy virtual machine.
        assert 600 <= outcome.cpu_ms < 4000


def test_cpu_time_of_many_processes_counts_together(launcher: Restricted, workspace: Path) -> None:
    text = "for n in 1 2 3 4; do (while :; do :; done) & done; wait"
    outcome = launcher.run(sh(text, workspace, limits=Limits(wall_s=60, cpu_s=1)))
    assert outcome.status == "limit" and outcome.cpu_ms < 4000


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the foreign architecture is 32-bit x86")
def test_a_foreign_system_call_kills(launcher: Restricted, workspace: Path) -> None:
    (workspace / "foreign.c").write_text(
        'int main(void) { int r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20)); return r > 0 ? 0 : 1; }'
    )
    assert launcher.run(Job(("gcc", "-o", "foreign", "foreign.c"), workspace)).exit == 0
    outcome = launcher.run(Job(("./foreign",), workspace))
    assert outcome.status == "crash" and "SIGSYS" in outcome.detail


# ---- side by side


def test_two_at_once_do_not_share_a_limit(launcher: Restricted) -> None:
    limits = Limits(wall_s=30, processes=24)
    text = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 1 & done; wait; id -u > me"
    done: list[Outcome] = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        for folder in (one, two):
            Path(folder).chmod(0o755)
        threads = [
            threading.Thread(
                target=lambda job: done.append(launcher.run(job)),
                args=(sh(text, Path(folder), limits=limits),),
            )
            for folder in (one, two)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [outcome.exit for outcome in done] == [0, 0], done
        owners = {Path(folder, "me").stat().st_uid for folder in (one, two)}
        assert len(owners) == (2 if ROOT else 1)


def test_a_second_sandbox_in_the_same_workspace(launcher: Restricted, workspace: Path) -> None:
    child = launcher.start(sh("read -r _; echo done > late", workspace, stdin=b""), ())
    child.wait(WAIT_S)
    first = launcher.start(Job(("sleep", "300"), workspace))
    assert launcher.run(sh("echo now > made", workspace)).exit == 0
    assert first.poll() is None
    first.kill()
    assert (workspace / "made").read_text() == "now\n"


# ---- a child that its starter talks to


def test_start_passes_descriptors_and_tells_the_process_id(launcher: Restricted, workspace: Path) -> None:
    mine, theirs = os.pipe()
    back, answer = os.pipe()
    text = (
        f"import os; os.write({answer}, str(os.getpid()).encode() + os.read({mine}, 9)); os.read({mine}, 1)"
    )
    job = Job((sys.executable, "-I", "-c", text), workspace, binds=(Path(sys.prefix), Path(sys.base_prefix)))
    child = launcher.start(job, pass_fds=(mine, answer))
    os.close(mine)
    os.close(answer)
    os.write(theirs, b" heard")
    assert os.read(back, 100) == b"1 heard"
    assert child.poll() is None
    status = Path(f"/proc/{child.pid}/status").read_text()
    assert "NSpid:\t" in status and status.split("NSpid:")[1].split("\n")[0].split()[-1] == "1"
    clock = (~child.pid << 3) | 2
    assert time.clock_gettime_ns(clock) > 0
    os.close(theirs)
    os.close(back)
    outcome = child.wait(WAIT_S)
    assert (outcome.status, outcome.exit) == ("exited", 0)
    assert child.poll() == 0


def test_kill_returns_when_nothing_lives(launcher: Restricted, workspace: Path) -> None:
    mark = f"33.{os.getpid()}{random.randrange(10**6)}"
    child = launcher.start(sh(f"(setsid sleep {mark} &); echo up; exec sleep {mark}", workspace))
    pid = child.pid
    while len(living(mark)) < 2:
        time.sleep(0.01)
    child.kill()
    assert living(mark) == [] and not Path(f"/proc/{pid}").exists()
    outcome = child.wait(0)
    assert (outcome.status, outcome.exit) == ("exited", 137) and outcome.detail
    child.kill()


def test_the_lock_lives_as_long_as_the_sandbox(launcher: Restricted, workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    token, ended = threading.Event(), []

    def job() -> None:
        with suppress(Cancelled):
            launcher.run(sh("echo >begun; sleep 300", workspace, inherit=(lock,), cancel=token))
        ended.append(True)

    runner = threading.Thread(target=job)
    runner.start()
    until((workspace / "begun").exists)
    os.close(lock)
    other = os.open(path, os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    token.set()
    runner.join(WAIT_S)
    assert ended
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_a_first_process_takes_no_lock(launcher: Restricted, workspace: Path, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    outcome = launcher.start(sh("true", workspace, inherit=(lock,))).wait(0)
    os.close(lock)
    assert outcome.status == "launcher" and "first process" in outcome.detail


def test_a_job_of_its_own_has_no_lock_open(launcher: Restricted, workspace: Path, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    seen = launcher.run(sh("ls -l /proc/self/fd", workspace, inherit=(lock,))).stdout.data
    os.close(lock)
    assert b"pipe:" in seen and b"lock" not in seen


@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["open", "hidden"])
def test_nothing_outlives_a_killed_runner(
    launcher: Restricted, workspace: Path, tmp_path: Path, mode: int
) -> None:
    """kill -9 at any moment of a start: no job goes on, and the lock that went in comes free."""
    (workspace / "ws").mkdir()
    workspace.chmod(mode)
    path = tmp_path / "lock"
    mark = f"34.{os.getpid()}{random.randrange(10**6)}"
    chance = random.Random(5)
    for _ in range(25):
        pid = os.fork()
        if pid == 0:
            try:
                lock = os.open(path, os.O_RDWR | os.O_CREAT)
                fcntl.flock(lock, fcntl.LOCK_EX)
                launcher.run(Job(("sleep", mark), workspace / "ws", inherit=(lock,)))
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert gone(mark), living(mark)
        lock = os.open(path, os.O_RDWR | os.O_CREAT)
        until(partial(_locked, lock), "the lock is still held")
        os.close(lock)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# ---- a supervisor that is stopped for a while


@pytest.mark.parametrize(
    ("job", "status"),
    [("sleep 0.3", "exited"), ("sleep 3", "exited"), ("sleep 600", "timeout")],
    ids=["ended meanwhile", "ends soon after", "does not end"],
)
@pytest.mark.parametrize("by_starter", [False, True], ids=["its own limit", "its starter's"])
def test_time_in_which_the_supervisor_was_stopped_does_not_count(
    launcher: Restricted, workspace: Path, job: str, status: str, by_starter: bool
) -> None:
    """Stopped for longer than the job may take; the job goes on by itself."""
    limits = Limits(wall_s=30 if by_starter else 2)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            asked = sh(f"echo > begun; {job}", workspace, limits=limits)
            found = launcher.start(asked).wait(2) if by_starter else launcher.run(asked)
            os.write(writing, found.status.encode())
        finally:
            os._exit(1)
    os.close(writing)
    while not (workspace / "begun").exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    assert os.read(reading, 99) == status.encode()
    os.close(reading)


# ---- whether it works at all


def test_probe_and_description(launcher: Restricted) -> None:
    assert launcher.probe() == ""
    [row] = sandbox.describe(["restricted"])
    assert row["launcher"] == "restricted" and row["ok"] is True and row["mend"] == ""
    assert "bubblewrap" in str(row["detail"]) and "memory by" in str(row["detail"])


def fake(folder: Path, body: str, version: str = "bubblewrap 0.8.0") -> str:
    """A search path whose bwrap answers --version and then does what the body says."""
    program = folder / "bwrap"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\n{body}\n')
    program.chmod(0o755)
    return f"{folder}:{restricted._SEARCH}"


REFUSAL = "bwrap: No permissions to create new namespace, likely because the kernel does not allow it"


def test_a_bubblewrap_that_does_not_work(
    monkeypatch: pytest.MonkeyPatch, workspace: Path, open_programs: Path
) -> None:
    for body, said, mend in (
        (f"echo '{REFUSAL}' >&2; exit 1", "No permissions", "sysctl"),
        (
            'echo "bwrap: Can\'t mount proc on /newroot/proc: Operation not permitted" >&2; exit 1',
            "proc",
            "container",
        ),
        ("exit 0", "setting up", "docs/sandbox.md"),
    ):
        monkeypatch.setattr(restricted, "_SEARCH", fake(open_programs, body))
        broken = Restricted()
        outcome = broken.run(Job(("true",), workspace))
        assert outcome.status == "launcher" and said in outcome.detail
        assert said in broken.probe() and mend in broken.probe()
        [row] = sandbox.describe(["restricted"])
        assert row["ok"] is False and mend in str(row["mend"])


def test_a_bubblewrap_that_hangs(
    monkeypatch: pytest.MonkeyPatch, workspace: Path, open_programs: Path
) -> None:
    mark = f"35.{os.getpid()}{random.randrange(10**6)}"
    monkeypatch.setattr(restricted, "_SEARCH", fake(open_programs, f"sleep {mark} & sleep {mark}"))
    monkeypatch.setattr(live, "START_S", 0.3)
    outcome = Restricted().run(Job(("true",), workspace))
    assert outcome.status == "launcher" and "not up after" in outcome.detail
    assert living(mark) == []


def test_a_sandbox_that_does_not_isolate(launcher: Restricted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nonce comes back, and so does a file of the host."""
    monkeypatch.setattr(chain, "_sights", lambda *given: ["--ro-bind", "/", "/", "--proc", "/proc"])
    assert "does not isolate" in launcher.probe()


@pytest.fixture
def open_programs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_missing_or_old_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, open_programs: Path
) -> None:
    monkeypatch.setattr(restricted, "_SEARCH", str(tmp_path))
    with pytest.raises(UnavailableError) as caught:
        Restricted()
    assert caught.value.code == "unavailable.sandbox" and "bubblewrap" in caught.value.hint
    [row] = sandbox.describe(["restricted"])
    assert (
        row["launcher"] == "restricted"
        and row["ok"] is False
        and "apt-get install bubblewrap" in str(row["mend"])
    )
    monkeypatch.setattr(restricted, "_SEARCH", fake(open_programs, "", version="bubblewrap 0.4.1"))
    with pytest.raises(UnavailableError):
        Restricted()


@pytest.mark.skipif(not ROOT, reason="only root has slots")
def test_a_user_whose_processes_are_still_there_is_passed_over(launcher: Restricted, tmp_path: Path) -> None:
    """Of a sandbox whose starter was killed: they count against the limit of the next one."""
    slot = slots.take(tmp_path)
    left = [subprocess.Popen(["sleep", "1000"], user=slot.uid) for _ in range(12)]
    slot.release()
    try:
        done = launcher.run(Job(("true",), tmp_path, limits=Limits(wall_s=60, processes=9)))
        assert (done.status, done.exit) == ("exited", 0), done.detail
        child = launcher.start(Job(("true",), tmp_path, limits=Limits(wall_s=60, processes=9)))
        assert child.wait(60).status == "exited"
    finally:
        for process in left:
            process.kill()
            process.wait()


@pytest.mark.skipif(not ROOT, reason="only root has slots")
def test_no_slot_left(launcher: Restricted, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "UIDS", range(0))
    outcome = launcher.run(Job(("true",), workspace))
    assert outcome.status == "launcher" and "taken" in outcome.detail
