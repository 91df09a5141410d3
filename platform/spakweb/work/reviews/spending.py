"""What a patch costs against its base: tokens, money and time, from the best evidence that there is.

`shown(...)` gives tables for the page, each with where its figures are from: the paired runs of the campaign
that tried it; else the recorded runs that the replay knows to their end; else what runs of the base used,
with nothing known of the patch. After a merge the runs of the version that it made are added. Reads only.

Source: spak.evolve.experiments.summary, as `spak eval` reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spak.evolve.experiments.summary import FIGURES, paired
from spak.evolve.gate.counterfactual import Rehearsal, Replayed
from spakweb.ground.text import plural
from spakweb.store.ledger.projection import tokens_used
from spakweb.store.reviews.models import Patch, Revision
from spakweb.store.runs import words
from spakweb.store.runs.models import ENDED, Run
from spakweb.store.specs.models import SpecVersion

RUNS = 200
"""Runs of a version that are looked at, the newest."""
NOT_KNOWN, MINUS = "not known", "\N{MINUS SIGN}"
TITLES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "tokens": ("Tokens", lambda value: f"{value:,.0f}"),
    "cost_nanousd": ("Cost", words.money),
    "ms": ("Time", words.took),
}


def of_replay(found: Sequence[tuple[Rehearsal, Replayed]]) -> dict[str, dict[str, Any]]:
    """Each recorded run that is known to its end under the patch, against how it was; one run is one case."""
    whole = [(was, now) for was, now in found if not now.problem and now.ended != "unknown"]
    sides: dict[str, list[tuple[float, float] | None]] = {
        "tokens": [(was.tokens, was.tokens - now.tokens_saved) for was, now in whole],
        "cost_nanousd": [(was.cost_nanousd, was.cost_nanousd - now.cost_saved_nanousd) for was, now in whole],
        "ms": [(was.elapsed_ms, was.elapsed_ms - now.ms_saved) for was, now in whole],
    }
    return {name: paired(values) for name, values in sides.items()}


def shown(
    patch: Patch, revision: Revision, replay: Mapping[str, Any], campaign: Mapping[str, Any], tried: int
) -> list[dict[str, Any]]:
    """Tables of the page: `title`, `about` and `rows` of title, base, patch, difference.

    `campaign` is the evidence of the campaign that tried revision `tried`; 0: the one that is shown.
    """
    found = []
    if (spent := campaign.get("spent")) and spent["tokens"]["cases"]:
        about = "Runs of base and patch on the same cases, files and seeds."
        if tried:
            about += f" They ran revision {tried}, another text than the newest."
        title = f"Pairs of the campaign, {plural(spent['tokens']['cases'], 'case')}"
        found.append({"title": title, "about": about, "rows": _rows(spent)})
    if not found or tried:
        found += _recorded(revision, replay)
    if patch.merged is not None:
        found += _merged(revision.base, patch.merged)
    return found


def _recorded(revision: Revision, replay: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The replay where it knows some run to its end; else what runs of the base used, if there are any."""
    spent = replay.get("spent")
    if spent and spent["tokens"]["cases"]:
        count, every = spent["tokens"]["cases"], replay["runs"]
        title = f"Recorded runs under the patch, {count} of {every}"
        about = (
            "Of these the replay knows every step to the end; of the others nothing is known, "
            "and they may differ more."
        )
        return [{"title": title, "about": about, "rows": _rows(spent)}]
    if not (used := _of_runs(revision.base)):
        return []
    rows = [
        {"title": TITLES[name][0], "base": _mean(used, name), "patch": NOT_KNOWN, "difference": NOT_KNOWN}
        for name in FIGURES
    ]
    title = f"Recorded runs of version {revision.base.number}, {len(used)} of them"
    return [{"title": title, "about": "No run shows what the patch would use.", "rows": rows}]


def _merged(base: SpecVersion, merged: SpecVersion) -> list[dict[str, Any]]:
    """Runs of the version that the merge made, next to those of the base; not paired."""
    if not (after := _of_runs(merged)):
        return []
    before = _of_runs(base)
    rows = [
        {
            "title": TITLES[name][0],
            "base": _mean(before, name),
            "patch": _mean(after, name),
            "difference": NOT_KNOWN,
        }
        for name in FIGURES
    ]
    title = f"Since the merge: {plural(len(after), 'run')} of version {merged.number}"
    about = (
        f"Beside {plural(len(before), 'run')} of version {base.number}. They are no pairs: "
        "inputs and files may differ, so that no difference follows."
    )
    return [{"title": title, "about": about, "rows": rows}]


def _of_runs(version: SpecVersion) -> list[dict[str, int]]:
    """What each of the newest ended runs of a version used."""
    rows = Run.objects.filter(version=version, deleted_at=None, state__in=sorted(ENDED), count__gt=1)
    keys = ("summary__tokens", "summary__cost", "summary__elapsed_ms")  # a summary of many tasks is long
    return [
        {"tokens": tokens_used({"tokens": tokens}), "cost_nanousd": int(cost or 0), "ms": int(ms or 0)}
        for tokens, cost, ms in rows.order_by("-pk").values_list(*keys)[:RUNS]
    ]


def _mean(used: Sequence[Mapping[str, int]], name: str) -> str:
    if not used or (name == "cost_nanousd" and _unpriced(*(_sum(used, one) for one in ("tokens", name)))):
        return NOT_KNOWN
    return TITLES[name][1](_sum(used, name) / len(used))


def _sum(used: Sequence[Mapping[str, int]], name: str) -> int:
    return sum(one[name] for one in used)


def _unpriced(tokens: float, cost: float) -> bool:
    """Whether models answered and no answer has a price: the cost is not known, and not 0."""
    return bool(tokens) and not cost


def _rows(spent: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    return [_row(name, spent[name], spent["tokens"]) for name in FIGURES]


def _row(name: str, found: Mapping[str, Any], tokens: Mapping[str, Any]) -> dict[str, str]:
    title, worded = TITLES[name]
    sides = [found["base"], found["candidate"]]
    if name == "cost_nanousd" and _unpriced(tokens["base"] + tokens["candidate"], sum(sides)):
        return {"title": title, "base": NOT_KNOWN, "patch": NOT_KNOWN, "difference": NOT_KNOWN}

    def signed(value: float) -> str:
        text = worded(abs(value))
        return text if text == worded(0.0) else f"{'+' if value > 0 else MINUS}{text}"

    difference = signed(found["mean"])
    if found["base"] and difference != worded(0.0):
        difference += f" ({100 * found['mean'] / found['base']:+.0f} %)".replace("-", MINUS)
    if found["interval"] is not None:
        low, high = found["interval"]
        difference += f", approximately {signed(low)} to {signed(high)}"
    elif found["cases"] == 1:
        difference += ", no interval from one case"
    return {"title": title, "base": worded(sides[0]), "patch": worded(sides[1]), "difference": difference}
