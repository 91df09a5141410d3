"""Answering a step that wants a patch: by editing files or pasting one, and what is refused, in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spak import data
from spak.records import decode
from spakweb.store.runs.models import Run
from spakweb.work.runs import actions, answering, files
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)

SHIPPED = (data.path("specs/examples") / "build_feature.spak").read_text()
SPEC = SHIPPED.replace("pytest tests/ -q", "grep -q re.findall slug.py").replace(
    'VALIDATOR PyTest { paths: ["tests/"], conftest: false, min_tests: 4 }', ""
)
"""The shipped spec with a test that takes no time; tests/e2e/runs/test_first_hour.py does the shipped one."""
FIX = (data.path("specs/examples") / "fix.patch").read_text()
SLUG = (data.path("specs/examples") / "build_feature" / "slug.py").read_text()
ASKING = """\
task Talk {
  step make: tool.write_file { path: "a.txt" content: "same\\nsame\\nx\\n" }
  step hear: llm.query { prompt: "A patch." output_var: fix }
  step apply: tool.apply_patch { patch: fix }
  success: file_contains("a.txt", "new")
}
"""
WRONG = "--- a/slug.py\n+++ b/slug.py\n@@ -1,1 +1,1 @@\n-nothing\n+x\n"
Post = Callable[..., Any]


@pytest.fixture
def waits(ground: None, cast: Any) -> Callable[..., Run]:
    def make(text: str = SPEC, name: str = "build_feature") -> Run:
        spec = create_spec(cast["alice"], cast.team, name, text)
        return advance(actions.start(cast["alice"], spec, mode="stepwise"))

    return make


def advance(run: Run) -> Run:
    execute.advance(run.key)
    run.refresh_from_db()
    return run


@pytest.fixture
def post(cast: Any) -> Post:
    """`post(run, text=..., **{"edit.path": [...]})`: the answer of alice to what the run waits for."""

    def make(run: Run, by: str = "alice", **given: Any) -> Any:
        of = run.summary["waiting"]["id"]
        address = reverse("spak-run-answer", args=[run.team.slug, run.key])
        return cast.client(by).post(address, {"of": of, **given})

    return make


def page(cast: Any, run: Run, query: str = "") -> str:
    address = reverse("spak-run", args=[run.team.slug, run.key])
    return cast.client("alice").get(f"{address}{query}").content.decode()


def edits(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"edit.path": [path for path, _ in pairs], "edit.text": [text for _, text in pairs]}


def test_the_form_shows_the_files_and_opens_the_only_one_that_may_change(waits: Any, cast: Any) -> None:
    text = page(cast, waits())
    ask = text[text.index('id="run-ask"') : text.index('id="run-figures"')]
    assert "Edit the files" in ask and "Or paste a patch" in ask
    assert 'value="slug.py"' in ask and "title.lower()" in ask  # it is open
    assert re.search(r"test_slug.py</span>\s*<span[^>]*>protected by the spec", ask)
    assert 'data-edit="tests/test_slug.py"' not in ask


def test_an_edited_file_becomes_the_patch(waits: Any, post: Post) -> None:
    run = waits()
    fixed = SLUG.replace(
        'title.lower().replace(" ", "-")', '"-".join(re.findall(r"[a-z0-9]+", title.lower()))'
    ).replace("def slug", "import re\n\n\ndef slug", 1)
    assert (
        post(run, **edits(("slug.py", fixed.replace("\n", "\r\n")))).status_code == 302
    )  # as a form sends it
    run = advance(run)
    assert run.state == "succeeded"
    assert files.read(run, "slug.py") == fixed.encode()


def test_a_pasted_patch_is_taken(waits: Any, post: Post) -> None:
    run = waits()
    assert post(run, text=FIX).status_code == 302
    assert advance(run).state == "succeeded"


def test_a_patch_that_does_not_fit_is_refused_in_words(waits: Any, post: Post) -> None:
    run = waits()
    answer = post(run, text=WRONG)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert (
        "Nothing was submitted" in text and "Line 3 of the patch: slug.py does not have these lines" in text
    )
    assert "<code>@@" in text and "slug.py as it is" in text and "Names for files and addresses" in text
    assert WRONG.splitlines()[3] in text  # what was typed is kept
    assert "{&quot;code&quot;" not in text[text.index("no-fit") : text.index("Edit the files")]
    assert not run.commands.exists()
    assert post(run, text=WRONG, anyway="1").status_code == 302


NOT_TAKEN: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"text": WRONG.replace("slug.py", "tests/test_slug.py")}, 422, "test_slug.py does not have"),
    ({"text": "--- /dev/null\n+++ b/result.txt\n@@ -0,0 +1 @@\n+PASS\n"}, 422, "must stay as it is"),
    ({"text": "--- a/gone.py\n+++ b/gone.py\n@@ -1 +1 @@\n-a\n+b\n"}, 422, "there is no file gone.py"),
    ({"text": "no patch at all"}, 422, "it changes no file"),
    (edits(("slug.py", SLUG)), 400, "Nothing is changed"),
    (edits(("../x", "1")), 400, "is not a name for a file"),
    (edits(("slug.py", "x")) | {"text": FIX}, 400, "edited files and pasted a patch"),
    (edits(("slug.py", "my own words"), ("tests/test_slug.py", "x")), 422, "my own words"),
    ({}, 400, "The answer is empty"),
    ({"text": "  "}, 400, "The answer is empty"),
)


def test_what_cannot_be_taken_is_told_and_kept(waits: Any, post: Post) -> None:
    run = waits()
    for given, status, said in NOT_TAKEN:
        answer = post(run, **given)
        assert (answer.status_code, said in answer.content.decode()) == (status, True), given
    assert not run.commands.exists() and advance(run).state == "waiting"


def test_a_patch_that_fits_twice_says_so(waits: Any, post: Post) -> None:
    run = waits(ASKING, "talk")
    twice = "--- a/a.txt\n+++ b/a.txt\n@@ -3,1 +3,1 @@\n-same\n+new\n"
    text = post(run, text=twice).content.decode()
    assert "The same lines are at lines 1, 2" in text
    assert not run.commands.exists()


def test_two_who_answer_at_once(waits: Any, post: Post) -> None:
    """One is taken, the other is told who was first, and keeps what was typed."""
    run = waits()
    assert post(run, text=FIX).status_code == 302
    late = post(run, by="bob", **edits(("slug.py", "of bob")))
    assert late.status_code == 409
    text = late.content.decode()
    assert f"{run.commands.get().by} was first and answered it: your answer was not used." in text
    kept = text[text.index("What you typed") : text.index('id="run-ask"')]
    assert "slug.py" in kept and "of bob</textarea>" in kept


def test_what_the_run_refused_is_told_at_the_next_question(waits: Any, post: Post, cast: Any) -> None:
    run = waits()
    post(run, text=WRONG, anyway="1")
    run = advance(run)
    assert run.state == "waiting"
    text = page(cast, run)
    ask = text[text.index('id="run-ask"') : text.index("The prompt as sent")]
    assert "The last patch was not applied." in ask
    assert "Line 3: slug.py does not have these lines." in ask
    assert "slug.py as it is" in ask and "{" not in ask.split("last patch")[1]
    seq = int(re.search(r">Record (\d+)<", ask)[1])  # type: ignore[index]
    assert decode(bytes(run.records.get(seq=seq).line)).body["diagnostics"]


def test_a_file_is_opened_in_the_form(waits: Any, cast: Any) -> None:
    run = waits(ASKING, "talk")
    client = cast.client("alice")
    address = reverse("spak-run", args=[run.team.slug, run.key])
    part = client.get(f"{address}?edit=file/a.txt", headers={"HX-Request": "true", "HX-Target": "edits"})
    assert part.content.decode().strip().startswith('<label class="field edit" data-path="a.txt"')
    assert "same\nsame" in part.content.decode()
    for name in ("nothing", "../../etc/passwd"):
        gone = client.get(f"{address}?edit=file/{name}", headers={"HX-Request": "true", "HX-Target": "edits"})
        assert "root:" not in gone.content.decode() and f'data-path="{name}"' not in gone.content.decode()


def test_a_step_that_wants_no_patch_has_a_plain_form(waits: Any, post: Post, cast: Any) -> None:
    plain = ASKING.replace(
        "tool.apply_patch { patch: fix }", 'tool.write_file { path: "a" content: "{{fix}}" }'
    )
    run = waits(plain, "plain")
    assert answering.patch_wanted(run, run.summary["waiting"]) is None
    assert "Your answer" in page(cast, run) and "Edit the files" not in page(cast, run)
    assert post(run, text=WRONG).status_code == 302


def test_line_ends_of_the_file_are_kept(ground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "read", lambda run, path: b"a\r\nb\r\n")
    patch = answering.made(Run(), [("x", "a\r\nc\r\n")])
    assert patch.endswith("-b\r\n+c\r\n")
