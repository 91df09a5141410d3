"""What the kernel makes of a text: the Program as JSON, the prompts that its steps would send, what the agent
may do, and the policy that judges it.

Takes the text of a request; gives JSON-ready data. Nothing is run. A prompt is put together by the kernel's
own function from the state at the first entry of its step; a variable that only a run can fill stays
`{{name}}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from spak import config
from spak.errors import SpecError
from spak.kernel.context import build
from spak.kernel.memory import Memory
from spak.kernel.render import Unbound
from spak.kernel.rules import Rules
from spak.kernel.state import Counter, State
from spak.lang import Severity, parse
from spak.lang.diff import compare
from spak.policy import law as laws
from spak.program import Program, Ref, Step, Task, Template
from spak.program import compile as compile_program
from spak.runner.genesis import genesis
from spakweb.face.editor.services import Seen, see
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.team_files import TeamFiles

MAX_PROMPTS = 100


def compiled(request: Mapping[str, Any], team_files: TeamFiles | None = None) -> dict[str, Any]:
    """Raises: SpecError when no Program can be built, Refused when the request has no text."""
    seen = see(request.get("text"), team_files)
    rules = rules_of(seen)
    program = rules.program
    return {
        "program": json_value(program),
        "facts": list(_facts(program)),
        "capabilities": list(_capabilities(seen)),
        "prompts": [
            {"task": task.name, "step": step.id, "items": [dict(item) for item in _prompt(rules, task, step)]}
            for task, step in list(_asking(program))[:MAX_PROMPTS]
        ],
        "policy": _policy(seen),
    }


def rules_of(seen: Seen) -> Rules:
    """The rules that a run of the text would have. Raises: SpecError `lang.invalid`."""
    errors = [item for item in seen.diagnostics if item.severity == Severity.ERROR]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise SpecError(
            "lang.invalid", f"Line {first.line}: {first.message}{more}.", "Fix it, then open this tab again."
        )
    inputs = _inputs(seen)
    full = catalog()
    whole = seen.whole
    program = compile_program(whole.parsed, full, inputs)
    reached, axioms = config.used(full, program), laws.rules_of(program.axioms)
    return Rules.of(
        genesis(
            whole.parsed.text, reached, inputs, "", 0, {}, policy=whole.policy, axioms=axioms, law=seen.law
        )
    )


def _inputs(seen: Seen) -> dict[str, Any]:
    """A value for each input that has no default, so that the text compiles."""
    found: dict[str, Any] = {}
    for name, declared in seen.view.outline.inputs.items():
        if declared.required:
            usual = {"string": "", "int": 0, "float": 0.0, "bool": False}
            found[name] = declared.choices[0] if declared.choices else usual.get(declared.type, "")
    return found


def json_value(value: Any) -> Any:
    """Frozen data as JSON; a part that is one of several kinds says which."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {item.name: json_value(getattr(value, item.name)) for item in fields(value)}
        kind = type(value).__name__
        return found if kind in ("Program", "Task", "Step", "Budgets") else {"kind": kind} | found
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [json_value(item) for item in value]
    return value


def _facts(program: Program) -> Iterator[dict[str, str]]:
    budgets = program.budgets
    limits = [f"{item.name} {getattr(budgets, item.name):,}" for item in fields(budgets)]
    rows = {
        "Name": program.name,
        "Level": str(program.level),
        "Starts at": program.start,
        "Sandbox": program.sandbox,
        "Mode": program.mode or "full_auto with a backend, else stepwise",
        "Memory": program.memory,
        "Backend": program.backend or "chosen when it is run",
        "Budgets": ", ".join(limits) + " (0: no limit)",
        "Inputs": ", ".join(program.inputs) or "none",
    }
    for word, value in rows.items():
        yield {"word": word, "value": value}


def _capabilities(seen: Seen) -> Iterator[dict[str, str]]:
    """What a spec may do is what it may do more than one that says nothing."""
    for item in compare(parse(""), seen.view.whole, catalog()).capabilities:
        if item.kind == "tool" and not item.path:
            continue  # said of the tasks that have it
        value = "" if item.after in (True, None) else str(item.after)
        yield {"kind": item.kind, "name": item.name, "where": item.path, "value": value[:400]}


def _asking(program: Program) -> Iterator[tuple[Task, Step]]:
    for task in program.tasks.values():
        for step in task.steps:
            if step.kind in ("ask", "plan"):
                yield task, step


def _prompt(rules: Rules, task: Task, step: Step) -> tuple[Mapping[str, Any], ...]:
    state = State(status="running", r0=Counter(task.name, step.id))
    try:
        return build(rules, state, task, step, Memory()).items
    except Unbound:
        shown = replace(step, args={**step.args, "prompt": _as_written(step.args.get("prompt"))})
        return build(rules, state, task, shown, Memory()).items


def _as_written(value: Any) -> str:
    match value:
        case Ref(path):
            return f"{{{{{path}}}}}"
        case Template(parts):
            return "".join(part if isinstance(part, str) else _as_written(part) for part in parts)
        case _:
            return str(value)


def _policy(seen: Seen) -> dict[str, str]:
    """The text that decides, and a sentence about it."""
    own = {"the spec's POLICY": seen.whole.policy} if seen.whole.policy else {}
    texts = {**seen.law.sources, **own}
    more = " The spec has a POLICY of its own besides." if own else ""
    return {
        "said": "An action happens only if these rules derive `permitted` and do not derive `forbidden`."
        + more,
        "text": "\n".join(f"# {name}\n\n{text.rstrip()}\n" for name, text in texts.items()),
    }
