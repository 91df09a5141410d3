"""The probes of probes.toml, all of them, in each way that the launcher can be started.

The set is void unless every must-pass probe passed: a sandbox that never starts keeps every attack out.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sandbox_kit
from process_kit import WAIT_S
from sandbox_kit import PROBES, argv, endings, score
from spak.ports import Job
from spak.sandbox import Restricted

pytestmark = pytest.mark.sandbox

ROOT = os.geteuid() == 0
ORDINARY_UID = 64999


@pytest.fixture
def words() -> Iterator[dict[str, str]]:
    with sandbox_kit.words() as found:
        yield found


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


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

    assert score(launcher, open_folder, PROBES, words) == []


def test_the_score_tells_what_went_otherwise(words: dict[str, str], open_folder: Path) -> None:
    """As a probe would that fails where it must pass, succeeds where it must fail, or tells nothing."""

    def probe(name: str, must: str, **text: str) -> dict[str, Any]:
        return {"name": name, "must": must, "category": "work", **text}

    launcher, ok = Restricted(), probe("ok", "pass", sh="true")
    odd = [
        probe("passes", "fail", sh="echo two; echo words"),
        probe("missing", "fail", sh="no-such-tool"),
        probe("refused", "fail", sh="false"),
        probe("passes too", "fail", python="print('x' * 5000)"),
        probe("crash", "fail", python="os.kill(os.getpid(), 9)"),
        probe("raises", "fail", python="raise OSError"),
    ]
    found = score(launcher, open_folder, [ok, *odd], words)
    assert [line.partition(":")[0] for line in found] == ["passes", "missing", "passes too", "crash"]
    void = probe("void", "pass", python="assert False")
    killed = probe("killed", "pass", sh="kill -9 $PPID")
    found = score(launcher, open_folder, [ok, void, killed, *odd], words)
    assert [line.partition(":")[0] for line in found] == ["killed", "void"]


def test_probes_in_a_workspace_that_only_its_owner_can_reach(words: dict[str, str], tmp_path: Path) -> None:
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    workspace = private / "ws"
    workspace.mkdir()
    words["workspace"] = str(workspace)
    launcher = Restricted()
    assert score(launcher, workspace, shell_only(), words) == []
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
        return score(Restricted(), workspace, shell_only(), words)

    if ROOT:
        os.chown(workspace, ORDINARY_UID, ORDINARY_UID)
    assert as_ordinary_user(work) == []


def test_probes_of_masks_notice_that_there_are_none(words: dict[str, str]) -> None:
    """Each in a workspace of its own, since they move and remove what they find."""
    words["workspace"] = ""
    unseen = []
    for probe in PROBES:
        if probe["category"] == "masks":
            with tempfile.TemporaryDirectory() as folder:
                Path(folder).chmod(0o755)
                for _, line in endings(Restricted(), Path(folder), [probe], words, masked=()):
                    if not line.startswith("0:"):
                        unseen.append(f"{probe['name']}: {line}")
    assert unseen == []


def test_probes_notice_what_they_look_for(words: dict[str, str]) -> None:
    """Outside of any sandbox, the harmless attacks succeed: a refusal inside is the sandbox's doing."""
    for probe in PROBES:
        if probe.get("on_host"):
            done = subprocess.run(argv([probe], words), capture_output=True, timeout=WAIT_S)
            assert done.stdout.startswith(b"0:"), (probe["name"], done.stdout)
