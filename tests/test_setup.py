"""scripts/setup.sh on machines that lack something, played by a PATH with a few programs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("bash", "cat", "cksum", "grep", "mktemp", "rm", "tail", "sort", "dirname", "pwd")
SYSTEM = ("gcc", "make", "setpriv", "prlimit", "bwrap")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the script's other half is for Linux")


class Machine:
    """A clone with a space in its path, and the programs that it finds."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "a clone"
        self.bin = folder / "bin"
        self.log = folder / "log"
        (self.clone / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("pyproject.toml", "requirements.lock", "scripts/setup.sh"):
            (self.clone / name).write_bytes((ROOT / name).read_bytes())
        for name in NEEDED:
            found = shutil.which(name)
            assert found, name
            (self.bin / name).symlink_to(found)
        self.script("uname", "echo Linux")
        self.script("id", "echo 1000")
        for name in SYSTEM:
            self.script(name, "exit 0")
        self.script("python3", f'exec "{sys.executable}" "$@"')
        self.script("uv", f'[ "$1" = --version ] && exit 0; echo "uv $*" >> "{self.log}"; exit 1')
        self.script("apt-get", f'echo "apt-get $*" >> "{self.log}"; exit 1')

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(self.clone / "scripts" / "setup.sh")],
            env={"PATH": str(self.bin), "HOME": os.devnull, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=WAIT_S,
            check=False,
        )

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def stamped(self) -> None:
        """As a finished set-up leaves it."""
        (self.clone / ".venv" / "bin").mkdir(parents=True)
        (self.clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
        fingerprint = subprocess.run(
            ["bash", "-c", "{ pwd; cat requirements.lock pyproject.toml scripts/setup.sh; } | cksum"],
            cwd=self.clone,
            capture_output=True,
            text=True,
            check=True,
        )
        (self.clone / ".venv" / ".spak-setup").write_text(fingerprint.stdout)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_to_do_is_silent_and_asks_nobody(machine: Machine) -> None:
    machine.stamped()
    done = machine.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls() == []


def test_a_changed_lock_is_noticed(machine: Machine) -> None:
    machine.stamped()
    with (machine.clone / "requirements.lock").open("a") as lock:
        lock.write("\n")
    assert machine.set_up().returncode != 0
    assert any(call.startswith("uv ") for call in machine.calls())


def test_without_root_it_prints_one_command_and_stops(machine: Machine) -> None:
    (machine.bin / "bwrap").unlink()
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.count("sudo ") == 1
    assert "    sudo apt-get install -y bubblewrap\n" in done.stderr
    assert machine.calls() == []
    assert not (machine.clone / ".venv").exists()


def test_as_root_it_installs_only_what_is_missing(machine: Machine) -> None:
    machine.script("id", "echo 0")
    (machine.bin / "gcc").unlink()
    log = f'echo "apt-get $*" >> "{machine.log}"'
    failing = f'{log}; [ "$1" = update ] && exit 0; echo "E: no such package"; exit 1'
    machine.script("apt-get", failing)
    done = machine.set_up()
    assert machine.calls() == [
        "apt-get update -q",
        "apt-get install -y -q --no-install-recommends gcc libc6-dev",
    ]
    assert done.returncode == 1
    assert "E: no such package" in done.stderr
    assert "    apt-get update && apt-get install -y gcc libc6-dev\n" in done.stderr


def test_another_distribution_gets_its_own_words(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    (machine.bin / "bwrap").unlink()
    machine.script("dnf", "exit 1")
    done = machine.set_up()
    assert done.returncode == 1
    assert "    sudo dnf install -y bubblewrap\n" in done.stderr


def test_an_old_python_is_named(machine: Machine) -> None:
    machine.script("python3", "exit 1")
    done = machine.set_up(PYTHON="python3")
    assert done.returncode == 1
    assert "PYTHON=python3 is not Python 3.11 or later" in done.stderr
