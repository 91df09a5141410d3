"""Pages of runs and what people do there: every view and every action, with runs that really ran."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from run_page_specs_kit import ASKING, WITH_INPUT, Ran, body, url
from spak.records import Record
from spakweb.face.runs import run_parts
from spakweb.face.runs.filters import RecordFilter
from spakweb.face.streams import summaries
from spakweb.ground.audit.models import Event
from spakweb.store.ledger import workspaces
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, State
from spakweb.store.specs.models import Spec
from spakweb.work.fleet.actions import heartbeat
from spakweb.work.specs.actions import create_spec
from spakweb.work.worker import execute

pytestmark = pytest.mark.django_db(transaction=True)
DENIED = """\
task Outside {
  step take: tool.read_file { path: "/etc/passwd" }
}
"""


def test_the_list_shows_runs_and_filters_them(cast: Any, ran: Ran) -> None:
    done, waits = ran(labels=["nightly"]), ran(ASKING)
    client, address = cast.client("vera"), reverse("spak-run-list", args=[cast.team.slug])
    text = body(client.get(address))
    assert done.key in text and waits.key in text
    assert "Succeeded" in text and "Waiting" in text
    for query, first, second in (
        ("state=succeeded", True, False), ("state=nonsense", True, True), ("label=nightly", True, False),
        ("label=none", False, False), (f"spec={waits.version.spec.slug}", False, True),
        (f"q={done.key}", True, False), ("mine=1", False, False), ("page=99", True, True),
        ("q=%00", True, True),
    ):  # fmt: skip
        text = body(client.get(f"{address}?{query}"))
        assert (done.key in text, waits.key in text) == (first, second), query
    assert b"<html" not in client.get(address, headers={"HX-Request": "true"}).content


def test_an_empty_list_says_what_a_run_is(cast: Any, ground: None) -> None:
    text = body(cast.client("vera").get(reverse("spak-run-list", args=[cast.team.slug])))
    assert "No run yet" in text and "Start from a spec" not in text


def test_the_form_starts_a_run(cast: Any, ground: None) -> None:
    spec = create_spec(cast["alice"], cast.team, "sized", WITH_INPUT)
    client = cast.client("bob")
    form = body(client.get(reverse("spak-run-new", args=[cast.team.slug, spec.slug])))
    assert 'name="input.size"' in form and 'value="3"' in form
    begin = reverse("spak-run-start", args=[cast.team.slug, spec.slug])
    refused = client.post(begin, {"input.size": "large", "labels": "kept"})
    assert (
        refused.status_code == 400 and "a whole number" in body(refused) and 'value="kept"' in body(refused)
    )
    assert not Run.objects.exists()
    made = client.post(begin, {"version": "1", "input.size": "7", "labels": " a, b ,a", "mode": "stepwise"})
    run = Run.objects.get()
    assert made["Location"] == run_parts.address(run)
    assert (run.inputs, run.labels, run.mode, run.made_by) == (
        {"size": "7"},
        ["a", "b"],
        "stepwise",
        cast["bob"],
    )
    execute.advance(run.key)
    run.refresh_from_db()
    assert run.state == State.SUCCEEDED, run.summary
    assert (workspaces.folder_of(run.key) / "workspace" / "size.txt").read_text() == "7"


@pytest.mark.parametrize(
    "given", [{"mode": "wild"}, {"queue": "a b"}, {"labels": ",".join(map(str, range(30)))}]
)
def test_the_form_refuses(cast: Any, ground: None, given: dict[str, str]) -> None:
    answer = cast.client("bob").post(reverse("spak-run-start", args=[cast.team.slug, "small"]), given)
    assert answer.status_code == 400 and not Run.objects.exists()


@pytest.mark.parametrize(("level", "barred"), [(2, ["semi_auto", "full_auto"]), (3, ["full_auto"]), (4, [])])
def test_the_level_of_a_spec_bounds_its_modes(
    cast: Any, ran: Ran, ground: None, level: int, barred: list[str]
) -> None:
    text = f'AGENT A LEVEL {level} {{ START -> t TASK t {{ step s: tool.list_files {{ path: "." }} }} }}'
    spec, client = create_spec(cast["alice"], cast.team, "bounded", text), cast.client("bob")
    begin = reverse("spak-run-start", args=[cast.team.slug, spec.slug])
    asked = {"mode": "full_auto"}  # as a link to the form may say
    form = body(client.get(reverse("spak-run-new", args=[cast.team.slug, spec.slug]), asked))
    assert f'value="{"" if barred else "full_auto"}" checked' in form
    answer = client.post(begin, asked)
    assert answer.status_code == (400 if barred else 302) and Run.objects.count() == (not barred)
    assert f"the AGENT has LEVEL {level}." in body(answer) or not barred
    run = ran(text)
    fork = body(client.get(url("spak-run-fork", run)))
    for mode in ("stepwise", "semi_auto", "full_auto"):
        assert (f'value="{mode}" disabled' in form) == (mode in barred), mode
        assert (f'<option value="{mode}">' in fork) == (mode not in barred), mode
    assert fork.count("is not offered") == len(barred)


@pytest.mark.parametrize("tab", ["", "timeline", "records", "metrics", "workspace", "registers", "nonsense"])
def test_every_tab(cast: Any, ran: Ran, tab: str) -> None:
    run, client = ran(), cast.client("vera")
    whole = body(client.get(url("spak-run", run), {"tab": tab}))
    assert "Succeeded in Hello." in whole
    expected = {
        "records": "succeeded", "workspace": "hello.txt", "registers": "R7", "metrics": "steps",
    }.get(tab, "timeline-svg")  # fmt: skip
    assert expected in whole
    part = client.get(url("spak-run", run), {"tab": tab}, headers={"HX-Request": "true", "HX-Target": "pane"})
    assert b"<html" not in part.content and expected in body(part)


def test_a_run_without_records_has_a_page(cast: Any, ran: Ran) -> None:
    run, client = ran(advance=False), cast.client("vera")
    for tab in run_parts.TABS:
        assert client.get(url("spak-run", run), {"tab": tab}).status_code == 200
    assert client.get(url("spak-run-export", run)).status_code == 409


def test_a_run_that_is_being_taken_up_waits_for_nobody(cast: Any, ran: Ran) -> None:
    run = ran(advance=False)
    Run.objects.update(holder="w", lease_until=timezone.now() + timedelta(seconds=9))
    assert "A worker is about to start it." in body(cast.client("vera").get(url("spak-run", run)))
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    text = body(cast.client("vera").get(url("spak-run", run)))
    assert "Waiting to start: first in the default queue" in text
    Run.objects.update(reason="unavailable.sandbox: no engine", holder="")
    said = run_parts.outcome(Run.objects.get())
    assert said.endswith("which no runner serves. The last attempt failed: unavailable.sandbox: no engine.")
    heartbeat("one", process="host:one", queues=("default",), devices=())
    said = run_parts.outcome(Run.objects.get())
    assert said.endswith("queue, tried again within a minute: unavailable.sandbox: no engine.")


def test_a_run_that_could_not_begin_says_why(cast: Any, ran: Ran) -> None:
    run = ran("task Broken {\n  step a: tool.nothing { }\n}\n")
    text = body(cast.client("vera").get(url("spak-run", run)))
    assert "Could not start" in text and "nothing" in text


def test_a_run_that_loops_says_which_records_are_alike(cast: Any, ran: Ran) -> None:
    step = 'step {}: tool.write_file {{ path: "a.txt" content: "same" }}\n'
    run = ran("task Loop {\n" + "".join(step.format(name) for name in "abcd") + "}\n")
    said = run_parts.outcome(run)
    assert said.startswith(
        "Failed in Loop: it was in a loop: the same steps gave the same results, without progress. "
        "write_file gave the same result 3 times: records "
    )
    assert "gave the same result 3 times" in body(cast.client("vera").get(url("spak-run", run)))


def test_records_are_paged_and_filtered(cast: Any, ran: Ran) -> None:
    run, client = ran(), cast.client("vera")

    def seqs(**query: Any) -> list[int]:
        answer = client.get(url("spak-run", run), {"tab": "records", **query})
        return [row["seq"] for row in answer.context["rows"]]

    everything = list(range(run.count - 1, -1, -1))
    assert seqs() == everything
    assert seqs(before=3) == [2, 1, 0]
    assert all(seq in everything for seq in seqs(kind="route")) and len(seqs(kind="route")) == 2
    assert seqs(task="Nowhere") == [] and len(seqs(task="Hello")) == run.count - 1
    assert seqs(q='content":"Hello <b>') != [] and seqs(q="not there at all") == []
    assert len(seqs(authority="commit")) + len(seqs(authority="proposal")) == run.count
    assert seqs(kind="x", before="y", authority="z") == everything


def test_an_open_record_leaves_the_runs_sentence_alone(cast: Any, ran: Ran) -> None:
    page = body(cast.client("vera").get(url("spak-run", ran()), {"tab": "records", "seq": "2"}))
    assert "Succeeded in Hello." in page and 'id="record-title"' in page


def test_a_record_that_comes_reads_like_one_that_is_there(cast: Any, ran: Ran) -> None:
    shown = run_parts.records_page(ran(), RecordFilter())["rows"]
    assert [summaries.row(one["record"])["text"] for one in shown] == [one["said"] for one in shown]


def test_each_record_has_a_page(cast: Any, ran: Ran) -> None:
    run, client = ran(ASKING), cast.client("vera")
    texts = [body(client.get(url("spak-run-record", run, seq=seq))) for seq in range(run.count)]
    assert "Where it began" in texts[0] and "Proposal from the runner" in texts[0]
    permit = next(text for text in texts if "Commit by the kernel" in text)
    assert "Proof" in permit and "permitted(/action)" in permit and "acts.mg" in permit
    assert client.get(url("spak-run-record", run, seq=99)).status_code == 404
    seq = next(seq for seq, text in enumerate(texts) if "Derive it from the records" in text)
    assert "Say a word." in body(client.get(url("spak-run-prompt", run, seq=seq)))
    assert "asked nothing" in body(client.get(url("spak-run-prompt", run, seq=0)))


def test_a_denied_action_shows_what_was_missing(cast: Any, ran: Ran) -> None:
    run, client = ran(DENIED), cast.client("vera")
    assert run.state == State.REFUSED or run.state == State.FAILED
    assert run.summary["denied"] >= 1
    rows = client.get(url("spak-run", run), {"tab": "records", "q": '"allow":false'}).context["rows"]
    text = body(client.get(url("spak-run-record", run, seq=rows[-1]["seq"])))
    assert "denied" in text and "/etc/passwd" in text and "forbidden" in text.lower()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("time_ns", 1_209_204, ("time", "1.21 ms")), ("empty_ns", 8_322, ("empty", "8.32 µs")),
        ("spread_ppm", 17_400, ("spread", "1.74 %")), ("best_ms", 0.702, ("best", "0.702 ms")),
        ("elapsed_ms", 81_000, ("elapsed", "1 min 21 s")), ("windows", 24, ("windows", "24")),
        ("err_max", 6.5e-07, ("err_max", "6.5e-07")), ("stopped_ms", "never", ("stopped_ms", "never")),
        ("held_ns", True, ("held_ns", "true")), ("_ns", 5, ("_ns", "5")),
    ],
)  # fmt: skip
def test_figures_have_the_unit_of_their_name(name: str, value: Any, said: tuple[str, str]) -> None:
    assert words.metric(name, value) == said


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("permit", {"act": "ask", "name": "ask", "allow": True}, "ask: permitted"),
        ("permit", {"act": "ask", "name": "coder", "allow": True}, "ask coder: permitted"),
        ("permit", {"act": "plan", "name": "tuner", "allow": True}, "ask tuner for a plan: permitted"),
        ("permit", {"act": "plan", "name": "plan", "allow": False}, "ask for a plan: denied"),
        (
            "permit",
            {
                "act": "tool",
                "name": "apply_patch",
                "args": {"patch": "a\nb", "protect": ["tests/"]},
                "allow": False,
            },
            "apply_patch, 2 lines: denied",
        ),
        ("resume", {"records": 2_000}, "taken up after 2,000 records"),
        ("resume", {}, "{}"),
        ("genesis", {"host": {"spec": "a", "mode": "full_auto"}}, "begins a, automatic"),
    ],
)
def test_records_in_words(kind: str, body: dict[str, Any], said: str) -> None:
    assert words.sentence(Record(kind, "commit", body, "t")) == said


def test_what_was_measured_is_told_before_its_circumstances() -> None:
    told = words.measured({"bound_ns": 250_286, "empty_ns": 10, "err_max": 1e-6, "time_ns": 2_000_000})
    assert told.startswith("time 2 ms, err_max 1e-06, bound 0.25 ms")


def test_cost_stands_beside_its_budget(cast: Any, ran: Ran) -> None:
    text = (
        ASKING.replace(
            "task Talk {", "AGENT Paid LEVEL 3 {\n CONFIG { BUDGET { cost: 2000000 } }\n TASK Talk {"
        )
        + "}\n"
    )
    run = ran(text, advance=False)
    Run.objects.update(summary={"cost": 1_900_000_000, "tokens": {"input": 10, "output": 5}})
    run.refresh_from_db()
    bars = {bar["name"]: (bar["used"], bar["most"], bar["high"]) for bar in run_parts.head(run)["bars"]}
    assert bars["cost"] == ("$1.90", "$2.00", True) and bars["tokens"] == ("15", "", False)


@pytest.mark.parametrize(
    ("summary", "cost", "unpriced"),
    [
        ({"answers": 2, "priced": 2, "cost": 0}, "$0.00", 0), ({"answers": 2, "priced": 0}, None, 0),
        ({"answers": 3, "priced": 1, "cost": 500_000_000}, "$0.50", 2), ({}, None, 0),
    ],
)  # fmt: skip
def test_what_is_free_costs_nothing_and_what_has_no_price_is_told(
    cast: Any, ran: Ran, summary: dict[str, int], cost: str | None, unpriced: int
) -> None:
    run = ran(advance=False)
    run.summary = {**summary, "tokens": {"input": 10}}
    head = run_parts.head(run)
    bars = {bar["name"]: bar["used"] for bar in head["bars"]}
    assert (bars.get("cost"), head["unpriced"]) == (cost, unpriced)


def test_files_and_the_report_are_attachments(cast: Any, ran: Ran) -> None:
    run, client = ran(), cast.client("vera")
    answer = client.get(url("spak-run-artifact", run, name="file/hello.txt"))
    assert answer.content == b"Hello <b>you</b>"
    report = client.get(url("spak-run-report", run))
    for one in (answer, report):
        assert one["Content-Disposition"].startswith("attachment")
        assert "sandbox" in one["Content-Security-Policy"] and one["X-Content-Type-Options"] == "nosniff"
    for wrong in ("file/../../secret_key", "file/none", "blob/x", "x", "file/"):
        assert client.get(url("spak-run-artifact", run, name=wrong)).status_code == 404


def test_hostile_text_stays_text(cast: Any, ran: Ran) -> None:
    bad = "<img src=x onerror=alert(1)></script>{% now %}"
    run, client = ran(ASKING, mode="stepwise", labels=[bad]), cast.client("alice")
    client.post(url("spak-run-answer", run), {"of": run.summary["waiting"]["id"], "text": bad})
    execute.advance(run.key)
    run.refresh_from_db()
    addresses = [url("spak-run", run) + f"?tab={tab}" for tab in run_parts.TABS]
    addresses += [url("spak-run-record", run, seq=seq) for seq in range(run.count)]
    addresses += [reverse("spak-run-list", args=[cast.team.slug])]
    seen = False
    for address in addresses:
        text = body(client.get(address))
        assert "<img" not in text and "alert(1)></script>" not in text, address
        seen = seen or "&lt;img src=x" in text
    assert seen


def test_the_live_part_is_honest(cast: Any, ran: Ran) -> None:
    run, client = ran(ASKING, mode="stepwise"), cast.client("vera")
    found = client.get(url("spak-api-live", run)).json()
    assert (found["state"], found["nodes"]["Talk"][0], found["asks"]) == (
        "waiting", "waiting", run.summary["waiting"]["id"],
    )  # fmt: skip
    Run.objects.update(state=State.RUNNING, holder="", lease_until=None)  # its worker died
    found = client.get(url("spak-api-live", run)).json()
    assert (found["state"], found["nodes"]["Talk"][0]) == ("queued", "queued")
    assert b"Waiting to continue with Talk" in client.get(url("spak-run-head", run)).content


def test_labels_are_kept(cast: Any, ran: Ran) -> None:
    run = ran(advance=False)
    cast.client("bob").post(url("spak-run-labels", run), {"labels": "one, two"})
    assert Run.objects.get().labels == ["one", "two"]
    told = Event.objects.get(action="run.labelled")
    assert (told.actor, told.thing, told.detail) == (cast["bob"], run.key, {"labels": ["one", "two"]})
    assert cast.client("vera").post(url("spak-run-labels", run), {"labels": "three"}).status_code == 403
    assert Run.objects.get().labels == ["one", "two"]


def test_the_specs_page_leads_to_a_run(cast: Any, ground: None) -> None:
    text = body(cast.client("bob").get(reverse("spak-spec-detail", args=[cast.team.slug, "small"])))
    assert reverse("spak-run-new", args=[cast.team.slug, "small"]) in text
    assert Spec.objects.get(slug="small", team=cast.team).head.number == 1


def test_a_filter_is_kept_for_the_team(cast: Any, ground: None) -> None:
    address, listed = (reverse(name, args=[cast.team.slug]) for name in ("spak-run-view", "spak-run-list"))
    bob, vera = cast.client("bob"), cast.client("vera")
    made = bob.post(address, {"name": " Failed  nightly ", "query": "state=failed&label=nightly&evil=1"})
    assert made["Location"] == f"{listed}?state=failed&label=nightly"
    assert 'href="?state=failed&amp;label=nightly"' in body(vera.get(listed))
    assert "Failed nightly" not in body(
        cast.client("charlie").get(listed.replace(cast.team.slug, cast.other_team.slug))
    )
    bob.post(address, {"name": "Failed nightly", "query": "state=refused"})
    assert [view.query for view in cast.team.run_views.all()] == ["state=refused"]
    assert bob.post(address, {"name": " ", "query": "state=failed"}).status_code == 400
    bob.post(address, {"name": "Failed nightly", "query": ""})
    assert not cast.team.run_views.exists()
