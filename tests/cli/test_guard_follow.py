"""`spak guard --follow`: ordinary changes come home at the end of each turn, by the door; the rest waits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import SPAK, Cli, Done, forked
from guard_kit import AGENT, Model
from process_kit import until
from spak.apply_run.journal import Journal
from spak.apply_run.user_folder import UserFolder
from spak.cli import apply
from spak.cli.guard_home import Home
from spak.kernel.state import State

pytestmark = pytest.mark.sandbox

TURN = "printf 'one\\ntwo\\n' > src/a.py; echo all: > Makefile; echo new > src/b.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("one\n")
    (folder / "src/c.py").write_text("c\n")
    (folder / ".env").write_text("API_TOKEN=abcdef123456secretvalue\n")
    shutil.copy(AGENT, folder / "agent.py")
    return folder


def line(*more: str) -> tuple[str, ...]:
    return ("guard", "--json", *more, "--", sys.executable, "agent.py", "work")


def person(project: Path, *words: str) -> Done:
    """What a person says from another terminal while the session runs."""
    done = subprocess.run([SPAK, *words], cwd=project, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def brought(found: dict[str, object]) -> list[str]:
    applied = found["applied"]
    assert isinstance(applied, list)
    return [one["path"] for one in applied]


def test_ordinary_changes_come_home_and_what_runs_by_itself_waits(cli: Cli, project: Path) -> None:
    with Model(
        [TURN, "rm src/c.py; cp src/b.py src/d.py; printf '#!/bin/sh' > src/b.py; chmod +x src/b.py"]
    ).serving() as model:
        done = cli(*line("--follow"), env=model.env, folder=project)
    assert done.code == 0, done.err
    home = done.json["apply"]
    assert sorted(brought(home)) == ["src/a.py", "src/b.py", "src/c.py", "src/d.py"]
    assert [one["path"] for one in home["held"]] == ["Makefile", "src/b.py"]
    assert (project / "src/b.py").read_text() == "new\n", "as it was when it was ordinary"
    assert (project / "src/a.py").read_text() == "one\ntwo\n"
    assert not (project / "src/c.py").exists() and not (project / "Makefile").exists()
    shown = cli("show", done.json["run"], folder=project)
    assert "waits  Makefile: runs" in shown.err, shown.err
    assert cli("show", done.json["run"], "--json", folder=project).json["apply"]["held"] == home["held"]
    allow = ("--allow-runs", "Makefile", "--allow-runs", "src/b.py")
    assert cli("apply", done.json["run"], *allow, folder=project).code == 0
    assert (project / "Makefile").read_text() == "all:\n"
    assert "waits  " not in cli("show", done.json["run"], folder=project).err


def test_no_module_shadows_a_standard_one_by_a_package_that_waits_or_goes_again(
    cli: Cli, project: Path
) -> None:
    texts = [
        "mkdir scripts; echo x > scripts/json.py; touch scripts/__init__.py; chmod +x scripts/__init__.py",
        "mkdir src/new; echo x > src/new/json.py; touch src/new/__init__.py",
        "rm src/new/__init__.py",
    ]
    with Model(texts).serving() as model:
        done = cli(*line("--follow"), env=model.env, folder=project)
    assert done.code == 0, done.err
    came = {path.relative_to(project).parts[0] for path in project.rglob("json.py")}
    assert came <= {".spak"}, "none but in the run's own folder"


def test_bringing_that_fails_once_is_tried_again_at_the_next_turn(project: Path) -> None:
    bring, failures = apply.bring_home, [OSError(28, "No space left on device")]

    def spoil() -> None:
        def failing(*args: Any, **more: Any) -> Any:
            if failures:
                raise failures.pop()
            return bring(*args, **more)

        apply.bring_home = failing

    with Model([TURN, "true"]).serving() as model:
        done = forked(project, line("--follow"), env=model.env, before=spoil)
    assert done.code == 0, done.err
    assert (project / "src/b.py").read_text() == "new\n"


def test_bringing_that_fails_to_the_end_is_said(project: Path) -> None:
    def spoil() -> None:
        def failing(*args: Any, **more: Any) -> Any:
            raise OSError(28, "No space left on device")

        apply.bring_home = failing

    with Model([TURN]).serving() as model:
        done = forked(project, line("--follow"), env=model.env, before=spoil)
    assert "No space left on device" in done.out + done.err and "guard.home" in done.out + done.err
    assert not (project / "src/b.py").exists()


def edit(project: Path, path: str, before: str, after: str) -> None:
    """A person's edit, once the file came home."""
    until(lambda: (project / path).is_file() and (project / path).read_text() == before)
    (project / path).write_text(after)


def test_what_the_person_changed_meanwhile_is_merged_or_waits(cli: Cli, project: Path) -> None:
    lines = "".join(f"{number}\n" for number in range(9))
    (project / "src/c.py").write_text(lines)
    texts = [TURN, "sed -i s/two/agent/ src/a.py; sed -i s/8/agent/ src/c.py; echo more >> src/b.py"]
    with Model(texts).serving() as model:
        model.before[1] = lambda: edit(project, "src/a.py", "one\ntwo\n", "one\nmine\n")
        model.before[0] = lambda: edit(project, "src/c.py", lines, lines.replace("0", "mine"))
        done = cli(*line("--follow"), env=model.env, folder=project)
    assert done.code == 0, done.err
    assert done.json["apply"]["conflicts"] == ["src/a.py"]
    assert (project / "src/a.py").read_text() == "one\nmine\n", "a person's edit is never overwritten"
    assert (project / "src/c.py").read_text() == lines.replace("0", "mine").replace("8", "agent")
    assert (project / "src/b.py").read_text() == "new\nmore\n"
    name = done.json["run"]
    assert "conflict  src/a.py" in cli("show", name, folder=project).err
    (project / "src/a.py").write_text("one\nagent\n")
    assert cli("apply", name, "--only", "src", folder=project).code == 0


def test_what_is_taken_back_goes_back_at_home_too(cli: Cli, project: Path) -> None:
    """But for what the person edited since, which is named."""
    said: list[Done] = []
    records: list[str] = []

    def record() -> None:
        trace = next(project.glob(".spak/runs/*/trace.jsonl"))
        records.append(str(json.loads(trace.read_bytes().splitlines()[-1])["seq"]))

    asking = threading.Thread(
        target=lambda: said.append(person(project, "guard", "back", "latest", records[0]))
    )
    spoil = "echo bad > src/c.py; echo bad > src/a.py; echo x > src/new.py"

    def late() -> None:
        edit(project, "src/a.py", "bad\n", "mine\n")
        until((project / "src/new.py").exists)
        asking.start()  # it is done once this answer has ended

    waiting = "while [ -e src/new.py ]; do sleep 0.05; done"
    with Model([spoil, waiting]).serving() as model:
        model.before[0] = record
        model.before[1] = late
        done = cli(*line("--follow"), env=model.env, folder=project)
    asking.join()
    assert done.code == 0, done.err
    assert said[0].code == 0, said[0].err
    assert f"the same in {project}; not there: src/a.py" in said[0].err
    assert (project / "src/c.py").read_text() == "c\n" and not (project / "src/new.py").exists()
    assert (project / "src/a.py").read_text() == "mine\n"
    assert done.json["apply"]["conflicts"] == ["src/a.py"]


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_the_middle() -> None:
    """In the command's process: killed when the second file of a turn is to be written."""
    put, puts = UserFolder.put, list[str]()

    def once(self: UserFolder, path: str, *more: Any) -> None:
        puts.append(path)
        if len(puts) == 2:
            die()
        put(self, path, *more)

    UserFolder.put = once  # type: ignore[method-assign]


def kept_only() -> None:
    """In the command's process: killed when a turn is kept, and nothing of it came home."""
    bring = Home._bring

    def first(self: Home, state: State) -> None:
        if state.r3 != self._run.rules.r3:
            die()
        bring(self, state)

    Home._bring = first  # type: ignore[method-assign]


@pytest.mark.parametrize("finish", ["resume", "apply"])
@pytest.mark.parametrize("kill", [kept_only, in_the_middle])
def test_a_guard_killed_before_all_is_home_leaves_each_effect_once(
    project: Path, kill: Callable[[], None], finish: str
) -> None:
    turn = "echo 1 >> src/a.py; echo 1 >> src/b.py; echo 1 >> src/c.py"
    with Model([turn, "sleep 1000"]).serving() as model:
        killed = forked(project, line("--follow"), env=model.env, before=kill)
        assert killed.code == -signal.SIGKILL, killed.err
        name = next((project / ".spak/runs").glob("2*")).name
        if finish == "resume":
            model.texts = ["echo 2 >> src/b.py"]
            model.asked.clear()
            done = forked(project, line("--resume", name), env=model.env)
            assert done.json["apply"]["held"] == [], done.err
        else:
            done = forked(project, ("apply", name))
    assert done.code == 0, done.err
    found = [(project / path).read_text() for path in ("src/a.py", "src/b.py", "src/c.py")]
    assert found == ["one\n1\n", "1\n2\n" if finish == "resume" else "1\n", "c\n1\n"]
    assert not list(project.rglob(".spak-applying"))
    assert len(Journal(project / ".spak/runs" / name).done()) == (2 if finish == "resume" else 1)


def test_another_process_that_applies_is_waited_for(cli: Cli, project: Path) -> None:
    held = threading.Event()

    def hold() -> None:
        trace = next(project.glob(".spak/runs/*/trace.jsonl"))
        with Journal(trace.parent).held():
            held.wait()

    holding = threading.Thread(target=hold)
    with Model([TURN, "echo more >> src/b.py"]).serving() as model:
        model.before[0] = holding.start
        model.before[2] = held.set
        done = cli(*line("--follow"), env=model.env, folder=project)
    holding.join()
    assert done.code == 0 and (project / "src/b.py").read_text() == "new\nmore\n", done.err


def test_a_folder_that_is_gone_is_an_error_and_apply_finishes(cli: Cli, project: Path) -> None:
    away, above = project.with_name("away"), project.parent
    with Model([TURN]).serving() as model:
        model.before[0] = lambda: project.rename(away)
        done = cli(*line("--follow", "--workspace", "project"), env=model.env, folder=above)
    assert done.code == 0, done.err
    assert (brought(done.json["apply"]), done.json["apply"]["error"]["code"]) == ([], "apply.folder")
    assert "[apply.folder]" in cli("show", done.json["run"], folder=above).err
    away.rename(project)
    assert cli("apply", done.json["run"], "--only", "src", folder=above).code == 0
    assert (project / "src/a.py").read_text() == "one\ntwo\n"


def test_a_session_follows_as_it_began(cli: Cli, project: Path) -> None:
    done = cli(*line("--follow", "--resume", "latest"), folder=project)
    assert done.code == 2 and done.error == "usage.arguments"
