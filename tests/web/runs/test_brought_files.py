"""Files that people bring for runs: into the form, into the workspace, into the first record."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from spak.records import decode
from spakweb.ground import clock
from spakweb.ground.errors import Refused
from spakweb.ground.web import bodies
from spakweb.store.ledger import uploads
from spakweb.store.runs.models import Run, Upload
from spakweb.work.runs import actions
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute, retention

pytestmark = pytest.mark.django_db(transaction=True)

LOOK = """\
task Look {
  step see: tool.read_file { path: "notes/a.txt" }
  success: file_contains("notes/a.txt", "one")
}
"""


def zipped(**files: bytes) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    made.seek(0)
    return made


ONE = {"notes__a_dot_txt": b"one\n"}


@pytest.fixture
def spec(ground: None, cast: Any) -> Any:
    return create_spec(cast["alice"], cast.team, "look", LOOK)


@pytest.fixture
def bring(cast: Any, spec: Any) -> Callable[..., Upload]:
    def make(name: str = "notes.zip", by: str = "alice", **files: bytes) -> Upload:
        archive = zipped(**(files or ONE))
        return actions.bring_files(cast[by], spec, name, archive, len(archive.getvalue()))[0]

    return make


def genesis(run: Run) -> Any:
    return decode(bytes(run.records.get(seq=0).line)).body


def post(client: Any, spec: Any, **fields: Any) -> Any:
    return client.post(reverse("spak-run-start", args=[spec.team.slug, spec.slug]), fields)


def test_a_run_begins_with_the_files_that_were_brought(cast: Any, spec: Any, bring: Any) -> None:
    upload = bring()
    run = actions.start(cast["alice"], spec, files=upload)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded"
    assert genesis(run)["rules"]["r3"] == upload.root


def test_a_fork_has_them_too(cast: Any, spec: Any, bring: Any) -> None:
    run = actions.start(cast["alice"], spec, files=bring())
    execute.advance(run.key)
    run.refresh_from_db()
    fork = actions.fork(cast["alice"], run, 1)
    execute.advance(fork.key)
    fork.refresh_from_db()
    assert (fork.state, fork.files) == ("succeeded", run.files)
    assert genesis(fork)["rules"] == genesis(run)["rules"]
    assert fork.summary["summary_hash"] == run.summary["summary_hash"]


def test_the_form_takes_a_zip_and_a_fork_of_another_team_has_none_of_it(cast: Any, spec: Any) -> None:
    client = cast.client("alice")
    page = client.get(reverse("spak-run-new", args=[cast.team.slug, spec.slug])).content.decode()
    assert "No files" in page and 'name="brought"' in page and "multipart/form-data" in page
    file = SimpleUploadedFile("notes.zip", zipped(**ONE).getvalue())
    answer = post(client, spec, brought=file, keep="1")
    run = Run.objects.get(version__spec=spec)
    assert answer.status_code == 302 and run.files.name == "notes.zip"
    assert actions.kept_files(spec) == run.files
    page = client.get(reverse("spak-run-new", args=[cast.team.slug, spec.slug])).content.decode()
    assert "The files kept with this spec" in page
    assert post(client, spec).status_code == 302  # as it is kept
    assert Run.objects.filter(version__spec=spec).first().files == run.files
    assert post(client, spec, files="none").status_code == 302
    assert Run.objects.filter(version__spec=spec).first().files is None
    other = cast.client("charlie")
    assert post(other, cast.other_spec, files=run.files.key).status_code == 410
    assert "no longer here" in post(client, spec, files="nothing\0").content.decode()


def test_the_folder_around_a_zip_is_left_out_and_one_that_was_packed_here_is_kept(
    cast: Any, spec: Any
) -> None:
    client, around = cast.client("alice"), zipped(shop__notes__a_dot_txt=b"one\n").getvalue()
    address = reverse("spak-run-bring", args=[cast.team.slug, spec.slug])
    said = client.post(address, {"brought": SimpleUploadedFile("x.zip", around)}).json()
    assert (said["folder"], said["shown"]) == ("shop", [{"path": "notes/a.txt", "size": 4}])
    upload = Upload.objects.get(key=said["key"])
    assert uploads.names(upload) == [("notes/a.txt", 4)]
    run = actions.start(cast["alice"], spec, files=upload)
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == "succeeded" and genesis(run)["rules"]["r3"] == upload.root
    kept = client.post(address, {"brought": SimpleUploadedFile("x.zip", around), "packed": "1"}).json()
    assert (kept["folder"], kept["shown"]) == ("", [{"path": "shop/notes/a.txt", "size": 4}])


def test_several_files_without_a_script_become_one_upload(cast: Any, spec: Any) -> None:
    files = [SimpleUploadedFile(name, name.encode()) for name in ("b.txt", "a.txt")]
    assert post(cast.client("bob"), spec, brought=files).status_code == 302
    upload = Run.objects.get(version__spec=spec).files
    assert uploads.names(upload) == [("a.txt", 5), ("b.txt", 5)]
    assert upload.name == "b.txt and 1 more"


def test_the_script_is_told_what_came_or_why_not(cast: Any, spec: Any, settings: Any) -> None:
    address = reverse("spak-run-bring", args=[cast.team.slug, spec.slug])

    def send(data: bytes, by: str = "bob", name: str = "x.zip") -> Any:
        return cast.client(by).post(
            address, {"brought": SimpleUploadedFile(name, data)}, headers={"Accept": "application/json"}
        )

    said = send(zipped(**ONE).getvalue()).json()
    assert (said["files"], said["size"], said["shown"]) == (1, 4, [{"path": "a.txt", "size": 4}])
    assert Upload.objects.get(key=said["key"]).team == cast.team
    for data, code in ((b"no zip", "upload.archive"), (zipped(**{"..__up": b"1"}).getvalue(), "upload.name")):
        refused = send(data)
        assert refused.status_code == 400
        assert json.loads(refused.content)["code"] == code
    settings.RUN_FILES_BYTES = 3
    assert send(zipped(**ONE).getvalue()).status_code == 413
    settings.RUN_FILES_BYTES, settings.RUN_FILES = 1 << 20, 1
    many = send(zipped(a=b"1", b=b"2").getvalue())
    assert (many.status_code, many.json()["code"]) == (413, "upload.files")
    assert send(zipped(**ONE).getvalue(), "vera").status_code == 403
    assert send(zipped(**ONE).getvalue(), "charlie").status_code == 404
    assert Upload.objects.count() == 1


def test_the_same_files_are_the_same_upload(cast: Any, bring: Any) -> None:
    one = bring()
    assert bring("other.zip", by="bob").pk == one.pk
    assert bring(a=b"1").pk != one.pk
    one.refresh_from_db()
    assert one.name == "other.zip"


def test_what_nobody_needs_goes(cast: Any, spec: Any, bring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unused, used, kept = bring(a=b"1"), bring(b=b"2"), bring(c=b"3")
    run = actions.start(cast["alice"], spec, files=used)
    actions.keep_files(cast["alice"], spec, kept)
    later = clock.now() + timedelta(days=2)
    monkeypatch.setattr("spakweb.ground.clock.now", lambda: later)
    assert uploads.drop(10) == 1
    assert not default_storage.exists(f"uploads/{unused.key}.zip")
    assert set(Upload.objects.all()) == {used, kept}
    execute.advance(run.key)
    run.refresh_from_db()
    assert retention.mark(run, cast["alice"], "test") and retention.erase(run)
    assert uploads.drop(10) == 1
    actions.keep_files(cast["alice"], spec, None)
    assert uploads.drop(10) == 1 and not Upload.objects.exists()


def test_a_stored_zip_that_changed_begins_no_run(cast: Any, spec: Any, bring: Any) -> None:
    upload = bring()
    run = actions.start(cast["alice"], spec, files=upload)
    uploads.remove(upload.key)
    uploads.store(upload.key, zipped(notes__a_dot_txt=b"two\n"))
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.count) == ("failed", 0)
    assert "upload.changed" in run.reason


def test_a_program_starts_no_run_with_files_of_another_team(cast: Any, bring: Any) -> None:
    with pytest.raises(Exception) as refused:
        actions.start(cast["charlie"], cast.other_spec, files=bring())
    assert type(refused.value).__name__ == "Http404"
    with pytest.raises(Refused):
        actions.bring_files(cast["alice"], cast.spec, "x", io.BytesIO(b"x"), 1 << 40)


@pytest.mark.parametrize(
    ("headers", "chunks", "status"),
    [([(b"content-length", b"2147483648")], [], 413), ([], [b"x" * 60] * 3, 413),
     ([(b"content-length", b"90")], [b"x" * 90], 200), ([(b"content-length", b"-1")], [b"x"], 200)],
    ids=["2 GB", "chunks without a length", "as much as may be", "odd length"],
)  # fmt: skip
def test_a_request_that_is_too_long_is_not_read(headers: Any, chunks: list[bytes], status: int) -> None:
    import asyncio

    sent: list[Any] = []
    left = list(chunks)

    async def receive() -> Any:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})

    asyncio.run(bodies.Bounded(app, most=100)({"type": "http", "headers": headers}, receive, send))
    assert sent[0]["status"] == status
    assert status == 200 or b"Nothing of it was kept" in sent[1]["body"]
