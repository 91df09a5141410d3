"""The script of docs/ci.md and `spak run --server`, against a platform with a worker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

import warm_kit
from platform_kit import ROOT, Up, manage, running, seeded
from process_kit import WAIT_S
from sources_kit import Repository

SPAK = str(ROOT / ".venv/bin/spak")
MADE = """
from spakweb.work.specs.actions import create_spec
from spakweb.ground.teams.models import User
from spakweb.work.teams import tokens
alice = User.objects.get(username="alice")
team = alice.memberships.first().team
for name, path in (("good", "given.txt"), ("bad", "missing.txt")):
    create_spec(alice, team, name, 'task Look { step read: tool.read_file { path: "%s" } }' % path)
create_spec(alice, team, "asks", 'task Ask { step hear: llm.query { prompt: "A word." output_var: word } }')
create_spec(alice, team, "makes", '''task Make {
  step w: tool.write_file { path: "out.txt" content: "made" }
  step m: tool.write_file { path: "conftest.py" content: "x = 1" } }''')
print(team.slug, tokens.make(alice, "ci", 7, team, ["start"])[1])
"""

SOURCE = """
from spakweb.work.sources import actions
actions.add(alice, team, "app", "%s", ["main"])
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


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "given.txt").write_text("text\n")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def called(env: Mapping[str, str], *words: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """`spak WORDS`, in a folder that says nothing of it."""
    return warm_kit.run([SPAK, *words], cwd=ROOT, env=env, input=input, timeout=WAIT_S)


def pasted(up: Up, checkout: Path, **about: str) -> subprocess.CompletedProcess[str]:
    """What the script of docs/ci.md does in a checkout."""
    found = re.search(r"```sh\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    assert found is not None
    return subprocess.run(
        ["sh", "-c", found[1]], cwd=checkout, env={**os.environ, "SPAK_URL": up.url, **about},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("spec", "state", "code"),
    [
        ("good", "succeeded", 0),
        ("bad", "failed", 1),
        pytest.param("asks", "waiting", 4, marks=pytest.mark.findings("B9")),
    ],
)
def test_the_pasted_script_ends_as_the_run_does(
    platform: tuple[Up, str, str], checkout: Path, spec: str, state: str, code: int
) -> None:
    up, team, secret = platform
    about = {"SPAK_TEAM": team, "SPAK_SPEC": spec, "SPAK_TOKEN": secret, "BUILD": f"b-{spec}"}
    keys = set()
    for _ in range(2):  # the job runs again: the same run
        done = pasted(up, checkout, **about)
        assert done.returncode == code, done.stdout + done.stderr
        keys.add(done.stdout.split("\n")[0])
        assert done.stdout.strip().endswith(f": {state}") and secret not in done.stdout + done.stderr
    assert len(keys) == 1
    suite = ElementTree.parse(checkout / "spak.xml").getroot()[0]
    assert (suite.get("failures") == "0") == (code != 1)
    assert (suite.get("errors") == "0") == (code != 4)
    assert not [path.name for path in checkout.glob(".spak*")]


@pytest.mark.findings("B35")
def test_the_pasted_script_says_why_the_platform_refuses(
    platform: tuple[Up, str, str], checkout: Path
) -> None:
    up, team, secret = platform
    done = pasted(up, checkout, SPAK_TEAM=team, SPAK_SPEC="missing", SPAK_TOKEN=secret, BUILD="b")
    assert done.returncode == 2, done.stdout + done.stderr
    assert '"code": "web.404"' in done.stderr or '"code":"web.404"' in done.stderr
    assert "Traceback" not in done.stderr
    done = pasted(up, checkout, SPAK_URL="http://127.0.0.1:1", SPAK_TEAM=team, SPAK_SPEC="good",
                  SPAK_TOKEN=secret, BUILD="b")  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (7, False)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("spec", "state", "code"), [("good", "completed, unchecked", 0), ("bad", "failed", 1)]
)
def test_spak_is_a_client(
    platform: tuple[Up, str, str], tmp_path: Path, spec: str, state: str, code: int
) -> None:
    up, team, secret = platform
    files = tmp_path / "files"
    files.mkdir()
    (files / "given.txt").write_text("text\n")
    home = os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    kept = called(home, "login", up.url, input=f"{secret}\n")
    assert kept.returncode == 0, kept.stderr
    assert f"  team {team}\n" in kept.stderr and secret not in kept.stdout + kept.stderr
    words = ["--server", up.url, "--files", str(files), "--wait", "--junit", str(tmp_path / "spak.xml")]
    done = called(home, "run", f"{team}/{spec}@1", *words)
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("run ") and f"/t/{team}/runs/" in lines[0]
    assert any(line.startswith("  Look/read: ") for line in lines)
    assert any(f": {state}" in line for line in lines)
    assert ElementTree.parse(tmp_path / "spak.xml").getroot()[0].get("failures") == (
        "0" if code == 0 else "2"
    )
    if code == 0:
        words += ["--artifacts", str(tmp_path / "made")]
        done = called(home, "run", f"{team}/makes", *words)
        assert done.returncode == 0 and (tmp_path / "made/out.txt").read_text() == "made", done.stderr
        assert done.stderr.count("may run by itself where a tool finds it: conftest.py") == 1
        assert "finds it: out.txt" not in done.stderr
    again = [
        "run",
        f"{team}/{spec}",
        "--server",
        up.url,
        "--json",
        "--wait",
        "--idempotency-key",
        f"k-{spec}",
    ]
    found = [json.loads(called(home, *again).stdout) for _ in range(2)]
    assert found[0]["key"] == found[1]["key"] and found[0]["ended"]
    gone = [called(home, "logout", up.url, "--json") for _ in "ab"]
    assert [json.loads(one.stdout)["known"] for one in gone] == [True, False]
    assert called(home, *again).returncode == 2


def test_a_spec_or_version_that_is_not_there(platform: tuple[Up, str, str]) -> None:
    up, team, secret = platform
    home = os.environ | {"SPAK_TOKEN": secret}
    for name, known in (
        (f"{team}/none", "web.404"),
        (f"{team}/good@9", "web.run_version"),
        ("x", "usage.arguments"),
    ):
        done = called(home, "run", name, "--server", up.url)
        assert done.returncode == 2 and f"[{known}]" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.sandbox
def test_the_client_runs_on_a_source_of_the_operators_disk(tmp_path: Path, place: Path) -> None:
    """A whole platform with a worker of its own, and a repository in a folder that the operator names."""
    data = Path(shutil.copytree(place, tmp_path / "data"))
    repository = Repository(tmp_path / "git" / "app.git")
    repository.commit({"given.txt": b"text\n"})
    folders = {"SPAK_WEB_SOURCE_FOLDERS": str(tmp_path / "git")}
    made = f"{MADE.replace('good', 'on source').replace('bad', 'not there')}{SOURCE % repository.folder}"
    team, secret = manage(data, "shell", "--no-imports", "-c", made, **folders).stdout.split()[-2:]
    with running(data, **folders) as up:
        done = called(
            {**os.environ, "SPAK_TOKEN": secret, "HOME": str(tmp_path)},
            "run", f"{team}/on-source", "--server", up.url, "--source", "app", "--wait", "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["source"]["commit"] == repository.head()
