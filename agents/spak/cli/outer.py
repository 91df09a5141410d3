"""`spak outer`: candidates for a spec, the gate's verdict on one, and campaigns over many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import OuterError, UnavailableError, UsageError

if TYPE_CHECKING:
    from spak.evolve.campaigns import Campaign, Tested
    from spak.evolve.gate import Candidate

FOLDER = "campaigns"
PROPOSERS = ("rules", "model", "evolution")

runs_from = click.option(
    "--runs", type=click.Path(path_type=Path), help="A folder of recorded runs; the runs folder if not given."
)
proposer_option = click.option(
    "--proposer", type=click.Choice(PROPOSERS), default="rules", show_default=True, help="Who proposes."
)
evolve_option = click.option(
    "--evolve-runs",
    type=click.IntRange(min=1, max=100_000),
    default=100,
    show_default=True,
    help="Runs of training cases that --proposer evolution may make.",
)
backend_option = click.option("--backend", default="", help="The model that proposes, for --proposer model.")
suite_option = click.option(
    "--suite", "folder", type=click.Path(path_type=Path), help="The suite whose gate cases judge."
)

STOPPED = {
    "proposals": "the proposer has no more to propose",
    "candidates": "the budget of candidates is used up",
}
"""Why else a campaign stopped, as it is printed; another reason is printed as it is."""
BUDGETS = {"runs": " --budget-runs N", "tokens": " --budget-tokens N", "money": " --budget-usd N"}
"""What more of a budget that was used up is given with."""


@click.group()
def command() -> None:
    """Propose edits of a spec, judge them, run campaigns."""


@command.command("propose")
@click.argument("spec", type=click.Path(path_type=Path))
@runs_from
@suite_option
@proposer_option
@backend_option
@evolve_option
@common.runs_option
@common.json_option
def propose(
    spec: Path,
    runs: Path | None,
    folder: Path | None,
    proposer: str,
    backend: str,
    evolve_runs: int,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Propose candidates for SPEC from recorded runs. Changes nothing."""
    from spak.cli import outer_runs
    from spak.runner.views.report import plural

    base = outer_runs.text_of(spec)
    training = outer_runs.training(runs or common.runs_dir(runs_dir), folder)
    if proposer == "evolution":
        found = outer_runs.evolved(base, spec, folder, common.runs_dir(runs_dir), evolve_runs)
    else:
        found = outer_runs.proposals(proposer, backend, base, training, [])
    if as_json:
        common.emit(
            {
                "spec": str(spec),
                "candidates": [item.to_json() for item in found],
                "withheld": sorted(training.withheld),
            }
        )
        return 0
    for number, item in enumerate(found, 1):
        common.out(f"{number}. {item.rationale}")
        for op in item.to_json()["edits"]:
            common.out(f"   {op}")
    if not found:
        common.say("no finding of a run of this spec has an edit\nnext: spak analyze")
    if training.withheld and folder is None:
        common.say(f"{plural(len(training.withheld), 'run')} of cases withheld: name the suite (--suite DIR)")
    return 0


@command.command("gate")
@click.argument("spec", type=click.Path(path_type=Path))
@click.argument("patch", type=click.Path(path_type=Path))
@runs_from
@suite_option
@click.option(
    "--pairs", type=click.IntRange(min=0), default=100, show_default=True, help="The most fresh pairs."
)
@common.timeout_option
@common.runs_option
@common.json_option
def gate(
    spec: Path,
    patch: Path,
    runs: Path | None,
    folder: Path | None,
    pairs: int,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Judge PATCH: a JSON list of edits, a unified diff of SPEC, or a whole spec.

    Exit 0 fit for review, 1 not, 5 privileged.
    """
    from spak.cli import outer_runs

    base = outer_runs.text_of(spec)
    candidate = _candidate(base, patch)
    root = common.runs_dir(runs_dir)
    plan = outer_runs.planned(spec, base, folder, "person", 1, pairs, 0)
    campaign = outer_runs.begun(root.parent / FOLDER, plan)
    why = outer_runs.carry_out(campaign, root, runs or root, lambda found: [candidate], timeout)
    tested = campaign.tested[0]
    if as_json:
        common.emit({"campaign": campaign.name, **document(campaign, tested)})
    else:
        common.out(f"{tested.verdict or 'open'}: {tested.why}")
    return {"fit": 0, "privileged": 5}.get(tested.verdict, 1 if tested.verdict else _left_open(campaign, why))


def _left_open(campaign: Campaign, why: str) -> int:
    """Say how a campaign goes on that was stopped in the middle; its exit code."""
    common.say(f"next: spak outer campaign --resume {campaign.name}")
    return 6 if why == "interrupted" else UnavailableError.exit_code


@command.command("campaign")
@click.argument("spec", type=click.Path(path_type=Path), required=False)
@runs_from
@suite_option
@proposer_option
@backend_option
@evolve_option
@click.option(
    "--candidates",
    type=click.IntRange(min=1, max=1000),
    default=10,
    show_default=True,
    help="Most candidates to try.",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Most fresh pairs per candidate.",
)
@click.option(
    "--budget-runs", type=click.IntRange(min=0), default=0, help="Most runs in total; 0 is no limit."
)
@click.option("--budget-tokens", type=click.IntRange(min=1), help="Stop when pairs used so many tokens.")
@click.option(
    "--budget-usd", type=click.FloatRange(min=0, min_open=True), help="Stop when pairs cost so much."
)
@click.option(
    "--margin",
    type=click.IntRange(min=0, max=50),
    default=0,
    help="Points by which the pass rate of a candidate that only removes something may be lower.",
)
@click.option("--resume", "named", metavar="CAMPAIGN", help="Resume a campaign that stopped.")
@click.option(
    "--verify", "checked", metavar="CAMPAIGN", help="Derive a campaign's verdicts again; runs nothing."
)
@common.timeout_option
@common.runs_option
@common.json_option
def campaign(
    spec: Path | None,
    runs: Path | None,
    folder: Path | None,
    proposer: str,
    backend: str,
    evolve_runs: int,
    candidates: int,
    pairs: int,
    budget_runs: int,
    budget_tokens: int | None,
    budget_usd: float | None,
    margin: int,
    named: str | None,
    checked: str | None,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Take candidates for SPEC through the gate, one after the other, within a budget."""
    from spak.cli import outer_runs
    from spak.evolve.campaigns import Campaign, verify
    from spak.evolve.experiments import render

    root = common.runs_dir(runs_dir)
    place = root.parent / FOLDER
    if checked is not None:
        found = Campaign.read(place, checked)
        wrong = verify(found, common.catalog())
        if as_json:
            common.emit({"campaign": checked, "ok": not wrong, "problems": wrong, "head": found.head})
        else:
            common.say("\n".join(wrong) or "every verdict follows from the ledger")
        return 1 if wrong else 0
    if named is not None:
        common.fixed_by_plan("spec", "folder", "proposer", "candidates", "pairs", "margin")
        made = Campaign.read(place, named)
        given = {"runs": budget_runs, "tokens": budget_tokens, "cost_nanousd": int((budget_usd or 0.0) * 1e9)}
        made.take_more(place, {name: value for name, value in given.items() if value})
    elif spec is None:
        raise UsageError("usage.arguments", "no SPEC", "spak outer campaign a.spak --suite DIR")
    else:
        plan = outer_runs.planned(
            spec, outer_runs.text_of(spec), folder, proposer, candidates, pairs, budget_runs, margin
        )
        plan = replace(plan, tokens=budget_tokens or 0, cost_nanousd=int((budget_usd or 0.0) * 1e9))
        made = outer_runs.begun(place, plan)
        outer_runs.power(made)
    training = outer_runs.training(runs or root, Path(made.plan.suite) if made.plan.suite else None)

    def proposals(current: Campaign) -> Sequence[Candidate]:
        if current.plan.proposer != "model" and current.tested:
            return []
        if current.plan.proposer == "evolution":
            place = Path(current.plan.suite) if current.plan.suite else None
            return outer_runs.evolved(
                current.plan.base, Path(current.plan.spec), place, root, evolve_runs, timeout
            )
        refused = [f"{item.candidate.rationale}: {item.why}" for item in current.tested]
        return outer_runs.proposals(current.plan.proposer, backend, current.plan.base, training, refused)

    why = outer_runs.carry_out(made, root, runs or root, proposals, timeout, training)
    if as_json:
        common.emit(
            {
                "campaign": made.name,
                "head": made.head,
                "stopped": (made.stopped or why) if why == outer_runs.PAUSED else why,
                "counts": made.counts(),
                "runs": made.runs,
                "budget_left": {
                    "candidates": made.plan.candidates - len(made.tested),
                    "runs": _left(made.plan.runs, made.runs),
                    "tokens": _left(made.plan.tokens, made.tokens),
                    "cost_nanousd": _left(made.plan.cost_nanousd, made.cost_nanousd),
                },
                "withheld": len(training.withheld),
                "violations": made.violations,
                "candidates": [document(made, item) for item in made.tested],
            }
        )
    else:
        counts = ", ".join(f"{count} {word}" for word, count in made.counts().items())
        words = {**STOPPED, **render.SPENT}.get(why, why)
        common.out(f"campaign {made.name}: {counts}; stopped: {words}")
    if why in BUDGETS:
        common.say(f"next: spak outer campaign --resume {made.name}{BUDGETS[why]}")
    if why in ("interrupted", outer_runs.PAUSED):
        return _left_open(made, why)
    return 0 if made.counts().get("fit") else 1


def document(found: Campaign, tested: Tested) -> dict[str, Any]:
    """A candidate with its stages and verdict."""
    betting = found.evidence(tested)[-1]
    return {
        "number": tested.number,
        "candidate": tested.candidate.to_json(),
        "fit": tested.verdict == "fit",
        "verdict": tested.verdict,
        "why": tested.why,
        "privileged": tested.stages.get("privileges", {}).get("evidence", {}).get("changes", []),
        "stages": list(tested.stages.values()),
        "sequential": {
            "e": float(betting.e),
            "peak": float(betting.peak),
            "wins": betting.wins,
            "losses": betting.losses,
            "ties": betting.ties,
        }
        if tested.pairs
        else None,
    }


def _left(most: int, used: int) -> int | None:
    return max(most - used, 0) if most else None


def _candidate(base: str, patch: Path) -> Candidate:
    """The candidate of a file: a JSON list of edits, a candidate, a unified diff, or a whole spec."""
    from spak import canon
    from spak.errors import UserError
    from spak.evolve.gate import Candidate, of_diff

    text = common.read_input(patch).decode("utf-8", "replace")
    if not text.lstrip().startswith(("[", "{")):
        return of_diff(base, text, "person")
    try:
        value = canon.loads(text)
    except UserError as error:
        raise OuterError("outer.candidate", f"{patch}: {error.message}", "a JSON list of edits") from error
    return Candidate.from_json({"edits": value} if isinstance(value, list) else value)
