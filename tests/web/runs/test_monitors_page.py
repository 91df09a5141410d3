"""The tab of a run's registers shows what folds of the law hold, beside their limits, with their records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse

from spakweb.store.runs.models import Run

Ran = Callable[..., Run]
WRITES = '''
POLICY """
Decl wrote(Path, N) bound [/string, /number] descr [fold("count"), within("20 steps")].
feed_wrote(P) :- event(E), uses_path(E, /edits, _, P).
forbidden(A) :- uses_path(A, /edits, _, P), wrote(P, N), 4 <= N.
Decl read(Path) bound [/string] descr [fold("open"), counts("done")].
feed_read(P) :- event(E), uses_path(E, /reads, _, P).
close_read(P) :- event(E), uses_path(E, /deletes, _, P).
forbidden(A) :- uses_path(A, /deletes, _, P), read(P).
"""
TASK Write {
  STEP one: tool.write_file { path: "a.txt" content: "1" }
  STEP two: tool.write_file { path: "a.txt" content: "2" }
  STEP three: tool.write_file { path: "a.txt" content: "3" }
  STEP four: tool.write_file { path: "b<b>.txt" content: "3" }
  success: file_exists("a.txt")
}
'''


def test_folds_are_shown_beside_their_limits(cast: Any, ran: Ran) -> None:
    run = ran(WRITES)
    assert run.state == "succeeded", run.reason
    page = cast.client("vera").get(reverse("spak-run", args=[cast.team.slug, run.key]) + "?tab=registers")
    shown = page.content.decode()
    assert "What the law remembers" in shown
    row = shown[shown.index("<code>wrote</code>") :].split("</tr>")[0]
    assert "20 steps" in row and "3 of 4" in row and '<progress max="4" value="3"' in row
    assert row.count(f"/runs/{run.key}/r/") == 3
    assert "&quot;b&lt;b&gt;.txt&quot;" in shown
    empty = shown[shown.index("<code>read</code>") :].split("</tr>")[0]
    assert "nothing yet" in empty


def test_a_law_without_folds_shows_none(cast: Any, ran: Ran) -> None:
    run = ran()
    page = cast.client("vera").get(reverse("spak-run", args=[cast.team.slug, run.key]) + "?tab=registers")
    assert "What the law remembers" not in page.content.decode()
