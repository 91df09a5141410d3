"""What a team sees of its runs at a glance: what needs somebody, what runs, how well each spec does.

Takes a team; gives figures for the home page, and of a spec version by version (dashboards_page). A rate
comes with its Wilson interval and its count; what is not measured is None, and pages say "not available".
Targets are those of the design. A baseline is one of the versions: nothing else was measured alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from html import escape
from math import sqrt
from statistics import median
from typing import Any

from django.db.models import Case, Func, JSONField, QuerySet, When
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from spak.runner.views import quality
from spakweb.face.runs import times
from spakweb.face.runs.filters import with_label
from spakweb.face.runs.list_rows import filled
from spakweb.ground.teams.models import Team
from spakweb.ground.text import plural
from spakweb.store.ledger.projection import COUNTED, tokens_used
from spakweb.store.runs.models import ENDED, Run, State
from spakweb.store.specs.models import Spec

DAYS = 14
MOST = 5_000
"""Ended runs that are counted, the newest."""
SHOWN = 8
CONSISTENCY, SELF_CORRECTION, EFFICIENCY = 0.99, 0.80, 0.50
"""Targets of seed 000 section 6: more than 99 %, more than 80 %, less than half of a baseline's tokens."""
REASONS = 5
SUMMED = ("count", "succeeded", "unchecked", "tokens", *COUNTED)


def wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float] | None:
    """The 95 % interval of a rate; None of nothing."""
    if count <= 0:
        return None
    rate = hits / count
    middle = rate + z * z / (2 * count)
    spread = z * sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    below = 1 + z * z / count
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


@dataclass(slots=True)
class Health:
    """Of the ended runs of one spec, or of one version of it, in the last days."""

    slug: str
    name: str
    version: int | None = None
    span: int = DAYS
    count: int = 0
    succeeded: int = 0
    unchecked: int = 0
    """Runs that ended well by their own account, which nothing checked: neither success nor failure."""
    failures: int = 0
    healed: int = 0
    guided: int = 0
    """Those of the healed after which a heuristic was injected."""
    permitted: int = 0
    denied: int = 0
    axioms: int = 0
    held: int = 0
    """Those of the axioms checked in artifacts that held."""
    scored: int = 0
    micronats: int = 0
    tokens: int = 0
    cost: int = 0
    answers: int = 0
    priced: int = 0
    durations: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    days: dict[date, list[int]] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """The share of runs that succeeded, from 0 to 1; None without any."""
        return self.succeeded / self.judged if self.judged else None

    @property
    def judged(self) -> int:
        """Runs of which something says whether they succeeded."""
        return self.count - self.unchecked

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the rate."""
        return wilson(self.succeeded, self.judged)

    @property
    def correction(self) -> float | None:
        """The share of failures that a later try mended."""
        return self.healed / self.failures if self.failures else None

    @property
    def consistency(self) -> float | None:
        """The share of checked axioms that held in the artifacts."""
        return quality.share(self.held, self.axioms)

    @property
    def permission(self) -> float | None:
        """The share of proposed actions that the policy permitted."""
        return quality.share(self.permitted, self.permitted + self.denied)

    @property
    def perplexity(self) -> float | None:
        """The perplexity of the answers whose log-probabilities are known."""
        return quality.perplexity(self.micronats, self.scored)

    @property
    def tokens_each(self) -> int | None:
        """Tokens per success."""
        return round(self.tokens / self.succeeded) if self.tokens and self.succeeded else None

    @property
    def cost_each(self) -> int | None:
        """None where an answer has no price: a part would look like all. What costs nothing is 0."""
        known = self.priced and self.priced == self.answers
        return round(self.cost / self.succeeded) if known and self.succeeded else None

    @property
    def took(self) -> float | None:
        """The median working time in milliseconds."""
        return median(self.durations) if self.durations else None

    @property
    def why(self) -> list[tuple[str, int]]:
        """The commonest reasons why runs did not succeed, with their numbers."""
        return self.reasons.most_common(REASONS)

    def against(self, baseline: Health | None) -> float | None:
        """Tokens for each success as a share of the baseline's; None of itself and of the unmeasured."""
        if baseline is None or baseline is self or not self.tokens_each or not baseline.tokens_each:
            return None
        return self.tokens_each / baseline.tokens_each

    @property
    def meets(self) -> dict[str, bool | None]:
        """Whether the targets are met; None where nothing is measured."""
        return {
            "consistency": None if self.consistency is None else self.consistency > CONSISTENCY,
            "correction": None if self.correction is None else self.correction > SELF_CORRECTION,
        }

    @property
    def trend(self) -> SafeString:
        """A column for each day: how many runs, and how many of them succeeded."""
        return columns(self.days, self.span)


def health(team: Team, days: int = DAYS) -> list[Health]:
    """Each spec that had runs which ended in the last days, most runs first."""
    found: dict[str, Health] = {}
    for row in _ended(team, days).values(*_READ, figures=Figures("summary"))[:MOST]:
        slug = row["version__spec__slug"] or ""
        name = row["version__spec__name"] or row["name"]
        _count(found.setdefault(slug or f" {name}", Health(slug, name, span=days)), row)
    return sorted(found.values(), key=lambda one: (-one.count, one.name))


def versions(spec: Spec, days: int = DAYS, label: str = "", mode: str = "") -> list[Health]:
    """Each version of a spec that had such runs, the newest first."""
    rows = _ended(spec.team, days).filter(version__spec=spec)
    if mode:
        rows = rows.filter(mode=mode)
    if label:
        rows = with_label(rows, label)
    found: dict[int, Health] = {}
    for row in rows.values(*_READ, "version__number", figures=Figures("summary"))[:MOST]:
        number = row["version__number"]
        _count(found.setdefault(number, Health(spec.slug, spec.name, number, days)), row)
    return [found[number] for number in sorted(found, reverse=True)]


def newest_of(found: Iterable[Health]) -> int:
    """How many runs were counted when there may have been more; else 0."""
    count = sum(one.count for one in found)
    return count if count >= MOST else 0


def baseline_of(found: list[Health], number: int | None = None) -> Health | None:
    """The version that was asked for, else the oldest whose tokens for a success are known."""
    known = [one for one in found if one.tokens_each]
    return next((one for one in known if one.version == number), known[-1] if known else None)


_FIGURES = (*COUNTED, "tokens", "taken", "checks", "elapsed_ms")
_READ = ("version__spec__slug", "version__spec__name", "name", "state", "reason", "ended_at")


class Figures(Func):
    """What is counted of the summary, as a list: its JSON is read once for each run and not once for each
    figure."""

    output_field = JSONField()

    def as_sql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        column, params = compiler.compile(self.get_source_expressions()[0])
        paths = ", ".join(f"'$.{name}'" for name in _FIGURES)
        return f"JSON_EXTRACT({column}, {paths})", params

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        column, params = compiler.compile(self.get_source_expressions()[0])
        names = ", ".join(f"read.{name}" for name in _FIGURES)
        types = ", ".join(f"{name} jsonb" for name in _FIGURES)
        found = f"SELECT jsonb_build_array({names}) FROM jsonb_to_record({column}) AS read({types})"
        return f"({found})", params


def _ended(team: Team, days: int) -> QuerySet[Run]:
    since = timezone.now() - timedelta(days=days)
    rows = Run.objects.filter(team=team, state__in=ENDED, ended_at__gte=since, deleted_at=None, trial="")
    return rows.exclude(state=State.CANCELLED).order_by("-pk")


def _count(one: Health, row: dict[str, Any]) -> None:
    """Add a run; what a fork took over was counted with the run that it happened in."""
    good = row["state"] == State.SUCCEEDED
    figures = dict(zip(_FIGURES, row["figures"], strict=True))
    taken = figures["taken"] or {}
    one.count += 1
    if good and figures["checks"] == 0:
        one.unchecked += 1
        good = False
    one.succeeded += good
    for name in COUNTED:
        setattr(one, name, getattr(one, name) + (figures[name] or 0) - taken.get(name, 0))
    one.tokens += tokens_used(figures) - tokens_used(taken)
    if figures["elapsed_ms"] is not None:
        one.durations.append(figures["elapsed_ms"])
    if row["state"] != State.SUCCEEDED:
        one.reasons[row["reason"].split(":")[0].split(",")[0] or str(row["state"])] += 1
    if row["state"] == State.SUCCEEDED and not good:
        return
    day = one.days.setdefault(row["ended_at"].date(), [0, 0])
    day[0] += 1
    day[1] += good


def columns(days: dict[date, list[int]], span: int = DAYS, wide: int = 112, high: int = 26) -> SafeString:
    """The last days as columns; the whole height is the busiest day."""
    today = timezone.now().date()
    shown = {day: counts for day, counts in days.items() if 0 <= (today - day).days < span}
    most = max([count for count, _ in shown.values()] + [1])
    step = wide / span
    parts = [f'<rect class="ground" width="{wide}" height="{high}"/>']
    for day, (count, good) in sorted(shown.items()):
        x, broad = (span - 1 - (today - day).days) * step, max(step * 0.82, 1)
        tall, of_good = (high - 2) * count / most, (high - 2) * good / most
        label = f"{day.isoformat()}: {good} of {count} succeeded"
        parts.append(
            f"<g><title>{escape(label)}</title>"
            f'<rect class="bad" x="{x:.1f}" y="{high - tall:.1f}" width="{broad:.1f}" '
            f'height="{tall - of_good:.1f}"/>'
            f'<rect class="good" x="{x:.1f}" y="{high - of_good:.1f}" width="{broad:.1f}" '
            f'height="{of_good:.1f}"/></g>'
        )
    count, good = (sum(counts[place] for counts in shown.values()) for place in (0, 1))
    label = f"{good} of {count} runs succeeded in the last {span} days"
    return mark_safe(
        f'<svg class="trend" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def home(team: Team) -> dict[str, Any]:
    """The home page's parts that are about runs."""
    rows = Run.objects.filter(team=team, deleted_at=None, trial="").order_by("-pk")
    moving = rows.filter(state__in=(State.RUNNING, State.PAUSED, State.QUEUED)).order_by(
        Case(When(state=State.RUNNING, then=0), When(state=State.PAUSED, then=1), default=2), "enqueued_at"
    )
    return {
        "waits": rows.filter(state=State.WAITING)[:SHOWN],
        "went_wrong": went_wrong(rows),
        "moving": filled(team, moving[:SHOWN]),
        "moving_more": max(0, moving.count() - SHOWN),
        "run_count": rows.count(),
    }


def went_wrong(rows: QuerySet[Run]) -> list[tuple[Run, int]]:
    """The newest run of each name and reason that failed in the last day, with how many were alike; none of
    which a retry or another fork has succeeded since."""
    day = timezone.now() - timedelta(days=1)
    found: dict[tuple[str, str], tuple[Run, int]] = {}
    failed = rows.filter(state__in=(State.FAILED, State.REFUSED), ended_at__gte=day)
    failed = failed.exclude(forks__state=State.SUCCEEDED)
    for run in failed.only("key", "name", "state", "reason", "ended_at", "agent")[:MOST]:
        newest, count = found.get((run.name, run.reason), (run, 0))
        found[run.name, run.reason] = newest, count + 1
    return list(found.values())[:SHOWN]


USUAL_OF = 20
"""The newest runs that succeeded, of which the usual time is the median."""


def usual_time(spec: Spec) -> dict[str, Any] | None:
    """The working time (`times`) of runs of a spec, in ms; None where none succeeded yet."""
    ended = Run.objects.filter(
        version__spec=spec, state=State.SUCCEEDED, deleted_at=None, parent=None, trial=""
    )
    found = [times.working(run) for run in ended.order_by("-pk").only("summary")[:USUAL_OF]]
    return {"time": median(found), "count": len(found)} if found else None


def metrics(found: Iterable[Health], baseline: Health | None = None) -> list[dict[str, Any]]:
    """The success metrics of the design over these together, each with its target."""
    total = _together(found)
    meets, share = total.meets, total.against(baseline)
    comparison = "; a baseline is another version of the same spec."
    if baseline is not None:
        comparison = f", against {baseline.tokens_each:,} of the baseline v{baseline.version}."
    healed = f", {total.healed:,} recovered, {total.guided:,} with a heuristic" if total.failures else ""
    return [
        {
            "name": "Consistency",
            "text": "Checked axioms that held in the artifacts.",
            "value": total.consistency,
            "figure": None,
            "count": plural(total.axioms, "axiom check") if total.axioms else "",
            "target": "over 99 %",
            "met": meets["consistency"],
        },
        {
            "name": "Permitted",
            "text": "Proposed actions that the policy permitted.",
            "value": total.permission,
            "figure": None,
            "count": plural(total.permitted + total.denied, "action"),
            "target": "none",
            "met": None,
        },
        {
            "name": "Self-correction",
            "text": "Task failures that the run recovered from without a person.",
            "value": total.correction,
            "figure": None,
            "count": plural(total.failures, "failure") + healed,
            "target": "over 80 %",
            "met": meets["correction"],
        },
        {
            "name": "Efficiency",
            "text": f"Tokens per run that succeeded{comparison}",
            "value": share,
            "figure": total.tokens_each,
            "count": f"{plural(total.count, 'run')}, {total.succeeded:,} succeeded",
            "target": "under 50 % of a baseline",
            "met": None if share is None else share < EFFICIENCY,
        },
        {
            "name": "Perplexity",
            "text": "Perplexity of generated text, for engines that report log-probabilities.",
            "figure": None,
            "words": "not reported" if total.perplexity is None else f"{total.perplexity:.3g}",
            "count": plural(total.scored, "token") if total.scored else "",
            "target": "low",
            "met": None,
        },
    ]


def _together(found: Iterable[Health]) -> Health:
    total = Health("", "all")
    for one in found:
        for name in SUMMED:
            setattr(total, name, getattr(total, name) + getattr(one, name))
    return total
