"""The docker launcher on a real engine: what a job sees, how each end is named, and what is left."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sandbox_kit
from process_kit import WAIT_S, happens, start, until
from sandbox_kit import living, sh
from spak import data, sandbox
from spak.errors import UnavailableError
from spak.ports import MIB, Job, Limits, Outcome
from spak.sandbox import Docker, GVisor, chain, docker, docker_engine, docker_warm, images

pytestmark = pytest.mark.sandbox

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def launcher() -> Iterator[Docker]:
    sandbox_kit.docker_ready()
    yield Docker()
    docker.leave()


def containers(launcher: Docker, owner: str = "") -> list[str]:
    wanted = f"{docker_engine.LABEL}={owner or docker_engine.owner()}"
    return [one["Id"] for one in launcher._client.containers(all=True, filters={"label": [wanted]})]


def gone(launcher: Docker, owner: str) -> bool:
    return happens(lambda: not containers(launcher, owner))


# ---- ordinary work


def test_the_image_compiles(launcher: Docker, workspace: Path) -> None:
    (workspace / "a.c").write_text("int main(void) { return 42; }\n")
    assert launcher.run(sh("gcc a.c -o a && ./a", workspace)).exit == 42


# ---- one container, many jobs


def test_jobs_of_a_workspace_share_a_container_and_nothing_else(launcher: Docker, workspace: Path) -> None:
    docker._pool.close()
    assert gone(launcher, docker_engine.owner())
    mark = f"30.{os.getpid()}{random.randrange(10**6)}"
    leave = (
        "mkdir -p /tmp/a/b && touch /tmp/a/b/c && chmod 0 /tmp/a/b; echo secret > /dev/shm/x; "
        f"(setsid sleep {mark} &) ; echo $$"
    )
    assert launcher.run(sh(leave, workspace)).status == "exited"
    first = containers(launcher)
    outcome = launcher.run(sh("ls -A /tmp /dev/shm", workspace))
    assert outcome.stdout.data == b"/dev/shm:\n\n/tmp:\n" and living(mark) == []
    assert containers(launcher) == first and len(first) == 1
    launcher.run(sh("true", workspace, writable=False))
    assert len(containers(launcher)) == 2


def test_what_cannot_be_cleaned_ends_the_container(launcher: Docker, workspace: Path) -> None:
    text = (
        "import ctypes; number = ctypes.CDLL(None).shmget(7, 4096, 0o1600); "
        "print(number >= 0)"
    )  # fmt: skip
    docker._pool.close()
    outcome = launcher.run(Job(("python3", "-c", text), workspace))
    assert outcome.stdout.data == b"True\n" and gone(launcher, docker_engine.owner())


def test_a_folder_made_anew_gets_a_container_anew(launcher: Docker, workspace: Path) -> None:
    inner = workspace / "ws"
    for content in ("one", "two"):
        inner.mkdir()
        (inner / "given").write_text(content)
        assert launcher.run(sh("cat given; rm given", inner)).stdout.data.decode() == content
        inner.rmdir()


def test_a_container_that_ended_meanwhile(launcher: Docker, workspace: Path) -> None:
    launcher.run(sh("true", workspace))
    for number in containers(launcher):
        docker_engine.remove(launcher._client, number)
    assert launcher.run(sh("echo again", workspace)).stdout.data == b"again\n"


def test_two_jobs_at_once_in_one_workspace(launcher: Docker, workspace: Path) -> None:
    found: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: found.append(launcher.run(sh("sleep 0.5; echo $$", workspace))))
        for _ in range(3)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.exit for one in found] == [0, 0, 0]


def test_an_idle_container_goes(launcher: Docker, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker._pool.close()
    monkeypatch.setattr(docker_warm, "IDLE_S", 0.2)
    launcher.run(sh("true", workspace))
    assert containers(launcher) and gone(launcher, docker_engine.owner())


# ---- jobs that cannot start


def test_what_an_engine_does_not_take_is_an_outcome(launcher: Docker, workspace: Path) -> None:
    odd = workspace / os.fsdecode(b"\xff")
    odd.mkdir()
    outcome = launcher.run(Job(("true",), odd))
    assert outcome.status == "launcher" and "UTF-8" in outcome.detail
    assert "descriptors" in launcher.start(Job(("true",), workspace), (1,)).wait(1).detail


# ---- limits and ends


def test_memory(launcher: Docker, workspace: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "data = []\nwhile True: data.append(bytearray(1 << 20))"
    limits = Limits(memory_bytes=64 * MIB, wall_s=30)
    outcome = launcher.run(Job(("python3", "-c", text), workspace, limits=limits))
    assert (outcome.status, outcome.exit) == ("oom", 137) and "memory" in outcome.detail
    first, last = "head -c 200000000 /dev/zero | tail -c 200000000", "wc -c"
    assert launcher.run(sh(f"{first} | {last}", workspace, limits=limits)).status == "oom"
    child = "(python3 -c 'bytearray(1 << 30)'; true); sleep 20"
    outcome = launcher.run(sh(child, workspace, limits=limits))  # the whole job ends at the first kill
    assert outcome.status == "oom" and outcome.wall_ms < 15_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_fork_bomb(launcher: Docker, workspace: Path) -> None:
    text = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    limits = Limits(wall_s=2, processes=32)
    outcome = launcher.run(Job(("python3", "-c", text), workspace, limits=limits))
    assert outcome.status in ("timeout", "limit")
    subprocess.run(["true"], check=True)
    assert launcher.run(sh("true", workspace)).exit == 0


@pytest.mark.parametrize(
    "text, limits, exit",
    [
        ("while :; do :; done", Limits(cpu_s=1, wall_s=30), {128 + signal.SIGXCPU, 137}),
        ("yes | yes | yes > /dev/null", Limits(cpu_s=1, wall_s=30), {128 + signal.SIGXCPU, 137}),
        ("exec head -c 20000000 /dev/zero > big", Limits(file_bytes=MIB), {128 + signal.SIGXFSZ}),
    ],
    ids=["one", "together", "file"],
)  # fmt: skip
def test_limits(launcher: Docker, workspace: Path, text: str, limits: Limits, exit: set[int]) -> None:
    outcome = launcher.run(sh(text, workspace, limits=limits))
    assert outcome.status == "limit" and outcome.exit in exit, outcome
    assert outcome.detail


def test_output_without_end(launcher: Docker, workspace: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 100_000_000
    outcome = launcher.run(sh(f"printf head; head -c {size} /dev/zero; printf tail", workspace))
    out = outcome.stdout
    assert out.truncated and out.size == size + 8 and len(out.data) == MIB
    assert out.data.startswith(b"head\0") and out.data.endswith(b"\0tail")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    whole = hashlib.sha256(b"head" + bytes(size) + b"tail").digest()
    assert out.sha256 == urlsafe_b64encode(whole)[:43].decode()


def test_a_job_that_kills_what_watches_it(launcher: Docker, workspace: Path) -> None:
    """It ends itself that way, and says nothing that would be believed."""
    docker._pool.close()
    outcome = launcher.run(sh("trap '' TERM; kill -9 -1; sleep 5", workspace, limits=Limits(wall_s=10)))
    assert outcome.status == "crash" and outcome.exit == 137
    assert gone(launcher, docker_engine.owner())
    forged = f"{'0' * 32} x 0 0 0".ljust(64)
    outcome = launcher.run(sh(f"printf '%s' '{forged}' >&2; exit 9", workspace))
    assert outcome.exit == 9 and outcome.stderr.data == forged.encode()


def test_a_child_is_ended_by_its_starter(launcher: Docker, workspace: Path) -> None:
    child = launcher.start(Job(("sleep", "300"), workspace))
    assert child.poll() is None
    child.kill()
    assert child.wait(1).detail == "ended by its starter"
    assert launcher.start(Job(("sleep", "300"), workspace)).wait(0.5).status == "timeout"
    assert launcher.start(sh("exit 3", workspace)).wait(WAIT_S).exit == 3


# ---- nothing stays behind

RUNNER = """
import sys
from pathlib import Path
from spak.ports import Job
from spak.sandbox import Docker, docker_engine
print(docker_engine.owner(), flush=True)
Docker().run(Job(("/bin/sh", "-c", "echo > begun; sleep " + sys.argv[2]), Path(sys.argv[1])))
"""


@pytest.mark.faults
def test_a_runner_that_is_killed_leaves_nothing(launcher: Docker, workspace: Path) -> None:
    mark = f"32.{os.getpid()}{random.randrange(10**6)}"
    with start(
        [sys.executable, "-c", RUNNER, str(workspace), mark], stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdout is not None
        owner = runner.stdout.readline().strip()
        until((workspace / "begun").exists)
        assert containers(launcher, owner) and living(mark)
        runner.kill()
    assert gone(launcher, owner) and living(mark) == []


def test_what_the_dead_left_is_swept_up(launcher: Docker) -> None:
    namespace = docker_engine.owner().partition("-")[0]
    dead, living, elsewhere = f"{namespace}-999999999-1", docker_engine.owner(), "1-999999999-1"
    made = {}
    for owner in (dead, living, elsewhere):
        body = {"Image": docker.IMAGE, "Labels": {docker_engine.LABEL: owner}}
        made[owner] = launcher._client.create_container_from_config(body, None)["Id"]
    try:
        assert docker_engine.sweep(launcher._client) >= 1
        assert containers(launcher, dead) == [] and made[living] in containers(launcher, living)
        assert containers(launcher, elsewhere) == [made[elsewhere]]
    finally:
        for number in made.values():
            docker_engine.remove(launcher._client, number)


# ---- probe, doctor, configuration


def test_probe_and_description(launcher: Docker) -> None:
    [row] = sandbox.describe(["docker"])
    assert row["ok"] is True and "limits of memory and processes kept" in str(row["detail"])


def test_a_container_that_does_not_isolate(launcher: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    real = docker_engine.container

    def open_box(*given: Any) -> dict[str, Any]:
        body = real(*given)
        body["HostConfig"] |= {"NetworkMode": "host"}
        return body

    monkeypatch.setattr(docker_engine, "container", open_box)
    assert "does not isolate" in launcher.probe()


def test_limits_that_are_not_kept(launcher: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    real = docker_engine.container

    def loose(*given: Any) -> dict[str, Any]:
        body = real(*given)
        body["HostConfig"] |= {"Memory": 0, "MemorySwap": 0}
        return body

    monkeypatch.setattr(docker_engine, "container", loose)
    assert launcher.describe().endswith("NOT kept: memory")


def test_an_engine_that_has_no_image_or_an_old_one(launcher: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nameless(Docker):
        image_name = "spak-no-such-image:latest"

    with pytest.raises(UnavailableError) as caught:
        Nameless()
    assert caught.value.code == "unavailable.sandbox" and "spak sandbox build" in caught.value.hint
    monkeypatch.setattr(docker, "guest_hash", lambda: "another")
    with pytest.raises(UnavailableError) as caught:
        Docker()
    assert "another version" in caught.value.message


def test_gvisor_where_it_is_not_installed(launcher: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GVisor, "runtime", "no-such-runtime")
    with pytest.raises(UnavailableError) as caught:
        GVisor()
    assert "no runtime no-such-runtime" in caught.value.message and caught.value.hint


def test_the_image_says_what_is_in_it(launcher: Docker) -> None:
    labels = launcher._client.inspect_image(docker.IMAGE)["Config"]["Labels"]
    assert labels[docker_engine.GUEST_LABEL] == docker.guest_hash()
    assert labels[images.WAY_LABEL] in images.WAYS
    assert any(item.startswith("coreutils=") for item in labels[images.PACKAGES_LABEL].split())


def test_no_set_user_program_in_the_image(launcher: Docker, workspace: Path) -> None:
    outcome = launcher.run(sh("find / -xdev -perm /6000 -type f 2>/dev/null", workspace))
    assert outcome.stdout.data == b""


def test_an_engine_that_does_not_see_our_files_gets_the_notice_beside_the_workspace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As for a worker in a container: it shares the folder of the runs with the engine, and nothing else."""
    sandbox_kit.docker_ready()
    engine = Docker()
    tmp_path.chmod(0o755)
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / ".env").write_text("PASSWORD=hunter22")
    elsewhere = tmp_path / "inside-the-worker"
    elsewhere.write_bytes(data.path(chain.MASK).read_bytes())
    whole = docker_engine.container

    def container(*args: Any) -> dict[str, Any]:
        return whole(*(Path(f"{elsewhere}-gone") if one == elsewhere else one for one in args))

    monkeypatch.setattr(docker_engine, "container", container)
    monkeypatch.setattr(docker_warm.data, "path", lambda name: elsewhere)
    outcome = engine.run(Job(("cat", ".env"), folder, masked=(".env",)))
    assert outcome.stdout.data.startswith(b"# masked"), outcome
    assert (tmp_path / docker_warm.NOTICE).stat().st_mode & 0o777 == 0o444
