"""What CI reads: SARIF of `spak check`, JUnit of `spak run`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from cli_calls import Cli


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
