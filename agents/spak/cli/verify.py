"""`spak verify --artifact PATH --spec FILE`: an artifact against a spec's axioms, by static checks.

It says of each axiom what it is: a rule (its whole text is a clause of the policy, which every run of the
spec obeys), checked (it has a CHECK, which the pure `spak.validators.compliance` carries out), prompt (told
to models and checked by nobody) or judged (CHECK judge: a model's opinion, asked for only where a model is
configured). Only what is checked can hold; where nothing was, nothing has passed. A rule that does not load
is a violation, and so is an opinion that it does not hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from spak.lang import Parsed
    from spak.validators.compliance import Report
    from spak.validators.judge import Verdict

    Ask = Callable[[str, str, str], Verdict | None]


@click.command()
@click.option("--artifact", required=True, type=click.Path(path_type=Path), help="The file to check.")
@click.option("--spec", required=True, type=click.Path(path_type=Path), help="The spec with the axioms.")
@common.json_option
def command(artifact: Path, spec: Path, as_json: bool) -> int:
    """Check a file against a spec's AXIOMs. Exit 0 if all with a CHECK hold, 1 if not or if none has one."""
    from spak.validators.compliance import MAX_BYTES, comply
    from spak.validators.static_checks import folder_files

    wanted, policy = axioms(spec)
    data = common.read_input(artifact, limit=MAX_BYTES)
    found = comply(data, artifact.name, wanted, folder_files(artifact.parent), _ask(wanted))
    report = _with_rules(found, wanted, policy)
    if as_json:
        common.emit(_document(artifact, spec, report, wanted))
    else:
        _print(artifact, report, wanted)
    return 0 if report.passed else 1


def axioms(spec: Path) -> tuple[list[dict[str, Any]], str]:
    """Every AXIOM as `{text, check, args}`, `check` empty where there is none, and the text of the POLICY.

    Raises: UsageError `usage.file`, SpecError `lang.invalid` with all diagnostics.
    """
    from spak.lang import check, parse
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader

    whole = resolve(parse(common.read_input(spec), str(spec)), folder_reader(spec))
    found = check(whole.parsed, common.catalog())
    if errors := [item for item in found if item.severity == "error"]:
        raise SpecError("lang.invalid", f"{spec} has {len(errors)} errors", f"spak check {spec}", found)
    return _axioms(whole.parsed, spec), whole.policy


def _axioms(parsed: Parsed, spec: Path) -> list[dict[str, Any]]:
    from spak.lang.checks.axioms import stated
    from spak.lang.report import Report as Findings

    findings = Findings(parsed.spec.source)
    found = stated(parsed.spec, findings)
    if findings.errors:
        raise SpecError(
            "lang.invalid", f"{spec}: a CHECK cannot be read", findings.found[0].hint, tuple(findings.found)
        )
    return found


def _ask(wanted: list[dict[str, Any]]) -> Ask | None:
    """What asks the configured model for a verdict; None where no axiom wants one or no model is configured.

    Raises: UnavailableError `unavailable.backend`, `llm.*`; UsageError `usage.config`.
    """
    from spak import config
    from spak.llm import open_backend, redactor
    from spak.ports import Prompt
    from spak.validators import judge

    settings = config.settings()
    if settings.backend in ("", "manual") or not any(axiom["check"] == judge.CHECK for axiom in wanted):
        return None
    backend, clean = open_backend(settings.backend, settings.llm), redactor(settings.llm)

    def ask(rubric: str, text: str, name: str) -> judge.Verdict | None:
        items = judge.question(clean.text(rubric), clean.text(text), name)
        prompt = Prompt(f"verify:{name}", items, "judge", "ask", schema=judge.VERDICT)
        answer = backend.answer(prompt)
        return None if answer is None else judge.read(answer.text)

    return ask


def kind_of(axiom: dict[str, Any]) -> str:
    """`checked`, `judged`, `rule` or `prompt`; a CHECK says more than a rule does."""
    from spak.policy.law import is_clause
    from spak.validators.judge import CHECK

    if axiom["check"] == CHECK:
        return "judged"
    return "checked" if axiom["check"] else "rule" if is_clause(axiom["text"]) else "prompt"


def _with_rules(report: Report, wanted: list[dict[str, Any]], policy: str) -> Report:
    """The report with the rules that do not load with the law and the POLICY; each is a violation."""
    from dataclasses import replace

    from spak import config
    from spak.datalog import PolicyError
    from spak.policy.law import compiled, name_of
    from spak.validators.compliance import Violation

    broken, above = [], config.law()
    for index, axiom in enumerate(wanted, start=1):
        if kind_of(axiom) == "rule":
            try:
                compiled(above, policy, {name_of(index): axiom["text"]})
            except PolicyError as error:
                broken.append(Violation(index, axiom["text"], "rule", error.code, error.message))
    passed = report.passed and not broken
    return replace(report, passed=passed, violations=(*report.violations, *broken))


def _document(artifact: Path, spec: Path, report: Report, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    from dataclasses import asdict

    broken = {violation.index for violation in report.violations}
    listed = []
    for index, axiom in enumerate(wanted, start=1):
        kind = kind_of(axiom)
        unchecked = kind == "prompt" or (kind == "judged" and axiom["text"] in report.unchecked)
        holds = None if unchecked else index not in broken
        listed.append({"index": index, "axiom": axiom["text"], "kind": kind, "holds": holds})
    return {"artifact": str(artifact), "spec": str(spec), **asdict(report), "axioms": listed}


def _print(artifact: Path, report: Report, wanted: list[dict[str, Any]]) -> None:
    for broken in report.violations:
        where = f"{artifact}:{broken.line}" if broken.line else str(artifact)
        common.say(f"{where}: {broken.message} [{broken.code}]\n  axiom {broken.index}: {broken.axiom}")
    for text in report.held:
        common.say(f"holds: {text}")
    for text in report.judged:
        common.say(f"a model says that it holds, which is no check: {text}")
    judged = {axiom["text"] for axiom in wanted if kind_of(axiom) == "judged"}
    rules = {axiom["text"] for axiom in wanted if kind_of(axiom) == "rule"}
    for text in report.unchecked:
        if text in rules:
            common.say(f"a rule of every run, not of the artifact: {text}")
        elif text in judged:
            common.say(f"unchecked, no model is configured to judge it: {text}")
        else:
            common.say(f"unchecked, only given to a model: {text}")
    if report.passed:
        common.say(f"{artifact}: complies with every axiom that is checked")
    elif report.violations:
        common.say(f"{artifact}: does not comply")
    else:
        common.say('nothing was checked: give an axiom a check, AXIOM "..." CHECK contains { text: "..." }')
