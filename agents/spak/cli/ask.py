"""`spak ask VERB [TARGET]`: which strategy serves a request and why, and its run.

The words are a typed command: the first one is a verb of the law, the others a path. They become facts, the
shipped law derives one strategy from them and from facts of the folder, and the strategy's spec is run.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError
from spak.templates import TEMPLATES

if TYPE_CHECKING:
    from spak.cli.session import Session
    from spak.runner import View
    from spak.strategies import Choice, Situation

REFUSED, LISTED = 5, 5
GUARDS = ("symbols",)
"""What the law of a run asks for that a verb of change began, whatever its strategy says."""


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="VERB [TARGET]")
@click.option(
    "--workspace", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True,
    help="The folder of the project; a run works in a copy.",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Say which strategy and why, and start nothing.")
@click.option(
    "--template", type=click.Choice(list(TEMPLATES)), default="tests", show_default=True,
    help="With scaffold: the template of spak new that the project begins with.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**53 - 1), default=None, help="The seed of the run.")
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    words: tuple[str, ...],
    folder: Path,
    check: bool,
    template: str,
    seed: int | None,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Choose the strategy for a request such as `fix tests/test_a.py`, say why, and run it.

    The verbs are those of a closed list; what no strategy serves is refused (exit 5), with the reasons."""
    from spak.strategies import Selector, look

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name the project's folder")
    verb, _, target = " ".join(words).strip().removeprefix("/").partition(" ")
    verb, target = verb.lower(), target.strip()
    selector = Selector()
    if verb not in selector.verbs:
        near = difflib.get_close_matches(verb, selector.verbs, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return _refuse(
            as_json, "ask.verb", f"{verb!r} is not a verb that is known{meant}", (), sorted(selector.verbs)
        )
    situation = look(folder, verb, selector.verbs[verb], target)
    choice = selector.choose(situation)
    intent = _intent(situation)
    if choice.strategy is None:
        return _refuse(as_json, "ask.no_strategy", f"no strategy serves {verb} here", choice.unmet, intent)
    assert choice.proof is not None
    about = {"intent": intent, "strategy": choice.strategy.name, "why": choice.proof.to_json()}
    if not as_json:
        common.say(f"strategy {choice.strategy.name}\n{choice.proof.text()}")
    if check:
        if as_json:
            common.emit(about)
        return 0
    return _run(choice, situation, about, target, folder, template, seed, timeout, runs_dir, as_json)


def _run(
    choice: Choice, situation: Situation, about: Mapping[str, Any], target: str, folder: Path, template: str,
    seed: int | None, timeout: float | None, runs_dir: Path | None, as_json: bool,
) -> int:  # fmt: skip
    from spak.cli import session
    from spak.cli.progress import progress
    from spak.cli.repair import search_of, show_search
    from spak.cli.show import show
    from spak.runner.views import repairs

    assert choice.strategy is not None
    held = session.begin(
        choice.strategy.file,
        common.runs_dir(runs_dir),
        inputs=_inputs(choice.strategy.name, situation, target, template, folder),
        workspace=folder,
        seed=seed,
        guards=GUARDS if situation.category == "mutation" else (),
        labels={"strategy": choice.strategy.name, "intent": about["intent"]},
    )
    if not as_json:
        name = held.run.ledger.run
        common.say(f"run {name}; stop with Ctrl+C, continue with: spak resume {name}")
    try:
        with progress(held, enabled=not as_json and sys.stderr.isatty()):
            seen = held.advance(timeout)
        text = _answer(held) if situation.category == "query" and seen.state == "succeeded" else ""
        name = choice.strategy.name
        proposer = name if name.startswith("migrate") or name == "first_tests" else "repair"
        search = search_of(held, proposer)
        unsafe = repairs.unsafe((record for record, _ in held.run.ledger.read()), held.run.ledger.blobs)
    finally:
        held.close()
    if as_json:
        common.emit(
            {
                **seen.to_json(),
                **about,
                **({proposer: search} if search else {}),
                **({"unsafe": unsafe} if unsafe else {}),
            }
        )
        return common.EXIT[seen.state]
    if text:
        common.out(text, nl=False)
    show_search(search)
    code = show(seen, as_json)
    if unsafe and code in (1, 4):
        _say_unsafe(unsafe, about["intent"], folder, seen)
    return code


def _say_unsafe(unsafe: Mapping[str, Any], intent: Mapping[str, Any], folder: Path, seen: View) -> None:
    """Which symbols keep a patch back, and the commands of both ways on."""
    from shlex import join

    from spak import config

    symbols, place = unsafe["symbols"], [] if folder == Path() else ["--workspace", str(folder)]
    named = [f"{symbol} ({cover})" for symbol, cover in symbols.items()]
    more = f" and {len(named) - LISTED} more" if len(named) > LISTED else ""
    common.say(
        f"the patch is held back by what depends on {unsafe['path']}: {', '.join(named[:LISTED])}{more}"
    )
    repeat = join(["spak", "ask", intent["verb"], *filter(None, [intent["target"]]), *place])
    if "untested" in symbols.values():
        first = join(["spak", "ask", "generate_test", unsafe["path"], *place])
        common.say(f"write the tests first: {first}\n  read what they pin, apply them, then again: {repeat}")
    if seen.state == "waiting":
        common.say(f"or sign the risk: spak approve {seen.run}")
    elif not config.settings().approvers:
        common.say(
            f"or sign the risk: spak keys make >> spak.toml\n  then: {repeat}, and spak approve latest"
        )


def _answer(held: Session) -> str:
    """What a query found: the output of its last step."""
    from spak.runner.blobs import expand

    return str(expand(held.run.history.output, held.run.ledger.blobs))


def _inputs(strategy: str, situation: Situation, target: str, template: str, folder: Path) -> dict[str, str]:
    """The inputs of the strategy's spec. Raises: UsageError `usage.arguments` for an unknown name."""
    from spak.strategies import manage_of

    if strategy == "survey":
        return {"folder": situation.target or "."}
    if strategy == "migrate":
        return {"schema": situation.target}
    if strategy == "first_tests":
        return _pins(folder, situation.target)
    if strategy == "migrate_django":
        return {"manage": manage_of(folder, situation.target)}
    if strategy == "project_init":
        return _project(situation.target if situation.kind == "missing" else "project", template)
    tests = situation.target if situation.kind == "test_file" else "."
    return {"tests": tests, "test": target if "::" in target else ""}


def _pins(folder: Path, path: str) -> dict[str, str]:
    """The file to change, and a new file of tests where its import begins."""
    from itertools import count

    base = Path(path).parent
    while base != Path() and (folder / base / "__init__.py").is_file():
        base = base.parent
    stems = (f"test_pinned_{Path(path).stem}{f'_{number}' * (number > 1)}.py" for number in count(1))
    return {
        "path": path,
        "file": next((base / one).as_posix() for one in stems if not (folder / base / one).exists()),
    }


def _project(name: str, template: str) -> dict[str, str]:
    from spak.patch.make import make
    from spak.templates import files_of

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
        hint = "begin with a letter; letters, digits, - and _ follow, at most 64 in all"
        raise UsageError("usage.arguments", f"{name!r} is not a name of a project", hint)
    files = files_of(template, name)
    patch = make((path, None, content) for path, content in files.items())
    return {"spec": next(iter(files)), "files": patch}


def _intent(situation: Situation) -> dict[str, Any]:
    """The columns of user_intent, and what the target is."""
    return {
        "category": situation.category,
        "verb": situation.verb,
        "target": situation.target,
        "kind": situation.kind,
        "voter": "typed",
    }


def _refuse(as_json: bool, code: str, message: str, reasons: tuple[str, ...], detail: Any) -> int:
    """Print why nothing is started. `detail` is the intent, or of an unknown verb those that are known."""
    known = isinstance(detail, list)
    refusal = {"code": code, "message": message, "reasons": list(reasons)}
    if as_json:
        intent = {} if known else {"intent": detail}
        common.emit({**intent, "strategy": None, "refusal": refusal, **({"verbs": detail} if known else {})})
        return REFUSED
    common.say(f"spak: {message} [{code}]")
    for reason in reasons:
        common.say(f"  {reason}")
    if known:
        common.say(f"  verbs: {', '.join(detail)}")
    return REFUSED
