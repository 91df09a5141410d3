"""Checks of what nothing uses: variables and inputs that nobody reads, heuristics that can never fire.

Takes an Outline and the Scope that has seen every variable read; reports warnings. Where the text did not
parse whole, or more is wrong than can be told, it says nothing.
"""

from __future__ import annotations

from spak.lang import ast
from spak.lang.checks.transitions import LOW, TOKENS
from spak.lang.near import nearest
from spak.lang.outline import Outline
from spak.lang.scope import Scope

FAILS = ("fail", "timeout")
MISREAD = ("lang.unbound_variable", "lang.bare_word", "lang.lookalike")
"""Where one of these was found, a variable that nobody reads may only have been misspelt."""
GOOD = ("success", "metric_improved", "plateau")


def check_unused(made: Outline, scope: Scope) -> None:
    """Report variables, inputs, heuristics and the like that nothing uses."""
    if made.broken or made.report.full or not made.tasks:
        return
    if not any(item.code in MISREAD for item in made.report.found):
        _check_variables(made, scope)
        _check_inputs(made, scope)
    _check_heuristics(made)


def _check_variables(made: Outline, scope: Scope) -> None:
    for task in made.tasks.values():
        for step in task.steps:
            if step.output_var and step.output_var not in scope.read:
                body = step.node.body.entries if step.node.body is not None else ()
                at = next(entry for entry in body if entry.key == "output_var")
                hint = f"read it, {{{{{step.output_var}}}}}, or leave output_var out"
                made.report.warn("lang.unused_variable", f"nothing reads '{step.output_var}'", hint, at)
        if task.output and task.plans and task.output not in scope.read:
            hint = f"read it, {{{{{task.output}}}}}, or leave OUTPUT out"
            made.report.warn(
                "lang.unused_variable", f"nothing reads '{task.output}'", hint, task.settings["OUTPUT"]
            )


def _check_inputs(made: Outline, scope: Scope) -> None:
    agent = made.spec.agent
    for item in (*made.spec.items, *(agent.items if agent else ())):
        if (
            isinstance(item, ast.Entry)
            and item.key.upper() == "INPUTS"
            and isinstance(item.value, ast.MapValue)
        ):
            for entry in item.value.entries:
                if entry.key in made.inputs and f"input.{entry.key}" not in scope.read:
                    hint = f"read it, {{{{input.{entry.key}}}}}, or leave it out"
                    made.report.warn(
                        "lang.unused_input", f"nothing reads input '{entry.key}'", hint, entry.start
                    )


def _check_heuristics(made: Outline) -> None:
    """A heuristic goes to whoever is asked next after a fail: a model or a proposer."""
    asks = any(
        task.plans or any(step.kind in ("ask", "plan") for step in (*task.steps, *task.checks))
        for task in made.tasks.values()
    )
    code, message = "lang.idle_heuristic", "this heuristic never fires"
    for model in made.spec.models():
        for item in model.items:
            if not isinstance(item, ast.Heuristic):
                continue
            if not asks:
                hint = "a prompt after a fail would have it, and no step asks a model or a proposer"
                made.report.warn(code, message, hint, item)
            elif item.when is not None and item.when.value in GOOD:
                hint = "it answers a fail: WHEN fail, WHEN timeout, or WHEN and the code of an error"
                made.report.warn(code, message, hint, item.when)
            elif item.when is not None and item.when.value == LOW:
                if not made.budget.get("tokens"):
                    made.report.warn(code, f"{message}: BUDGET has no tokens", TOKENS, item.when)
            elif item.when is not None and item.when.value not in FAILS:
                near = nearest(item.when.value, (*FAILS, LOW))
                if near:
                    fix = made.report.replace(item.when, near)
                    made.report.warn(code, message, f"did you mean '{near}'?", item.when, fix)
