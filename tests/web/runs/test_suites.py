"""Suites on the platform: runs kept as cases, an experiment with its matrix, what counts against it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from spakweb.ground.errors import Refused
from spakweb.store.ledger import uploads
from spakweb.store.runs.models import Run, Upload
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.runs import actions as runs
from spakweb.work.specs.actions import save_version
from spakweb.work.suites import actions, report
from spakweb.work.worker import execute

Ran = Callable[..., Run]
GOOD = """
task Write {
  step one: tool.write_file { path: "a.txt" content: "good" }
  success: file_contains("a.txt", "good")
}
"""
BAD = GOOD.replace('content: "good"', 'content: "bad"')


@pytest.fixture
def kept(cast: Any, ran: Ran) -> tuple[Suite, Run]:
    run = ran(GOOD)
    suite = actions.make(cast["bob"], cast.team, "Nightly")
    actions.keep(cast["bob"], run, suite, "first")
    return suite, run


def finish(experiment: Experiment) -> None:
    for cell in experiment.cells.select_related("run"):
        execute.advance(cell.run.key)


def every(suite: Suite) -> list[str]:
    return [case.split for case in suite.cases.all()]


def test_a_run_becomes_a_case_once(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    case = suite.cases.get()
    assert (case.name, case.state, case.reason, case.origin) == ("first", "succeeded", "", run.key)
    assert case.split in ("train", "gate", "sealed")
    for name in ("first", "second"):
        with pytest.raises(Refused) as caught:
            actions.keep(cast["bob"], run, suite, name)
        assert (caught.value.code, caught.value.status) == ("web.case", 409)


def test_only_what_ended_can_be_kept_and_only_by_editors(cast: Any, ran: Ran) -> None:
    suite = actions.make(cast["bob"], cast.team, "s")
    with pytest.raises(Refused, match="ended"):
        actions.keep(cast["bob"], ran(GOOD, advance=False), suite, "x")
    done = ran(GOOD)
    with pytest.raises(PermissionDenied):
        actions.keep(cast["vera"], done, suite, "x")
    with pytest.raises(Refused, match="letters"):
        actions.keep(cast["bob"], done, suite, "../x")
    assert not Case.objects.exists()
    with pytest.raises(Refused) as caught:
        actions.make(cast["bob"], cast.team, "S")
    assert caught.value.code == "web.suite_name"


def test_an_experiment_runs_the_cases_under_two_versions(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    save_version(cast["alice"], run.version.spec, BAD, 1, "worse")
    versions = [run.version.spec.versions.get(number=number) for number in (1, 2)]
    made = actions.begin(cast["bob"], suite, versions, 2, every(suite))
    assert report.of(made).open == 4
    page = reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number])
    live = cast.client("vera").get(page).content.decode()
    assert 'hx-trigger="every 3s"' in live
    assert "4 runs open" in live
    finish(made)
    shown = report.of(made)
    assert shown.open == 0
    assert [(row.passed, row.n, row.void, row.missing) for row in shown.report.specs] == [
        (2, 2, (), ()),
        (0, 2, (), ()),
    ]
    assert shown.report.comparison is not None
    assert (shown.report.comparison.losses, shown.report.comparison.wins) == (1, 0)
    done = cast.client("vera").get(page).content.decode()
    assert "every 3s" not in done
    assert "2 of 2 passed" in done
    assert "first record that differs" in done
    for cell in made.cells.select_related("run"):
        assert reverse("spak-run", args=[cast.team.slug, cell.run.key]) in done
    compare = cast.client("vera").get(
        done.split('<td data-label="Differences"><a href="')[1].split('"')[0].replace("&amp;", "&")
    )
    assert compare.status_code == 200


def test_a_stopped_experiment_names_what_is_missing(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    made = actions.begin(cast["bob"], suite, [run.version], 2, every(suite))
    execute.advance(made.cells.first().run.key)
    answer = cast.client("bob").post(
        reverse("spak-experiment-stop", args=[cast.team.slug, suite.slug, made.number])
    )
    assert answer.status_code == 302
    made.refresh_from_db()
    shown = report.of(made)
    assert (shown.open, len(shown.report.specs[0].void)) == (0, 1)
    assert "cancelled" in shown.report.specs[0].void[0]
    assert shown.report.specs[0].passed == 1
    actions.stop(cast["bob"], made)


def test_a_run_of_another_text_is_void(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    made = actions.begin(cast["bob"], suite, [run.version], 1, every(suite))
    Experiment.objects.filter(pk=made.pk).update(
        plan={**made.plan, "specs": [[label, "other"] for label, _ in made.plan["specs"]]}
    )
    made.refresh_from_db()
    finish(made)
    (row,) = report.of(made).report.specs
    assert (row.passed, len(row.void)) == (0, 1)
    assert "another spec ran" in row.void[0]


def test_what_does_not_fit_begins_nothing(cast: Any, kept: tuple[Suite, Run]) -> None:
    suite, run = kept
    before = Run.objects.count()
    empty = actions.make(cast["bob"], cast.team, "empty")
    for given in (
        (suite, [], 1, every(suite)),
        (suite, [run.version], 0, every(suite)),
        (suite, [run.version], 51, every(suite)),
        (suite, [run.version], 1, ["nothing"]),
        (suite, [cast.other_spec.head], 1, every(suite)),
        (empty, [run.version], 1, ["train"]),
    ):
        with pytest.raises(Refused) as caught:
            actions.begin(cast["bob"], *given)
        assert caught.value.code == "web.experiment"
    with pytest.raises(PermissionDenied):
        actions.begin(cast["vera"], suite, [run.version], 1, every(suite))
    assert (Run.objects.count(), Experiment.objects.count()) == (before, 0)


def test_files_of_a_case_stay(cast: Any, ran: Ran) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("b.txt", "given")
    spec = cast.spec
    upload, _ = runs.bring_files(cast["bob"], spec, "given", archive, len(archive.getvalue()))
    run = ran(GOOD, files=upload)
    suite = actions.make(cast["bob"], cast.team, "s")
    case = actions.keep(cast["bob"], run, suite, "with-files")
    assert case.files == upload
    Run.objects.filter(pk=run.pk).update(files=None)
    Upload.objects.filter(pk=upload.pk).update(made_at="2020-01-01T00:00Z")
    uploads.drop(10)
    assert Upload.objects.filter(pk=upload.pk).exists()


def test_the_forms_of_the_pages(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    bob = cast.client("bob")
    shown = bob.get(reverse("spak-run", args=[cast.team.slug, run.key])).content.decode()
    assert "Keep as a case" in shown
    vera = cast.client("vera").get(reverse("spak-run", args=[cast.team.slug, run.key])).content.decode()
    assert "Keep as a case" not in vera
    answer = bob.post(
        reverse("spak-run-keep", args=[cast.team.slug, run.key]),
        {"new": "Nightly", "name": "one"},
        follow=True,
    )
    text = answer.content.decode()
    assert "Case one is in the split" in text
    suite = Suite.objects.get(slug="nightly")
    assert f'value="{run.version.pk}"' in text
    answer = bob.post(
        reverse("spak-experiment-begin", args=[cast.team.slug, suite.slug]),
        {"base": run.version.pk, "version": "", "n": "1", "split": every(suite)},
        follow=True,
    )
    assert "Experiment 1" in answer.content.decode()
    listed = bob.get(reverse("spak-suite-list", args=[cast.team.slug])).content.decode()
    assert "Nightly" in listed
    again = bob.post(reverse("spak-run-keep", args=[cast.team.slug, run.key]), {"suite": "nightly"})
    assert again.status_code == 409
