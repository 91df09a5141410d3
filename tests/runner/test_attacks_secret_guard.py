"""What the judge permits of the attacks in a sandbox is carried out in one, and reaches nothing protected."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks_kit import attacks, stocked
from gate_kit import CHECKED, constitution, world
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action
from spak.policy.judge import judge
from spak.ports import MIB, Job, Limits
from spak.runner import Host
from spak.runner.secret_guard import SecretGuard
from spak.sandbox import Restricted
from spak.sandbox.masked import Masked
from spak.secrets.mask import masks
from spak.workspace import Workspace

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

SANDBOXED: list[Fact] = [*CHECKED, ("sandboxed", (Name("/action"), Name("/restricted")))]
VALUES = {
    ".env": "kq7-Sturmflut-0x5e",
    "conf/.env": "Zr9.wolkenbruch.44",
    "secrets/db.txt": "vT3-hagelkorn-81pq",
}
LIMITS = Limits(wall_s=1.5, cpu_s=1, memory_bytes=128 * MIB, processes=32, file_bytes=MIB)


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def prepared(base: Path) -> Path:
    """The workspace with values of its own in its secrets, all of it committed."""
    root = stocked(base)
    shutil.rmtree(root / "build/bare")
    for name, value in VALUES.items():
        (root / name).write_text(f"PASSWORD={value}\n")
    for words in (("init", "-q"), ("add", "-Af"), ("commit", "-qm", "x")):
        person = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        subprocess.run(["git", *person, *words], cwd=root, check=True, capture_output=True)
    return root


def test_permitted_attacks_reach_nothing_protected(tmp_path: Path) -> None:
    root = prepared(tmp_path)
    eyes = world(root)
    lines = [
        line
        for _, line in attacks()
        if judge(constitution(), Action("shell", {"command": line}), eyes, SANDBOXED).decision == "allow"
    ]
    assert len(lines) > 50
    guard = SecretGuard(Host(), Workspace(root, root.parent / "store"))
    guard.look(fresh=True)
    before = dict(digests(root / ".git")), dict(digests(root.parent / "outside"))
    paths = (*VALUES, "id_rsa", ".netrc", "keys/deploy.pem")
    launcher = Masked(Restricted(), root, masks(paths, frozenset()))
    found = []
    for line in lines:
        ended = launcher.run(Job(("bash", "-c", line), root, limits=LIMITS))
        assert ended.status != "launcher", ended.detail
        said = guard.clean((ended.stdout.data + ended.stderr.data).decode("utf-8", "replace"))
        flat = "".join(said.split())
        found += [line for value in VALUES.values() if value in flat]
    assert found == []
    assert (dict(digests(root / ".git")), dict(digests(root.parent / "outside"))) == before
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert not (stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID))
    print(f"{len(lines)} attacks permitted in a sandbox, 0 with an effect")
