"""A failing test of a source mended in the browser: to a pull request, or to a refusal."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import repair_kit
from jobs_kit import at_once
from run_rows_kit import begun
from sources_kit import Forge, Host, Repository
from spak.records import Record
from spakweb.ground.audit.models import Event
from spakweb.store.runs.models import Run
from spakweb.store.sources.models import Branch, Source
from spakweb.store.specs.models import Spec
from spakweb.work.runs.actions import start
from spakweb.work.sources import actions, branches
from spakweb.work.specs.actions import archive, create_spec
from spakweb.work.worker import execute

TEAM = "/t/kernel-tuners/"
HERE = f"{TEAM}sources/s/app/"
FORM = f"{TEAM}specs/repair/run/?files=git&source=app&focus=test"


@pytest.fixture
def app(cast: Any) -> Source:
    return actions.add(cast["alice"], cast.team, "app", "https://git.example.org/app.git", ["main"])


def mended(cast: Any, who: str = "bob") -> str:
    answer = cast.client(who).post(f"{HERE}mend/")
    assert answer.status_code == 302
    return str(answer["Location"])


def test_the_form_has_the_source_and_the_spec_is_made_once(cast: Any, app: Source) -> None:
    before = cast.team.specs.count()
    assert mended(cast) == mended(cast, "rita") == FORM
    assert cast.team.specs.count() == before + 1
    spec = cast.team.specs.get(slug="repair")
    event = Event.objects.get(action="spec.created", thing=str(spec.head))
    assert (event.actor, spec.head.facts["errors"]) == (cast["bob"], 0)
    form = cast.client("bob").get(FORM).content.decode()
    assert '<input type="text" name="input.test" value="" autofocus' in form
    assert 'name="files" value="git" checked' in form and '<option value="app" selected>' in form
    assert form.count("autofocus") == 1


def test_a_spec_of_another_text_or_an_archived_one_is_left(cast: Any, app: Source) -> None:
    create_spec(cast["alice"], cast.team, "repair", cast.spec.head.text)
    assert "/specs/repair-2/run/" in mended(cast)
    archive(cast["alice"], Spec.objects.get(team=cast.team, slug="repair-2"))
    assert "/specs/repair-3/run/" in mended(cast)


def test_who_may(cast: Any, app: Source) -> None:
    before = Spec.objects.count()
    assert cast.client("vera").post(f"{HERE}mend/").status_code == 403
    assert cast.client("charlie").post(f"{HERE}mend/").status_code == 404
    assert Spec.objects.count() == before
    for page in (HERE, f"{HERE}code/"):
        assert f'action="{HERE}mend/"' in cast.client("bob").get(page).content.decode()
        assert "Mend a failing test" not in cast.client("vera").get(page).content.decode()


@pytest.fixture
def forge() -> Iterator[Forge]:
    made = Forge()
    yield made
    made.close()


def test_from_a_source_to_a_pull_request(cast: Any, ground: None, forge: Forge, tmp_path: Path) -> None:
    files = {"numbers_.py": repair_kit.CLAMP.encode(), "test_numbers.py": repair_kit.TESTS.encode()}
    repository = Repository(tmp_path / "git" / "shop" / "app.git")
    repository.commit(files)
    host = Host(tmp_path / "git")
    try:
        actions.add(
            cast["alice"], cast.team, "app", host.url("shop/app.git"), ["main"], forge="github",
            api_url=forge.url, api_token=Forge.TOKEN,
        )  # fmt: skip
        run, bob = searched(cast), cast.client("bob")
        assert (run.state, run.reason) == ("succeeded", "")
        place = f"{TEAM}runs/{run.key}/"
        shown = html.unescape(bob.get(place).content.decode())
        assert "Patch and verdicts" in shown and "8 tests, " in shown
        assert '<span class="removed">-    if value < high:' in shown
        assert '<span class="added">+    if value > high:' in shown and "before-hash" not in shown
        names = ("visible", "hidden", "agrees", "no_new_failure", "minimal")
        assert all(f"<code>{name}</code> ok" in shown for name in names)
        bob.post(f"{place}branches/ask/", {"name": "spak/mend", "title": "Mend clamp", "pull": "1"})
        at_once(branches.PUSH)
        row = Branch.objects.get()
        assert (row.state, row.error, forge.pulls[0]["title"]) == ("pushed", "", "Mend clamp")
        assert row.pull_url in bob.get(f"{place}?tab=workspace").content.decode()
    finally:
        host.close()


def searched(cast: Any) -> Run:
    """A run of the repair from the source app, started by the form and advanced to its end."""
    mended(cast)
    given = {"files": "git", "source": "app", "version": "1", "input.test": "", "input.tests": "."}
    cast.client("bob").post(f"{TEAM}specs/repair/run/start/", {**given, "input.confirm": "."})
    run = Run.objects.get()
    execute.advance(run.key)
    run.refresh_from_db()
    return run


def test_suspected_lines_have_their_text(cast: Any, source: Source, repository: Repository) -> None:
    test = b"from halves import half\n\n\ndef test_half():\n    assert half(8) == 'four'\n"
    repository.commit({"halves.py": b"def half(x):\n    return x  # nothing\n", "test_halves.py": test})
    run = searched(cast)
    assert run.state == "refused"
    shown = cast.client("vera").get(f"{TEAM}runs/{run.key}/").content.decode()
    assert "No patch" in shown and "<code>repair.exhausted</code></a>" in shown
    assert 'halves.py:2</a><code class="rows-main">    return x  # nothing</code>' in shown


def test_an_answer_starts_the_next_run_with_the_same_files(
    cast: Any, source: Source, repository: Repository
) -> None:
    few = repair_kit.TESTS.replace("(11, 0, 10, 10), (3, 3, 3, 3), ", "")
    repository.commit({"numbers_.py": repair_kit.CLAMP.encode(), "test_numbers.py": few.encode()})
    mended(cast)
    spec = cast.team.specs.get(slug="repair")
    run = start(cast["bob"], spec, seed=0, begun_from=actions.begin(cast["bob"], spec, "app"))
    execute.advance(run.key)
    run.refresh_from_db()
    place, bob = f"{TEAM}runs/{run.key}/", cast.client("bob")
    assert run.reason.startswith("repair.ambiguous"), run.reason
    assert f'action="{place}mend/"' in bob.get(place).content.decode()
    assert f'action="{place}mend/"' not in cast.client("vera").get(place).content.decode()
    for text in ("open('x')", "other(1) == 2", ""):
        assert bob.post(f"{place}mend/", {"answer": text}).status_code == 422
    assert Run.objects.count() == 1
    answer = bob.post(f"{place}mend/", {"answer": "raises ValueError"})
    made = Run.objects.exclude(pk=run.pk).get()
    assert answer.status_code == 302 and made.key in answer["Location"]
    assert (made.begun_from.commit or made.begun_from.wanted) == run.begun_from.commit
    assert made.inputs["file"] == "test_answered_clamp.py"
    assert made.inputs["text"].count("def test_") == 1 and "pytest.raises(ValueError)" in made.inputs["text"]
    execute.advance(made.key)
    made.refresh_from_db()
    assert made.ended and made.state in ("refused", "succeeded")


PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x < 1\n+x <= 1\n"
REFUSAL = {
    "code": "repair.ambiguous",
    "message": "2 patches pass, and differ on f('<b>\u202e')",
    "hint": "add a test",
    "suspects": ["src/a.py:7"],
    "question": {
        "call": "f('<b>\u202e')",
        "path": "src/a.py",
        "answers": [{"answer": "1", "patches": 2, "patch": PATCH}],
    },
}
SEARCH = {"tests": 9, "visible": 5, "hidden": 4, "candidates": 30, "tried": 30, "passing": 2}


@pytest.mark.parametrize(
    "bodies",
    [
        [{"by": "repair", "candidates": [{"args": {}}]}],
        [{"by": "repair", "candidates": 3}],
        [{"by": "repair", "candidates": [], "refusal": {"code": 7, "message": [], "hint": None}}],
        [{"by": "suspects", "candidates": [], "refusal": REFUSAL}],
        [{"by": "repair", "candidates": [], "refusal": {**REFUSAL, "question": ["f"]}}],
    ],
)
def test_records_of_another_form_show_no_panel(cast: Any, app: Source, bodies: list[dict[str, Any]]) -> None:
    assert 'id="repair"' not in page_of(cast, bodies)


def test_a_refusal_says_what_would_help(cast: Any, app: Source) -> None:
    shown = page_of(cast, [{"by": "repair", "candidates": [], "search": SEARCH, "refusal": REFUSAL}])
    assert "9 tests, 5 seen and 4 hidden; 30 of 30 edits tried, 2 pass" in shown
    assert "What helps: add a test" in shown and "<code>repair.ambiguous</code></a>" in shown
    assert "What should <code>f(&#x27;&lt;b&gt;⟨U+202E⟩&#x27;)</code> give? (src/a.py)" in shown
    assert '<span class="added">+x &lt;= 1' in shown and "2 patches" in shown and "\u202e" not in shown
    assert "/code/?q=src/a.py" in shown and "src/a.py:7" in shown
    assert "Add a test that expects one of these" in shown


def test_a_patch_of_a_model_is_marked_and_a_refused_one_has_its_reason(cast: Any, app: Source) -> None:
    refused = {"code": "repair.overfit", "message": "not the <hidden> ones", "hint": "", "patch": PATCH}
    checks = [{"name": "visible", "ok": True, "code": "", "detail": "5 tests"}]
    accepted = [{"tool": "apply_patch", "args": {"patch": PATCH}, "checks": checks}]
    plan = {"by": "repair", "model": "small-1"}
    shown = page_of(cast, [{**plan, "candidates": accepted, "search": {**SEARCH, "by": "model"}}])
    assert "<p>by: model small-1</p>" in shown and "Refused candidate" not in shown
    search = {**SEARCH, "model": refused}
    shown = page_of(cast, [{**plan, "candidates": [], "search": search, "refusal": REFUSAL}], "r-2")
    assert "Refused candidate of the model small-1" in shown and "by: model" not in shown
    assert "not the &lt;hidden&gt; ones <code>repair.overfit</code>" in shown


def page_of(cast: Any, bodies: list[dict[str, Any]], key: str = "r-1") -> str:
    """The page of a run of the repair with these plans."""
    mended(cast)
    version = cast.team.specs.get(slug="repair").head
    records = [Record("plan", "proposal", body, "mend", "search") for body in bodies]
    run = begun(cast.team, version, key, records)
    answer = cast.client("vera").get(f"{TEAM}runs/{run.key}/")
    assert answer.status_code == 200
    return str(answer.content.decode())
