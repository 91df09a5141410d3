"""A team with a source: a repository that a host on loopback serves, where the operator permits that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from folders_kit import Push, spec, synced
from runs_kit import tables
from sources_kit import Forge, Host, Repository
from spakweb.store.folders.models import Folder
from spakweb.store.runs.models import Run
from spakweb.store.sources import addresses
from spakweb.store.sources.models import Source
from spakweb.work.folders import actions as folders
from spakweb.work.runs.actions import start
from spakweb.work.sources import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute, queue

CHANGES = """\
task Change {
  step greet: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_contains("hello.txt", "Hello")
}
"""


@pytest.fixture
def ground(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Runs that really run; nothing is sent to a queue."""
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path / "data"
    settings.SOURCE_REACH = ["public", "loopback"]
    monkeypatch.setattr(addresses, "resolve", lambda host: ("127.0.0.1",))
    with tables():
        yield


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "git" / "app.git")


@pytest.fixture
def host(repository: Repository) -> Iterator[Host]:
    made = Host(repository.folder.parent)
    yield made
    made.close()


@pytest.fixture
def source(ground: None, cast: Any, host: Host) -> Source:
    return actions.add(
        cast["alice"], cast.team, "app", host.url("app.git"), ["main", "release/*", "refs/tags/*"]
    )


@pytest.fixture
def run_from(ground: None, cast: Any) -> Callable[..., Run]:
    """`run_from(ref="", commit="", text=CHANGES)`: a run of bob's from the source app, advanced."""

    def make(ref: str = "", commit: str = "", text: str = CHANGES, name: str = "app") -> Run:
        spec = create_spec(cast["alice"], cast.team, f"spec {cast.team.specs.count()}", text)
        begun = actions.begin(cast["bob"], spec, name, ref, commit)
        run = start(cast["bob"], spec, begun_from=begun)
        execute.advance(run.key)
        run.refresh_from_db()
        return run

    return make


@pytest.fixture
def push(repository: Repository) -> Push:
    """`push({"tune.spak": b"..."})`: the whole folder specs, in a commit on main upon the one before."""

    def make(files: dict[str, Any], ref: str = "refs/heads/main") -> str:
        entries = {"README.md": b"# App\n", "specs": ("040000", repository.tree(files))}
        try:
            parent = repository.head(ref)
        except AssertionError:
            parent = ""
        return repository.commit(entries, ref, parent)

    return make


@pytest.fixture
def folder(cast: Any, source: Source) -> Folder:
    return folders.set_up(cast["alice"], source, "main", "specs", "commit")


@pytest.fixture
def forge() -> Iterator[Forge]:
    made = Forge()
    yield made
    made.close()


@pytest.fixture
def pulls(cast: Any, ground: None, repository: Repository, host: Host, push: Push, forge: Forge) -> Folder:
    """A folder of a repository of GitHub, in sync, with one spec."""
    (repository.folder.parent / "shop").mkdir()
    repository.folder = repository.folder.rename(repository.folder.parent / "shop" / "app.git")
    source = actions.add(
        cast["alice"], cast.team, "shop", host.url("shop/app.git"), ["main"], forge="github",
        api_url=forge.url, api_token=Forge.TOKEN,
    )  # fmt: skip
    folder = folders.set_up(cast["alice"], source, "main", "specs", "pull")
    push({"tune.spak": spec()})
    synced(folder)
    return folder
