"""`spak verify --artifact PATH --spec FILE`: an artifact against a spec's axioms, by static checks.

It says of each axiom what it is: a rule (its whole text is a clause of the policy, which every run of the
spec obeys), checked (it has a CHECK, which the pure `spak.validators.compliance` carries out), or prompt
(prose that a model is told and nobody checks). Only what is checked can hold; where nothing was, nothing has
passed. A rule that does not load is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import SpecError

if TYPE_CHECKING:
    from spak.lang import Parsed
    from spak.validators.compliance import Report


@click.command()
@click.option(
    "--artifact", required=True, type=click.Path(path_type=Path), help="The file that is to comply."
)
@click.option("--spec", required=True, type=click.Path(path_type=Path), help="The spec whose axioms count.")
@common.json_option
def command(artifact: Path, spec: Path, as_json: bool) -> int:
    """Check a file against a spec's AXIOMs: 0 if all that have a CHECK hold, 1 if not or none has one."""
    from spak.validators.compliance import MAX_BYTES, comply
    from spak.validators.static_checks import beside

    wanted, policy = axioms(spec)
    data = common.read_input(artifact, limit=MAX_BYTES)
    report = _with_rules(comply(data, artifact.name, wanted, beside(artifact.parent)), wanted, policy)
    if as_json:
        common.emit(_document(artifact, spec, report, wanted))
    else:
        _print(artifact, report, wanted)
    return 0 if report.passed else 1


def axioms(spec: Path) -> tuple[list[dict[str, Any]], str]:
    """Every AXIOM as `{text, check, args}`, `check` empty where there is none, and the text of the POLICY.

    Raises: UsageError `usage.file`, SpecError `lang.invalid` with all diagnostics.
    """
    from spak import config
    from spak.lang import check, parse
    from spak.lang.beside import files_beside
    from spak.lang.imports import resolve

    whole = resolve(parse(common.read_input(spec), str(spec)), files_beside(spec))
    found = check(whole.parsed, config.catalog())
    if errors := [item for item in found if item.severity == "error"]:
        raise SpecError("lang.invalid", f"{spec} has {len(errors)} errors", f"spak check {spec}", found)
    return list(_axioms(whole.parsed, spec)), whole.policy


def _axioms(parsed: Parsed, spec: Path) -> Iterator[dict[str, Any]]:
    from spak.lang import ast, values
    from spak.lang.report import Report as Findings

    findings = Findings(parsed.spec.source)
    for model in parsed.spec.models():
        for item in model.items:
            if isinstance(item, ast.Axiom):
                body = item.check.body if item.check else None
                args = values.plain_map(body, findings, values.as_text)
                yield {"text": item.text.value, "check": item.check.name if item.check else "", "args": args}
    if findings.errors:
        raise SpecError(
            "lang.invalid", f"{spec}: a CHECK cannot be read", findings.found[0].hint, tuple(findings.found)
        )


def kind_of(axiom: dict[str, Any]) -> str:
    """`checked`, `rule` or `prompt`; a CHECK says more than a rule does."""
    from spak.policy.law import is_clause

    return "checked" if axiom["check"] else "rule" if is_clause(axiom["text"]) else "prompt"


def _with_rules(report: Report, wanted: list[dict[str, Any]], policy: str) -> Report:
    """The report with the rules that do not load beside constitution and POLICY; each is a violation."""
    from dataclasses import replace

    from spak.policy import PolicyError
    from spak.policy.law import compiled, name_of
    from spak.runner.genesis import constitution
    from spak.validators.compliance import Violation

    broken = []
    for index, axiom in enumerate(wanted, start=1):
        if kind_of(axiom) == "rule":
            try:
                compiled(constitution(), policy, {name_of(index): axiom["text"]})
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
        holds = None if kind == "prompt" else index not in broken
        listed.append({"index": index, "axiom": axiom["text"], "kind": kind, "holds": holds})
    return {"artifact": str(artifact), "spec": str(spec), **asdict(report), "axioms": listed}


def _print(artifact: Path, report: Report, wanted: list[dict[str, Any]]) -> None:
    for broken in report.violations:
        where = f"{artifact}:{broken.line}" if broken.line else str(artifact)
        common.say(f"{where}: {broken.message} [{broken.code}]\n  axiom {broken.index}: {broken.axiom}")
    for text in report.held:
        common.say(f"holds: {text}")
    rules = {axiom["text"] for axiom in wanted if kind_of(axiom) == "rule"}
    for text in report.unchecked:
        if text in rules:
            common.say(f"a rule of every run, not of the artifact: {text}")
        else:
            common.say(f"unchecked, only told to a model: {text}")
    if report.passed:
        common.say(f"{artifact}: complies with every axiom that is checked")
    elif report.violations:
        common.say(f"{artifact}: does not comply")
    else:
        common.say('nothing was checked: give an axiom a check, AXIOM "..." CHECK contains { text: "..." }')
