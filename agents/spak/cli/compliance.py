"""`spak compliance`: the eleven tests of seed 001 against our kernel or another runtime."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.compliance.kit import Caught, Verdict


class _Rest(click.Command):
    """What comes after `--runtime` is a command line, options of its own included."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with that command line as one text."""
        if "--runtime" in args[:-2]:
            place = args.index("--runtime") + 1
            args = [*args[:place], shlex.join(args[place:])]
        return super().parse_args(ctx, args)


@click.command(cls=_Rest)
@click.option("--mutants", is_flag=True, help="Also play all tests on a mutant of SPAK's kernel for each.")
@click.option(
    "--case", "only", multiple=True, type=click.IntRange(1, 11), help="Play this test only; repeat."
)
@common.json_option
@click.option(
    "--runtime", metavar="CMD", help="Another runtime: its program, then its arguments; the rest of the line."
)
def command(mutants: bool, only: tuple[int, ...], as_json: bool, runtime: str | None) -> int:
    """Play the eleven compliance tests against SPAK's kernel, or a runtime that speaks their protocol.

    Exit 0 when all passed, and each mutant failed its own test and no other; else 1."""
    from spak.compliance.kit import judge, judge_mutants

    if mutants and runtime is not None:
        raise UsageError("usage.arguments", "--mutants are of SPAK's kernel", "leave --runtime out")
    argv = ours() if runtime is None else words(runtime)
    say = (lambda text: None) if as_json else common.say
    verdicts = judge(argv, heard=lambda verdict: say(line(verdict)), only=only)
    passed = sum(verdict.passed for verdict in verdicts)
    say(f"{passed} of {len(verdicts)} tests passed")
    caught = judge_mutants(lambda one: say(mutant_line(one)), only) if mutants else []
    if caught:
        say(f"{sum(one.caught for one in caught)} of {len(caught)} mutants caught")
    good = passed == len(verdicts) and all(one.caught for one in caught)
    if as_json:
        about = {"mutants": mutants_json(caught)} if mutants else {}
        common.emit({"passed": passed, "of": len(verdicts), "tests": list(map(test, verdicts)), **about})
    elif good:
        say("next: spak compliance --mutants" if not mutants and runtime is None else "next: docs/aep.md")
    else:
        say("next: docs/aep.md says what each test asks for")
    return 0 if good else 1


def ours() -> tuple[str, ...]:
    """Our own runtime. Raises: UnavailableError `unavailable.sandbox` where no tool could be started."""
    from spak import config
    from spak.compliance.kit import OURS

    config.box(config.settings())
    return OURS


def words(runtime: str) -> list[str]:
    """The words of a command line. Raises: UsageError `usage.arguments`, `usage.file`."""
    hint = "for example: spak compliance --runtime node aep.js"
    try:
        found = shlex.split(runtime)
    except ValueError as error:
        raise UsageError("usage.arguments", f"--runtime {runtime!r}: {error}", hint) from None
    if not found or not found[0]:
        raise UsageError("usage.arguments", "--runtime names no program", hint)
    if shutil.which(found[0]) is None:
        raise UsageError("usage.file", f"there is no program {found[0]!r} to run", hint)
    return found


def line(verdict: Verdict) -> str:
    """A verdict for people."""
    word = "passed" if verdict.passed else "FAILED"
    why = f"\n        {verdict.why}" if verdict.why else ""
    return f"{word}  {verdict.case.number:2} {verdict.case.title}{why}"


def mutant_line(one: Caught) -> str:
    """What came of a mutant, for people."""
    word = "caught" if one.caught else "SURVIVED" if not one.failed else "FAILED ALSO"
    numbers = ", ".join(map(str, one.failed)) or "no test"
    return f"{word}  {one.mutant.number:2} {one.mutant.name}: fails {numbers}\n        {one.why}"


def test(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "id": verdict.case.id,
        "name": verdict.case.title,
        "passed": verdict.passed,
        "why": verdict.why,
    }


def mutants_json(caught: list[Caught]) -> dict[str, Any]:
    """What came of all mutants, as JSON."""
    rows = [
        {
            "test": one.mutant.number,
            "name": one.mutant.name,
            "caught": one.caught,
            "failed": list(one.failed),
            "why": one.why,
        }
        for one in caught
    ]
    return {"caught": sum(one.caught for one in caught), "of": len(caught), "rows": rows}
