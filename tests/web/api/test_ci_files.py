"""The GitHub Action and the GitLab template of ci/: their scripts, as those hosts would run them, against a
platform that is served here; and what docs/ci.md shows of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
import yaml

from issuer_kit import Issuer
from runs_kit import tables
from spakweb.store.runs.models import Run, State
from spakweb.work.oidc import actions as oidc
from spakweb.work.oidc import keys
from spakweb.work.oidc.actions import Wanted
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams import tokens
from spakweb.work.worker import execute, queue

ROOT = Path(__file__).resolve().parents[3]
ACTION = yaml.safe_load((ROOT / "ci/action.yml").read_text())
TEMPLATE = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".spak"]
STEP = ACTION["runs"]["steps"][0]
SPEC = 'task Look { step read: tool.read_file { path: "given.txt" } }'
ASKS = 'task Ask { step q: llm.query { prompt: "which?" } }'


@pytest.fixture
def platform(
    live_server: Any, cast: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Callable[..., dict[str, str]]]]:
    """The address of a platform whose runs run as soon as they are started, and the environment of a job in a
    checkout with given.txt."""
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    monkeypatch.setattr(queue, "send", lambda key, queue="default": execute.advance(key))
    create_spec(cast["alice"], cast.team, "look", SPEC)
    create_spec(cast["alice"], cast.team, "ask", ASKS)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "given.txt").write_text("text\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=checkout, check=True)
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}

    def job(**more: str) -> dict[str, str]:
        return {**kept, "SPAK_URL": live_server.url, "SPAK_TEAM": cast.team.slug, "SPAK_SPEC": "look", **more}

    with tables():
        yield live_server.url, job


def checkout(tmp_path: Path) -> Path:
    return tmp_path / "checkout"


def in_gitlab(tmp_path: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a runner of GitLab does: the lines of the script in a shell, in the checkout."""
    script = "\n".join(TEMPLATE["script"])
    return subprocess.run(
        ["sh", "-c", script], cwd=checkout(tmp_path), env={**TEMPLATE["variables"], **env},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def in_github(
    tmp_path: Path, env: dict[str, str], **inputs: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """As a runner of GitHub does: inputs go where `env` of the step says. Gives the step's outputs too."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
    given |= {name.lower(): env.pop(f"SPAK_{name}") for name in ("URL", "TEAM", "SPEC")} | inputs
    named = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value)
        for name, value in STEP["env"].items()
    }
    output = tmp_path / "output"
    env |= {"GITHUB_ACTION_PATH": str(ROOT / "ci"), "GITHUB_OUTPUT": str(output), "GITHUB_ACTIONS": "true"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]], cwd=checkout(tmp_path),
        env={**env, **named}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = output.read_text().splitlines() if output.exists() else []
    return done, dict(line.split("=", 1) for line in lines)


@pytest.fixture
def issuer(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    settings.OIDC_REACH = ["public", "loopback"]
    monkeypatch.setattr(keys, "resolve", lambda host: ("127.0.0.1",))
    with Issuer() as made:
        yield made
    keys.forget()


class GitHub:
    """The address at which a job asks for its id token, for an audience."""

    def __init__(self, issuer: Issuer) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = parse_qs(urlsplit(self.path).query)
                right = self.headers["authorization"] == "Bearer job's own" and asked["api-version"] == [
                    "2.0"
                ]
                text = json.dumps({"value": issuer.token(aud=asked["audience"][0])})
                self.send_response(200 if right else 403)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *ignored: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.env = {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"http://127.0.0.1:{self.server.server_port}/?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job's own",
        }

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.django_db(transaction=True)
def test_a_job_of_github_runs_without_a_secret(
    platform: Any, cast: Any, issuer: Issuer, tmp_path: Path
) -> None:
    url, job = platform
    rule = Wanted("app", "github", "acme/app", "main", url, issuer.url, scopes=("start",), specs=("look",))
    oidc.add(cast["alice"], cast.team, rule)
    github = GitHub(issuer)
    done, outputs = in_github(tmp_path, job(**github.env), labels="ci nightly")
    github.close()
    assert done.returncode == 0, done.stderr
    run = Run.objects.get()
    assert (outputs["run"], outputs["state"], run.labels) == (run.key, "succeeded", ["ci", "nightly"])
    assert outputs["url"].endswith(f"/runs/{run.key}/")
    suite = ElementTree.parse(checkout(tmp_path) / "spak.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    (secret,) = re.findall(r"::add-mask::(\S+)", done.stdout)
    assert tokens.user_of(secret).username == "alice" and secret not in done.stderr


@pytest.mark.django_db(transaction=True)
def test_a_job_of_gitlab_runs_without_a_secret(
    platform: Any, cast: Any, issuer: Issuer, tmp_path: Path
) -> None:
    url, job = platform
    assert TEMPLATE["id_tokens"]["SPAK_ID_TOKEN"]["aud"] == "$SPAK_URL"
    oidc.add(
        cast["alice"],
        cast.team,
        Wanted("app", "gitlab", "acme/app", "main", url, issuer.url, scopes=("start",)),
    )
    about = {"project_path": "acme/app", "project_id": "1", "ref": "main", "ref_type": "branch"}
    done = in_gitlab(tmp_path, job(SPAK_ID_TOKEN=issuer.token(aud=url, **about)))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and (checkout(tmp_path) / TEMPLATE["artifacts"]["reports"]["junit"]).exists()
    assert Run.objects.get().labels == ["ci"]


@pytest.mark.django_db(transaction=True)
def test_jobs_end_as_the_run_does(
    platform: Any, cast: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit codes of the command line; and the same build starts no second run."""
    _, job = platform
    _, secret = tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])
    given = job(SPAK_TOKEN=secret, SPAK_BUILD="b1")
    first, again = (in_gitlab(tmp_path, given) for _ in range(2))
    assert (first.returncode, again.returncode, Run.objects.count()) == (0, 0, 1), first.stderr
    assert in_gitlab(tmp_path, job(SPAK_TOKEN=secret, SPAK_FILES="none")).returncode == 1
    done, outputs = in_github(tmp_path, job(), spec="ask", token=secret)
    assert (done.returncode, outputs["state"]) == (4, "waiting") and "somebody" in done.stderr
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    late = in_gitlab(tmp_path, job(SPAK_TOKEN=secret, SPAK_TIMEOUT="0"))
    assert late.returncode == 6 and "goes on" in late.stderr
    for state, code in ((State.REFUSED, 5), (State.CANCELLED, 6)):
        monkeypatch.setattr(queue, "send", lambda key, queue="default", state=state: ended(key, state))
        assert in_gitlab(tmp_path, job(SPAK_TOKEN=secret)).returncode == code


def ended(key: str, state: str) -> None:
    execute.advance(key)
    Run.objects.filter(key=key).update(state=state)


@pytest.mark.django_db(transaction=True)
def test_what_the_platform_refuses_is_said(platform: Any, cast: Any, tmp_path: Path) -> None:
    _, job = platform
    _, secret = tokens.make(cast["bob"], "ci", 7, cast.team)
    for about, code, words in (
        ({"SPAK_TOKEN": secret}, 2, "needs a token with the scope start"),
        ({"SPAK_TOKEN": secret, "SPAK_SPEC": "none"}, 2, "[web.404]"),
        ({"SPAK_TOKEN": "spak_no"}, 2, "[web.token]"),
        ({"SPAK_ID_TOKEN": "a.b.c"}, 2, "[web.oidc_token]"),
        ({}, 2, "there is no token"),
        ({"SPAK_TOKEN": secret, "SPAK_URL": "http://localhost:1/"}, 7, "no answer of http://localhost:1"),
    ):
        done = in_gitlab(tmp_path, job(**about, PATH=quick_curl(tmp_path)))
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
        assert secret not in done.stderr + done.stdout and not Run.objects.exists()


def quick_curl(tmp_path: Path) -> str:
    """A path whose curl does not wait long between tries."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "curl").write_text('#!/bin/sh\nexec /usr/bin/curl "$@" --retry 0\n')
    (folder / "curl").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.django_db(transaction=True)
def test_inputs_are_values_and_no_commands(platform: Any, cast: Any, tmp_path: Path) -> None:
    _, job = platform
    _, secret = tokens.make(cast["bob"], "ci", 7, cast.team, ["start"])
    evil = '"; touch hacked; $(touch hacked) `touch hacked` ${{ x }}'
    done, _ = in_github(tmp_path, job(), token=secret, version=evil, inputs=f"n={evil}", labels="a'b")
    assert done.returncode == 2 and not (checkout(tmp_path) / "hacked").exists()


# ---- the files and what the page shows of them


def test_the_template_holds_the_script() -> None:
    assert TEMPLATE["script"] == [(ROOT / "ci/spak-ci.sh").read_text()]
    assert "${{" not in STEP["run"], "an input would be read as a command"
    assert {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]} == set(STEP["env"].values())


def test_the_page_shows_jobs_that_fit() -> None:
    text = (ROOT / "docs/ci.md").read_text()
    workflow, pipeline = (yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    job = workflow["jobs"]["tune"]
    assert job["permissions"]["id-token"] == "write"
    step = next(one for one in job["steps"] if "/ci@" in one.get("uses", ""))
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= step["with"].keys()
    assert pipeline["include"][0]["file"] == "ci/gitlab.yml"
    assert pipeline["tune"]["extends"] == ".spak"
    script = (ROOT / "ci/spak-ci.sh").read_text()
    assert all(name in script for name in pipeline["tune"]["variables"])
