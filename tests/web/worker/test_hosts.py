"""Hosts that share nothing but the database: what one leaves in the middle, another goes on with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from runs_kit import drop_leases, tables
from spak.errors import LedgerError
from spak.kernel.replay import replay
from spak.ledger import verify
from spak.runner import Run as Runner
from spakweb.face.runs import record_parts
from spakweb.face.runs import workspace as workspace_page
from spakweb.ground.teams.models import User
from spakweb.store.ledger import export, workspaces
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import signing
from spakweb.store.runs.models import Run, RunBlob, RunRecord, State, StoredFile
from spakweb.store.specs.models import Spec
from spakweb.work.runs.actions import fork, start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team
from spakweb.work.worker import execute, open_run, queue

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = """\
task Steps {
  step one: tool.write_file { path: "one/first.txt" content: "1" }
  step two: tool.write_file { path: "two.txt" content: "2" }
  step three: tool.write_file { path: "one/first.txt" content: "{{last_tool_output}}3" }
  success: file_exists("two.txt")
}
"""
ASKING = """\
task Talk {
  step keep: tool.write_file { path: "kept.txt" content: "kept" }
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step write: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


@pytest.fixture
def spec(
    transactional_db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Spec]:
    monkeypatch.setattr(queue, "send", lambda key, queue="default": None)
    settings.STORAGE = "database"
    settings.STORAGES = {
        **settings.STORAGES, "default": {"BACKEND": "spakweb.store.ledger.storage.DatabaseStorage"}
    }  # fmt: skip
    settings.MEDIA_ROOT = tmp_path / "no media"
    with tables():
        alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
        yield create_spec(alice, create_team(alice, "Tuners"), "steps", STEPS)
    assert not (tmp_path / "no media").exists()


@pytest.fixture
def on(settings: Any, tmp_path: Path) -> Any:
    """`on("b")`: from here on this process is a worker of that host."""

    def go(host: str) -> Path:
        settings.DATA_DIR = tmp_path / host
        return tmp_path / host

    return go


def dies_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of this process is gone, with its disk, after so many effects."""
    real, left = Runner._do, [count]

    def do(self: Runner, effect: Any) -> bool:
        left[0] -= 1
        if left[0] < 0:
            self.flush()
            raise SystemExit
        return real(self, effect)

    monkeypatch.setattr(Runner, "_do", do)


def whole(key: str) -> Run:
    run = Run.objects.get(key=key)
    assert (run.state, run.holder) == (State.SUCCEEDED, ""), run.reason
    reader = DatabaseLedgers().reader(key)
    assert verify([line for _, line in reader.read()], exported=False, blobs=reader.blobs).ok
    found = replay(record for record, _ in reader.read())
    assert found.difference is None and not found.missing
    place = workspaces.workspace_of(key)
    place.take(run.fence)
    assert place.snapshot() == found.state.r3
    return run


@pytest.mark.parametrize("effects", [0, 1, 2, 3])
def test_a_host_is_gone_in_the_middle(
    spec: Spec, on: Any, monkeypatch: pytest.MonkeyPatch, effects: int
) -> None:
    run = start(User.objects.get(), spec, mode="full_auto")
    gone = on("a")
    with monkeypatch.context() as patched:
        dies_after(effects, patched)
        try:
            execute.advance(run.key)
        except SystemExit:
            drop_leases()
            Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1), holder="a")
    shutil.rmtree(gone)
    on("b")
    execute.advance(run.key)
    whole(run.key)
    made = workspaces.folder_of(run.key) / "workspace"
    assert {path.name for path in made.iterdir()} == {"one", "two.txt"}


def test_back_and_forth(spec: Spec, on: Any) -> None:
    """Each slice on the other host: the files that lie there from before are not believed."""
    run = start(User.objects.get(), spec, mode="full_auto")
    on("a")
    hosts = 0
    while one_effect(run.key):
        hosts += 1
        on("ab"[hosts % 2])
    execute.advance(run.key)
    whole(run.key)
    assert hosts >= 2


def one_effect(key: str) -> bool:
    """Go on for one effect; False when the run has ended."""
    runner = open_run.take(Run.objects.select_related("team", "version", "parent").get(key=key))
    try:
        runner._do(runner.pending())
        return not runner.state.ended
    finally:
        runner.close()


def test_pages_and_forks_on_a_host_without_the_files(spec: Spec, on: Any) -> None:
    run = start(User.objects.get(), spec, mode="full_auto")
    on("a")
    execute.advance(run.key)
    run = Run.objects.get(key=run.key)
    on("web")
    assert [row["name"] for row in export.artifacts(run)] == ["one/first.txt", "two.txt"]
    assert workspace_page.as_file(run, "file/two.txt").content == b"2"
    routes = RunRecord.objects.filter(run=run, kind="route").order_by("seq")
    reader = DatabaseLedgers().reader(run.key)
    first = next(reader.read(routes[0].seq))[0]
    assert record_parts.workspace_change(run, first)[0].title == "one/first.txt: new file"
    at = routes[1].seq + 1
    forked = fork(User.objects.get(), run, at, mode="full_auto")
    on("b")
    execute.advance(forked.key)
    assert whole(forked.key).summary["summary_hash"] == run.summary["summary_hash"]


def test_a_fork_whose_maker_died_while_it_copied(
    spec: Spec, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(User.objects.get(), spec, mode="full_auto")
    on("a")
    execute.advance(run.key)
    run = Run.objects.get(key=run.key)
    last = RunRecord.objects.filter(run=run, kind="route").order_by("-seq").first()
    assert last is not None
    forked = fork(User.objects.get(), run, last.seq - 1, mode="full_auto")
    with monkeypatch.context() as patched:

        def first_only(self: Runner, proposals: Any) -> None:
            self._decide(next(iter(proposals)))
            self.flush()
            raise SystemExit

        patched.setattr(Runner, "adopt", first_only)
        with pytest.raises(SystemExit):
            execute.advance(forked.key)
    Run.objects.filter(key=forked.key).update(holder="")
    drop_leases()
    did: list[str] = []
    real = Runner._do
    monkeypatch.setattr(Runner, "_do", lambda self, effect: did.append(effect.id) or real(self, effect))
    on("b")
    execute.advance(forked.key)
    assert whole(forked.key).summary["summary_hash"] == run.summary["summary_hash"]
    assert len(did) == 1, "what the parent did was done again"


def test_an_exported_unfinished_run_comes_in_and_goes_on(spec: Spec, on: Any, settings: Any) -> None:
    import io

    alice = User.objects.get()
    talk = create_spec(alice, spec.team, "talk", ASKING)
    run = start(alice, talk)
    on("a")
    execute.advance(run.key)
    run = Run.objects.get(key=run.key)
    assert run.state == State.WAITING
    data = export.as_jsonl(run).content
    with_everything_gone()
    found = export.bring(alice, spec.team, io.BytesIO(data), len(data))
    assert found.state == State.WAITING
    from spakweb.work.runs.actions import ask

    ask(alice, found, "answer", found.summary["waiting"]["id"], text="hello")
    on("b")
    execute.advance(found.key)
    whole(found.key)
    names = {path.name for path in (workspaces.folder_of(found.key) / "workspace").iterdir()}
    assert names == {"kept.txt", "word.txt"}


def with_everything_gone() -> None:
    from django.db import connection

    from spakweb.ground.database import appendonly

    appendonly.remove(connection)
    for model in (RunRecord, RunBlob, StoredFile):
        model._base_manager.all()._raw_delete("default")
    Run.objects.all().delete()
    appendonly.install(connection)


def test_hosts_sign_with_one_key(spec: Spec, on: Any, settings: Any) -> None:
    """What one host begins is approved on another; a host that stood alone before brings its own."""
    settings.STORAGE = "files"
    on("a")
    alone = signing.private_key()
    settings.STORAGE = "database"
    assert signing.private_key() == alone
    on("b")
    assert signing.private_key() == alone and len(alone) == 32
    with_everything_gone()
    assert signing.private_key() != alone


@pytest.mark.findings("A2")
def test_bytes_are_kept_once_and_given_to_runs_that_have_them(spec: Spec) -> None:
    store = storages["default"]
    from spakweb.store.ledger.blobs import StoredBlobs, name_of, unleased

    run = Run.objects.create(team=spec.team, key="r1", name="r1")
    for _ in range(2):
        digest = unleased(run.pk).put(b"bytes")
    assert StoredFile.objects.count() == 1 and RunBlob.objects.filter(run=run).count() == 1
    assert store.exists(name_of(digest)) and store.size(name_of(digest)) == 5
    assert StoredBlobs(run.pk).get(digest) == b"bytes" and StoredBlobs(run.pk).has(digest)
    other = StoredBlobs(Run.objects.create(team=spec.team, key="r2", name="r2").pk)
    assert not other.has(digest)
    nobodys = digest[::-1]
    for asked in (digest, nobodys):
        with pytest.raises(LedgerError) as caught:
            other.get(asked)
        assert (caught.value.code, caught.value.message) == ("ledger.blob", f"blob {asked} is missing")
    with pytest.raises(FileNotFoundError):
        store.open("blobs/none")
