"""Files of a run: from a source, and copied from a folder.

From a source: 10,000 files of 200 MB in a git repository on the same disk.

Wall seconds from a queued run to one that waits for its first answer: the commit is fetched, packed, looked
through, kept, laid out in the run's workspace and frozen into its store, and the first records are written.
The second run begins from the same commit. The files are random bytes, which nothing makes smaller. The floor
is `git clone --depth 1` of the same repository with its work tree.

From a folder: 30,000 and 200,000 small files in a repository, as `spak run --workspace` copies and hashes
them for the first record; the floor is `cp -a` of the folder to the same disk.

    python -m bench.bench_files begin FOLDER     the part that needs Django, in a process of its own
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_platform import ROOT, _environment, row, team_of_bench
from bench.sizes import sized
from spak.workspace import Workspace

FILES, SIZE, FOLDERS = sized(9_900, 90), 20_000, sized(99, 9)
GIT = ("git", "-c", "gc.auto=0", "-c", "init.defaultBranch=main", "-c", "core.compression=0")
COPIED = ((sized(30_000, 300), 3, 1), (sized(200_000, 900), 20, 5))
"""How many files, and the aims in seconds for the first copy and the second."""
ASKS = 'task Ask { step q: llm.query { prompt: "Go on." output_var: x } }\n'


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        folder = Path(name)
        repository = folder / "git" / "big.git"
        _fill(repository)
        began = time.monotonic()
        clone = [*GIT, "clone", "-q", "--depth", "1", f"file://{repository}", str(folder / "clone")]
        subprocess.run(clone, check=True)
        floor = time.monotonic() - began
        settings = {"SPAK_WEB_SOURCE_FOLDERS": str(folder / "git")}
        done = subprocess.run(
            [sys.executable, "-m", "bench.bench_files", "begin", str(repository)],
            check=True, stdout=subprocess.PIPE, cwd=ROOT, env=_environment(folder / "data", settings),
        )  # fmt: skip
        first, second = json.loads(done.stdout.decode().strip().splitlines()[-1])
    what = f"{FILES + FOLDERS:,} files and folders, {FILES * SIZE // 1_000_000} MB, from a source"
    return [
        row(f"{what}: taken in, frozen, laid out", first, floor, "s", "<= 15"),
        row(f"{what}: the same commit again", second, floor, "s", "<= 2"),
        *(one for files, *aims in COPIED for one in copied(files, aims)),
    ]


def copied(files: int, aims: list[int]) -> list[dict[str, Any]]:
    """Seconds of two copies of a folder, each with the hash of what it holds."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        source, draw = Path(name, "source"), random.Random(2)
        for number in range(files):
            folder = source / f"d{number % 300}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"f{number}.py").write_bytes(draw.randbytes(draw.randrange(200, 8_000)))
        subprocess.run([*GIT, "init", "-q", str(source)], check=True)
        spent = []
        for number in range(len(aims)):
            began = time.monotonic()
            place = Workspace(Path(name, f"run{number}", "workspace"), Path(name, f"run{number}", "store"))
            assert place.copy_in(source, runs=Path(name)).files == files
            place.snapshot()
            spent.append(time.monotonic() - began)
        began = time.monotonic()
        subprocess.run(["cp", "-a", str(source), str(Path(name, "cp"))], check=True)
        floor = time.monotonic() - began
    which = ("first", "second")
    return [
        row(f"{files:,} files copied from a folder: {one}", took, floor, "s", f"<= {aim}")
        for one, took, aim in zip(which, spent, aims, strict=True)
    ]


def _fill(repository: Path) -> None:
    """One commit, by git's own stream."""
    repository.mkdir(parents=True)
    subprocess.run([*GIT, "init", "-q", "--bare", "."], check=True, cwd=repository)
    draw = random.Random(1)
    words = ["commit refs/heads/main\ncommitter B <b@example.org> 0 +0000\ndata 0\n\n"]
    with subprocess.Popen(
        [*GIT, "fast-import", "--quiet", "--done"], cwd=repository, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(words[0].encode())
        for number in range(FILES):
            path = f"d{number % FOLDERS}/f{number}"
            process.stdin.write(f"M 100644 inline {path}\ndata {SIZE}\n".encode())
            process.stdin.write(draw.randbytes(SIZE) + b"\n")
        process.stdin.write(b"\ndone\n")
        process.stdin.close()
    assert process.returncode == 0


def begin(repository: str) -> list[float]:
    """Seconds until the first run and the second one wait for an answer."""
    team = team_of_bench()
    from spakweb.ground.teams.models import Membership, Role, User
    from spakweb.work.runs.actions import start
    from spakweb.work.sources import actions
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.worker import execute, queue

    user = User.objects.create_user("bench", "bench@spak.example", "a long secret")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    queue.send = lambda key, queue="default": None
    actions.add(user, team, "big", repository, ["main"])
    spec = create_spec(user, team, "ask", ASKS)
    spent = []
    for _ in range(2):
        run = start(user, spec, mode="stepwise", begun_from=actions.begin(user, spec, "big"))
        began = time.monotonic()
        execute.advance(run.key)
        spent.append(time.monotonic() - began)
        run.refresh_from_db()
        assert (run.state, run.files and run.files.files) == ("waiting", FILES), run.reason
    return spent


if __name__ == "__main__":
    os.chdir(ROOT)
    print(json.dumps(begin(sys.argv[2])))
