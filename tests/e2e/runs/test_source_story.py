"""A team's own repository in the browser: connect it, run build_feature on it, and open its branch there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from platform_kit import ROOT, Up, Watched, running
from sources_kit import Repository, git

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Person = Callable[..., Watched]
TEAM = "/t/demo-team"
EXAMPLE = ROOT / "specs" / "examples" / "build_feature"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A bare repository with the files of the example, and a link among them."""
    made = Repository(tmp_path_factory.mktemp("git") / "slug.git")
    tests = {path.name: path.read_bytes() for path in (EXAMPLE / "tests").glob("*.py")}
    made.commit({
        **{name: (EXAMPLE / name).read_bytes() for name in ("slug.py", "pytest.ini")},
        "tests": ("040000", made.tree(tests)),
        "latest.py": ("120000", made.blob(b"slug.py")),
    })  # fmt: skip
    return made


@pytest.fixture(scope="module")
def platform(data: Path, remote: Repository) -> Iterator[Up]:
    with running(data, "--demo", SPAK_WEB_SOURCE_FOLDERS=str(remote.folder.parent)) as found:
        yield found


def test_from_a_repository_to_a_branch_of_it(person: Person, remote: Repository) -> None:
    alice = person()
    page = alice.page
    alice.go(f"{TEAM}/sources/")
    page.fill("[name=name]", "slugs")
    page.fill("[name=url]", str(remote.folder))
    assert alice.flaws() == []
    page.click("button:has-text('Add source')")
    expect(page.locator("main h1")).to_have_text("slugs")
    assert alice.flaws(dark=True) == []

    alice.go(f"{TEAM}/specs/build-feature/run/?mode=stepwise")
    page.check("input[name=files][value=git]")
    page.click("button:has-text('Start the run')")
    ask = page.locator("#run-ask")
    field = ask.locator('.edit[data-path="slug.py"] textarea')
    fixed = field.input_value().replace("def slug", "import re\n\n\ndef slug", 1)
    field.fill(
        fixed.replace('title.lower().replace(" ", "-")', '"-".join(re.findall("[a-z0-9]+", title.lower()))')
    )
    ask.locator("button:has-text('Submit patch')").click()
    expect(page.locator("#run-head .pill").first).to_have_text("Succeeded")

    page.click(".detail-side .tabs >> text=Workspace")
    expect(page.locator(".file-tree li:has-text('latest.py')")).to_contain_text("leads to slug.py")
    assert alice.flaws() == []
    page.fill("form:has([name=title]) [name=title]", "Make slugs of any title")
    page.click("button:has-text('Push the branch')")
    row = page.locator(".rows li:has-text('spak/')")
    expect(row).to_contain_text("Pushed")  # by itself
    expect(page.locator("#branches [data-follow]")).to_have_count(0)
    assert alice.flaws() == []

    ref = git(remote.folder, "for-each-ref", "--format=%(refname)", "refs/heads/spak").strip()
    assert git(remote.folder, "log", "-1", "--format=%s", ref) == "Make slugs of any title"
    assert git(remote.folder, "diff", "--name-only", f"{ref}^", ref).split() == ["result.txt", "slug.py"]
    assert "re.findall" in git(remote.folder, "show", f"{ref}:slug.py")
    assert git(remote.folder, "rev-parse", f"{ref}^") == remote.head()
