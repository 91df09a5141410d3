"""The detectors: from traces to findings. Pure.

A repetition is never recognised by arguments alone: the result and the state have to be the same too, so that
pages of a listing, retries with another outcome and declared polls are none. Rates need twenty calls, and
every statement over many runs is about runs of one spec text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from spak.evolve.analyze.early import few_retries, short_patience
from spak.evolve.analyze.model import Analysis, Finding
from spak.evolve.analyze.trace import Deed, Trace, Visit
from spak.evolve.stats import wilson
from spak.lang.edit import ops
from spak.program import Step

LOOP = 3
CYCLE = 4
"""Attempts in a row that failed alike."""
LEAST = 20
"""Calls, or visits, below which a rate says nothing."""
FAILS = 0.2
RESENT = 0.8
LONG = 400
"""Characters of a result that are worth asking whether anybody used them."""
QUOTED = 24
"""Characters of a line that show that a text was taken up."""
GOOD = frozenset({"success", "metric_improved", "plateau"})

Prompts = Callable[[str], Sequence[Mapping[str, str]] | None]
"""The items of a prompt by its hash; None where they are not at hand."""


def analyze(traces: Sequence[Trace], prompts: Prompts = lambda name: None) -> Analysis:
    """Everything found in these traces, dearest first."""
    found: list[Finding] = []
    by_spec: dict[str, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_spec[trace.spec].append(trace)
        for detect in (_loops, _cycles, _denied, _rejected, _unreferenced, _flaky, _burn, _unhandled):
            found += detect(trace)
        found += _resent(trace, prompts)
    for many in by_spec.values():
        found += [*_failures(many), *_dead_edges(many), *_useless(many)]
        found += [*short_patience(many), *few_retries(many)]
    found.sort(key=lambda item: (item.unit != "tokens", -item.severity, item.run, item.records))
    return Analysis(
        len(traces),
        sum(trace.records for trace in traces),
        tuple(found),
        tuple(transitions(traces)),
        tuple(row for many in by_spec.values() for row in heuristics(many)),
        tuple(tools(traces)),
        {name: len(many) for name, many in by_spec.items()},
    )


# ---- one run -------------------------------------------------------------------------------------------


def _loops(trace: Trace) -> Iterator[Finding]:
    """Loops, and reads that were known."""
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, deed in enumerate(trace.deeds):
        if deed.act == "tool" and deed.allowed and deed.outcome and not _declared(trace, deed):
            same[deed.action, deed.result, deed.before].append(index)
    for indexes in same.values():
        deeds = [trace.deeds[index] for index in indexes]
        first = deeds[0]
        looped = len({deed.task for deed in deeds}) == 1 and len(deeds) >= LOOP
        if looped:
            period = min(after - before for before, after in pairwise(indexes))
            cost, unit = _cost(deeds[1:])
            yield Finding(
                "loop", trace.run, first.task, _records(deeds),
                f"{first.name} in step {first.step} gave one result {len(deeds)} times in the same state"
                + (f", every {period} actions" if period > 1 else ""),
                cost, unit, _lower(trace, first.task, 1),
            )  # fmt: skip
        elif len(deeds) > 1 and all(deed.after == deed.before and not deed.failed for deed in deeds):
            between = [item for item in trace.deeds[indexes[0] : indexes[-1]] if item.failed]
            if not between:
                cost, unit = _cost(deeds[1:])
                yield Finding(
                    "redundant_call", trace.run, first.task, _records(deeds),
                    f"{first.name} in step {deeds[-1].step} read again what record {first.end} had",
                    cost, unit, _without_step(trace, deeds[-1]),
                )  # fmt: skip


def _cycles(trace: Trace) -> Iterator[Finding]:
    """Attempts that failed alike until the run ended: those after the second were for nothing."""
    run: list[Visit] = []
    for visit in reversed(trace.visits):
        if visit.signal != "fail" or (run and (visit.task, visit.code) != (run[0].task, run[0].code)):
            break
        run.insert(0, visit)
    if len(run) >= CYCLE and trace.state != "succeeded":
        wasted = run[2:]
        tokens, ms = sum(item.tokens for item in wasted), sum(item.ms for item in wasted)
        yield Finding(
            "retry_cycle", trace.run, run[0].task, tuple(item.last for item in run),
            f"TASK {run[0].task} failed {len(run)} times with {run[0].code or 'fail'} and never passed",
            float(tokens) if tokens else ms / 1000, "tokens" if tokens else "s",
            _lower(trace, run[0].task, 2),
        )  # fmt: skip


def _denied(trace: Trace) -> Iterator[Finding]:
    same: dict[tuple[str, str], list[Deed]] = defaultdict(list)
    for deed in trace.deeds:
        if not deed.allowed:
            same[deed.task, deed.action].append(deed)
    for (task, _), deeds in same.items():
        if len(deeds) > 1:
            yield Finding(
                "denied", trace.run, task, _records(deeds),
                f"{deeds[0].name} was asked for {len(deeds)} times alike and denied each time",
            )  # fmt: skip


def _rejected(trace: Trace) -> Iterator[Finding]:
    asked = [deed for deed in trace.deeds if deed.act in ("ask", "plan") and deed.outcome]
    bad = [deed for deed in asked if deed.outcome not in ("answered", "planned")]
    if len(bad) >= LOOP:
        cost, unit = _cost(bad)
        yield Finding(
            "rejected_answers", trace.run, bad[0].task, _records(bad),
            f"{len(bad)} of {len(asked)} answers could not be used",
            cost, unit,
        )  # fmt: skip


def _unreferenced(trace: Trace) -> Iterator[Finding]:
    """Long results of reading steps of which nothing later holds a line."""
    if any(deed.act in ("ask", "plan") and _by_model(trace, deed) for deed in trace.deeds):
        return  # a model was shown them: what it made of them cannot be seen in its words
    for index, deed in enumerate(trace.deeds):
        text = deed.out if isinstance(deed.out, str) else ""
        plain = deed.act == "tool" and deed.allowed and not deed.failed and deed.after == deed.before
        if not plain or len(text) < LONG or not _fixed(trace, deed) or _bound(trace, deed):
            continue
        lines = {line.strip() for line in text.splitlines() if len(line.strip()) >= QUOTED}
        later = " ".join(str(item.written) for item in trace.deeds[index + 1 :])
        if lines and not any(line in later for line in lines):
            yield Finding(
                "unreferenced", trace.run, deed.task, (deed.seq, deed.end),
                f"step {deed.step} read {len(text)} characters that nothing afterwards took up",
                deed.ms / 1000, "s", _without_step(trace, deed),
            )  # fmt: skip


def _flaky(trace: Trace) -> Iterator[Finding]:
    judged: dict[tuple[str, str, str], list[Deed]] = defaultdict(list)
    for deed in trace.deeds:
        if deed.act == "validate" and deed.checks_ok is not None:
            judged[deed.task, deed.name, deed.before].append(deed)
    for (task, name, _), deeds in judged.items():
        if len({deed.checks_ok for deed in deeds}) > 1:
            cost, unit = _cost(deeds)
            yield Finding(
                "flaky_validator", trace.run, task, _records(deeds),
                f"{name} judged the same files {len(deeds)} times, both ways",
                cost, unit,
            )  # fmt: skip


def _burn(trace: Trace) -> Iterator[Finding]:
    ended = (code for code in trace.codes if code.startswith("budget.") and code != "budget.retries")
    code = next(ended, "")
    if not code:
        return
    used: Counter[str] = Counter()
    for deed in trace.deeds:
        used[deed.task] += 1
    task, count = used.most_common(1)[0]
    deeds = [deed for deed in trace.deeds if deed.task == task]
    cost, unit = _cost(deeds)
    yield Finding(
        "budget_burn", trace.run, task, (deeds[0].seq, trace.last),
        f"{code} ended the run; {count} of its {len(trace.deeds)} actions were in TASK {task}",
        cost, unit,
    )  # fmt: skip


def _unhandled(trace: Trace) -> Iterator[Finding]:
    if "run.unhandled_trigger" in trace.codes and trace.visits:
        visit = trace.visits[-1]
        ends = [task.name for task in trace.rules.program.tasks.values() if task.terminal]
        edit = (ops.AddEdge(visit.task, visit.signal, ends[0]),) if len(ends) == 1 else ()
        yield Finding(
            "unhandled_trigger", trace.run, visit.task, (visit.last, trace.last),
            f"TASK {visit.task} has no edge for {visit.signal}, which ended the run",
            edit=edit,
        )  # fmt: skip


def _resent(trace: Trace, prompts: Prompts) -> Iterator[Finding]:
    by_task: dict[str, list[tuple[Deed, Sequence[Mapping[str, str]]]]] = defaultdict(list)
    for deed in trace.deeds:
        items = prompts(deed.prompt) if deed.prompt and _by_model(trace, deed) else None
        if items:
            by_task[deed.task].append((deed, items))
    for task, sent in by_task.items():
        if len(sent) < CYCLE:
            continue
        total = resent = 0
        for (_, before), (_, after) in pairwise(sent):
            known = Counter(item["text"] for item in before)
            for item in after:
                total += len(item["text"])
                if known[item["text"]] > 0:
                    known[item["text"]] -= 1
                    resent += len(item["text"])
        if total and resent / total >= RESENT:
            tokens = sum(deed.tokens for deed, _ in sent[1:])
            memory = trace.rules.program.memory
            edit = (ops.Set("CONFIG.MEMORY", "SUMMARIZE"),) if memory != "SUMMARIZE" else ()
            yield Finding(
                "resent_tokens", trace.run, task, tuple(deed.seq for deed, _ in sent),
                f"{100 * resent // total} % of {len(sent) - 1} prompts was in the prompt before",
                float(tokens * resent // total), "tokens", edit,
            )  # fmt: skip


# ---- many runs of one spec -----------------------------------------------------------------------------


def tools(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Calls and failures by tool, with the Wilson interval; below twenty calls `insufficient`."""
    calls, failed = Counter[str](), Counter[str]()
    for deed in (deed for trace in traces for deed in trace.deeds):
        if deed.act == "tool" and deed.allowed and deed.outcome and not deed.polled:
            calls[deed.name] += 1
            failed[deed.name] += deed.failed
    return [
        {
            "tool": name, "calls": count, "failed": failed[name],
            "interval": list(wilson(failed[name], count)), "insufficient": count < LEAST,
        }
        for name, count in sorted(calls.items())
    ]  # fmt: skip


def _failures(traces: Sequence[Trace]) -> Iterator[Finding]:
    for row in tools(traces):
        low, high = row["interval"]
        if row["insufficient"] or low <= FAILS:
            continue
        bad = [
            (trace.run, deed)
            for trace in traces
            for deed in trace.deeds
            if deed.name == row["tool"] and deed.failed and not deed.polled
        ]
        run = bad[0][0]
        mine = [deed for name, deed in bad if name == run]
        cost, unit = _cost([deed for _, deed in bad])
        yield Finding(
            "tool_failure", run, mine[0].task, _records(mine),
            f"{row['tool']} failed in {row['failed']} of {row['calls']} calls "
            f"(95 % from {100 * low:.0f} to {100 * high:.0f} %)",
            cost, unit,
        )  # fmt: skip


def transitions(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Every edge that is declared or was taken, with how often, and the visits of its task."""
    taken, visits = Counter[tuple[str, str, str]](), Counter[str]()
    declared: set[tuple[str, str, str]] = set()
    for trace in traces:
        for task in trace.rules.program.tasks.values():
            declared |= {(task.name, trigger, target) for trigger, target in task.edges.items()}
        for visit in trace.visits:
            if visit.signal:
                visits[visit.task] += 1
                taken[visit.task, visit.signal, visit.to] += 1
    return [
        {
            "task": task, "trigger": trigger, "to": to, "taken": taken[task, trigger, to],
            "visits": visits[task], "declared": (task, trigger, to) in declared,
        }
        for task, trigger, to in sorted(declared | set(taken))
    ]  # fmt: skip


def _dead_edges(traces: Sequence[Trace]) -> Iterator[Finding]:
    last = traces[-1]
    for row in transitions(traces):
        if row["declared"] and not row["taken"] and row["visits"] >= LEAST:
            high = wilson(0, row["visits"])[1]
            yield Finding(
                "dead_edge", last.run, row["task"],
                tuple(visit.last for visit in last.visits if visit.task == row["task"])[:10],
                f"the edge {row['trigger']} -> {row['to']} was never taken in {row['visits']} visits of TASK "
                f"{row['task']} (at most {100 * high:.0f} % of them)",
                edit=(ops.RemoveEdge(row["task"], row["trigger"]),),
            )  # fmt: skip


def heuristics(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """What each heuristic did: how often it fired, and how often the attempt that it opened succeeded, beside
    attempts after a fail without any. It fires after fails alone, so the two are not alike: confounded."""
    fired, good = Counter[int](), Counter[int]()
    others = [0, 0]
    for trace in traces:
        before = ""
        for visit in trace.visits:
            for number in visit.fired:
                fired[number] += 1
                good[number] += visit.signal in GOOD
            if not visit.fired and before == "fail":
                others[0] += 1
                others[1] += visit.signal in GOOD
            before = visit.signal
    known = traces[0].rules.program.heuristics
    return [
        {
            "spec": traces[0].spec, "number": number, "text": item.text, "fired": fired[number],
            "succeeded": good[number], "interval": list(wilson(good[number], fired[number])),
            "without": others[0], "without_succeeded": others[1], "insufficient": fired[number] < LEAST,
        }
        for number, item in enumerate(known, 1)
    ]  # fmt: skip


def _useless(traces: Sequence[Trace]) -> Iterator[Finding]:
    for row in heuristics(traces):
        if row["insufficient"] or row["succeeded"]:
            continue
        seen = [
            (trace.run, visit) for trace in traces for visit in trace.visits if row["number"] in visit.fired
        ]
        run = seen[0][0]
        mine = [visit for name, visit in seen if name == run]
        yield Finding(
            "useless_heuristic", run, mine[0].task, tuple(visit.first for visit in mine),
            f"HEURISTIC {row['number']} fired {row['fired']} times and no attempt after it succeeded",
            sum(visit.ms for _, visit in seen) / 1000, "s",
            (ops.RemoveModelItem("heuristic", row["number"]),),
        )  # fmt: skip


# ---- parts ---------------------------------------------------------------------------------------------


def _declared(trace: Trace, deed: Deed) -> bool:
    """Whether the spec says that it is repeated: a poll."""
    if deed.polled:
        return True
    step = _step(trace, deed)
    return step is not None and step.poll is not None


def _by_model(trace: Trace, deed: Deed) -> bool:
    task = trace.rules.program.tasks.get(deed.task)
    return deed.act == "ask" or (task is not None and not task.proposing.name)


def _fixed(trace: Trace, deed: Deed) -> bool:
    step = _step(trace, deed)
    return step is not None and step.kind == "tool"


def _step(trace: Trace, deed: Deed) -> Step | None:
    task = trace.rules.program.tasks.get(deed.task)
    return task.step(deed.step) if task is not None else None


def _bound(trace: Trace, deed: Deed) -> bool:
    """Whether the step's output or exit is read by a variable or a condition."""
    step = _step(trace, deed)
    assert step is not None
    wanted = trace.rules.wanted
    names = {step.output_var, "last_tool_output", "tool_output", f"exit_code.{step.id}"} - {""}
    return bool(step.output_var) or bool(names & wanted)


def _without_step(trace: Trace, deed: Deed) -> tuple[ops.Op, ...]:
    """The edit that takes a reading step out, where it is a step of the spec that nothing else needs."""
    if not _fixed(trace, deed) or _bound(trace, deed):
        return ()
    task = trace.rules.program.tasks[deed.task]
    return (ops.RemoveStep(deed.task, deed.step),) if len(task.steps) > 1 else ()


def _lower(trace: Trace, task: str, retries: int) -> tuple[ops.Op, ...]:
    """The edit that gives a task fewer tries, where it has more."""
    known = trace.rules.program.tasks.get(task)
    if known is None or known.retries <= retries or task not in known.edges.values():
        return ()
    return (ops.Set("RETRIES", retries, task),)


def _records(deeds: Sequence[Deed]) -> tuple[int, ...]:
    return tuple(sorted({number for deed in deeds for number in (deed.seq, deed.end)}))


def _cost(deeds: Sequence[Deed]) -> tuple[float, Literal["tokens", "s"]]:
    tokens = sum(deed.tokens for deed in deeds)
    return (float(tokens), "tokens") if tokens else (sum(deed.ms for deed in deeds) / 1000, "s")
