"""NUL and other odd signs: PostgreSQL stores no NUL in text and JSON, so that nothing may hand it one.

The ledger's lines are bytes and keep it. `SPAK_WEB_DATABASE_URL` of a PostgreSQL has the real one refuse.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.urls import reverse

from spak.ledger.export import export
from spak.ledger.memory import MemoryLedgers
from spak.records import Record, decode
from spakweb.face.runs import run_parts
from spakweb.face.streams.summaries import row
from spakweb.ground.unsafe_text import plain_json, reveal, without_nul
from spakweb.store.ledger import writer_sql
from spakweb.store.ledger.export import artifacts
from spakweb.store.runs.models import Command, Run, RunRecord, State
from spakweb.work.runs.actions import ask, start
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)
Ran = Callable[..., Run]

ODD = "a\0b"
ASKS = """\
task Talk {
  step make: tool.run { cmd: ["python3", "-c", "open('odd.txt', 'w').write('a' + chr(0))"] }
  step look: tool.read_file { path: "odd.txt" output_var: seen }
  step hear: llm.query { prompt: "Say {{seen}} again." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""


def stored(run: Run) -> str:
    """All that is in columns of text and JSON."""
    row = Run.objects.filter(pk=run.pk).values().get()
    return json.dumps([str(value) for value in row.values()]) + json.dumps(row["summary"])


@pytest.mark.sandbox
def test_a_tool_that_puts_out_nul_is_shown_and_asked_about(cast: Any, ran: Ran) -> None:
    run = ran(ASKS)
    assert run.state == State.WAITING, run.summary
    lines = b"".join(bytes(row.line) for row in RunRecord.objects.filter(run=run))
    assert b"\\u0000" in lines, "the ledger has not what the tool put out"
    assert "\0" not in stored(run) and "\\u0000" not in stored(run)
    vera = cast.client("vera")
    for tab in run_parts.TABS:
        assert vera.get(run_parts.address(run), {"tab": tab}).status_code == 200
    of = run.summary["waiting"]["id"]
    where = reverse("spak-run-answer", args=[cast.team.slug, run.key])
    assert cast.client("bob").post(where, {"of": of, "text": ODD}).status_code == 400
    assert not Command.objects.exists()
    ask(cast["bob"], run, "answer", of, text="yes")
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED, run.summary


@pytest.mark.parametrize("field", ["mode", "backend", "labels", "queue", "sandbox", "input.none"])
def test_a_form_with_nul_starts_nothing(cast: Any, ground: None, field: str) -> None:
    where = reverse("spak-run-start", args=[cast.team.slug, "small"])
    answer = cast.client("bob").post(where, {field: ODD})
    assert answer.status_code in (302, 400)
    assert "\0" not in "".join(map(stored, Run.objects.all()))


@pytest.mark.parametrize("inputs", [{"a": ODD}, {ODD: "a"}])
def test_no_input_holds_nul(cast: Any, ground: None, inputs: dict[str, str]) -> None:
    from spakweb.ground.errors import Refused

    with pytest.raises(Refused, match="NUL"):
        start(cast["bob"], cast.spec, inputs=inputs)


def test_addresses_with_odd_signs_are_none(cast: Any, ran: Ran) -> None:
    run, bob, team = ran(), cast.client("bob"), f"/t/{cast.team.slug}"
    here = f"{team}/runs/{run.key}"
    huge = "9" * 40
    for path in (
        f"{team}/runs/a%00b/", f"{here}/r/{huge}/", f"{here}/r/{huge}/prompt/", f"{here}/fork/?task=a%00b",
        f"{here}/fork/?at={huge}", f"{here}/files/blob/../../etc/passwd", f"{here}/files/file/../x%00",
        f"{here}/files/blob/{'A' * 43}", f"{team}/runs/a%00b/events", "/runs/a%00b/events",
    ):  # fmt: skip
        assert bob.get(path).status_code in (200, 404), path
    for query in ("seq", "after", "before", "task", "q", "kind", "page", "tab", "label", "state", "spec"):
        for value in (ODD, huge, "-1", "\u202e<b>"):
            for where in (f"{here}/", f"{team}/runs/"):
                for tab in ("records", "log"):
                    assert bob.get(where, {"tab": tab, query: value}).status_code == 200, (query, value)
    for name, sent in (
        ("labels", {"labels": ODD}), ("control", {"do": ODD}), ("fork-go", {"task": ODD}),
        ("fork-go", {"mode": ODD}), ("answer", {"of": ODD, "text": "x"}), ("decide", {"of": ODD}),
    ):  # fmt: skip
        status = bob.post(reverse(f"spak-run-{name}", args=[cast.team.slug, run.key]), sent).status_code
        assert status in (302, 400, 403, 404, 409), (name, status)
    lists = reverse("spak-run-bulk", args=[cast.team.slug])
    assert bob.post(lists, {"do": "cancel", "run": [ODD, run.key]}).status_code == 302


def test_an_import_may_hold_nul(cast: Any, ground: None, tmp_path: Any) -> None:
    body = {"host": {"run": "odd-1", "spec": ODD, "mode": ODD, "launcher": ODD}, "rules": {}, "v": 1}
    ledger = MemoryLedgers().create("odd-1", Record("genesis", "proposal", body))
    ledger.append([Record("act", "proposal", {"out": ODD, "of": "x"}, ODD, ODD, 1, at=5)])
    with (tmp_path / "f.jsonl").open("wb") as file:
        export(ledger, file)
    upload = SimpleUploadedFile("f.jsonl", (tmp_path / "f.jsonl").read_bytes())
    answer = cast.client("bob").post(reverse("spak-run-import", args=[cast.team.slug]), {"file": upload})
    assert answer.status_code == 302
    run = Run.objects.get(key__startswith="odd-1-")
    assert "\0" not in stored(run)
    row = RunRecord.objects.get(run=run, seq=1)
    assert "\0" not in row.task + row.step and decode(bytes(row.line)).task == ODD
    for tab in run_parts.TABS:
        assert cast.client("bob").get(run_parts.address(run), {"tab": tab}).status_code == 200


@pytest.mark.parametrize(
    ("rules", "host", "at"),
    [
        ({"spec": 5}, {}, 5),
        ({"policy": ["x"]}, {}, 5),
        ([], {}, 5),
        ({}, {"toolchain": "x"}, 5),
        ({}, {}, 2**52),
    ],
)
def test_an_import_that_no_page_could_show_is_refused(
    cast: Any, ground: None, rules: Any, host: dict[str, Any], at: int
) -> None:
    body = {"host": {"run": "odd-1", **host}, "rules": rules, "v": 1}
    out = io.BytesIO()
    export(MemoryLedgers().create("odd-1", Record("genesis", "proposal", body, at=at)), out)
    upload = SimpleUploadedFile("f.jsonl", out.getvalue())
    answer = cast.client("bob").post(reverse("spak-run-import", args=[cast.team.slug]), {"file": upload})
    assert answer.status_code == 400 and b"web.run_import" in answer.content
    assert not Run.objects.exists()


HOSTILE = "<b>\u202e\x1b[31m\x07\u2066 \x9b" + "z" * 50_000
NAMES = """\
task Names {
  step make: tool.python_repl { code: "%s" }
  success: exit_code(make) == 0
}
"""


@pytest.mark.parametrize("odd", [2**70, {1: "a"}, 1.5, None, "\u2028"])
def test_a_document_goes_into_its_column_whatever_it_holds(cast: Any, ground: None, odd: Any) -> None:
    """As Django's own field writes it, also what the quicker way refuses."""
    run = Run.objects.create(team=cast.team, key="odd", name="odd", summary={"before": True})
    run.summary = without_nul({"odd": [odd], "nul\0": {"deep": ("\0",)}})
    with transaction.atomic(), connection.cursor() as cursor:
        writer_sql.show(cursor, [writer_sql.shown(run, run.fence, "")])
    run.refresh_from_db()
    odd = {"1": "a"} if isinstance(odd, dict) else odd
    assert run.summary == {"odd": [odd], "nul\u2400": {"deep": ["\u2400"]}}


def test_json_of_half_a_sign_is_written_as_json_does() -> None:
    assert json.loads(plain_json({"half": "\ud800", "nul": "\0"})) == {"half": "\ud800", "nul": "\0"}
    assert without_nul({"half": "\ud800", "nul": "\0"}) == {"half": "\ud800", "nul": "\u2400"}
    with pytest.raises(TypeError):
        plain_json({"half": "\ud800", "set": {1}})


def test_signs_that_nobody_sees_are_shown() -> None:
    assert reveal("a\x1b[1m\0\x7f\n\tb") == "a\u241b[1m\u2400\u2421\n\tb"
    assert (
        reveal("x\u202ey\u2069\x9b\udcff") == "x\u27e8U+202E\u27e9y\u27e8U+2069\u27e9\u27e8U+009B\u27e9\ufffd"
    )
    assert reveal("a\u200eb\u200fc\u061cd\u2028") == "".join(
        f"{one}\u27e8U+{code}\u27e9"
        for one, code in zip("abcd", ("200E", "200F", "061C", "2028"), strict=True)
    )
    hidden = "\xad\u200b\u2060\u2063\ufeff\u3164\U000e0041"
    assert reveal(hidden) == "".join(f"\u27e8U+{ord(sign):04X}\u27e9" for sign in hidden)
    assert reveal("a\u200db \u200cc") == "a\u27e8U+200D\u27e9b \u27e8U+200C\u27e9c"
    joined = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb"
    assert reveal(joined) == joined
    assert reveal("שלום f\u00fc\u4e2d \u200d\U0001f600") == "שלום f\u00fc\u4e2d \u200d\U0001f600"


@pytest.mark.sandbox
def test_no_page_holds_signs_that_nobody_sees(cast: Any, ran: Ran) -> None:
    """An ANSI sequence, a bell, a mark that turns the text round: in the log, in records, in the stream."""
    run, vera = ran(ASKS.replace("chr(0)", "chr(1)")), cast.client("vera")
    ask(cast["bob"], run, "answer", run.summary["waiting"]["id"], text=HOSTILE)
    execute.advance(run.key)
    run.refresh_from_db()
    addresses = [f"{run_parts.address(run)}?tab={tab}" for tab in run_parts.TABS]
    addresses += [f"{run_parts.address(run)}r/{seq}/" for seq in range(run.count)]
    seen = 0
    for address in addresses:
        text = vera.get(address).content.decode()
        assert reveal(text) == text and "<b>\u27e8" not in text, address
        seen += "U+202E\u27e9\u241b[31m" in text
    assert seen >= 3
    lines = [decode(bytes(line)) for line in RunRecord.objects.filter(run=run).values_list("line", flat=True)]
    assert all(reveal(row(record)["text"]) == row(record)["text"] for record in lines)
    given = b"".join(vera.get(f"{run_parts.address(run)}files/file/word.txt"))
    assert given == HOSTILE.encode()  # files are as they were written


@pytest.mark.sandbox
def test_files_of_any_name_can_be_had(cast: Any, ran: Ran) -> None:
    names = [
        b"new\nline.txt",
        "\u202etxt.exe".encode(),
        b"\xff.bin",
        b'q"uote.txt',
        "f\u00fc\u4e2d.txt".encode(),
    ]
    code = f"[open(n, 'wb').write(b'inside') for n in {[*map(os.fsencode, names)]!r}] and None"
    run, vera = ran(NAMES % code.replace("\\", "\\\\").replace('"', '\\"')), cast.client("vera")
    assert run.state == State.SUCCEEDED, run.reason
    assert (
        "\u27e8U+202E\u27e9txt.exe" in vera.get(run_parts.address(run), {"tab": "workspace"}).content.decode()
    )
    headers = []
    for item in artifacts(run):
        where = {"team": cast.team.slug, "run": run.key, "name": item["key"]}
        answer = vera.get(reverse("spak-run-artifact", kwargs=where))
        assert b"".join(answer) == b"inside"
        headers.append(answer["Content-Disposition"])
    assert sorted(headers) == sorted([
        'attachment; filename="new_line.txt"', 'attachment; filename="q_uote.txt"',
        'attachment; filename="_.bin"', 'attachment; filename="_U_202E_txt.exe"',
        "attachment; filename*=utf-8''f%C3%BC%E4%B8%AD.txt",
    ])  # fmt: skip
