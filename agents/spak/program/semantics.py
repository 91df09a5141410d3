"""Kernel semantics: the version number of the kernel's decisions, and what each version decides differently.

Takes the number that a genesis record names; gives its Decisions, one named flag for each rule that came
later than version 1. The kernel and `compile` ask these flags and never the number, so a reader finds by
name what a version changed. Each flag has a golden ledger on both sides of it (tests/golden). Raises nothing:
an unknown number is the caller's error. VERSIONING.md says what raises the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

SEMANTICS = 5
"""The version that new runs get."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The flags of one version of the semantics; the defaults are those of the newest."""

    policy: bool = True
    """Since 2: the policy derives each permit. Before, a tool had to be in TOOLS, or named by a step."""
    memory: bool = True
    """Since 2: a plan is shown what happened so far, and answers with a control packet. Before, a prompt had
    no memory, and a plan was candidates alone. Source: seed 000 section 2.1 (MEMORY)."""
    lean_routes: bool = True
    """Since 2: a route repeats neither the key of its act nor that its transaction was committed."""
    requests_counted: bool = True
    """Since 2: the requests that tools sent, and their bytes, count against budgets of the policy."""
    answers_counted_together: bool = True
    """Since 2: invalid answers are counted whatever tool they name, until `rollbacks_by_tool`."""
    runner_codes: bool = True
    """Since 2: what the runner did not do, though permitted, keeps the runner's code. Before, it was
    `tool.invalid`."""
    exits_decide: bool = True
    """Since 3: in a task with neither `success:` nor VALIDATOR a tool's non-zero exit fails the task.
    Source: DESIGN.md section 15."""
    checks_hold_files: bool = True
    """Since 3: what checks found holds until a file outside of the repository's own folder changes; each
    check is kept by its options too; a plateau after a failed check is a failed check. Source: ADR 0022."""
    step_tools: bool = True
    """Since 3: TOOLS is what the plans of a task may choose from, and a step's own tool is not among it.
    Before, a task without TOOLS had those of its steps, and with TOOLS a step had to use one of them."""
    plan_output: bool = True
    """Since 3: what a plan's tool wrote is `last_tool_output`. Before, only with an `output_var`."""
    bound: bool = True
    """Since 3: a variable that has no value on any path is an error of the spec."""
    turns_repeat: bool = True
    """Since 3: the watchdog ends a run when its last whole turn was repeated, with the answers given in it.
    Before, when one result stood in its window too often, whatever happened in between."""
    rollbacks_by_tool: bool = True
    """Since 3: rollbacks in a row are counted on one tool, unreadable answers under a name of their own.
    Before, invalid answers were counted together. Source: seed 001."""
    causes: bool = True
    """Since 3: the end of a run holds its cause as data, and a knob only where it would help."""
    r4_payload: bool = True
    """Since 3: R4 holds the expected schema and the received payload, both bounded. Source: seed 001."""
    memory_by_policy: bool = True
    """Since 3: what no prompt has shown yet stays in the memory in full, FLUSH_ON_TRANSITION empties it at
    every change of task, and SUMMARIZE keeps lines of what settles. Source: docs/adr/0026."""
    compares_typed: bool = True
    """Since 3: comparing a text that is no number with a number is an error (`run.not_a_number`), and the
    condition does not hold. Before, it was false, and with `!=` true, and digits of any script counted."""

    git_patches: bool = True
    """Since 3: patches are read as git and diff write them, quoted names and stripped blank lines too, and a
    very long line is refused. Before, the policy judged some ordinary ones as damaged."""
    patch_codes: bool = True
    """Since 3: a patch that cannot be read is denied with its own code. Before, with `policy.forbidden`."""
    long_patches: bool = True
    """Since 3: a patch of more than 16 KiB is read by the runner and judged by what it changes. Before, it
    was denied as unreadable."""
    empty_tasks: bool = True
    """Since 3: a task without step, GOAL, `success:` and VALIDATOR is refused. Before, it ended well."""
    recorded_lines: bool = True
    """Since 3: what a law is told of the deeds of a command line was recorded by the runner. Before, the
    kernel read the line with tables that are no more: such a run replays up to its first line."""
    closed_law: bool = True
    """Since 3: a spec only narrows. No text of it heads a predicate of which one more row could permit
    something, `permitted` included, but for tables that the law opens; a team's rules lift no prohibition.
    Source: DESIGN.md section 9, ADR 0029."""
    folds: bool = True
    """Since 4: a policy may declare folds, which the run keeps. Before, such a policy does not load.
    Source: ADR 0046."""
    signed_in_turn: bool = True
    """Since 5: a signed attempt that is denied is remembered, and another person is asked where that person's
    signature would permit it. Before, nobody was asked where one signature did not do. Source: ADR 0091."""
    bare_hosts: bool = True
    """Since 5: addresses and short names are hosts that an operator's law may permit. Before, a URL with one
    was not read. Source: ADR 0091."""
    denied_by_proof: bool = True
    """Since 5: the reason of a denial is what its proof rests on, with the rule. Before, it was the first odd
    fact about the action. Source: ADR 0091."""
    whole_texts: bool = True
    """Since 5: what is in a long text, and in one put together with it, is looked at by the runner and judged
    as that of a short one is, and what a step fills in is bounded. Before, the policy saw a reference alone.
    Source: ADR 0086."""
    no_references: bool = True
    """Since 5: no map of a spec has a member whose name begins with `$`. Before, `$blob` and `$text` of a
    spec were taken for the kernel's own references. Source: ADR 0086."""


LATEST = Decisions()
_FIRST = Decisions(*(False for _ in fields(Decisions)))
_FOURTH = replace(
    LATEST,
    signed_in_turn=False,
    bare_hosts=False,
    denied_by_proof=False,
    whole_texts=False,
    no_references=False,
)

BY_VERSION: Mapping[int, Decisions] = MappingProxyType(
    {
        1: _FIRST,
        2: replace(
            _FIRST,
            policy=True,
            memory=True,
            lean_routes=True,
            requests_counted=True,
            answers_counted_together=True,
            runner_codes=True,
        ),
        3: replace(_FOURTH, folds=False),
        4: _FOURTH,
        SEMANTICS: LATEST,
    }
)
"""Every version that this kernel replays."""
