"""The page of a patch: what changed in words, the graph and the text of both, which base; within its size."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from bench.bench_review import EDITS, TASKS, text
from spakweb.face.reviews import folding, page
from spakweb.store.reviews.models import Patch
from spakweb.work.reviews import actions, rules, talk
from spakweb.work.specs.actions import create_spec, save_version

BASE = """\
AGENT Four LEVEL 2 {
  START -> first
  TASK first {
    GOAL "Look."
    step look: tool.list_files { path: "." }
    step say: tool.list_files { path: "src" }
    NEXT { success -> second }
  }
  TASK second {
    step read: tool.read_file { path: "a.txt" }
    NEXT { success -> third }
  }
  TASK third { step show: tool.list_files { path: "." } }
}
"""


@pytest.fixture
def patch(cast: Any) -> Patch:
    """A program is run (it widens), a task is renamed, another goal set, a task is new."""
    spec = create_spec(cast["alice"], cast.team, "four", BASE)
    text = BASE.replace('step read: tool.read_file { path: "a.txt" }', 'step read: tool.run { cmd: "true" }')
    text = text.replace("third", "last").replace('GOAL "Look."', 'GOAL "Look around."')
    text = text.replace(
        "  TASK last {", '  TASK fresh { step a: tool.list_files { path: "." } }\n  TASK last {'
    )
    return actions.propose(cast["bob"], spec, text, 1, "All of it")


def shown(cast: Any, patch: Patch, query: str = "") -> Any:
    where = reverse("spak-patch", args=[cast.team.slug, patch.spec.slug, patch.number])
    return cast.client("rita").get(where + query)


def test_changes_are_told_by_part_what_widens_first(cast: Any, patch: Patch) -> None:
    parts = shown(cast, patch).context["parts"]
    assert [(one.title, one.widens, one.privileged) for one in parts] == [
        ("fresh", True, True), ("second", True, True), ("The spec itself", True, False),
        ("last", False, True), ("first", False, False),
    ]  # fmt: skip
    told = {
        one.title: [(it["word"], it["path"], it["before"], it["after"]) for it in one.changes]
        for one in parts
    }
    assert told["last"] == [("Renamed", "tasks/last", "third", "last")]
    assert told["first"] == [("Changed", "tasks/first/GOAL", "Look.", "Look around.")]
    assert told["second"][0] == ("Changed", "tasks/second/steps/read/kind", "tool.read_file", "tool.run")
    own = {(one.kind, one.name, one.change) for one in parts[2].capabilities}
    assert own == {("tool", "run", "gained"), ("tool", "read_file", "lost")}


def test_steps_that_change_places_moved_and_layout_is_apart(cast: Any, patch: Patch) -> None:
    """Formatting comes last and says so; alone it is no change."""
    look, say = re.findall(r"    step (?:look|say).*\n", BASE)
    moved = BASE.replace(look + say, say + look).replace("  TASK second {", "  TASK second   {")
    made = actions.propose(cast["bob"], patch.spec, moved, 1, "Move it")
    parts = shown(cast, made).context["parts"]
    assert [(one.title, one.formatting) for one in parts] == [("first", False), ("second", True)]
    assert [one["word"] for one in parts[0].changes] == ["Moved"]
    assert "Formatting only" in shown(cast, made).content.decode()
    laid = actions.propose(
        cast["bob"], patch.spec, BASE.replace("  TASK second {", "  TASK second   {"), 1, "Lay out"
    )
    assert "Only the layout of the text changed" in shown(cast, laid).content.decode()


def test_a_comment_is_no_layout(cast: Any, patch: Patch) -> None:
    """Not for the named role of every change but formatting either."""
    text = BASE.replace("  TASK second {", "  TASK second {  // Reviewed: harmless.")
    made = actions.propose(cast["bob"], patch.spec, text, 1, "Say so")
    body = shown(cast, made).content.decode()
    assert "The text changed, and not what it means" in body and "Same meaning" in body
    assert "Only the layout" not in body and "Formatting only" not in body
    assert rules.kinds_of(made, made.latest) == {"any"}


def test_the_graph_of_both_draws_what_was_added_changed_and_removed_apart(cast: Any, patch: Patch) -> None:
    def drawn(body: str) -> dict[str, str]:
        found = re.findall(r'<g class="([^"]*)"[^>]*data-task="([^"]*)"', body)
        return {name: next((one for one in kind.split() if one.startswith("d-")), "") for kind, name in found}

    answer = shown(cast, patch)
    assert drawn(answer.content.decode()) == {
        "first": "d-changed", "second": "d-changed", "last": "d-changed", "fresh": "d-added",
    }  # fmt: skip
    assert answer.context["counts"] == [("added", 1), ("changed", 3)]
    assert [(one.name, one.was) for one in answer.context["nodes"].shown][-1] == ("last", "third")
    without = BASE[: BASE.index("  TASK third")].replace("    NEXT { success -> third }\n", "") + "}\n"
    made = actions.propose(cast["bob"], patch.spec, without, 1, "Less")
    found = drawn(shown(cast, made).content.decode())
    assert (found["third"], found["first"]) == ("d-removed", "d-same")


def test_the_text_side_by_side_unified_and_since_a_revision(cast: Any, patch: Patch) -> None:
    def rows(query: str = "") -> list[tuple[str, str]]:
        body = shown(cast, patch, query).content.decode()
        body = body[body.index('<table class="diff') :].split("</table>")[0]
        found = re.findall(r'<tr class="(removed|added|changed)">(.*?)</tr>', body, re.S)
        return [(kind, " | ".join(re.findall(r"<code>\s*(.*?)</code>", cells))) for kind, cells in found]

    assert rows()[0] == ("changed", "GOAL &quot;Look.&quot; | GOAL &quot;Look around.&quot;")
    assert rows("?view=unified")[:2] == [
        ("removed", "GOAL &quot;Look.&quot;"), ("added", "GOAL &quot;Look around.&quot;"),
    ]  # fmt: skip
    actions.revise(cast["bob"], patch, 1, patch.latest.text.replace("Look around.", "Look twice."))
    assert rows("?since=1&view=unified") == [
        ("removed", "GOAL &quot;Look around.&quot;"), ("added", "GOAL &quot;Look twice.&quot;"),
    ]  # fmt: skip


def test_a_long_text_is_shown_in_portions(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing of a patch is out of sight."""
    monkeypatch.setattr(page, "MOST_ROWS", 10)
    added = "".join(f"  // line {number}\n" for number in range(25))
    made = actions.propose(
        cast["bob"], cast.spec, cast.spec.head.text.replace("  START", f"{added}  START"), 1, "Long"
    )
    seen, query = "", "?view=unified"
    while query:
        body = shown(cast, made, query).content.decode()
        seen += body[body.index('<table class="diff') :].split("</table>")[0]
        links = re.findall(r'<a href="(\?from=\d+&amp;view=unified)#text">show the next</a>', body)
        query = links[0].replace("&amp;", "&") if links else ""
    assert "Show the rows before" in body
    assert [f"// line {number}<" in seen for number in range(25)] == [True] * 25
    assert len(shown(cast, made, "?from=999").context["rows"]) == 10


def test_many_verdicts_and_revisions_are_cut_and_say_so(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "VERDICTS", 2)
    monkeypatch.setattr(page, "REVISIONS", 1)
    made = actions.propose(cast["bob"], cast.spec, cast.spec.head.text.replace('"."', '"a"'), 1, "Long")
    for word in ("one", "two", "three"):
        actions.judge(cast["rita"], made, 1, False, word)
    actions.revise(cast["bob"], made, 1, cast.spec.head.text.replace('"."', '"b"'))
    body = shown(cast, made).content.decode()
    assert "rita: three" in body and "rita: two" in body and "rita: one" not in body
    assert "Earlier verdicts are not listed." in body and "1 earlier revision<" in body
    assert "2 revisions" in body


def test_who_wrote_a_revision_is_told_why_they_do_not_approve(cast: Any, patch: Patch) -> None:
    actions.revise(cast["rita"], patch, 1, patch.latest.text.replace("Look around.", "Look twice."))
    body = shown(cast, patch).content.decode()
    assert "You wrote a revision of this patch" in body and 'value="approve"' not in body


def test_after_a_comment_the_page_opens_at_it(cast: Any, patch: Patch) -> None:
    do, rita = reverse("spak-patch-do", args=[cast.team.slug, "four", 1]), cast.client("rita")
    where = reverse("spak-patch", args=[cast.team.slug, "four", 1])
    said = rita.post(do, {"do": "comment", "revision": "1", "text": "Why?"})
    key = patch.comments.get().pk
    assert (
        said["Location"] == f"{where}#comment-{key}"
        and f'id="comment-{key}"' in rita.get(where).content.decode()
    )
    for form in ({"do": "comment", "text": "So."}, {"do": "resolve"}):
        assert rita.post(do, {**form, "comment": str(key)})["Location"] == f"{where}#comment-{key}"
    dropped = rita.post(do, {"do": "drop", "revision": "1", "edit": "1", "text": "No."})
    assert dropped["Location"] == f"{where}#changes"


def test_it_says_which_base_and_warns_when_that_is_no_longer_the_newest(cast: Any, patch: Patch) -> None:
    assert "revision 1 on version 1" in shown(cast, patch).content.decode()
    warning = "The spec is at version 2; this revision was made from version 1."
    assert warning not in shown(cast, patch).content.decode()
    save_version(cast["alice"], patch.spec, BASE.replace('"src"', '"docs"'), 1)
    body = shown(cast, patch).content.decode()
    assert warning in body and "Bring up to date" in body
    status = reverse("spak-patch-status", args=[cast.team.slug, "four", 1])
    assert warning in cast.client("rita").get(f"{status}?shown=1").content.decode(), "without a reload"


def test_a_large_patch_is_within_its_size(cast: Any) -> None:
    """200 tasks, 50 edits: below 300 KB, with as many queries as a small one; bench_review has the time."""
    base = changed = text(TASKS)
    for number in range(EDITS):
        place = number * TASKS // EDITS
        changed = changed.replace(f'"p{place}"', f'"q{place}"', 1)
    sizes = []
    for name, old, new in (("large", base, changed), ("little", text(2), text(2).replace('"p0"', '"q0"'))):
        made = actions.propose(cast["bob"], create_spec(cast["alice"], cast.team, name, old), new, 1, "Bench")
        shown(cast, made)
        with CaptureQueriesContext(connection) as queries:
            answer = shown(cast, made)
        sizes.append((len(answer.content), len(queries)))
        assert answer.context["edit_count"] == (EDITS if name == "large" else 1)
    assert sizes[0][0] < 300_000 and sizes[0][1] == sizes[1][1]


def more_links(body: str) -> list[str]:
    found = re.findall(r'<p class="small" data-more><a href="([^"]+)">', body)
    return [html.unescape(one) for one in found]


@pytest.fixture
def many(cast: Any) -> Patch:
    """256 KiB in which every other line is another, each an edit of its own, and 300 tasks that change."""
    tasks = text(300)
    lines = [f"// {number:05d} {'<&>' * 6}" for number in range(7000)]
    changed = [line if number % 2 else line.replace("//", "///") for number, line in enumerate(lines)]
    base, new = (tasks + "\n".join(found) + "\n" for found in (lines, changed))
    spec = create_spec(cast["alice"], cast.team, "many", base)
    return actions.propose(cast["bob"], spec, re.sub(r'"p(\d+)"', r'"q\1"', new), 1, "All of it")


def test_a_patch_of_thousands_of_edits_is_folded_and_nothing_is_out_of_reach(
    cast: Any, many: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shown(cast, many)
    body, parts, edits = answer.content.decode(), answer.context["parts"], answer.context["edit_count"]
    assert len(many.latest.text) > 230_000 and edits > 3500 and len(parts) > 300
    assert len(body) < 1_000_000
    monkeypatch.setattr(folding, "ITEMS", 5000)
    monkeypatch.setattr(folding, "PARTS", 150)
    monkeypatch.setattr(folding, "CHARS", 10**6)
    rita, left, seen = cast.client("rita"), more_links(body), [body]
    while left:
        found = rita.get(left.pop(), headers={"HX-Request": "true"})
        assert found.status_code == 200
        seen.append(found.content.decode())
        assert "<html" not in seen[-1]
        left += more_links(seen[-1])
    whole = "".join(seen)
    numbers = sorted(int(one) for one in re.findall(r'aria-label="Edit (\d+)"', whole))
    assert numbers == list(range(1, edits + 1)), "each once"
    assert whole.count("data-part>") == len(parts)
    assert whole.count('<li class="change">') == sum(len(one.changes) for one in parts)
    assert whole.count("data-centre=") == 300


def test_the_rest_of_a_fold_is_a_page_without_the_script(cast: Any, many: Patch) -> None:
    rita, [first, *_] = cast.client("rita"), more_links(shown(cast, many).content.decode())
    body = rita.get(first).content.decode()
    back = reverse("spak-patch", args=[cast.team.slug, "many", 1])
    assert "<h1>More " in body and f'href="{back}"' in body
    where = reverse("spak-patch-more", args=[cast.team.slug, "many", 1])
    for query in ("kind=../patch", "kind=edits&part=tasks/none", "kind=edits&part=%00"):
        assert rita.get(f"{where}?{query}").status_code == 404
    assert rita.get(f"{where}?kind=parts&from=99999999").status_code == 200
    actions.revise(cast["bob"], many, 1, many.latest.text.replace("q0", "q00"))
    late = rita.get(first, headers={"HX-Request": "true", "Accept": "application/json"})
    assert (late.status_code, late.json()["code"]) == (409, "web.patch_moved")
    assert cast.client("charlie").get(where).status_code == 404


def test_long_lines_are_shown_in_fewer_rows(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_CHARS", 1000)
    added = "".join(f"  // {number} {'x' * 300}\n" for number in range(20))
    head = cast.spec.head.text
    made = actions.propose(cast["bob"], cast.spec, head.replace("  START", f"{added}  START"), 1, "Long")
    answer, numbers = shown(cast, made), []
    while answer.context["rows_after"]:
        assert 0 < len(answer.context["rows"]) < 10
        numbers += [item["row"].right_number for item in answer.context["rows"]]
        answer = shown(cast, made, f"?from={answer.context['first_after']}")
    numbers += [item["row"].right_number for item in answer.context["rows"] if item["kind"] != "gap"]
    assert set(range(2, 21)) <= set(numbers) and len(numbers) == len(set(numbers))


def test_the_status_says_that_somebody_said_something(cast: Any, patch: Patch) -> None:
    """The page's script asks for the conversation then."""
    where = reverse("spak-patch-status", args=[cast.team.slug, "four", 1])

    def said() -> str:
        [found] = re.findall(r'data-said="([^"]*)"', cast.client("rita").get(where).content.decode())
        return str(found)

    seen = [said()]
    key = talk.comment(cast["bob"], patch, "Why?").pk
    seen.append(said())
    talk.resolve(cast["rita"], patch, key)
    seen.append(said())
    talk.resolve(cast["rita"], patch, key, False)
    talk.comment(cast["rita"], patch, "So.", answers=key)
    seen.append(said())
    assert len(set(seen)) == 4 and said() == seen[-1]
