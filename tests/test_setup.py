"""scripts/setup.sh on machines that lack something, played by a PATH with a few programs in it.

The programs that install only note how they were called: what they install is in tests/test_lock.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[1]
USERS = ("requirements.lock",)
ALL = ("requirements.lock", "requirements-dev.lock")
STAMPS = {USERS: ".spak-setup-users", ALL: ".spak-setup"}
NEEDED = ("awk", "bash", "cat", "cksum", "grep", "mktemp", "rm", "tail", "sort", "dirname", "pwd")
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
        for name in ("pyproject.toml", *ALL, "requirements-uv.lock", "scripts/setup.sh"):
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

    def set_up(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(self.clone / "scripts" / "setup.sh"), *words],
            env={"PATH": str(self.bin), "HOME": os.devnull, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=WAIT_S,
            check=False,
        )

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def without_uv(self, pip: str) -> None:
        """A python3 whose venv has a pip that runs these lines; an install puts no uv there by itself."""
        self.script("uv", "exit 1")
        inner = f"""#!/bin/bash
case "$*" in
*"pip "*install*) echo "${{0%/bin/*}} $*" >> "{self.log}"; {pip};;
*"config list"*) echo "global.index-url='file:///mirror'";;
*"-m pip"*) exit 0;;
*) exec "{sys.executable}" "$@";;
esac
"""
        (self.clone / "python").write_text(inner)
        self.script(
            "python3",
            f"""case "$*" in
"-m venv "*)
    mkdir -p "$3/bin"; cp python "$3/bin/python"; chmod +x "$3/bin/python"
    echo "$PWD/$3" > "$3/bin/activate";;
*sys.executable*) command -v python3;;
*) exec "{sys.executable}" "$@";;
esac""",
        )
        for name in ("mkdir", "cp", "chmod"):
            (self.bin / name).symlink_to(shutil.which(name) or name)

    def stamped(self, locks: tuple[str, ...]) -> None:
        """As a finished set-up leaves it."""
        (self.clone / ".venv" / "bin").mkdir(parents=True)
        (self.clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
        fingerprint = subprocess.run(
            ["bash", "-c", f"{{ pwd; cat {' '.join(locks)} pyproject.toml scripts/setup.sh; }} | cksum"],
            cwd=self.clone,
            capture_output=True,
            text=True,
            check=True,
        )
        (self.clone / ".venv" / STAMPS[locks]).write_text(fingerprint.stdout)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("locks", "words"),
    [(ALL, ()), (USERS, ("users",)), (ALL, ("users",))],
    ids=["complete", "users", "users of a complete one"],
)
def test_nothing_to_do_is_silent_and_asks_nobody(
    machine: Machine, locks: tuple[str, ...], words: tuple[str, ...]
) -> None:
    machine.stamped(locks)
    done = machine.set_up(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls() == []


@pytest.mark.parametrize("lock", ALL)
def test_a_changed_lock_is_noticed(machine: Machine, lock: str) -> None:
    machine.stamped(ALL)
    with (machine.clone / lock).open("a") as file:
        file.write("\n")
    assert machine.set_up().returncode != 0
    assert any(call.startswith("uv ") for call in machine.calls())


def test_users_get_what_users_need(machine: Machine) -> None:
    machine.set_up("users")
    machine.script("uv", f'echo "uv $*" >> "{machine.log}"; [ "$1" != venv ] || mkdir -p .venv')
    (machine.bin / "mkdir").symlink_to(shutil.which("mkdir") or "")
    machine.log.unlink()
    machine.set_up("users")
    packages = [call for call in machine.calls() if "--require-hashes" in call]
    assert [call.partition("--require-hashes ")[2] for call in packages] == ["-r requirements.lock"]
    machine.set_up()
    assert machine.calls()[-2].endswith("--require-hashes -r requirements.lock -r requirements-dev.lock")


def test_a_set_of_users_lacks_the_tests(machine: Machine) -> None:
    machine.stamped(USERS)
    machine.set_up()
    assert machine.calls()


def test_an_unknown_word_is_refused(machine: Machine) -> None:
    done = machine.set_up("user")
    assert (done.returncode, done.stderr) == (2, "usage: scripts/setup.sh [users]\n")


def test_uv_is_fetched_where_there_is_none_and_follows_pip(machine: Machine) -> None:
    log = f'echo "uv $* from $UV_DEFAULT_INDEX" >> "{machine.log}"'
    uv = f'#!/bin/sh\n{log}\n[ "$1" != venv ] || mkdir -p .venv\n'
    (machine.clone / "fetched").write_text(uv)
    machine.without_uv('cp fetched "${0%/*}/uv"; chmod +x "${0%/*}/uv"')
    done = machine.set_up("users")
    calls = machine.calls()
    fetch = calls[0]
    assert fetch.startswith(".uv ")
    assert fetch.endswith("--require-hashes --only-binary :all: -r requirements-uv.lock")
    assert any("--require-hashes -r requirements.lock from file:///mirror" in call for call in calls), calls
    assert not any(call.startswith(".venv ") for call in calls)
    assert "fetching uv" in done.stderr


def test_without_any_uv_pip_installs_and_shows_how_far_it_is(machine: Machine) -> None:
    machine.without_uv(
        'case "$*" in *uv.lock*) echo "ERROR: no such wheel"; exit 1;; esac; '
        'for n in {1..40}; do echo "Collecting p$n==1"; done; echo "Installing collected packages: p1"'
    )
    done = machine.set_up("users")
    assert done.returncode == 0, done.stderr
    assert "uv could not be fetched (ERROR: no such wheel); using pip" in done.stderr
    assert "setup: 20 of" in done.stderr
    assert "setup: 40 of" in done.stderr
    assert "setup: unpacking 40 packages" in done.stderr
    assert machine.set_up("users").stderr == ""  # stamped


def test_an_install_that_failed_is_not_stamped(machine: Machine) -> None:
    machine.without_uv("echo ERROR: no network; exit 1")
    assert machine.set_up("users").returncode != 0
    assert not (machine.clone / ".venv" / STAMPS[USERS]).exists()


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
