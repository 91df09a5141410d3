"""What CI reads: SARIF of `spak check`, JUnit of `spak run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli_calls import Cli
from spak.records import Record
from spak.runner.views.junit import junit


def test_findings_are_results_at_their_places(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ä bad.spak"
    file.write_text("START -> Buld\ntask Build { step a: tool.nothing {} }\n")
    given = cli("check", str(file), "--json")
    made = cli("check", str(file), "--format", "sarif")
    assert given.code == made.code == 3
    (run,) = made.json["runs"]
    found = given.json["files"][0]["diagnostics"]
    assert made.json["version"] == "2.1.0" and found
    assert [one["ruleId"] for one in run["results"]] == [one["code"] for one in found]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {one["code"] for one in found}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].startswith("file:///") and "%C3%A4%20bad.spak" in str(place)
    assert place["region"] == {
        "startLine": found[0]["line"], "startColumn": found[0]["column"],
        "endLine": found[0]["end_line"], "endColumn": found[0]["end_column"],
    }  # fmt: skip
    assert {one["level"] for one in run["results"]} <= {"error", "warning", "note"}


def test_the_formats_of_check(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text('task Hello { step say: tool.run { cmd: "true" } }\n')
    as_json = cli("check", str(tmp_path / "a.spak"), "--format", "json")
    assert as_json.json == cli("check", str(tmp_path / "a.spak"), "--json").json
    assert cli("check", str(tmp_path / "a.spak"), "--format", "xml", "--json").error == "usage.arguments"


@pytest.mark.parametrize(("path", "code", "failures"), [("a.spak", 0, "0"), ("none", 1, "2")])
def test_a_run_writes_a_junit_report(cli: Cli, tmp_path: Path, path: str, code: int, failures: str) -> None:
    spec = f'task Look {{ step read: tool.read_file {{ path: "{path}" }} }}\n'
    (tmp_path / "a.spak").write_text(spec)
    words = ["--workspace", str(tmp_path), "--junit", str(tmp_path / "out.xml"), "--json"]
    done = cli("run", str(tmp_path / "a.spak"), *words)
    assert done.code == code
    (suite,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("name"), suite.get("failures")) == ("a", failures)
    refused = cli("run", str(tmp_path / "a.spak"), "--junit", str(tmp_path / "no/folder.xml"), "--json")
    assert (refused.code, refused.error) == (2, "usage.file") and "run" not in refused.json


PLANNED = """
AGENT A {
  START -> Work
  TASK Work {
    step w: tool.write_file { path: "t.py" content: "print('hello')\\nassert 1 == 2, 'sum is wrong'" }
    step look: tool.run { cmd: "python3 t.py" }
    success: exit_code(look) == 0
    NEXT { success -> Done%s }
  }
  TASK Done { step w: tool.list_files {} }
  TASK Mend { step w: tool.list_files {} }
}
"""


@pytest.mark.sandbox
@pytest.mark.findings("S5.8", "B10")
@pytest.mark.parametrize(("edge", "code", "failures"), [(", fail -> Mend", 0, "0"), ("", 1, "3")])
def test_a_report_has_failures_where_the_run_failed_and_says_what_failed(
    cli: Cli, tmp_path: Path, edge: str, code: int, failures: str
) -> None:
    (tmp_path / "a.spak").write_text(PLANNED % edge)
    assert cli("run", "a.spak", "--junit", "out.xml").code == code
    (suite,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == (failures, "0")
    assert len(suite.findall("testcase/failure")) == int(failures)
    tests = {test.get("name"): test for test in suite}
    assert list(tests)[:3] == ["Work.w", "Work.look", "Work.check"]
    (about,) = tests["Work.look"]
    assert about.tag == ("failure" if code else "system-out")
    assert about.text is not None
    assert about.text.startswith("step look: exit 1") and about.text.endswith("AssertionError: sum is wrong")
    assert about.get("message") == ("step look: exit 1 [fail]" if code else None)
    if code:
        assert "step look ended with exit 1" in (tests["the run"][0].text or "")


@pytest.mark.findings("B10")
def test_a_report_gives_the_address_of_the_run_and_the_end_of_a_long_output() -> None:
    def record(kind: str, authority: str, body: dict[str, Any], step: str = "s") -> Record:
        return Record(kind, authority, body, "T", step, 1, 0, 5)

    lines = "\n".join(f"line {number}" for number in range(100))
    records = [
        record("permit", "commit", {"act": "tool", "name": "run", "args": {}}),
        record("act", "proposal", {"outcome": "exited", "exit": 3, "out": {"$blob": "b", "head": "line 0"}}),
        record("route", "commit", {"signal": "fail", "code": "tool.exit"}),
        record("end", "commit", {"state": "failed", "codes": ["tool.exit"]}),
    ]

    class Texts(dict[str, bytes]):
        def get(self, name: str) -> bytes:  # type: ignore[override]
            return self[name]

    whole = junit("a", records, "https://spak.example.org/r/1", Texts(b=lines.encode()))  # type: ignore[arg-type]
    (suite,) = ElementTree.fromstring(whole)
    first, last = (test[0].text or "" for test in suite)
    assert first.splitlines()[:2] == ["step s: exit 3 [tool.exit]", "line 80"] and "line 99" in first
    assert last.splitlines()[0] == "tool.exit" and last.endswith("https://spak.example.org/r/1")
    assert "line 0" in junit("a", records), "without the texts what the record has of them"
