"""Suites brought as a zip: sealed checks, recordings and seeds of cases decide on the platform as they do on
the command line."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from jobs_kit import at_once, worked
from spak.errors import RunError
from spak.evolve.experiments.model import seed_of
from spak.evolve.suites import Case as Kept
from spak.evolve.suites import Suite as Folder
from spak.evolve.suites.model import case_hash
from spakweb.ground.errors import Refused
from spakweb.store.jobs.models import Job
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run
from spakweb.store.suites.models import Case, CaseRun, Experiment, Judgement, Suite
from spakweb.work.jobs import work
from spakweb.work.jobs.queue import sweep
from spakweb.work.runs.files import files_of
from spakweb.work.specs.actions import save_version
from spakweb.work.suites import actions, bringing, judging, report
from spakweb.work.worker import execute

Ran = Callable[..., Run]
TALK = """
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
DEAF = TALK.replace("{{word}}", "nothing")
CHECK = "print('held' if open('word.txt').read() == open('given.txt').read() else 'not')\n"
CASE: Mapping[str, Any] = {
    "case": 1, "seed": 7, "tags": ["x"], "semantics": 4,
    "right": {"state": "succeeded", "sealed": [{"cmd": ["python", "check.py"], "output": "held"}]},
}  # fmt: skip
FILES = {
    "workspace/given.txt": "seven",
    "sealed/check.py": CHECK,
    "recording.jsonl": json.dumps({"text": "seven"}) + "\n",
}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return held.getvalue()


SUITES = ("suites.vet", "suites.judge")


def of_case(name: str = "first", case: Mapping[str, Any] = CASE, **files: str) -> dict[str, str | bytes]:
    held: dict[str, str | bytes] = {f"nightly/{name}/case.json": json.dumps(case)}
    return held | {f"nightly/{name}/{path}": data for path, data in (FILES | files).items()}


def brought(cast: Any, data: bytes, name: str = "Nightly") -> Suite:
    return bringing.bring(cast["bob"], cast.team, name, io.BytesIO(data), len(data))


def vetted(suite: Suite) -> None:
    worked("suites.vet")
    assert not Case.objects.filter(checked=True, vetting=None).exists()


def finish(experiment: Experiment) -> None:
    for cell in experiment.cells.select_related("run"):
        execute.advance(cell.run.key)
    worked("suites.judge")


def test_sealed_checks_a_recording_and_a_seed_decide(cast: Any, ran: Ran) -> None:
    first = ran(TALK, advance=False)
    save_version(cast["alice"], first.version.spec, DEAF, 1, "hears nothing")
    suite = brought(cast, zipped(of_case()))
    case = suite.cases.get()
    assert (case.seed, case.recorded, case.checked, case.golden) == (7, True, True, True)
    vetted(suite)
    assert case.vetting.trouble == ""
    versions = [first.version.spec.versions.get(number=number) for number in (1, 2)]
    made = actions.begin(cast["bob"], suite, versions, 1, [case.split])
    for cell in made.cells.select_related("run"):
        execute.advance(cell.run.key)
    assert report.of(made).open == 2, "they ended, and nobody has judged them"
    finish(made)
    shown = report.of(made)
    assert [(row.passed, row.n) for row in shown.report.specs] == [(1, 1), (0, 1)]
    assert "held" in next(done.why for done in shown.report.done.values() if done.outcome == "fail")
    for cell in made.cells.select_related("run"):
        begun = next(iter(DatabaseLedgers().reader(cell.run.key).read()))[0]
        assert begun.body["rules"]["seed"] == seed_of(case.content_hash, 7, 0)
        assert {item.path for item in files_of(cell.run)} == {"given.txt", "word.txt"}, "and no sealed file"
    work.do("suites.judge", made.cells.first().run.key)
    assert Judgement.objects.count() == 2
    page = reverse("spak-experiment", args=[cast.team.slug, suite.slug, made.number])
    assert "1 of 1 passed" in cast.client("vera").get(page).content.decode()


def test_a_backend_that_is_named_takes_the_place_of_the_recording(cast: Any, ran: Ran) -> None:
    first = ran(TALK, advance=False)
    suite = brought(cast, zipped(of_case()))
    vetted(suite)
    made = actions.begin(cast["bob"], suite, [first.version], 1, [suite.cases.get().split], backend="manual")
    assert made.cells.get().run.backend == "manual"


def test_a_case_has_to_fail_before_it_can_pass(cast: Any, ran: Ran) -> None:
    run = ran(TALK, advance=False)
    easy = of_case(**{"sealed/check.py": "print('held')\n"})
    suite = brought(cast, zipped(easy))
    split = suite.cases.get().split
    for why in ("not tried yet", "sealed checks pass on an empty workspace"):
        with pytest.raises(Refused, match=why) as caught:
            actions.begin(cast["bob"], suite, [run.version], 1, [split])
        assert (caught.value.code, caught.value.status) == ("web.case_checks", 409)
        vetted(suite)
    assert not Experiment.objects.exists()
    page = cast.client("vera").get(reverse("spak-suite", args=[cast.team.slug, suite.slug])).content.decode()
    assert "Unusable" in page


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "suite.empty"),
        ({"nightly/first/workspace/a.txt": "x"}, "suite.missing"),
        ({"nightly/first/case.json": '{"case": 2}'}, "suite.case"),
        (of_case() | of_case("second"), "suite.duplicate"),
        (of_case() | {"nightly/first/../../x": "x"}, "upload.name"),
        (None, "upload.archive"),
    ],
    ids=["empty", "missing", "case", "duplicate", "path", "no zip"],
)
def test_a_zip_with_something_wrong_brings_nothing(
    cast: Any, ran: Ran, files: Mapping[str, str] | None, code: str
) -> None:
    data = b"no zip" if files is None else zipped({"nightly/README": "x", **files})
    with pytest.raises(Refused) as caught:
        brought(cast, data)
    assert caught.value.code == code
    assert (Suite.objects.count(), Case.objects.count()) == (0, 0)


def test_a_suite_that_is_refused_at_the_end_leaves_no_file(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any, **more: Any) -> None:
        raise Refused("web.suite_zip", "Two cases are alike.", "Rename one.")

    monkeypatch.setattr(bringing, "record", refused)
    kept = set(default_storage.listdir("cases")[1]) if default_storage.exists("cases") else set()
    with pytest.raises(Refused):
        brought(cast, zipped(of_case(**{"sealed/check.py": "print('of its own')\n"})))
    assert (Suite.objects.count(), Case.objects.count()) == (0, 0)
    assert (set(default_storage.listdir("cases")[1]) if default_storage.exists("cases") else set()) == kept


def test_what_could_not_be_judged_is_tried_again_before_it_is_void(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(TALK, advance=False)
    suite = brought(cast, zipped(of_case()))
    vetted(suite)
    made = actions.begin(cast["bob"], suite, [run.version], 2, [suite.cases.get().split])
    keys = [cell.run.key for cell in made.cells.select_related("run")]
    for key in keys:
        execute.advance(key)

    def broken(*given: Any) -> None:
        raise RunError("upload.changed", "the stored files are away", "wait")

    with monkeypatch.context() as patch:
        patch.setattr(judging, "judged", broken)
        worked("suites.judge")
        for _ in range(len(judging.PAUSES)):
            Job.objects.filter(key=keys[1]).update(due=None)
            worked("suites.judge")
    assert list(CaseRun.objects.filter(judgement=None).values_list("run__key", flat=True)) == [keys[0]]
    at_once("suites.judge")
    assert [(one.of.run.key, one.outcome) for one in Judgement.objects.order_by("pk")] == [
        (keys[1], "void"),
        (keys[0], "pass"),
    ]


def test_the_draw_of_the_folder_stays(cast: Any, ran: Ran, tmp_path: Any) -> None:
    """Also of a case that was read for training before it was brought."""
    folder = tmp_path / "suite"
    suite = Folder.open(folder, new=True)
    for number in range(8):
        suite = suite.add(Kept(f"c{number}", folder, seed=number), lambda place: None, None)
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    made = brought(cast, zipped(files))
    assert {case.name: case.split for case in made.cases.all()} == {
        case.name: suite.split(case) for case in suite.cases
    }
    assert {case.content_hash for case in made.cases.all()} == {case_hash(case) for case in suite.cases}
    assert made.seed == suite.book.seed


def test_only_editors_bring_a_suite(cast: Any, ran: Ran) -> None:
    where = reverse("spak-suite-bring", args=[cast.team.slug])

    def given() -> dict[str, Any]:
        return {"name": "Brought", "zip": SimpleUploadedFile("s.zip", zipped(of_case()))}

    assert cast.client("vera").post(where, given()).status_code == 403
    assert cast.client("bob").post(where, {"name": "Brought"}).status_code == 400
    answer = cast.client("bob").post(where, given(), follow=True)
    assert "Checks are tried" in answer.content.decode()
    assert "golden" in answer.content.decode()
    with pytest.raises(PermissionDenied):
        bringing.bring(cast["vera"], cast.team, "x", io.BytesIO(b""), 0)


def test_the_sweep_sends_what_is_to_be_tried_and_judged_once(
    cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spakweb.celery import app

    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(app, "send_task", lambda name, given, **more: sent.append(given))
    run = ran(TALK, advance=False)
    suite = brought(cast, zipped(of_case()))
    case = suite.cases.get()
    for _ in range(2):
        sweep(SUITES)
    assert sent == [("suites.vet", str(case.pk))]
    work.do(*sent[0])
    made = actions.begin(cast["bob"], suite, [run.version], 1, [case.split])
    key = made.cells.get().run.key
    sent.clear()
    sweep(SUITES)
    assert not sent, "its run has not ended"
    execute.advance(key)
    sweep(SUITES)
    assert sent == [("suites.judge", key)]
    work.do(*sent[0])
    sweep(SUITES)
    assert len(sent) == 1
    assert report.of(made).report.specs[0].passed == 1
