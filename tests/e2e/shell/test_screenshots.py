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
from spakweb.runs import actions
from spakweb.worker import execute, queue
from spakweb.specs.models import Spec
from spakweb.teams.models import User
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
        address = f"{alice.url}{path}live/"
        ended = False
        while alice.page.request.get(address).json()["count"] < records:  # however long the machine takes
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
from spakweb.reviews import actions, checks, talk
from spakweb.specs.models import Spec
from spakweb.teams.models import User
alice, bob = (User.objects.get(username=name) for name in ("alice", "bob"))
spec = Spec.objects.get(slug="cuda-optimizer")
text = spec.head.text.replace("patience: 3", "patience: 5").replace("plateau -> finalize", "plateau -> look")
look = '  TASK look {\\n    step list: tool.run { cmd: "ls" }\\n    NEXT { success -> finalize }\\n  }\\n\\n'
text = text.replace("  TASK finalize", look + "  TASK finalize", 1)
why = "The loop stops too early in half of the runs."
patch = actions.propose(bob, spec, text, 1, "More patience, then a look", why)
checks.check(patch.latest.pk)
talk.comment(alice, patch, "Why 5? The median run needs 4.", "tasks/optimize_loop/RULE/patience")
actions.judge(alice, patch, 1, True, "Good.")
"""


def test_picture_of_a_patch(
    window: Callable[..., Watched], pytestconfig: pytest.Config, data: Path, tmp_path: Path
) -> None:
    """Last of all: the other pictures show no patch."""
    made = manage(data, "shell", "--no-imports", "-c", PATCH)
    assert made.returncode == 0, made.stderr
    alice = window("alice", color_scheme="light", reduced_motion="reduce")
    folder = Path(pytestconfig.getoption("--screenshots") or tmp_path)
    take(alice, "/t/demo-team/specs/cuda-optimizer/patches/1/", '.pill:has-text("Passed")', folder, "review")


def take(alice: Watched, path: str, ready: str, folder: Path, name: str) -> None:
    alice.go(path)
    alice.page.wait_for_selector(ready)
    alice.page.wait_for_function("document.readyState === 'complete' && document.fonts.status === 'loaded'")
    file = folder / f"platform-{name}.png"
    alice.page.screenshot(path=file, animations="disabled")
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 10_000
