"""The files of a run on its page: all of them, from before the first record on, and what became of each."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import workspace
from spakweb.store.runs.models import Run
from spakweb.work.runs import actions, files
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

WORK = """\
task Work {
  step make: tool.write_file { path: "made.txt" content: "made <b>here</b>" }
  step change: tool.write_file { path: "src/a.py" content: "two" }
  step remove: tool.run { cmd: "rm old.txt" }
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TOKEN = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5"
BROUGHT = {
    "src/a.py": b"one\n", "old.txt": b"old", "pic.png": PNG, "secrets/key.pem": b"PRIVATE",
    ".env": b"K=hidden",
    "icon.svg": b"<svg onload=alert(1)>", "data.bin": b"\0\1",
    "notes.txt": f"db_password: {TOKEN}\n".encode(), "名前/<i>ü.txt": b"any script",
    "turned\u202etxt.py": b"x", "odd.png": b"<html>no picture</html>",
}  # fmt: skip


@pytest.fixture
def waits(ground: None, cast: Any) -> Run:
    """A run with files of alice's that stopped at its question."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in BROUGHT.items():
            archive.writestr(name, data)
    spec = create_spec(cast["alice"], cast.team, "work", WORK)
    upload, _ = actions.bring_files(cast["alice"], spec, "mine.zip", made, 0)
    return actions.start(cast["alice"], spec, files=upload)


def advance(run: Run) -> Run:
    execute.advance(run.key)
    run.refresh_from_db()
    return run


@pytest.fixture
def page(cast: Any) -> Callable[..., str]:
    def make(run: Run, query: str = "", by: str = "vera") -> str:
        address = reverse("spak-run", args=[run.team.slug, run.key])
        answer = cast.client(by).get(f"{address}?tab=workspace{query}")
        assert answer.status_code == 200
        return answer.content.decode()

    return make


def test_all_files_are_listed_while_it_waits(waits: Run, page: Callable[..., str]) -> None:
    before = page(waits)
    assert "old.txt" in before and "made.txt" not in before  # before the first record
    run = advance(waits)
    assert run.state == "waiting"
    states = {file.path: file.state for file in files.files_of(run)}
    assert states == dict.fromkeys(BROUGHT, "") | {
        "made.txt": "new", "src/a.py": "changed", "old.txt": "removed"
    }  # fmt: skip
    text = page(run)
    assert "12 files, 3 changed since it began" in text
    for name in ("made.txt", "a.py", "名前", "&lt;i&gt;ü.txt", "What changed", "made &lt;b&gt;here"):
        assert name in text, name
    assert "\u202e" not in text and "K=hidden" not in text


@pytest.mark.parametrize(
    ("path", "shown", "not_shown"),
    [("src/a.py", "<span>two", "one"), ("old.txt", "The run removed this file", "<span>old"),
     (".env", "file of secrets", "K=hidden"), ("secrets/key.pem", "file of secrets", "PRIVATE"),
     ("icon.svg", "&lt;svg onload", "<svg onload"), ("pic.png", "?show=1", "neither text nor an image"),
     ("data.bin", "neither text nor an image", "?show=1"), ("odd.png", "&lt;html&gt;no picture", "?show=1"),
     ("nothing", "no longer exists", "opened-title"), ("../../etc/passwd", "no longer exists", "root:")],
)  # fmt: skip
def test_a_file_is_looked_at(
    waits: Run, page: Callable[..., str], path: str, shown: str, not_shown: str
) -> None:
    text = page(advance(waits), f"&file=file/{path}")
    assert shown in text
    main = text[text.index('id="pane"') :].split("What changed")[0]
    assert not_shown not in main


def test_files_are_handed_out(waits: Run, cast: Any) -> None:
    run = advance(waits)

    def got(name: str, query: str = "", by: str = "vera") -> Any:
        address = reverse("spak-run-artifact", args=[run.team.slug, run.key, name])
        return cast.client(by).get(address + query)

    assert got("file/src/a.py").content == b"two"
    picture = got("file/pic.png", "?show=1")
    assert (picture["Content-Type"], picture.content) == ("image/png", PNG)
    assert "sandbox" in picture["Content-Security-Policy"]
    for name in ("file/odd.png", "file/icon.svg"):  # a page of somebody's is never one of ours
        assert got(name, "?show=1")["Content-Disposition"].startswith("attachment")
    for name in ("file/.env", "file/secrets/key.pem", "file/old.txt", "file/nothing", "name/!", "x"):
        assert got(name).status_code == 404, name
    assert got("file/src/a.py", by="charlie").status_code == 404


def test_many_files_are_listed_in_folders_and_counted() -> None:
    many = tuple(files.RunFile(f"d{number % 3}/f{number}", 1, "x") for number in range(10))
    found = files.tree(many, 7)
    assert found["more"] == 3
    assert sum(folder["count"] for folder in found["folders"].values()) == 7


def test_a_name_of_any_bytes_is_found_again() -> None:
    for path in ("a/b", "a\nb", "\udcff", "名前"):
        assert files.path_of(files.key_of(path)) == path
    assert files.path_of("name/%%") == files.path_of("other/x") == files.path_of("") == ""


def test_a_fork_shows_the_files_that_it_took_over(waits: Run, cast: Any, page: Callable[..., str]) -> None:
    run = advance(waits)
    fork = advance(actions.fork(cast["alice"], run, run.count))
    assert fork.state == "waiting"
    assert files.files_of(fork) == files.files_of(run)
    assert files.read(fork, "src/a.py") == b"two"
    assert "What changed" in page(fork)


def test_a_file_that_holds_a_secret_is_not_shown(cast: Any, waits: Run, page: Callable[..., str]) -> None:
    advance(waits)
    shown = page(waits, f"&file={files.key_of('notes.txt')}")
    assert "By its contents this is a file of secrets" in shown and TOKEN not in shown
    address = reverse("spak-run-artifact", args=[waits.team.slug, waits.key, files.key_of("notes.txt")])
    assert cast.client("vera").get(address).status_code == 404
    with zipfile.ZipFile(io.BytesIO(workspace.as_zip(waits, everything=True).getvalue())) as archive:
        assert "notes.txt" not in archive.namelist() and "src/a.py" in archive.namelist()


def test_the_page_and_the_zip_say_what_would_run_by_itself(waits: Run, page: Callable[..., str]) -> None:
    run = advance(waits)
    assert "A made.txt" not in page(run), "its files still change"
    Run.objects.filter(pk=run.pk).update(state="failed")
    run.refresh_from_db()
    assert "A made.txt" in page(run) and "prose: it is read" in page(run)
    with zipfile.ZipFile(io.BytesIO(workspace.as_zip(run).getvalue())) as archive:
        assert b"A made.txt  prose: it is read" in archive.comment


COPIES = """\
task Copy {
  step part: tool.python_repl { code: "open('copy.txt', 'w').write('kq7-Sturm' + 'flut-0x5e')" }
  step runs: tool.write_file { path: "conftest.py" content: "x = 1" }
  step text: tool.write_file { path: "read.txt" content: "x" }
  success: file_exists("copy.txt")
}
"""


@pytest.mark.sandbox
def test_who_reads_gets_no_copy_of_a_known_value_and_sees_what_would_run(ground: None, cast: Any) -> None:
    """Under whatever name: on the page, one at a time, in the list and in the zip."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(".env", "DB_PASSWORD=kq7-Sturmflut-0x5e\n")
    spec = create_spec(cast["alice"], cast.team, "copies", COPIES)
    upload, _ = actions.bring_files(cast["alice"], spec, "mine.zip", made, 0)
    run = advance(actions.start(cast["alice"], spec, files=upload))
    assert run.state == "succeeded", run.reason
    vera, place = cast.client("vera"), f"/t/{run.team.slug}/runs/{run.key}/"
    rows = vera.get(f"/api/v1/teams/{run.team.slug}/runs/{run.key}/files/").json()["files"]
    assert {row["name"]: row["leaves_as"] for row in rows} == {"conftest.py": "runs", "read.txt": "ordinary"}
    assert vera.get(f"{place}files/file/copy.txt").status_code == 404
    assert vera.get(f"{place}files/file/read.txt").content == b"x"
    page_ = vera.get(f"{place}?tab=workspace&file=file/copy.txt").content.decode()
    assert "By its contents this is a file of secrets" in page_ and "kq7-Sturmflut" not in page_
    with zipfile.ZipFile(io.BytesIO(b"".join(workspace.as_zip(run)))) as archive:
        assert sorted(archive.namelist()) == ["conftest.py", "read.txt"]
        assert b"conftest.py  read by pytest" in archive.comment
