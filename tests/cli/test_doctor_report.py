"""`spak doctor` and `spak report`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli_calls import Background, Cli

ROW = {"name", "ok", "detail", "mend", "needed"}


@pytest.mark.sandbox
def test_doctor_says_what_works(cli: Cli) -> None:
    done = cli("doctor", "--json")
    assert set(done.json) == {"ok", "checks"}
    rows = {row["name"]: row for row in done.json["checks"]}
    assert all(set(row) == ROW for row in rows.values())
    assert {"python", "system", "launcher restricted", "gcc", "pytest", "nvcc", "gpu", "runs folder"} <= set(
        rows
    )
    assert rows["launcher restricted"]["ok"] is True
    assert done.json["ok"] is all(row["ok"] for row in rows.values() if row["needed"])
    assert done.code == (0 if done.json["ok"] else 7)
    for row in rows.values():
        assert row["ok"] or row["mend"] or not row["needed"], row
    people = cli("doctor")
    assert people.code == done.code
    assert all(name in people.out for name in rows)


def test_doctor_with_a_configuration_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text("[llm\n")
    done = cli("doctor", "--json")
    assert (done.code, done.error) == (2, "usage.config")


def test_doctor_makes_no_folder(cli: Cli, tmp_path: Path) -> None:
    cli("doctor", "--json")
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_one_page_that_needs_nothing_else(cli: Cli, ended: str, runs: Path) -> None:
    done = cli("report", ended, "--json")
    assert (done.code, set(done.json)) == (0, {"run", "file", "quality"})
    page = (runs.parent.parent / done.json["file"]).read_text()
    assert done.json["file"] == str(Path(".spak/runs") / ended / "report.html")
    assert done.json["quality"]["permitted"] == {"value": 1.0, "permitted": 2, "denied": 0}
    assert done.json["quality"]["consistency"]["value"] is done.json["quality"]["perplexity"]["value"] is None
    assert "<dt>perplexity</dt><dd>not reported</dd>" in page and "no axiom was checked" in page
    assert ended in page and page.lstrip().lower().startswith("<!doctype html")
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_a_report_goes_where_it_is_sent(cli: Cli, waiting: str, tmp_path: Path) -> None:
    done = cli("report", "-o", "here.html", "--json")
    assert (done.json["run"], done.json["file"]) == (waiting, "here.html")
    assert "not reported" in cli("report", "-o", "here.html").err
    assert (tmp_path / "here.html").stat().st_size > 1000
    (tmp_path / "folder").mkdir()
    for output in ("folder", "missing/here.html"):
        done = cli("report", "-o", output, "--json")
        assert (done.code, done.error) == (2, "usage.file"), output


def test_the_first_line_of_version_is_the_release(tmp_path: Path) -> None:
    """What follows are the hashes of what ships (tests/test_seeds.py)."""
    done = Background(tmp_path, "--version").done()
    assert (done.code, done.err) == (0, "") and re.match(r"spak \d+\.\d+\.\d+\S*\n", done.out)
