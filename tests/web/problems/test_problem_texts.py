"""A problem that exists is replaced on purpose, by a text that is Python, and its texts before come back."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from problem_kit import GOOD
from spakweb.ground.errors import Refused
from spakweb.store.specs.models import ProblemFile
from spakweb.work.specs import problem_files

NAME = "problems/scale.py"
OTHER = GOOD + "\n# another\n"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spakweb.celery.app.send_task", lambda name, args, **more: None)


@pytest.fixture
def problem(cast: Any) -> ProblemFile:
    return problem_files.save(cast["bob"], cast.team, NAME, GOOD)


def post(cast: Any, **given: str) -> Any:
    return cast.client("bob").post(
        reverse("spak-problem-save", args=[cast.team.slug]), {"name": NAME, **given}
    )


def now() -> ProblemFile:
    return ProblemFile.objects.get(name=NAME)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello there", "line 1"),
        ("def f(:\n", "line 1"),
        ("x = 1\n  y = 2\n", "line 2"),
        ("(" * 5000, "Python"),
    ],
    ids=["words", "signs", "indent", "deep"],
)
def test_a_text_that_is_no_python_is_not_saved(
    cast: Any, problem: ProblemFile, text: str, words: str
) -> None:
    answer = post(cast, text=text, replaces=problem.sha256)
    page = answer.content.decode()
    assert answer.status_code == 422 and "Nothing was saved" in page and words in page
    assert text.split()[0] in page, "what was typed is kept"
    assert now().text == GOOD and not now().earlier.exists()


def test_the_form_for_new_ones_replaces_none(cast: Any, problem: ProblemFile) -> None:
    answer = post(cast, text=OTHER)
    page = answer.content.decode()
    assert answer.status_code == 409 and "already, saved by" in page and "nothing was replaced" in page
    assert "# another" in page and now().text == GOOD
    assert post(cast, text=GOOD).status_code == 302, "the same text is no other"


def test_it_is_edited_on_its_page(cast: Any, problem: ProblemFile) -> None:
    address = reverse("spak-problem", args=[cast.team.slug, problem.pk])
    assert f'name="replaces" value="{problem.sha256}"' in cast.client("bob").get(address).content.decode()
    assert "Edit the text" not in cast.client("vera").get(address).content.decode()
    assert post(cast, text=OTHER, replaces=problem.sha256).status_code == 302
    assert now().text == OTHER
    late = post(cast, text=GOOD + "# mine\n", replaces=problem.sha256)
    assert late.status_code == 409 and "meanwhile" in late.content.decode()
    assert "# mine" in late.content.decode() and now().text == OTHER


def test_an_earlier_text_comes_back(cast: Any, problem: ProblemFile) -> None:
    problem_files.save(cast["alice"], cast.team, NAME, OTHER)
    [before] = now().earlier.all()
    assert (before.text, before.saved_by, before.saved_at) == (GOOD, cast["bob"], problem.saved_at)
    address = reverse("spak-problem", args=[cast.team.slug, problem.pk])
    assert "Earlier texts" in cast.client("vera").get(address).content.decode()
    do = reverse("spak-problem-do", args=[cast.team.slug, problem.pk])
    form = {"do": "restore", "earlier": str(before.pk)}
    assert cast.client("vera").post(do, form).status_code == 403
    assert cast.client("bob").post(do, form).status_code == 302
    assert now().text == GOOD and now().state == "queued"
    assert [one.text for one in now().earlier.all()] == [OTHER, GOOD]
    for key in ("0", "x", "999999"):
        assert cast.client("bob").post(do, {"do": "restore", "earlier": key}).status_code == 404


def test_who_may_not_widen_restores_none(cast: Any, problem: ProblemFile) -> None:
    problem_files.save(cast["alice"], cast.team, NAME, OTHER)
    cast.team.widening = cast.team.Widening.ALWAYS
    cast.team.save()
    with pytest.raises(Refused) as why:
        problem_files.restore(cast["bob"], now(), now().earlier.get().pk)
    assert why.value.code == "web.problem_judges" and now().text == OTHER


def test_the_newest_texts_are_kept(cast: Any, problem: ProblemFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_files, "MOST_EARLIER", 2)
    for number in range(4):
        problem_files.save(cast["bob"], cast.team, NAME, f"{GOOD}# {number}\n")
    assert [one.text[-2] for one in now().earlier.all()] == ["2", "1"]


def test_one_begins_with_a_problem_that_ships(cast: Any) -> None:
    bob, address = cast.client("bob"), reverse("spak-problem-list", args=[cast.team.slug])
    assert "?from=softmax.py" in bob.get(address).content.decode()
    page = bob.get(f"{address}?from=softmax.py").content.decode()
    assert "problems/my_softmax.py" in page and "def reference" in page
    for name in ("../settings.py", "nothing.py", "softmax.c"):
        assert "def reference" not in bob.get(address, {"from": name}).content.decode()
