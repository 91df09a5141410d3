"""What the page of a run shows: its header, its graph with states, its tasks in a table, its tabs.

Takes a row, gives dictionaries for templates. Nothing here reads all records of a run: lists are pages by
cursor, the rest is the projection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from spak.errors import LedgerError, UserError
from spak.lang import parse
from spak.lang.graph import graph_of, lay_out, to_svg
from spak.proposers.repair import answers
from spak.records import Kind, Record, decode
from spak.runner.views import causes, own_tests, refusals, repairs
from spakweb.face.fleet.show import why_waits
from spakweb.face.runs import backends, prompts, record_parts, times, workspace
from spakweb.face.runs.filters import PAGE, RecordFilter
from spakweb.face.runs.guarded import session
from spakweb.face.runs.start_files import GIT
from spakweb.ground import access, clock
from spakweb.ground.audit.models import Event
from spakweb.ground.unsafe_text import reveal
from spakweb.store.jobs.leases import is_held
from spakweb.store.ledger import projection
from spakweb.store.ledger.storage import FULL, no_room
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs import endings, limits, words
from spakweb.store.runs.models import TRIES, Run, RunRecord, State
from spakweb.store.runs.spec_text import spec_text
from spakweb.work.runs.actions import CONTROL_WORDS

TABS = {
    "timeline": "Timeline",
    "records": "Records",
    "log": "Log",
    "metrics": "Metrics",
    "workspace": "Workspace",
    "registers": "Registers",
}
MOST_SHOWN = 256 * 1024
"""Characters of the arguments that a page shows whole before somebody approves them."""
PLANS, SUSPECTS, LONGEST = 20, 5, 400
"""Plans that are read for the newest search of a repair; suspected lines that are shown, and their length."""
NODES = 2_000
"""Tasks beyond which no graph is drawn; the table has them all."""


@lru_cache(maxsize=32)
def drawn(text: str) -> SafeString | None:
    """The graph of a text with room for states; `spak.lang.graph` escapes all that is in it."""
    graph = graph_of(parse(text).spec)
    if not graph.nodes or len(graph.nodes) > NODES:
        return None
    return mark_safe(to_svg(lay_out(graph, {}), prefix="g", style=False, interactive=True))


def live(run: Run) -> dict[str, Any]:
    """States of nodes and counts of edges, as the graph's script takes them."""
    summary = run.summary or {}
    nodes = {
        task: [_node(run, task, found), *projection.spent(found)]
        for task, found in (summary.get("nodes") or {}).items()
    }
    return {"nodes": nodes, "edges": projection.edges(summary)}


def _node(run: Run, task: str, found: dict[str, Any]) -> str:
    """A node's state; the one that a stopped run stands in is what the run is: a dead run runs nowhere, and
    while a worker is at it a question is the backend's."""
    name = projection.node_state(found)
    if name in ("running", "waiting"):
        shown = str(run.state) if task == run.task else ""
        name = "running" if run.state == State.RUNNING else shown
    return words.node_state(name)


def head(run: Run) -> dict[str, Any]:
    """The header's figures."""
    summary = run.summary or {}
    used = projection.tokens_used(summary)
    most, cost = limits.budgets(run), summary.get("cost") or 0
    metrics = summary.get("metrics") or {}
    answers, known = summary.get("answers", 0), summary.get("priced", 0)
    priced = bool(cost or most["cost"] or known)
    checked = cache.get(checked_key(run))
    return {
        "run": run,
        "asked": next(iter(found := asks(run)), None),
        "open_asks": found,
        "said": endings.linked(outcome(run), address(run)),
        "limit": str(((run.summary or {}).get("refusal") or {}).get("knob") or ""),
        "codes": [str(code) for code in ((run.summary or {}).get("refusal") or {}).get("codes") or []],
        "evidence": evidence(run),
        "extensions": limits.extensions(run),
        "bars": [
            _bar("steps", summary.get("steps", 0), most["steps"]),
            _bar("tokens", used, most["tokens"]),
            _bar("working time", times.working(run), most["elapsed_ms"], words.took),
            *([_bar("cost", cost, most["cost"], words.money)] if priced else []),
        ],
        "tokens": used,
        "priced": priced,
        "unpriced": answers - known if priced else 0,
        "best": _best(metrics),
        "denied": summary.get("denied", 0),
        "checked": checked,
        "again": retry_address(run) if run.ended else "",
        "elapsed_ms": times.whole(run, timezone.now()),
    }


def _bar(name: str, used: int, most: int, shown: Any = words.figure) -> dict[str, Any]:
    return {
        "name": name,
        "used": shown(used),
        "most": shown(most) if most else "",
        "value": min(used, most) if most else 0,
        "max": most,
        "high": bool(most) and used >= 0.8 * most,
    }


def _best(metrics: dict[str, Any]) -> str:
    if isinstance(metrics.get("best_ms"), int | float):
        times = metrics.get("speedup")
        return f"{metrics['best_ms']:.3g} ms{f', {times:.1f} times the baseline' if times else ''}"
    if isinstance(metrics.get("best"), int | float) and "improvement" in metrics:
        return f"{metrics['best']:.4g}, {metrics['improvement']:.2f} times the baseline"
    return ""


def outcome(run: Run) -> str:
    """How it stands, in a sentence."""
    if run.agent and (said := session.outcome(run)):
        return said
    if run.only_shown and not run.ended:
        return f"Imported up to here. It does not continue on this platform: {run.only_shown}."
    refusal = (run.summary or {}).get("refusal") or {}
    error = (run.summary or {}).get("error") or {}
    match run.state:
        case State.QUEUED:
            what = f"to continue{f' with {run.task}' if run.task else ''}" if run.count else "to start"
            if no_room():  # then nobody can write that its worker put it down or is gone
                return f"Waiting {what}: {FULL}."
            place = why_waits(run)
            if died := _died(run):
                return f"{died}{f' {place[:1].upper()}{place[1:]}.' if place else ''}"
            if not place and run.holder:
                if run.parent is not None and not run.projected:
                    return f"Copies the records of {run.parent.key} before record {run.parent_seq}."
                return "A worker is about to start it."
            known = not run.reason or run.reason in place
            more = "" if known else f" The last attempt failed: {run.reason}."
            return f"Waiting {what}{f': {place}' if place else ''}.{more}"
        case State.RUNNING:
            tried = ((run.summary or {}).get("metrics") or {}).get("evaluations")
            more = f", {tried} candidate{'' if tried == 1 else 's'} measured" if tried else ""
            if asked := (run.summary or {}).get("waiting"):
                more = f", asks {run.backend or 'the backend'} in step {asked.get('step') or 'plan'}"
            return f"Running {run.task}{more}." if run.task else "Starting."
        case State.WAITING:
            return _waits(run)
        case State.PAUSED if run.tries >= TRIES:
            return f"Stopped after {run.tries} errors in a row: {run.reason}. Resume tries it again."
        case State.PAUSED:
            return f"Paused by {_who(run, 'run.pause') or 'somebody'}, until it is resumed."
        case State.SUCCEEDED:
            best = _best((run.summary or {}).get("metrics") or {})
            if run.unchecked:
                return f"Completed in {run.task}. Nothing checked the result: no `success:`, no VALIDATOR."
            if run.own_tests:
                paths = own_tests.named(run.own_tests)
                return f"Succeeded in {run.task}, by its own tests: its check fails without {paths}."
            return f"Succeeded in {run.task}{f': {best}' if best else ''}."
        case State.FAILED if error:
            hint = str(error.get("hint", "")).rstrip(".")
            mends = f" To fix it: {hint}." if hint else ""
            return f"Could not start: {str(error.get('message', run.reason)).rstrip('.')}.{mends}"
        case State.CANCELLED:
            who = _who(run, "run.cancel")
            return f"Cancelled by {who}." if who else "Cancelled."
    codes = [str(code) for code in refusal.get("codes") or []] or [run.reason] * bool(run.reason)
    word = "Refused" if run.state == State.REFUSED else "Failed"
    return endings.sentence(word, run.task, codes, _cause(run))


def _died(run: Run) -> str:
    """That the worker which had the run is gone, where nobody has taken it up since."""
    until, now = run.lease_until, clock.now()
    if not (run.holder and run.count) or until is None or is_held(run.holder, until, now):
        return ""
    ago = words.took(max(0, round((now - until).total_seconds())) * 1000)
    return (
        f"Its worker stopped answering {ago} ago. Another worker will continue from record {run.count}: "
        f"nothing that was recorded is lost."
    )


def _cause(run: Run) -> str:
    """Why it ended, with record numbers; empty where its records cannot be read."""
    return causes.sentence(_tail(run))


def evidence(run: Run) -> tuple[dict[str, Any], ...]:
    """The records that a run rests on which failed or was refused, by hash; none of any other."""
    if run.state not in (State.FAILED, State.REFUSED):
        return ()
    tail = _tail(run)
    return refusals.evidence(tail, causes.sentence(tail))


def _tail(run: Run) -> list[Record]:
    """The last records of a run; none where they cannot be read."""
    try:
        return [
            record for record, _ in DatabaseLedgers().reader(run.key).read(max(0, run.count - causes.TAIL))
        ]
    except LedgerError:
        return []


def _who(run: Run, action: str) -> str:
    """Who asked for it last."""
    asked = (
        Event.objects.filter(team=run.team_id, action=action, thing=run.key).select_related("actor").first()
    )
    return str(asked.actor or asked.actor_name) if asked else ""


def retry_address(run: Run) -> str:
    """The form that starts its like: the same version, inputs, mode, backend, sandbox, labels and prior."""
    if run.version is None:
        return ""
    given = {f"input.{name}": value for name, value in run.inputs.items()} | {
        "version": run.version.number,
        "mode": run.mode,
        "backend": run.backend,
        "sandbox": run.sandbox,
        "labels": ", ".join(run.labels),
        "prior": run.prior,
        "files": run.files.key if run.files else "",
    }
    if begun := getattr(run, "begun_from", None):
        given |= {"files": GIT, "source": begun.name, "ref": begun.ref}
    where = reverse("spak-run-new", kwargs={"team": run.team.slug, "spec": run.version.spec.slug})
    return f"{where}?{urlencode({name: value for name, value in given.items() if value})}"


def _waits(run: Run) -> str:
    found = (run.summary or {}).get("waiting") or {}
    place = f"Step {found['step']} of {found['task']}" if found.get("step") else f"Task {run.task}"
    match found.get("kind"):
        case "approval":
            return f"{place} waits for somebody to approve: {words.one_line(words.action(found), 120)}"
        case "plan":
            return f"{place} waits for a plan, from a person or a backend."
    if run.mode == "semi_auto" and not run.reason:
        stops = "semi-automatic mode stops here. Call the backend again, or answer yourself."
        return f"{place} waits for an answer: {stops}"
    return f"{place} waits for an answer, from a person or a backend."


def asks(run: Run) -> list[dict[str, Any]]:
    """What it waits for: one thing, or, of a guarded session, whose agent goes on, several."""
    if run.state != State.WAITING or run.trial:
        return []
    found = run.summary or {}
    return [_ask(run, one) for one in (found.get("waiting"), *found.get("also", ())) if one]


def _ask(run: Run, found: dict[str, Any]) -> dict[str, Any]:
    given = run.commands.filter(done_at=None, body__of=found.get("id")).select_related("by").last()
    refused = run.commands.filter(body__of=found.get("id")).exclude(outcome="").last()
    permits = RunRecord.objects.filter(run=run, kind=Kind.PERMIT)
    permits = permits.filter(seq=found["seq"]) if "seq" in found else permits  # others follow in a session
    asked = permits.order_by("-seq").first()
    others = [] if run.backend else [one for one in backends.seen(0) if one.name != "manual"]
    return {
        **found,
        "pieces": prompts.pieces(found.get("prompt", ""), found.get("items")),
        "seq": asked.seq if asked else None,
        "reason": _reason(run, asked) if asked and found.get("kind") == "approval" else "",
        "question": _question(run, found) if found.get("kind") == "question" else "",
        "action": words.action(found),
        "given": given,
        "backends": others,
        "no_backend": bool(others) and all(one.works is False for one in others if one.name != "recorded"),
        "did": CONTROL_WORDS[given.kind] if given else "",
        "refused": refused,
        "arguments": _arguments(run, found.get("args")),
    }


def _question(run: Run, found: dict[str, Any]) -> str:
    text = record_parts.opened(found.get("text"), DatabaseLedgers().reader(run.key).blobs)
    return reveal(text if isinstance(text, str) else f"{text.get('head', '')} [the rest was not sent]")


def _arguments(run: Run, args: Any) -> str:
    """All that an approval is for, long texts too; where that is more than a page shows, it says so."""
    if not args:
        return ""
    whole = record_parts.opened(args, DatabaseLedgers().reader(run.key).blobs)
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    more = len(text) - MOST_SHOWN
    return (
        text
        if more <= 0
        else f"{text[:MOST_SHOWN]}\n... and {more:,} more characters, which are not shown here"
    )


def _reason(run: Run, asked: RunRecord) -> str:
    return record_parts.reason_of(decode(bytes(asked.line)), DatabaseLedgers().reader(run.key).blobs)


def tasks(run: Run, names: list[str]) -> list[dict[str, Any]]:
    """The graph's twin: each task with its state, how often it was entered, where it went on."""
    summary = run.summary or {}
    nodes = summary.get("nodes") or {}
    edges: dict[str, list[str]] = {}
    for source, signal, target, count, slips in live(run)["edges"]:
        after = f", {slips} after a step failed and went on" if slips else ""
        edges.setdefault(source, []).append(f"{signal} to {target} {count}×{after}")
    order = names + [name for name in nodes if name not in names]
    shown = live(run)["nodes"]
    return [
        {
            "name": name,
            "state": {"done": "succeeded"}.get(shown.get(name, [""])[0], shown.get(name, [""])[0]),
            **dict(
                zip(
                    ("visits", "tokens", "cost", "passed_over"),
                    projection.spent(nodes.get(name) or {}),
                    strict=True,
                )
            ),
            "routes": edges.get(name, []),
        }
        for name in order
    ]


def repair(run: Run) -> dict[str, Any]:
    """How the newest search for a patch ended: its counts, the patch with its verdicts, or the refusal. Empty
    where the run had none, or where the records of an imported run have another form."""
    if not _NAMED.search(spec_text(run)):  # a task of that name needs no look at all records
        return {}
    rows = RunRecord.objects.filter(run=run, kind=Kind.PLAN).order_by("-seq")[:PLANS]
    plans = [decode(bytes(row.line)) for row in reversed(rows)]
    try:
        found = repairs.ended(plans, DatabaseLedgers().reader(run.key).blobs)
        refusal = found.get("refusal") or {}
        question = refusal.get("question") or {}
        return found and {
            "counts": reveal(repairs.counts(found)),
            "by": reveal(found.get("by", "")),
            "model": _refused_model(found),
            "patch": _lines(repairs.shown(found.get("patch") or refusal.get("patch") or "")),
            "checks": [
                {"ok": check["ok"] is True, "name": reveal(check["name"]), "detail": reveal(check["detail"])}
                for check in found.get("checks", ())
            ],
            "refusal": {name: reveal(refusal[name]) for name in ("code", "message", "hint") if refusal},
            "suspects": [
                _suspect(run, *place.rsplit(":", 1)) for place in refusal.get("suspects", ())[:SUSPECTS]
            ],
            "question": question and {"call": reveal(question["call"]), "path": reveal(question["path"])},
            "answerable": answers.question(question) is not None,
            "answers": [
                (reveal(answer["answer"]), int(answer["patches"]), _lines(repairs.changed(answer["patch"])))
                for answer in question.get("answers", ())
            ],
        }
    except (UserError, AttributeError, KeyError, TypeError, ValueError):
        return {}


def _refused_model(found: Mapping[str, Any]) -> dict[str, Any]:
    """Why the candidate of a model was refused, with its patch; empty where none was."""
    model = found.get("model")
    if not model:
        return {}
    shown = {name: reveal(model[name]) for name in ("name", "code", "message")}
    return {**shown, "patch": _lines(repairs.shown(model.get("patch", "")))}


_NAMED = re.compile(rf"\bPROPOSER\s+{repairs.PROPOSER}\b", re.IGNORECASE)


def _suspect(run: Run, path: str, line: str) -> dict[str, str]:
    """A suspected line with its text, as the files of the run have it; without it where it is not shown."""
    text = ""
    try:
        opened = workspace.opened_file(run, path) or {}
        lines = opened.get("text", "").split("\n")
        text = lines[int(line) - 1] if 0 < int(line) <= len(lines) else ""
    except (UserError, OSError, ValueError):
        pass  # the place is known without it
    return {"path": path, "place": reveal(f"{path}:{line}"), "text": reveal(text[:LONGEST])}


def _lines(patch: list[str]) -> list[tuple[str, str]]:
    """Lines of a patch, each with how it is drawn."""
    kinds = {"+": "added", "-": "removed", "@": "gap", "+++": "gap", "---": "gap"}
    return [(kinds.get(line[:3]) or kinds.get(line[:1], "same"), reveal(line)) for line in patch if line]


def records_page(run: Run, wanted: RecordFilter) -> dict[str, Any]:
    """One page of records, newest first, and the cursor of the next."""
    rows = list(wanted.apply(run).values_list("seq", "line")[: PAGE + 1])
    shown = []
    for seq, line in rows[:PAGE]:
        record = decode(bytes(line))
        shown.append({"seq": seq, "record": record, "said": words.sentence(record)})
    return {
        "rows": shown,
        "filter": wanted,
        "next": rows[PAGE - 1][0] if len(rows) > PAGE else None,
        "kinds": _KINDS,
    }


_KINDS = (
    "permit",
    "act",
    "route",
    "plan",
    "select",
    "observe",
    "approval",
    "inject",
    "context",
    "control",
    "extend",
    "end",
)


def rights(user: Any, run: Run) -> dict[str, bool]:
    """What the person may do with a run."""
    steered = not run.only_shown
    return {
        "may_label": access.can(user, "run.control", run),
        "may_delete": run.deletable and access.can(user, "run.delete", run),
        "may_answer": (steered or bool(run.agent)) and access.can(user, "run.answer", run),
        "may_control": steered and access.can(user, "run.control", run),
        "may_approve": (steered or bool(run.agent)) and access.can(user, "run.approve", run),
        "may_draft": bool(run.agent) and access.can(user, "spec.edit", run.team),
        "may_take_back": session.goes_on(run) and bool(run.agent) and access.can(user, "run.control", run),
        "may_start": steered and access.can(user, "run.start", run),
    }


def checked_key(run: Run) -> str:
    """Of what the last check of the ledger found, for as long as no record came after it."""
    return f"run-checked:{run.pk}:{run.head}"


def address(run: Run) -> str:
    """The address of a run's page."""
    return reverse("spak-run", kwargs={"team": run.team.slug, "run": run.key})
