"""The probes of probes.toml, all of them, in each way that the launcher can be started.

The set is void unless every must-pass probe passed: a sandbox that never starts keeps every attack out.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spak.ports import MIB, Job, Limits, Outcome
from spak.sandbox import Restricted

pytestmark = pytest.mark.sandbox

HERE = Path(__file__).parent
PROBES: list[dict[str, Any]] = tomllib.loads((HERE / "probes.toml").read_text())["probe"]
LIMITS = Limits(wall_s=20, processes=32, file_bytes=16 * MIB, memory_bytes=256 * MIB)
TOOLCHAIN = (Path(sys.prefix), Path(sys.base_prefix))
ROOT = os.geteuid() == 0
SECRET = "a-token-of-the-launching-process"
ORDINARY_UID = 64999


@pytest.fixture
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
            "toolchain_top": top[2] if top[1] in ("root", "home") else "none",
        }
        del os.environ["SPAK_PROBE_SECRET"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def argv(probe: dict[str, Any], words: dict[str, str]) -> tuple[str, ...]:
    text = probe.get("sh") or (HERE / "probe_prelude.py").read_text() + probe["python"]
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return ("/bin/sh", "-c", text) if "sh" in probe else (sys.executable, "-I", "-c", text)


def score(run: Callable[[dict[str, Any]], Outcome], probes: list[dict[str, Any]]) -> list[str]:
    """The probes that did not end as they must; only the must-pass ones when one of those failed."""

    def bad(probe: dict[str, Any]) -> str:
        outcome = run(probe)
        ok = outcome.exit == 0 if probe["must"] == "pass" else 0 < outcome.exit < 126
        said = (outcome.stdout.data + outcome.stderr.data).decode(errors="replace").strip()[-300:]
        return "" if ok and outcome.status == "exited" else f"{probe['name']}: {outcome.status} {said}"

    void = [text for probe in probes if probe["must"] == "pass" and (text := bad(probe))]
    return void or [text for probe in probes if probe["must"] == "fail" and (text := bad(probe))]


def shell_only() -> list[dict[str, Any]]:
    return [probe for probe in PROBES if "sh" in probe]


def test_every_probe_says_what_it_must() -> None:
    assert {probe["must"] for probe in PROBES} == {"pass", "fail"}
    assert all(("sh" in probe) != ("python" in probe) and probe["category"] for probe in PROBES)
    assert len({probe["name"] for probe in PROBES}) == len(PROBES)
    assert sum(probe["must"] == "pass" for probe in PROBES) >= 9
    assert sum(probe["must"] == "fail" for probe in PROBES) >= 42


def test_all_probes(words: dict[str, str], open_folder: Path) -> None:
    launcher = Restricted()
    words["workspace"] = str(open_folder)

    def run(probe: dict[str, Any]) -> Outcome:
        binds = () if "sh" in probe else TOOLCHAIN
        return launcher.run(Job(argv(probe, words), open_folder, limits=LIMITS, binds=binds))

    assert score(run, PROBES) == []


def test_probes_in_a_workspace_that_only_its_owner_can_reach(words: dict[str, str], tmp_path: Path) -> None:
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    workspace = private / "ws"
    workspace.mkdir()
    words["workspace"] = str(workspace)
    launcher = Restricted()

    def run(probe: dict[str, Any]) -> Outcome:
        return launcher.run(Job(argv(probe, words), workspace, limits=LIMITS))

    assert score(run, shell_only()) == []
    assert private.stat().st_mode & 0o777 == 0o700


def as_ordinary_user(work: Callable[[], Any]) -> Any:
    """What `work` gives when a process without any privilege does it; here and now for one that is so."""
    if not ROOT:
        return work()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
            os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        result = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return pickle.loads(result)


def test_probes_started_by_an_ordinary_user(words: dict[str, str], open_folder: Path) -> None:
    workspace = open_folder / "ws"
    workspace.mkdir()
    if ROOT:
        os.chown(workspace, ORDINARY_UID, ORDINARY_UID)
    words["workspace"] = str(workspace)
    ready = Restricted()  # reads what ships while it may: a checkout in root's home is closed to others
    assert ready.run(Job(("true",), workspace)).status == "exited"

    def work() -> list[str]:
        launcher = Restricted()

        def run(probe: dict[str, Any]) -> Outcome:
            return launcher.run(Job(argv(probe, words), workspace, limits=LIMITS))

        return score(run, shell_only())

    if ROOT:
        os.chown(workspace, ORDINARY_UID, ORDINARY_UID)
    assert as_ordinary_user(work) == []


def test_probes_notice_what_they_look_for(words: dict[str, str]) -> None:
    """Outside of any sandbox, the harmless attacks succeed: a refusal inside is the sandbox's doing."""
    for probe in PROBES:
        if probe.get("on_host"):
            done = subprocess.run(argv(probe, words), capture_output=True, timeout=20)
            assert done.returncode == 0, (probe["name"], done.stderr)
