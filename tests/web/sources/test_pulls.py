"""Pull requests at GitHub and GitLab: opened with an approved branch, once, and never where no source may."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs_kit import at_once, job
from sources_kit import Forge, Host, Repository
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run
from spakweb.store.sources import addresses
from spakweb.store.sources.models import Branch, RunSource, Source
from spakweb.work.sources import actions, branches, forges

RunFrom = Callable[..., Run]
PATHS = {"github": "shop/app.git", "gitlab": "group/sub/app.git"}
TEXT = """\
task Change {
  step new: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_exists("hello.txt")
}
"""


@pytest.fixture
def forge() -> Iterator[Forge]:
    made = Forge()
    yield made
    made.close()


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def changed(
    kind: str, forge: Forge, cast: Any, ground: None, tmp_path: Path, run_from: RunFrom
) -> Iterator[Run]:
    """A run from a source of that forge, which changed a file."""
    root = tmp_path / "repositories"
    Repository(root / PATHS[kind]).commit({"README.md": b"# App\n"})
    host = Host(root)
    actions.add(
        cast["alice"], cast.team, "app", host.url(PATHS[kind]), ["main", "refs/tags/*"], forge=kind,
        api_url=forge.url, api_token=Forge.TOKEN,
    )  # fmt: skip
    run = run_from(text=TEXT)
    assert run.state == "succeeded", run.reason
    yield run
    host.close()


def pushed(row: Branch) -> Branch:
    at_once(branches.PUSH)
    row.refresh_from_db()
    return row


def test_a_pull_request_is_opened_with_the_branch(cast: Any, changed: Run, kind: str, forge: Forge) -> None:
    bob, rita = cast.client("bob"), cast.client("rita")
    place = f"/t/kernel-tuners/runs/{changed.key}/"
    page = bob.get(f"{place}?tab=workspace").content.decode()
    assert f"Open a pull request at {forges.NAMES[kind]}" in page
    bob.post(f"{place}branches/ask/", {"name": "spak/one", "title": "Say hello", "pull": "1"})
    row = Branch.objects.get()
    assert (row.pull, row.state) == (True, "approved")  # nothing of it would run by itself
    assert pushed(row).error == ""
    assert row.state == "pushed" and row.pull_url.startswith(forge.url)
    made = forge.pulls[0]
    said = (made["head"], made["base"], made["body"]) if kind == "github" else (
        made["source_branch"], made["target_branch"], made["description"])  # fmt: skip
    assert said[:2] == ("spak/one", "main") and made["title"] == "Say hello"
    assert f"Spak-Run: {changed.key}" in said[2] and f"/t/kernel-tuners/runs/{changed.key}/" in said[2]
    assert row.pull_url in rita.get(f"{place}?tab=workspace").content.decode()
    event = Event.objects.get(action="source.branch_pushed")
    assert event.detail["pull_url"] == row.pull_url
    assert Forge.TOKEN not in json.dumps(list(Event.objects.values_list("detail", flat=True)))


def test_one_that_is_open_is_taken(cast: Any, changed: Run, forge: Forge) -> None:
    """A worker that died after it opened one, and did not say so, opens no second one."""
    row = pushed(branches.ask(cast["rita"], changed, pull=True, approve=True))
    first = row.pull_url
    Branch.objects.filter(pk=row.pk).update(state="approved", pull_url="")
    assert (pushed(row).pull_url, len(forge.pulls)) == (first, 1)


def test_an_open_one_follows_where_it_is_asked_to(cast: Any, changed: Run, kind: str, forge: Forge) -> None:
    source = Source.objects.get()
    first = forges.open_pull(source, forges.Pull("spak/a", "main", "One", "first"))
    body = "body" if kind == "github" else "description"
    for follow, title in ((False, "One"), (True, "Two"), (True, "Two")):
        again = forges.open_pull(source, forges.Pull("spak/a", "main", "Two", "next"), follow=follow)
        assert (again, forge.pulls[0]["title"], len(forge.pulls)) == (first, title, 1)
    assert forge.pulls[0][body] == "next"
    assert [method for method, _, _ in forge.asked].count("PATCH" if kind == "github" else "PUT") == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [((403, b'{"message": "Resource not accessible"}'), "git.credentials: the API answered 403: Resource"),
     ((404, b'{"message": "Not Found"}'), "git.pull_refused"), ((302, b""), "git.pull_refused"),
     ((422, b'{"message": "No\\u001b[2J", "errors": [{"code": "invalid"}]}'), "git.pull_refused"),
     ((200, b"<html>"), "git.pull_refused"), ((200, b'{"html_url": "javascript:1"}'), "git.pull_refused"),
     ((200, b'[{"html_url": 7}]'), "git.pull_refused"), ((200, b"[" * 100_000), "git.pull_refused")],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["github"], indirect=True)
def test_what_an_api_refuses_is_said_and_the_branch_stays(
    cast: Any, changed: Run, forge: Forge, answer: tuple[int, bytes], error: str
) -> None:
    forge.instead = answer
    row = pushed(branches.ask(cast["rita"], changed, pull=True, approve=True))
    assert (row.state, row.pull_url, bool(row.commit)) == ("pushed", "", True)
    assert row.error.startswith(error) and row.error.isprintable()
    assert not any(path.startswith("/elsewhere") for _, path, _ in forge.asked)
    assert error.split(":")[0] in cast.client("vera").get(
        f"/t/kernel-tuners/runs/{changed.key}/?tab=workspace"
    ).content.decode()  # fmt: skip


@pytest.mark.parametrize("kind", ["github"], indirect=True)
def test_an_api_that_is_away_is_asked_again(cast: Any, changed: Run, forge: Forge) -> None:
    forge.instead = (503, b"")
    row = pushed(branches.ask(cast["rita"], changed, pull=True, approve=True))
    assert (row.state, job(branches.PUSH).tries) == ("approved", 1)
    assert row.error.startswith("git.unreachable: the API of the forge answered 503; tried again after ")
    forge.instead = None
    row = pushed(row)
    assert row.pull_url and row.error == ""


@pytest.mark.parametrize("kind", ["gitlab"], indirect=True)
def test_an_api_at_an_address_inside_is_not_asked(
    cast: Any, changed: Run, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = {"api.test.example": ("10.0.0.7",)}
    monkeypatch.setattr(addresses, "resolve", lambda host: inside.get(host, ("127.0.0.1",)))
    row = pushed(branches.ask(cast["rita"], changed, pull=True, approve=True))
    assert (row.state, row.error.split(":")[0], forge.asked) == ("pushed", "git.reach", [])


@pytest.mark.parametrize("kind", ["github"], indirect=True)
def test_a_run_from_a_tag_and_a_source_without_an_api_open_none(cast: Any, changed: Run) -> None:
    RunSource.objects.filter(run=changed).update(ref="refs/tags/v1")
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], changed, pull=True)
    assert why.value.code == "git.pull_base"
    RunSource.objects.filter(run=changed).update(ref="refs/heads/main")
    Source.objects.update(forge="")
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], changed, pull=True)
    assert why.value.code == "git.forge"
    assert not Branch.objects.exists()


@pytest.mark.parametrize("kind", ["gitlab"], indirect=True)
def test_the_tokens_of_git_and_of_the_api_are_changed_apart(cast: Any, changed: Run, forge: Forge) -> None:
    source = Source.objects.get()
    place = "/t/kernel-tuners/sources/s/app/do/"
    answer = cast.client("alice").post(place, {"do": "rotate", "api_token": "wrong-token-9"})
    assert answer.status_code == 302
    source.refresh_from_db()
    row = pushed(branches.ask(cast["rita"], changed, "spak/a", pull=True, approve=True))
    assert row.error.startswith("git.credentials: the API answered 401: 401 Unauthorized")
    assert "wrong-token-9" not in row.error
    actions.rotate(cast["alice"], source, api_token=Forge.TOKEN)
    assert pushed(branches.ask(cast["rita"], changed, "spak/b", pull=True, approve=True)).pull_url


@pytest.mark.parametrize(
    ("about", "code"),
    [({"forge": "sourcehut"}, "git.forge"), ({"api_url": "https://x.example"}, "git.forge"),
     ({"api_token": "some-token-1"}, "git.forge"),
     ({"forge": "github", "api_token": "no token"}, "git.token"),
     ({"forge": "gitlab", "api_url": "ftp://x.example"}, "git.forge"),
     ({"forge": "gitlab", "api_url": "https://x.example/api?x=1"}, "git.forge"),
     ({"forge": "gitlab", "api_url": "http://x.example/api"}, "git.forge"),
     ({"forge": "github", "url": "https://git.example.org/only.git"}, "git.forge")],
)  # fmt: skip
def test_sources_that_can_open_none(cast: Any, about: dict[str, str], code: str) -> None:
    given = {"url": "https://git.example.org/shop/app.git", **about}
    with pytest.raises(Refused) as why:
        actions.add(cast["alice"], cast.team, "app", given.pop("url"), ["main"], **given)  # type: ignore[arg-type]
    assert why.value.code == code
    assert not Source.objects.exists()


def test_where_the_api_is() -> None:
    def usual(url: str, forge: str) -> str:
        return forges._usual(forge, addresses.read(url))

    assert usual("https://github.com/a/b.git", "github") == "https://api.github.com"
    assert usual("git@github.com:a/b.git", "github") == "https://api.github.com"
    assert usual("https://git.example.org/a/b", "github") == "https://git.example.org/api/v3"
    assert usual("ssh://git@git.example.org:2222/a/b/c.git", "gitlab") == "https://git.example.org/api/v4"
