"""The door: each changed path has its class, and what is refused or unsigned does not leave."""

from __future__ import annotations

import pytest

from door_kit import changed, holding, leaving
from spak.door import MOST_SIGNED, Class, Leaving
from spak.errors import RunError

TOKEN = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5"
BASE = {
    "README.md": "read me\n",
    "pyproject.toml": "[project]\n",
    "src/app/__init__.py": "",
    "src/app/main.py": "x = 1\n",
    "src/tool.py": "x = 1\n",
    "src/run.py": "x: print()\n",
    "docs/guide.md": "words\n",
    "conf/prod.ini": "a = b\n",
    "tests/test_main.py": "def test(): ...\n",
    "scripts/release.sh": "make\n",
    "locale/de.po": 'msgid "a"\n',
}


def classes(found: Leaving) -> dict[str, str]:
    return {change.path: str(change.of) for change in found.changes}


def of(path: str, text: str | None = "y = 2\n", **options: object) -> Class:
    (change,) = changed(BASE, {path: text}, **options).changes
    return change.of


ORDINARY = """
conf/prod.ini src/app/_transports/wsgi.py
README.md src/app/main.py src/app/new.py src/app/deep/er/new.py docs/guide.md docs/new.rst
CHANGES.md src/app/templates/page.html src/app/static/page.css src/app/static/page.js locale/de.po
locale/fr.po src/app/schema.sql src/app/data.csv src/app/data.json src/app/logo.svg
src/app/migrations/0002_x.py src/app/json.py src/lib.rs src/main.go src/app/.gitkeep
src/app/components/Page.tsx src/app/hooks/useIt.ts
"""
CHECKS = """
tests/test_main.py tests/test_new.py tests/fixtures/a.json src/app/test_more.py src/main_test.go
src/app/page.test.tsx
"""
RUNS = """
setup.py new.py new/thing.py src/new.xyz src/new pyproject.toml conf/new.yaml
scripts/release.sh src/json.py src/yaml.py src/app/management/commands/migrate.py
src/tool/__init__.py src/requirements.txt specs/flow.spak src/flow.spak policy/law.mg src/law.mg
Makefile src/Makefile
"""


@pytest.mark.parametrize("path", ORDINARY.split())
def test_ordinary_is_a_positive_form(path: str) -> None:
    assert of(path) is Class.ORDINARY


@pytest.mark.parametrize("path", CHECKS.split())
def test_tests_and_what_they_read_are_checks(path: str) -> None:
    assert of(path) is Class.CHECKS


@pytest.mark.parametrize("path", RUNS.split())
def test_what_a_tool_takes_up_or_nobody_knows_runs(path: str) -> None:
    assert of(path) is Class.RUNS


CONTROL = """
.github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml
.travis.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .husky/pre-commit
.githooks/pre-push .pre-commit-config.yaml lefthook.yml .gitattributes .gitmodules .bashrc
.yarnrc.yml .editorconfig .vscode/tasks.json .vscode/settings.json .idea/workspace.xml
.devcontainer/devcontainer.json .claude/settings.json .cursor/rules/x.mdc CLAUDE.md AGENTS.md
GEMINI.md .github/copilot-instructions.md .mcp.json conftest.py tests/conftest.py setup.py setup.cfg
pyproject.toml tox.ini noxfile.py pytest.ini sitecustomize.py src/usercustomize.py src/x.pth
manage.py wsgi.py gunicorn.conf.py Makefile src/Makefile justfile package.json src/package.json
package-lock.json webpack.config.js vite.config.ts jest.config.mjs Cargo.toml build.rs
CMakeLists.txt build.gradle Dockerfile docker-compose.yml deploy.sh scripts/release.sh main.tf
requirements.txt
"""


@pytest.mark.parametrize("path", CONTROL.split())
def test_files_that_say_what_is_run_need_a_signature(path: str) -> None:
    """By whichever tool they were written: programs, `write_file` and `apply_patch` meet one door (F10)."""
    found = changed(BASE, {path: "whatever\n"})
    assert [change.of for change in found.changes] == [Class.RUNS], found.text()
    with pytest.raises(RunError) as caught:
        found.require()
    assert caught.value.code == "door.unsigned" and path in caught.value.message


def test_there_are_sixty_of_them() -> None:
    assert len(CONTROL.split()) >= 60


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        (".env", "A=b\n", "secret"),
        ("conf/id_rsa", "k\n", "secret"),
        ("tests/.env", "A=b\n", "secret"),
        ("notes.txt", f"the password: {TOKEN}\n", "secret"),
        ("docs/run.md", f"DB_PASSWORD={TOKEN}\n", "secret"),
        ("conf/prod.ini", f"password = {TOKEN}\n", "secret"),
        ("src/app/main.py", f'TOKEN = "ghp_{TOKEN}a1B2"\n', "secret"),
        ("tests/test_main.py", f'TOKEN = "ghp_{TOKEN}a1B2"\n', "checks"),
        ("src/app/x.py", "the value is kq7-Sturmflut-0x5e\n", "secret"),
        ("tests/kq7-Sturmflut-0x5e.py", "x\n", "secret"),
        ("src/app/server.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "runs"),
        ("out.txt", "->../outside.txt", "odd"),
        ("src/out.txt", "->/etc/passwd", "odd"),
        ("src/out.txt", "->app/../../../x", "odd"),
        ("src/env.txt", "->../.env", "odd"),
        ("src/link.txt", "->app/main.py", "runs"),
        ("dev.sock", None, "odd"),
        ("src/.git/config", "[core]\n", "odd"),
        ("src/.GIT./hooks/x", "id\n", "odd"),
        ("src/a\u202eyp.md", "x\n", "odd"),
        ("src/a\nb.md", "x\n", "odd"),
        ("src/a\udcff.md", "x\n", "odd"),
    ],
)  # fmt: skip
def test_secrets_and_odd_things_are_refused(path: str, text: str | None, wanted: str) -> None:
    found = changed(BASE, {path: text}, holds=holding("kq7-Sturmflut-0x5e"))
    assert [str(change.of) for change in found.changes] == [wanted], found.text()
    if wanted in ("secret", "odd"):
        with pytest.raises(RunError) as caught:
            found.require(signed=found.digest)
        assert caught.value.code == f"door.{wanted}" and TOKEN not in str(caught.value)


def test_a_link_through_another_is_odd() -> None:
    found = changed(BASE | {"src/up": "->.."}, {"docs/x.md": "->../src/up/y"})
    assert classes(found) == {"docs/x.md": "odd"}


def test_a_secret_that_was_out_before_holds_nothing_back() -> None:
    """What a file held already is no news; what is new in it is."""
    base = BASE | {"conf/prod.ini": f"password = {TOKEN}\n"}
    assert classes(changed(base, {"conf/prod.ini": f"password = {TOKEN}\na = b\n"})) == {
        "conf/prod.ini": "ordinary"
    }
    assert classes(changed(base, {"conf/prod.ini": f"password = {TOKEN[::-1]}\n"})) == {
        "conf/prod.ini": "secret"
    }


def test_what_the_operator_shows_is_no_secret() -> None:
    assert of("tests/server.pem", "x\n", shown=["tests/*.pem"]) is Class.RUNS


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        ("conftest.py", "", "runs"),
        ("Makefile", "all:\n", "runs"),
        ("src/Makefile", "all:\n", "runs"),
        ("src/deploy.sh", "x:make\n", "runs"),
        ("src/tool", "x:make\n", "runs"),
        ("a.xyz", "", "runs"),
        ("law.mg", "a(1).\n", "runs"),
        ("src/web/asgi.py", "", "runs"),
        ("latest", "->docs", "runs"),
        (".env", "A=b\n", "runs"),
        ("tests/test_main.py", "", "checks"),
        ("tests/data.json", "{}", "checks"),
        ("src/app/main.py", "", "ordinary"),
        ("conf/prod.yaml", "", "ordinary"),
        ("main.py", "", "ordinary"),
        ("src/.gitkeep", "", "ordinary"),
    ],
)
def test_a_file_that_goes_away_has_the_class_of_one_that_changes(path: str, text: str, wanted: str) -> None:
    """What is gone runs no more: a check that is not made, a rule that is not kept."""
    gone = {path, "src/web/settings.py"}
    base = BASE | {path: text, "src/web/settings.py": "", "src/web/app.py": ""}
    found = leaving(base, {name: text for name, text in base.items() if name not in gone})
    assert classes(found) == {path: wanted, "src/web/settings.py": "ordinary"}


def test_modes() -> None:
    found = changed(BASE, {"src/app/main.py": "x:x = 1\n", "src/run.py": "x: print(2)\n"})
    assert classes(found) == {"src/app/main.py": "runs", "src/run.py": "ordinary"}
    assert classes(changed(BASE, {"src/app/main.py": "x:x = 1\n"}, modes=False)) == {}
    assert classes(changed(BASE, {"src/app/a.py": "x:x = 1\n"}, modes=False)) == {"src/app/a.py": "ordinary"}


def test_line_ends_stay() -> None:
    found = changed(BASE, {"docs/guide.md": "words\r\n"})
    assert classes(found) == {"docs/guide.md": "ordinary"}
    assert found.changes[0].after is not None and found.changes[0].after.size == 7


def test_names_that_differ_by_case_are_odd_where_case_does_not_count() -> None:
    changes = {"docs/Guide.md": "x\n", "Src/app/x.py": "x\n"}
    assert classes(changed(BASE, changes)) == {"docs/Guide.md": "ordinary", "Src/app/x.py": "runs"}
    assert set(classes(changed(BASE, changes, cased=False)).values()) == {"odd"}
    assert classes(changed(BASE, {"docs/new.md": "x\n"}, cased=False)) == {"docs/new.md": "ordinary"}


def test_two_names_that_are_shown_alike_do_not_leave() -> None:
    """One letter with its mark, or the letter and the mark: a person sees one name, some systems have one."""
    base = BASE | {"docs/caf\u00e9.md": "x\n"}
    assert classes(changed(base, {"docs/cafe\u0301.md": "y\n"})) == {"docs/cafe\u0301.md": "odd"}
    assert classes(changed(base, {"docs/na\u00efve.md": "y\n"})) == {"docs/na\u00efve.md": "ordinary"}


def test_ignored_files_stay() -> None:
    """Byte code beside an unchanged source, and a secret that git does not track (F9, F1)."""
    pyc, base = "src/__pycache__/tool.cpython-311.pyc", BASE | {"a.log": "x"}
    found = changed(
        base, {pyc: "\0", ".env": "A=b\n", "a.log": "y"}, ignored=lambda path: path != "src/tool.py"
    )
    assert classes(found) == {pyc: "ignored", ".env": "ignored", "a.log": "runs"}
    assert [change.path for change in found.leaves] == ["a.log"]
    assert of(pyc, "\0") is Class.RUNS, "nor does it leave unsigned where nobody asks git"


def test_a_signature_binds_what_was_looked_at() -> None:
    found = changed(BASE, {"conftest.py": "x\n", "src/app/main.py": "z\n"})
    found.require(signed=found.digest)
    found.require(allowed=["conftest.py"])
    for other in ({"conftest.py": "y\n"}, {"conftest.py": "x\n", "src/app/main.py": "z\n", "b.xyz": ""}):
        with pytest.raises(RunError, match="conftest"):
            changed(BASE, other).require(signed=found.digest)
    with pytest.raises(RunError) as caught:
        changed(BASE, {"conftest.py": "x\n", "noxfile.py": "x\n"}).require(allowed=["conftest.py"])
    assert "noxfile.py" in caught.value.message
    other_base = changed(BASE | {"docs/guide.md": "w\n"}, {"conftest.py": "x\n", "src/app/main.py": "z\n"})
    assert other_base.digest != found.digest, "another base is another question"


def test_more_than_a_person_is_shown_are_signed_by_nobody() -> None:
    names = [f"ci/{number:03}.xyz" for number in range(MOST_SIGNED)]
    most = changed(BASE, dict.fromkeys(names, "x\n"))
    most.require(signed=most.digest)
    assert all(name in most.text() for name in names)
    more = changed(BASE, dict.fromkeys([*names, "zz.xyz"], "x\n"))
    with pytest.raises(RunError, match="501 files") as caught:
        more.require(signed=more.digest)
    assert caught.value.code == "door.unsigned"
    more.require(allowed=[*names, "zz.xyz"])


def test_some_of_the_paths() -> None:
    files = {"conftest.py": "x\n", ".env": "A=b\n", "src/app/main.py": "z\n"}
    found, some = changed(BASE, files), changed(BASE, files, keep=lambda path: path.startswith("src/"))
    some.require()
    assert classes(some) == {"src/app/main.py": "ordinary"} and some.digest != found.digest


def test_settings_of_the_next_run_are_signed_for_wherever_they_lie() -> None:
    base = BASE | {"part/spak.toml": "", "part/suite/one/case.json": "{}\n"}
    files = {"part/spak.toml": "[policy]\n", "spak-mcp.lock": "{}\n", "part/suite/one/case.json": "[]\n"}
    found = changed(base, files)
    runs = dict.fromkeys(("part/spak.toml", "spak-mcp.lock"), "runs")
    assert classes(found) == {**runs, "part/suite/one/case.json": "checks"}


def test_a_package_that_comes_along_makes_no_module_ordinary() -> None:
    """In a package a module shadows nothing. One that comes may wait, or go again in a later turn."""
    files = {"src/new/__init__.py": "", "src/new/json.py": "x\n", "src/app/json.py": "x\n"}
    found = classes(changed(BASE, files))
    assert (found["src/new/json.py"], found["src/app/json.py"]) == ("runs", "ordinary")


def test_tests_that_made_the_check_pass_need_a_signature() -> None:
    found = changed(BASE, {"src/app/main.py": "z\n", "tests/test_more.py": "x\n"})
    found.require()
    own = found.by_own_tests()
    with pytest.raises(RunError, match="tests/test_more") as caught:
        own.require(signed=found.digest)
    assert caught.value.code == "door.unsigned" and classes(own)["src/app/main.py"] == "ordinary"
    own.require(allowed=["tests/test_more.py"])


def test_what_the_law_blocks_does_not_leave() -> None:
    found = changed(BASE, {"src/app/main.py": "z\n"}, blocked=("No Check Ran",))
    with pytest.raises(RunError, match="No Check Ran") as caught:
        found.require(signed=found.digest)
    assert caught.value.code == "door.blocked"


def test_people_see_first_what_would_run_by_itself() -> None:
    found = changed(BASE, {"a.md": "x\n", ".env": "A=b\n", "tests/test_b.py": "x\n", "conftest.py": "x\n"})
    assert found.text().splitlines() == [
        "would run by itself, needs a signature (1)",
        "  A conftest.py  read by pytest, before any test",
        "refused: secret (1)",
        "  A .env  a file of secrets, by its name",
        "checks (1)",
        "  A tests/test_b.py  a test, or read by one",
        "ordinary (1)",
        "  A a.md  prose: it is read",
    ]
    many = changed(BASE, {f"src/app/{number}.py": "x\n" for number in range(100)})
    assert many.text().splitlines()[-1] == "  and 60 more"


def test_no_change_is_no_trouble() -> None:
    found = leaving(BASE, BASE)
    found.require()
    assert not found.changes and found.text() == ""


def test_a_folder_in_the_place_of_a_file() -> None:
    after = {path: text for path, text in BASE.items() if path != "docs/guide.md"} | {
        "docs/guide.md/x.md": "x\n"
    }
    assert classes(leaving(BASE, after)) == {"docs/guide.md": "ordinary", "docs/guide.md/x.md": "ordinary"}
