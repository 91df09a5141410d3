"""A run works in a copy: what a person reads of it, what its jobs see of the folder, and its quota."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, forked, nothing
from ordinary_kit import given_to_ordinary, open_folder, ordinary
from spak.ledger.files import FileLedgers

__all__ = ["open_folder"]
pytestmark = pytest.mark.sandbox


def program(folder: Path, code: str, more: str = "") -> str:
    text = code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    (folder / "p.spak").write_text(
        f'AGENT P LEVEL 2 {{ START -> t TASK t {{ step s: tool.python_repl {{ code: "{text}" }} {more} }} }}'
    )
    return "p.spak"


def laid(folder: Path) -> Path:
    """A repository with ignored dependencies, generated code and a file of secrets."""
    for name, text in {
        "a.py": "print('mine')\n",
        ".gitignore": "node_modules/\ngen/\n.env\n",
        "gen/api.py": "made = True\n",
        ".env": "PASSWORD=h3xagon-lantern\n",
        "node_modules/m/index.js": "module\n",
        "node_modules/m/.env": "TOKEN=w1llow-harbour\n",
        "node_modules/.cache/old": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return laid(tmp_path / "project")


def acts(folder: Path) -> list[dict[str, Any]]:
    """The bodies of what tools did in the one run of a folder."""
    [run] = [path.name for path in (folder / ".spak/runs").iterdir()]
    reader = FileLedgers(folder / ".spak/runs").reader(run)
    return [dict(record.body) for record, _ in reader.read() if record.kind == "act"]


def out(folder: Path) -> str:
    return str(acts(folder)[-1].get("out"))


def test_the_first_line_says_what_the_copy_holds(cli: Cli, tmp_path: Path, project: Path) -> None:
    done = cli("run", program(tmp_path, "pass"), "--workspace", "project", "--json")
    assert done.code == 0
    first = done.err.splitlines()[0]
    assert f"2 files copied from {project}" in first
    assert "node_modules shown read-only" in first and "2 ignored left out (.env, gen)" in first


SEES = """
import os, pathlib
home = pathlib.Path(HOME)
print("home:", (home / "a.py").read_text().strip(), os.path.samefile(home, "/ws"))
print("shown:", pathlib.Path("node_modules/m/index.js").read_text().strip())
print("masked:", "harbour" in pathlib.Path("node_modules/m/.env").read_text())
for name in ("node_modules/m/index.js", "node_modules/new", "node_modules/.cache/new", "new"):
    try:
        pathlib.Path(name).write_text("x")
        print("wrote", name)
    except OSError as error:
        print(error.strerror, name)
print("there:", [name for name in ("gen", ".env", "node_modules/.cache/old") if os.path.exists(name)])
"""


TALKS = """
import os, socket
try:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect("node_modules/m/dev.sock")
    print("connected")
except OSError as error:
    print("socket:", error.strerror)
try:
    os.open("node_modules/m/pipe", os.O_RDWR)
    print("opened")
except OSError as error:
    print("pipe:", error.strerror)
"""


@pytest.mark.parametrize("become", [nothing, ordinary], ids=["as_started", "ordinary_user"])
def test_nobody_who_listens_in_what_is_shown_is_reached(
    open_folder: Path, become: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = laid(open_folder / "project")
    os.mkfifo(source / "node_modules/m/pipe")
    monkeypatch.chdir(source / "node_modules/m")
    spec = program(open_folder, TALKS)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("dev.sock")
        listening.listen()
        for name in ("dev.sock", "pipe"):
            Path(name).chmod(0o777)
        if become is ordinary:
            given_to_ordinary(open_folder)
        done = forked(open_folder, ("run", spec, "--workspace", "project", "--json"), before=become)
    assert done.code == 0, done.err
    assert "socket: " in out(open_folder) and "pipe: " in out(open_folder)
    assert "opened" not in out(open_folder) and "connected" not in out(open_folder)


@pytest.mark.parametrize("become", [nothing, ordinary], ids=["as_started", "ordinary_user"])
def test_what_a_job_sees(open_folder: Path, become: Callable[[], None]) -> None:
    source = laid(open_folder / "project")
    spec = program(open_folder, SEES.replace("HOME", repr(str(source))))
    if become is ordinary:
        given_to_ordinary(open_folder)
    done = forked(open_folder, ("run", spec, "--workspace", "project", "--json"), before=become)
    assert done.code == 0, done.err
    seen = out(open_folder)
    assert "home: print('mine') True" in seen and "shown: module" in seen and "masked: False" in seen
    assert "Read-only file system node_modules/m/index.js" in seen
    assert "Read-only file system node_modules/new" in seen
    assert "wrote node_modules/.cache/new" in seen and "wrote new" in seen and "there: []" in seen
    assert not (source / "new").exists() and not (source / "node_modules/.cache/new").exists()


def test_a_link_in_the_place_of_a_folder_that_is_shown_leads_nowhere(
    cli: Cli, tmp_path: Path, project: Path
) -> None:
    outside = tmp_path / "outside"
    for folder in (outside, project / "web"):
        (folder / "node_modules/.cache").mkdir(parents=True)
    code = f"import os\nos.rename('web', 'old'); os.symlink({str(outside)!r}, 'web')"
    writes = "open('web/node_modules/.cache/x', 'w')"
    next_step = f'step n: tool.python_repl {{ code: "{writes}" }}'
    done = cli("run", program(tmp_path, code, next_step), "--workspace", "project", "--json")
    assert done.code == 1 and "No such file" in out(tmp_path)
    assert list((outside / "node_modules/.cache").iterdir()) == []


def test_a_tool_that_asks_for_what_was_left_out_gets_a_hint(cli: Cli, tmp_path: Path, project: Path) -> None:
    code = "open('gen/api.py')"
    assert cli("run", program(tmp_path, code), "--workspace", "project", "--json").code == 1
    *_, hint = acts(tmp_path)[-1]["diagnostics"]
    assert hint["code"] == "workspace.left_out" and 'bring = ["gen"]' in hint["message"]


def test_settings_bring_it(cli: Cli, tmp_path: Path, project: Path) -> None:
    (tmp_path / "spak.toml").write_text('[workspace]\nbring = ["gen"]\nreadonly = []\n')
    code = "import os\nopen('gen/api.py')\nprint(os.path.exists('node_modules'))"
    done = cli("run", program(tmp_path, code), "--workspace", "project", "--json")
    assert done.code == 0 and "False" in out(tmp_path)
    assert "left out (.env, node_modules)" in done.err


def test_a_run_that_is_taken_up_sees_the_same(cli: Cli, tmp_path: Path, project: Path) -> None:
    ask = 'step q: llm.query { prompt_template: "Say." output_var: word }'
    ask += ' step n: tool.run { cmd: "cat node_modules/m/index.js" }'
    done = cli("run", program(tmp_path, "pass", ask), "--workspace", "project", "--json")
    run = done.json["run"]
    assert cli("step", run, "--answer", "word", "--json").code == 0
    assert "module" in out(tmp_path)


@pytest.mark.parametrize("kind", ["hard link", "socket", "pipe"])
def test_what_reaches_beyond_the_folder_is_not_in_the_copy(
    cli: Cli, tmp_path: Path, project: Path, kind: str
) -> None:
    (tmp_path / "other.txt").write_text("outside")
    if kind == "hard link":
        os.link(tmp_path / "other.txt", project / "x")
    elif kind == "pipe":
        os.mkfifo(project / "x")
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(project / "x"))
    args = ("run", program(tmp_path, "open('x', 'w').write('x')"), "--workspace", "project", "--in-place")
    cli(*args, "--json")
    assert (tmp_path / "other.txt").read_text() == "outside"


FILLS = "import os\nfor n in range(100):\n open(f'f{n}', 'wb').write(os.urandom(1 << 20))"


def test_a_step_that_fills_its_quota_is_an_ordinary_result(cli: Cli, tmp_path: Path, project: Path) -> None:
    (tmp_path / "spak.toml").write_text("[workspace]\nsize_mib = 16\n")
    spec = program(tmp_path, FILLS, "NEXT { fail -> u }")
    text = (tmp_path / spec).read_text()
    (tmp_path / spec).write_text(f'{text[:-1]} TASK u {{ step n: tool.run {{ cmd: "ls" }} }} }}')
    done = cli("run", spec, "--workspace", "project", "--json")
    filled, after = acts(tmp_path)
    assert done.code == 0, (done.out, done.err)
    assert filled["outcome"] == "limit" and "16 MiB" in filled["out"]
    assert "f0" not in str(after["out"]) and "a.py" in str(after["out"])


def test_a_store_that_is_full_is_an_ordinary_result(cli: Cli, tmp_path: Path, project: Path) -> None:
    (tmp_path / "spak.toml").write_text("[workspace]\nstore_mib = 8\n")
    code = "import os\nopen('big', 'wb').write(os.urandom(9 << 20))"
    done = cli("run", program(tmp_path, code), "--workspace", "project", "--json")
    [full] = acts(tmp_path)
    assert done.code == 1 and (full["outcome"], full["code"]) == ("limit", "workspace.limit")
    [run] = (tmp_path / ".spak/runs").iterdir()
    assert not (run / "workspace/big").exists()


def test_a_folder_that_is_larger_than_its_quota_is_not_copied(
    cli: Cli, tmp_path: Path, project: Path
) -> None:
    (tmp_path / "spak.toml").write_text("[workspace]\nfiles = 2\n")
    done = cli("run", program(tmp_path, "pass"), "--workspace", "project", "--json")
    assert (done.code, done.error) == (1, "workspace.limit") and "only" in done.json["error"]["hint"]
    assert not list((tmp_path / ".spak/runs").iterdir())


@pytest.mark.parametrize("text", ["size_mib = 0", "files = true", 'bring = ["../x"]', "only = [1]", "x = 1"])
def test_settings_that_are_wrong(cli: Cli, tmp_path: Path, project: Path, text: str) -> None:
    (tmp_path / "spak.toml").write_text(f"[workspace]\n{text}\n")
    done = cli("run", program(tmp_path, "pass"), "--workspace", "project", "--json")
    assert (done.code, done.error) == (2, "usage.config")
