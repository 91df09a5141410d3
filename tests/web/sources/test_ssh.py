"""Sources over ssh, with OpenSSH's server on loopback: deploy keys, keys of hosts, fetching, pushing."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs_kit import worked
from needs import missing
from platform_kit import free_port
from process_kit import until
from sources_kit import NAME, Repository
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Source
from spakweb.work.sources import actions, branches

RunFrom = Callable[..., Run]
ME = pwd.getpwuid(os.getuid()).pw_name
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
TEXT = """\
task Change {
  step new: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_exists("hello.txt")
}
"""


@dataclass
class Daemon:
    """A server of ssh that lets in who has a key of `keys`."""

    folder: Path
    port: int

    @property
    def host_key(self) -> str:
        return " ".join((self.folder / "host.pub").read_text().split()[:2])

    def let_in(self, *sources: Source) -> None:
        (self.folder / "keys").write_text("".join(f"{source.public_key}\n" for source in sources))

    def url(self, repository: Repository) -> str:
        return f"ssh://{ME}@{NAME}:{self.port}{repository.folder}"


def hears(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    if not SSHD:
        missing("OpenSSH's server", "openssh-server")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    made = Daemon(tmp_path / "sshd", free_port())
    made.folder.mkdir(mode=0o700)
    made.let_in()
    asked = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made.folder / "host")]
    subprocess.run(asked, check=True)
    options = {
        "ListenAddress": f"127.0.0.1:{made.port}", "HostKey": made.folder / "host", "PidFile": "none",
        "AuthorizedKeysFile": made.folder / "keys", "StrictModes": "no", "UsePAM": "no",
        "PasswordAuthentication": "no", "PermitRootLogin": "prohibit-password", "UseDNS": "no",
    }  # fmt: skip
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    log = made.folder / "log"
    process = subprocess.Popen([str(SSHD), "-D", "-f", os.devnull, "-E", str(log), *words])
    try:
        until(lambda: hears(made.port))
        yield made
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def over_ssh(ground: None, cast: Any, daemon: Daemon, repository: Repository) -> Source:
    made = actions.add(
        cast["alice"], cast.team, "app", daemon.url(repository), ["main"], host_keys=daemon.host_key
    )
    daemon.let_in(made)
    return made


def test_a_run_begins_over_ssh_and_its_branch_goes_back(
    cast: Any, over_ssh: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=TEXT)
    assert (run.state, run.reason) == ("succeeded", "")
    row = branches.ask(cast["rita"], run, approve=True)
    worked(branches.PUSH)
    row.refresh_from_db()
    assert (row.state, row.error) == ("pushed", "")
    assert repository.head(f"refs/heads/spak/{run.key}") == row.commit


def test_a_key_that_the_host_does_not_know_and_one_that_was_rotated(
    cast: Any, over_ssh: Source, daemon: Daemon, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    daemon.let_in()
    assert run_from().summary["error"]["code"] == "git.credentials"
    daemon.let_in(over_ssh)
    rotated = actions.rotate(cast["alice"], over_ssh)
    assert run_from().summary["error"]["code"] == "git.credentials"
    daemon.let_in(rotated)
    assert run_from().state == "succeeded"


def test_a_host_that_proves_itself_by_another_key(
    cast: Any, over_ssh: Source, daemon: Daemon, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    other = over_ssh.public_key.split()[:2]
    Source.objects.filter(pk=over_ssh.pk).update(host_keys=" ".join(other))
    assert run_from().summary["error"]["code"] == "git.host_key"


def test_a_repository_that_the_host_does_not_have(
    over_ssh: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.folder.rename(repository.folder.with_name("gone.git"))
    assert run_from().summary["error"]["code"] == "git.gone"
