"""The log of a run and the level of its records: in order, live, as text, with what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from spakweb.face.runs import log, run_parts
from spakweb.face.runs.filters import went_wrong
from spakweb.store.fleet.models import Runner
from spakweb.store.runs.models import Run, State

pytestmark = pytest.mark.django_db(transaction=True)

Ran = Callable[..., Run]
TWO = """\
task Two {
  step hear: tool.write_file { path: "a.txt" content: "Hello" }
  step shout: tool.run { cmd: "cat a.txt" }
  step lost: tool.run { cmd: "cat none.txt" }
  success: exit_code(lost) == 0
}
"""


def text_of(answer: Any) -> str:
    if not answer.streaming:
        return str(answer.content.decode())

    from asgiref.sync import async_to_sync

    async def whole() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(whole)().decode()


def test_the_log_is_in_order_and_goes_on(cast: Any, ran: Ran) -> None:
    run, client = ran(TWO), cast.client("vera")
    found = log.pane(run)["entries"]
    assert [entry.seq for entry in found] == sorted(entry.seq for entry in found)
    shouted = next(entry for entry in found if entry.what == "run cat a.txt")
    lost = next(entry for entry in found if entry.what == "run cat none.txt")
    assert (shouted.out.strip(), shouted.result, shouted.bad) == ("Hello", "exited 0", False)
    assert lost.bad and lost.result == "exited 1" and "none.txt" in lost.out
    page = client.get(run_parts.address(run), {"tab": "log"}).content.decode()
    assert page.index("cat a.txt") < page.index("cat none.txt") and "went wrong" in page
    heads = {"HX-Request": "true", "HX-Target": "log"}
    after = client.get(run_parts.address(run), {"tab": "log", "after": shouted.seq}, headers=heads)
    assert "cat none.txt" in after.content.decode() and "cat a.txt" not in after.content.decode()
    for odd in ("x", "-1", "99999999999", "²"):
        assert client.get(run_parts.address(run), {"tab": "log", "before": odd}).status_code == 200


def test_the_file_has_all_of_it(cast: Any, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ran(TWO)
    for stride, most in (
        (2, 1 << 20),
        (3, 1 << 20),
        (500, 1 << 20),
        (500, 1),
    ):  # however it is cut into pieces
        monkeypatch.setattr(log, "PIECE", most)
        monkeypatch.setattr(log, "STRIDE", stride)
        answer = cast.client("vera").get(reverse("spak-run-log", args=[run.team.slug, run.key]))
        assert answer["Content-Disposition"] == f'attachment; filename="{run.key}.log"'
        lines = text_of(answer).splitlines()
        heads = [int(line[1:].split("]")[0]) for line in lines if line.startswith("[")]
        assert heads == [entry.seq for entry in log.pane(run)["entries"]]
        assert "Hello" in lines and any("run cat none.txt: exited 1" in line for line in lines), stride


def test_a_long_output_keeps_its_end(cast: Any, ran: Ran) -> None:
    run = ran(TWO.replace('"cat none.txt"', '["seq", "5000"]'))
    seen = next(entry for entry in log.pane(run)["entries"] if "seq" in entry.what)
    assert seen.cut and seen.out.startswith("1\n2\n") and seen.out.endswith("\n5000\n")
    assert "19,893 characters left out" in seen.out and len(seen.out) < log.SHOWN + 100
    page = cast.client("vera").get(run_parts.address(run), {"tab": "log"}).content.decode()
    assert "Cut in its middle" in page


def test_what_went_wrong(cast: Any, ran: Ran) -> None:
    run, client = ran(TWO), cast.client("vera")
    rows = client.get(run_parts.address(run), {"tab": "records", "level": "wrong"}).context["rows"]
    lines = {row.seq: bytes(row.line) for row in run.records.all()}
    assert {row["seq"] for row in rows} == {seq for seq, line in lines.items() if went_wrong(line)} != set()
    everything = client.get(run_parts.address(run), {"tab": "records", "level": "odd"}).context["rows"]
    assert len(everything) == run.count > len(rows)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (b'{"allow":false}', True), (b'{"allow":true}', False), (b'{"exit":0}', False), (b'{"exit":1}', True),
        (b'{"exit":-9}', True), (b'{"out":"\\"allow\\":false"}', False), (b'{"signal":"fail"}', True),
        (b'{"signal":"success"}', False), (b'{"outcome":"timeout"}', True), (b'{"state":"succeeded"}', False),
    ],
)  # fmt: skip
def test_the_marks_of_what_went_wrong(line: bytes, wrong: bool) -> None:
    assert went_wrong(line) is wrong


def test_a_queued_run_says_why_it_waits(cast: Any, ran: Ran) -> None:
    run, other = ran(advance=False), ran(advance=False)
    Run.objects.update(queue="gpu")
    Runner.objects.create(name="x", queues=["default"])
    client = cast.client("vera")
    text = client.get(run_parts.address(other)).content.decode()
    assert "Waiting to start: second for gpu, which no runner serves." in text
    assert reverse("spak-fleet", args=[run.team.slug]) in text
    Run.objects.filter(pk=run.pk).update(state=State.FAILED)
    assert "first for gpu" in client.get(f"{run_parts.address(other)}head/").content.decode()


def test_the_file_has_no_escapes_that_a_terminal_obeys(cast: Any, ran: Ran) -> None:
    """What a tool reads has them as they are; what a program prints is shown as a terminal would."""
    printed = r"""["python3", "-c", "open('odd.txt', 'w').write('\\x1b]0;x\\x07\\x1b[31mred')"]"""
    seen = 'step read: tool.read_file { path: "odd.txt" }\n  success:'
    run = ran(TWO.replace('"cat none.txt"', printed).replace("success:", seen))
    answer = cast.client("vera").get(reverse("spak-run-log", args=[run.team.slug, run.key]))
    text = text_of(answer)
    assert "\u241b]0;x\u2407\u241b[31mred" in text and "\x1b" not in text
