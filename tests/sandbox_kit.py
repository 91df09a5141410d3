"""The probes of tests/sandbox/probes.toml for any launcher, and an engine for the tests of containers.

`words()` sets up what the attacks look for; `score` says which probes did not end as they must. Those of one
kind go in as one job, each a process of its own in it; those that go to a limit have a job each.
`docker_ready()` gives an engine with our image, or skips; where SPAK_TEST_ENGINE says that one was started
it fails instead.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from spak.errors import UnavailableError
from spak.ports import MIB, Job, Launcher, Limits

HERE = Path(__file__).parent / "sandbox"
PROBES: list[dict[str, Any]] = tomllib.loads((HERE / "probes.toml").read_text())["probe"]
LIMITS = Limits(wall_s=20, processes=32, file_bytes=16 * MIB, memory_bytes=256 * MIB)
TOOLCHAIN = (Path(sys.prefix), Path(sys.base_prefix))
SECRET = "a-token-of-the-launching-process"
MASKED = {".env": "PASSWORD={}\n", "app/config/id_rsa": "{}\n", "app/.aws/credentials": "key = {}\n"}
"""Files of every probe's workspace that hold `PLAIN` and are masked; the last one by its folder."""
MASKS = (".env", "app/config/id_rsa", "app/.aws")
PLAIN = "the-teams-plain-password"


def sh(text: str, workspace: Path, **more: Any) -> Job:
    return Job(("/bin/sh", "-c", text), workspace, **more)


def living(mark: str) -> list[str]:
    """Command lines with the mark, of other processes than this one that are not dead already."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError, PermissionError):
            continue
        if mark in line and state not in "ZX" and entry.name != str(os.getpid()):
            found.append(line)
    return found


@contextmanager
def words() -> Iterator[dict[str, str]]:
    """What the attacks look for, all of it there on the host."""
    with (
        tempfile.NamedTemporaryFile("w") as host_file,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        host_file.write(SECRET)
        host_file.flush()
        Path(host_file.name).chmod(0o644)
        name = f"spak-probe-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        os.environ["SPAK_PROBE_SECRET"] = SECRET
        top = TOOLCHAIN[1].parts
        yield {
            "host_file": host_file.name,
            "host_pid": str(os.getpid()),
            "port": str(listener.getsockname()[1]),
            "abstract": name,
            "secret": SECRET,
            "masked": PLAIN,
            "toolchain_top": top[2] if top[1] in ("root", "home") else "none",
        }
        del os.environ["SPAK_PROBE_SECRET"]


def text_of(probe: dict[str, Any], words: dict[str, str]) -> str:
    text: str = probe.get("sh") or probe["python"]
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return text


def argv(probes: list[dict[str, Any]], words: dict[str, str]) -> tuple[str, ...]:
    """One job for probes of one kind: each runs as a process of its own, and a line says how it ended."""
    texts = [text_of(probe, words) for probe in probes]
    if "sh" in probes[0]:
        return ("/bin/sh", "-c", EACH_SH, "sh", *texts)
    return (sys.executable, "-I", "-c", (HERE / "probe_prelude.py").read_text() + EACH_PYTHON, *texts)


EACH_SH = """
for text; do
    said=$(/bin/sh -c "$text" </dev/null 2>&1)
    printf '%s:%s\\n' $? "$(echo $said | tail -c 300)"
done
"""
EACH_PYTHON = """
import signal, sys, traceback
for text in sys.argv[1:]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1), os.dup2(writer, 2), os.closerange(3, 64)
        signal.alarm(20)
        try:
            exec(text, globals())
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(writer, b' ')  # so that there is something, while children of the child may hold the other end
    said = os.read(reader, 1 << 16).decode(errors='replace')
    os.close(writer), os.close(reader)
    print(f"{code if code >= 0 else 128 - code}:{' '.join(said.split())[-300:]}", flush=True)
"""


def together(probes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What goes into one job: those of a kind; what eats up the job's limits goes by itself."""
    alone = [[probe] for probe in probes if probe["category"] == "limits"]
    for kind in ("sh", "python"):
        alone.append([probe for probe in probes if kind in probe and probe["category"] != "limits"])
    return [group for group in alone if group]


def score(
    launcher: Launcher,
    workspace: Path,
    probes: list[dict[str, Any]],
    words: dict[str, str],
    masked: tuple[str, ...] = MASKS,
) -> list[str]:
    """The probes that did not end as they must; only the must-pass ones when one of those failed."""

    def bad(must: str) -> list[str]:
        chosen = [probe for probe in probes if probe["must"] == must]
        found = []
        for probe, line in endings(launcher, workspace, chosen, words, masked):
            code = int(line.partition(":")[0]) if line[:1].isdigit() else 128
            if not (code == 0 if must == "pass" else 0 < code < 126):
                found.append(f"{probe['name']}: {line}")
        return found

    return bad("pass") or bad("fail")


def endings(
    launcher: Launcher,
    workspace: Path,
    probes: list[dict[str, Any]],
    words: dict[str, str],
    masked: tuple[str, ...] = MASKS,
) -> Iterator[tuple[dict[str, Any], str]]:
    """Each probe with its exit code and its last words, or how the sandbox ended before it."""
    for name, text in MASKED.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text.format(PLAIN))
    for group in together(probes):
        binds = () if "sh" in group[0] else TOOLCHAIN
        limits = replace(LIMITS, wall_s=LIMITS.wall_s + 3 * len(group))
        outcome = launcher.run(Job(argv(group, words), workspace, limits=limits, binds=binds, masked=masked))
        lines = outcome.stdout.data.decode(errors="replace").splitlines()
        said = outcome.stderr.data.decode(errors="replace").strip()[-300:]
        lines += [f"none:{outcome.status} {outcome.detail} {said}"] * (len(group) - len(lines))
        yield from zip(group, lines, strict=True)


@lru_cache
def _ready() -> str:
    """Empty when an engine has our image; built here if it has an engine and no image. Else why not."""
    from spak.sandbox import Docker

    with Path(tempfile.gettempdir(), f"spak-test-image-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            Docker()
        except UnavailableError as error:
            if "spak sandbox build" not in error.hint:
                return f"{error.message}; to fix: {error.hint}"
            from spak.sandbox import images

            images.build("host")
    return ""


def docker_ready() -> None:
    """Call it in a fixture of what needs an engine."""
    why = _ready()
    if why and os.environ.get("SPAK_TEST_ENGINE"):
        pytest.fail(f"an engine was started for the tests, and it does not work: {why}")
    if why:
        pytest.skip(f"NOT TESTED in containers: {why} (scripts/docker-engine.sh start)")
