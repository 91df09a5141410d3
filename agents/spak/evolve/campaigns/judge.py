"""How a campaign goes on: its candidates through the gate, one after the other, within its budget.

    form, privileges   from the texts alone
    counterfactual     recorded runs; one that gets worse ends it, full coverage with a saving can pass it
    golden             cases that the base passes must pass
    fresh              pairs of fresh runs and betting, alpha spent over the candidates that come so far

The verdicts are `fit` (for review by a person), `privileged`, `rejected`, `not_shown` (the pairs ran out). No
verdict changes a spec. `verify` derives every verdict again from the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from spak.errors import UnavailableError, UserError, of_host
from spak.evolve.campaigns.campaign import Campaign, Half, Pair, Tested, Writer, outcome_of
from spak.evolve.experiments import Done
from spak.evolve.experiments.summary import no_pair
from spak.evolve.gate.candidate import Candidate
from spak.evolve.gate.counterfactual import Rehearsal, total, under
from spak.evolve.gate.form import form
from spak.evolve.gate.privileges import privileged
from spak.evolve.gate.stage import Stage
from spak.evolve.stats import Within
from spak.lang.catalog import Catalog

Run = Callable[[str, int, str], Pair | None]
"""Runs a case for the k-th time under the base and under a text; None when it was stopped."""
Propose = Callable[[Campaign], Sequence[Candidate]]

NO_GOLDEN = "there is no golden case"
"""Why the stage of golden cases passes where it judged nothing."""


@dataclass(slots=True)
class Judging:
    """What the gate judges with; nothing of it comes from a proposer. `unchanged` is called before each
    candidate and raises where the suite is not that of the plan."""

    catalog: Catalog
    rehearsals: Sequence[Rehearsal]
    pair: Run
    unchanged: Callable[[], None] = lambda: None
    shown: Callable[[Tested, str], None] = lambda tested, text: None
    stopping: Callable[[], bool] = lambda: False
    waiting: Callable[[], bool] = lambda: False
    """Whether a pair came to nothing because its runs are under way: then nothing stopped."""
    violations: Callable[[], Sequence[str]] = tuple
    """Runs of other splits that the proposer asked for so far."""


def advance(campaign: Campaign, root: Path, propose: Propose, judging: Judging) -> str:
    """Go on until the budget or the proposals are used up; why it stopped.

    Raises: LedgerError `ledger.busy`, OuterError `outer.changed`.
    """
    with campaign.writing(root) as writer:
        return go_on(writer, propose, judging)


def go_on(writer: Writer, propose: Propose, judging: Judging) -> str:
    """The same with a ledger that is held already; "waiting", which is no record, while runs are under way.

    Raises: OuterError `outer.changed`, what `propose` and `judging.pair` raise. Where the host is to blame,
    that is why the campaign stopped: it can go on from there.
    """
    try:
        return _go_on(writer, propose, judging)
    except UserError as error:
        if of_host(error):
            _stop(writer, f"{error.code}: {error.message}")
        raise


def _go_on(writer: Writer, propose: Propose, judging: Judging) -> str:
    campaign = writer.campaign
    while True:
        judging.unchanged()
        waiting = [item for item in campaign.tested if not item.verdict]
        if waiting:
            if judge(campaign, waiting[0], writer, judging):
                continue
            if judging.waiting():
                return "waiting"
            return _stop(writer, campaign.exhausted or "interrupted")
        left = campaign.plan.candidates - len(campaign.tested)
        if left <= 0:
            return _stop(writer, "candidates")
        known = {item.candidate.hash for item in campaign.tested}
        try:
            proposed = propose(campaign)
        finally:
            for run in judging.violations():
                if run not in campaign.violations:
                    writer.put("violation", {"run": run})
        fresh = [item for item in proposed if item.hash not in known][:left]
        if not fresh:
            return _stop(writer, "proposals")
        for item in fresh:
            writer.put("candidate", {"number": len(campaign.tested) + 1, "candidate": item.to_json()})


def _stop(writer: Writer, why: str) -> str:
    """Say why, unless the last record says it: whoever wrote that may have died before anybody heard it."""
    if writer.campaign.stopped != why:
        writer.put("stop", {"why": why})
    return why


def judge(campaign: Campaign, tested: Tested, writer: Writer, judging: Judging) -> bool:
    """Take one candidate through the gate; False when it was stopped on the way and can go on."""
    plan = campaign.plan

    def stage(found: Stage) -> None:
        writer.put("stage", {"number": tested.number, **found.to_json()})
        word = "nothing to judge" if found.why == NO_GOLDEN else found.verdict
        judging.shown(tested, f"{found.name}: {word}" + (f": {found.why}" if found.why else ""))

    def verdict(word: str, why: str) -> bool:
        writer.put("verdict", {"number": tested.number, "verdict": word, "why": why})
        judging.shown(tested, f"{word}: {why}")
        return True

    found, text = form(plan.base, tested.candidate, judging.catalog)
    stages: dict[str, Callable[[], Stage]] = {
        "form": lambda: found,
        "privileges": lambda: privileged(plan.base, text, judging.catalog),
        "counterfactual": lambda: counterfactual(judging.rehearsals, text),
    }
    for name, made in stages.items():
        if name not in tested.stages:
            stage(made())
        known = tested.stages[name]
        if known["verdict"] == "fail":
            return verdict("rejected", f"{name}: {known['why']}")
        if known["verdict"] == "privileged":
            return verdict("privileged", f"privileges: {known['why']}")
    for number, case in enumerate(plan.golden):
        if number < len(tested.pairs):
            continue
        if judging.stopping() or campaign.exhausted:
            return False
        if not _put(writer, tested, judging.pair(case, 0, text)):
            return False
    golden = tested.pairs[: len(plan.golden)]
    if "golden" not in tested.stages:
        stage(_golden(golden))
    if tested.stages["golden"]["verdict"] == "fail":
        return verdict("rejected", f"golden: {tested.stages['golden']['why']}")
    if tested.stages["counterfactual"]["verdict"] == "pass" and plan.golden:
        return verdict("fit", f"counterfactual: {tested.stages['counterfactual']['why']}")
    return _fresh(campaign, tested, writer, judging, text, verdict, stage)


def _fresh(
    campaign: Campaign,
    tested: Tested,
    writer: Writer,
    judging: Judging,
    text: str,
    verdict: Callable[[str, str], bool],
    stage: Callable[[Stage], None],
) -> bool:
    plan, first = campaign.plan, len(campaign.plan.golden)
    alpha = campaign.alpha(tested)
    if "fresh" not in tested.stages:
        begun = campaign.beginning(tested)
        least = begun.least_wins(alpha)
        needed = f"{least} wins in a row would do"
        if isinstance(begun, Within):
            needed = f"it takes something out and has to be no worse by {begun.margin}: {needed}"
        margin = str(begun.margin) if isinstance(begun, Within) else "0"
        stage(Stage("fresh", "open", needed, {"alpha": str(alpha), "least": least, "margin": margin}))
    seen = campaign.evidence(tested)[-1]
    for case, k in order(plan.cases, plan.suite_hash, plan.pairs)[len(tested.pairs) - first :]:
        if seen.accepts(alpha):
            break
        if judging.stopping() or campaign.exhausted:
            return False
        if not _put(writer, tested, judging.pair(case, k, text)):
            return False
        seen = seen.after(tested.pairs[-1].outcome)
    return verdict(*concluded(campaign, tested, alpha))


def concluded(campaign: Campaign, tested: Tested, alpha: Fraction) -> tuple[str, str]:
    """The verdict of the fresh pairs."""
    found = campaign.evidence(tested)[-1]
    about = f" that it is no worse by {found.margin}" if isinstance(found, Within) else ""
    reason = (
        f"{found.wins} won, {found.losses} lost, {found.ties} equal; "
        f"evidence{about} {float(found.peak):.3g} of {float(1 / alpha):.3g}"
    )
    return ("fit", reason) if found.accepts(alpha) else ("not_shown", reason)


def settled(case: str, k: int, base: Done, candidate: Done, base_hash: str, hash_: str) -> Pair:
    """Who won a pair. What a side lacks by its own fault, or what ran another spec, counts against the
    candidate.

    Raises: UnavailableError `unavailable.result` where the pair says nothing and has to be run again.
    """
    if no_pair(base, candidate):
        why = candidate.why if candidate.void and not base.of_host else base.why
        raise UnavailableError(
            "unavailable.result", f"a pair of case {case} has no result: {why}", "it is run again on resume"
        )
    runs = (base.run, candidate.run)
    used = _half(base, base_hash), _half(candidate, hash_)
    outcome = outcome_of(used[0].outcome, used[1].outcome)
    for side, done, wanted in (("base", base, base_hash), ("candidate", candidate, hash_)):
        if done.void:
            return Pair(case, k, outcome, runs, f"the {side} has no result: {done.why}", used)
        if done.ran != wanted:
            why = f"another spec ran as the {side}: {done.ran or 'none'}"
            return Pair(case, k, outcome, runs, f"{why}; {done.why}" if done.why else why, used)
    return Pair(case, k, outcome, runs, candidate.why if outcome < 0 else "", used)


def _half(done: Done, hash_: str) -> Half:
    """A run of a pair; one of another spec is no evidence about this one."""
    outcome = done.outcome if done.ran == hash_ else "void"
    return Half(outcome, done.tokens, done.cost_nanousd, done.ms)


def certain(campaign: Campaign, tested: Tested) -> list[tuple[str, int]]:
    """The next pairs that are needed whatever comes of them, so that they may be run side by side: the golden
    ones that are left, else as many fresh ones as it takes at least to accept, within the budget."""
    plan, done = campaign.plan, len(tested.pairs)
    found = [(case, 0) for case in plan.golden[done:]]
    if not found:
        least = campaign.evidence(tested)[-1].least_wins(campaign.alpha(tested))
        first = done - len(plan.golden)
        found = order(plan.cases, plan.suite_hash, plan.pairs)[first : first + least]
    return found[: max(plan.runs - campaign.runs + 1, 0) // 2] if plan.runs else found


def order(cases: Sequence[str], drawn: str, many: int) -> list[tuple[str, int]]:
    """The cases of the fresh pairs, each round in an order drawn from the plan."""
    found: list[tuple[str, int]] = []
    k = 0
    while cases and len(found) < many:
        k += 1  # the 0th run of a case is its golden one
        found += [
            (case, k)
            for case in sorted(cases, key=lambda case: sha256(f"{drawn}/{k}/{case}".encode()).digest())
        ]
    return found[:many]


def counterfactual(rehearsals: Sequence[Rehearsal], text: str) -> Stage:
    """Recorded runs under the candidate. It passes by them alone only where nothing is unknown, nothing got
    worse, some run succeeded, and something was gained; an unknown step never counts for it."""
    found = [under(item, text) for item in rehearsals]
    sums = total(found)
    usable = [item for item in found if not item.problem]
    if sums["worse"]:
        many = len(sums["worse"])
        return Stage("counterfactual", "fail", f"{many} recorded runs that succeeded would not", sums)
    saved = sums["saved"]
    whole = bool(usable) and len(usable) == len(found) and sums["unknown"] == 0
    proven = any(item.state == "succeeded" and item.ended == "same" for item in usable)
    gained = sums["ended"]["better"] > 0 or (saved["steps"] > 0 and saved["ms"] >= 0 and saved["tokens"] >= 0)
    if whole and proven and gained and not sums["ended"]["other"]:
        gain = f"{saved['steps']} steps, {saved['tokens']} tokens saved"
        summary = f"{len(found)} recorded runs, nothing unknown: {gain}"
        return Stage("counterfactual", "pass", summary, sums)
    why = f"coverage {100 * sums['coverage']:.0f} %"
    if any(item.retries for item in usable):
        why += (
            "; prompts name the RETRIES that are left, which it changes: what a model would answer after the "
            "first fail is unknown, and fresh pairs have to show it"
        )
    return Stage("counterfactual", "open", why, sums)


def _golden(pairs: Sequence[Pair]) -> Stage:
    lost = [pair.case for pair in pairs if pair.outcome < 0]
    evidence = {"cases": len(pairs), "lost": lost}
    if lost:
        return Stage("golden", "fail", f"lost: {', '.join(lost)}", evidence)
    return Stage("golden", "pass", f"{len(pairs)} cases" if pairs else NO_GOLDEN, evidence)


def _put(writer: Writer, tested: Tested, pair: Pair | None) -> bool:
    if pair is None:
        return False
    if pair.outcome not in (1, 0, -1):
        raise ValueError(f"{pair.outcome} is not an outcome of a pair")
    writer.put("pair", {"number": tested.number, **pair.to_json()})
    return True


def verify(campaign: Campaign, catalog: Catalog) -> list[str]:
    """What in a campaign's ledger does not follow from the rest of it; empty when everything does.

    Form, privileges, golden verdicts, the pairs' order, the betting and the verdict are derived again; replay
    of recorded runs is not, since the ledger names their outcome alone.
    """
    return [
        f"candidate {tested.number}: {item}"
        for tested in campaign.tested
        for item in _wrong(campaign, tested, catalog)
    ]


def _wrong(campaign: Campaign, tested: Tested, catalog: Catalog) -> Iterator[str]:
    plan = campaign.plan
    found, text = form(plan.base, tested.candidate, catalog)
    made = {"form": found}
    if text:
        made["privileges"] = privileged(plan.base, text, catalog)
    if "golden" in tested.stages:
        made["golden"] = _golden(tested.pairs[: len(plan.golden)])
    for pair in tested.pairs:
        if not pair.holds:
            yield f"the pair {pair.case}/{pair.k} is not what its runs came to"
    for name, stage in made.items():
        known = tested.stages.get(name)
        if known is not None and known["verdict"] != stage.verdict:
            yield f"{name} is {stage.verdict}, not {known['verdict']}"
    planned = [(case, 0) for case in plan.golden] + order(plan.cases, plan.suite_hash, plan.pairs)
    if [(pair.case, pair.k) for pair in tested.pairs] != planned[: len(tested.pairs)]:
        yield "its pairs are not those of the plan, in their order"
    word, by = _derived(campaign, tested, len(planned))
    if tested.verdict and word != tested.verdict:
        yield f"{by} {word}, not {tested.verdict}"


def _derived(campaign: Campaign, tested: Tested, most: int) -> tuple[str, str]:
    """The verdict that follows from a candidate's stages and pairs, of which there may be `most`, and what
    says so."""
    plan, stages = campaign.plan, {name: found["verdict"] for name, found in tested.stages.items()}
    for name in ("form", "privileges", "counterfactual", "golden"):
        if name == "counterfactual" and stages["privileges"] == "privileged":
            return "privileged", "the privileges give"
        if name not in stages or (name == "golden" and len(tested.pairs) < len(plan.golden)):
            return "none", f"without the stage {name} the ledger gives"
        if stages[name] == "fail":
            return "rejected", f"the stage {name} gives"
    if stages["counterfactual"] == "pass" and plan.golden:
        return "fit", "the recorded runs give"
    word, _ = concluded(campaign, tested, campaign.alpha(tested))
    if "fresh" not in stages or (
        word == "not_shown" and tested.verdict != "fit" and len(tested.pairs) < most
    ):
        return "none", "so few pairs give"
    return word, "the pairs give"
