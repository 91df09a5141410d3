"""The README's pictures, taken of the real platform: `make screenshots` writes them, tests only take them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_kit import ROOT, Watched, environment, manage
from process_kit import start

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EDITOR = "/t/demo-team/specs/first-draft/edit/"
PICTURES = (
    ("home", "/t/demo-team/", "light", "h1"),
    ("editor", EDITOR, "light", "#editor[data-ready=true]"),
    ("editor-dark", EDITOR, "dark", "#editor[data-ready=true]"),
    ("spec", "/t/demo-team/specs/attention-tuner/", "light", ".graph-scroll svg"),
)


RUN = """
from spakweb.work.runs import actions
from spakweb.work.worker import execute, queue
from spakweb.store.specs.models import Spec
from spakweb.ground.teams.models import User
queue.send = lambda key, queue="default": None
run = actions.start(User.objects.get(username="alice"), Spec.objects.get(slug="SPEC"))
print(run.key, flush=True)
while not run.ended:
    execute.advance(run.key)
    run.refresh_from_db()
"""


def test_picture_of_a_run(
    window: Callable[..., Watched], pytestconfig: pytest.Config, data: Path, tmp_path: Path
) -> None:
    """For the README the tuner in the middle of its work; else a run that ends at once. First of all: the
    other pictures show that there was one."""
    wanted = pytestconfig.getoption("--screenshots")
    spec, records, state = ("attention-tuner", 450, "Running") if wanted else ("hello", 9, "Succeeded")
    command = [str(ROOT / "manage.py"), "shell", "--no-imports", "-c", RUN.replace("SPEC", spec)]
    with start(
        [sys.executable, *command], cwd=ROOT, env=environment(data, 8000), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        path = f"/t/demo-team/runs/{process.stdout.readline().strip()}/"
        alice = window("alice", color_scheme="light", reduced_motion="reduce")
        address = f"{alice.url}{path.replace('/t/', '/api/v1/teams/', 1)}live/"
        ended = False
        live = alice.page.request
        while live.get(address, max_retries=3).json()["count"] < records:  # however long it takes
            assert not ended, "the run ended before its picture was taken"
            ended = process.poll() is not None
            alice.page.wait_for_timeout(100)
        take(alice, f"{path}?tab=metrics", f'.pill:has-text("{state}")', Path(wanted or tmp_path), "run")


@pytest.mark.parametrize(("name", "path", "look", "ready"), PICTURES, ids=[name for name, *_ in PICTURES])
def test_pictures(
    window: Callable[..., Watched],
    pytestconfig: pytest.Config,
    tmp_path: Path,
    name: str,
    path: str,
    look: str,
    ready: str,
) -> None:
    folder = Path(pytestconfig.getoption("--screenshots") or tmp_path)
    alice = window("alice", color_scheme=look, reduced_motion="reduce")
    take(alice, path, ready, folder, name)


PATCH = """
from spakweb.work.jobs import work
from spakweb.work.reviews import actions, checks, talk
from spakweb.work.reviews.protection import protect
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.ground.teams.models import Team, User
from spakweb.work.worker import execute, queue
queue.send = lambda key, queue="default": None
alice, bob = (User.objects.get(username=name) for name in ("alice", "bob"))
text = '''AGENT ReleaseNotes LEVEL 4 {
  START -> read
  TASK read {
    GOAL "Read what changed."
    step changes: tool.read_file { path: "CHANGES.md", on_fail: "stop" }
    NEXT { success -> report, fail -> collect }
  }

  TASK collect {
    GOAL "List the files instead."
    step files: tool.list_files { path: "." }
    NEXT { success -> report }
  }

  TASK report {
    GOAL "Write the notes."
    step write: tool.write_file { path: "NOTES.md", content: "Nothing new." }
    success: file_exists("NOTES.md")
  }
}
'''
spec = create_spec(bob, Team.objects.get(slug="demo-team"), "release_notes", text)
protect(alice, spec, 1, required=["text"])
for _ in range(RUNS):
    run = start(bob, spec)
    while not run.ended:
        execute.advance(run.key)
        run.refresh_from_db()
text, why = text.replace('on_fail: "stop"', 'on_fail: "continue"'), "Runs list files for nothing."
patch = actions.propose(bob, spec, text, 1, "Write the notes without a list of changes", why)
work.do(checks.CHECK, str(patch.latest.pk))
talk.comment(alice, patch, "Nobody reads the list. Good.", "tasks/read")
actions.judge(alice, patch, 1, True, "The notes are the same.")
"""


def test_picture_of_a_patch(
    window: Callable[..., Watched], pytestconfig: pytest.Config, data: Path, tmp_path: Path
) -> None:
    """With evidence: what recorded runs would have done. Last of all: the others show no run of it."""
    wanted = pytestconfig.getoption("--screenshots")
    made = manage(data, "shell", "--no-imports", "-c", PATCH.replace("RUNS", "3" if wanted else "1"))
    assert made.returncode == 0, made.stderr
    alice = window(
        "alice", color_scheme="light", reduced_motion="reduce", viewport={"width": 1280, "height": 1860}
    )
    flips = 'caption:has-text("Flips by task")'
    take(alice, "/t/demo-team/specs/release-notes/patches/1/", flips, Path(wanted or tmp_path), "review")


def take(alice: Watched, path: str, ready: str, folder: Path, name: str) -> None:
    alice.go(path)
    alice.page.wait_for_selector(ready)
    alice.page.wait_for_function("document.readyState === 'complete' && document.fonts.status === 'loaded'")
    file = folder / f"platform-{name}.png"
    alice.page.screenshot(path=file, animations="disabled")
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 10_000
