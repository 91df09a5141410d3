"""A test kit for authors of tools, validators, backends and predicates: each against its port's contract.

Takes what was made, and an example of its use; gives a list of sentences, one for each promise that it
breaks, so that any test framework can ask for an empty list:

    assert testing.predicate(Customer(), [("alice", None)]) == []

What ships is held to the same kit. It starts no run and judges no law; docs/tools.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from spak import canon
from spak.cancel import Cancel, Cancelled, Token, apart
from spak.datalog.externals import Request
from spak.datalog.values import Value
from spak.diagnostics import SEVERE, SEVERITIES
from spak.errors import UnavailableError, UserError
from spak.files.scratch import Scratch
from spak.lang.schema import violations
from spak.own import fault
from spak.ports import (
    Answer,
    Backend,
    Call,
    Launcher,
    Look,
    MeasureCall,
    Measurement,
    Predicate,
    Prompt,
    Status,
    Tool,
    Toolchain,
    ToolResult,
    Validator,
)
from spak.tools.observe import predicates
from spak.tools.observe.predicates import signs

CANCELLED_S = 10.0
"""How long a call may go on that was cancelled before it began; the ports promise a second."""
_MEASURED = ("measured", "static", "checked", "void", "unavailable", "timeout")

__all__ = ["backend", "predicate", "tool", "validator"]


def tool(
    made: Tool,
    args: Mapping[str, Any],
    files: Mapping[str, str | bytes] | None = None,
    *,
    launcher: Launcher | None = None,
    toolchain: Toolchain | None = None,
    **call: Any,
) -> list[str]:
    """What of a tool's contract a call with these arguments breaks, in a workspace of `files`; `call` is more
    of the Call. Without a launcher nothing is started in a sandbox."""
    if found := fault("tool", made):
        return [found]
    entry = made.entry
    wrong = [f"the example does not fit the schema: {item}" for item in violations(entry.schema, args)[:1]]
    with _workspace(files) as root:
        asked = Call("1", entry.name, args, root, launcher, toolchain=toolchain, **call)
        before = _content(root)
        first, error = _ended(lambda: made.run(asked), "run")
        after = _content(root)
        if error:
            return [*wrong, error]
        wrong += _of_result(first)
        if entry.effect == "pure" and not wrong:
            if before != after:
                wrong.append("it is pure and changed the workspace")
            again, error = _ended(lambda: made.run(asked), "run")
            if error or again.key != first.key or again.output != first.output:
                wrong.append(error or "it is pure, and a second call gave something else")
        wrong += _of_cancel(lambda cancel: made.run(_with(asked, cancel)))
    return wrong


def validator(
    made: Validator,
    options: Mapping[str, Any],
    files: Mapping[str, str | bytes] | None = None,
    *,
    launcher: Launcher | None = None,
    toolchain: Toolchain | None = None,
    **call: Any,
) -> list[str]:
    """What of a validator's contract a measurement with these options breaks, in a workspace of `files`."""
    if found := fault("validator", made):
        return [found]
    entry = made.entry
    wrong = [f"the example does not fit the schema: {item}" for item in violations(entry.schema, options)[:1]]
    with _workspace(files) as root:
        asked = MeasureCall("1", entry.name, options, root, launcher, toolchain=toolchain, **call)
        before = _content(root)
        seen, error = _ended(lambda: made.measure(asked), "measure")
        if error:
            return [*wrong, error]
        if before != _content(root):
            wrong.append("it changed the workspace")
        wrong += _of_measurement(seen)
        wrong += _of_cancel(lambda cancel: made.measure(_with(asked, cancel)))
    return wrong


def backend(made: Backend, text: str = "Say one word.", **prompt: Any) -> list[str]:
    """What of a backend's contract an answer to this question breaks; `prompt` is more of the Prompt. One
    that says by UnavailableError that it cannot answer here breaks nothing."""
    if found := fault("backend", made):
        return [found]
    asked = Prompt("1", ({"role": "user", "name": "goal", "text": text},), **prompt)
    pieces: list[str] = []
    try:
        made.check()
        answer = made.answer(asked, pieces.append)
    except UnavailableError:
        return []
    except Exception as error:  # code of others may raise anything
        return [f"it raised {type(error).__name__}: {error}"]
    wrong = _of_cancel(lambda cancel: made.answer(asked, None, cancel))
    if answer is None:
        return wrong
    if not isinstance(answer, Answer) or not isinstance(answer.text, str):
        return [*wrong, "answer gives neither an Answer with a text nor None"]
    last = "".join(pieces[pieces.index("") + 1 :] if "" in pieces else pieces)
    if pieces and last != answer.text:
        wrong.append("the pieces that on_text got are not the text of the answer")
    if not all(isinstance(count, int) and count >= 0 for count in answer.usage.values()):
        wrong.append("usage has numbers of tokens, whole and not negative")
    return wrong + _recordable("the answer", [answer.text, dict(answer.usage), dict(answer.params)])


def predicate(
    made: Predicate, questions: Sequence[Sequence[Value | None]], root: Path | None = None
) -> list[str]:
    """What of a predicate's contract its answers break. In a question None stands for what is wanted; each
    mode of the entry needs a question."""
    if found := fault("predicate", made):
        return [found]
    entry, wrong = made.entry, []
    requests = [Request(entry.name, tuple(question)) for question in questions]
    asked = {signs(request.mode, len(request.args)) for request in requests}
    wrong += [f"no question has the mode {mode}" for mode in entry.modes if mode not in asked]
    with _workspace(None) as empty:
        for request in requests:
            answered = []
            for _ in range(2):
                try:
                    found_rows = predicates.answers([request], Look(root or empty), {entry.name: made})
                except UserError as error:
                    wrong.append(f"{request}: {error.message} [{error.code}]")
                    break
                answered += found_rows
            if len(answered) == 2 and answered[0] != answered[1]:
                wrong.append(f"{request}: a second look gave other rows, or another order")
    return wrong


def _ended(work: Any, name: str) -> tuple[Any, str]:
    """What a call gave, or the sentence that it raised."""
    try:
        return work(), ""
    except Exception as error:  # code of others may raise anything
        return None, f"{name} raised {type(error).__name__}: {error}; what a user can cause is a result"


def _of_cancel(work: Any) -> list[str]:
    cancel = Token()
    cancel.set()
    try:
        apart(lambda: work(cancel), None, limit_s=CANCELLED_S)
    except TimeoutError:
        return ["it does not end when it is cancelled"]
    except (Cancelled, UserError):
        return []
    except Exception as error:  # code of others may raise anything
        return [f"cancelled, it raised {type(error).__name__}: {error}"]
    return []


def _of_result(result: Any) -> list[str]:
    if not isinstance(result, ToolResult):
        return ["run gives no ToolResult"]
    wrong = [] if result.status in get_args(Status) else [f"{result.status!r} is not a status"]
    if not isinstance(result.output, bytes):
        wrong.append("output is bytes")
    return (
        wrong
        + _recordable("key", dict(result.key))
        + _of_diagnostics(result.diagnostics, result.exit == 0 and result.status == "exited")
    )


def _of_measurement(seen: Any) -> list[str]:
    if not isinstance(seen, Measurement):
        return ["measure gives no Measurement"]
    wrong = [] if seen.status in _MEASURED else [f"{seen.status!r} is not a status"]
    for check in seen.checks:
        if not {"name", "ok", "code"} <= set(check) or not isinstance(check["ok"], bool):
            wrong.append(f"a check has name, ok (true or false) and code: {dict(check)}")
        elif not check["ok"] and not check["code"]:
            wrong.append(f"a check that failed has a code: {check['name']}")
    checks = [dict(check) for check in seen.checks]
    return wrong + _recordable(
        "checks, metrics or evidence", [checks, dict(seen.metrics), dict(seen.evidence)]
    )


def _of_diagnostics(found: Sequence[Mapping[str, Any]], good: bool) -> list[str]:
    wrong = []
    for item in found:
        if item.get("severity") not in SEVERITIES or not item.get("code"):
            wrong.append(f"a diagnostic has a severity (error, warning, info) and a code: {dict(item)}")
    if good and any(item.get("severity") in SEVERE for item in found):
        wrong.append("exit 0 with an error among the diagnostics")
    return wrong + _recordable("diagnostics", [dict(item) for item in found])


def _recordable(what: str, value: Any) -> list[str]:
    try:
        canon.dumps(value)
    except (UserError, TypeError, ValueError) as error:
        return [f"{what} cannot be recorded: {getattr(error, 'message', error)}"]
    return []


def _with(call: Any, cancel: Cancel) -> Any:
    return replace(call, cancel=cancel)


@contextmanager
def _workspace(files: Mapping[str, str | bytes] | None) -> Iterator[Path]:
    with Scratch("testing") as root:
        for path, content in (files or {}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        yield root


def _content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
