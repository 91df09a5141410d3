"""The candidates of a run on its page: pictures, the table in any order, two sources, one to take away."""

from __future__ import annotations

import io
import json
import re
import zipfile
from html import unescape
from typing import Any

import pytest
from django.urls import reverse

from run_rows_kit import begun
from spak import canon
from spak.records import Record, decode
from spakweb.store.ledger.blobs import store
from spakweb.store.runs.models import Run, RunBlob
from spakweb.work.specs.actions import create_spec

SPEC = """\
AGENT Tuned LEVEL 5 {
  CONFIG { SANDBOX RESTRICTED MODE full_auto }
  START -> tune
  TASK tune {
    GOAL "Find a faster one."
    TOOLS [write_file]
    step draft: llm.plan { role: "coder" }
    VALIDATOR Metric { cmd: "python3 m.py", source: "fast.py", metric: "cpu_s", unit: "s" }
    RULE { patience: 3, evaluations: 6 }
    NEXT { metric_improved -> tune, success -> tune, fail -> tune, plateau -> done }
  }
  TASK done { step see: tool.list_files { path: "." } }
}
"""
HOSTILE = "<script>alert(1)</script>"


def kept(text: bytes) -> dict[str, str]:
    digest = canon.digest(text)
    store(digest, text)
    return {"$blob": digest}


def tried(number: int, value: int | None, source: bytes = b"", wins: int = 0, **params: Any) -> list[Record]:
    """The records of one candidate; without a value it failed before it was measured."""
    metrics = {"value": value, "per_unit": 1000, "spread_ppm": 1000 * number}
    pairs = [{"candidate": [value], "incumbent": [value * 2]}] * wins if value else []
    plan = {"tool": "write_file", "args": {"path": "fast.py", "content": ""}, "params": params}
    body: dict[str, Any] = {
        "of": "x",
        "outcome": "exited",
        "status": "measured",
        "metrics": metrics,
        "pairs": pairs,
        "evidence": {"unit": "s"},
    }
    if source:
        body["subject"] = {"source": kept(source), "fixed": kept(b"{}")}
    route = {"to": "/", "signal": "success"} if value else {"to": "/", "signal": "fail", "code": "compile"}
    if value and wins:
        route = {"to": "/", "signal": "metric_improved", "best": value}
    return [
        Record("plan", "proposal", {"candidates": [plan]}, "tune", "draft"),
        Record("select", "commit", {"i": 0}, "tune", "draft"),
        *([Record("act", "proposal", body, "tune", "v")] if value else []),
        Record("route", "commit", route, "tune", "v"),
    ]  # fmt: skip


@pytest.fixture
def run(cast: Any) -> Run:
    version = create_spec(cast["alice"], cast.team, "tuned", SPEC).head
    records = [
        *tried(1, 9_000, b"slow\n", wins=3, TILE=4, WAY=HOSTILE), *tried(2, None, TILE=8, WAY="a"),
        *tried(3, 4_000, f"fast {HOSTILE}\n".encode(), wins=3, TILE=16, WAY="a"),
        *tried(4, 5_000, b"\0\xff", TILE=32, WAY="b"),
    ]  # fmt: skip
    made = begun(cast.team, version, "tuned-run", records)
    for record in records:
        for blob in record.body.get("subject", {}).values():
            RunBlob.objects.get_or_create(run=made, digest=blob["$blob"], defaults={"size": 1})
    return made


def page(cast: Any, run: Run, **given: Any) -> str:
    answer = cast.client("vera").get(
        reverse("spak-run", args=[run.team.slug, run.key]), {"tab": "metrics", **given}
    )
    assert answer.status_code == 200
    return str(answer.content.decode())


def numbers(text: str) -> list[int]:
    """The numbers of the table's rows, in its order."""
    table = text[text.index('id="candidates"') : text.index("</table>", text.index('id="candidates"'))]
    return [int(number) for number in re.findall(r'#record">(\d+)</a>', table)]


def test_the_pictures_show_every_candidate_and_texts_stay_texts(cast: Any, run: Run) -> None:
    text = page(cast, run)
    assert 'aria-label="4 candidates, from 9.000 to 4.000 s"' in text
    assert "3 candidates by TILE, WAY; the best has TILE=16, WAY=a" in text
    assert HOSTILE not in text and HOSTILE in unescape(text)


@pytest.mark.parametrize(
    ("by", "order"),
    [("", [4, 3, 2, 1]), ("number", [1, 2, 3, 4]), ("value", [3, 4, 1, 2]), ("-value", [1, 4, 3, 2]),
     ("spread", [1, 3, 4, 2]), ("-result", [4, 1, 3, 2]), ("nonsense", [4, 3, 2, 1]), ("-", [4, 3, 2, 1])],
)  # fmt: skip
def test_the_table_in_the_order_of_each_column(cast: Any, run: Run, by: str, order: list[int]) -> None:
    """What a candidate has not comes last, whichever way."""
    assert numbers(page(cast, run, by=by)) == order


def test_a_heading_says_its_order_and_turns_it(cast: Any, run: Run) -> None:
    text = page(cast, run, by="value")
    assert text.count("aria-sort=") == 1 and 'aria-sort="ascending"' in text
    assert "?tab=metrics&amp;by=-value#candidates" in text and "?tab=metrics&amp;by=spread#candidates" in text


def sources(text: str) -> dict[str, str]:
    select = text[text.index('<select name="one">') : text.index("</select>")]
    return {label: seq for seq, label in re.findall(r'value="(\d+)"[^>]*>([^<]*)<', select)}


def test_two_sources_and_how_they_differ(cast: Any, run: Run) -> None:
    found = sources(page(cast, run))
    assert list(found) == ["tune 1, 9 s", "tune 3, 4 s, the best", "tune 4, 5 s"]
    one, best, binary = found.values()
    text = unescape(page(cast, run, one=one, two=best))
    assert "-slow" in text and f"+fast {HOSTILE}" in text
    assert "The two sources are the same." in page(cast, run, one=one, two=one)
    assert "A source is not a text." in page(cast, run, one=one, two=binary)
    assert page(cast, run, one="x", two="9" * 40).count("-slow") == 1, "what is none means the usual two"


def test_a_candidate_is_taken_away_with_its_evidence(cast: Any, run: Run) -> None:
    best = sources(page(cast, run))["tune 3, 4 s, the best"]
    address = reverse("spak-run-candidate", args=[run.team.slug, run.key, best])
    assert f'href="{address}"' in page(cast, run)
    answer = cast.client("vera").get(address)
    assert answer["Content-Disposition"].startswith("attachment")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.namelist() == ["README.txt", "measurement.json", "candidate.fixed", "candidate.source.py"]
    about = json.loads(archive.read("measurement.json"))
    row = run.records.get(seq=int(best))
    assert (about["candidate"], about["parameters"], about["outcome"]) == (
        3,
        {"TILE": 16, "WAY": "a"},
        "improved",
    )
    assert (
        about["hash"] == decode(bytes(row.line)).hash and about["hash"] in archive.read("README.txt").decode()
    )
    source = archive.read("candidate.source.py")
    assert about["measurement"]["subject"]["source"]["$blob"] == canon.digest(source)
    line = f"\ncandidate.source.py  {len(source):,} bytes, {canon.digest(source)}\n"
    assert line in archive.read("README.txt").decode()


@pytest.mark.parametrize("seq", [0, 1, 4, 10**6])
def test_a_record_that_measured_none(cast: Any, run: Run, seq: int) -> None:
    answer = cast.client("vera").get(
        reverse("spak-run-candidate", args=[run.team.slug, run.key, seq]),
        headers={"accept": "application/json"},
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "web.run_candidate")


def test_files_that_are_gone(cast: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sources(page(cast, run))
    from spak.errors import LedgerError
    from spakweb.store.ledger.blobs import StoredBlobs

    def gone(self: Any, digest: str) -> bytes:
        raise LedgerError("ledger.blob", "the blob is gone", "restore it")

    monkeypatch.setattr(StoredBlobs, "get", gone)
    one, two = list(found.values())[:2]
    assert "A source cannot be read: the blob is gone" in page(cast, run, one=one, two=two)
    answer = cast.client("vera").get(reverse("spak-run-candidate", args=[run.team.slug, run.key, one]))
    assert answer.status_code == 404
