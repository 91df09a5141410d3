"""What every launcher that runs jobs keeps to, whatever it is made of."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import struct
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sandbox_kit
from process_kit import WAIT_S
from sandbox_kit import living, sh
from spak import config
from spak.ports import Job, Launcher, Limits
from spak.sandbox import Docker, Restricted, docker, slots

pytestmark = pytest.mark.sandbox

ROOT = os.geteuid() == 0
WORDS = ("printf", "%s|", "$HOME", "*", "a b", "; true", "", os.fsdecode(b"\xff"))


def container() -> Docker:
    sandbox_kit.docker_ready()
    return Docker()


@pytest.fixture(scope="module", params=[Restricted, container], ids=["restricted", "docker"])
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    make: Callable[[], Launcher] = request.param
    yield make()
    if make is container:
        docker.leave()


def test_exit_code_streams_and_place(launcher: Launcher, workspace: Path) -> None:
    outcome = launcher.run(sh('cat; pwd; echo "$HOME $GIVEN $TMPDIR"; echo no >&2; exit 7', workspace,
                              stdin=b"typed\n", env={"GIVEN": "a b"}))  # fmt: skip
    assert (outcome.status, outcome.exit) == ("exited", 7)
    assert outcome.stdout.data == b"typed\n/ws\n/ws a b /tmp\n"
    assert not outcome.stdout.truncated and outcome.stdout.size == len(outcome.stdout.data)
    assert outcome.stderr.data == b"no\n" and outcome.stderr.size == 3
    assert outcome.stderr.sha256 == urlsafe_b64encode(hashlib.sha256(b"no\n").digest())[:43].decode()


def test_a_job_may_stand_in_a_folder_of_the_workspace(launcher: Launcher, workspace: Path) -> None:
    (workspace / "a b").mkdir()
    assert launcher.run(sh("pwd; touch x", workspace, folder="a b")).stdout.data == b"/ws/a b\n"
    assert (workspace / "a b/x").exists()
    gone = launcher.run(sh("touch y", workspace, folder="gone"))
    assert gone.status == "launcher" and not (workspace / "y").exists()


def test_files_made_inside_stand_in_the_workspace(launcher: Launcher, workspace: Path) -> None:
    (workspace / "given").write_text("before")
    (workspace / "given").chmod(0o600)
    assert launcher.run(sh("cat given > made && echo after > given", workspace)).exit == 0
    assert (workspace / "made").read_text() == "before" and (workspace / "given").read_text() == "after\n"
    info = (workspace / "made").stat()
    assert info.st_mode & 0o777 == 0o644
    assert info.st_uid in slots.UIDS if ROOT else info.st_uid == os.geteuid()


def test_read_only_workspace(launcher: Launcher, workspace: Path) -> None:
    (workspace / "given").write_text("text")
    outcome = launcher.run(sh("cat given; echo more >> given", workspace, writable=False))
    assert outcome.exit != 0 and outcome.stdout.data == b"text"
    assert (workspace / "given").read_text() == "text"


WRITE_GIT = """
echo x > .git/new; echo x >> .git/HEAD; mv .git g; rm -rf .git
mkdir -p in/.git && echo x > in/.git/HEAD; cat .git/HEAD
"""


@pytest.mark.parametrize("shape", ["folder", "file"])
def test_the_repository_is_closed_unless_the_job_opens_it(
    launcher: Launcher, workspace: Path, shape: str
) -> None:
    if shape == "folder":
        (workspace / ".git").mkdir()
    head = workspace / (".git/HEAD" if shape == "folder" else ".git")
    head.write_text("ref: refs/heads/main\n")
    outcome = launcher.run(sh(WRITE_GIT, workspace))
    assert outcome.stdout.data == (b"ref: refs/heads/main\n" if shape == "folder" else b"")
    assert head.read_text() == "ref: refs/heads/main\n"
    assert (workspace / "in/.git/HEAD").read_text() == "x\n", "only the one at the top"
    outcome = launcher.run(sh(f"echo x > {head.relative_to(workspace)}", workspace, repository=True))
    assert outcome.exit == 0 and head.read_text() == "x\n"


def test_a_workspace_without_a_repository_needs_none(launcher: Launcher, workspace: Path) -> None:
    assert launcher.run(sh("echo made > made", workspace)).exit == 0
    assert sorted(path.name for path in workspace.iterdir()) == ["made"]
    (workspace / ".git").symlink_to("made")
    assert launcher.run(sh("echo again > made", workspace)).exit == 0


@pytest.mark.parametrize("argv, code", [(("no-such-program",), 127), (("/usr",), 126), (("./text",), 126)])
def test_a_program_that_cannot_run_is_the_jobs_own_exit(
    launcher: Launcher, workspace: Path, argv: tuple[str, ...], code: int
) -> None:
    (workspace / "text").write_text("not a program")
    outcome = launcher.run(Job(argv, workspace))
    assert (outcome.status, outcome.exit) == ("exited", code)
    assert outcome.stderr.data


def test_words_are_not_read_by_a_shell(launcher: Launcher, workspace: Path) -> None:
    assert launcher.run(Job(("exit", "3"), workspace)).exit == 127
    assert launcher.run(Job(WORDS, workspace)).stdout.data == b"$HOME|*|a b|; true||\xff|"


def test_a_toolchain_at_its_own_path(launcher: Launcher, workspace: Path) -> None:
    (workspace / "test_it.py").write_text("def test_it():\n    assert 6 * 7 == 42\n")
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    binds, plain = config.toolchain().binds, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    outcome = launcher.run(Job(argv, workspace, binds=binds, env=plain))
    assert outcome.exit == 0 and b"1 passed" in outcome.stdout.data, outcome
    outcome = launcher.run(sh(f"touch {sys.prefix}/probe", workspace, binds=binds))
    assert outcome.exit != 0 and not Path(sys.prefix, "probe").exists()


def test_what_starts_a_job_does_not_obey_its_variables(launcher: Launcher, workspace: Path) -> None:
    """Code that they load would run before the limits are in force. The job's own loader complains once."""
    outcome = launcher.run(Job(("/bin/true",), workspace, env={"LD_PRELOAD": "/ws/none.so"}))
    assert outcome.exit == 0 and outcome.stderr.data.count(b"LD_PRELOAD") == 1, outcome
    outcome = launcher.run(Job(("/bin/true",), workspace, env={"LD_DEBUG": "files"}))
    assert b"/bin/sh" not in outcome.stderr.data and b"/bin/true" in outcome.stderr.data, outcome


@pytest.mark.parametrize("name", ["PLAIN", "spak_0", "A.B", "a-b", "LD_X", "BASH_FUNC_echo%%", "9", "IFS"])
def test_a_variable_reaches_the_job_as_it_is(launcher: Launcher, workspace: Path, name: str) -> None:
    given = {name: "$(id) \"' \\n*", "EMPTY": "", "PATH": "/usr/bin"}
    outcome = launcher.run(Job(("env", "-0"), workspace, env=given))
    found = dict(word.split("=", 1) for word in outcome.stdout.data.decode().split("\0") if word)
    assert outcome.exit == 0 and {key: found[key] for key in given} == given, outcome
    assert set(found) - set(given) <= {"HOME", "TMPDIR", "LANG", "PWD", "_", "SHLVL", "OLDPWD"}


def test_refusals_are_outcomes(launcher: Launcher, workspace: Path) -> None:
    folder = os.open("/", os.O_RDONLY)
    jobs = [
        Job((), workspace),
        Job(("",), workspace / "missing"),
        Job(("echo", "a\0b"), workspace),
        Job(("-c", "id"), workspace),
        Job(("true",), workspace, env={"A=B": "c"}),
        Job(("true",), workspace, env={"A": "\0"}),
        Job(("true",), workspace, binds=(Path("/no/such/toolchain"),)),
        Job(("true",), workspace, binds=(Path("relative"),)),
        Job(("true",), workspace, binds=(Path("/"),)),
        Job(("true",), workspace, binds=(Path("/proc/1"),)),
        Job(("true",), workspace, inherit=(folder,)),
        Job(("true",), workspace, inherit=(9999,)),
        Job(("echo", "x" * 10_000_000), workspace),
    ]
    try:
        for job in jobs:
            outcome = launcher.run(job)
            assert (outcome.status, outcome.exit) == ("launcher", 125), job
            assert outcome.detail and not outcome.stdout.data
            child = launcher.start(job)
            assert child.wait(WAIT_S).status == "launcher" and child.poll() == 125
            child.kill()
    finally:
        os.close(folder)
    assert launcher.run(Job(("true",), workspace)).exit == 0


@pytest.mark.skipif(not ROOT, reason="only root changes owners")
def test_folders_of_the_system_are_not_workspaces(launcher: Launcher) -> None:
    before = Path("/usr").stat()
    for folder in ("/", "/usr", "/etc", "/tmp", "/root"):
        outcome = launcher.run(Job(("true",), Path(folder)))
        assert outcome.status == "launcher" and "workspace" in outcome.detail
    assert Path("/usr").stat().st_uid == before.st_uid


def test_timeout_ends_whatever_hides(launcher: Launcher, workspace: Path) -> None:
    mark = f"31.{os.getpid()}{random.randrange(10**6)}"
    text = (
        f"trap '' TERM HUP INT; echo partial; (setsid sleep {mark} &) ; (trap '' TERM; sleep {mark}) & "
        f"setsid sh -c '(sleep {mark} </dev/null >/dev/null 2>&1 &)'; sleep {mark}"
    )
    outcome = launcher.run(sh(text, workspace, limits=Limits(wall_s=0.5)))
    assert (outcome.status, outcome.exit) == ("timeout", 124)
    assert outcome.stdout.data == b"partial\n" and 450 <= outcome.wall_ms < 6000
    assert living(mark) == []


def test_what_a_job_leaves_in_the_background_ends_with_it(launcher: Launcher, workspace: Path) -> None:
    mark = f"32.{os.getpid()}{random.randrange(10**6)}"
    outcome = launcher.run(sh(f"setsid sleep {mark} & exit 4", workspace))
    assert (outcome.status, outcome.exit) == ("exited", 4)
    assert living(mark) == []


def test_a_crash_is_not_an_exit(launcher: Launcher, workspace: Path) -> None:
    outcome = launcher.run(sh("kill -SEGV $$", workspace))
    assert (outcome.status, outcome.exit) == ("crash", 128 + signal.SIGSEGV)
    assert "SIGSEGV" in outcome.detail


def test_wait_and_wall_time_end_a_child(launcher: Launcher, workspace: Path) -> None:
    child = launcher.start(Job(("sleep", "300"), workspace))
    assert child.poll() is None and child.wait(0.2).status == "timeout"
    child = launcher.start(Job(("sleep", "300"), workspace, limits=Limits(wall_s=0.2)))
    assert child.wait(WAIT_S).status == "timeout"


def test_more_filter_for_a_child(launcher: Launcher, workspace: Path) -> None:
    """A second program that refuses uname with EPERM."""
    number = {"x86_64": 63, "aarch64": 160}[os.uname().machine]
    lines = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    extra = b"".join(struct.pack("=HBBI", *line) for line in lines)
    job = sh("uname || echo refused; grep Seccomp: /proc/self/status", workspace)
    outcome = launcher.start(job, seccomp_extra=extra).wait(WAIT_S)
    assert outcome.stdout.data == b"refused\nSeccomp:\t2\n"
    assert launcher.start(job, seccomp_extra=b"odd").wait(WAIT_S).status == "launcher"


def test_its_output_is_heard_while_it_runs(launcher: Launcher, workspace: Path) -> None:
    """The job waits for a file that is made when its first words are heard."""
    pieces: dict[int, bytes] = {1: b"", 2: b""}

    def heard(number: int, chunk: bytes) -> None:
        pieces[number] += chunk
        if b"ready" in pieces[1]:
            (workspace / "go").touch()

    line = "echo ready; until [ -e go ]; do sleep 0.01; done; echo no >&2; head -c 300000 /dev/zero"
    outcome = launcher.run(sh(line, workspace, heard=heard, limits=Limits(wall_s=20, output_bytes=1000)))
    assert (outcome.status, outcome.exit) == ("exited", 0)
    assert pieces == {1: b"ready\n" + bytes(300000), 2: b"no\n"}, "all of it, and nothing of ours"
    assert outcome.stdout.truncated
