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

from jobs_kit import at_once, wanted
from spak.errors import RunError
from spakweb.face.runs import run_parts
from spakweb.ground import rights
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.ledger import uploads
from spakweb.store.runs.models import Run
from spakweb.store.suites.models import Case, Experiment, Suite
from spakweb.work.runs import actions as runs
from spakweb.work.runs.actions import bring_files
from spakweb.work.runs.files import files_of
from spakweb.work.specs.actions import save_version
from spakweb.work.suites import actions, judging, report, sealing
from spakweb.work.teams import tokens
from spakweb.work.worker import execute
from token_kit import program

Ran = Callable[..., Run]
GOOD = 'task W { step one: tool.write_file { path: "a.txt" content: "good" } success: file_exists("a.txt") }'
BAD = GOOD.replace('"good"', '"bad"')
CHECK = "print('held' if open('a.txt').read() == 'good' else 'not')\n"
COMMAND = "python hidden/check.py"
CHECKS = [(COMMAND, "held")]
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
    at_once("suites.vet")


def in_use(suite: Suite) -> list[str]:
    return [case.name for case in suite.current]


def results(experiment: Experiment) -> list[tuple[int, int]]:
    for cell in experiment.cells.select_related("run"):
        execute.advance(cell.run.key)
    at_once("suites.judge")
    return [(row.passed, row.n) for row in report.of(experiment).report.specs]


def test_a_kept_case_is_judged_by_checks_that_came_later(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    save_version(cast["alice"], run.version.spec, BAD, 1, "worse")
    versions = [run.version.spec.versions.get(number=number) for number in (1, 2)]
    case = kept(cast, run)
    assert results(actions.begin(cast["bob"], case.suite, versions, 1, EVERY)) == [(1, 1), (1, 1)]
    data = zipped(check=CHECK)
    new = sealing.seal(cast["bob"], case, CHECKS, "", data, data.getbuffer().nbytes)
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
    more = {"case": "first", "checks": "true", "outputs": "a\nb"}
    assert cast.client("bob").post(page + "seal/", more).status_code == 400, "outputs of no command"
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
        ({"checks": []}, "web.case"),
        ({"checks": [(" ", "")]}, "web.case"),
        ({"checks": [("python 'x", "")]}, "web.case"),
        ({"checks": [("true", "")] * 21}, "web.case"),
        ({"checks": [("true", "")], "archive": io.BytesIO(b"no zip")}, "upload.archive"),
        ({"checks": [("true", "")], "archive": io.BytesIO(), "size": 1 << 40}, "web.case"),
        ({"checks": [("tr\0ue", "")]}, "web.text"),
    ],
    ids=["none", "empty", "quotes", "many", "zip", "large", "nul"],
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
        sealing.seal(cast["vera"], case, [("false", "")])
    new = sealing.seal(cast["bob"], case, [("false", "")])
    tried()
    for one in (case, new):
        with pytest.raises(Refused) as caught:
            sealing.seal(cast["bob"], one, [("sh -c false", "")])
        assert (caught.value.code, caught.value.status) == ("web.case", 409)
    page = reverse("spak-suite", args=[cast.team.slug, case.suite.slug])
    assert cast.client("bob").post(page + "seal/", {"case": "none"}).status_code == 404


def test_programs_seal_with_files_that_were_brought(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    case = kept(cast, run)
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    brought = bob.post(
        reverse("spak-api-bring", args=[cast.team.slug, run.version.spec.slug]),
        zipped(check=CHECK).getvalue(),
        content_type="application/zip",
    )
    where = reverse("spak-api-case-seal", args=[cast.team.slug, case.suite.slug, case.name])

    def sealed(body: dict[str, Any], client: Any = bob, **headers: str) -> tuple[int, Any]:
        answer = client.post(where, body, content_type="application/json", headers=headers)
        return answer.status_code, answer.json()

    body = {"checks": [{"command": COMMAND, "output": "held"}], "files": brought.json()["hash"]}
    refused = (
        ({}, 422, "web.request"),
        ({"checks": [{"output": "a"}]}, 422, "web.request"),
        ({"checks": []}, 400, "web.case"),
        ({**body, "files": "none such"}, 410, "web.run_files"),
        ({"checks": [{"command": "tr\0ue"}]}, 422, "web.request"),
    )
    for wrong, status, code in refused:
        got, problem = sealed(wrong)
        assert (got, problem["code"]) == (status, code), wrong
    viewer = program(tokens.make(cast["vera"], "ci", 7, cast.team, rights.SCOPES)[1])
    assert sealed(body, viewer)[0] == 403
    assert Case.objects.count() == 1
    status, made = sealed(body, **{"idempotency-key": "a"})
    assert (status, made["name"], made["checked"]) == (201, "first-sealed", True)
    assert sealed(body, **{"idempotency-key": "a"}) == (201, made)
    assert sealed(body)[1]["code"] == "web.case" and Case.objects.count() == 2
    tried()
    assert in_use(case.suite) == ["first-sealed"]
    assert Event.objects.filter(action="suite.sealed").count() == 1


def test_files_that_are_gone_seal_nothing(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    case = kept(cast, run)
    data = zipped(check=CHECK)
    upload, _ = bring_files(cast["bob"], run.version.spec, "c.zip", data, data.getbuffer().nbytes)
    uploads.remove(upload.key)
    bob = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    where = reverse("spak-api-case-seal", args=[cast.team.slug, case.suite.slug, case.name])
    body = {"checks": [{"command": COMMAND}], "files": upload.root}
    answer = bob.post(where, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (410, "web.run_files")
    assert Case.objects.count() == 1


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RunError("workspace.full", "the disk is full", "")]
)
def test_a_full_disk_decides_nothing_about_a_case_or_a_run(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = ran(GOOD)
    case = kept(cast, run)
    data = zipped(check=CHECK)
    new = sealing.seal(cast["bob"], case, CHECKS, "", data, data.getbuffer().nbytes)

    def full(*given: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(judging.packs, "fill", full)
        for _ in range(len(judging.PAUSES) + 2):
            at_once("suites.vet")
    assert wanted("suites.vet") == [str(new.pk)] and in_use(case.suite) == ["first"]
    tried()
    assert in_use(case.suite) == ["first-sealed"]
    made = actions.begin(cast["bob"], case.suite, [run.version], 1, EVERY)
    [cell] = made.cells.select_related("run")
    execute.advance(cell.run.key)
    with monkeypatch.context() as patched:
        patched.setattr(judging.packs, "fill", full)
        for _ in range(len(judging.PAUSES) + 2):
            at_once("suites.judge")
    assert wanted("suites.judge") == [cell.run.key]
    assert results(made) == [(1, 1)]


def test_a_run_of_its_own_is_judged_by_the_sealed_checks_of_a_case(cast: Any, ran: Ran) -> None:
    run = ran(GOOD)
    spec, case = run.version.spec, kept(cast, run)
    save_version(cast["alice"], spec, BAD, 1, "worse")
    data = zipped(check=CHECK)
    sealing.seal(cast["bob"], case, CHECKS, "", data, data.getbuffer().nbytes)
    client = program(tokens.make(cast["bob"], "ci", 7, cast.team, rights.SCOPES)[1])
    address = reverse("spak-api-start", args=[cast.team.slug, spec.slug])

    def started(name: str, version: int) -> Any:
        body = {"version": version, "sealed": name}
        return client.post(address, body, content_type="application/json")

    assert started("nightly/first", 1).json()["code"] == "web.run_sealed", "it has none"
    assert started("nightly/first-sealed", 1).json()["code"] == "web.run_sealed", "not tried yet"
    assert started("other/first", 1).status_code == 404
    tried()
    ends = {}
    for version in (1, 2):
        row = Run.objects.get(key=started("nightly/first-sealed", version).json()["key"])
        execute.advance(row.key)
        row.refresh_from_db()
        ends[version] = row.state, row.reason
        assert [item.path for item in files_of(row)] == ["a.txt"], "and no sealed file"
        lines = b"".join(bytes(one.line) for one in row.records.all())
        assert b"check.py" not in lines
    assert ends == {1: ("succeeded", ""), 2: ("failed", "run.sealed_checks")}
    assert "its sealed checks do not hold" in run_parts.outcome(row).lower()
    fork = runs.fork(cast["alice"], row, row.count - 2)
    assert fork.sealed == row.sealed
    execute.advance(fork.key)
    fork.refresh_from_db()
    assert (fork.state, fork.reason) == ("failed", "run.sealed_checks")
