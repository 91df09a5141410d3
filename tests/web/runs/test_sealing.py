"""Sealed checks for a case that was kept from a run: tried before any run, and in no workspace of one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from spakweb.audit.models import Event
from spakweb.errors import Refused
from spakweb.runs.files import files_of
from spakweb.runs.models import Run
from spakweb.specs.actions import save_version
from spakweb.suites import actions, judging, report, sealing
from spakweb.suites.models import Case, Experiment, Suite
from spakweb.worker import execute

Ran = Callable[..., Run]
GOOD = 'task W { step one: tool.write_file { path: "a.txt" content: "good" } success: file_exists("a.txt") }'
BAD = GOOD.replace('"good"', '"bad"')
CHECK = "print('held' if open('a.txt').read() == 'good' else 'not')\n"
COMMAND = "python hidden/check.py"
EVERY = ("train", "gate", "sealed")


def zipped(**files: str) -> io.BytesIO:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"top/hidden/{name}.py", text)
    return held


def kept(cast: Any, run: Run) -> Case:
    suite = actions.make(cast["bob"], cast.team, "Nightly")
    return actions.keep(cast["bob"], run, suite, "first")


def tried() -> None:
    for pk in judging.due()[0]:
        judging.vet(pk)


def in_use(suite: Suite) -> list[str]:
    return [case.name for case in suite.current]


def results(experiment: Experiment) -> list[tuple[int, int]]:
    for cell in experiment.cells.select_related("run"):
        execute.advance(cell.run.key)
    for key in judging.due()[1]:
        judging.judge(key)
    return [(row.passed, row.n) for row in report.of(experiment).report.specs]


def test_a_kept_case_is_judged_by_checks_that_came_later(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    save_version(cast["alice"], run.version.spec, BAD, 1, "worse")
    versions = [run.version.spec.versions.get(number=number) for number in (1, 2)]
    case = kept(cast, run)
    assert results(actions.begin(cast["bob"], case.suite, versions, 1, EVERY)) == [(1, 1), (1, 1)]
    data = zipped(check=CHECK)
    new = sealing.seal(cast["bob"], case, COMMAND, "held", "", data, data.getbuffer().nbytes)
    assert (new.split, new.origin, new.state) == (case.split, case.origin, "succeeded")
    assert new.content_hash != case.content_hash
    assert in_use(case.suite) == ["first"], "until its checks were tried"
    page = reverse("spak-suite", args=[cast.team.slug, case.suite.slug])
    assert "Checks are tried" in cast.client("vera").get(page).content.decode()
    tried()
    assert in_use(case.suite) == ["first-sealed"]
    made = actions.begin(cast["bob"], case.suite, versions, 1, EVERY)
    assert results(made) == [(1, 1), (0, 1)]
    for cell in made.cells.select_related("run"):
        assert [item.path for item in files_of(cell.run)] == ["a.txt"], "and no sealed file"
    shown = cast.client("vera").get(page).content.decode()
    assert "was first" in shown and "Add sealed checks" not in shown
    assert Event.objects.filter(action="suite.sealed").count() == 1


def test_checks_that_pass_before_a_run_change_nothing(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    case = kept(cast, run)
    page = reverse("spak-suite", args=[cast.team.slug, case.suite.slug])
    form = {"case": "first", "checks": "true"}
    assert cast.client("bob").post(page + "seal/", form).status_code == 302
    tried()
    assert in_use(case.suite) == ["first"]
    shown = cast.client("bob").get(page).content.decode()
    assert "sealed checks pass on an empty workspace" in shown and "first stays as it is" in shown
    assert results(actions.begin(cast["bob"], case.suite, [run.version], 1, EVERY)) == [(1, 1)]
    assert cast.client("bob").post(page + "seal/", form).status_code == 409, "the same checks again"
    given = SimpleUploadedFile("c.zip", zipped(check=CHECK).getvalue())
    form = {"case": "first", "checks": COMMAND, "outputs": "held", "zip": given}
    assert cast.client("bob").post(page + "seal/", form).status_code == 302
    tried()
    assert in_use(case.suite) == ["first-sealed-2"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"commands": " \n"}, "web.case"),
        ({"commands": "python 'x"}, "web.case"),
        ({"commands": "true", "outputs": "a\nb"}, "web.case"),
        ({"commands": "true\n" * 21}, "web.case"),
        ({"commands": "true", "archive": io.BytesIO(b"no zip")}, "upload.archive"),
        ({"commands": "true", "archive": io.BytesIO(), "size": 1 << 40}, "web.case"),
        ({"commands": "tr\0ue"}, "web.text"),
    ],
    ids=["none", "quotes", "outputs", "many", "zip", "large", "nul"],
)
def test_bad_checks_are_refused_and_leave_nothing(
    cast: Any, ran: Ran, given: dict[str, Any], code: str
) -> None:
    case = kept(cast, ran(GOOD))
    with pytest.raises(Refused) as caught:
        sealing.seal(cast["bob"], case, **given)
    assert caught.value.code == code
    assert Case.objects.count() == 1


def test_only_editors_seal_and_only_cases_in_use_without_checks(cast: Any, ran: Ran) -> None:
    case = kept(cast, ran(GOOD))
    with pytest.raises(PermissionDenied):
        sealing.seal(cast["vera"], case, "false")
    new = sealing.seal(cast["bob"], case, "false")
    tried()
    for one in (case, new):
        with pytest.raises(Refused) as caught:
            sealing.seal(cast["bob"], one, "sh -c false")
        assert (caught.value.code, caught.value.status) == ("web.case", 409)
    page = reverse("spak-suite", args=[cast.team.slug, case.suite.slug])
    assert cast.client("bob").post(page + "seal/", {"case": "none"}).status_code == 404
