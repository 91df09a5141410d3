"""The script of docs/ci.md, pasted against a platform with a worker: a run that succeeds, one that fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from platform_kit import ROOT, Up, manage, running, seeded

MADE = """
from spakweb.specs.actions import create_spec
from spakweb.teams.models import User
from spakweb.teams import tokens
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
for name, path in (("good", "given.txt"), ("bad", "missing.txt")):
    create_spec(alice, team, name, 'task Look { step read: tool.read_file { path: "%s" } }' % path)
print(team.slug, tokens.make(alice, "ci", 7, team, ["start"])[1])
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(seeded(tmp_path_factory), tmp_path_factory.mktemp("ci") / "data"))


@pytest.fixture(scope="module")
def platform(place: Path) -> Iterator[tuple[Up, str, str]]:
    done = manage(place, "shell", "--no-imports", "-c", MADE)
    team, secret = done.stdout.split()[-2:]
    with running(place) as up:
        yield up, team, secret


@pytest.mark.sandbox
@pytest.mark.parametrize(("spec", "state", "code"), [("good", "succeeded", 0), ("bad", "failed", 1)])
def test_the_pasted_script_ends_as_the_run_does(
    platform: tuple[Up, str, str], tmp_path: Path, spec: str, state: str, code: int
) -> None:
    up, team, secret = platform
    found = re.search(r"```sh\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    assert found is not None
    (tmp_path / "given.txt").write_text("text\n")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    about = {
        "SPAK_URL": up.url,
        "SPAK_TEAM": team,
        "SPAK_SPEC": spec,
        "SPAK_TOKEN": secret,
        "BUILD": f"b-{spec}",
    }
    keys = set()
    for _ in range(2):  # the job runs again: the same run
        done = subprocess.run(
            ["sh", "-c", found[1]], cwd=tmp_path, env=os.environ | about, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        keys.add(done.stdout.split("\n")[0])
        assert done.stdout.strip().endswith(f": {state}") and secret not in done.stdout + done.stderr
    assert len(keys) == 1
    suite = ElementTree.parse(tmp_path / "spak.xml").getroot()[0]
    assert suite.get("failures") == ("0" if code == 0 else "2") and suite.get("errors") == "0"
    assert not (tmp_path / ".spak-header").exists()
