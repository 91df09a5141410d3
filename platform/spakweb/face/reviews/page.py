"""What the page of a patch shows: `context(user, patch)` for all of it, `status(user, patch)` for the part
that is asked for again while people and checks go on. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Max, Q
from django.http import Http404

from spakweb.face.reviews import folding
from spakweb.ground import access
from spakweb.store.reviews.models import Check, Patch, Revision, Verdict, Viewed
from spakweb.store.runs.models import Run
from spakweb.work.reviews import checks, merge_queue, rules, spending, talk
from spakweb.work.reviews.parts import (
    Part,
    Tasks,
    digest_of,
    edits_of,
    loosened_by,
    of_path,
    parts_of,
    paths_of,
)
from spakweb.work.reviews.protection import unprotected_imports
from spakweb.work.reviews.reading import Reading, draw, read
from spakweb.work.specs import show
from spakweb.work.specs.actions import draft_of

LOOKS = {
    Check.State.QUEUED: ("queued", "Queued"),
    Check.State.RUNNING: ("running", "Running"),
    Check.State.PASSED: ("succeeded", "Passed"),
    Check.State.LOOK: ("waiting", "Look"),
    Check.State.FAILED: ("failed", "Failed"),
    Check.State.NOTHING: ("cancelled", "Nothing known"),
}
"""Pill and word of a check by its state; one that passed as far as it is known is PARTLY."""
PARTLY = ("cancelled", "Partly known")
ACTIONS = 20
"""Newly permitted or denied actions that the page shows with their proofs."""
FLIPPED, CALM, FLIPS_OF, RUNS_OF = 20, 60, 3, 5
"""Tasks that flip and tasks that do not; ways in which one task flips, and runs of one way."""
LOOSENED = 30
"""Changes that loosen the spec, which the page shows first."""
DRAWN = 60
"""Tasks whose graph is part of the page; a larger one is fetched when it comes into view."""
THREADS = 100
"""Threads of comments that the page shows, the newest."""
MOST_ROWS, MOST_CHARS = 600, 150_000
"""Rows of the text that the page shows at once, and their characters."""
VERDICTS, REVISIONS = 50, 100
"""Verdicts and revisions that the page lists, the newest."""


def status(user: Any, patch: Patch) -> dict[str, Any]:
    """Verdicts, checks, what is missing: what changes while the page is open."""
    latest, opened = patch.latest, patch.state == Patch.State.OPEN
    rows = list(latest.checks.all())
    required = set(rules.required(patch.spec))
    shown = [
        {
            "name": one.name,
            "title": rules.CHECKS.get(one.name, "The campaign's gate"),
            "pill": pill,
            "word": word,
            "row": one,
            "required": one.name in required,
            "stale": opened and rules.is_stale(patch.spec, one),
        }
        for one in rows
        for pill, word in (_looks(one),)
    ]
    query = Verdict.standing().filter(revision__patch=patch).select_related("revision", "user")
    verdicts = list(query.defer("revision__text").order_by("-revision__number", "-pk")[: VERDICTS + 1])
    entry = merge_queue.entry_of(patch) if opened else None
    missing = rules.missing(patch) if opened else []
    queue = opened and patch.spec.review_rules.merge_queue
    return {
        "entry": entry,
        "place": merge_queue.place(entry) if entry else 0,
        "queue_refused": merge_queue.refused(patch) if opened and not entry else None,
        "queue": queue,
        "may_go": not (rules.before_queue(patch) if queue else missing),
        "own_draft": draft_of(user, patch.spec, patch.number).first(),
        "patch": patch,
        "spec": patch.spec,
        "team": patch.spec.team,
        "revision": latest,
        "opened": opened,
        "approvals": rules.standing_approvals(patch),
        "missing": missing,
        "said": _talk_stamp(patch),
        "verdicts": verdicts[:VERDICTS],
        "more_verdicts": len(verdicts) > VERDICTS,
        "checks": shown,
        "busy": opened
        and (entry is not None or any(one.ended_at is None and not checks.is_lost(one) for one in rows)),
        "again": opened
        and (not rows or any(item["stale"] for item in shown) or any(map(checks.is_lost, rows))),
        "moved": opened and latest.base_id != patch.spec.head_id,
        "may_review": access.can(user, "spec.review", patch),
        "may_edit": access.can(user, "spec.propose", patch) and not patch.spec.archived_at,
        "may_merge": access.can(user, "spec.merge", patch) and not patch.spec.archived_at,
        "wrote": user.pk in rules.authors(patch),
    }


def _looks(check: Check) -> tuple[str, str]:
    """Pill and word of a check: green where nothing is unknown."""
    known = check.result
    unknown = known.get("unknown_count", 0) or known.get("ended", {}).get("unknown", 0)
    return PARTLY if check.state == Check.State.PASSED and unknown else LOOKS[Check.State(check.state)]


def context(
    user: Any, patch: Patch, unified: bool = False, since: int = 0, said: int = 0, first: int = 0
) -> dict[str, Any]:
    """All of it; `since` compares the text with that revision and not with the base, `said` shows the
    comments before the one with that key and not the newest, `first` is how many rows of the text to skip."""
    found = status(user, patch)
    latest: Revision = found["revision"]
    reading, edit_count, parts = _parts(user, patch)
    begun = patch.comments.filter(parent=None)
    threads = _threads(patch, latest, parts, Tasks(reading.new_tasks), said)
    older = threads[0].pk if threads and begun.filter(pk__lt=threads[0].pk).exists() else 0
    earlier = patch.revisions.filter(number=since).first() if since else None
    old = earlier.text if earlier else latest.base.text
    results = {one["name"]: one["row"].result for one in found["checks"]}
    tried = _campaign(patch, latest)
    loosened = loosened_by(reading)
    replay, evidence, of = results.get("replay", {}), tried["campaign"], tried["campaign_revision"]
    return found | {
        "reading": reading,
        "difference": reading.difference,
        "loosened": loosened[:LOOSENED],
        "loosened_count": len(loosened),
        "loosened_digest": digest_of(loosened),
        "pills": list(dict.fromkeys(one["pill"] for one in loosened)),
        "own": Verdict.standing().filter(revision__patch=patch, user=user).select_related("revision").last(),
        "parts": parts,
        "part_window": folding.fold(parts),
        "open_imports": unprotected_imports(patch.spec, latest.text) if found["opened"] else [],
        "viewed_count": sum(part.viewed for part in parts),
        "edit_count": edit_count,
        "svg": draw(reading.graph) if len(reading.graph.nodes) <= DRAWN else None,
        "graph_later": len(reading.graph.nodes) > DRAWN,
        "nodes": folding.take(_nodes(reading), 0),
        "counts": _counts(reading),
        "breaking": folding.take(_breaking(reading), 0),
        **_window(rows(old, latest.text, unified, threads), first),
        "unified": unified,
        "since": earlier,
        "revisions": _listed(patch),
        "older_revisions": max(0, latest.number - REVISIONS),
        "threads": threads,
        "open_threads": begun.filter(resolved_at=None).count(),
        "older": older,
        "newer": bool(threads) and begun.filter(pk__gt=threads[-1].pk).exists(),
        "actions": _actions(results.get("actions", {})),
        "replay": replay,
        "flips": _flips(replay),
        "spending": spending.shown(patch, latest, replay, evidence, of),
        "text_errors": results.get("text", {}).get("errors", []),
        **tried,
    }


def more(user: Any, patch: Patch, kind: str, name: str, first: int) -> dict[str, Any]:
    """The next of what the page folds: `parts`, `nodes`, `breaking`, or a list of the part of that name.

    Raises: Http404.
    """
    reading, edit_count, parts = _parts(user, patch)
    latest = patch.latest
    found = {
        "kind": kind,
        "patch": patch,
        "spec": patch.spec,
        "team": patch.spec.team,
        "revision": latest,
        "reading": reading,
        "edit_count": edit_count,
        "opened": patch.state == Patch.State.OPEN,
        "may_edit": access.can(user, "spec.propose", patch) and not patch.spec.archived_at,
    }
    if kind == "parts":
        _threads(patch, latest, parts, Tasks(reading.new_tasks), 0)
        return found | {"part_window": folding.fold(parts, first)}
    if kind in ("nodes", "breaking"):
        return found | {kind: folding.take((_nodes if kind == "nodes" else _breaking)(reading), first)}
    part = next((one for one in parts if one.name == name), None)
    if part is None or kind not in folding.LISTS:
        raise Http404
    part.windows = {kind: folding.take(getattr(part, kind), first)}
    return found | {"part": part}


def _parts(user: Any, patch: Patch) -> tuple[Reading, int, list[Part]]:
    """The newest revision as it is read, the number of its edits, and its parts, with what the person has
    viewed."""
    latest: Revision = patch.latest
    reading = read(patch.spec, latest.base.text, latest.text)
    edits = edits_of(latest.base.text, latest.text)
    parts = parts_of(reading, edits)
    seen = dict(Viewed.objects.filter(patch=patch, user=user).values_list("part", "digest"))
    for part in parts:
        part.viewed = seen.get(part.name) == part.digest
    return reading, len(edits), parts


def _nodes(reading: Reading) -> list[Any]:
    return [one for one in reading.graph.nodes if one.change != "same"]


def _breaking(reading: Reading) -> list[Any]:
    return [item for item in reading.difference.flags if item.flag == "breaking"]


def _counts(reading: Any) -> list[tuple[str, int]]:
    words = {"added": 0, "removed": 0, "changed": 0, "moved": 0}
    for node in reading.graph.nodes:
        if node.change in words:
            words[node.change] += 1
    words["moved"] = sum(change.op == "move" for change in reading.difference.changes)
    return [(word, count) for word, count in words.items() if count]


def _campaign(patch: Patch, latest: Revision) -> dict[str, Any]:
    """A campaign's evidence, and the revision that it is about where that is not the newest."""
    rows = Check.objects.filter(revision__patch=patch, name="campaign").select_related("revision")
    row = rows.order_by("-pk").first() if patch.campaign else None
    if row is None:
        return {"campaign": {}, "campaign_revision": 0}
    old = row.revision.number if row.revision_id != latest.pk else 0
    runs = Run.objects.filter(team=patch.spec.team, deleted_at=None, key__in=row.result.get("records", {}))
    return {
        "campaign": row.result,
        "campaign_revision": old,
        "found_in": set(runs.values_list("key", flat=True)),
    }


def _actions(result: dict[str, Any]) -> dict[str, Any]:
    if not result:
        return {}
    return {**result, "permitted": result["permitted"][:ACTIONS], "denied": result["denied"][:ACTIONS]}


def _flips(replay: dict[str, Any]) -> dict[str, Any]:
    """Tasks whose outcome differs in some run, as rows of a table, and those without; empty where there is
    nothing, as in results of before."""
    rows = replay.get("by_task", [])
    flipped = [_flipped(row) for row in rows if row["flips"]]
    calm = [{**row, "runs": row["same"] + row["unknown"]} for row in rows if not row["flips"]]
    if not any(one["same"] or one["flips"] or one["unknown"] for one in rows):
        return {}
    left = replay["tasks"] - min(len(flipped), FLIPPED) - min(len(calm), CALM)
    return {"rows": flipped[:FLIPPED], "calm": calm[:CALM], "more": left}


def _flipped(row: dict[str, Any]) -> dict[str, Any]:
    ways = [
        {
            "before": _outcome(*way["before"]),
            "after": "not there" if row["change"] == "removed" else _outcome(*way["after"]),
            "count": way["count"],
            "runs": way["runs"][:RUNS_OF],
            "more": way["count"] - min(len(way["runs"]), RUNS_OF),
        }
        for way in row["ways"][:FLIPS_OF]
    ]
    return {
        **row,
        "ways": ways,
        "runs": row["same"] + row["flips"] + row["unknown"],
        "otherwise": row["flips"] - sum(way["count"] for way in ways),
    }


def _outcome(signal: str, to: str, code: str) -> str:
    """How a task was left, in words."""
    if not (signal or to or code):
        return "never entered"
    went = f"{signal or 'stopped'} to {to}" if to else signal or "stopped"
    return f"{went}, the run ended: {code}" if code else went if to else f"{went}, the end"


def _talk_stamp(patch: Patch) -> str:
    """A text that changes with each verdict or comment, and when a thread is resolved or opened again."""
    done = Count("pk", filter=Q(resolved_at__isnull=False))
    found = patch.comments.aggregate(newest=Max("pk"), last=Max("resolved_at"), done=done)
    return f"{found['newest'] or 0} {found['done']} {found['last'].timestamp() if found['last'] else 0}"


def _threads(patch: Patch, latest: Revision, parts: list[Part], tasks: Tasks, said: int) -> list[Any]:
    """The newest comments that begin a thread, or those before `said`, with their answers; those about a part
    or a line of the newest text are placed there as well."""
    rows = patch.comments.select_related("author", "revision").defer("revision__text")
    begun = rows.filter(parent=None, pk__lt=said) if said else rows.filter(parent=None)
    paths, found = paths_of(parts), []
    by_part = {part.name: part for part in parts}
    threads = list(begun.order_by("-pk")[:THREADS])[::-1]
    replies: dict[int, list[Any]] = {one.pk: [] for one in threads}
    for answer in rows.filter(parent__in=replies):
        replies[answer.parent_id].append(answer)
    for one in threads:
        one.replies = replies[one.pk]
        one.outdated = talk.outdated(one, latest, paths)
        one.now = 0 if one.outdated or not one.line else _line_now(one, latest)
        found.append(one)
        name = tasks.at(one.now) if one.now else of_path(one.path)
        if not one.outdated and (one.now or one.path) and name in by_part:
            by_part[name].comments.append(one)
    return found


def _line_now(comment: Any, latest: Revision) -> int:
    lines = latest.text.split("\n")
    if comment.revision_id == latest.pk:
        return int(comment.line)
    places = [n for n, line in enumerate(lines, 1) if line[:400] == comment.quote]
    return min(places, key=lambda n: abs(n - comment.line)) if places else 0


def rows(old: str, new: str, unified: bool, threads: Iterable[Any]) -> list[dict[str, Any]]:
    """Lines of the text, side by side or as one column, with the comments under each."""
    at: dict[int, list[Any]] = {}
    for one in threads:
        if one.now:
            at.setdefault(one.now, []).append(one)
    found: list[dict[str, Any]] = []
    for row in show.side_by_side(old, new):
        comments = at.get(row.right_number, []) if row.right_number else []
        if unified and row.kind == "changed":
            found.append({"kind": "removed", "row": row, "side": "left", "comments": []})
            found.append({"kind": "added", "row": row, "side": "right", "comments": comments})
        else:
            found.append({"kind": row.kind, "row": row, "side": "", "comments": comments})
    return _together(found) if unified else found


def _window(found: list[dict[str, Any]], first: int) -> dict[str, Any]:
    """Rows of the text from one on, and where those before and after them begin."""
    first = first if first < len(found) else 0
    end, chars = first, 0
    while end < min(len(found), first + MOST_ROWS) and chars < MOST_CHARS:
        row = found[end]["row"]
        chars += len(row.left or "") + len(row.right or "") if found[end]["kind"] != "gap" else 0
        end += 1
    return {
        "rows": found[first:end],
        "rows_before": first,
        "rows_after": len(found) - end,
        "first_before": max(0, first - MOST_ROWS),
        "first_after": end,
    }


def _listed(patch: Patch) -> list[Revision]:
    found = patch.revisions.select_related("author", "base").defer("text", "base__text")
    return list(found[:REVISIONS])


def _together(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In a unified text the removed lines of a stretch come before the added ones."""
    out: list[dict[str, Any]] = []
    removed: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    for item in [*found, {"kind": "end", "row": None, "comments": []}]:
        if item["kind"] == "removed":
            removed.append(item)
        elif item["kind"] == "added":
            added.append(item)
        else:
            out += [*removed, *added]
            removed, added = [], []
            if item["kind"] != "end":
                out.append(item)
    return out
